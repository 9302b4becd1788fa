//! C5: cancel_wait.

use crate::cancel::Standing;
use crate::support::*;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Plain memory that a callback writes and the waiting thread reads: only `cancel_wait` orders
/// the two.
struct Plain(UnsafeCell<u64>);
// SAFETY: what orders the accesses is what these tests are about.
unsafe impl Sync for Plain {}
// SAFETY: as above.
unsafe impl Send for Plain {}

#[test]
fn c5_ok_if_it_prevented_a_run() {
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let svc = setup.start();
        let log = Log::new();
        for period in [0, MS] {
            let timer = svc.timer().delay(HOUR).period(period).log(log).start();
            assert_eq!(svc.cancel_wait(timer), SW_OK);
            assert_eq!(svc.cancel_wait(timer), SW_NOT_FOUND);
        }
        assert_eq!(log.dropped(), 2);
        assert_eq!(log.count(), 0);
    }
}

#[test]
fn c5_running_if_it_waited_for_the_last_run() {
    let svc = Setup::threaded(1).start();
    for period in [0, MS] {
        for _ in 0..20 {
            let plain = Arc::new(Plain(UnsafeCell::new(0)));
            let dropped = Arc::new(AtomicBool::new(false));
            let inside = Arc::new(Gate::new());
            let (write, entered, count) = (plain.clone(), inside.clone(), dropped.clone());
            let call = move |_: &sw_expiry| {
                entered.open();
                std::thread::sleep(Duration::from_millis(5));
                let write = &write;
                // SAFETY: the reader waits for the end of this callback.
                unsafe { *write.0.get() += 1 };
            };
            let ended = move || {
                std::thread::sleep(Duration::from_millis(2));
                count.store(true, Ordering::SeqCst);
            };
            let timer = svc.timer().period(period).run(call).ended(ended).start();
            inside.wait();
            let answer = svc.cancel_wait(timer);
            // SAFETY: it is over.
            let ran = unsafe { *plain.0.get() };
            // The run may have ended while this thread was held up.
            let late = if period == 0 { SW_NOT_FOUND } else { SW_OK };
            assert!(answer == SW_RUNNING || answer == late, "{answer:?}");
            assert!(ran >= 1);
            assert!(dropped.load(Ordering::SeqCst), "its drop has run");
            std::thread::sleep(Duration::from_millis(3));
            // SAFETY: as above.
            assert_eq!(unsafe { *plain.0.get() }, ran, "it ran again");
            assert_eq!(svc.cancel_wait(timer), SW_NOT_FOUND);
        }
    }
}

#[test]
fn c5_not_found_if_all_was_over() {
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    let timer = svc.timer().log(log).start();
    eventually("it fired and was dropped", || log.dropped() == 1);
    eventually("all over", || svc.cancel(timer) == SW_NOT_FOUND);
    assert_eq!(svc.cancel_wait(timer), SW_NOT_FOUND);
}

#[test]
fn c5_not_found_means_that_another_threads_drop_has_run_too() {
    // Another thread's cancel has won and is about to drop: not all is over yet.
    for batch in [false, true] {
        let svc = Setup::threaded(1).start();
        let (dropping, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
        let dropped = Arc::new(AtomicBool::new(false));
        let (begun, leave, over) = (dropping.clone(), go.clone(), dropped.clone());
        let ended = move || {
            begun.open();
            leave.wait();
            over.store(true, Ordering::SeqCst);
        };
        let timer = svc.timer().delay(HOUR).run(|_| {}).ended(ended).start();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if batch {
                    assert_eq!(svc.cancel_batch(&[timer]), Ok(1));
                } else {
                    assert_eq!(svc.cancel(timer), SW_OK);
                }
            });
            dropping.wait();
            let waiter = scope.spawn(|| {
                let answer = svc.cancel_wait(timer);
                (answer, dropped.load(Ordering::SeqCst))
            });
            std::thread::sleep(Duration::from_millis(50));
            go.open();
            assert_eq!(waiter.join().unwrap(), (SW_NOT_FOUND, true), "its drop has run");
        });
    }
}

