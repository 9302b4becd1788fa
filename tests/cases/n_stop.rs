//! N. Stop, close, lifecycle.

use crate::kit::*;
use crate::support::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Stop hands back nothing when all has fired, and all that has not.
#[test]
fn netty_03() {
    let s = Setup::threaded(1).start();
    let log = Log::new();
    for _ in 0..3 {
        s.start(MS, log);
    }
    eventually("all fire", || log.count() == 3);
    eventually("none is live", || s.pending() == 0);
    assert!(s.stop_into().unwrap().is_empty());
    let s = Setup::threaded(2).start();
    let mut timers: Vec<_> = (0..5).map(|_| s.start(5 * SEC, log)).collect();
    let mut left: Vec<_> = s.stop_into().unwrap().iter().map(|left| left.timer).collect();
    timers.sort_unstable();
    left.sort_unstable();
    assert_eq!(timers, left);
    assert_eq!(s.stats().returned, 5);
}

/// Ours has one way to stop: after the callback that is running, neither queued one-shots nor
/// periodic timers run; each is handed back.
#[test]
fn jdk_03() {
    let s = Setup::threaded(1).start();
    let go = hold_up(s.door());
    let (shots, periodic) = (Log::new(), Log::new());
    let due = [0, MS].map(|delay| s.timer().delay(delay).log(shots).start());
    let far = s.timer().delay(HOUR).log(shots).start();
    let ticker = s.timer().delay(MS).period(MS).log(periodic).start();
    sleep_ms(20);
    let door = s.door();
    let stopper = std::thread::spawn(move || door.stop_into());
    sleep_ms(100);
    assert!(!stopper.is_finished(), "not before the running callback is over");
    go.open();
    let mut left: Vec<_> = stopper.join().unwrap().unwrap().iter().map(|left| left.timer).collect();
    let mut timers = vec![due[0], due[1], far, ticker];
    left.sort_unstable();
    timers.sort_unstable();
    assert_eq!(left, timers);
    assert_eq!((shots.count(), periodic.count()), (0, 0));
    assert_eq!((shots.dropped(), periodic.dropped()), (3, 1));
}

/// Stop, or free, from inside a callback is refused; nothing has changed, and no dead-lock.
#[test]
fn netty_16() {
    for s in [Setup::threaded(2).start(), Setup::manual(MS).start()] {
        let (door, log, done) = (s.door(), Log::new(), Arc::new(Gate::new()));
        let open = done.clone();
        let call = move |_: &sw_expiry| {
            assert_eq!(door.stop(), SW_WOULD_DEADLOCK);
            // SAFETY: refused, so the service lives on.
            assert_eq!(unsafe { sw_service_free(door.raw()) }, SW_WOULD_DEADLOCK);
            open.open();
        };
        s.timer().run(call).start();
        let _ = door.try_poll(0, 0);
        done.wait();
        s.start(0, log);
        let _ = door.try_poll(0, 0);
        eventually("the service still works", || log.count() == 1);
    }
}

/// A second stop does nothing and hands nothing back.
#[test]
fn netty_17() {
    for s in [Setup::threaded(1).start(), Setup::manual(MS).start()] {
        let log = Log::new();
        s.timer().delay(HOUR).log(log).start();
        assert_eq!(s.stop_into().unwrap().len(), 1);
        for _ in 0..3 {
            assert_eq!(s.stop_into().unwrap().len(), 0);
        }
        assert_eq!((log.count(), log.dropped()), (0, 1));
    }
    // SAFETY: no service is allowed here.
    assert_eq!(unsafe { sw_service_free(std::ptr::null_mut()) }, SW_OK);
}

/// With a timer of ten seconds pending a stop is over at once, and the timer never runs.
#[test]
fn brpc_09() {
    let s = Setup::threaded(2).start();
    let log = Log::new();
    s.start(10 * SEC, log);
    sleep_ms(30);
    let begin = mono();
    assert_eq!(s.stop(), SW_OK);
    assert!(mono() - begin < SEC);
    drop(s);
    sleep_ms(20);
    assert_eq!(log.count(), 0);
}

/// A callback without delay ends the host's loop, which then stops the service.
#[test]
fn twi_14() {
    let s = Setup::driven().start();
    let over = Arc::new(AtomicU64::new(0));
    let end = over.clone();
    s.timer().run(move |_| end.store(1, Ordering::SeqCst)).start();
    s.start(HOUR, Log::new());
    while over.load(Ordering::SeqCst) == 0 {
        s.poll();
    }
    assert_eq!(s.stop_into().unwrap().len(), 1);
}

/// Waiting for the end of a timer: at once when it is idle, not before its callback is over when
/// it runs; every waiter gets its answer, and later ones learn that all was over.
#[test]
fn net_11() {
    let s = Setup::threaded(1).start();
    let idle = s.start(HOUR, Log::new());
    assert_eq!((s.cancel_wait(idle), s.cancel_wait(idle)), (SW_OK, SW_NOT_FOUND));
    let (begun, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
    let (open, wait) = (begun.clone(), go.clone());
    let over = Arc::new(AtomicU64::new(0));
    let end = over.clone();
    let running = s
        .timer()
        .run(move |_| {
            open.open();
            wait.wait();
            end.store(1, Ordering::SeqCst);
        })
        .start();
    begun.wait();
    let door = s.door();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let over = over.clone();
            std::thread::spawn(move || {
                let answer = door.cancel_wait(running);
                (answer, over.load(Ordering::SeqCst))
            })
        })
        .collect();
    sleep_ms(50);
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    assert_eq!(s.cancel(running), SW_RUNNING, "the plain one does not wait");
    go.open();
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), (SW_RUNNING, 1));
    }
    assert_eq!(s.cancel_wait(running), SW_NOT_FOUND);
}

