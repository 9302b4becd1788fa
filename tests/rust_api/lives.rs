//! A service from its builder to its end.

use crate::*;
use shardwheel::{
    Attached, Batch, Builder, Error, Event, Expiry, Outcome, Queue, Stats, Time, Timer,
    TimerBuilder, Timers,
};
use std::sync::Mutex;

fn is_send<T: Send>() {}
fn is_sync<T: Sync>() {}

#[test]
fn what_may_cross_threads() {
    is_send::<(Service, Timers, Timer, Shard, Queue, Event, Expiry, Error, Outcome, Stats, Time)>();
    is_sync::<(Service, Timers, Timer, Shard, Queue, Event, Expiry, Error, Outcome, Stats, Time)>();
    is_send::<(Builder, TimerBuilder<'_>, Batch<'_>)>();
    // Whether a type is `Send` can be asked of inference: with two ways to call it, it would not
    // compile.
    trait MayNotCross<A> {
        fn ask() {}
    }
    impl<T> MayNotCross<()> for T {}
    struct Sendable;
    impl<T: Send> MayNotCross<Sendable> for T {}
    <Attached as MayNotCross<_>>::ask();
}

#[test]
fn errors_are_errors() {
    let error: Box<dyn std::error::Error> = Error::Full.into();
    assert_eq!(error.to_string(), "the shard is full");
    let shown = format!("{:?} {:?}", threaded(1), manual());
    assert!(shown.contains("Service") && shown.contains("Shard"), "{shown}");
}

#[test]
fn the_builder_is_obeyed() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (started, stopped) = (log.clone(), log.clone());
    let name = || std::fs::read_to_string("/proc/thread-self/comm").unwrap().trim().to_string();
    let service = Service::builder()
        .shards(2)
        .tick(Duration::from_micros(100))
        .max_timers(1)
        .pin_to([0])
        .thread_name("api")
        .boottime()
        .on_thread_start(move |shard| started.lock().unwrap().push(format!("+{shard} {}", name())))
        .on_thread_stop(move |shard| stopped.lock().unwrap().push(format!("-{shard} {}", name())))
        .build()
        .unwrap();
    assert_eq!(service.shard_count(), 2);
    let count = Count::default();
    let add = count.clone();
    service.timer().shard(1).delay(ms(1)).start_once(move |_| add.add()).unwrap();
    assert_eq!(service.timer().shard(1).start_once(|_| ()), Err(Error::Full));
    eventually("it fires", || count.get() == 1);
    drop(service);
    let mut log = std::mem::take(&mut *log.lock().unwrap());
    log.sort();
    assert_eq!(log, ["+0 api-0", "+1 api-1", "-0 api-0", "-1 api-1"]);
}

#[test]
fn the_builder_is_refused() {
    let refused = |builder: Builder| builder.build().unwrap_err();
    assert_eq!(refused(Service::builder().shards(257)), Error::Invalid);
    assert_eq!(refused(Service::builder().tick(Duration::from_nanos(999))), Error::Invalid);
    assert_eq!(refused(Service::builder().tick(Duration::MAX)), Error::Invalid);
    assert_eq!(refused(Service::builder().max_timers((1 << 28) + 1)), Error::Invalid);
    assert_eq!(refused(Service::builder().pin_to([])), Error::Invalid);
    assert_eq!(refused(Service::builder().thread_name("a\0b")), Error::Invalid);
    assert_eq!(refused(Service::builder().manual_clock()), Error::Invalid);
    assert_eq!(refused(Service::builder().shards(1).pin_to([65_000])), Error::System);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn slow_callbacks_are_told_before_the_drop() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = told.clone();
    let service = Service::builder()
        .shards(1)
        .unpinned()
        .slow_callback(ms(5), move |slow| log.lock().unwrap().push(*slow))
        .build()
        .unwrap();
    service.after(Duration::ZERO, |_| ()).unwrap();
    let dropped = Count::default();
    let guard = dropped.guard();
    let slow = service
        .timer()
        .start(move |_| {
            let _ = &guard;
            thread::sleep(ms(20));
        })
        .unwrap();
    eventually("it is over", || dropped.get() == 1);
    let told = told.lock().unwrap();
    let one = told.iter().find(|one| one.timer == slow).expect("it was slow");
    assert_eq!(one.shard, 0);
    assert!(one.elapsed >= ms(20), "{one:?}");
    assert!(service.stats().unwrap().slow_callbacks >= 1);
}

