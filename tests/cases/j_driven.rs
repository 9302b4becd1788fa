//! J. Driven polling: limits, the next deadline, wake-ups.

use crate::kit::*;
use crate::support::*;
use std::collections::BTreeMap;

/// A random population: before each step `next` is asked. Nothing comes before its answer, and
/// what comes in a step comes by the answer.
#[test]
fn wahern_08() {
    let mut rng = Rng::new(8);
    for round in 0..20 {
        let tick = [US, MS][round % 2];
        let s = Setup::manual(tick).start();
        let log = Log::new();
        let mut model = BTreeMap::<u64, usize>::new();
        for _ in 0..2000 {
            if rng.one_in(2) {
                let bits = rng.between(1, 36);
                let delay = rng.below(1 << bits) * (tick / 10);
                s.start(delay, log);
                // Armed at its deadline: due at once. Else at the next tick.
                let at = if delay == 0 { s.now() } else { due(s.now() + delay, tick) };
                *model.entry(at).or_default() += 1;
            }
            let next = s.next();
            if let Some((&earliest, _)) = model.first_key_value() {
                assert!(next <= earliest, "Q1: {next} is after {earliest}");
            }
            let bits = rng.between(1, 30);
            s.advance(rng.below(1 << bits) * (tick / 10));
            let later = model.split_off(&(s.now() + 1));
            let expect: usize = std::mem::replace(&mut model, later).values().sum();
            assert_eq!(s.poll(), expect);
            assert!(expect == 0 || next <= s.now());
        }
    }
}

/// Due timers that wait to be taken one by one: `next` is not after now exactly as long as one
/// is left.
#[test]
fn wahern_09() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    for at in [1, 1, 2, 63, 64, 64, 65, 100] {
        s.start(at * MS, log);
    }
    s.start(HOUR, log);
    s.advance(100 * MS);
    for _ in 0..8 {
        assert!(s.next() <= s.now());
        assert!(s.readable());
        assert_eq!(s.poll_budget(1), 1);
    }
    assert_eq!(s.poll_budget(1), 0);
    assert!((s.now() + 1..=HOUR).contains(&s.next()));
    assert!(!s.readable());
}

/// 2N + 1 due timers and a budget of N: N, N and 1, and each of the first two turns says that it
/// has not finished.
#[test]
fn caff_10() {
    for n in [1, 10, 100, 3000] {
        for apart in [0, 1] {
            let s = Setup::manual(MS).start();
            let log = Log::new();
            for nth in 0..2 * n + 1 {
                s.start((1 + nth * apart) * MS, log);
            }
            s.advance(2 * (n + 1) * MS);
            let n = n as usize;
            assert_eq!(s.poll_budget(n), n);
            assert!(s.next() <= s.now(), "not finished");
            assert_eq!(s.poll_budget(n), n);
            assert!(s.next() <= s.now(), "not finished");
            assert_eq!((s.poll_budget(n), s.next()), (1, SW_NEVER));
            let fires = log.fires();
            assert!(fires.is_sorted_by_key(|fire| fire.deadline), "T6");
            assert!(fires.iter().all(|fire| fire.now == s.now()));
        }
    }
}

/// Three timers of one tick out of two levels, taken one a poll; 512 more started while that tick
/// is half done come on their own ticks.
#[test]
fn ratas_11() {
    for tick_at in [300, 128, 4096] {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        s.start(tick_at * MS, log);
        s.start(tick_at * MS, log);
        s.run_to((tick_at - 10) * MS);
        s.start(10 * MS, log);
        s.advance(10 * MS);
        assert_eq!((s.poll_budget(1), log.count()), (1, 1));
        assert!(s.next() <= s.now());
        let later = Log::new();
        for ticks in 1..=512 {
            s.start(ticks * MS, later);
        }
        assert_eq!((s.poll_budget(1), log.count()), (1, 2));
        assert!(s.next() <= s.now());
        assert_eq!((s.poll_budget(1), log.count()), (1, 3));
        assert_eq!((s.poll_budget(1), later.count()), (0, 0));
        for ticks in 1..=512 {
            assert_eq!(s.run(MS), 1, "tick {ticks}");
        }
        assert_eq!((later.count(), s.next()), (512, SW_NEVER));
    }
}

/// One timer at distances of every level: `next` is after now and not after the timer, and there
/// are no more idle wake-ups than levels on the way.
#[test]
fn caff_13() {
    let spans = (0..=8).flat_map(|level| [1, 2, 63].map(|n| n * 64_u64.pow(level)));
    for ticks in [1000, 14 * 24 * 3600 * 1000].into_iter().chain(spans) {
        for origin in [0, 1, 63, 64, 100, 4095, 123_456_789] {
            let tick = if ticks < 1 << 40 { MS } else { US };
            let s = Setup::manual(tick).start();
            s.run(origin * tick);
            s.start(ticks * tick, Log::new());
            let next = s.next();
            assert!((s.now() + 1..=s.now() + ticks * tick).contains(&next), "{ticks}: {next}");
            let idle = drive(s.door());
            assert!(idle <= 11, "{ticks} ticks from {origin}: {idle} wake-ups for nothing");
            assert_eq!(s.now(), (origin + ticks) * tick);
        }
    }
}

