//! shardwheel, through its C ABI.
//!
//! Every call goes through a pointer to the exported function, so that nothing of it can be
//! inlined into a workload. The functions are those of the library that is linked in, or of any
//! shared library of it: two versions can be compared in one run.

use super::{Clock, Service, Timers};
use shardwheel::capi::*;
use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::null_mut;

type Start = unsafe extern "C" fn(
    *mut sw_service,
    u64,
    sw_callback,
    *mut c_void,
    *mut sw_timer,
) -> sw_status;

/// The exported functions that are used here.
#[derive(Clone, Copy)]
pub struct Api {
    config_init: unsafe extern "C" fn(*mut sw_config),
    service_start: unsafe extern "C" fn(*const sw_config, *mut *mut sw_service) -> sw_status,
    service_free: unsafe extern "C" fn(*mut sw_service) -> sw_status,
    clock_now: unsafe extern "C" fn(*const sw_service) -> u64,
    clock_advance: unsafe extern "C" fn(*mut sw_service, u64) -> sw_status,
    attach: unsafe extern "C" fn(*mut sw_service, u32, u32) -> sw_status,
    poll: unsafe extern "C" fn(*mut sw_service, u32, usize, *mut usize) -> sw_status,
    start: Start,
    start_at: Start,
    start_every: Start,
    cancel: unsafe extern "C" fn(*mut sw_service, sw_timer) -> sw_status,
    reset_at: unsafe extern "C" fn(*mut sw_service, sw_timer, u64) -> sw_status,
}

impl Api {
    /// The library that this program is linked with.
    pub fn linked() -> Api {
        std::hint::black_box(Api {
            config_init: sw_config_init,
            service_start: sw_service_start,
            service_free: sw_service_free,
            clock_now: sw_clock_now,
            clock_advance: sw_clock_advance,
            attach: sw_shard_attach,
            poll: sw_shard_poll,
            start: sw_timer_start,
            start_at: sw_timer_start_at,
            start_every: sw_timer_start_every,
            cancel: sw_timer_cancel,
            reset_at: sw_timer_reset_at,
        })
    }

    /// A shared library, which stays loaded.
    pub fn load(path: &Path) -> Api {
        let file = CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL in a path");
        // SAFETY: the library's initializers are shardwheel's own, which has none.
        let library = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!library.is_null(), "cannot load {}", path.display());
        // SAFETY: exports of these names have had these types since the first release.
        unsafe {
            Api {
                config_init: find(library, c"sw_config_init"),
                service_start: find(library, c"sw_service_start"),
                service_free: find(library, c"sw_service_free"),
                clock_now: find(library, c"sw_clock_now"),
                clock_advance: find(library, c"sw_clock_advance"),
                attach: find(library, c"sw_shard_attach"),
                poll: find(library, c"sw_shard_poll"),
                start: find(library, c"sw_timer_start"),
                start_at: find(library, c"sw_timer_start_at"),
                start_every: find(library, c"sw_timer_start_every"),
                cancel: find(library, c"sw_timer_cancel"),
                reset_at: find(library, c"sw_timer_reset_at"),
            }
        }
    }
}

/// An export of a loaded library.
///
/// # Safety
/// `F` is the export's type of function.
unsafe fn find<F: Copy>(library: *mut c_void, name: &CStr) -> F {
    // SAFETY: the library has been opened.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!found.is_null(), "the library lacks {name:?}");
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: a function of that type lies there, and a pointer to it is as large.
    unsafe { std::mem::transmute_copy(&found) }
}

/// A service and the functions to use it with. Freed when dropped.
pub struct Wheels {
    api: Api,
    service: *mut sw_service,
}

// SAFETY: a service is used from any thread.
unsafe impl Sync for Wheels {}

impl Drop for Wheels {
    fn drop(&mut self) {
        // SAFETY: made by the same library, and nothing borrows it any more.
        unsafe { (self.api.service_free)(self.service) };
    }
}

impl Wheels {
    fn begin(api: Api, mode: sw_mode, clock: sw_clock, shards: u32, tick_ns: u64) -> Wheels {
        let mut service = null_mut();
        // SAFETY: a configuration is plain data, and both outputs can be written.
        let status = unsafe {
            let mut config = std::mem::zeroed::<sw_config>();
            (api.config_init)(&mut config);
            config.mode = mode as u32;
            config.clock = clock as u32;
            config.shards = shards;
            config.tick_ns = tick_ns;
            (api.service_start)(&config, &mut service)
        };
        assert_eq!(status, SW_OK);
        Wheels { api, service }
    }

    /// With a thread for each shard.
    pub fn threaded(api: Api, shards: u32, tick_ns: u64) -> Wheels {
        Wheels::begin(api, SW_MODE_THREADED, SW_CLOCK_MONOTONIC, shards, tick_ns)
    }

    fn now(&self) -> u64 {
        // SAFETY: the service lives.
        unsafe { (self.api.clock_now)(self.service) }
    }

    /// Starts a timer whose handle nobody needs.
    ///
    /// # Safety
    /// `callback` may be called with `ctx` until the timer has fired or the service ends.
    pub unsafe fn start(&self, delay_ns: u64, callback: sw_callback, ctx: *mut c_void) {
        // SAFETY: the caller's promise.
        let status = unsafe { (self.api.start)(self.service, delay_ns, callback, ctx, null_mut()) };
        assert_eq!(status, SW_OK);
    }

