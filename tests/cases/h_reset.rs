//! H. Reset, re-arm, change.

use crate::g_cancel::unknown;
use crate::kit::*;
use crate::support::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Three timers, one of them armed a second time: each fires once.
#[test]
fn folly_01() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let [_, second, _] = [20, 20, 40].map(|delay| s.start(delay * MS, log));
    assert_eq!(s.reset(second, 20 * MS), SW_OK);
    assert_eq!((s.run(19 * MS), s.run(MS), s.run(20 * MS)), (0, 2, 1));
    assert_eq!((s.run(DAY), log.count()), (0, 3));
}

/// Armed for a day, then for 10 ms: one firing at 10 ms, the day is forgotten. Also 5, then 10.
#[test]
fn uv_02() {
    let s = Setup::manual(MS).start();
    for before in [DAY, 5 * MS] {
        let log = Log::new();
        let timer = s.start(before, log);
        assert_eq!(s.reset(timer, 10 * MS), SW_OK);
        assert_eq!((s.run(10 * MS - 1), s.run(1)), (0, 1));
        assert_eq!((s.run(2 * DAY), log.timers()), (0, vec![timer]));
    }
}

/// A start never replaces an armed timer, a reset always does, whatever state the timer is in.
#[test]
fn sea_06() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let first = s.start(10 * MS, log);
    let second = s.start(10 * MS, log);
    assert_ne!(first, second);
    assert_eq!(s.run(10 * MS), 2);
    let timer = s.start(10 * MS, log);
    for delay in [10 * MS, 20 * MS, 5 * MS, 0, u64::MAX, 30 * MS] {
        assert_eq!(s.reset(timer, delay), SW_OK);
    }
    s.advance(40 * MS);
    assert_eq!(s.reset(timer, 30 * MS), SW_OK, "due, not yet called");
    assert_eq!((s.poll(), s.run(30 * MS)), (0, 1));
    assert_eq!(s.reset(timer, MS), SW_NOT_FOUND, "over");
    assert_eq!((s.run(DAY), log.count()), (0, 3));
}

/// A sole far timer, its shard asleep: a reset into the past wakes the shard at once.
#[test]
fn tokio_15() {
    let s = Setup::threaded(1).start();
    let log = Log::new();
    let timer = s.start(10 * SEC, log);
    sleep_ms(100);
    let begin = mono();
    assert_eq!(s.reset_at(timer, s.now() - 100 * MS), SW_OK);
    eventually("it fires", || log.count() == 1);
    assert!(mono() - begin < SEC);
}

/// The same on a driven shard: its descriptor turns readable, no time goes by.
#[test]
fn tokio_15_driven() {
    let s = Setup::driven().start();
    let log = Log::new();
    let timer = s.start(HOUR, log);
    s.poll();
    assert!(!s.readable());
    let door = s.door();
    std::thread::spawn(move || door.reset_at(timer, 0)).join().unwrap();
    assert!(s.readable());
    assert_eq!((s.poll(), log.count()), (1, 1));
    assert!(!s.readable());
}

/// Pulled in twice, from 200 to 50 and from there to 40: fires at 40, once.
#[test]
fn tokio_17() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timer = s.start(200 * MS, log);
    s.run_to(4 * MS);
    assert_eq!(s.reset_at(timer, 50 * MS), SW_OK);
    s.run_to(24 * MS);
    assert_eq!(s.reset_at(timer, 40 * MS), SW_OK);
    assert!(s.next() <= 40 * MS);
    assert_eq!((s.run_to(40 * MS - 1), s.run_to(40 * MS)), (0, 1));
    assert_eq!((s.run(DAY), log.count()), (0, 1));
}

/// Of timers at 200 and 250 either is pulled to 100: that one then, the other on its own time.
#[test]
fn tokio_23() {
    for pulled in [0, 1] {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        let ends = [200, 250];
        let timers = ends.map(|at| s.start(at * MS, log));
        assert_eq!(s.reset(timers[pulled], 100 * MS), SW_OK);
        assert!(s.next() <= 100 * MS);
        assert_eq!((s.run_to(100 * MS - 1), s.run_to(100 * MS)), (0, 1));
        let other = ends[1 - pulled] * MS;
        assert_eq!((s.run_to(other - 1), s.run_to(other)), (0, 1));
        assert_eq!(log.timers(), [timers[pulled], timers[1 - pulled]]);
        assert_eq!(s.run(DAY), 0);
    }
}

