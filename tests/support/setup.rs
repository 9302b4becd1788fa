//! A service: asked for, running, and checked as it ends.

use super::timer::guard;
use super::watch::{Watch, keep};
use super::*;
use std::ffi::{CString, c_void};
use std::ops::Deref;

type OnThread = Box<dyn Fn(u32) + Send + Sync>;
type OnSlow = Box<dyn Fn(u32, sw_timer, Ptr, u64) + Send + Sync>;

struct Hooks {
    start: Option<OnThread>,
    stop: Option<OnThread>,
    slow: Option<OnSlow>,
    watch: &'static Watch,
}

/// A `sw_config` being filled in, and closures as its hooks.
pub struct Setup {
    config: sw_config,
    cpus: Vec<u32>,
    name: Option<CString>,
    hooks: Hooks,
}

impl Setup {
    /// What `sw_config_init` gives.
    pub fn new() -> Setup {
        let mut config = std::mem::MaybeUninit::<sw_config>::uninit();
        // SAFETY: `config` is writable; init fills in all of it.
        let config = unsafe {
            sw_config_init(config.as_mut_ptr());
            config.assume_init()
        };
        let hooks = Hooks { start: None, stop: None, slow: None, watch: Watch::new() };
        Setup { config, cpus: Vec::new(), name: None, hooks }
    }

    /// One driven shard on a manual clock.
    pub fn manual(tick_ns: u64) -> Setup {
        Setup::driven().tick(tick_ns).with(|config| config.clock = SW_CLOCK_MANUAL as u32)
    }

    /// One driven shard on the monotonic clock.
    pub fn driven() -> Setup {
        Setup::new().shards(1).with(|config| config.mode = SW_MODE_DRIVEN as u32)
    }

    /// So many shards with threads of their own.
    pub fn threaded(shards: u32) -> Setup {
        Setup::new().shards(shards)
    }

    /// Whether it asks for the manual clock.
    pub fn is_manual(&self) -> bool {
        self.config.clock == SW_CLOCK_MANUAL as u32
    }

    pub fn shards(self, shards: u32) -> Setup {
        self.with(|config| config.shards = shards)
    }

    pub fn tick(self, tick_ns: u64) -> Setup {
        self.with(|config| config.tick_ns = tick_ns)
    }

    pub fn max_timers(self, max_timers: u64) -> Setup {
        self.with(|config| config.max_timers = max_timers)
    }

    pub fn pin_none(self) -> Setup {
        self.with(|config| config.pinning = SW_PIN_NONE as u32)
    }

    pub fn pin_list(mut self, cpus: &[u32]) -> Setup {
        self.cpus = cpus.to_vec();
        self.with(|config| config.pinning = SW_PIN_LIST as u32)
    }

    pub fn name(mut self, prefix: &str) -> Setup {
        self.name = Some(CString::new(prefix).unwrap());
        self
    }

    pub fn on_thread_start(mut self, call: impl Fn(u32) + Send + Sync + 'static) -> Setup {
        self.hooks.start = Some(Box::new(call));
        self
    }

    pub fn on_thread_stop(mut self, call: impl Fn(u32) + Send + Sync + 'static) -> Setup {
        self.hooks.stop = Some(Box::new(call));
        self
    }

    /// Reports callbacks longer than `limit_ns`: shard, timer, context, elapsed nanoseconds.
    pub fn on_slow(
        mut self,
        limit_ns: u64,
        call: impl Fn(u32, sw_timer, Ptr, u64) + Send + Sync + 'static,
    ) -> Setup {
        self.hooks.slow = Some(Box::new(call));
        self.with(|config| config.slow_callback_ns = limit_ns)
    }

    /// Anything else.
    pub fn with(mut self, edit: impl FnOnce(&mut sw_config)) -> Setup {
        edit(&mut self.config);
        self
    }

    #[track_caller]
    pub fn start(self) -> Svc {
        match self.try_start() {
            Ok(svc) => svc,
            Err(status) => panic!("sw_service_start: {status:?}"),
        }
    }

    pub fn try_start(mut self) -> Result<Svc, sw_status> {
        let watch = self.hooks.watch;
        if !self.cpus.is_empty() {
            self.config.cpus = self.cpus.as_ptr();
            self.config.cpu_count = self.cpus.len();
        }
        if let Some(name) = &self.name {
            self.config.thread_name = name.as_ptr();
        }
        if self.hooks.start.is_some() {
            self.config.on_thread_start = Some(thread_start);
        }
        if self.hooks.stop.is_some() {
            self.config.on_thread_stop = Some(thread_stop);
        }
        if self.hooks.slow.is_some() {
            self.config.on_slow_callback = Some(slow_callback);
        }
        self.config.hook_arg = std::ptr::from_ref(keep(self.hooks)).cast_mut().cast();
        let mut raw = std::ptr::null_mut();
        // SAFETY: the config and what it points to are alive during the call; hooks for ever.
        let status = unsafe { sw_service_start(&self.config, &mut raw) };
        if status != SW_OK {
            return Err(status);
        }
        assert!(!raw.is_null());
        Ok(Svc { door: Door::new(raw, watch) })
    }
}

// SAFETY of the three: `arg` is what `try_start` gave, kept until the process ends.
#[allow(clippy::undocumented_unsafe_blocks)]
unsafe extern "C-unwind" fn thread_start(arg: *mut c_void, shard: u32) {
    let hooks = unsafe { &*arg.cast_const().cast::<Hooks>() };
    guard(hooks.watch, || hooks.start.as_ref().unwrap()(shard));
}

#[allow(clippy::undocumented_unsafe_blocks)]
unsafe extern "C-unwind" fn thread_stop(arg: *mut c_void, shard: u32) {
    let hooks = unsafe { &*arg.cast_const().cast::<Hooks>() };
    guard(hooks.watch, || hooks.stop.as_ref().unwrap()(shard));
}

#[allow(clippy::undocumented_unsafe_blocks)]
unsafe extern "C-unwind" fn slow_callback(
    arg: *mut c_void,
    shard: u32,
    timer: sw_timer,
    ctx: *mut c_void,
    elapsed_ns: u64,
) {
    let hooks = unsafe { &*arg.cast_const().cast::<Hooks>() };
    guard(hooks.watch, || hooks.slow.as_ref().unwrap()(shard, timer, Ptr(ctx), elapsed_ns));
}

/// A running service; see the top of `mod.rs` for what its end checks.
pub struct Svc {
    door: Door,
}

impl Deref for Svc {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}

impl Svc {
    /// The calls alone, for closures and threads.
    pub fn door(&self) -> Door {
        self.door
    }

    fn balance(&self, when: &str) {
        let stats = self.stats();
        let ended = stats.ended_by_fire + stats.cancelled + stats.returned;
        assert_eq!(stats.started, ended + stats.pending, "F1 {when}: {stats:?}");
    }
}

impl Drop for Svc {
    fn drop(&mut self) {
        // No second panic on top of a failed test; the service still has to go.
        if std::thread::panicking() {
            // SAFETY: the last use.
            unsafe { sw_service_free(self.raw()) };
            return;
        }
        assert_eq!(self.stop(), SW_OK, "stop at the end of the test");
        assert_eq!(self.pending(), 0, "something is pending after stop");
        self.balance("after stop");
        // SAFETY: the last use.
        assert_eq!(unsafe { sw_service_free(self.raw()) }, SW_OK);
        self.watch().verdict();
    }
}
