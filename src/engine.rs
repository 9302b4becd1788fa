//! The engine: shards, routing and the clock. What the C ABI and the Rust API are thin layers over are its
//! `operations` on timers, its `queues`, and `driven` and `attach`.
//!
//! Every function can be called from any thread unless it says otherwise, and answers
//! [`Error::Forked`] in a child of the process that started the engine. Shards and handles are raw
//! numbers here; times are nanoseconds on the engine's clock.

use crate::clock::Clock;
use crate::config::{Config, Mode};
use crate::doors::Doors;
use crate::gate::EXCLUSIVE;
use crate::handle::{GENERATION_MASK, Handle};
use crate::queues::OwnedQueue;
use crate::shard::Shard;
use crate::shared::{Shared, WeakShared};
use crate::status::Error;
use crate::stuck::StuckHook;
use crate::sync::{AtomicU32, Ordering, ProcessWide};
use crate::sys::{affinity, barrier, fork, random};
use crate::ticks::NEVER_TICK;
use crate::types::{NEVER, SHARD_ANY};
use crate::worker::Lifecycle;
use std::sync::{Mutex, OnceLock};

/// See the head of this file.
pub struct Engine {
    id: u64,
    pub(crate) me: WeakShared<Engine>,
    mark: fork::Mark,
    mode: Mode,
    pub(crate) clock: Clock,
    pub(crate) shards: Box<[Shard]>,
    homes: AtomicU32,
    pub(crate) doors: Doors,
    pub(crate) lifecycle: Lifecycle,
    /// Queues that are being freed now.
    pub(crate) closing: AtomicU32,
    /// Whom to tell of callbacks that are stuck.
    pub(crate) stuck: OnceLock<StuckHook>,
    /// Queues that have not been freed. Never locked on a hot path.
    pub(crate) queues: Mutex<Vec<OwnedQueue>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("mode", &self.mode)
            .field("shards", &self.shards.len())
            .finish()
    }
}

/// Every engine of the process has its own number, so that what a thread keeps of one that is gone is
/// never taken for that of another at the same address.
static IDS: ProcessWide = ProcessWide::new(1);

impl Engine {
    /// Starts a service.
    ///
    /// # Errors
    /// `Invalid`: a value out of its range. `NoMemory`. `System`: a thread, a pin or a descriptor was
    /// refused; `errno` says why, and nothing is left behind.
    pub fn start(config: Config) -> Result<Shared<Engine>, Error> {
        Engine::start_with(config, GENERATION_MASK + 1)
    }

    /// As `start`, with slots that are retired after so many timers.
    pub(crate) fn start_with(config: Config, uses: u32) -> Result<Shared<Engine>, Error> {
        let cpus = affinity::allowed_cpus().ok_or(Error::NoMemory)?;
        let config = config.checked(cpus.len() as u32)?;
        let engine = Engine::build(&config, uses)?;
        if config.mode == Mode::Threaded {
            engine.start_workers(&config, &cpus)?;
        }
        Ok(engine)
    }

    /// An engine whose threads, if it is to have any, are still to be started.
    pub(crate) fn build(config: &Config, uses: u32) -> Result<Shared<Engine>, Error> {
        barrier::init();
        let mark = fork::mark().map_err(crate::sys::errno::system)?;
        let doors = Doors::new().map_err(crate::sys::errno::system)?;
        let first_generation = random::random_u64() as u32 & GENERATION_MASK;
        let clock = Clock::new(config.clock);
        let now_ns = clock.now();
        let mut shards = Vec::new();
        shards.try_reserve_exact(config.shards as usize).map_err(|_| Error::NoMemory)?;
        for index in 0..config.shards {
            let shard = Shard::new(index, config, mark, now_ns, first_generation, uses);
            shards.push(shard.ok_or(Error::NoMemory)?);
        }
        let shards = shards.into_boxed_slice();
        Shared::new_cyclic(|me| Engine {
            // Relaxed: only uniqueness matters.
            id: IDS.fetch_add(1, Ordering::Relaxed),
            me: me.clone(),
            mark,
            mode: config.mode,
            clock,
            shards,
            homes: AtomicU32::new(0),
            doors,
            lifecycle: Lifecycle::new(),
            closing: AtomicU32::new(0),
            stuck: OnceLock::new(),
            queues: Mutex::new(Vec::new()),
        })
        .ok_or(Error::NoMemory)
    }

