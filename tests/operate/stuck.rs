//! Callbacks that are stuck: named while they still run, by whoever looks.

use super::details;
use crate::support::*;
use std::ffi::c_void;
use std::sync::Mutex;
use std::thread::{ThreadId, current};

/// What the hook was told: shard, timer, elapsed, and on which thread.
type Told = Mutex<Vec<(u32, sw_timer, u64, ThreadId)>>;

unsafe extern "C-unwind" fn hook(arg: *mut c_void, shard: u32, timer: sw_timer, elapsed: u64) {
    // SAFETY: each test hands a static list.
    let told = unsafe { &*arg.cast_const().cast::<Told>() };
    told.lock().unwrap().push((shard, timer, elapsed, current().id()));
}

fn watch(svc: &Svc, told: &'static Told) -> sw_status {
    let arg = std::ptr::from_ref(told).cast_mut().cast();
    // SAFETY: the hook may be called anywhere with a static list.
    unsafe { sw_service_on_stuck(svc.raw(), Some(hook), arg) }
}

#[test]
fn whoever_reads_numbers_names_it_once_while_it_runs() {
    static TOLD: Told = Mutex::new(Vec::new());
    static STUCK: Gate = Gate::new();
    static AGAIN: Gate = Gate::new();
    let svc = Setup::threaded(1).on_slow(20 * MS, |_, _, _, _| {}).start();
    assert_eq!(watch(&svc, &TOLD), SW_OK);
    let timer = svc.timer().run(|_| STUCK.wait()).start();
    eventually("it is named", || {
        svc.stats();
        !TOLD.lock().unwrap().is_empty()
    });
    assert!(!STUCK.is_open(), "it still runs");
    let (shard, named, elapsed, thread) = TOLD.lock().unwrap()[0];
    assert_eq!((shard, named, thread), (0, timer, current().id()));
    assert!(elapsed > 20 * MS, "{elapsed}");
    assert!(details(svc.door(), 0).callback_running_ns >= elapsed);
    for _ in 0..100 {
        svc.stats();
    }
    assert_eq!(TOLD.lock().unwrap().len(), 1, "once for each callback");
    assert_eq!(svc.stats().slow_callbacks, 0, "counted with its duration, at its end");
    let second = svc.timer().run(|_| AGAIN.wait()).start();
    STUCK.open();
    eventually("the next one is named", || {
        svc.stats();
        TOLD.lock().unwrap().len() == 2
    });
    assert_eq!(TOLD.lock().unwrap()[1].1, second);
    AGAIN.open();
    eventually("both are counted", || svc.stats().slow_callbacks == 2);
    assert_eq!(details(svc.door(), 0).callback_running_ns, 0);
    assert!(svc.stats().callback_max_ns > 20 * MS);
}

#[test]
fn another_shard_names_it_before_it_sleeps() {
    static TOLD: Told = Mutex::new(Vec::new());
    static STUCK: Gate = Gate::new();
    let svc = Setup::threaded(2).on_slow(20 * MS, |_, _, _, _| {}).start();
    assert_eq!(watch(&svc, &TOLD), SW_OK);
    let timer = svc.timer().shard(0).run(|_| STUCK.wait()).start();
    // Shard 1 has work now and then; nobody reads numbers.
    svc.timer().shard(1).period(5 * MS).log(Log::counting()).start();
    eventually("it is named", || !TOLD.lock().unwrap().is_empty());
    let (shard, named, _, thread) = TOLD.lock().unwrap()[0];
    assert_eq!((shard, named), (0, timer));
    assert_ne!(thread, current().id());
    assert!(!STUCK.is_open(), "it still runs");
    STUCK.open();
}

#[test]
fn one_that_polls_another_shard_names_it() {
    static TOLD: Told = Mutex::new(Vec::new());
    static STUCK: Gate = Gate::new();
    let svc = Setup::driven().shards(2).on_slow(20 * MS, |_, _, _, _| {}).start();
    assert_eq!(watch(&svc, &TOLD), SW_OK);
    let door = svc.door();
    let timer = svc.timer().shard(0).run(|_| STUCK.wait()).start();
    std::thread::scope(|scope| {
        scope.spawn(move || assert_eq!(door.poll_shard(0), 1));
        eventually("it is named", || {
            door.poll_shard(1);
            !TOLD.lock().unwrap().is_empty()
        });
        assert_eq!(TOLD.lock().unwrap()[0].1, timer);
        STUCK.open();
    });
}

#[test]
fn what_cannot_be_is_refused() {
    static TOLD: Told = Mutex::new(Vec::new());
    let svc = Setup::manual(MS).start();
    assert_eq!(watch(&svc, &TOLD), SW_INVALID, "there is no limit");
    let svc = Setup::manual(MS).on_slow(SEC, |_, _, _, _| {}).start();
    // SAFETY: both are refused.
    unsafe {
        let none = std::ptr::null_mut();
        assert_eq!(sw_service_on_stuck(svc.raw(), None, none), SW_INVALID);
        assert_eq!(sw_service_on_stuck(std::ptr::null_mut(), Some(hook), none), SW_INVALID);
    }
    assert_eq!(watch(&svc, &TOLD), SW_OK);
    assert_eq!(watch(&svc, &TOLD), SW_BUSY);
    assert_eq!(svc.stop(), SW_OK);
    assert_eq!(watch(&svc, &TOLD), SW_STOPPED);
}

#[test]
fn rust_names_it_too() {
    static STUCK: Gate = Gate::new();
    static TOLD: Mutex<Vec<(u32, u64)>> = Mutex::new(Vec::new());
    let limit = std::time::Duration::from_millis(20);
    let builder = shardwheel::Service::builder().shards(1).unpinned();
    let told = |slow: &shardwheel::SlowCallback| {
        TOLD.lock().unwrap().push((slow.shard, slow.timer.to_bits()));
        panic!("goes no further");
    };
    let service = builder.slow_callback(limit, |_| {}).stuck_callback(told).build().unwrap();
    let timer = service.after(std::time::Duration::ZERO, |_| STUCK.wait()).unwrap();
    eventually("it is named", || {
        service.stats().unwrap();
        *TOLD.lock().unwrap() == [(0, timer.to_bits())]
    });
    assert_eq!(service.panics(), 1);
    STUCK.open();
    let without_limit = shardwheel::Service::builder().driven().stuck_callback(|_| {}).build();
    assert_eq!(without_limit.err(), Some(shardwheel::Error::Invalid));
}