#[test]
fn all_defaults() {
    let service = Service::new().unwrap();
    assert!(service.shard_count() >= 1);
    let before = service.now();
    assert!(service.now() >= before);
    assert_eq!(service.panics(), 0);
}

#[test]
fn after_the_end() {
    let service = threaded(2);
    let timers = service.timers();
    let timer = service.after(hour(), |_| ()).unwrap();
    assert_eq!(service.stop(), Ok(1));
    assert_eq!(service.stop(), Ok(0));
    assert_eq!(timers.stop_with(|_| unreachable!()), Ok(0));
    drop(service);
    assert_eq!(timers.stop(), Ok(0));
    assert_eq!(timers.after(ms(1), |_| ()), Err(Error::Stopped));
    assert_eq!(timers.cancel(timer), Err(Error::Stopped));
    assert_eq!(timers.cancel_wait(timer), Err(Error::Stopped));
    assert_eq!(timers.cancel_all(&[timer]), Err(Error::Stopped));
    assert_eq!(timers.reset(timer, ms(1)), Err(Error::Stopped));
    assert_eq!(timers.remaining(timer), Err(Error::Stopped));
    assert_eq!(timers.queue().unwrap_err(), Error::Stopped);
    assert_eq!(timers.shard_count(), 2);
    assert_eq!(timers.stats().unwrap().returned, 1);
    assert_eq!(timers.shard(0).unwrap().stats().unwrap().pending, 0);
    assert!(timers.now() > Time::ZERO);
    assert_eq!(timers.panics(), 0);
}

#[test]
fn closures_that_hold_a_way_in_do_not_keep_the_service() {
    let service = threaded(1);
    let dropped = Count::default();
    let (guard, timers) = (dropped.guard(), service.timers());
    let cancel_itself = move |expiry: &Expiry| {
        let _ = (timers.cancel(expiry.timer), &guard);
    };
    service.every(hour(), cancel_itself).unwrap();
    drop(service);
    assert_eq!(dropped.get(), 1);
}

#[test]
fn stop_waits_for_the_callback_that_runs() {
    let service = threaded(1);
    let (begun, over) = (Count::default(), Count::default());
    let (begin, end) = (begun.clone(), over.clone());
    service
        .after(Duration::ZERO, move |_| {
            begin.add();
            thread::sleep(ms(50));
            end.add();
        })
        .unwrap();
    eventually("it runs", || begun.get() == 1);
    drop(service);
    assert_eq!(over.get(), 1);
}

#[test]
#[allow(unsafe_code)]
fn in_a_forked_child_everything_is_refused_and_nothing_is_dropped() {
    let (service, shard) = manual();
    let (queue, dropped) = (service.queue().unwrap(), Count::default());
    let guard = dropped.guard();
    let timer = service.after(ms(1), move |_| drop(guard)).unwrap();
    let attached = shard.attach().unwrap();
    // SAFETY: the child calls what only reads memory of its own, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let refused = service.after(ms(1), |_| ()) == Err(Error::Forked)
            && service.cancel(timer) == Err(Error::Forked)
            && service.stats() == Err(Error::Forked)
            && service.stop() == Err(Error::Forked)
            && shard.poll() == Err(Error::Forked)
            && queue.pop() == Err(Error::Forked)
            && service.queue().err() == Some(Error::Forked);
        drop((attached, queue, shard, service));
        // SAFETY: ends the process.
        unsafe { libc::_exit(if refused && dropped.get() == 0 { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(step(&service, ms(1)), 1);
    assert_eq!(dropped.get(), 1);
}
