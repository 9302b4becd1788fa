//! Rust code as a timer's callback.
//!
//! Ground rules: a closure travels in a box, whose address is the timer's `ctx` and whose release
//! is the timer's `drop`; the engine calls `run` on one thread at a time, and `release` once, after
//! the last run. A plain function travels as no more than its type, and `ctx` is the token. No
//! panic leaves any of the functions here: beyond them lies a frame that nothing unwinds through.

use crate::host::{Host, guard_current};
use crate::status::Error;
use crate::sys::memory::boxed;
use crate::timer::Expiry;
use crate::types::{self, Callback, DropFn, Spec};
use std::ffi::c_void;
use std::ptr::{NonNull, without_provenance_mut};

/// What the engine is given of a piece of Rust code.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    callback: Callback,
    ctx: *mut c_void,
    drop: Option<DropFn>,
}

impl Call {
    /// The same spec with this to be called.
    pub(crate) fn put_in(self, spec: Spec) -> Spec {
        Spec { callback: Some(self.callback), ctx: self.ctx, drop: self.drop, ..spec }
    }
}

/// What is in the box.
struct Job<F> {
    host: NonNull<Host>,
    f: F,
}

/// A closure that may be called any number of times. The engine has to get what this returns, or
/// the closure is leaked. Without memory for it, it is dropped.
pub(crate) fn repeated<F>(host: &Host, f: F) -> Result<Call, Error>
where
    F: FnMut(&Expiry) + Send + 'static,
{
    let host = NonNull::from(host);
    let job = Box::into_raw(boxed(Job { host, f }).ok_or(Error::NoMemory)?);
    Ok(Call { callback: run::<F>, ctx: job.cast(), drop: Some(release::<F>) })
}

/// A closure that is called once. Should its timer be armed again, that run does nothing.
pub(crate) fn once<F>(host: &Host, f: F) -> Result<Call, Error>
where
    F: FnOnce(&Expiry) + Send + 'static,
{
    let mut f = Some(f);
    repeated(host, move |expiry| {
        if let Some(f) = f.take() {
            f(expiry);
        }
    })
}

/// A function, or a closure without captures, and its token. Nothing is allocated.
pub(crate) fn plain<F>(f: F, token: u64) -> Call
where
    F: Fn(u64, &Expiry) + Copy + Send + 'static,
{
    const {
        assert!(size_of::<F>() == 0, "a function itself, not a pointer to one; nothing captured");
    }
    let _ = f;
    Call { callback: run_plain::<F>, ctx: of_token(token), drop: None }
}

/// A token as the engine carries it.
pub(crate) fn of_token(token: u64) -> *mut c_void {
    without_provenance_mut(token as usize)
}

/// Runs a closure.
///
/// # Safety
/// `ctx` is what `repeated` made for this `F`, and this is the only use of it now; `expiry` can be
/// read.
unsafe extern "C-unwind" fn run<F: FnMut(&Expiry)>(ctx: *mut c_void, expiry: *const types::Expiry) {
    // SAFETY: the caller's promise; a host outlives the closures of its service.
    let (job, host, expiry) = unsafe {
        let job = &mut *ctx.cast::<Job<F>>();
        let host = job.host.as_ref();
        (job, host, Expiry::from_raw(&*expiry))
    };
    host.guard(|| (job.f)(&expiry));
}

/// Drops a closure.
///
/// # Safety
/// `ctx` is what `repeated` made for this `F`, and this is the last use of it.
unsafe extern "C-unwind" fn release<F>(ctx: *mut c_void) {
    // SAFETY: the caller's promise; a host outlives the closures of its service.
    let (job, host) = unsafe {
        let job = Box::from_raw(ctx.cast::<Job<F>>());
        let host = job.host;
        (job, host.as_ref())
    };
    host.guard(|| drop(job));
}

/// Runs a plain function.
///
/// # Safety
/// `plain` was given an `F`; `expiry` can be read.
unsafe extern "C-unwind" fn run_plain<F>(ctx: *mut c_void, expiry: *const types::Expiry)
where
    F: Fn(u64, &Expiry) + Copy + Send + 'static,
{
    // SAFETY: the expiry is the caller's promise. A value without size is the same at every address
    // that is not null, and as `plain` had one that is `Copy` and `Send`, so may this thread.
    let (f, expiry) = unsafe { (NonNull::<F>::dangling().read(), Expiry::from_raw(&*expiry)) };
    guard_current(|| f(ctx.addr() as u64, &expiry));
}