    // ---------------------------------------------------------------- routing

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn weak(&self) -> WeakShared<Engine> {
        self.me.clone()
    }

    #[inline]
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A home shard for a thread; each thread gets the next.
    pub(crate) fn next_home(&self) -> u32 {
        self.homes.fetch_add(1, Ordering::Relaxed) % self.shards.len() as u32
    }

    #[inline]
    pub(crate) fn alive(&self) -> Result<(), Error> {
        if self.mark.forked() { Err(Error::Forked) } else { Ok(()) }
    }

    pub(crate) fn driven(&self) -> Result<(), Error> {
        if self.mode == Mode::Driven { Ok(()) } else { Err(Error::Unsupported) }
    }

    #[inline]
    pub(crate) fn shard(&self, index: u32) -> Result<&Shard, Error> {
        self.shards.get(index as usize).ok_or(Error::Invalid)
    }

    /// The shard of a handle. `Invalid` for what no handle of any service can be.
    #[inline]
    pub(crate) fn find(&self, timer: u64) -> Result<(&Shard, Handle), Error> {
        let handle = Handle::unpack(timer);
        if handle.slot == 0 || handle.slot >= crate::handle::SLOT_END {
            return Err(Error::Invalid);
        }
        Ok((self.shard(handle.shard)?, handle))
    }

    /// The shard that a spec names, or that the library chooses.
    #[inline]
    pub(crate) fn route(&self, shard: u32) -> Result<&Shard, Error> {
        if shard != SHARD_ANY {
            return self.shard(shard);
        }
        let home = match self.set() {
            Some(set) => match set.own_shard() {
                Some(own) => return self.shard(own),
                None => set.home(|| self.next_home()),
            },
            None => 0,
        };
        let home = self.shard(home)?;
        if home.gate.is(EXCLUSIVE) {
            self.running()?;
            return self.shards.iter().find(|shard| !shard.gate.is(EXCLUSIVE)).ok_or(Error::Busy);
        }
        Ok(home)
    }

    // ------------------------------------------------------------------ clock

    /// How many shards there are.
    pub fn shard_count(&self) -> u32 {
        self.shards.len() as u32
    }

    /// The engine's clock.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Moves a manual clock on; it stops at [`NEVER`].
    ///
    /// # Errors
    /// `Unsupported` on any other clock, `Forked`.
    pub fn advance(&self, by_ns: u64) -> Result<(), Error> {
        self.alive()?;
        self.clock.advance(by_ns)?;
        // Full: partner of the one in `Alarm::rest`: either this sees what is armed, or the owner the new time.
        barrier::full();
        for shard in &self.shards {
            if shard.alarm.armed() <= shard.ticks.reached(self.clock.now()) {
                shard.alarm.set_descriptor(&self.clock);
            }
        }
        Ok(())
    }

    /// A lower bound of the next instant at which the shard wants a poll; [`NEVER`]: none.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported`, `Stopped`, `Forked`.
    pub fn next(&self, shard: u32) -> Result<u64, Error> {
        self.alive()?;
        self.driven()?;
        let shard = self.shard(shard)?;
        self.running()?;
        let armed = shard.alarm.armed();
        Ok(if armed == NEVER_TICK || shard.is_empty() {
            NEVER
        } else if armed == crate::alarm::AWAKE {
            self.clock.now()
        } else {
            shard.ticks.instant(armed)
        })
    }

    /// A descriptor that is readable when the shard wants a poll.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported`, `Stopped`, `Forked`, `System`.
    pub fn fd(&self, shard: u32) -> Result<i32, Error> {
        self.alive()?;
        self.driven()?;
        let shard = self.shard(shard)?;
        self.running()?;
        shard.alarm.descriptor(&self.clock).map_err(crate::sys::errno::system)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Nobody else is here: whoever stopped it has seen its threads end.
        self.lock_queues().clear();
    }
}
