//! Waiting until a callback, or the drop of a cancelled timer, is over: `cancel_wait`.
//!
//! The waiter marks the timer's word `Awaited` and sleeps on the shard's epoch; the owner, when it ends
//! a timer whose word says so, moves the epoch and wakes all. Nobody spins, and an owner without
//! waiters pays nothing.
//!
//! A wait that could never end is refused: in the thread whose turn is at the timer, and where the
//! wait would close a circle of callbacks that wait for each other. Each such thread writes whom it
//! waits for, and then follows the chain; of the threads that close a circle at least the last
//! one sees it whole. The drop after a callback counts as part of it. A drop that a cancel runs
//! is followed by nobody, so it begins no wait; for such a drop anybody may wait, as it closes no circle but by stopping
//! the service: then those whom the stop waits for wait for it no more.

use crate::cancel::is_in_drop;
use crate::engine::Engine;
use crate::handle::Handle;
use crate::record::Record;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::{Ordering, fence, yield_now};
use crate::word::{Offset, Phase};

/// The shard whose turn the calling thread runs, if any, noted as waiting while this lives.
struct Waits<'a>(&'a Shard);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        // Relaxed: who finds the next callback running sees it through that timer's word.
        self.0.waits_for.store(0, Ordering::Relaxed);
    }
}

impl Shard {
    /// Sleeps until the callback of this timer, or its drop, is over. `from`: the shard whose turn the
    /// calling thread runs.
    pub(crate) fn await_end(
        &self,
        handle: Handle,
        token: u32,
        from: Option<&Shard>,
        engine: &Engine,
    ) -> Result<(), Error> {
        let _waits = if self.runs(handle) || self.is_ending(handle) {
            if is_in_drop() || self.is_own(handle, token) {
                return Err(Error::WouldDeadlock);
            }
            from.map(|from| Shard::note_wait(from, handle, engine.shards())).transpose()?
        } else {
            None
        };
        let Some(record) = self.slab.get(handle.slot) else { return Ok(()) };
        loop {
            let seen = self.epoch.load();
            let word = record.word();
            if word.generation() != handle.generation {
                return Ok(());
            }
            if word.phase().is_ending() && engine.held_by_stop(token, from.is_some()) {
                return Err(Error::WouldDeadlock);
            }
            let awaited = match word.phase() {
                Phase::Running | Phase::Doomed => Phase::Awaited,
                Phase::Ending => Phase::EndingAwaited,
                Phase::Awaited | Phase::EndingAwaited => {
                    self.epoch.wait(seen, None);
                    continue;
                }
                _ => return Ok(()),
            };
            let _ = record.swap(word, word.with(awaited, Offset::NONE));
        }
    }

    /// The service is being stopped, so that no callback begins any more: waits until that of this
    /// timer, or its drop, is over, unless that would be for ever. As rare as a stop, and as short as
    /// a callback: it looks again and again, and leaves no mark in the word.
    pub(crate) fn outlast(
        &self,
        handle: Handle,
        token: u32,
        from: Option<&Shard>,
        engine: &Engine,
    ) {
        if is_in_drop() || self.is_own(handle, token) {
            return;
        }
        let waits = from.map(|from| Shard::note_wait(from, handle, engine.shards())).transpose();
        let Ok(_waits) = waits else { return };
        let called = from.is_some();
        while self.runs(handle) || self.is_ending(handle) && !engine.held_by_stop(token, called) {
            yield_now();
        }
    }

    /// Is the drop of this timer running?
    fn is_ending(&self, handle: Handle) -> bool {
        let word = self.slab.get(handle.slot).map(Record::word);
        word.is_some_and(|word| word.generation() == handle.generation && word.phase().is_ending())
    }

    /// Is the callback of this timer running?
    fn runs(&self, handle: Handle) -> bool {
        let word = self.slab.get(handle.slot).map(Record::word);
        word.is_some_and(|word| word.generation() == handle.generation && word.phase().is_running())
    }

    /// Is the shard's turn at this timer: in its callback, or in the drop after it?
    fn is_at(&self, handle: Handle) -> bool {
        // Relaxed: of a drop, see `note_wait`.
        self.runs(handle)
            || self.is_ending(handle) && self.running.load(Ordering::Relaxed) == handle.pack()
    }

    /// Is it this thread's turn that is at this timer?
    fn is_own(&self, handle: Handle, token: u32) -> bool {
        // Relaxed: is it this thread itself?
        self.is_at(handle) && self.turner.load(Ordering::Relaxed) == token
    }

    /// Notes that the callback that `from` runs, or the drop after it, waits for the end of a timer, unless that
    /// closes a circle.
    fn note_wait<'a>(
        from: &'a Shard,
        handle: Handle,
        shards: &[Shard],
    ) -> Result<Waits<'a>, Error> {
        // Relaxed, here and where it is read: see the fence.
        from.waits_for.store(handle.pack(), Ordering::Relaxed);
        let waits = Waits(from);
        // Full: whoever closes the circle last has its own note and all others' in view, and which drop the one who
        // wrote a note was in.
        fence(Ordering::SeqCst);
        let mut awaited = handle;
        for _ in 0..=shards.len() {
            let shard = &shards[awaited.shard as usize];
            // A note can outlive what it says by a moment; a drop that a cancel runs waits for nobody.
            if !shard.is_at(awaited) {
                return Ok(waits);
            }
            if shard.index == from.index {
                return Err(Error::WouldDeadlock);
            }
            match shard.waits_for.load(Ordering::Relaxed) {
                0 => return Ok(waits),
                next => awaited = Handle::unpack(next),
            }
        }
        Err(Error::WouldDeadlock)
    }
}
