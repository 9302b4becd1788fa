//! What a service of the Rust API keeps beside its engine: the host's hooks, the count of panics,
//! and on each thread which service's code it runs.
//!
//! Ground rules: whoever can reach the engine holds the `Host` too, and a service that cannot be
//! stopped is never let go of. So the `Host` outlives every closure and hook that the engine may
//! still call or drop, and they name it by address alone.

use crate::queue::QueueInner;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Time;
use crate::timer::Timer;
use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Told of a shard as its thread begins or ends.
pub(crate) type OnThread = Box<dyn Fn(u32) + Send + Sync>;
/// Told of a slow callback.
pub(crate) type OnSlow = Box<dyn Fn(&SlowCallback) + Send + Sync>;

/// A callback that took longer than the service's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowCallback {
    /// The shard that it held up.
    pub shard: u32,
    /// Whose callback it was.
    pub timer: Timer,
    /// How long it took, in real time whatever the service's clock.
    pub elapsed: Duration,
}

/// A queue that could not be freed yet.
struct Left(*const QueueInner);

// SAFETY: an address; what may be done with it is said where it is used.
unsafe impl Send for Left {}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) on_thread_start: Option<OnThread>,
    pub(crate) on_thread_stop: Option<OnThread>,
    pub(crate) on_slow: Option<OnSlow>,
    pub(crate) on_stuck: Option<OnSlow>,
    panics: AtomicU64,
    left: Mutex<Vec<Left>>,
}

thread_local! {
    /// The service whose callbacks this thread runs now, or null. Without a destructor, so that it
    /// can be read at any time of a thread's life.
    static CURRENT: Cell<*const Host> = const { Cell::new(ptr::null()) };
}

impl Host {
    /// Runs code of the host's. A panic is counted and goes no further.
    #[inline]
    pub(crate) fn guard(&self, code: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
            self.panicked(payload);
        }
    }

    #[cold]
    fn panicked(&self, payload: Box<dyn Any + Send>) {
        // Relaxed: a count, which orders nothing.
        self.panics.fetch_add(1, Ordering::Relaxed);
        discard(payload);
    }

    /// How many panics have been caught.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Does the calling thread run this service's callbacks?
    pub(crate) fn is_current(&self) -> bool {
        ptr::eq(CURRENT.get(), self)
    }

    /// Notes a queue that is to be freed later. Without memory for the note it goes with its engine.
    pub(crate) fn leave(&self, queue: *const QueueInner) {
        let mut left = self.lock_left();
        if left.try_reserve(1).is_ok() {
            left.push(Left(queue));
        }
    }

    /// The queues that are to be freed, which the caller sees to now.
    pub(crate) fn take_left(&self) -> impl Iterator<Item = *const QueueInner> + use<> {
        std::mem::take(&mut *self.lock_left()).into_iter().map(|left| left.0)
    }

    fn lock_left(&self) -> MutexGuard<'_, Vec<Left>> {
        self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// As `Host::guard`, for code that does not know its service.
#[inline]
pub(crate) fn guard_current(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        // SAFETY: set to a host by the thread that runs its callbacks, which outlives that.
        match unsafe { CURRENT.get().as_ref() } {
            Some(host) => host.panicked(payload),
            None => discard(payload),
        }
    }
}

/// Drops what a panic carried. That may panic too; what the second panic carries is leaked, as
/// there need be no end to it.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

/// While it lives, the thread runs a service's callbacks.
pub(crate) struct Running {
    before: *const Host,
}

impl Running {
    pub(crate) fn begin(host: &Host) -> Running {
        Running { before: CURRENT.replace(ptr::from_ref(host)) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Hook: a shard's thread begins. It runs this service's callbacks from now until it ends.
///
/// # Safety
/// `arg` is the service's `Host`, which outlives the thread. This goes for the two below as well.
pub(crate) unsafe extern "C-unwind" fn thread_start(arg: *mut c_void, shard: u32) {
    CURRENT.set(arg.cast_const().cast());
    // SAFETY: the caller's promise.
    let host = unsafe { &*arg.cast_const().cast::<Host>() };
    if let Some(hook) = &host.on_thread_start {
        host.guard(|| hook(shard));
    }
}

/// Hook: a shard's thread ends.
///
/// # Safety
/// As `thread_start`.
pub(crate) unsafe extern "C-unwind" fn thread_stop(arg: *mut c_void, shard: u32) {
    // SAFETY: the caller's promise.
    let host = unsafe { &*arg.cast_const().cast::<Host>() };
    if let Some(hook) = &host.on_thread_stop {
        host.guard(|| hook(shard));
    }
}

/// Hook: a callback took long.
///
/// # Safety
/// As `thread_start`.
pub(crate) unsafe extern "C-unwind" fn slow_callback(
    arg: *mut c_void,
    shard: u32,
    timer: u64,
    _ctx: *mut c_void,
    elapsed_ns: u64,
) {
    // SAFETY: the caller's promise.
    let host = unsafe { &*arg.cast_const().cast::<Host>() };
    if let (Some(hook), Some(timer)) = (&host.on_slow, Timer::from_bits(timer)) {
        let elapsed = Time::from_nanos(elapsed_ns).since(Time::ZERO);
        host.guard(|| hook(&SlowCallback { shard, timer, elapsed }));
    }
}

/// The hook for callbacks that still run.
///
/// # Safety
/// `arg` points to a `Host`.
pub(crate) unsafe extern "C-unwind" fn stuck_callback(
    arg: *mut c_void,
    shard: u32,
    timer: u64,
    elapsed_ns: u64,
) {
    // SAFETY: the caller's promise.
    let host = unsafe { &*arg.cast_const().cast::<Host>() };
    if let (Some(hook), Some(timer)) = (&host.on_stuck, Timer::from_bits(timer)) {
        let elapsed = Time::from_nanos(elapsed_ns).since(Time::ZERO);
        host.guard(|| hook(&SlowCallback { shard, timer, elapsed }));
    }
}
