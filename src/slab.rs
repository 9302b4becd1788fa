//! The slots of one shard: records, generations, and how free slots travel.
//!
//! Ground rules: a free slot belongs to whoever took it; slots travel between threads in magazines
//! of [`MAGAZINE`] through the depot, a pair of lock-free stacks, so that its shared heads are
//! touched once for so many starts or cancels. (Magazines and depot are Bonwick's, from the Solaris
//! slab allocator.) A slot's word keeps the generation that its next timer gets; ending a timer
//! moves it on by one, and a slot that has been through all its generations is retired.

use crate::arena::{Arena, Zeroed};
use crate::extra::Extras;
use crate::handle::{GENERATION_MASK, SLOT_END};
use crate::record::{Kind, Record};
use crate::returned::{Free, Row};
use crate::status::Error;
use crate::sync::{AtomicU32, UnsafeCell};
use crate::tagged::TaggedStack;
use crate::ticks::{Due, NEVER_TICK, Ticks};
use crate::word::{Offset, Word};

/// Slots in a magazine.
pub(crate) const MAGAZINE: usize = if cfg!(loom) { 2 } else { 62 };

#[derive(Default)]
pub(crate) struct Magazine {
    pub(crate) link: AtomicU32,
    /// Owned by whoever took the magazine from a stack.
    content: UnsafeCell<Content>,
}

struct Content {
    count: u32,
    slots: [u32; MAGAZINE],
}

impl Default for Content {
    fn default() -> Self {
        Content { count: 0, slots: [0; MAGAZINE] }
    }
}

// SAFETY: integers; zero is the `Default`.
unsafe impl Zeroed for Magazine {}

/// Records and free slots.
pub(crate) struct Slab {
    pub(crate) records: Arena<Record>,
    pub(crate) extras: Extras,
    pub(crate) magazines: Arena<Magazine>,
    full: TaggedStack,
    pub(crate) empty: TaggedStack,
    ticks: Ticks,
    /// The generation that every slot of this service begins with, chosen at random.
    first_generation: u32,
    /// The generation after which a slot is retired: it has served 2^27 timers then, or fewer in a test.
    last_generation: u32,
}

// SAFETY: a magazine's content is touched only by the thread that took it from a stack
// (`refill`, `flush`); everything else is atomics.
unsafe impl Send for Slab {}
// SAFETY: as above.
unsafe impl Sync for Slab {}

