//! Waiting until a callback is over: `cancel_wait`.
//!
//! The waiter marks the timer's word `Awaited` and sleeps on the shard's epoch; the owner, when it ends
//! a timer whose word says so, moves the epoch and wakes all. Nobody spins, and an owner without
//! waiters pays nothing.
//!
//! A wait that could never end is refused: in the thread that runs the shard's turn, and where the
//! wait would close a circle of shards whose callbacks wait for each other. Each such thread writes whom
//! its shard waits for, and then follows the chain; of the threads that close a circle at least the last
//! one sees it whole.

use crate::handle::Handle;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::{Ordering, fence};
use crate::word::{Offset, Phase};

/// The shard whose turn the calling thread runs, if any, noted as waiting while this lives.
struct Waits<'a>(&'a Shard);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waits_for.store(0, Ordering::Release);
    }
}

impl Shard {
    /// Sleeps until the callback of this timer, which a cancel has found running, is over.
    pub(crate) fn await_end(
        &self,
        handle: Handle,
        token: u32,
        from: Option<&Shard>,
        shards: &[Shard],
    ) -> Result<(), Error> {
        if self.turner.load(Ordering::Acquire) == token {
            return Err(Error::WouldDeadlock);
        }
        let _waits = match from {
            Some(from) => Some(self.note_wait(from, shards)?),
            None => None,
        };
        let record = self.slab.at(handle.slot);
        loop {
            let seen = self.epoch.load();
            let word = record.word();
            if word.generation() != handle.generation || !word.phase().is_running() {
                return Ok(());
            }
            if word.phase() != Phase::Awaited {
                let _ = record.swap(word, word.with(Phase::Awaited, Offset::NONE));
                continue;
            }
            self.epoch.wait(seen, None);
        }
    }

    /// Notes that the callback of `from` waits for one of this shard, unless that closes a circle.
    fn note_wait<'a>(&self, from: &'a Shard, shards: &[Shard]) -> Result<Waits<'a>, Error> {
        from.waits_for.store(self.index + 1, Ordering::Release);
        let waits = Waits(from);
        // Full: whoever closes the circle last has its own note and all others' in view.
        fence(Ordering::SeqCst);
        let mut next = self;
        for _ in shards {
            if next.index == from.index {
                return Err(Error::WouldDeadlock);
            }
            match next.waits_for.load(Ordering::Acquire) {
                0 => return Ok(waits),
                index => next = &shards[index as usize - 1],
            }
        }
        Err(Error::WouldDeadlock)
    }
}
