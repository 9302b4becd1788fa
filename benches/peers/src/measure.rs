//! Clocks, random numbers, and the process's own figures.

use std::fs;
use std::time::{Duration, Instant};

/// Operations between two looks at the clock, and between two turns of a wheel.
pub const CHUNK: u64 = 4096;

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` can be written.
    let answer = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(answer, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock that lateness is judged by.
pub fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// What this thread has used of a CPU.
pub fn thread_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// What all threads of the process have used.
pub fn process_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Memory of this process that is in RAM.
pub fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("proc is mounted");
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number") * 4096
}

/// How often threads of this process have gone to sleep, which is how often they were woken.
pub fn sleeps() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("proc is mounted");
    let of_task = |task: std::io::Result<fs::DirEntry>| {
        let status = fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    tasks.filter_map(of_task).sum()
}

/// What each of a number of operations took.
#[derive(Debug, Clone, Copy)]
pub struct Each {
    pub wall_ns: f64,
    pub cpu_ns: f64,
}

/// Measures `work`, which does `operations`.
pub fn each(operations: u64, work: impl FnOnce()) -> Each {
    let (wall, cpu) = (Instant::now(), thread_cpu_ns());
    work();
    let (cpu, wall) = (thread_cpu_ns() - cpu, wall.elapsed());
    let each = |ns: f64| ns / operations as f64;
    Each { wall_ns: each(wall.as_nanos() as f64), cpu_ns: each(cpu as f64) }
}

/// Repeats `chunk`, which does `CHUNK` operations, until the time is over.
pub fn each_in(time: Duration, mut chunk: impl FnMut()) -> Each {
    let (wall, cpu) = (Instant::now(), thread_cpu_ns());
    let mut operations = 0;
    while wall.elapsed() < time {
        chunk();
        operations += CHUNK;
    }
    let (cpu, wall) = (thread_cpu_ns() - cpu, wall.elapsed());
    let each = |ns: f64| ns / operations as f64;
    Each { wall_ns: each(wall.as_nanos() as f64), cpu_ns: each(cpu as f64) }
}

/// Random numbers, a nanosecond each.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `end`.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// From `first` to `last`.
    #[inline]
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }
}