impl Slab {
    pub(crate) fn new(ticks: Ticks, first_generation: u32, uses: u32) -> Slab {
        Slab {
            records: Arena::new(1, SLOT_END),
            extras: Extras::new(),
            magazines: Arena::new(1, SLOT_END),
            full: TaggedStack::new(),
            empty: TaggedStack::new(),
            ticks,
            first_generation: first_generation & GENERATION_MASK,
            last_generation: first_generation.wrapping_add(uses).wrapping_sub(1) & GENERATION_MASK,
        }
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&Record> {
        self.records.get(slot)
    }

    /// The record of a slot that was handed out.
    #[inline]
    pub(crate) fn at(&self, slot: u32) -> &Record {
        self.records.at(slot)
    }

    /// As `at`, without a look whether that is so.
    ///
    /// # Safety
    /// The slot was handed out.
    #[inline(always)]
    pub(crate) unsafe fn handed_out(&self, slot: u32) -> &Record {
        // SAFETY: the caller's promise.
        unsafe { self.records.handed_out(slot) }
    }

    /// One past the highest slot that was ever handed out.
    pub(crate) fn end(&self) -> u32 {
        self.records.used()
    }

    /// Fills an empty array with free slots: a magazine of used ones, or fresh ones.
    pub(crate) fn refill(&self, into: &mut [u32]) -> Result<usize, Error> {
        if let Some(index) = self.full.pop(|index| &self.magazines.at(index).link) {
            let magazine = self.magazines.at(index);
            let count = magazine.content.with(|content| {
                // SAFETY: popped, so it is this thread's alone.
                let content = unsafe { &*content };
                let count = content.count as usize;
                into[..count].copy_from_slice(&content.slots[..count]);
                count
            });
            self.empty.push(index, &magazine.link);
            return Ok(count);
        }
        let Row { first, count, mark } = self.records.fresh(MAGAZINE as u32)?;
        let generation = self.first_generation.wrapping_add(mark) & GENERATION_MASK;
        for (place, slot) in into.iter_mut().zip(first..first + count) {
            self.at(slot).publish(Word::free(generation));
            *place = slot;
        }
        Ok(count as usize)
    }

    /// Puts at most a magazine of free slots where any thread finds them. Without memory for a
    /// magazine the slots are given up: they are 32 bytes each, and no timer is lost.
    pub(crate) fn flush(&self, slots: &[u32]) {
        debug_assert!(slots.len() <= MAGAZINE);
        let empty = self.empty.pop(|index| &self.magazines.at(index).link);
        let Some(index) = empty.or_else(|| self.magazines.fresh(1).ok().map(|row| row.first))
        else {
            return;
        };
        let magazine = self.magazines.at(index);
        magazine.content.with_mut(|content| {
            // SAFETY: popped or fresh, so it is this thread's alone until the push below.
            let content = unsafe { &mut *content };
            content.count = slots.len() as u32;
            content.slots[..slots.len()].copy_from_slice(slots);
        });
        self.full.push(index, &magazine.link);
    }

    /// Takes all full magazines, whose indices go to `held`; answers the slots in them. `None`: no memory.
    pub(crate) fn collect_free(&self, held: &mut Vec<u32>) -> Option<Free> {
        let mut free = Free::new(self.end())?;
        while held.try_reserve(1).is_ok() {
            let Some(index) = self.full.pop(|index| &self.magazines.at(index).link) else { break };
            held.push(index);
            self.magazines.at(index).content.with(|content| {
                // SAFETY: popped, so it is this thread's alone.
                let content = unsafe { &*content };
                content.slots[..content.count as usize].iter().for_each(|&slot| free.insert(slot));
            });
        }
        Some(free)
    }

    /// Gives back the memory of free slots. What their generations have come to is the rows' mark.
    pub(crate) fn give_back(&self, free: &mut Free) {
        let used = |record: &Record| {
            record.word().generation().wrapping_sub(self.first_generation) & GENERATION_MASK
        };
        self.records.give_back(free, used);
    }

    /// Puts a magazine that `collect_free` took where it belongs, with those of its slots that are
    /// in `free` (all, if there is no such set).
    pub(crate) fn put_back(&self, index: u32, free: Option<&Free>) {
        let magazine = self.magazines.at(index);
        let count = magazine.content.with_mut(|content| {
            // SAFETY: still this thread's alone.
            let content = unsafe { &mut *content };
            let mut kept = 0;
            for at in 0..content.count as usize {
                let slot = content.slots[at];
                if free.is_none_or(|free| free.contains(slot)) {
                    content.slots[kept] = slot;
                    kept += 1;
                }
            }
            content.count = kept as u32;
            kept
        });
        let stack = if count == 0 { &self.empty } else { &self.full };
        stack.push(index, &magazine.link);
    }

    /// The word of a slot whose timer of this generation has just ended, and whether the slot is used up.
    #[inline]
    pub(crate) fn freed(&self, generation: u32) -> (Word, bool) {
        (Word::free(generation.wrapping_add(1)), generation == self.last_generation)
    }

    /// The offset that says `due` in a record of this kind; writes a note when it does not fit. `most` as in
    /// `Extras::note`.
    #[inline]
    pub(crate) fn encode(
        &self,
        kind: Kind,
        due: Due,
        most: impl FnOnce() -> u64,
    ) -> Result<Offset, Error> {
        if due.tick == NEVER_TICK {
            return Ok(Offset::NEVER);
        }
        let fits =
            if kind.is_exact() { self.ticks.trim(due) == 0 } else { self.ticks.fits_low(due) };
        if let Some(offset) = kind.offset(due.tick)
            && fits
        {
            return Ok(offset);
        }
        self.extras.note(due, most).map(Offset::far)
    }

    /// The tick that a word of this record says, or `None` when nothing is armed.
    #[inline]
    pub(crate) fn tick_of(&self, record: &Record, offset: Offset) -> Option<u64> {
        if offset.is_near() {
            Some(record.kind().tick(offset))
        } else {
            self.decode(record, offset).map(|due| due.tick)
        }
    }

    /// What a word of this record says, or `None` when nothing is armed.
    #[inline]
    pub(crate) fn decode(&self, record: &Record, offset: Offset) -> Option<Due> {
        if offset == Offset::NONE {
            None
        } else if offset == Offset::NEVER {
            Some(Due { tick: NEVER_TICK, deadline_ns: crate::types::NEVER })
        } else if let Some(note) = offset.far_note() {
            self.extras.read_note(note)
        } else {
            let kind = record.kind();
            let tick = kind.tick(offset);
            Some(if kind.is_exact() {
                Due { tick, deadline_ns: self.ticks.instant(tick) }
            } else {
                self.ticks.with_low(tick, record.low())
            })
        }
    }

    /// Stores the exact part of a deadline whose offset has just been put in the word.
    #[inline]
    pub(crate) fn set_low(&self, record: &Record, offset: Offset, due: Due) {
        if offset != Offset::NEVER && offset.far_note().is_none() {
            record.set_low(due.deadline_ns);
        }
    }

    /// Gives back what an offset refers to, once no word holds it any more.
    #[inline]
    pub(crate) fn release(&self, offset: Offset) {
        if let Some(note) = offset.far_note() {
            self.extras.retire_note(note);
        }
    }

    /// Gives back a note that no word has held.
    pub(crate) fn unencode(&self, offset: Offset) {
        self.release(offset);
    }

    /// As `unencode`, for an offset that may be the word's own.
    pub(crate) fn unencode_new(&self, offset: Offset, word: Word) {
        if offset != word.offset() {
            self.unencode(offset);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.records.bytes() + self.magazines.bytes() + self.extras.bytes()
    }
}