/// Of timers at 200 and 250 the first is pushed to 300: 250 comes at 250 all the same.
#[test]
fn tokio_24() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let [first, second] = [200, 250].map(|at| s.start(at * MS, log));
    assert_eq!(s.reset(first, 300 * MS), SW_OK);
    assert_eq!((s.run_to(250 * MS - 1), s.run_to(250 * MS)), (0, 1));
    assert_eq!((s.run_to(300 * MS - 1), s.run_to(300 * MS)), (0, 1));
    assert_eq!(log.timers(), [second, first]);
}

/// Pushed, or pulled, to 120 while the clock is at 80 and the wheel is not: an extra wake-up is
/// allowed, a firing before 120 is not.
#[test]
fn tokio_27() {
    for start in [100, 200] {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        let timer = s.start(start * MS, log);
        s.advance(80 * MS);
        assert_eq!(s.reset_at(timer, 120 * MS), SW_OK);
        for at in [80, 99, 100, 119] {
            assert_eq!(s.run_to(at * MS), 0, "from {start}, at {at}");
            assert!(s.next() <= 120 * MS);
        }
        assert_eq!((s.run_to(120 * MS), s.run(DAY)), (1, 0));
    }
}

/// A one-shot that has fired is over: ours does not arm it again.
#[test]
fn tokio_46() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timer = s.start(MS, log);
    assert_eq!(s.run(MS), 1);
    assert_eq!((s.reset(timer, MS), s.reset_at(timer, HOUR)), (SW_NOT_FOUND, SW_NOT_FOUND));
    assert_eq!((s.run(DAY), log.count()), (0, 1));
}

/// Expiries of the old programme are gone after a reset: events that wait in a queue.
#[test]
fn lnx_03() {
    let s = Setup::manual(MS).start();
    let queue = s.queue();
    let timer = s.timer().delay(100 * MS).period(100 * MS).queue(queue).start();
    for _ in 0..10 {
        s.run(100 * MS);
    }
    assert_eq!(s.reset(timer, 10 * SEC), SW_OK);
    assert!(queue.poll(8).is_empty() && !queue.readable());
    assert_eq!((s.run(10 * SEC - 1), s.run(1)), (0, 1));
    let expiry = queue.poll(8)[0].0;
    assert_eq!((expiry.deadline_ns, expiry.missed), (11 * SEC, 0), "a new grid");
}

/// The same when a callback holds the shard up meanwhile.
#[test]
fn lnx_03_blocked() {
    let s = Setup::threaded(1).start();
    let log = Log::new();
    let go = hold_up(s.door());
    let timer = s.start_every(20 * MS, log);
    sleep_ms(200);
    assert_eq!(s.reset(timer, HOUR), SW_OK);
    go.open();
    sleep_ms(100);
    assert_eq!(log.count(), 0);
    assert!(s.remaining(timer).unwrap() > HOUR - 30 * SEC);
}

/// A watchdog of 100 ms, reset every 50 ms ten times: silent until the resets end, then it fires
/// on its period. (Turning a one-shot into a periodic timer is not ours.)
#[test]
fn uv_14() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let watchdog = s.start_every(100 * MS, log);
    let (door, kicks) = (s.door(), AtomicU32::new(0));
    let kick = move |expiry: &sw_expiry| {
        assert_eq!(door.reset(watchdog, 100 * MS), SW_OK);
        if kicks.fetch_add(1, Ordering::SeqCst) == 9 {
            assert_eq!(door.cancel(expiry.timer), SW_OK);
        }
    };
    s.timer().delay(50 * MS).period(50 * MS).run(kick).start();
    while s.now() < 810 * MS {
        s.run(10 * MS);
    }
    assert_eq!(log.deadlines(), [600 * MS, 700 * MS, 800 * MS]);
    assert!(unknown(s.reset(SW_TIMER_NONE, MS)), "a timer that was never started");
}

/// Timers whose deadlines are moved in place, a quarter of them every 727 ticks: each comes on the
/// tick of its last move, none is left.
fn double_updates(timers: usize, rounds: u32) {
    let mut rng = Rng::new(7);
    let cells = cells(timers);
    let s = Setup::manual(MS).start();
    s.run(7577 * MS);
    let mut handles = Vec::new();
    let mut deadlines = Vec::new();
    for cell in &cells {
        let delay = rng.between(1, (1 << 17) - 1) * MS;
        handles.push(cell.start(s.door(), delay));
        deadlines.push(s.now() + delay);
    }
    for _ in 0..rounds {
        s.run(727 * MS);
        for at in 0..timers {
            let live = deadlines[at] > s.now();
            assert_eq!(cells[at].ran(), u32::from(!live));
            if live && rng.one_in(4) {
                let delay = rng.between(1, (1 << 17) - 1) * MS;
                assert_eq!(s.reset(handles[at], delay), SW_OK);
                deadlines[at] = s.now() + delay;
            }
        }
    }
    drive(s.door());
    assert_eq!(s.pending(), 0);
    for (cell, deadline) in cells.iter().zip(deadlines) {
        assert_eq!((cell.ran(), cell.deadline()), (1, deadline));
        assert!(cell.now() < deadline + 727 * MS);
    }
}