#[test]
fn c5_a_callback_waits_for_a_drop_on_another_thread() {
    // On another shard's thread, after a callback; on a thread that cancels; the same for this very shard's timer.
    for (shard, cancels) in [(1, false), (1, true), (0, true)] {
        let svc = Setup::threaded(2).start();
        let door = svc.door();
        let (dropping, waiting) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
        let dropped = Arc::new(AtomicBool::new(false));
        let (begun, meets, over) = (dropping.clone(), waiting.clone(), dropped.clone());
        let ended = move || {
            begun.open();
            meets.wait();
            std::thread::sleep(Duration::from_millis(30));
            over.store(true, Ordering::SeqCst);
        };
        let timer = svc.timer().shard(shard).delay(HOUR).run(|_| {}).ended(ended).start();
        let (told, answer) = std::sync::mpsc::channel();
        let call = move |_: &sw_expiry| {
            dropping.wait();
            waiting.open();
            let answer = door.cancel_wait(timer);
            told.send((answer, dropped.load(Ordering::SeqCst))).unwrap();
        };
        svc.timer().shard(0).run(call).start();
        if cancels {
            assert_eq!(svc.cancel(timer), SW_OK);
        } else {
            assert_eq!(svc.reset(timer, 0), SW_OK);
        }
        let limit = Duration::from_secs(20);
        let answer = answer.recv_timeout(limit).unwrap();
        assert_eq!(answer, (SW_NOT_FOUND, true), "its drop has run: {shard}, {cancels}");
    }
}

#[test]
fn c5_whatever_it_answers_the_writes_are_visible_and_the_drop_has_run() {
    // The wait meets the timer at every stage: before, inside and after its callback.
    let svc = Setup::threaded(1).tick(US).start();
    let mut answers = [0; 3];
    for round in 0..3_000u64 {
        let plain = Arc::new(Plain(UnsafeCell::new(0)));
        let dropped = Arc::new(AtomicBool::new(false));
        let (write, count) = (plain.clone(), dropped.clone());
        let call = move |_: &sw_expiry| {
            let write = &write;
            // SAFETY: the reader waits for the end of this callback.
            unsafe { *write.0.get() = 7 };
        };
        let ended = move || count.store(true, Ordering::Relaxed);
        let timer = svc.timer().delay(round % 40 * US).run(call).ended(ended).start();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(round % 97) {}
        let answer = svc.cancel_wait(timer);
        answers[answer as usize] += 1;
        // SAFETY: over, whatever the answer.
        let seen = unsafe { *plain.0.get() };
        assert_eq!(seen, if answer == SW_OK { 0 } else { 7 }, "{answer:?}");
        assert!(dropped.load(Ordering::Relaxed), "{answer:?}");
    }
    assert_eq!(answers.iter().sum::<u64>(), 3_000);
}

#[test]
fn c5_a_callback_that_re_arms_itself() {
    let svc = Setup::threaded(1).tick(US).start();
    for round in 0..200 {
        let door = svc.door();
        let ran = Arc::new(AtomicU64::new(0));
        let inside = ran.clone();
        let call = move |expiry: &sw_expiry| {
            inside.fetch_add(1, Ordering::SeqCst);
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_micros(20) {}
            door.reset(expiry.timer, 0);
        };
        let timer = svc.timer().run(call).start();
        eventually("it runs", || ran.load(Ordering::SeqCst) > round % 5);
        let answer = svc.cancel_wait(timer);
        let seen = ran.load(Ordering::SeqCst);
        assert!(answer == SW_OK || answer == SW_RUNNING, "{answer:?}");
        std::thread::sleep(Duration::from_micros(300));
        assert_eq!(ran.load(Ordering::SeqCst), seen, "it ran again");
        assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
    }
    assert_eq!(svc.pending(), 0);
}

/// A thread that calls `cancel_wait`, and that is known to have come to the waiting.
struct Waiter<'scope> {
    thread: std::thread::ScopedJoinHandle<'scope, sw_status>,
    tid: i32,
}

impl<'scope> Waiter<'scope> {
    fn begin(
        scope: &'scope std::thread::Scope<'scope, '_>,
        door: Door,
        timer: sw_timer,
    ) -> Waiter<'scope> {
        let (tell, told) = std::sync::mpsc::channel();
        let thread = scope.spawn(move || {
            tell.send(tid()).unwrap();
            door.cancel_wait(timer)
        });
        let waiter = Waiter { thread, tid: told.recv().unwrap() };
        eventually("it waits", || asleep(waiter.tid));
        waiter
    }
}

