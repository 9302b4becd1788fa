//! E. Time jumps, coarse polling, clock backwards, clock wrap.

use crate::kit::*;
use crate::support::*;

/// How many of the deadlines are due at `now` by the contract's rule (T1, T3).
fn due_count(deadlines: &[u64], now: u64, tick: u64) -> usize {
    let is_due = |&&deadline: &&u64| deadline != SW_NEVER && deadline.div_ceil(tick) <= now / tick;
    deadlines.iter().filter(is_due).count()
}

/// +25 s, +90 s, +240 s and one advance of 10 s, 3 min or 10 min: 0, 2, 3 fire, wherever the
/// clock started. At the very end of time the sums saturate and never come due.
#[test]
fn caff_01() {
    let mut rng = Rng::new(1);
    let tick = MS;
    let span = 64 * tick;
    let mut origins = vec![0, 1, span - 1, span, 0x00ff_ffff_fc00_0000, 1 << 63, (1 << 63) - 1];
    for bits in [31, 32, 36, 42] {
        origins.extend([(1 << bits) * tick - tick, (1 << bits) * tick - 1, (1 << bits) * tick]);
    }
    for level in 1..=7 {
        let edge = 64_u64.pow(level) * tick;
        origins.extend([edge - tick, edge - 1, edge, edge + 1, edge - 25 * SEC % edge]);
    }
    origins.extend([SW_NEVER - 241 * SEC, SW_NEVER - 91 * SEC, SW_NEVER - span + 1, SW_NEVER]);
    origins.extend((0..20).map(|_| rng.next()));
    for origin in origins {
        for (by, expect) in [(10 * SEC, 0), (180 * SEC, 2), (600 * SEC, 3)] {
            for polled_first in [false, true] {
                let s = Setup::manual(tick).start();
                s.advance(origin);
                if polled_first {
                    assert_eq!(s.poll(), 0);
                }
                let log = Log::new();
                let delays = [25 * SEC, 90 * SEC, 240 * SEC];
                delays.iter().for_each(|&delay| _ = s.start(delay, log));
                let deadlines = delays.map(|delay| origin.saturating_add(delay));
                let model = due_count(&deadlines, origin.saturating_add(by), tick);
                assert!(model == expect || origin > SW_NEVER - 601 * SEC);
                assert_eq!(s.run(by), model, "origin {origin}, by {by}");
                assert!(log.deadlines().iter().all(|&deadline| deadline <= s.now()));
            }
        }
    }
}

/// One jump of a year, and one to the end of time: a near timer fires once.
#[test]
fn caff_03() {
    for jump in [365 * DAY, 1 << 62, u64::MAX] {
        for tick in [US, MS, HOUR] {
            let s = Setup::manual(tick).start();
            let log = Log::new();
            s.start(13 * tick, log);
            s.start(70 * tick, log);
            assert_eq!((s.run(jump), s.poll(), log.count()), (2, 0, 2));
        }
    }
}

/// No step takes the clock back: an advance by "minus one" goes forward and clips at the end.
#[test]
fn kafka_09() {
    let s = Setup::manual(MS).start();
    s.run(5 * SEC);
    let timer = s.start(10 * MS, Log::new());
    let never = s.start(u64::MAX, Log::new());
    assert_eq!(s.run(0), 0);
    assert_eq!((s.now(), s.remaining(timer)), (5 * SEC, Ok(10 * MS)));
    s.advance(u64::MAX);
    assert_eq!(s.now(), SW_NEVER);
    assert_eq!(s.poll(), 1);
    s.advance(u64::MAX);
    assert_eq!((s.now(), s.poll()), (SW_NEVER, 0));
    assert_eq!(s.cancel(never), SW_OK);
}

/// A shard whose first poll comes long after the deadline has lost nothing.
#[test]
fn agrona_09() {
    for late in [15, 32, 64, 100, 4096, 5000] {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        s.start(15 * MS, log);
        assert_eq!(s.run(late * MS), 1, "first poll at tick {late}");
        assert_eq!((s.poll(), s.poll(), log.last().now), (0, 0, late * MS));
    }
}

/// Polls whose period is no multiple of the tick do not skip a timer.
#[test]
fn agrona_21() {
    for step in [1800, 1300, 700, 2100, 3999] {
        let s = Setup::manual(2 * SEC).start();
        let log = Log::new();
        s.start(11 * SEC, log);
        let mut fired = 0;
        while s.now() < 40 * SEC {
            let before = s.now();
            let now_fired = s.run(step * MS);
            let reached = before < 12 * SEC && s.now() >= 12 * SEC;
            assert_eq!(now_fired, usize::from(reached), "step {step} ms, at {}", s.now());
            fired += now_fired;
        }
        assert_eq!((fired, log.count()), (1, 1));
    }
}

/// One turn that covers four and a half ticks delivers four ticks' timers; half a tick is left.
#[test]
fn akka_12() {
    let tick = 100 * MS;
    let s = Setup::manual(tick).start();
    let log = Log::new();
    for half in [1, 3, 5, 7, 9] {
        s.start(half * tick / 2, log);
    }
    assert_eq!(s.run(9 * tick / 2), 4);
    assert_eq!(log.deadlines(), [1, 3, 5, 7].map(|half| half * tick / 2));
    assert_eq!(s.next(), 5 * tick, "the last one's tick, half a tick from here");
    assert_eq!(s.run(tick / 2), 1);
}

/// A timer that was started while nobody polled counts from its start, not from the next turn.
#[test]
fn akka_13() {
    let tick = 100 * MS;
    let s = Setup::manual(tick).start();
    s.run(10 * tick);
    s.advance(2 * tick);
    let log = Log::new();
    s.start(3 * tick, log);
    s.advance(tick);
    s.start(3 * tick, log);
    assert_eq!(s.run(4 * tick), 2, "both are due at this first turn");
    assert_eq!(log.deadlines(), [15 * tick, 16 * tick]);
    s.start(3 * tick, log);
    assert_eq!((s.run(2 * tick), s.run(tick)), (0, 1));
}
