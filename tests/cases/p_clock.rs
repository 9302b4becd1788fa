//! P. Manual clock.

use crate::kit::*;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Moving the clock to a deadline does not run anything by itself; the next poll does, and the
/// edge is inclusive (this peer's is exclusive).
#[test]
fn kot_01() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    s.start(15 * MS, log);
    s.advance(15 * MS);
    assert_eq!(log.count(), 0);
    assert_eq!((s.poll(), log.count()), (1, 1));
    assert_eq!(log.last().deadline, log.last().now);
}

/// An advance by the longest time saturates: what is due before the end runs, and "never" does
/// not, not even on ticks of which the end of time is a multiple.
#[test]
fn kot_03() {
    for tick in [US, MS, 65_535, 641 * 6_700_417, HOUR] {
        let s = Setup::manual(tick).start();
        s.run(9 * tick);
        let (log, never) = (Log::new(), Log::new());
        let last = SW_NEVER / tick * tick;
        let deadlines = [SW_NEVER - 2 * tick, last - tick, last.min(SW_NEVER - 1), 1 << 63];
        for deadline in deadlines {
            s.start_at(deadline, log);
        }
        s.start_at(SW_NEVER, never);
        s.start(SW_NEVER, never);
        s.timer().at(SW_NEVER).period(tick).log(never).start();
        s.advance(u64::MAX);
        assert_eq!(s.now(), SW_NEVER);
        assert_eq!(s.poll(), 4, "tick {tick}");
        assert_eq!((never.count(), s.pending()), (0, 3));
        s.advance(u64::MAX);
        assert_eq!((s.poll(), s.now()), (0, SW_NEVER));
        s.start_at(5, log);
        assert_eq!(s.poll(), 1, "a deadline in the past is served here too");
    }
}

/// A callback moves the clock and starts more: what became due by that is not run in the same
/// pass, whether it was new or already there.
#[test]
fn kot_04() {
    for there_at in [50, 63, 64, 65, 100] {
        let s = Setup::manual(MS).start();
        let (door, there, new) = (s.door(), Log::new(), Log::new());
        s.start(there_at * MS, there);
        s.timer()
            .delay(10 * MS)
            .run(move |_| {
                door.start(20 * MS, new);
                door.start(0, new);
                door.advance(100 * MS);
            })
            .start();
        assert_eq!((s.run(10 * MS), there.count(), new.count()), (1, 0, 0));
        assert_eq!((s.poll(), there.count(), new.count()), (3, 1, 2));
        assert_eq!(s.next(), SW_NEVER);
    }
}

/// A callback that tries to run everything until nothing is left: each poll is refused, nothing
/// hangs, the outer poll goes on.
#[test]
fn kot_05() {
    let s = Setup::manual(MS).start();
    let (door, log, refused) = (s.door(), Log::new(), Arc::new(AtomicU64::new(0)));
    let count = refused.clone();
    s.timer()
        .delay(10 * MS)
        .run(move |_| {
            for _ in 0..10 {
                let next = door.next_of(0).unwrap();
                if next != SW_NEVER && next > door.now() {
                    door.advance_to(next);
                }
                assert_eq!(door.try_poll(0, 0), Err(SW_BUSY));
                count.fetch_add(1, Ordering::SeqCst);
            }
        })
        .start();
    s.start(10 * MS, log);
    s.start(20 * MS, log);
    assert_eq!((s.run(10 * MS), log.count()), (2, 1));
    s.advance(10 * MS);
    assert_eq!((s.poll(), log.count(), refused.load(Ordering::SeqCst)), (1, 2, 10));
}

/// Nobody takes the events: the clock goes on all the same, and what waits is bounded by the
/// number of timers.
#[test]
fn clk_07() {
    let s = Setup::manual(MS).start();
    let queue = s.queue();
    for nth in 0..5000 {
        s.timer().delay(nth * MS).queue(queue).start();
    }
    let ticker = s.timer().delay(MS).period(MS).queue(queue).start();
    for _ in 0..10_000 {
        s.run(MS);
    }
    let memory = s.stats().memory_bytes;
    s.run(DAY);
    for _ in 0..10_000 {
        s.run(MS);
    }
    assert!(s.stats().memory_bytes < memory + (1 << 20), "what waits does not grow");
    let events = queue.poll(10_000);
    assert_eq!(events.len(), 5001);
    let ticks: Vec<_> = events.iter().filter(|event| event.0.timer == ticker).collect();
    assert_eq!((ticks.len(), ticks[0].0.missed + 1), (1, s.now() / MS));
}
