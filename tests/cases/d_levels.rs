//! D. Level boundaries, cascading, wheel wrap. Peers' wheels have 256 or 512 buckets a level; ours
//! have 64: every size is taken.

use crate::kit::*;
use crate::support::*;

const SIZES: [u64; 5] = [8, 64, 256, 512, 4096];

/// Silent until one tick before, then it fires.
#[track_caller]
fn fires_after(s: &Svc, ticks: u64, tick: u64) {
    let log = Log::new();
    s.start(ticks * tick, log);
    assert_eq!(s.run((ticks - 1) * tick), 0, "{ticks} ticks: one before");
    assert_eq!(s.run(tick), 1, "{ticks} ticks");
    assert_eq!(log.count(), 1);
}

/// Delays of one level and a bit, from bucket 0 and from another: on their tick and not before.
#[test]
fn ratas_06() {
    for size in SIZES {
        let s = Setup::manual(US).start();
        for ticks in [size, size + 1, 4 * size - 1] {
            fires_after(&s, ticks, US);
        }
        let at = s.now() / US;
        s.run((at.next_multiple_of(size) - at) * US);
        fires_after(&s, 4 * size + 5, US);
        assert_eq!(s.now() / US % size, 5 % size);
        fires_after(&s, 4 * size + 5, US);
    }
}

/// A timer fires once, not again when its bucket comes round.
#[test]
fn ratas_01() {
    for size in SIZES {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        s.start(5 * MS, log);
        assert_eq!(s.run(5 * MS), 1);
        for _ in 0..2 * size {
            assert_eq!(s.run(MS), 0);
        }
        assert_eq!(log.count(), 1);
    }
}

/// Ten thousand delays of every magnitude: not one tick before, always on the tick.
#[test]
fn ratas_10() {
    let mut rng = Rng::new(10);
    let cells = cells(10_000);
    let s = Setup::manual(US).start();
    for cell in &cells {
        let below = 1 << rng.between(0, 19);
        let ticks = 1 + rng.below(below);
        cell.start(s.door(), ticks * US);
        assert_eq!(s.run((ticks - 1) * US), 0, "{ticks} ticks");
        assert_eq!(s.run(US), 1, "{ticks} ticks");
        assert_eq!(cell.ran(), 1);
    }
}

/// A timer on each of 1024 ticks: after each step exactly those up to it are done.
#[test]
fn tokio_04() {
    let cells = cells(1024);
    let s = Setup::manual(MS).start();
    for (at, cell) in cells.iter().enumerate() {
        cell.start(s.door(), at as u64 * MS);
    }
    for step in 0..1024 {
        assert_eq!(s.poll(), 1, "step {step}");
        for (at, cell) in cells.iter().enumerate() {
            assert_eq!(cell.ran(), u32::from(at <= step), "timer {at} at step {step}");
        }
        s.advance(MS);
    }
    assert_eq!((s.poll(), s.pending()), (0, 0));
}

/// A timer at 193 ticks, polled at 62 and twice at 192: nothing; at 193 it fires.
#[test]
fn tokio_05() {
    let s = Setup::manual(MS).start();
    s.start(193 * MS, Log::new());
    assert_eq!((s.run_to(62 * MS), s.run_to(192 * MS), s.poll()), (0, 0, 0));
    assert_eq!((s.run_to(193 * MS), s.poll()), (1, 0));
}

/// Powers of two, tick by tick: one firing on each of them, none between.
fn powers_tick_by_tick(bits: u32) {
    let s = Setup::manual(US).start();
    let log = Log::new();
    for bit in 0..=bits {
        s.start((1 << bit) * US, log);
    }
    for tick in 1..=1_u64 << bits {
        assert_eq!(s.run(US), usize::from(tick.is_power_of_two()), "tick {tick}");
    }
    assert_eq!((log.count(), s.pending()), (u64::from(bits) + 1, 0));
}

/// Powers of two up to 2^19, tick by tick.
#[test]
fn hwt_03() {
    powers_tick_by_tick(19);
}

/// The same up to 2^24.
#[test]
#[ignore = "long: run with --ignored in release"]
fn hwt_03_full() {
    powers_tick_by_tick(24);
}

/// Powers of two to the end of what ticks of a microsecond reach, with a jump to just before each.
#[test]
fn hwt_04() {
    let s = Setup::manual(US).start();
    let log = Log::new();
    for bit in 0..=54 {
        s.start((1 << bit) * US, log);
    }
    for bit in 0..=54 {
        assert_eq!(s.run_to((1 << bit) * US - 1), 0, "before 2^{bit}");
        assert_eq!(s.run(1), 1, "2^{bit}");
        assert_eq!(log.last().deadline, (1 << bit) * US);
    }
    assert_eq!(s.pending(), 0);
}

