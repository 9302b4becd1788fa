//! Driven shards: whose they are, and their polls.
//!
//! Ground rules: `Shard::owner` says which thread owns a shard now: for a poll, or from attach to detach.
//! Only the owner touches the wheel. An exclusive owner has closed the shard's gate to all others and
//! waited until none of them was inside, so it moves words by plain stores.

use crate::alarm::AWAKE;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::gate::{EXCLUSIVE, STOPPED};
use crate::port::Port;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::Ordering;
use crate::sys::barrier;
use crate::sys::thread::current_token;
use crate::threads::PortSet;
use crate::turn::Turning;

impl Engine {
    /// Makes the calling thread the owner of a driven shard, or changes how it owns it.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported` (threaded mode), `Busy` (another thread's, inside a callback, or, to own
    /// it exclusively, while a queue is being freed), `Stopped`,
    /// `NoMemory`, `Forked`.
    pub fn attach(&self, shard: u32, exclusive: bool) -> Result<(), Error> {
        self.alive()?;
        self.driven()?;
        let shard = self.shard(shard)?;
        self.running()?;
        let set = self.needed_set()?;
        let port = self.port(shard)?;
        if set.turning() != 0 {
            return Err(Error::Busy);
        }
        let mut attached = set.attached(self);
        attached.try_reserve(1).map_err(|_| Error::NoMemory)?;
        let before = attached.contains(&shard.index).then(|| port.is_exclusive());
        if before.is_none() && !shard.own(current_token()) {
            return Err(Error::Busy);
        }
        port.own.owner.store(true, Ordering::Relaxed);
        shard.set_exclusive(&port, self.clock(), exclusive);
        if exclusive && before != Some(true) && self.is_closing() {
            // A queue is being freed, whose timers here its thread must be able to cancel.
            shard.set_exclusive(&port, self.clock(), false);
            if before.is_none() {
                shard.detach(&port, self.clock());
            }
            return Err(Error::Busy);
        }
        attached.retain(|&index| index != shard.index);
        attached.push(shard.index);
        // Relaxed, here and where it is read: it says which error a stranger gets.
        shard.attached.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the calling thread's ownership.
    ///
    /// # Errors
    /// `Invalid` (nobody is attached), `Busy` (another thread is, or inside a callback),
    /// `Unsupported`, `Forked`.
    pub fn detach(&self, shard: u32) -> Result<(), Error> {
        self.alive()?;
        self.driven()?;
        let shard = self.shard(shard)?;
        let set = self.needed_set()?;
        let mut attached = set.attached(self);
        if !attached.contains(&shard.index) {
            let attached = shard.attached.load(Ordering::Relaxed);
            return Err(if attached { Error::Busy } else { Error::Invalid });
        }
        if set.turning() != 0 {
            return Err(Error::Busy);
        }
        attached.retain(|&index| index != shard.index);
        shard.detach(&*self.port(shard)?, self.clock());
        Ok(())
    }

    /// Delivers what is due, at most `budget` expiries (0: all); answers how many.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported` (threaded mode), `Busy` (another thread's, or inside a callback),
    /// `Stopped`, `NoMemory`, `Forked`.
    pub fn poll(&self, shard: u32, budget: usize) -> Result<usize, Error> {
        self.alive()?;
        self.driven()?;
        let shard = self.shard(shard)?;
        let set = self.needed_set()?;
        let port = self.port(shard)?;
        if set.turning() != 0 {
            return Err(Error::Busy);
        }
        let token = current_token();
        let attached = shard.owner.load(Ordering::Relaxed) == token;
        if !attached && !shard.own(token) {
            return Err(if shard.gate.is(STOPPED) { Error::Stopped } else { Error::Busy });
        }
        let poll = Poll { engine: self, shard, port: &port, set, attached };
        port.own.owner.store(true, Ordering::Relaxed);
        set.set_turning(self, shard.index + 1);
        let turning = Turning::begin(shard, token);
        // Full: partner of the heavy fence in `Gate::close`: either stop sees the turn, or this the gate.
        barrier::full();
        if shard.gate.is(STOPPED) {
            return Err(Error::Stopped);
        }
        shard.alarm.wake();
        let budget = if budget == 0 { usize::MAX } else { budget };
        // SAFETY: this thread owns the shard and the port, and is not inside another turn.
        let fired = unsafe { shard.turn(&port, self.clock(), budget) };
        self.alive()?;
        // SAFETY: this thread owns the shard.
        let next = unsafe {
            shard.tidy();
            shard.next_look(self.clock())
        };
        if !shard.alarm.rest(next, self.clock(), || shard.anything_waits()) {
            // SAFETY: as above.
            let next = unsafe {
                shard.take_in_all(self.clock());
                shard.next_look(self.clock())
            };
            if !shard.alarm.rest(next, self.clock(), || shard.anything_waits()) {
                // So busy that the host should poll again at once.
                shard.alarm.rest(AWAKE, self.clock(), || false);
            }
        }
        drop(turning);
        drop(poll);
        self.tell_stuck();
        self.alive()?;
        Ok(fired)
    }
}

/// Ownership for one poll.
struct Poll<'a> {
    engine: &'a Engine,
    shard: &'a Shard,
    port: &'a Port,
    set: &'a PortSet,
    attached: bool,
}

impl Drop for Poll<'_> {
    fn drop(&mut self) {
        self.set.set_turning(self.engine, 0);
        if !self.attached {
            self.port.own.owner.store(false, Ordering::Relaxed);
            self.shard.disown();
        }
    }
}

impl Shard {
    /// Closes or opens the shard to other threads; afterwards nothing of theirs is under way or waits.
    fn set_exclusive(&self, port: &Port, clock: &Clock, exclusive: bool) {
        if exclusive && !port.is_exclusive() {
            self.gate.close(EXCLUSIVE);
            for other in self.ports().filter(|other| !std::ptr::eq(*other, port)) {
                other.own.busy.settle(false);
            }
        }
        // SAFETY: the calling thread owns the shard.
        unsafe { self.take_in_all(clock) };
        port.own.pass.store(if exclusive { EXCLUSIVE } else { 0 }, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { self.with_core(|core| core.set_sole(exclusive, self.guesses)) };
        if !exclusive {
            self.gate.open(EXCLUSIVE);
        }
    }

    /// Ends the ownership of the thread whose port this is.
    pub(crate) fn detach(&self, port: &Port, clock: &Clock) {
        port.own.pass.store(0, Ordering::Relaxed);
        port.own.owner.store(false, Ordering::Relaxed);
        // SAFETY: the calling thread still owns the shard, and no other is let in yet. Without memory
        // the newest timers wait for the next owner.
        unsafe {
            self.with_core(|core| {
                let _ = self.settle_fresh(core, clock);
                core.set_sole(false, false);
            });
        }
        self.gate.open(EXCLUSIVE);
        self.attached.store(false, Ordering::Relaxed);
        self.disown();
    }
}
