//! How much this machine itself delays threads just now. A test that puts a bound on real time
//! lets a witness watch, and asks for what the library may take on top of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One thread on each CPU that sleeps a little, over and over, and notes by how much it overslept.
pub struct Witness {
    worst_ns: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Witness {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Witness {
        let (worst_ns, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let watch = |cpu| {
            let (worst_ns, over) = (worst_ns.clone(), over.clone());
            std::thread::spawn(move || {
                pin(cpu);
                let nap = Duration::from_millis(2);
                while !over.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    std::thread::sleep(nap);
                    let overslept = (begin.elapsed() - nap).as_nanos() as u64;
                    worst_ns.fetch_max(overslept, Ordering::Relaxed);
                }
            })
        };
        let threads = allowed_cpus().into_iter().map(watch).collect();
        Witness { worst_ns, over, threads }
    }

    /// What a thread that should run at once may take to do so, in nanoseconds: 100 ms, and a few
    /// times the worst that was seen so far.
    pub fn slack(&self) -> u64 {
        100_000_000 + 4 * self.worst_ns.load(Ordering::Relaxed)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn allowed_cpus() -> Vec<usize> {
    // SAFETY: a zeroed set is an empty one; it is as large as said.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

fn pin(cpu: usize) {
    // SAFETY: as above. A refusal costs the witness some of its sharpness, no more.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}
