//! Handles of ended timers are used again and again, while their slots belong to others.

use crate::run::{Rng, Run, factor};
use crate::support::*;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Slots are used again soon.
const LIVE: u64 = 64;

#[test]
fn stale_handles_stay_stale() {
    let run = Run::begin("stale_handles_stay_stale");
    for (part, setup) in [Setup::threaded(1).tick(US), Setup::threaded(2)].into_iter().enumerate() {
        let mut rng = run.rng(part as u64);
        let svc = setup.max_timers(LIVE).start();
        let log = Log::counting();
        let ended: Vec<AtomicU64> = (0..4096).map(|_| AtomicU64::new(0)).collect();
        let (over, used) = (AtomicBool::new(false), AtomicU64::new(0));
        let (started, cancelled) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let (ended, over, used, door) = (&ended, &over, &used, svc.door());
            for _ in 0..2 {
                let mut rng = Rng::new(rng.next());
                scope.spawn(move || {
                    while !over.load(SeqCst) {
                        let timer = ended[rng.below(ended.len() as u64) as usize].load(SeqCst);
                        if timer != 0 {
                            hammer(door, timer, &mut rng);
                            used.fetch_add(1, SeqCst);
                        }
                    }
                });
            }
            let churners: Vec<_> = (0..2)
                .map(|_| {
                    let mut rng = Rng::new(rng.next());
                    let (started, cancelled) = (&started, &cancelled);
                    scope.spawn(move || {
                        for _ in 0..100_000 * factor() {
                            let timer = match door.try_start(rng.pick(&[0, HOUR, HOUR]), log) {
                                Ok(timer) => timer,
                                Err(status) => {
                                    assert_eq!(status, SW_FULL);
                                    std::thread::yield_now();
                                    continue;
                                }
                            };
                            started.fetch_add(1, SeqCst);
                            if door.cancel(timer) == SW_OK {
                                cancelled.fetch_add(1, SeqCst);
                            }
                            while door.cancel(timer) != SW_NOT_FOUND {}
                            ended[rng.below(ended.len() as u64) as usize].store(timer, SeqCst);
                        }
                    })
                })
                .collect();
            for churner in churners {
                churner.join().unwrap();
            }
            over.store(true, SeqCst);
        });
        let stats = svc.stats();
        println!("  {} uses of stale handles, {} timers", used.load(SeqCst), stats.started);
        assert_eq!(stats.started, started.load(SeqCst));
        assert_eq!(stats.cancelled, cancelled.load(SeqCst));
        assert_eq!((stats.pending, stats.ended_by_fire), (0, log.count()));
        assert!(used.load(SeqCst) > 0);
    }
}

fn hammer(door: Door, timer: sw_timer, rng: &mut Rng) {
    let answer = match rng.below(5) {
        0 => door.cancel(timer),
        1 => door.cancel_wait(timer),
        2 => door.reset(timer, 0),
        3 => door.reset_at(timer, HOUR),
        _ => door.remaining(timer).err().unwrap_or(SW_OK),
    };
    assert_eq!(answer, SW_NOT_FOUND, "{timer:x}");
}
