//! Models: small scenarios of the real modules, in every interleaving and with every value that a
//! weak memory may show, under loom.
//!
//! Ground rules:
//! - `RUSTFLAGS="--cfg loom"`. A model runs the code that ships, through `crate::sync`; nothing is copied. Sizes
//!   are cut (`cfg(loom)`): segments of 4, magazines of 2, blocks of 2, lanes of 2, 2 credits at a
//!   time.
//! - One model a race, named after it. Its doc says what must hold; `TABLE.md` beside this file says to which
//!   bound it was explored (so many preemptions; none: all interleavings), how far that went, and which
//!   mutants of the code it finds (`tests/models` makes them).
//! - Where timers are involved each model ends by `Service::quiet`: the accounting must be exact.
//! - What a model observes it keeps in `std` atomics (`Seen`): they add no interleavings. Where the
//!   question is whether a write is visible it is a loom cell.
//! - Fences: the asymmetric pair of `sys::barrier` is two full fences here.
//!
//! `LOOM_MAX_PREEMPTIONS` sets another bound for all models, `LOOM_MAX_DURATION` (seconds, with
//! `LOOM_CHECKPOINT_INTERVAL=100`, which says how often to look) cuts each short. To see a failing interleaving again:
//!
//! ```sh
//! export RUSTFLAGS="--cfg loom" LOOM_CHECKPOINT_FILE=target/failed.json LOOM_MAX_PREEMPTIONS=2
//! LOOM_CHECKPOINT_INTERVAL=1 cargo test --profile models --lib models::handover::stop_vs_sleep
//! LOOM_LOG=trace LOOM_LOCATION=1 LOOM_MAX_BRANCHES=20000 cargo test --profile models --lib models::handover::stop_vs_sleep
//! ```
//!
//! The first run leaves the interleaving that failed in the file, the second begins with it and prints
//! each step, and at the end where each thread stands. (Take the file away before the next change of the code.) To see it on a
//! fault that is put in: with `SHARDWHEEL_MUTANT=src/alarm.rs:115:9:dropped` (the line and column of the call
//! `barrier::full()` in `Alarm::sleep`) in front of both commands they end in a deadlock, the second after one
//! interleaving. `mutants_die` does the like with another one.

mod capacity;
mod descriptors;
mod fire;
mod handover;
mod inside;
mod life;
mod looks;
mod queues;
mod references;
mod slots;

use crate::config::{ClockKind, Config, Mode};
use crate::engine::Engine;
use crate::handle::GENERATION_MASK;
use crate::shared::Shared;
use crate::status::{Error, Outcome};
use crate::sync::model::UPKEEP;
use crate::threads;
use crate::types::{Expiry, SHARD_ANY, Spec, Stats, TIMER_ABSOLUTE};
use crate::worker::work;
use loom::thread::JoinHandle;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Branches of one interleaving.
const MAX_BRANCHES: usize = 20_000;
/// Words of a model thread's stack.
const STACK: usize = 1 << 15;
/// Nanoseconds of a tick.
pub(crate) const TICK: u64 = 1_000;

/// Explores `body`, which runs as a thread of its own beside at most three others.
pub(crate) fn explore(name: &'static str, bound: Option<usize>, body: fn()) {
    explore_all(name, bound, false, body);
}

/// The same, with the upkeep that models leave out otherwise.
pub(crate) fn explore_with_upkeep(name: &'static str, bound: Option<usize>, body: fn()) {
    explore_all(name, bound, true, body);
}

fn explore_all(name: &'static str, bound: Option<usize>, upkeep: bool, body: fn()) {
    UPKEEP.set(upkeep);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(bound);
    builder.max_branches = MAX_BRANCHES;
    let bound = builder.preemption_bound.map_or("none".to_string(), |bound| bound.to_string());
    let report = Report { name, bound, runs: Arc::default(), begin: thread_seconds() };
    let runs = report.runs.clone();
    let run = move || {
        runs.fetch_add(1, Ordering::Relaxed);
        crate::sync::model::begin();
        spawn_with(body).join().unwrap();
    };
    if std::env::var_os("LOOM_LOG").is_some() {
        // This one prints what it does, and takes its bounds from the environment alone.
        loom::model(run);
    } else {
        builder.check(run);
    }
}

/// Says how far a model went, also when it fails.
struct Report {
    name: &'static str,
    bound: String,
    runs: Arc<AtomicU64>,
    begin: f64,
}

impl Drop for Report {
    fn drop(&mut self) {
        let Report { name, bound, runs, begin } = self;
        let (runs, seconds) = (runs.load(Ordering::Relaxed), thread_seconds() - *begin);
        println!("model {name}: bound {bound}, {runs} runs, {seconds:.1} s");
    }
}

/// Of the processor: all threads of a model are this one.
fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the instant is written to a place that lives.
    let refused = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(refused, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn spawn_with<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    loom::thread::Builder::new().stack_size(STACK).spawn(f).unwrap()
}

/// Waits for all of them.
pub(crate) fn join<R, const N: usize>(threads: [JoinHandle<R>; N]) -> [R; N] {
    threads.map(|thread| thread.join().unwrap())
}

/// A thread that lives on, as far as the service can tell: its ports stay its own.
pub(crate) fn thread<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    spawn_with(move || {
        let result = f();
        threads::leave(true);
        result
    })
}

