//! The operations on timers, as the C ABI and the Rust API call them: which port, which way.
//!
//! Ground rules: any thread. Each operation tries the short ways first: through the first of the thread's doors
//! as a sole owner, in a function small enough to be part of the caller's; then as any thread; then
//! the long way (`_slowly`), which asks everything again and finds out what is wrong.

use crate::arm::check;
use crate::cancel::is_dropping;
use crate::doors::ANY;
use crate::engine::Engine;
use crate::handle::Handle;
use crate::port::Port;
use crate::reset::To;
use crate::status::{Error, Outcome};
use crate::sync::Ordering;
use crate::sys::{call::drop_host, thread};
use crate::types::{SHARD_ANY, Spec};
use std::ffi::c_void;

impl Engine {
    /// Starts a timer. `out`, if not null, is written before the callback can run, and only on success.
    /// On refusal, whatever the reason, the spec's drop has run.
    ///
    /// # Errors
    /// `Invalid`, `Full`, `NoMemory`, `Stopped`, `Busy`, `Forked`.
    ///
    /// # Safety
    /// The spec's functions can be called with its ctx on any thread of the service or that polls,
    /// cancels or stops it, until the timer has ended; its queue is null or a queue of this engine that
    /// has not been freed; `out` is null or can be written.
    pub unsafe fn arm(&self, spec: &Spec, out: *mut u64) -> Result<(), Error> {
        let code = if spec.shard == SHARD_ANY { ANY } else { spec.shard };
        if let Some((to, callback)) = spec.plain()
            && (code < ANY || spec.shard == SHARD_ANY)
            && let Some(port) = self.door(code)
            // SAFETY: the port is this thread's; the rest is the caller's promise.
            && unsafe { self.arm_through(port, to, callback, spec.ctx, out) }
        {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.arm_slowly(spec, out) }
    }

    /// Starts a plain timer through one of this thread's ports, if the short way leads there.
    ///
    /// # Safety
    /// As `arm`; the port is this thread's.
    #[inline(never)]
    unsafe fn arm_through(
        &self,
        port: &Port,
        to: To,
        callback: *mut c_void,
        ctx: *mut c_void,
        out: *mut u64,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { port.shard().arm_plain::<false>(port, &self.clock, to, callback, ctx, out) }
    }

