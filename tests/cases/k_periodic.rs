//! K. Periodic timers: phase, drift, catching up, cancel.

use crate::kit::*;
use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Periodic timers on their grids under steps of any size. After each step every timer has been
/// called at most once, with the latest grid point that is due and the number of those skipped;
/// with `burst` once for each.
fn grids(periods: &[u64], origin: u64, steps: &[u64], until: u64, burst: bool) {
    let s = Setup::manual(US).start();
    s.run(origin * US);
    let flags = if burst { SW_TIMER_BURST } else { 0 };
    let logs: Vec<Log> = periods.iter().map(|_| Log::new()).collect();
    let mut timers = Vec::new();
    for (period, log) in periods.iter().zip(&logs) {
        let period = period * US;
        timers.push(s.timer().delay(period).period(period).flags(flags).log(*log).start());
    }
    let mut turn = 0;
    while s.now() < (origin + until) * US {
        let before = (s.now() / US) - origin;
        s.run(steps[turn % steps.len()] * US);
        turn += 1;
        let now = s.now() / US - origin;
        for ((period, log), timer) in periods.iter().zip(&logs).zip(&timers) {
            let crossed = now / period - before / period;
            let fires = log.take();
            if burst {
                let grid = (before / period + 1..=now / period).map(|n| (origin + n * period) * US);
                assert!(fires.iter().map(|fire| fire.deadline).eq(grid));
            } else if crossed == 0 {
                assert!(fires.is_empty());
            } else {
                assert_eq!(fires.len(), 1, "period {period} at {now}");
                assert_eq!(fires[0].deadline, (origin + now / period * period) * US);
                assert_eq!(fires[0].missed, crossed - 1);
            }
            let left = s.remaining(*timer).unwrap();
            assert_eq!(left, (period - now % period) * US, "the grid is the original one");
        }
    }
}

/// Periods of 1 to 50,000 ticks, steps smaller than most of them.
#[test]
fn wahern_13() {
    for burst in [false, true] {
        grids(&[1, 7, 191, 1337, 12_345, 50_000], 0, &[1, 1, 2, 3, 1, 5], 20_000, burst);
        grids(&[1, 7, 191, 1337, 12_345, 50_000], 77, &[40, 63, 64, 65, 1], 200_000, burst);
    }
}

/// Multiples of 5 from an origin that is none: expiries that coincide are all delivered.
#[test]
fn wahern_14() {
    for burst in [false, true] {
        grids(&[5, 10, 15, 20, 50, 100, 320], 49, &[1], 2_000, burst);
        grids(&[5, 10, 15, 20, 50, 100, 320], 49, &[5, 10, 3, 2], 5_000, burst);
    }
}

/// Prime periods and steps that are too large for them: what is missed is skipped, not made up
/// for, and the grid stays.
#[test]
fn wahern_15() {
    let primes = [2, 3, 5, 7, 11, 13, 31, 61, 67, 127, 257];
    grids(&primes, 3, &[16, 17, 100, 999, 64, 4096, 31], 100_000, false);
    grids(&primes, 3, &[1 << 20, 1 << 30, (1 << 40) + 7, 77], 1 << 42, false);
    grids(&primes, 3, &[16, 17, 100, 999, 64, 4096, 31], 20_000, true);
}

/// A period of 9 seen at 12 and at 40: one call each time. Ours stays on its grid: 9, then 36 with
/// two missed, and 45 next.
#[test]
fn folly_22b() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timer = s.start_every(9 * MS, log);
    assert_eq!((s.run_to(12 * MS), s.run_to(40 * MS)), (1, 1));
    let fires = log.fires();
    assert_eq!((fires[0].deadline, fires[0].missed), (9 * MS, 0));
    assert_eq!((fires[1].deadline, fires[1].missed), (36 * MS, 2));
    assert_eq!(s.remaining(timer), Ok(5 * MS));
    assert_eq!((s.run_to(45 * MS - 1), s.run_to(45 * MS)), (0, 1));
}

/// Ours refuses a period of 0; the shortest, one tick, runs once a turn until its hundredth
/// callback stops it.
#[test]
fn folly_24() {
    let s = Setup::manual(MS).start();
    let mut timer = SW_TIMER_NONE;
    // SAFETY: the service is alive, the log too.
    let status = unsafe {
        let ctx = Log::new().ctx();
        sw_timer_start_every(s.raw(), 0, Some(Log::callback), ctx, &mut timer)
    };
    assert_eq!((status, timer, s.pending()), (SW_INVALID, SW_TIMER_NONE, 0));
    let (door, count) = (s.door(), Arc::new(AtomicU64::new(0)));
    let calls = count.clone();
    let call = move |expiry: &sw_expiry| {
        if calls.fetch_add(1, Ordering::SeqCst) == 99 {
            assert_eq!(door.cancel(expiry.timer), SW_OK, "C6");
        }
    };
    s.timer().delay(0).period(MS).run(call).start();
    for turn in 0..100 {
        assert_eq!(s.poll(), 1, "turn {turn}");
        s.advance(MS);
    }
    assert_eq!((s.poll(), s.run(DAY), s.pending()), (0, 0, 0));
    assert_eq!(count.load(Ordering::SeqCst), 100);
}

