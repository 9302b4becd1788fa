//! The gate of a shard: how stop, an exclusive owner and a search for spare capacity keep other
//! threads out, while those pay two plain stores and a load for it.
//!
//! Ground rules: each operation says in its port that it is at work, then reads the gate
//! (`enter`); whoever closes the gate writes it first and then waits until no port is at work
//! that it has to wait for (`close`). One of the two always sees the other, because the closer runs the
//! heavy half of an asymmetric fence (see `sys::barrier`). No function of the host runs inside the
//! gate, so the wait is short. A cancel or reset never waits at the gate: it goes in, or is refused.

use crate::status::Error;
use crate::sync::{AtomicU32, Ordering};
use crate::sys::barrier;

/// The service has been stopped.
pub(crate) const STOPPED: u32 = 1;
/// One thread owns the shard exclusively; all others are refused.
pub(crate) const EXCLUSIVE: u32 = 2;
/// A thread collects unused capacity from all ports; starts wait.
pub(crate) const COLLECTING: u32 = 4;

/// What a port's thread is doing on the shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Work {
    /// Nothing.
    None = 0,
    /// A start, which may use the port's capacity, or a delivery to a queue.
    Start = 1,
    /// Anything else.
    Other = 2,
}

/// A port's half of the gate: what its thread is doing.
#[derive(Debug)]
pub(crate) struct Busy(AtomicU32);

impl Busy {
    pub(crate) fn new() -> Busy {
        Busy(AtomicU32::new(Work::None as u32))
    }

    fn set(&self, work: Work) {
        self.0.store(work as u32, Ordering::Relaxed);
    }

    fn is_at(&self, work: Work) -> bool {
        // Acquire: pairs with the Release in `Inside::drop`, so that the closer sees what was done.
        self.0.load(Ordering::Acquire) == work as u32
    }

    /// Waits until the port's thread does nothing that concerns the closer.
    pub(crate) fn settle(&self, starts_only: bool) {
        loop {
            let busy = if starts_only { self.is_at(Work::Start) } else { !self.is_at(Work::None) };
            if !busy {
                return;
            }
            crate::sync::yield_now();
        }
    }
}

/// Proof that an operation is inside; leaving is dropping it.
#[must_use]
pub(crate) struct Inside<'a>(&'a Busy);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `is_at`.
        self.0.0.store(Work::None as u32, Ordering::Release);
    }
}

/// The shared half: read by every operation, written when the gate is closed or opened.
#[derive(Debug)]
pub(crate) struct Gate(AtomicU32);

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate(AtomicU32::new(0))
    }

    /// Goes in, unless the gate is closed to this thread.
    #[inline]
    pub(crate) fn enter<'a>(
        &self,
        busy: &'a Busy,
        work: Work,
        owner: bool,
    ) -> Result<Inside<'a>, Error> {
        loop {
            busy.set(work);
            let inside = Inside(busy);
            // The light half; its partner is the heavy half in `close`. Between them, either this
            // thread sees the bit that the closer has set, or the closer sees `busy`.
            barrier::light();
            // Acquire: pairs with the Release in `open` and `close`.
            let bits = self.0.load(Ordering::Acquire);
            if bits == 0 {
                return Ok(inside);
            }
            if bits & STOPPED != 0 {
                return Err(Error::Stopped);
            }
            if bits & EXCLUSIVE != 0 && !owner {
                return Err(Error::Busy);
            }
            if bits & COLLECTING == 0 || work != Work::Start {
                return Ok(inside);
            }
            drop(inside);
            while self.is(COLLECTING) {
                crate::sync::yield_now();
            }
        }
    }

    /// Goes in if no more is closed than `pass` says: `EXCLUSIVE` for an exclusive owner, otherwise nothing. For
    /// who has come through one of the `doors`.
    #[inline(always)]
    pub(crate) fn pass<'a>(&self, busy: &'a Busy, work: Work, pass: u32) -> Option<Inside<'a>> {
        busy.set(work);
        let inside = Inside(busy);
        // The light half, as in `enter`.
        barrier::bar_to_the_compiler();
        // Acquire: as in `enter`.
        (self.0.load(Ordering::Acquire) == pass).then_some(inside)
    }

    /// Closes the gate; the caller then settles each port. False if that bit was set already.
    pub(crate) fn close(&self, bit: u32) -> bool {
        // Release: pairs with the Acquire in `enter`; who is refused sees why. With the fence that follows it comes
        // after the `open` of the last closer, too.
        let before = self.0.fetch_or(bit, Ordering::Release);
        barrier::heavy();
        before & bit == 0
    }

    /// Opens what `close` closed.
    pub(crate) fn open(&self, bit: u32) {
        // Release: whoever enters afterwards sees what was done while the gate was closed.
        self.0.fetch_and(!bit, Ordering::Release);
    }

    /// Relaxed: nothing comes with the answer.
    #[inline]
    pub(crate) fn is(&self, bit: u32) -> bool {
        self.0.load(Ordering::Relaxed) & bit != 0
    }
}
