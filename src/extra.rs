//! What only some timers need: a period, slack, a drop function, a queue, and the deadlines that do
//! not fit in a word.
//!
//! Ground rules: an `Extra` is filled by the starting thread before the timer's word says
//! `Pending`, and belongs to that timer until the thread that ends the timer gives it back. A `Far`
//! note is written before a word names it and does not change while one does; whoever moves the
//! word away from it gives it back. Notes go back through the owner of the shard alone, between two of
//! its looks at records, so that the owner never acts on a note that has come to mean another
//! instant. While the owner takes no turn, other threads can use up so many and no more.

use crate::arena::{Arena, Zeroed};
use crate::status::Error;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::tagged::TaggedStack;
use crate::ticks::Due;
use crate::word::FAR_LIMIT;
use std::ffi::c_void;

/// So many notes, or more where more timers live, may be given back before the owner has to look: 6 MiB.
const NOTES: u64 = 1 << 18;

/// The rarer properties of one timer.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    pub(crate) callback: AtomicPtr<c_void>,
    pub(crate) drop: AtomicPtr<c_void>,
    pub(crate) queue: AtomicPtr<c_void>,
    /// 0: one shot.
    pub(crate) period_ns: AtomicU64,
    pub(crate) slack_ns: AtomicU64,
    /// `TIMER_*` bits.
    pub(crate) flags: AtomicU32,
    pub(crate) link: AtomicU32,
    /// Goes up with each delivery to the queue. Written by the owner.
    pub(crate) delivery: AtomicU32,
    /// Of the event that waits in the queue: the first grid point it stands for.
    pub(crate) event_deadline_ns: AtomicU64,
    /// Of the event that waits: the turn's clock.
    pub(crate) event_now_ns: AtomicU64,
    /// Of the event that waits: periods missed before it.
    pub(crate) event_missed: AtomicU64,
}

// SAFETY: integers and pointers; zero is the `Default`.
unsafe impl Zeroed for Extra {}

/// An instant that does not fit in a word.
#[derive(Debug, Default)]
pub(crate) struct Far {
    tick: AtomicU64,
    deadline_ns: AtomicU64,
    pub(crate) link: AtomicU32,
}

// SAFETY: integers; zero is the `Default`.
unsafe impl Zeroed for Far {}

/// The extras and notes of one shard.
pub(crate) struct Extras {
    pub(crate) extras: Arena<Extra>,
    pub(crate) free_extras: TaggedStack,
    pub(crate) notes: Arena<Far>,
    pub(crate) free_notes: TaggedStack,
    /// Notes that were given back and wait for the owner to look away.
    retired_notes: TaggedStack,
}

impl Extras {
    pub(crate) fn new() -> Extras {
        Extras {
            extras: Arena::new(1, crate::handle::SLOT_END),
            free_extras: TaggedStack::new(),
            notes: Arena::new(1, FAR_LIMIT as u32),
            free_notes: TaggedStack::new(),
            retired_notes: TaggedStack::new(),
        }
    }

    /// Any thread.
    pub(crate) fn take(&self) -> Result<u32, Error> {
        match self.free_extras.pop(|index| &self.extras.at(index).link) {
            Some(index) => Ok(index),
            None => self.extras.fresh(1).map(|row| row.first),
        }
    }

    /// Any thread: the one that ended the timer.
    pub(crate) fn give(&self, index: u32) {
        self.free_extras.push(index, &self.extras.at(index).link);
    }

    /// An extra that a record of this shard names, or named.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Extra> {
        self.extras.get(index)
    }

    /// An extra that is this thread's to use.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> &Extra {
        self.extras.at(index)
    }

    /// Writes an instant down. Any thread. `most`: how many notes there may be, if they are many.
    pub(crate) fn note(&self, due: Due, most: impl FnOnce() -> u64) -> Result<u32, Error> {
        let index = match self.free_notes.pop(|index| &self.notes.at(index).link) {
            Some(index) => index,
            None if self.notes.held() >= NOTES && self.notes.held() >= most() => {
                return Err(Error::Full);
            }
            None => self.notes.fresh(1)?.first,
        };
        let note = self.notes.at(index);
        // Relaxed: the word that names the note publishes it (Release).
        note.tick.store(due.tick, Ordering::Relaxed);
        note.deadline_ns.store(due.deadline_ns, Ordering::Relaxed);
        Ok(index)
    }

    /// Reads a note that a word named. Only the owner can rely on it; for any other thread it
    /// is what the note said at some time.
    pub(crate) fn read_note(&self, index: u32) -> Option<Due> {
        let note = self.notes.get(index)?;
        Some(Due {
            tick: note.tick.load(Ordering::Relaxed),
            deadline_ns: note.deadline_ns.load(Ordering::Relaxed),
        })
    }

    /// Gives a note back. Any thread: the one that moved the word away from it.
    pub(crate) fn retire_note(&self, index: u32) {
        self.retired_notes.push(index, &self.notes.at(index).link);
    }

    /// The owner, at the beginning of a turn or of a call, when it holds no word that it has read before.
    pub(crate) fn reuse_notes(&self) {
        while let Some(index) = self.retired_notes.pop(|index| &self.notes.at(index).link) {
            self.free_notes.push(index, &self.notes.at(index).link);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.extras.bytes() + self.notes.bytes()
    }
}
