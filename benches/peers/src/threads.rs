//! W4 and W4b: several threads on one service.

use crate::contender::Service;
use crate::measure::{CHUNK, Random, process_cpu_ns};
use crate::single::{fill, go_round, start_cancel};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// After the threads' end the service's own threads have this long to finish what was left to
/// them; the CPU time that they use for it counts.
const AFTERMATH: Duration = Duration::from_millis(50);

/// What all threads did together.
pub struct Together {
    pub pairs_per_second: f64,
    /// CPU time of the whole process for each pair.
    pub cpu_ns: f64,
}

/// `live` timers in all; each thread starts one and cancels it (`ring` false), or cancels the
/// oldest of its ring and starts a new one.
pub fn run<S: Service>(
    service: &S,
    live: usize,
    threads: usize,
    ring: bool,
    time: Duration,
) -> Together {
    let (ready, over) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let one = |thread: usize| {
        let own = live / threads;
        let mut random = Random::new(10 + thread as u64);
        let mut timers = service.local(own + 1);
        fill(&mut timers, own, &mut random);
        let mut oldest = 0;
        let mut chunk = || match ring {
            false => start_cancel(&mut timers, own, &mut random),
            true => go_round(&mut timers, own, &mut oldest, &mut random),
        };
        let warm = if ring { (own as u64).div_ceil(CHUNK) } else { 50 };
        (0..warm).for_each(|_| chunk());
        ready.wait();
        ready.wait();
        let mut pairs = 0;
        // Relaxed: the end may be seen a little later.
        while !over.load(Ordering::Relaxed) {
            chunk();
            pairs += CHUNK;
        }
        ready.wait();
        ready.wait();
        pairs
    };
    thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = (0..threads).map(|nth| scope.spawn(move || one(nth))).collect();
        ready.wait();
        let (wall, cpu) = (Instant::now(), process_cpu_ns());
        ready.wait();
        thread::sleep(time);
        over.store(true, Ordering::Relaxed);
        ready.wait();
        let wall = wall.elapsed();
        thread::sleep(AFTERMATH);
        let cpu = process_cpu_ns() - cpu;
        ready.wait();
        let pairs: u64 = running.into_iter().map(|thread| thread.join().expect("no panic")).sum();
        let pairs = pairs as f64;
        Together { pairs_per_second: pairs / wall.as_secs_f64(), cpu_ns: cpu as f64 / pairs }
    })
}
