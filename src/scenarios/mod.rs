//! Scenarios: whole services with more threads, shards and timers than a model can hold, under shuttle.
//!
//! Ground rules:
//! - `RUSTFLAGS="--cfg loom --cfg shuttle"`, with `.ci/shuttle/Cargo.toml`. A scenario runs the code that ships,
//!   through `crate::sync`, in the sizes of the models. Shuttle runs its threads one at a time and changes
//!   over at each atomic operation; it picks at random or by PCT (probabilistic concurrency testing:
//!   random priorities that change at a few random points, which finds a fault that needs few changes with a
//!   known least probability). Memory is sequentially consistent here: orderings are the models' business.
//! - The clock is manual, and a futex never times out. So a thread of a service that sleeps gets up
//!   because someone rang, or never: a lost wake-up is a deadlock, which shuttle reports. `forward` moves the
//!   clock and rings, as the kernel would.
//! - Each timer has a `Life`, in which everything that becomes of it is noted. At the end each has ended
//!   in exactly one way, its drop has run once, and the service's accounts say the same (F1).
//! - `SHARDWHEEL_SCHEDULES`: how many schedules each scenario is run in, under each of the two schedulers. A
//!   failure prints the schedule; `shuttle::replay` runs it again.
//!
//! What they were seen to find, put in by hand, is in the doc of each.

mod driven;
mod threaded;

use crate::config::{ClockKind, Config, Mode};
use crate::engine::Engine;
use crate::handle::GENERATION_MASK;
use crate::shared::Shared;
use crate::status::{Error, Outcome};
use crate::threads;
use crate::types::{Expiry, SHARD_ANY, Spec};
use crate::worker::work;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread::{self, JoinHandle};
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Nanoseconds of a tick.
const TICK: u64 = 1_000;

/// Runs a scenario under both schedulers.
fn explore(body: fn()) {
    let wanted = std::env::var("SHARDWHEEL_SCHEDULES").ok();
    let schedules = wanted.map_or(3_000, |count| count.parse().expect("a number"));
    run(RandomScheduler::new(schedules), body);
    run(PctScheduler::new(3, schedules), body);
}

fn run(scheduler: impl Scheduler + 'static, body: fn()) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 18;
    shuttle::Runner::new(scheduler, config).run(body);
}

/// What has become of a timer.
#[derive(Debug, Default)]
pub(crate) struct Life {
    pub(crate) fired: AtomicU32,
    pub(crate) cancelled: AtomicU32,
    pub(crate) returned: AtomicU32,
    /// Taken from a queue, and its ctx with it.
    pub(crate) taken: AtomicU32,
    pub(crate) dropped: AtomicU32,
    pub(crate) handle: AtomicU64,
    /// Another timer, for its callback.
    pub(crate) peer: AtomicU64,
    /// What its callback does.
    act: Option<fn(&Service, &Life, u64)>,
    service: AtomicPtr<Service>,
}

fn count(counter: &AtomicU32) -> u32 {
    counter.load(Ordering::SeqCst)
}

fn bump(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C-unwind" fn on_expiry(ctx: *mut c_void, expiry: *const Expiry) {
    // SAFETY: ctx is a `Life` that its scenario keeps, with its service; the expiry is the library's.
    let (life, expiry) = unsafe { (&*ctx.cast::<Life>(), &*expiry) };
    assert_eq!(count(&life.dropped), 0, "no callback after drop");
    assert!(expiry.deadline_ns <= expiry.now_ns, "never early");
    bump(&life.fired);
    if let Some(act) = life.act {
        // SAFETY: as above.
        act(unsafe { &*life.service.load(Ordering::SeqCst) }, life, expiry.timer);
    }
}

unsafe extern "C-unwind" fn on_drop(ctx: *mut c_void) {
    // SAFETY: as above.
    let life = unsafe { &*ctx.cast::<Life>() };
    bump(&life.dropped);
    assert_eq!(count(&life.dropped), 1, "drop runs once");
}

/// A service, and the lives of its timers.
pub(crate) struct Service {
    engine: Shared<Engine>,
    lives: std::sync::Mutex<Vec<Arc<Life>>>,
    /// Timers that were started.
    started: AtomicU64,
    /// Timers that were due and cancelled before they were called.
    won: AtomicU64,
}

impl Deref for Service {
    type Target = Shared<Engine>;

    fn deref(&self) -> &Shared<Engine> {
        &self.engine
    }
}

impl Service {
    fn new(mode: Mode, shards: u32, max_timers: u64) -> Arc<Service> {
        let config = Config {
            mode,
            clock: ClockKind::Manual,
            shards,
            tick_ns: TICK,
            max_timers,
            ..Config::default()
        };
        let engine = Engine::build(&config, GENERATION_MASK + 1).unwrap();
        Arc::new(Service {
            engine,
            lives: Default::default(),
            started: AtomicU64::new(0),
            won: AtomicU64::new(0),
        })
    }

