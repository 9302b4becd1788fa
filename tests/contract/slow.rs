//! F7, F8: slow callbacks, overdue timers, storms.

use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

type Told = Arc<Mutex<Vec<(u32, sw_timer, Ptr, u64)>>>;

#[test]
fn f7_a_slow_callback_is_counted_and_named_before_its_drop() {
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let manual = setup.is_manual();
        let told = Told::default();
        let dropped = Arc::new(AtomicBool::new(false));
        let (list, gone) = (told.clone(), dropped.clone());
        let setup = setup.on_slow(20 * MS, move |shard, timer, ctx, elapsed| {
            assert!(!gone.load(Ordering::SeqCst), "told after the drop");
            list.lock().unwrap().push((shard, timer, ctx, elapsed));
        });
        let svc = setup.start();
        let quick = svc.timer().delay(MS).run(|_| {});
        quick.start();
        let spec = svc
            .timer()
            .delay(2 * MS)
            .run(|_| std::thread::sleep(Duration::from_millis(60)))
            .ended(move || dropped.store(true, Ordering::SeqCst))
            .spec();
        let slow = svc.start_spec(&spec).unwrap();
        if manual {
            assert_eq!(svc.run(2 * MS), 2);
        }
        eventually("both ended", || svc.stats().fired == 2 && svc.stats().slow_callbacks == 1);
        eventually("it is told", || told.lock().unwrap().len() == 1);
        let (shard, timer, ctx, elapsed) = told.lock().unwrap()[0];
        assert_eq!((shard, timer, ctx), (0, slow, Ptr(spec.ctx)));
        assert!((60 * MS..2 * SEC).contains(&elapsed), "real time: {elapsed}");
    }
}

#[test]
fn f7_off_means_off() {
    let svc = Setup::manual(MS).on_slow(0, |_, _, _, _| panic!("it is off")).start();
    svc.timer().run(|_| std::thread::sleep(Duration::from_millis(20))).start();
    assert_eq!(svc.poll(), 1);
    assert_eq!(svc.stats().slow_callbacks, 0);
}

#[test]
fn f7_it_delays_its_own_shard_alone() {
    let witness = Witness::new();
    static SLOW: Gate = Gate::new();
    let svc = Setup::threaded(2).start();
    let (own, other) = (Log::new(), Log::new());
    svc.timer().shard(0).run(|_| SLOW.wait()).start();
    for i in 0..50 {
        svc.timer().shard(0).delay(i * MS).log(own).start();
        svc.timer().shard(1).delay(i * MS).log(other).start();
    }
    eventually("the other shard's", || other.count() == 50);
    assert_eq!(own.count(), 0);
    assert!(svc.stats_of(0).overdue_ns > 0, "50 timers wait behind the slow one");
    for fire in other.fires() {
        assert!(fire.now - fire.deadline < MS + witness.slack(), "{fire:?}");
    }
    SLOW.open();
    eventually("its own", || own.count() == 50);
}

#[test]
fn f7_overdue_is_that_of_the_most_overdue() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    assert_eq!(svc.stats().overdue_ns, 0);
    let first = svc.start(10 * MS, log);
    svc.start(20 * MS, log);
    svc.start(HOUR, log);
    assert_eq!(svc.stats().overdue_ns, 0);
    svc.poll();
    svc.advance(9 * MS);
    assert_eq!(svc.stats().overdue_ns, 0);
    svc.advance(26 * MS);
    assert_eq!(svc.stats().overdue_ns, 25 * MS);
    assert_eq!(svc.stats_of(0).overdue_ns, 25 * MS);
    assert_eq!(svc.cancel(first), SW_OK);
    assert_eq!(svc.stats().overdue_ns, 15 * MS, "the cancelled one is due no more");
    assert_eq!(svc.poll(), 1);
    assert_eq!(svc.stats().overdue_ns, 0);
    // One that no turn has seen yet.
    svc.start_at(5 * MS, log);
    assert_eq!(svc.stats().overdue_ns, 30 * MS);
    svc.poll();
    // What a budget left behind.
    svc.start(MS, log);
    svc.start(2 * MS, log);
    svc.advance(5 * MS);
    assert_eq!(svc.poll_budget(1), 1);
    assert_eq!(svc.stats().overdue_ns, 3 * MS);
    svc.poll();
}

#[test]
fn f8_a_cancel_in_a_storm_still_wins() {
    // All due at once; the first callback, then others on the way, cancel some that are to come.
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let log = Log::new();
    let timers: Arc<Mutex<Vec<sw_timer>>> = Arc::default();
    let (list, wins) = (timers.clone(), Arc::new(AtomicU64::new(0)));
    let won = wins.clone();
    let first = move |_: &sw_expiry| {
        for &timer in list.lock().unwrap().iter().step_by(3) {
            assert_eq!(door.cancel(timer), SW_OK);
            won.fetch_add(1, Ordering::SeqCst);
        }
    };
    svc.timer().delay(MS).run(first).start();
    for _ in 0..100_000 {
        timers.lock().unwrap().push(svc.timer().delay(MS).log(log).start());
    }
    let wins_expected = 100_000u64.div_ceil(3);
    assert_eq!(svc.run(MS) as u64, 1 + 100_000 - wins_expected);
    assert_eq!(wins.load(Ordering::SeqCst), wins_expected);
    assert_eq!(log.count(), 100_000 - wins_expected);
    assert_eq!(log.dropped(), 100_000);
}

#[test]
fn f8_from_another_thread_too() {
    static STORM: Gate = Gate::new();
    static CANCELLED: Gate = Gate::new();
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    svc.timer().run(|_| STORM.wait()).start();
    let ran = Arc::new(AtomicU64::new(0));
    let mut last = Vec::new();
    for i in 0..20_000u64 {
        let inside = ran.clone();
        let call = move |_: &sw_expiry| {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_micros(25) {}
            if inside.fetch_add(1, Ordering::SeqCst) == 15_000 {
                CANCELLED.wait();
            }
        };
        if i < 19_000 {
            svc.timer().run(call).start();
        } else {
            last.push(svc.timer().log(log).start());
        }
    }
    // Half a second of callbacks comes first (and waits, should this thread be held up); the last
    // thousand are due all the while.
    STORM.open();
    eventually("the storm is on", || ran.load(Ordering::SeqCst) > 10);
    for &timer in &last {
        assert_eq!(svc.cancel(timer), SW_OK, "due, but not yet called");
    }
    CANCELLED.open();
    let more = svc.timer().delay(0).log(log).start();
    eventually("the storm is over", || log.count() == 1);
    assert_eq!(log.timers(), [more]);
    assert_eq!(ran.load(Ordering::SeqCst), 19_000);
    assert_eq!(log.dropped(), 1_001);
}