/// Cancelled ten times over, and from inside its own callback: no error, no dead-lock.
#[test]
fn net_04() {
    let s = Setup::threaded(1).start();
    let timer = s.start(HOUR, Log::new());
    assert_eq!(s.cancel(timer), SW_OK);
    for _ in 0..10 {
        assert_eq!((s.cancel(timer), s.cancel_wait(timer)), (SW_NOT_FOUND, SW_NOT_FOUND));
    }
    let (door, answers) = (s.door(), Arc::new(Mutex::new(Vec::new())));
    for period in [0, MS] {
        let seen = answers.clone();
        let call = move |expiry: &sw_expiry| {
            let waited = door.cancel_wait(expiry.timer);
            let plain = door.cancel(expiry.timer);
            seen.lock().unwrap().push((period, waited, plain));
        };
        s.timer().period(period).run(call).start();
    }
    eventually("both have run", || answers.lock().unwrap().len() == 2);
    sleep_ms(30);
    let answers = answers.lock().unwrap();
    assert_eq!(answers.len(), 2, "neither runs again");
    assert!(answers.iter().all(|answer| answer.1 == SW_WOULD_DEADLOCK));
    assert!(answers.iter().all(|answer| answer.0 != 0 || answer.2 == SW_RUNNING));
}

/// A start on a service that has been stopped: an error, the context is let go, no callback.
#[test]
fn uv_09() {
    for s in [Setup::threaded(1).start(), Setup::manual(MS).start()] {
        assert_eq!(s.stop(), SW_OK);
        let log = Log::new();
        assert_eq!(s.timer().log(log).try_start(), Err(SW_STOPPED));
        assert_eq!(s.try_start(0, log), Err(SW_STOPPED));
        let specs = [s.timer().log(log).spec(), s.timer().delay(MS).log(log).spec()];
        assert_eq!(s.start_batch(&specs), Err(SW_STOPPED));
        assert_eq!((log.count(), log.dropped()), (0, 3), "F9: each spec's context");
    }
}

/// A shard asleep on its only timer, which another thread cancels: its room is back at once, and
/// the next timer comes in time.
#[test]
fn evt_08() {
    let s = Setup::threaded(1).max_timers(1).start();
    let door = s.door();
    let timer = s.start(5 * SEC, Log::new());
    sleep_ms(50);
    let cancel = move || assert_eq!(door.cancel(timer), SW_OK);
    std::thread::spawn(cancel).join().unwrap();
    assert_eq!(s.pending(), 0);
    assert!(measure(s.door(), 10 * MS) < SEC);
}

/// Timers of 100, 200 and 300 ms on shards with threads of their own; each thread ends exactly
/// once when the service stops, and says so.
#[test]
fn kafka_05() {
    let stops = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let seen = stops.clone();
    let s = Setup::threaded(2)
        .name("reaped")
        .on_thread_stop(move |shard| {
            seen[shard as usize].fetch_add(1, Ordering::SeqCst);
        })
        .start();
    let log = Log::new();
    for delay in [100, 200, 300] {
        s.start(delay * MS, log);
    }
    eventually("three expire", || log.count() == 3);
    assert!(task_named("reaped-0").is_some() && task_named("reaped-1").is_some());
    assert_eq!(stops.each_ref().map(|count| count.load(Ordering::SeqCst)), [0, 0]);
    assert_eq!((s.stop(), s.stop()), (SW_OK, SW_OK));
    assert_eq!(stops.each_ref().map(|count| count.load(Ordering::SeqCst)), [1, 1]);
    assert!(task_named("reaped-0").is_none() && task_named("reaped-1").is_none());
}

/// A service with a periodic timer, one tick of it, and down again; three times.
#[test]
fn go_27() {
    for _ in 0..3 {
        let s = Setup::threaded(1).start();
        let log = Log::new();
        let timer = s.start_every(MS, log);
        eventually("one tick", || log.count() >= 1);
        assert_ne!(s.cancel(timer), SW_NOT_FOUND);
        assert_eq!(s.stop(), SW_OK);
    }
}

/// Everything on two of four shards is stopped: each of those timers is let go once, the other
/// shards' timers are untouched.
#[test]
fn dpdk_14() {
    let s = Setup::manual(MS).shards(4).start();
    let logs = [(); 4].map(|()| Log::new());
    let mut timers = Vec::new();
    for nth in 0..400 {
        let shard = nth % 4;
        let log = logs[shard as usize];
        timers.push(s.timer().delay((1 + nth as u64) * MS).shard(shard).log(log).start());
    }
    let chosen = |timer: &&sw_timer| [1, 2].contains(&sw_timer_shard(**timer));
    let stopped: Vec<_> = timers.iter().filter(chosen).copied().collect();
    assert_eq!(s.cancel_batch(&stopped), Ok(200));
    assert_eq!(logs.map(Log::dropped), [0, 100, 100, 0]);
    s.advance(HOUR);
    assert_eq!([0, 1, 2, 3].map(|shard| s.poll_shard(shard)), [100, 0, 0, 100]);
    assert_eq!(logs.map(Log::count), [100, 0, 0, 100]);
}