/// A timer of the very next tick, in a coarse bucket, and one a whole turn later that falls into
/// the coarse bucket of now: the near one bounds the answer.
#[test]
fn caff_14() {
    for level in 1..=7 {
        let span = 64_u64.pow(level);
        let s = Setup::manual(US).start();
        s.run((6 * span - 1) * US);
        let (near, far) = (Log::new(), Log::new());
        s.start(64 * span * US, far);
        s.start(US, near);
        assert!(s.next() <= s.now() + US, "level {level}");
        assert_eq!((s.run(US), near.count(), far.count()), (1, 1, 0));
        drive(s.door());
        assert_eq!(far.last().now, (70 * span - 1) * US, "level {level}");
    }
}

/// 15 s and 80 s, then at 45 s one for 95 s that lands in a finer level than the one for 80 s: the
/// coarser level's timer comes first.
#[test]
fn caff_15() {
    for (tick, unit) in [(SEC, SEC), (MS, SEC), (MS, MS), (US, MS)] {
        let s = Setup::manual(tick).start();
        let log = Log::new();
        s.start(15 * unit, log);
        s.start(80 * unit, log);
        s.run_to(45 * unit);
        s.start_at(95 * unit, log);
        assert!((s.now() + 1..=80 * unit).contains(&s.next()));
        drive(s.door());
        assert!(log.fires().iter().skip(1).all(|fire| fire.now == fire.deadline));
        assert_eq!(log.deadlines(), [15 * unit, 80 * unit, 95 * unit]);
    }
}

/// None, due, and pending are three different answers.
#[test]
fn dpdk_13() {
    let s = Setup::manual(MS).start();
    assert_eq!(s.next(), SW_NEVER);
    let timer = s.start(0, Log::new());
    assert!(s.next() <= s.now());
    s.poll();
    assert_eq!(s.next(), SW_NEVER);
    s.start(7 * MS, Log::new());
    assert!((s.now() + 1..=7 * MS).contains(&s.next()));
    assert_eq!(s.cancel(timer), SW_NOT_FOUND);
    s.run(7 * MS);
    s.start_at(u64::MAX, Log::new());
    s.poll();
    assert!(s.next() > s.now(), "it never comes due, and nothing else is there");
}

/// A far timer has been polled; a nearer one pulls the wake-up forward, and 99 % of the way is
/// silent.
#[test]
fn tokio_21() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    s.start(10_000 * MS, log);
    assert_eq!(s.poll(), 0);
    s.start(600 * MS, log);
    assert!(s.next() <= 600 * MS);
    assert_eq!((s.run_to(594 * MS), s.run_to(600 * MS)), (0, 1));
    s.start(200 * MS, log);
    assert_eq!(s.poll(), 0);
    s.start(100 * MS, log);
    assert!(s.next() <= 700 * MS);
    assert_eq!((s.run_to(699 * MS), s.run_to(700 * MS), s.run_to(800 * MS)), (0, 1, 1));
    assert_eq!(s.pending(), 1);
}

/// The only timer is cancelled from another thread: nothing is pending, and `next` says so.
#[test]
fn tokio_32() {
    let s = Setup::driven().start();
    let door = s.door();
    for batch in [false, true] {
        let timer = s.start(SEC, Log::new());
        assert_eq!(s.poll(), 0);
        let cancel = move || match batch {
            false => assert_eq!(door.cancel(timer), SW_OK),
            true => assert_eq!(door.cancel_batch(&[timer]), Ok(1)),
        };
        std::thread::spawn(cancel).join().unwrap();
        assert_eq!((s.pending(), s.next()), (0, SW_NEVER));
        assert_eq!((s.poll(), s.next()), (0, SW_NEVER));
    }
}

/// While a shard sleeps until an hour from now, another thread starts and cancels timers that are
/// later still, none of them a reason to wake: what waits for the shard stays bounded.
#[test]
fn brpc_08() {
    let s = Setup::threaded(1).max_timers(1 << 16).start();
    s.start(HOUR, Log::new());
    sleep_ms(50);
    let log = Log::counting();
    let mut sizes = Vec::new();
    for _ in 0..200 {
        let timers: Vec<_> = (0..2000).map(|nth| s.start(2 * HOUR + nth * MS, log)).collect();
        assert_eq!(s.cancel_batch(&timers), Ok(2000));
        sizes.push(s.stats().memory_bytes);
    }
    let (early, late) = (sizes[20], sizes[199]);
    assert!(late < early + (4 << 20), "C3, T7: it grew from {early} to {late}");
    let before = s.stats().wakeups;
    let timers: Vec<_> = (0..2000).map(|nth| s.start(2 * HOUR + nth * MS, log)).collect();
    let near = timers.iter().map(|&timer| s.reset(timer, 200 * MS)).collect::<Vec<_>>();
    assert!(near.iter().all(|&status| status == SW_OK));
    eventually("all of them come, pulled in", || log.count() == 2000);
    assert!(s.stats().wakeups > before);
}

/// Timers of two ticks in one jump: each is told its own deadline, all of the first tick come
/// before those of the second. `now` is the turn's, for both.
#[test]
fn ratas_12() {
    for at in [5, 63, 64, 4095, 4096] {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        for nth in 0..6 {
            s.start((at + nth % 2) * MS, log);
        }
        assert_eq!(s.run((at + 10) * MS), 6);
        assert_eq!(log.deadlines(), [at, at, at, at + 1, at + 1, at + 1].map(|at| at * MS));
        assert!(log.fires().iter().all(|fire| fire.now == (at + 10) * MS));
    }
}
