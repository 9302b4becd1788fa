//! A context that counts and records its expiries. One log may serve any number of timers.

use super::watch::{Ptr, keep};
use super::*;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;

/// One expiry, as the callback was told of it.
#[derive(Clone, Copy, Debug)]
pub struct Fire {
    pub timer: sw_timer,
    pub deadline: u64,
    pub now: u64,
    pub missed: u64,
    /// The thread that the callback ran on.
    pub thread: ThreadId,
    /// 0, 1, 2 … over all logs of the process, in the order in which the callbacks began.
    pub seq: u64,
}

struct Inner {
    keeping: bool,
    fires: Mutex<Vec<Fire>>,
    fired: AtomicU64,
    missed: AtomicU64,
    dropped: AtomicU64,
    unlike: AtomicBool,
}

/// See the module. `Copy`: it lives until the process ends.
#[derive(Clone, Copy)]
pub struct Log(&'static Inner);

impl Log {
    /// A log that keeps each expiry.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Log {
        Log::of(true)
    }

    /// A log that only counts, for millions of expiries.
    pub fn counting() -> Log {
        Log::of(false)
    }

    fn of(keeping: bool) -> Log {
        Log(keep(Inner {
            keeping,
            fires: Mutex::default(),
            fired: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            unlike: AtomicBool::new(false),
        }))
    }

    /// Callbacks so far.
    pub fn count(self) -> u64 {
        self.check();
        self.0.fired.load(Ordering::SeqCst)
    }

    /// Sum of `missed` over all callbacks.
    pub fn missed(self) -> u64 {
        self.0.missed.load(Ordering::SeqCst)
    }

    /// Drops so far.
    pub fn dropped(self) -> u64 {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// What has been recorded so far, in order.
    pub fn fires(self) -> Vec<Fire> {
        self.check();
        self.0.fires.lock().unwrap().clone()
    }

    /// Takes what has been recorded so far. Counts stay.
    pub fn take(self) -> Vec<Fire> {
        self.check();
        std::mem::take(&mut *self.0.fires.lock().unwrap())
    }

    /// The timers recorded so far, in order.
    pub fn timers(self) -> Vec<sw_timer> {
        self.fires().iter().map(|fire| fire.timer).collect()
    }

    /// The deadlines recorded so far, in order.
    pub fn deadlines(self) -> Vec<u64> {
        self.fires().iter().map(|fire| fire.deadline).collect()
    }

    /// The last one recorded.
    pub fn last(self) -> Fire {
        *self.fires().last().expect("nothing has fired")
    }

    /// The context to give to C.
    pub fn ctx(self) -> *mut c_void {
        std::ptr::from_ref(self.0).cast_mut().cast()
    }

    /// Whether a context that came back from C is this log.
    pub fn is(self, ctx: Ptr) -> bool {
        self.ctx() == ctx.0
    }

    fn check(self) {
        let early = self.0.unlike.load(Ordering::SeqCst);
        assert!(!early, "T1: a callback was told of a deadline after now");
    }

    fn record(self, expiry: &sw_expiry) {
        static SEQ: AtomicU64 = AtomicU64::new(0);
        if expiry.now_ns < expiry.deadline_ns {
            self.0.unlike.store(true, Ordering::SeqCst);
        }
        if self.0.keeping {
            let mut fires = self.0.fires.lock().unwrap();
            fires.push(Fire {
                timer: expiry.timer,
                deadline: expiry.deadline_ns,
                now: expiry.now_ns,
                missed: expiry.missed,
                thread: std::thread::current().id(),
                seq: SEQ.fetch_add(1, Ordering::SeqCst),
            });
        }
        self.0.missed.fetch_add(expiry.missed, Ordering::SeqCst);
        self.0.fired.fetch_add(1, Ordering::SeqCst);
    }

    /// The callback that goes with [`Log::ctx`].
    ///
    /// # Safety
    /// `ctx` is a log's, `expiry` is readable.
    pub unsafe extern "C-unwind" fn callback(ctx: *mut c_void, expiry: *const sw_expiry) {
        // SAFETY: by contract of this function; logs live until the process ends.
        let (inner, expiry) = unsafe { (&*ctx.cast_const().cast::<Inner>(), &*expiry) };
        Log(inner).record(expiry);
    }

    /// The drop that goes with [`Log::ctx`].
    ///
    /// # Safety
    /// `ctx` is a log's.
    pub unsafe extern "C-unwind" fn drop(ctx: *mut c_void) {
        // SAFETY: by contract of this function; logs live until the process ends.
        let inner = unsafe { &*ctx.cast_const().cast::<Inner>() };
        inner.dropped.fetch_add(1, Ordering::SeqCst);
    }
}
