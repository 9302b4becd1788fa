//! F1, F2, F9, C1, C5 together: threads that do everything at random; then every timer has had
//! exactly one end, and the books balance.

use crate::Random;
use crate::support::*;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// What has become of one timer.
#[derive(Default)]
struct Fate {
    runs: AtomicU32,
    drops: AtomicU32,
    /// Cancels that answered `SW_OK`.
    won: AtomicU32,
}

struct Storm {
    door: Door,
    /// Every timer that was started, with what it is.
    all: Mutex<Vec<(sw_timer, Arc<Fate>, Kind)>>,
    shards: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    OneShot,
    Periodic,
    /// Arms itself again a few times.
    Rearming,
}

impl Storm {
    fn start(&self, random: &mut Random) -> (sw_timer, Arc<Fate>) {
        let kind = [Kind::OneShot, Kind::OneShot, Kind::Periodic, Kind::Rearming]
            [random.below(4) as usize];
        let fate = Arc::new(Fate::default());
        let (run, end) = (fate.clone(), fate.clone());
        let door = self.door;
        let inside = random.next();
        let call = move |expiry: &sw_expiry| {
            let runs = run.runs.fetch_add(1, Ordering::SeqCst) + 1;
            match kind {
                Kind::Periodic if runs > 3 => _ = door.cancel(expiry.timer),
                Kind::Rearming if runs < 4 => _ = door.reset(expiry.timer, inside % MS),
                _ => {}
            }
        };
        let ended = move || _ = end.drops.fetch_add(1, Ordering::SeqCst);
        let shard = random.below(u64::from(self.shards) + 1) as u32;
        let timer = self
            .door
            .timer()
            .shard(if shard == self.shards { SW_SHARD_ANY } else { shard })
            .delay(random.below(2 * MS))
            .period(if kind == Kind::Periodic { 1 + random.below(MS) } else { 0 })
            .flags(match random.below(3) {
                1 if kind == Kind::Periodic => SW_TIMER_BURST,
                2 if kind == Kind::Periodic => SW_TIMER_FIXED_DELAY,
                _ => 0,
            })
            .run(call)
            .ended(ended)
            .start();
        self.all.lock().unwrap().push((timer, fate.clone(), kind));
        (timer, fate)
    }

    /// One thread's part.
    fn rage(&self, seed: u64, rounds: u64) {
        let mut random = Random(seed);
        for _ in 0..rounds {
            let (mut timer, mut fate) = self.start(&mut random);
            // Mostly somebody else's timer.
            if random.below(4) > 0 {
                let all = self.all.lock().unwrap();
                let recent = all.len() as u64 - 1 - random.below(all.len().min(50) as u64);
                (timer, fate, _) = all[recent as usize].clone();
            }
            match random.below(6) {
                0 | 1 if self.door.cancel(timer) == SW_OK => {
                    fate.won.fetch_add(1, Ordering::SeqCst);
                }
                2 => {
                    let answer = self.door.cancel_wait(timer);
                    assert!(answer as i32 >= 0, "{answer:?}");
                    // It is over: no run begins from here on, and its drop has run.
                    let runs = fate.runs.load(Ordering::SeqCst);
                    assert_eq!(fate.drops.load(Ordering::SeqCst), 1, "{answer:?}");
                    if answer == SW_OK {
                        fate.won.fetch_add(1, Ordering::SeqCst);
                    }
                    std::hint::black_box(&fate);
                    assert_eq!(fate.runs.load(Ordering::SeqCst), runs);
                }
                3 => {
                    let answer = self.door.reset(timer, random.below(3 * MS));
                    assert!(answer as i32 >= 0, "{answer:?}");
                }
                _ => {}
            }
        }
    }

    fn verdict(&self) {
        for (timer, fate, kind) in self.all.lock().unwrap().iter() {
            let (runs, won) = (fate.runs.load(Ordering::SeqCst), fate.won.load(Ordering::SeqCst));
            assert_eq!(fate.drops.load(Ordering::SeqCst), 1, "{timer:#x} {kind:?}");
            assert!(won <= 1, "{timer:#x} {kind:?}: {won} cancels won");
            if *kind == Kind::OneShot {
                assert_eq!(runs + won, 1, "{timer:#x}: {runs} runs, {won} cancels");
            }
            assert_eq!(self.door.cancel(*timer), SW_NOT_FOUND);
        }
    }
}

fn storm(setup: Setup, pollers: usize, owner: bool) {
    let svc = setup.start();
    let storm = Storm { door: svc.door(), all: Mutex::default(), shards: svc.shard_count() };
    let over = AtomicBool::new(false);
    let raging = AtomicU64::new(3);
    std::thread::scope(|scope| {
        for poller in 0..pollers {
            let (svc, over) = (&svc, &over);
            scope.spawn(move || {
                for shard in (0..svc.shard_count()).filter(|_| owner) {
                    assert_eq!(svc.attach(shard, SW_ATTACH_SHARED), SW_OK);
                }
                while !over.load(Ordering::SeqCst) {
                    for shard in 0..svc.shard_count() {
                        let shard = (shard + poller as u32) % svc.shard_count();
                        assert!(matches!(svc.try_poll(shard, 0), Ok(_) | Err(SW_BUSY)));
                    }
                    std::thread::sleep(Duration::from_micros(100));
                }
            });
        }
        for seed in 1..=3 {
            let (storm, raging) = (&storm, &raging);
            scope.spawn(move || {
                storm.rage(seed * 0x2545_f491, 5_000);
                raging.fetch_sub(1, Ordering::SeqCst);
            });
        }
        eventually("the storm is over", || raging.load(Ordering::SeqCst) == 0);
        eventually("every timer has ended", || svc.pending() == 0);
        let drops = || {
            let all = storm.all.lock().unwrap();
            all.iter().all(|(_, fate, _)| fate.drops.load(Ordering::SeqCst) > 0)
        };
        eventually("every drop has run", drops);
        storm.verdict();
        over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn f1_c1_f9_everything_at_random_threaded() {
    storm(Setup::threaded(2), 0, false);
    storm(Setup::threaded(3).tick(US), 0, false);
}

#[test]
fn f1_c1_f9_everything_at_random_driven() {
    storm(Setup::driven().shards(2).tick(10 * US), 1, false);
    storm(Setup::driven().shards(2), 2, false);
}

#[test]
fn f1_c1_f9_everything_at_random_with_an_owner() {
    storm(Setup::driven().shards(2).tick(10 * US), 1, true);
}