/// Powers of two, with no other clock than the answers of `next`: none is passed, the last answer
/// is "never".
#[test]
fn hwt_05() {
    let s = Setup::manual(US).start();
    let log = Log::new();
    for bit in 0..=54 {
        s.start((1 << bit) * US, log);
    }
    let idle = drive(s.door());
    assert!(idle <= 11 * 55, "Q1: {idle} wake-ups for nothing");
    let fires = log.fires();
    assert_eq!(fires.len(), 55);
    for (bit, fire) in fires.iter().enumerate() {
        assert_eq!((fire.deadline, fire.now), ((1 << bit) * US, (1 << bit) * US));
    }
}

/// Two levels and three: each once, none early, the nearer one first.
#[test]
fn folly_17() {
    for size in SIZES {
        for delays in [vec![2 * size - size.min(12)], vec![605, 300], vec![605 * size, 300 * size]]
        {
            let s = Setup::manual(US).start();
            let log = Log::new();
            for delay in &delays {
                s.start(delay * US, log);
            }
            let mut in_order = delays.clone();
            in_order.sort_unstable();
            for delay in in_order {
                assert_eq!(s.run_to(delay * US - 1), 0, "{delay} of {delays:?}");
                assert_eq!(s.run_to(delay * US), 1, "{delay} of {delays:?}");
                assert_eq!(log.last().deadline, delay * US);
            }
            assert_eq!((s.pending(), s.run(DAY)), (0, 0));
        }
    }
}

/// A deadline that is bucket 0 of every lower level at once.
#[test]
fn vpp_04() {
    let ours = (2..=9).map(|level| 64_u64.pow(level));
    for ticks in [256 * 256, 512 * 512, 256_u64.pow(3)].into_iter().chain(ours) {
        fires_after(&Setup::manual(US).start(), ticks, US);
    }
}

/// Pairs on both sides of bucket edges, with no other clock than the answers of `next`.
#[test]
fn mec_01() {
    let peer = vec![
        30, 0, 41, 70, 71, 110, 111, 150, 151, 190, 191, 350, 351, 510, 511, 643, 670, 671, 830,
    ];
    let ours: Vec<u64> =
        (1..=5).flat_map(|level| [0, 1].map(|one| 10 * 64_u64.pow(level) + one)).collect();
    for deadlines in [peer, ours] {
        let tick = 10 * US;
        let s = Setup::manual(tick).start();
        let log = Log::new();
        for deadline in &deadlines {
            s.start_at(deadline * US, log);
        }
        let idle = drive(s.door());
        assert!(idle <= 11 * deadlines.len() as u64, "{idle} wake-ups for nothing");
        assert_eq!(log.count(), deadlines.len() as u64);
        for fire in log.fires() {
            assert_eq!(fire.now, due(fire.deadline, tick), "{fire:?}");
        }
    }
}

/// A timer several laps away: not on any earlier pass over its bucket.
#[test]
fn agrona_07() {
    for size in [16, 64, 256, 4096] {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        s.start((4 * size - 1) * MS, log);
        for tick in 1..4 * size - 1 {
            assert_eq!(s.run(MS), 0, "size {size}, tick {tick}");
        }
        assert_eq!((s.run(MS), log.last().deadline), (1, (4 * size - 1) * MS));
    }
}

/// The same bucket in two laps, and two timers of one tick.
#[test]
fn agrona_10() {
    for size in [8, 64, 256, 4096] {
        let (first, second) = (2 * size - 1, 3 * size - 1);
        let s = Setup::manual(MS).start();
        let log = Log::new();
        s.start(second * MS, log);
        s.start(first * MS, log);
        assert_eq!((s.run_to(first * MS - 1), s.run(1)), (0, 1), "size {size}");
        assert_eq!((s.run_to(second * MS - 1), s.run(1)), (0, 1), "size {size}");
        assert_eq!(log.deadlines(), [first * MS, second * MS]);
        let base = s.now();
        s.start(first * MS, log);
        s.start(first * MS, log);
        assert_eq!((s.run_to(base + first * MS - 1), s.run(1)), (0, 2), "size {size}");
    }
}

/// Delays that are whole turns of the wheel are neither lost nor a turn late.
#[test]
fn akka_08() {
    for size in [32, 64, 256, 512] {
        for turns in [1, 2, 3, 64] {
            fires_after(&Setup::manual(100 * MS).start(), turns * size, 100 * MS);
        }
    }
}

/// Delays of 0 to 500 ms, some twice, on a running service: all of them come, each once.
#[test]
fn kafka_02() {
    let delays: Vec<u64> = (0..5).chain(10..100).chain(10..100).chain(100..500).collect();
    let cells = cells(delays.len());
    let s = Setup::threaded(1).start();
    for (cell, delay) in cells.iter().zip(&delays) {
        cell.start(s.door(), delay * MS);
    }
    eventually("all fire", || s.pending() == 0);
    eventually("the last callback is over", || s.stats().fired == delays.len() as u64);
    assert!(cells.iter().all(|cell| cell.ran() == 1));
}
