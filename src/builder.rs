//! What a service of the Rust API is asked to be.

use crate::config::{ClockKind, Config, Hooks, Mode, Pinning};
use crate::engine::Engine;
use crate::host::{self, Host, SlowCallback};
use crate::service::Service;
use crate::shared::Shared;
use crate::status::Error;
use crate::sys::memory::boxed;
use crate::time::nanos;
use crate::timers::Timers;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A service in the making; from [`Service::builder`] to [`Builder::build`].
///
/// ```
/// use shardwheel::Service;
/// use std::time::Duration;
///
/// let service = Service::builder()
///     .shards(2)
///     .tick(Duration::from_micros(100))
///     .max_timers(1_000_000)
///     .thread_name("timeouts")
///     .on_thread_start(|shard| println!("shard {shard} is here"))
///     .slow_callback(Duration::from_millis(5), |slow| eprintln!("{slow:?}"))
///     .build()?;
/// assert_eq!(service.shard_count(), 2);
/// # Ok::<(), shardwheel::Error>(())
/// ```
#[derive(Default)]
#[must_use = "nothing is started yet"]
pub struct Builder {
    config: Config,
    host: Host,
    /// There was no memory for one of its closures.
    starved: bool,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Builder {
    /// How many shards, 1 to 256. Default, and 0: one for each CPU that the process may use.
    pub fn shards(mut self, shards: u32) -> Self {
        self.config.shards = shards;
        self
    }

    /// The granularity, 1 µs to 1 h: a timer comes at its deadline's tick, never before its
    /// deadline, and less than a tick after it. Default, and zero: 1 ms.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.config.tick_ns = nanos(tick);
        self
    }

    /// Live timers in each shard, at most 2²⁸. Default, and 0: 2²⁴.
    pub fn max_timers(mut self, max_timers: u64) -> Self {
        self.config.max_timers = max_timers;
        self
    }

    /// Shard `i` runs on the `i`-th of these CPUs (modulo their number, which is not 0). A CPU that
    /// the system refuses is an error of `build`. Default: on the `i`-th of the CPUs that the
    /// process may use. No effect on a driven service.
    pub fn pin_to(mut self, cpus: impl IntoIterator<Item = u32>) -> Self {
        self.config.pinning = Pinning::List(cpus.into_iter().collect());
        self
    }

    /// The system places the shards' threads as it likes.
    pub fn unpinned(mut self) -> Self {
        self.config.pinning = Pinning::None;
        self
    }

    /// The threads are called `<prefix>-<shard>`, cut to 15 bytes. Default: "wheel".
    pub fn thread_name(mut self, prefix: impl Into<String>) -> Self {
        self.config.thread_name = Cow::Owned(prefix.into());
        self
    }

    /// No threads: the host's own poll the shards; see [`Shard`](crate::Shard).
    pub fn driven(mut self) -> Self {
        self.config.mode = Mode::Driven;
        self
    }

    /// A clock that goes on while the machine is suspended (`CLOCK_BOOTTIME`). Default: one
    /// that stands still then (`CLOCK_MONOTONIC`).
    pub fn boottime(mut self) -> Self {
        self.config.clock = ClockKind::Boottime;
        self
    }

    /// A clock that starts at 0 and is moved by [`Timers::advance`] alone: for tests and
    /// simulations. Only for a driven service.
    pub fn manual_clock(mut self) -> Self {
        self.config.clock = ClockKind::Manual;
        self
    }

    /// Callbacks that take longer than `limit`, in real time, are counted, and told to `told`: on
    /// the shard's thread, after the callback and before its closure is dropped. A limit of zero:
    /// none are, which is the default and saves two readings of the clock a callback.
    pub fn slow_callback(
        mut self,
        limit: Duration,
        told: impl Fn(&SlowCallback) + Send + Sync + 'static,
    ) -> Self {
        self.config.slow_callback_ns = nanos(limit);
        let kept = self.kept(told);
        self.host.on_slow = kept.map(|kept| kept as _);
        self
    }

    /// Calls `told` of each callback that still runs after the limit of [`Builder::slow_callback`],
    /// once, on the thread that finds it. No thread is made for it. Who looks: the service's own
    /// threads, at the other shards, before they sleep; a thread that polls, after its poll; and every
    /// thread that reads statistics. When it is called the callback may just have ended. Without
    /// [`Builder::slow_callback`] there is no limit, and the service is refused.
    pub fn stuck_callback(mut self, told: impl Fn(&SlowCallback) + Send + Sync + 'static) -> Self {
        let kept = self.kept(told);
        self.host.on_stuck = kept.map(|kept| kept as _);
        self
    }

    /// Runs on each shard's thread as it begins, after it is pinned and named, with the shard's
    /// index. Not in a driven service.
    pub fn on_thread_start(mut self, hook: impl Fn(u32) + Send + Sync + 'static) -> Self {
        let kept = self.kept(hook);
        self.host.on_thread_start = kept.map(|kept| kept as _);
        self
    }

    /// Runs on each shard's thread as it ends. Not in a driven service.
    pub fn on_thread_stop(mut self, hook: impl Fn(u32) + Send + Sync + 'static) -> Self {
        let kept = self.kept(hook);
        self.host.on_thread_stop = kept.map(|kept| kept as _);
        self
    }

    /// A closure on the heap. Without memory for it `build` will say so.
    fn kept<F>(&mut self, closure: F) -> Option<Box<F>> {
        let kept = boxed(closure);
        self.starved |= kept.is_none();
        kept
    }

    /// Starts the service.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a value out of its range, an empty list of CPUs, a NUL in the name, or a
    /// manual clock without `driven`. [`Error::NoMemory`]. [`Error::System`]: no thread, no
    /// descriptor, or a CPU that cannot be pinned to; [`std::io::Error::last_os_error`] says why.
    pub fn build(self) -> Result<Service, Error> {
        let Builder { mut config, host, starved } = self;
        let host = if starved { None } else { Shared::new_cyclic(|_| host) };
        let host = host.ok_or(Error::NoMemory)?;
        config.hooks = Hooks {
            arg: std::ptr::from_ref(&*host).cast_mut().cast(),
            on_thread_start: Some(host::thread_start),
            on_thread_stop: Some(host::thread_stop),
            on_slow_callback: Some(host::slow_callback),
        };
        let engine = Engine::start(config)?;
        let service = Service::of(Timers { engine, host });
        if service.host.on_stuck.is_some() {
            let arg = std::ptr::from_ref(&*service.host).cast_mut().cast();
            // SAFETY: the host outlives every call on the engine; see `Host`.
            unsafe { service.engine.on_stuck(host::stuck_callback, arg) }?;
        }
        Ok(service)
    }
}