/// A thread that has ended when it is joined.
pub(crate) fn mortal<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    spawn_with(move || {
        let result = f();
        threads::leave(false);
        result
    })
}

/// What a timer's functions were called with. One for each timer; never freed within a run.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) fired: AtomicU32,
    pub(crate) dropped: AtomicU32,
    pub(crate) returned: AtomicU32,
    pub(crate) missed: AtomicU64,
}

impl Seen {
    pub(crate) fn new() -> Arc<Seen> {
        Arc::default()
    }

    pub(crate) fn fired(&self) -> u32 {
        self.fired.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self) -> u32 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn returned(&self) -> u32 {
        self.returned.load(Ordering::Relaxed)
    }
}

unsafe extern "C-unwind" fn note_fire(ctx: *mut c_void, expiry: *const Expiry) {
    // SAFETY: ctx is a `Seen` that the model keeps; the expiry is the library's.
    let (seen, expiry) = unsafe { (&*ctx.cast::<Seen>(), &*expiry) };
    assert_eq!(seen.dropped(), 0, "no callback after drop");
    assert!(expiry.deadline_ns <= expiry.now_ns, "never early");
    seen.fired.fetch_add(1, Ordering::Relaxed);
    seen.missed.fetch_add(expiry.missed, Ordering::Relaxed);
}

unsafe extern "C-unwind" fn note_drop(ctx: *mut c_void) {
    // SAFETY: as above.
    let seen = unsafe { &*ctx.cast::<Seen>() };
    assert_eq!(seen.dropped.fetch_add(1, Ordering::Relaxed), 0, "drop runs once");
}

/// A one-shot with a deadline at this tick.
pub(crate) fn once(tick: u64, seen: &Arc<Seen>) -> Spec {
    Spec {
        delay_ns: tick * TICK,
        flags: TIMER_ABSOLUTE,
        callback: Some(note_fire),
        ctx: Arc::as_ptr(seen).cast_mut().cast(),
        ..Spec::default()
    }
}

/// The same with a drop.
pub(crate) fn with_drop(spec: Spec) -> Spec {
    Spec { drop: Some(note_drop), ..spec }
}

/// The same, every so many ticks.
pub(crate) fn every(ticks: u64, spec: Spec) -> Spec {
    Spec { period_ns: ticks * TICK, ..spec }
}

/// A driven service of one shard on the manual clock.
#[derive(Clone)]
pub(crate) struct Service(Shared<Engine>);

impl Deref for Service {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl Service {
    /// A driven service of one shard.
    pub(crate) fn new(max_timers: u64) -> Service {
        Service::with(Mode::Driven, 1, max_timers)
    }

    /// A service with threads of its own, which are still to be started: see `worker`.
    pub(crate) fn threaded(max_timers: u64) -> Service {
        Service::with(Mode::Threaded, 1, max_timers)
    }

    pub(crate) fn with(mode: Mode, shards: u32, max_timers: u64) -> Service {
        let config = Config {
            mode,
            clock: ClockKind::Manual,
            shards,
            tick_ns: TICK,
            max_timers,
            ..Config::default()
        };
        Service(Engine::build(&config, GENERATION_MASK + 1).unwrap())
    }

    /// The life of the shard's own thread.
    pub(crate) fn worker(&self) -> JoinHandle<()> {
        let service = self.clone();
        thread(move || work(&service, 0, None))
    }

    pub(crate) fn try_start(&self, spec: &Spec) -> Result<u64, Error> {
        let mut timer = 0;
        // SAFETY: the functions are this module's, and the model keeps what they are called with.
        unsafe { self.arm(spec, &mut timer) }.map(|()| timer)
    }

    pub(crate) fn begin(&self, spec: &Spec) -> u64 {
        self.try_start(spec).unwrap()
    }

    pub(crate) fn end(&self, timer: u64) -> Outcome {
        self.cancel(timer).unwrap()
    }

    pub(crate) fn move_to(&self, timer: u64, tick: u64) -> Outcome {
        self.reset_at(timer, tick * TICK).unwrap()
    }

    pub(crate) fn forward(&self, ticks: u64) {
        self.advance(ticks * TICK).unwrap();
    }

    pub(crate) fn turn0(&self) -> usize {
        self.poll(0, 0).unwrap()
    }

    /// Stops the service; answers how many timers came back, each of which is noted in its `Seen`.
    pub(crate) fn halt(&self) -> u64 {
        let mut back = 0;
        let returned = self
            .stop(&mut |_, ctx, _| {
                // SAFETY: as in `note_fire`.
                let seen = unsafe { &*ctx.cast::<Seen>() };
                assert_eq!(seen.returned.fetch_add(1, Ordering::Relaxed), 0, "handed back once");
                assert_eq!(seen.dropped(), 0, "drop comes after");
                back += 1;
            })
            .unwrap();
        assert_eq!(returned, back);
        returned
    }

    /// Nobody is at work: the accounting is exact (F1).
    pub(crate) fn quiet(&self) -> Stats {
        let stats = self.stats(SHARD_ANY).unwrap();
        let ended = stats.ended_by_fire + stats.cancelled + stats.returned;
        assert_eq!(stats.started, ended + stats.pending, "{stats:?}");
        stats
    }
}