    #[inline(never)]
    pub(crate) unsafe fn arm_slowly(&self, spec: &Spec, out: *mut u64) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let result = unsafe { self.arm_checked(spec, out) };
        match result {
            Ok(()) => self.open_any(),
            Err(_) => refuse(spec),
        }
        result
    }

    unsafe fn arm_checked(&self, spec: &Spec, out: *mut u64) -> Result<(), Error> {
        self.alive()?;
        check(spec)?;
        self.check_queue(spec)?;
        let shard = self.route(spec.shard)?;
        let port = self.port(shard)?;
        // SAFETY: the port is this thread's; the rest is the caller's promise.
        unsafe { shard.arm(&port, &self.clock, spec, out) }
    }

    pub(crate) fn check_queue(&self, spec: &Spec) -> Result<(), Error> {
        // SAFETY: the caller of `arm` says that it is null or a queue.
        match unsafe { spec.queue.as_ref() } {
            Some(queue) if queue.is_closed() || !queue.engine().same(&self.me) => {
                Err(Error::Invalid)
            }
            _ => Ok(()),
        }
    }

    /// Cancels. `Done`: it will not run (again), and is not running. `Running`: its callback is running
    /// now and it will not run again. `NotFound`: it had ended. Lock-free, never waits.
    ///
    /// # Errors
    /// `Invalid` (no such handle can be), `Stopped`, `Busy`, `Forked`.
    #[inline(always)]
    pub fn cancel(&self, timer: u64) -> Result<Outcome, Error> {
        let handle = Handle::unpack(timer);
        let port = self.first_door(handle.shard);
        if let Some(port) = port
            && port.is_exclusive()
            // SAFETY: the port is this thread's, which owns the shard exclusively.
            && unsafe { port.shard().cancel_plain::<true>(port, handle) }
        {
            return Ok(Outcome::Done);
        }
        self.cancel_next(port, timer)
    }

    #[inline(never)]
    fn cancel_next(&self, port: Option<&Port>, timer: u64) -> Result<Outcome, Error> {
        let handle = Handle::unpack(timer);
        if let Some(port) = port
            // SAFETY: the port is this thread's.
            && unsafe { port.shard().cancel_plain::<false>(port, handle) }
        {
            return Ok(Outcome::Done);
        }
        self.cancel_slowly(timer)
    }

    #[cold]
    #[inline(never)]
    fn cancel_slowly(&self, timer: u64) -> Result<Outcome, Error> {
        self.alive()?;
        let (shard, handle) = self.find(timer)?;
        let port = self.port(shard)?;
        // SAFETY: the port is this thread's.
        unsafe { shard.cancel(&port, handle, false) }
    }

    /// Cancels, then waits until the callback is not running and drop has run.
    ///
    /// # Errors
    /// As `cancel`; with `Stopped` a callback that was running is over too. `WouldDeadlock` in the timer's own callback, on the thread that would have to
    /// finish it, and where the wait would close a circle: the timer will not run again then either.
    pub fn cancel_wait(&self, timer: u64) -> Result<Outcome, Error> {
        self.alive()?;
        let (shard, handle) = self.find(timer)?;
        let port = self.port(shard)?;
        let token = thread::current_token();
        let from = || self.turn_of(token);
        // SAFETY: the port is this thread's.
        let outcome = unsafe { shard.cancel(&port, handle, true) };
        if outcome == Err(Error::Stopped) {
            shard.outlast(handle, token, from(), self);
        }
        let outcome = outcome?;
        let own = shard.running.load(Ordering::Relaxed) == timer && port.is_owner();
        if own || is_dropping(timer) {
            return Err(Error::WouldDeadlock);
        }
        if outcome != Outcome::Done {
            shard.await_end(handle, token, from(), self)?;
        }
        Ok(outcome)
    }

    /// Cancels many; answers how many of them were found armed.
    ///
    /// # Errors
    /// As `cancel`, if one was refused and none was cancelled; handles that none can be are passed over.
    pub fn cancel_batch(&self, timers: &[u64]) -> Result<usize, Error> {
        self.alive()?;
        self.running()?;
        let (mut done, mut refused) = (0, None);
        for &timer in timers {
            match self.cancel(timer) {
                Ok(Outcome::Done) => done += 1,
                Ok(_) | Err(Error::Invalid) => {}
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if done == 0 => Err(error),
            _ => Ok(done),
        }
    }

    /// Moves a timer's deadline to `delay_ns` from now. `Done`, `Running` (a one-shot whose callback is
    /// running elsewhere; unchanged) or `NotFound`.
    ///
    /// # Errors
    /// `Invalid`, `Full` (armed again in its own callback), `NoMemory`, `Stopped`, `Busy`, `Forked`.
    #[inline(always)]
    pub fn reset_after(&self, timer: u64, delay_ns: u64) -> Result<Outcome, Error> {
        self.reset::<false>(timer, delay_ns)
    }

    /// Moves a timer's deadline. As `reset_after`.
    ///
    /// # Errors
    /// As `reset_after`.
    #[inline(always)]
    pub fn reset_at(&self, timer: u64, deadline_ns: u64) -> Result<Outcome, Error> {
        self.reset::<true>(timer, deadline_ns)
    }

    #[inline(always)]
    fn reset<const AT: bool>(&self, timer: u64, ns: u64) -> Result<Outcome, Error> {
        let handle = Handle::unpack(timer);
        let to = To::of::<AT>(ns);
        let port = self.first_door(handle.shard);
        if let Some(port) = port
            && port.is_exclusive()
            // SAFETY: the port is this thread's, which owns the shard exclusively.
            && unsafe { port.shard().reset_plain::<true>(port, &self.clock, handle, to) }
        {
            return Ok(Outcome::Done);
        }
        self.reset_next::<AT>(port, timer, ns)
    }

    #[inline(never)]
    fn reset_next<const AT: bool>(
        &self,
        port: Option<&Port>,
        timer: u64,
        ns: u64,
    ) -> Result<Outcome, Error> {
        let handle = Handle::unpack(timer);
        let to = To::of::<AT>(ns);
        if let Some(port) = port
            // SAFETY: the port is this thread's.
            && unsafe { port.shard().reset_plain::<false>(port, &self.clock, handle, to) }
        {
            return Ok(Outcome::Done);
        }
        self.reset_slowly(timer, to)
    }

    #[inline(never)]
    fn reset_slowly(&self, timer: u64, to: To) -> Result<Outcome, Error> {
        self.alive()?;
        let (shard, handle) = self.find(timer)?;
        let port = self.port(shard)?;
        // SAFETY: the port is this thread's.
        unsafe { shard.reset(&port, &self.clock, handle, to) }
    }

    /// How long a timer still has; 0 when due, [`NEVER`] for a deadline that does not come.
    ///
    /// # Errors
    /// `Invalid`, `Stopped`, `Forked`.
    pub fn remaining(&self, timer: u64) -> Result<(Outcome, u64), Error> {
        self.alive()?;
        let (shard, handle) = self.find(timer)?;
        self.running()?;
        Ok(shard.remaining(&self.clock, handle))
    }

    /// The shard part of a handle; the rest is not looked at.
    pub fn shard_of(timer: u64) -> u32 {
        Handle::unpack(timer).shard
    }
}

/// A refused spec's drop.
pub(crate) fn refuse(spec: &Spec) {
    if let Some(drop) = spec.drop {
        // SAFETY: the caller of `arm` says that drop may be called with ctx, and no timer came to be.
        unsafe { drop_host(drop, spec.ctx) };
    }
}
