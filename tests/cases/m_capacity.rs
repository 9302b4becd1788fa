//! M. Capacity limits and counters.

use crate::kit::*;
use crate::support::*;

/// Room for two, both taken: a cancel makes room at once, on a driven shard and on one whose
/// thread sleeps.
#[test]
fn netty_09() {
    for s in [Setup::manual(MS).max_timers(2).start(), Setup::threaded(1).max_timers(2).start()] {
        let log = Log::new();
        let mut timers = [s.start(HOUR, log), s.start(HOUR, log)];
        for round in 0..1000 {
            assert_eq!(s.try_start(HOUR, log), Err(SW_FULL));
            assert_eq!(s.cancel(timers[round % 2]), SW_OK);
            timers[round % 2] = s.start(HOUR, log);
        }
        let stats = s.stats();
        assert_eq!((stats.rejected, stats.pending, stats.high_water), (1000, 2, 2));
        assert_eq!((stats.started, stats.cancelled), (1002, 1000));
    }
}

/// All of N fit, one more does not; after N cancels nothing is live and the high-water mark says N.
#[test]
fn odp_07() {
    for n in [1, 2, 1000, 70_000] {
        let s = Setup::manual(MS).max_timers(n).start();
        let log = Log::counting();
        for _ in 0..2 {
            let timers: Vec<_> = (0..n).map(|nth| s.start(HOUR + nth, log)).collect();
            assert_eq!(s.try_start(HOUR, log), Err(SW_FULL));
            assert_eq!((s.stats().pending, s.stats().high_water), (n, n));
            assert_eq!(s.cancel_batch(&timers), Ok(n as usize));
            assert_eq!((s.stats().pending, s.stats().high_water), (0, n));
        }
        for _ in 0..n {
            s.start(MS, log);
        }
        assert_eq!(s.try_start(MS, log), Err(SW_FULL));
        assert_eq!(s.run(MS) as u64, n);
        assert!(s.try_start(MS, log).is_ok(), "a firing makes room too");
    }
}

/// Four threads share the room of one shard: never more than N at once, all of it usable, and
/// nothing is left at the end.
#[test]
fn odp_07_threads() {
    const N: u64 = 1000;
    let s = Setup::threaded(1).max_timers(N).start();
    let door = s.door();
    let workers: Vec<_> = (0..4)
        .map(|seed| {
            std::thread::spawn(move || {
                let (mut rng, log) = (Rng::new(seed), Log::counting());
                let mut held = Vec::new();
                for _ in 0..50_000 {
                    if rng.one_in(2) && !held.is_empty() {
                        let at = rng.below(held.len() as u64) as usize;
                        assert_eq!(door.cancel(held.swap_remove(at)), SW_OK);
                    } else {
                        match door.try_start(HOUR, log) {
                            Ok(timer) => held.push(timer),
                            Err(status) => assert_eq!(status, SW_FULL),
                        }
                    }
                }
                assert_eq!(door.cancel_batch(&held), Ok(held.len()));
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(s.pending(), 0);
    assert!(s.stats().high_water <= N);
    let timers: Vec<_> = (0..N).map(|_| s.start(HOUR, Log::counting())).collect();
    assert_eq!((s.pending(), s.stats().high_water), (N, N));
    assert_eq!(s.cancel_batch(&timers), Ok(N as usize));
}
