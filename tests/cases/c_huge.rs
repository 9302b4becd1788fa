//! C. Huge delays, overflow, numeric extremes.

use crate::kit::*;
use crate::support::*;

/// A year in nanoseconds.
const YEAR: u64 = 365 * DAY;

/// One tick, 2^48 - 1 µs and the longest delay: the near one fires, the others tell their rest.
#[test]
fn uv_06() {
    let s = Setup::manual(MS).start();
    s.run(7 * MS);
    let log = Log::new();
    let near = s.start(MS, log);
    let far = s.start(((1 << 48) - 1) * US, log);
    let never = s.start(u64::MAX, log);
    assert_eq!(s.remaining(far), Ok(((1 << 48) - 1) * US));
    assert!(s.remaining(never).unwrap() >= SW_NEVER - 7 * MS, "saturated, not wrapped");
    assert_eq!(s.run(MS), 1);
    assert_eq!(log.timers(), [near]);
    assert_eq!(s.remaining(far), Ok(((1 << 48) - 1) * US - MS));
}

/// A sum that would wrap does not poison the shard for the timers after it.
#[test]
fn go_12() {
    let s = Setup::manual(MS).start();
    s.run(5 * SEC);
    let (bad, good) = (Log::new(), Log::new());
    s.start(u64::MAX, bad);
    s.start(u64::MAX - 4 * SEC, bad);
    s.start_at(u64::MAX, bad);
    s.start_every(u64::MAX, bad);
    s.timer().delay(u64::MAX).period(u64::MAX).slack(u64::MAX).log(bad).start();
    s.timer().at(u64::MAX - 1).slack(u64::MAX).log(bad).start();
    s.start(1, good);
    assert_eq!(s.run(MS), 1);
    assert_eq!((bad.count(), good.count()), (0, 1));
    assert_eq!(s.pending(), 6);
}

/// The same on a running service.
#[test]
fn go_12_real() {
    let s = Setup::threaded(1).start();
    let (bad, good) = (Log::new(), Log::new());
    s.start(u64::MAX, bad);
    s.start_at(u64::MAX, bad);
    s.start_every(u64::MAX, bad);
    s.start(1, good);
    eventually("the small one fires", || good.count() == 1);
    assert_eq!(bad.count(), 0);
}

/// The longest delays and the longest period: nothing breaks in ten years, and each can still
/// be cancelled.
#[test]
fn tokio_41() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let mut timers = Vec::new();
    for _ in 0..2 {
        timers.push(s.start(u64::MAX, log));
        timers.push(s.start(u64::MAX - MS, log));
        timers.push(s.start(u64::MAX - 1, log));
        timers.push(s.start_every(u64::MAX, log));
        // A period so long that the second expiry never comes.
        timers.push(s.timer().delay(u64::MAX - MS).period(u64::MAX).log(log).start());
        assert_eq!(s.run(10 * YEAR), 0);
    }
    assert_eq!(s.pending(), 10);
    for timer in timers {
        assert!(s.remaining(timer).unwrap() > 500 * YEAR);
        assert_eq!(s.cancel(timer), SW_OK);
    }
    assert_eq!((s.pending(), log.count(), s.next()), (0, 0, SW_NEVER));
}

/// A tenth of all time beside one nanosecond: the nanosecond fires.
#[test]
fn tokio_42() {
    let s = Setup::manual(MS).start();
    let (far, near) = (Log::new(), Log::new());
    s.start(u64::MAX / 10, far);
    s.start(1, near);
    assert_eq!(s.run(MS), 1);
    assert_eq!((far.count(), near.count()), (0, 1));
}

/// Delays of 2^31 ms and 2^33 ms lose exactly what has gone by: nothing is cut to 32 bits.
#[test]
fn erl_02() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    for bits in [31, 33] {
        let delay = (1 << bits) * MS;
        let timer = s.start(delay, log);
        assert_eq!(s.run(200 * MS), 0);
        assert_eq!(s.remaining(timer), Ok(delay - 200 * MS));
        assert_eq!(s.cancel(timer), SW_OK);
        assert!(s.remaining(timer).is_err());
    }
    assert_eq!(log.count(), 0);
}

/// 2^32 ms, one more than 32 bits hold, is accepted and not served early.
#[test]
fn erl_26() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    s.start((1 << 32) * MS, log);
    assert_eq!((s.run(0), s.run(MS), s.run(SEC)), (0, 0, 0));
    assert_eq!(s.run_to((1 << 32) * MS - 1), 0);
    assert_eq!(s.run(1), 1);
}

/// No delay is "too long" and served at once instead.
#[test]
fn node_07() {
    for bits in [31, 32, 33, 42, 48, 52, 53, 62, 63] {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        for delay in [(1 << bits) - 1, 1 << bits, (1 << bits) + 1] {
            s.start(delay, log);
        }
        assert_eq!((s.run(0), s.run(MS), s.run(MS)), (0, 0, 0), "2^{bits}");
        s.run_to((1 << bits) - 2);
        assert_eq!(log.count(), 0, "2^{bits}");
        assert_eq!(s.run(MS + 3), 3, "2^{bits}");
    }
}