/// Callbacks that take 2, 1 and 0 with a period of one half. Ours: the latest grid point that is
/// due, so right after a callback that took four periods comes one with three missed.
#[test]
fn twi_05() {
    let half = 500 * MS;
    let s = Setup::manual(MS).start();
    let (door, calls) = (s.door(), Arc::new(Mutex::new(Vec::new())));
    let seen = calls.clone();
    let call = move |expiry: &sw_expiry| {
        let mut seen = seen.lock().unwrap();
        seen.push((expiry.deadline_ns, expiry.missed));
        door.advance([2 * SEC, SEC, 0, 0][seen.len() - 1]);
    };
    s.timer().delay(0).period(half).run(call).start();
    assert_eq!((s.poll(), s.now()), (1, 2 * SEC));
    assert_eq!((s.poll(), s.now()), (1, 3 * SEC));
    assert_eq!((s.poll(), s.poll()), (1, 0));
    assert_eq!((s.run(half - 1), s.run(1)), (0, 1));
    let expect = [(0, 0), (2 * SEC, 3), (3 * SEC, 1), (3 * SEC + half, 0)];
    assert_eq!(*calls.lock().unwrap(), expect);
}

/// Advances of 2, 1 and 0 with a period of one half: calls at 0, 2 and 3; no time, no call.
#[test]
fn twi_06() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    s.timer().delay(0).period(500 * MS).log(log).start();
    assert_eq!((s.poll(), s.run(2 * SEC), s.run(SEC), s.run(0)), (1, 1, 1, 0));
    let seen: Vec<_> = log.fires().iter().map(|fire| (fire.deadline, fire.missed)).collect();
    assert_eq!(seen, [(0, 0), (2 * SEC, 3), (3 * SEC, 1)]);
}

/// Ten milliseconds' period on a running service: the sixth call ends the host's loop.
#[test]
fn evt_02() {
    let s = Setup::threaded(1).start();
    let (count, done) = (Arc::new(AtomicU64::new(0)), Arc::new(Gate::new()));
    let (calls, open) = (count.clone(), done.clone());
    let call = move |_: &sw_expiry| {
        if calls.fetch_add(1, Ordering::SeqCst) == 5 {
            open.open();
        }
    };
    let begin = mono();
    s.timer().delay(10 * MS).period(10 * MS).run(call).start();
    done.wait();
    assert!(mono() - begin >= 60 * MS);
    assert_eq!(s.stop(), SW_OK);
    assert!(count.load(Ordering::SeqCst) >= 6);
}

/// First after 100, then every 100; it stops itself in the fifth call: exactly five, the handle
/// is good inside the callback, and the drop runs once.
#[test]
fn uv_01b() {
    let s = Setup::manual(MS).start();
    let (door, count, drops) = (s.door(), Arc::new(AtomicU64::new(0)), Log::new());
    let calls = count.clone();
    let call = move |expiry: &sw_expiry| {
        assert_ne!(door.remaining(expiry.timer), Err(SW_NOT_FOUND));
        if calls.fetch_add(1, Ordering::SeqCst) == 4 {
            assert_eq!(door.cancel(expiry.timer), SW_OK, "C6");
        }
    };
    // SAFETY: a log's own drop with a log's context.
    let ended = move || unsafe { Log::drop(drops.ctx()) };
    s.timer().delay(100 * MS).period(100 * MS).run(call).ended(ended).start();
    for _ in 0..100 {
        s.run(10 * MS);
    }
    assert_eq!((count.load(Ordering::SeqCst), drops.dropped()), (5, 1));
}

/// Eight cycles: a fixed rate keeps its rate whatever the callback takes, a fixed delay counts
/// from the end of each.
#[test]
fn jdk_01() {
    let s = Setup::threaded(1).start();
    for flags in [0, SW_TIMER_FIXED_DELAY] {
        let spans = Arc::new(Mutex::new(Vec::new()));
        let seen = spans.clone();
        let call = move |_: &sw_expiry| {
            let begin = mono();
            sleep_ms(20);
            seen.lock().unwrap().push((begin, mono()));
        };
        let period = 50 * MS;
        let begin = mono();
        let timer = s.timer().delay(period).period(period).flags(flags).run(call).start();
        eventually("eight cycles", || spans.lock().unwrap().len() >= 8);
        assert_ne!(s.cancel_wait(timer), SW_NOT_FOUND);
        let spans = spans.lock().unwrap();
        for (nth, pair) in (1..).zip(spans.windows(2)) {
            assert!(pair[1].0 >= begin + (nth + 1) * period, "never before the grid");
            if flags != 0 {
                assert!(pair[1].0 >= pair[0].1 + period, "counted from the end");
            }
        }
        if flags == 0 {
            let total = spans[7].0 - begin;
            assert!(total < 8 * period + SEC, "the rate holds: {total}");
        }
    }
}