#[test]
fn c5_after_a_cancel_that_answered_running_it_cannot_be_re_armed() {
    let svc = Setup::threaded(1).start();
    let door = svc.door();
    for wait in [false, true] {
        let (inside, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
        let (entered, leave) = (inside.clone(), go.clone());
        let ran = Arc::new(AtomicU64::new(0));
        let count = ran.clone();
        let call = move |expiry: &sw_expiry| {
            count.fetch_add(1, Ordering::SeqCst);
            entered.open();
            leave.wait();
            assert_ne!(door.reset(expiry.timer, 0), SW_OK);
            assert_ne!(door.reset_at(expiry.timer, 0), SW_OK);
        };
        let timer = svc.timer().run(call).start();
        inside.wait();
        if wait {
            std::thread::scope(|scope| {
                let waiter = Waiter::begin(scope, *svc, timer);
                go.open();
                assert_eq!(waiter.thread.join().unwrap(), SW_RUNNING);
            });
        } else {
            assert_eq!(svc.cancel(timer), SW_RUNNING);
            go.open();
        }
        eventually("over", || svc.cancel(timer) == SW_NOT_FOUND);
        stays(Duration::from_millis(20), "one run", || ran.load(Ordering::SeqCst) == 1);
    }
}

#[test]
fn c5_many_waiters_for_one_callback() {
    let svc = Setup::threaded(1).start();
    let one = Standing::begin(svc.timer());
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..4).map(|_| Waiter::begin(scope, *svc, one.timer)).collect();
        one.go.open();
        for waiter in waiters {
            assert_eq!(waiter.thread.join().unwrap(), SW_RUNNING);
            assert!(one.ended.load(Ordering::SeqCst), "it did not wait");
        }
    });
}

#[test]
fn c5_it_waits_for_its_own_timer_only() {
    // Another timer's callback on the same shard, however long, is not waited for.
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    let other = svc.timer().delay(HOUR).log(log).start();
    let due = svc.timer().delay(5 * MS).log(log).start();
    let stuck = Standing::begin(svc.timer());
    std::thread::sleep(Duration::from_millis(20));
    let begin = Instant::now();
    assert_eq!(svc.cancel_wait(other), SW_OK);
    assert_eq!(svc.cancel_wait(due), SW_OK, "due is not too late");
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert_eq!(log.dropped(), 2);
    stuck.let_go();
}

#[test]
fn c5_in_driven_mode_it_waits_for_the_polling_thread() {
    let svc = Setup::manual(MS).start();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                svc.poll();
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let one = Standing::begin(svc.timer());
        let waiter = Waiter::begin(scope, *svc, one.timer);
        assert!(!waiter.thread.is_finished(), "it did not wait");
        one.let_go();
        assert_eq!(waiter.thread.join().unwrap(), SW_RUNNING);
        over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn c5_would_deadlock_in_its_own_callback_and_it_runs_no_more() {
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let driven = setup.is_manual();
        let svc = setup.start();
        let door = svc.door();
        for period in [0, MS] {
            let ran = Arc::new(AtomicU64::new(0));
            let inside = ran.clone();
            let call = move |expiry: &sw_expiry| {
                assert_eq!(door.cancel_wait(expiry.timer), SW_WOULD_DEADLOCK);
                assert_ne!(door.reset(expiry.timer, MS), SW_OK);
                inside.fetch_add(1, Ordering::SeqCst);
            };
            let timer = svc.timer().period(period).run(call).start();
            if driven {
                svc.poll();
                svc.run(10 * MS);
            }
            eventually("it ran", || ran.load(Ordering::SeqCst) >= 1);
            eventually("over", || svc.cancel(timer) == SW_NOT_FOUND);
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(ran.load(Ordering::SeqCst), 1);
        }
    }
}

#[test]
fn c5_a_wait_across_shards_without_a_circle() {
    let svc = Setup::threaded(2).start();
    let door = svc.door();
    let slow = Standing::begin(svc.timer().shard(1));
    let target = slow.timer;
    let answer = Arc::new(AtomicU64::new(99));
    let inside = answer.clone();
    let ended = slow.ended.clone();
    let call = move |_: &sw_expiry| {
        let status = door.cancel_wait(target);
        assert!(ended.load(Ordering::SeqCst), "it did not wait");
        inside.store(status as u64, Ordering::SeqCst);
    };
    svc.timer().shard(0).run(call).start();
    std::thread::sleep(Duration::from_millis(30));
    slow.let_go();
    eventually("answered", || answer.load(Ordering::SeqCst) == SW_RUNNING as u64);
}

#[test]
fn c5_inside_its_own_drop_it_returns() {
    let svc = Setup::threaded(1).start();
    let door = svc.door();
    let handle = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let ready = Arc::new(Gate::new());
    let (inside, done, begin) = (handle.clone(), over.clone(), ready.clone());
    let ended = move || {
        begin.wait();
        let status = door.cancel_wait(inside.load(Ordering::SeqCst));
        assert!(status == SW_WOULD_DEADLOCK || status == SW_NOT_FOUND, "{status:?}");
        done.store(true, Ordering::SeqCst);
    };
    let timer = svc.timer().run(|_| {}).ended(ended).start();
    handle.store(timer, Ordering::SeqCst);
    ready.open();
    eventually("the drop returns", || over.load(Ordering::SeqCst));
}