/// A reset takes every instant (none is out of range); one that is refused changes nothing.
#[test]
fn net_12() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timer = s.start_every(10 * MS, log);
    for delay in [u64::MAX, u64::MAX - 1, 1 << 63, 0, 1] {
        assert_eq!(s.reset(timer, delay), SW_OK);
        assert_eq!(s.reset_at(timer, delay), SW_OK);
    }
    assert_eq!(s.reset(timer, 10 * MS), SW_OK);
    assert!([SW_INVALID, SW_NOT_FOUND].contains(&s.reset(SW_TIMER_NONE, 3 * MS)));
    assert!([SW_INVALID, SW_NOT_FOUND].contains(&s.reset(u64::MAX, 3 * MS)));
    let refused = s.timer().delay(MS).flags(SW_TIMER_BURST).log(Log::new()).try_start();
    assert_eq!(refused, Err(SW_INVALID));
    assert_eq!(s.remaining(timer), Ok(10 * MS));
    assert_eq!((s.run(9 * MS), s.run(MS), s.run(10 * MS)), (0, 1, 1));
}

/// A thousand deadlines up to 2^50 ticks, taken in steps of up to 2^31 ticks to 2^49: each in
/// the first step that reaches it, those beyond not at all.
#[test]
fn wahern_05() {
    let tick = US;
    let mut rng = Rng::new(5);
    let cells = cells(1000);
    let s = Setup::manual(tick).start();
    s.run(100 * tick);
    let mut deadlines = Vec::new();
    for cell in &cells {
        let deadline = rng.between(2000, 1 << 50) * tick;
        let mut spec = cell.spec(s.door());
        spec.delay_ns = deadline;
        spec.flags = SW_TIMER_ABSOLUTE;
        s.start_spec(&spec).unwrap();
        deadlines.push(deadline);
    }
    let mut in_order = deadlines.clone();
    in_order.sort_unstable();
    let mut reached = 0;
    while s.now() < (1 << 49) * tick {
        s.advance(rng.between(1, 1 << 31) * tick);
        let now = s.now();
        let before = reached;
        while reached < in_order.len() && in_order[reached] <= now {
            reached += 1;
        }
        assert_eq!(s.poll(), reached - before, "in the step to {now}");
    }
    for (cell, deadline) in cells.iter().zip(deadlines) {
        assert_eq!(cell.ran(), u32::from(deadline <= s.now()));
        assert!(cell.ran() == 0 || cell.deadline() == deadline);
    }
}

/// A timer at exactly the span of a wheel and one a full turn of its top level later: the second
/// stays when the first comes.
#[test]
fn mec_02() {
    let peer = [16_u64.pow(3), 256 * 256, 512];
    let ours = (1..=8).map(|level| 64_u64.pow(level));
    for span in peer.into_iter().chain(ours) {
        let s = Setup::manual(US).start();
        let log = Log::new();
        s.start(2 * span * US, log);
        s.start(span * US, log);
        assert_eq!(s.run_to(span * US - 1), 0, "span {span}");
        assert_eq!(s.run_to(span * US), 1, "span {span}");
        assert_eq!((s.pending(), log.last().deadline), (1, span * US));
        assert_eq!(s.run_to(2 * span * US - 1), 0, "span {span}");
        assert_eq!(s.run_to(2 * span * US), 1, "span {span}");
    }
}

/// The shortest and the longest delay are both accepted: the short ones fire soon, the long ones
/// cancel cleanly.
#[test]
fn odp_04() {
    let s = Setup::threaded(1).start();
    let (short, long) = (Log::new(), Log::new());
    for _ in 0..5 {
        let begin = mono();
        let before = short.count();
        s.start(0, short);
        s.start(1, short);
        let timers = [s.start(u64::MAX, long), s.start(u64::MAX - 1, long)];
        eventually("the short ones fire", || short.count() == before + 2);
        assert!(mono() - begin < SEC);
        assert_eq!(timers.map(|timer| s.cancel(timer)), [SW_OK, SW_OK]);
    }
    assert_eq!(long.count(), 0);
    for tick in [1_000, HOUR] {
        let s = Setup::manual(tick).start();
        let log = Log::new();
        s.start(tick, log);
        assert_eq!((s.run(tick - 1), s.run(1)), (0, 1), "tick {tick} is in range");
    }
}

/// A service that has been up for longer than a wheel's range still serves a timer one tick away.
#[test]
fn tokio_36() {
    for (bits, tick) in [(31, MS), (32, MS), (36, MS), (42, MS), (42, US), (53, US)] {
        let s = Setup::manual(tick).start();
        let log = Log::new();
        for half in 1..=2 {
            s.start_at((1 << (bits - 1)) * half * tick, log);
        }
        assert_eq!(s.run((1 << (bits - 1)) * tick), 1, "2^{bits}");
        assert_eq!(s.run((1 << (bits - 1)) * tick), 1, "2^{bits}");
        for delay in [1, 2, 63, 64, 65, 4095, 4096, 4097] {
            s.start(delay * tick, log);
            assert_eq!(s.run(delay * tick - 1), 0, "2^{bits} + {delay}");
            assert_eq!(s.run(1), 1, "2^{bits} + {delay}");
        }
    }
}