    /// The threads of a threaded service.
    fn workers(self: &Arc<Self>) -> Vec<JoinHandle<()>> {
        (0..self.shard_count())
            .map(|shard| self.thread(move |service| work(&service.engine, shard, None)))
            .collect()
    }

    /// A thread, which has left the service when it is joined.
    fn thread(self: &Arc<Self>, f: impl FnOnce(&Arc<Service>) + Send + 'static) -> JoinHandle<()> {
        let service = self.clone();
        thread::spawn(move || {
            f(&service);
            threads::leave(false);
        })
    }

    /// A thread that lives on, as far as the service can tell: what it holds stays its own.
    fn resident(
        self: &Arc<Self>,
        f: impl FnOnce(&Arc<Service>) + Send + 'static,
    ) -> JoinHandle<()> {
        let service = self.clone();
        thread::spawn(move || {
            f(&service);
            threads::leave(true);
        })
    }

    /// Starts a timer.
    fn start(
        &self,
        spec: Spec,
        act: Option<fn(&Service, &Life, u64)>,
    ) -> Result<(u64, Arc<Life>), Error> {
        let life = Arc::new(Life { act, ..Life::default() });
        life.service.store(std::ptr::from_ref(self).cast_mut(), Ordering::SeqCst);
        self.lives.lock().unwrap().push(life.clone());
        let spec = Spec {
            callback: if spec.queue.is_null() { Some(on_expiry) } else { None },
            ctx: Arc::as_ptr(&life).cast_mut().cast(),
            drop: Some(on_drop),
            ..spec
        };
        let mut timer = 0;
        // SAFETY: the functions are this module's; the scenario keeps the life, its service and its queue.
        match unsafe { self.arm(&spec, &mut timer) } {
            Ok(()) => {
                life.handle.store(timer, Ordering::SeqCst);
                self.started.fetch_add(1, Ordering::SeqCst);
                Ok((timer, life))
            }
            Err(error) => {
                assert_eq!(count(&life.dropped), 1, "the drop of a refused start has run");
                self.lives.lock().unwrap().retain(|other| !Arc::ptr_eq(other, &life));
                Err(error)
            }
        }
    }

    /// Cancels, and notes it.
    fn end(&self, timer: u64, life: &Life, wait: bool) -> Result<Outcome, Error> {
        let outcome = if wait { self.cancel_wait(timer) } else { self.cancel(timer) };
        if outcome == Ok(Outcome::Done) {
            bump(&life.cancelled);
            assert_eq!(count(&life.dropped), 1, "a cancel that won has dropped");
        }
        if wait && matches!(outcome, Ok(Outcome::Running | Outcome::NotFound)) {
            assert_eq!(count(&life.dropped) + count(&life.taken), 1, "all is over after a wait");
        }
        outcome
    }

    /// Moves the clock on; whoever sleeps gets up, as by the kernel.
    fn forward(&self, ticks: u64) {
        self.advance(ticks * TICK).unwrap();
        let why = crate::tally::Woken::Deadline;
        self.shards().iter().for_each(|shard| shard.alarm.ring(why, self.clock()));
    }

    fn halt(&self) -> Result<u64, Error> {
        self.stop(&mut |_, ctx, _| {
            // SAFETY: as in `on_expiry`.
            bump(unsafe { &(*ctx.cast::<Life>()).returned });
        })
    }

    /// All is over: each timer has ended in one way, and the accounts say the same.
    fn judge(&self) {
        let (mut fired, mut cancelled, mut returned) = (0, 0, 0);
        for life in self.lives.lock().unwrap().iter() {
            let ways = [&life.fired, &life.cancelled, &life.returned, &life.taken].map(count);
            assert_eq!(ways.iter().sum::<u32>(), 1, "it ends in one way: {life:?}");
            assert_eq!(count(&life.dropped) + count(&life.taken), 1, "drop runs once: {life:?}");
            fired += u64::from(ways[0] + ways[3]);
            cancelled += u64::from(ways[1]);
            returned += u64::from(ways[2]);
        }
        let stats = self.stats(SHARD_ANY).unwrap();
        assert_eq!(stats.started, self.started.load(Ordering::SeqCst));
        let ended = (stats.ended_by_fire, stats.cancelled, stats.returned, stats.pending);
        assert_eq!(ended, (fired, cancelled, returned, 0));
    }
}

/// A one-shot at this tick.
fn at(tick: u64, shard: u32) -> Spec {
    Spec { delay_ns: tick * TICK, flags: crate::types::TIMER_ABSOLUTE, shard, ..Spec::default() }
}