    /// Starts a periodic timer.
    ///
    /// # Safety
    /// As `start`, until the service ends.
    pub unsafe fn start_every(&self, period_ns: u64, callback: sw_callback, ctx: *mut c_void) {
        // SAFETY: the caller's promise.
        let status =
            unsafe { (self.api.start_every)(self.service, period_ns, callback, ctx, null_mut()) };
        assert_eq!(status, SW_OK);
    }
}

unsafe extern "C-unwind" fn nothing(_ctx: *mut c_void, _expiry: *const sw_expiry) {}

/// A driven shard that this thread has attached to.
pub struct Driven {
    wheels: Wheels,
    timers: Vec<sw_timer>,
    now: u64,
}

impl Driven {
    /// `how`: `SW_ATTACH_EXCLUSIVE` or `SW_ATTACH_SHARED`.
    pub fn new(api: Api, how: u32, clock: Clock, slots: usize) -> Driven {
        let clock = match clock {
            Clock::Real => SW_CLOCK_MONOTONIC,
            Clock::Manual => SW_CLOCK_MANUAL,
        };
        let wheels = Wheels::begin(api, SW_MODE_DRIVEN, clock, 1, 0);
        // SAFETY: the service lives.
        assert_eq!(unsafe { (api.attach)(wheels.service, 0, how) }, SW_OK);
        let now = wheels.now();
        Driven { wheels, timers: vec![u64::MAX; slots], now }
    }

    fn poll(&mut self) -> u64 {
        let mut fired = 0;
        // SAFETY: the service lives; `fired` can be written.
        unsafe { (self.wheels.api.poll)(self.wheels.service, 0, 0, &mut fired) };
        self.now = self.wheels.now();
        fired as u64
    }
}

impl Timers for Driven {
    const HANDLE: usize = size_of::<sw_timer>();

    #[inline]
    fn start(&mut self, slot: usize, delay_ns: u64) {
        let (api, service) = (&self.wheels.api, self.wheels.service);
        let timer = &mut self.timers[slot];
        // SAFETY: the service lives, `timer` can be written, and the callback needs nothing.
        let status = unsafe {
            (api.start_at)(service, self.now + delay_ns, Some(nothing), null_mut(), timer)
        };
        assert_eq!(status, SW_OK);
    }

    #[inline]
    fn cancel(&mut self, slot: usize) {
        // SAFETY: the service lives.
        unsafe { (self.wheels.api.cancel)(self.wheels.service, self.timers[slot]) };
    }

    #[inline]
    fn push_out(&mut self, slot: usize, delay_ns: u64) {
        let (api, service) = (&self.wheels.api, self.wheels.service);
        // SAFETY: the service lives.
        unsafe { (api.reset_at)(service, self.timers[slot], self.now + delay_ns) };
    }

    fn turn(&mut self) {
        self.poll();
    }

    fn advance(&mut self, by_ns: u64) -> u64 {
        // SAFETY: the service lives.
        assert_eq!(unsafe { (self.wheels.api.clock_advance)(self.wheels.service, by_ns) }, SW_OK);
        self.poll()
    }
}

/// How a thread of a threaded service starts timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// `sw_timer_start`: each call reads the clock.
    Delay,
    /// `sw_timer_start_at`: the thread reads the clock once in a while.
    Deadline,
}

/// A threaded service and how its threads use it.
pub struct Threaded {
    pub wheels: Wheels,
    pub by: By,
}

/// One thread of a threaded service.
pub struct Thread<'a> {
    api: Api,
    service: *mut sw_service,
    by: By,
    timers: Vec<sw_timer>,
    now: u64,
    of: PhantomData<&'a Wheels>,
}

impl Service for Threaded {
    type Local<'a> = Thread<'a>;

    fn local(&self, slots: usize) -> Thread<'_> {
        let Wheels { api, service } = self.wheels;
        let timers = vec![u64::MAX; slots];
        Thread { api, service, by: self.by, timers, now: self.wheels.now(), of: PhantomData }
    }
}

impl Timers for Thread<'_> {
    const HANDLE: usize = size_of::<sw_timer>();

    #[inline]
    fn start(&mut self, slot: usize, delay_ns: u64) {
        let (start, time) = match self.by {
            By::Delay => (self.api.start, delay_ns),
            By::Deadline => (self.api.start_at, self.now + delay_ns),
        };
        let timer = &mut self.timers[slot];
        // SAFETY: the service lives, `timer` can be written, and the callback needs nothing.
        let status = unsafe { start(self.service, time, Some(nothing), null_mut(), timer) };
        assert_eq!(status, SW_OK);
    }

    #[inline]
    fn cancel(&mut self, slot: usize) {
        // SAFETY: the service lives.
        unsafe { (self.api.cancel)(self.service, self.timers[slot]) };
    }

    #[inline]
    fn push_out(&mut self, slot: usize, delay_ns: u64) {
        // SAFETY: the service lives.
        unsafe { (self.api.reset_at)(self.service, self.timers[slot], self.now + delay_ns) };
    }

    fn turn(&mut self) {
        // SAFETY: the service lives.
        self.now = unsafe { (self.api.clock_now)(self.service) };
    }

    fn advance(&mut self, _by_ns: u64) -> u64 {
        unreachable!("its clock is the machine's")
    }
}
