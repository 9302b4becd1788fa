//! Who is pending: a walk over a shard's timers by any thread, which the shard does not notice.
//!
//! It goes by slots, which a timer does not leave while it lives. So each timer that is pending all the
//! while is visited exactly once; one that starts or ends meanwhile may be or not. What is told of a
//! timer is of one instant: it was read between two readings of the same word.

use crate::engine::Engine;
use crate::handle::Handle;
use crate::queue::QueueInner;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::{Ordering, fence, look_again};
use crate::types::{NEVER, Pending};
use crate::word::Phase;

/// Slots that are looked at for each timer that may be told, so that a call does not walk through a
/// nearly empty shard.
const SPARSE: usize = 64;

/// The place after a shard's last timer.
pub const END: u64 = u64::MAX;

impl Engine {
    /// Tells of at most `most` timers of a shard, beginning at `place` (0 at first), which moves on;
    /// [`END`] when there are no more. It may tell of none and not be at the end.
    ///
    /// # Errors
    /// `Invalid`, `Forked`.
    pub fn visit(
        &self,
        shard: u32,
        place: &mut u64,
        most: usize,
        tell: &mut dyn FnMut(Pending),
    ) -> Result<(), Error> {
        self.alive()?;
        let shard = self.shard(shard)?;
        let end = u64::from(shard.slab.end());
        let mut slot = (*place).max(1);
        let mut looks = most.saturating_mul(SPARSE);
        let mut told = 0;
        while slot < end && told < most && looks > 0 {
            if let Some(pending) = shard.pending_in(slot as u32, self.clock().now()) {
                tell(pending);
                told += 1;
            }
            slot += 1;
            looks -= 1;
        }
        *place = if slot < end { slot } else { END };
        Ok(())
    }
}

impl Shard {
    /// The timer that is pending in a slot: armed, or with an event that waits, or periodic and at its
    /// callback.
    fn pending_in(&self, slot: u32, now_ns: u64) -> Option<Pending> {
        let record = self.slab.get(slot)?;
        loop {
            let word = record.word();
            if !matches!(word.phase(), Phase::Pending | Phase::Running | Phase::Queued) {
                return None;
            }
            let due = self.slab.decode(record, word.offset());
            let mut pending = Pending {
                timer: Handle { shard: self.index, slot, generation: word.generation() }.pack(),
                deadline_ns: due.map_or(NEVER, |due| due.deadline_ns),
                period_ns: 0,
                ctx: record.ctx(),
                owned: false,
            };
            // The index may be that of another timer by now; then the word says so.
            let extra =
                record.kind().has_extra().then(|| self.slab.extras.get(record.extra_index()));
            if let Some(Some(extra)) = extra {
                pending.period_ns = extra.period_ns.load(Ordering::Relaxed);
                pending.owned = !extra.drop.load(Ordering::Relaxed).is_null();
                let queue = extra.queue.load(Ordering::Relaxed).cast::<QueueInner>();
                if word.phase() == Phase::Queued && !queue.is_null() && pending.period_ns != 0 {
                    pending.deadline_ns = extra.event_deadline_ns.load(Ordering::Relaxed);
                }
            }
            if due.is_none() {
                if pending.period_ns == 0 {
                    // A one-shot at its callback.
                    return None;
                }
                // It counts from the end of its callback.
                pending.deadline_ns = now_ns.saturating_add(pending.period_ns);
            }
            // Acquire fence: partner of the Release of `swap` and `publish`; if what was read is of a
            // later word, that word is seen now.
            fence(Ordering::Acquire);
            if record.word() == word {
                return Some(pending);
            }
            look_again();
        }
    }
}