/// A period of 50 ms whose first callback takes 300: ours never overlaps itself, and the next call
/// says what was missed.
#[test]
fn net_06() {
    let s = Setup::threaded(2).start();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let (seen, inside) = (calls.clone(), AtomicBool::new(false));
    let call = move |expiry: &sw_expiry| {
        assert!(!inside.swap(true, Ordering::SeqCst), "F2: overlaps itself");
        let first = seen.lock().unwrap().is_empty();
        seen.lock().unwrap().push(*expiry);
        if first {
            sleep_ms(300);
        }
        inside.store(false, Ordering::SeqCst);
    };
    s.timer().delay(50 * MS).period(50 * MS).run(call).start();
    eventually("a few calls", || calls.lock().unwrap().len() >= 4);
    let calls = calls.lock().unwrap();
    assert!(calls[1].missed >= 4, "{:?}", calls[1]);
    for pair in calls.windows(2) {
        let gap = pair[1].deadline_ns - pair[0].deadline_ns;
        assert_eq!(gap, (pair[1].missed + 1) * 50 * MS, "F5: on the grid, all accounted for");
    }
}

/// A period of 100 ms, nothing delivered for a second: one delivery that says nine were missed.
#[test]
fn lnx_05() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    s.start_every(100 * MS, log);
    assert_eq!((s.run(SEC), log.count(), log.last().missed), (1, 1, 9));
    // The same where an event waits in a queue.
    let queue = s.queue();
    s.timer().delay(100 * MS).period(100 * MS).queue(queue).start();
    for _ in 0..10 {
        s.run(100 * MS);
    }
    let events = queue.poll(8);
    assert_eq!((events.len(), events[0].0.missed), (1, 9));
    assert!(queue.poll(8).is_empty());
}

/// The same where another callback holds the shard up, in real time.
#[test]
fn lnx_05_real() {
    let s = Setup::threaded(1).start();
    let go = hold_up(s.door());
    let log = Log::new();
    s.start_every(50 * MS, log);
    sleep_ms(530);
    go.open();
    eventually("the first delivery", || log.count() >= 1);
    assert!(log.fires()[0].missed >= 9, "{:?}", log.fires()[0]);
}

/// Three periods in one advance: ours is one call with two missed, or with `BURST` one for each.
/// Two timers of periods 1 and 3 over 10: ten calls and three.
#[test]
fn clk_02() {
    let s = Setup::manual(MS).start();
    let (plain, burst) = (Log::new(), Log::new());
    s.start_every(10 * MS, plain);
    s.timer().delay(10 * MS).period(10 * MS).flags(SW_TIMER_BURST).log(burst).start();
    assert_eq!(s.run(30 * MS), 4);
    assert_eq!((plain.count(), plain.missed(), plain.last().deadline), (1, 2, 30 * MS));
    assert_eq!(burst.deadlines(), [10 * MS, 20 * MS, 30 * MS]);
    assert_eq!(burst.missed(), 0);
    let s = Setup::manual(MS).start();
    let logs = [1, 3].map(|period| {
        let log = Log::new();
        let period = period * MS;
        s.timer().delay(period).period(period).flags(SW_TIMER_BURST).log(log).start();
        log
    });
    assert_eq!(s.run(10 * MS), 13);
    assert_eq!(logs.map(Log::count), [10, 3]);
}

/// A periodic timer, the only one, cancels itself in its callback; a one-shot that is started
/// afterwards still wakes the shard.
#[test]
fn sea_03() {
    let s = Setup::threaded(1).start();
    for _ in 0..10 {
        let (door, done) = (s.door(), Arc::new(Gate::new()));
        let open = done.clone();
        let call = move |expiry: &sw_expiry| {
            assert_eq!(door.cancel(expiry.timer), SW_OK);
            open.open();
        };
        s.timer().delay(5 * MS).period(5 * MS).run(call).start();
        done.wait();
        assert!(measure(s.door(), 10 * MS) < 2 * SEC);
    }
}

/// The first expiry after half a period, two hundred of them, cancel, and all again in the same
/// single slot; a second timer does not fit beside it.
#[test]
fn odp_06() {
    let s = Setup::threaded(1).max_timers(1).start();
    let period = 4 * MS;
    for first in [period / 2, period, 0] {
        let log = Log::new();
        let begin = s.now();
        let timer = s.timer().delay(first).period(period).log(log).start();
        let refused = Log::new();
        assert_eq!(s.timer().delay(first).log(refused).try_start(), Err(SW_FULL));
        assert_eq!(refused.dropped(), 1, "F9: also when refused");
        eventually("200 periods", || log.count() + log.missed() >= 200);
        assert_ne!(s.cancel_wait(timer), SW_NOT_FOUND);
        assert_eq!((log.dropped(), s.pending()), (1, 0));
        let fires = log.fires();
        let origin = fires[0].deadline - fires[0].missed * period;
        assert!((begin + first..begin + first + SEC).contains(&origin));
        assert!(fires.iter().all(|fire| (fire.deadline - origin).is_multiple_of(period)));
        assert!(fires.is_sorted_by(|a, b| a.deadline < b.deadline));
    }
}
