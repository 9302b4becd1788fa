//! Delivery: an expiry of a timer with a queue is put there, or, while its last event still waits, counted as missed.
//!
//! Ground rules: the shard's owner, in a turn, inside the gate, so that whoever frees the queue waits until it has left.

use super::{Hint, QueueInner};
use crate::extra::Extra;
use crate::gate::Work;
use crate::grid::Grid;
use crate::record::Record;
use crate::status::Error;
use crate::sync::Ordering;
use crate::ticks::Due;
use crate::turn::{Served, Turn};
use crate::word::{Phase, Word};

impl Turn<'_> {
    /// Puts the expiry of a timer in its queue, or, when its last event still waits there, moves its
    /// grid on. `None`: another thread moved the word first.
    ///
    /// # Safety
    /// The calling thread owns the shard.
    pub(crate) unsafe fn deliver(
        &self,
        record: &Record,
        slot: u32,
        word: Word,
        due: Due,
        extra: &Extra,
        queue: *const QueueInner,
    ) -> Option<Result<Served, Error>> {
        let shard = self.shard;
        let _inside = match shard.gate.enter(&self.port.own.busy, Work::Start, true) {
            Ok(inside) => inside,
            Err(error) => return Some(Err(error)),
        };
        // Freeing a queue cancels its timers and waits for whoever is inside the gate. So a queue whose
        // timer is found armed in here is there until this thread leaves.
        if record.word() != word {
            return None;
        }
        // SAFETY: as just said.
        let queue = unsafe { &*queue };
        if queue.is_closed() {
            // Whoever frees it cancels this timer, and runs its drop, before that is over.
            return Some(Ok(Served::Skipped));
        }
        let waited = word.phase() == Phase::Queued;
        let mut grid = Grid::of(extra);
        // While an event waits, what goes by is missed, also where each point would be served.
        grid.burst &= !waited;
        let periodic = grid.period_ns != 0;
        let lane = &queue.lanes[shard.index as usize];
        // SAFETY: the caller owns the shard.
        let room = unsafe { waited || lane.reserve(|bits| QueueInner::still_waits(shard, bits)) };
        if !room {
            return Some(Err(Error::NoMemory));
        }
        let (served_ns, missed) = grid.serve(due.deadline_ns, self.reached_ns());
        let (offset, next_due) = if periodic {
            match self.next_offset(record, &grid, extra, served_ns) {
                Ok(next) => next,
                Err(error) => return Some(Err(error)),
            }
        } else {
            (word.offset(), None)
        };
        // SAFETY: the caller owns the shard. Room for the reminder of the next point.
        if let Err(error) = unsafe { shard.with_core(|core| core.reserve_ready(2)) } {
            shard.slab.unencode_new(offset, word);
            return Some(Err(error));
        }
        extra.event_now_ns.store(self.now_ns, Ordering::Relaxed);
        if !waited {
            // The owner alone writes it.
            let delivery = extra.delivery.load(Ordering::Relaxed).wrapping_add(1);
            extra.delivery.store(delivery, Ordering::Relaxed);
            extra.event_deadline_ns.store(served_ns, Ordering::Relaxed);
            extra.event_missed.store(missed, Ordering::Relaxed);
        }
        if self.swap(record, word, word.with(Phase::Queued, offset)).is_err() {
            shard.slab.unencode_new(offset, word);
            return None;
        }
        if let Some(next_due) = next_due {
            shard.slab.set_low(record, offset, next_due);
            // The rest of a burst is due in this turn, too: it finds the event waiting, unless that has been taken.
            let again = grid.burst && next_due.tick <= self.now_tick;
            // SAFETY: the caller owns the shard, and `reserve_ready` made room.
            unsafe { self.file_next(record, slot, next_due.tick, again) };
        }
        if periodic {
            shard.slab.release(word.offset());
        }
        if waited {
            return Some(Ok(Served::Skipped));
        }
        self.note_lateness(served_ns);
        let delivery = extra.delivery.load(Ordering::Relaxed) as u8;
        let hint = Hint { slot, generation: word.generation(), delivery };
        // SAFETY: the caller owns the shard and has reserved room.
        unsafe { lane.push(hint.pack()) };
        queue.arrived();
        Some(Ok(Served::Delivered))
    }
}