/// In-place moves at a small size.
#[test]
fn vpp_07() {
    double_updates(5_000, 100);
}

/// In-place moves at the peer's size.
#[test]
#[ignore = "long: run with --ignored in release"]
fn vpp_07_full() {
    double_updates(100_000, 1000);
}

/// From a quarter of an hour to two hours: another bucket, one firing, then nothing is left.
#[test]
fn caff_17() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timer = s.start(HOUR / 4, log);
    assert_eq!(s.reset(timer, 2 * HOUR), SW_OK);
    assert_eq!((s.run(2 * HOUR - MS), s.run(DAY)), (0, 1));
    assert_eq!((s.pending(), s.next(), log.count()), (0, SW_NEVER, 1));
}

/// The earliest of several is pushed out: the next wake-up moves, or is harmless and arms itself
/// again.
#[test]
fn msquic_01() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let [first, second, third] = [10, 20, 30].map(|at| s.start(at * MS, log));
    assert_eq!(s.poll(), 0);
    assert_eq!(s.reset_at(first, 40 * MS), SW_OK);
    assert!(s.next() <= 20 * MS);
    let idle = drive(s.door());
    assert!(idle <= 3 * 11, "{idle} wake-ups for nothing");
    assert_eq!(log.timers(), [second, third, first]);
    assert!(log.fires().iter().all(|fire| fire.now == fire.deadline));
}

/// A hundred periodic timers of two periods, moved between them in any way: each comes four times
/// and then removes itself; a service that ends with others armed ends cleanly.
#[test]
fn evt_05() {
    let s = Setup::manual(MS).start();
    let mut rng = Rng::new(5);
    let logs: Vec<Log> = (0..100).map(|_| Log::new()).collect();
    let mut expect = Vec::new();
    for (nth, log) in logs.iter().enumerate() {
        let period = if nth % 2 == 0 { 100 * MS } else { 200 * MS };
        let (door, log) = (s.door(), *log);
        let recorder = move |expiry: &sw_expiry| {
            // SAFETY: a log's own callback with a log's context.
            unsafe { Log::callback(log.ctx(), expiry) };
            if log.count() == 4 {
                assert_eq!(door.cancel(expiry.timer), SW_OK);
            }
        };
        let timer = s.timer().delay(period).period(period).run(recorder).start();
        let first = match nth % 4 {
            0 | 1 => period,
            2 => 200 * MS,
            _ => rng.between(1, 300) * MS,
        };
        if first != period {
            assert_eq!(s.reset(timer, first), SW_OK);
        }
        expect.push([0, 1, 2, 3].map(|turn| first + turn * period));
    }
    while s.now() < 2 * SEC {
        s.run(MS);
    }
    for (log, expect) in logs.iter().zip(expect) {
        assert_eq!(log.deadlines(), expect);
        assert!(log.fires().iter().all(|fire| fire.now == fire.deadline && fire.missed == 0));
    }
    assert_eq!(s.pending(), 0);
    for nth in 1..10 {
        s.timer().delay(nth * 100 * MS).period(100 * MS).log(Log::new()).start();
    }
}

/// Moves do not change how many timers are live; cancels bring it to 0.
#[test]
fn kafka_03() {
    let s = Setup::manual(MS).start();
    let timers: Vec<_> = (1..=10).map(|at| s.start(at * MS, Log::new())).collect();
    for (moved, delay) in [(&timers[..4], 100 * MS), (&timers[4..], 5000 * MS)] {
        for &timer in moved {
            assert_eq!(s.reset(timer, delay), SW_OK);
            assert_eq!(s.pending(), 10);
        }
        assert_eq!((s.run(0), s.pending()), (0, 10));
    }
    for (left, timer) in (0..10).rev().zip(timers) {
        assert_eq!((s.cancel(timer), s.pending()), (SW_OK, left));
    }
    let stats = s.stats();
    assert_eq!((stats.started, stats.cancelled, stats.high_water), (10, 10, 10));
}
