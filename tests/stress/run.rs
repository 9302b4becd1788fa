//! One run of a test: how much, from which seed, and for how long at most.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Numbers without a pattern (xorshift).
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        // The finalizer of splitmix64: neighbouring seeds have nothing in common.
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Rng((z ^ (z >> 31)) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// See the module. Ends with its test.
pub struct Run {
    seed: u64,
    over: Arc<AtomicBool>,
}

impl Run {
    /// Prints the seed, and ends the process if the test is not over after minutes.
    pub fn begin(name: &'static str) -> Run {
        let number = |key: &str| std::env::var(key).ok().and_then(|text| text.parse().ok());
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = number("SHARDWHEEL_SEED").unwrap_or(clock.as_nanos() as u64 % 1_000_000_007);
        println!("{name}: SHARDWHEEL_SEED={seed}");
        let over = Arc::new(AtomicBool::new(false));
        let watched = over.clone();
        let limit = Duration::from_secs(180) * factor() as u32;
        std::thread::spawn(move || {
            for _ in 0..limit.as_millis() / 100 {
                std::thread::sleep(Duration::from_millis(100));
                if watched.load(Ordering::SeqCst) {
                    return;
                }
            }
            let text = format!("{name} hangs: not over after {limit:?}, SHARDWHEEL_SEED={seed}");
            let _ = writeln!(std::io::stderr(), "{text}");
            std::process::abort();
        });
        Run { seed, over }
    }

    /// The choices of one part of the run.
    pub fn rng(&self, part: u64) -> Rng {
        Rng::new(self.seed.wrapping_add(part << 32))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// Tells the other threads, at its end, that all is over: also when this thread has failed.
pub struct Raise<'a>(pub &'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// How many times the usual amount: `SHARDWHEEL_STRESS`.
pub fn factor() -> u64 {
    let asked = std::env::var("SHARDWHEEL_STRESS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(1).max(1)
}
