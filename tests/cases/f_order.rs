//! F. Ordering, same-tick batches, iteration order.

use crate::kit::*;
use crate::support::*;
use std::collections::BTreeMap;

/// The shorter of two delays comes first, and on its tick, though it was started last.
#[test]
fn folly_06() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let slow = s.start(10 * MS, log);
    let fast = s.start(5 * MS, log);
    assert_eq!((s.run(4 * MS), s.run(MS)), (0, 1));
    assert_eq!((s.run(4 * MS), s.run(MS)), (0, 1));
    assert_eq!(log.timers(), [fast, slow]);
}

/// Neighbouring deadlines come in order, also in one jump; timers of one tick in the order in
/// which one thread started them (more than this peer promises).
#[test]
fn erl_04() {
    for base in [100, 4095, 262_143] {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        let apart = [2, 0, 3, 1].map(|more| s.start((base + more) * MS, log));
        assert_eq!(s.run(HOUR), 4);
        assert_eq!(log.timers(), [apart[1], apart[3], apart[0], apart[2]]);
        log.take();
        let together = [(); 4].map(|()| s.start(base * MS, log));
        assert_eq!(s.run(HOUR), 4);
        assert_eq!(log.timers(), together, "T6");
    }
}

/// A reset within a tick: both timers still come on it, once each; their order is left open.
#[test]
fn node_04() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let mut both = [s.start(MS, log), s.start(MS, log)];
    assert_eq!(s.reset(both[0], MS), SW_OK);
    assert_eq!((s.run(MS), s.run(HOUR)), (2, 0));
    let mut fired = log.timers();
    fired.sort_unstable();
    both.sort_unstable();
    assert_eq!(fired, both);
}

/// Delays and periods with fractions of a tick: rounded up, never stuck.
#[test]
fn node_05() {
    let s = Setup::manual(MS).start();
    let (log, checker) = (Log::new(), Log::new());
    for tenths in [10, 18, 11, 10] {
        s.start(tenths * MS / 10, log);
    }
    s.start(2 * MS, checker);
    assert_eq!((s.run(MS), s.run(MS)), (2, 3));
    assert_eq!((log.count(), checker.count()), (4, 1));
    let last = log.fires().iter().map(|fire| fire.seq).max();
    assert!(last.unwrap() < checker.last().seq, "started before the checker, due on its tick");
    let periodic = Log::new();
    let begin = s.now();
    let timer = s.start_every(11 * MS / 10, periodic);
    while periodic.count() < 50 {
        s.run(MS);
        assert!(s.now() < begin + 60 * MS, "it hangs");
    }
    assert_eq!((periodic.missed(), s.now()), (0, begin + 55 * MS));
    for (nth, fire) in (1..).zip(periodic.fires()) {
        assert_eq!(fire.deadline, begin + nth * 11 * MS / 10, "F5: no drift");
    }
    assert_eq!(s.cancel(timer), SW_OK);
}

/// 301 timers on each shard, all for one instant: all at or after it, soon, none cut off.
#[test]
fn erl_13() {
    let cells = cells(4 * 301);
    let s = Setup::threaded(4).start();
    let instant = s.now() + 300 * MS;
    for (at, cell) in cells.iter().enumerate() {
        let mut spec = cell.spec(s.door());
        spec.shard = at as u32 % 4;
        spec.delay_ns = instant;
        spec.flags = SW_TIMER_ABSOLUTE;
        s.start_spec(&spec).unwrap();
    }
    eventually("all fire", || s.stats().fired == 4 * 301);
    for cell in &cells {
        assert_eq!(cell.ran(), 1);
        assert!((instant..instant + SEC).contains(&cell.now()), "{}", cell.now() - instant);
    }
    assert_eq!(s.pending(), 0);
}

/// 200 delays of 0 to 199 ms, their expiries taken from a queue: by a taker that polls all the
/// time and by one that sleeps, with small and with large contexts. All come, each once.
#[test]
fn erl_11() {
    let s = Setup::threaded(1).start();
    for busy in [true, false] {
        for size in [1, 10_000] {
            let payloads: Vec<Vec<u8>> = (0..200).map(|n| vec![n as u8; size]).collect();
            let queue = s.queue();
            for (delay, payload) in payloads.iter().enumerate() {
                let ctx = payload.as_ptr().cast_mut().cast();
                s.timer().delay(delay as u64 * MS).queue(queue).with(|spec| spec.ctx = ctx).start();
            }
            if !busy {
                sleep_ms(250);
            }
            let mut seen = BTreeMap::new();
            let begin = std::time::Instant::now();
            while seen.values().sum::<u32>() < 200 {
                for (_, ctx) in queue.poll(16) {
                    *seen.entry(ctx.0 as usize).or_default() += 1;
                }
                assert!(begin.elapsed() < LONG, "{} of 200", seen.len());
            }
            assert!(payloads.iter().all(|payload| seen[&(payload.as_ptr() as usize)] == 1));
            assert_eq!(queue.free(), SW_OK);
        }
    }
}

/// One-shots at 10 and 11 and a periodic timer of 9, in one jump to 12: by deadline.
#[test]
fn folly_22a() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let (ten, eleven) = (s.start(10 * MS, log), s.start(11 * MS, log));
    let nine = s.start_every(9 * MS, log);
    assert_eq!(s.run(12 * MS), 3);
    assert_eq!(log.timers(), [nine, ten, eleven]);
}
