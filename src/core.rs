//! What belongs to a shard's owner alone: the wheel, what is due at once, and the batch at hand.
//!
//! Ground rules: plain memory, touched only by the thread that owns the shard at the time: its worker,
//! its attached thread, or the thread that polls it. No function of the host runs while it is
//! borrowed.

mod ready;
mod upkeep;

use self::upkeep::COMPACT_FROM;
use crate::alive::Alive;
use crate::fresh::Fresh;
use crate::handle::GENERATION_BITS;
use crate::record::Record;
use crate::slab::Slab;
use crate::status::Error;
use crate::sys::prefetch::{prefetch_read, prefetch_write};
use crate::ticks::{Due, NEVER_TICK};
use crate::types::NEVER;
use crate::wheel::{Batch, Look, NoMemory, Records, Reminder, Wheel};
use crate::word::{Offset, Phase, Word};
use std::collections::VecDeque;

/// Reminders that one turn moves in cascades before it looks at the inboxes again, and that one
/// step of compaction visits.
pub(crate) const SLICE: usize = if cfg!(debug_assertions) { 256 } else { 8_192 };

/// How far a deadline must lie beyond the owner's last look at the clock to be taken to lie ahead.
const AHEAD_NS: u64 = 50_000_000;

/// An entry of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(u64);

impl Entry {
    #[inline]
    pub(crate) fn new(slot: u32, generation: u32) -> Entry {
        Entry(u64::from(slot) << GENERATION_BITS | u64::from(generation))
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Entry {
        Entry(bits)
    }

    #[inline]
    pub(crate) fn slot(self) -> u32 {
        (self.0 >> GENERATION_BITS) as u32
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        self.0 as u32 & crate::handle::GENERATION_MASK
    }
}

impl From<NoMemory> for Error {
    fn from(_: NoMemory) -> Error {
        Error::NoMemory
    }
}

/// See the head of this file.
pub(crate) struct Core {
    pub(crate) wheel: Wheel,
    fresh: Fresh,
    /// Reminders of timers that were due when they were filed, in the order of filing.
    pub(crate) ready: VecDeque<Reminder>,
    /// The latest tick of any that was put there, and whether one has come after a later one.
    ready_tick: u64,
    disordered: bool,
    /// Reminders of one tick that have been collected and not looked at yet.
    pub(crate) batch: Batch,
    /// While a turn runs: how many of `ready`, at its front, it still has to serve. The rest waits for
    /// the next one.
    pub(crate) ready_now: usize,
    /// While a callback runs: its timer has been reset in it.
    pub(crate) regridded: bool,
    /// While a turn runs: what is filed for this tick or an earlier one waits for the next turn.
    pub(crate) horizon: u64,
    /// The clock as the turn began; never goes back.
    pub(crate) now_ns: u64,
    /// When the owner last looked at the clock, and the tick that it had reached.
    looked: Due,
    /// The tick whose timers may have been past their deadlines when they were armed, though they were taken to lie
    /// ahead: the one after that which the owner saw reached. `NEVER_TICK`: he does not guess.
    doubtful: u64,
    /// A sole owner takes a deadline beyond this to lie ahead, without a look at the clock. It may be wrong when
    /// it has not looked for long: see `take_in`.
    pub(crate) ahead_ns: u64,
    /// Is this an owner who does so?
    guesses: bool,
    /// Is the shard owned exclusively?
    sole: bool,
    alive: Alive,
    /// Live reminders when compaction was last looked into, so that it is not begun in vain.
    pub(crate) compact_at: usize,
    pub(crate) compacting: bool,
    /// Memory is to be given back when the compaction that is under way is finished.
    pub(crate) trimming: bool,
    /// How many may be due before the dead among them are dropped.
    prune_at: usize,
    /// Reminders filed or timers cancelled since `compact` was last called.
    stirred: usize,
}

impl Core {
    /// A core whose wheel stands at the tick that the clock has reached.
    pub(crate) fn new(tick: u64) -> Core {
        let mut wheel = Wheel::new();
        wheel.start_at(tick);
        Core {
            wheel,
            fresh: Fresh::new(),
            ready: VecDeque::new(),
            ready_tick: 0,
            disordered: false,
            batch: Batch::new(),
            ready_now: 0,
            regridded: false,
            horizon: 0,
            now_ns: 0,
            looked: Due { tick, deadline_ns: 0 },
            doubtful: NEVER_TICK,
            ahead_ns: NEVER,
            guesses: false,
            sole: false,
            alive: Alive::default(),
            compact_at: COMPACT_FROM,
            compacting: false,
            trimming: false,
            prune_at: COMPACT_FROM,
            stirred: 0,
        }
    }

    /// Files a reminder for `tick`: in the wheel, or with what is due at once. It takes the place of
    /// those that were filed for the slot before. On an error these are still good.
    #[inline]
    pub(crate) fn file(&mut self, record: &Record, slot: u32, tick: u64) -> Result<(), Error> {
        self.file_after(self.done(), record, slot, tick)
    }

    /// What is filed for this tick or an earlier one is due at once.
    #[inline(always)]
    fn done(&self) -> u64 {
        self.horizon.max(self.wheel.elapsed())
    }

    /// Files a reminder that came up before its timer's tick, because the timer has been put off. It
    /// comes at that tick: in this very turn, among what is due there, if the turn gets so far.
    pub(crate) fn put_off(&mut self, record: &Record, slot: u32, tick: u64) -> Result<(), Error> {
        self.file_after(self.wheel.elapsed(), record, slot, tick)
    }

    #[inline(always)]
    fn file_after(
        &mut self,
        done: u64,
        record: &Record,
        slot: u32,
        tick: u64,
    ) -> Result<(), Error> {
        if tick == NEVER_TICK { Ok(()) } else { self.file_tick(done, record, slot, tick) }
    }

    /// As `file_after`, for a tick that comes.
    #[inline(always)]
    fn file_tick(&mut self, done: u64, record: &Record, slot: u32, tick: u64) -> Result<(), Error> {
        let tag = record.tag().wrapping_add(1);
        if tick > done {
            self.wheel.file(slot, tag.into(), tick)?;
        } else {
            self.file_ready(record, slot, tag, tick)?;
        }
        self.filed(record, slot, tag);
        Ok(())
    }

    /// The shard is owned exclusively from now on, or no more; `guesses`: such an owner takes deadlines to lie
    /// ahead.
    pub(crate) fn set_sole(&mut self, sole: bool, guesses: bool) {
        (self.sole, self.guesses) = (sole, sole && guesses);
        (self.ahead_ns, self.doubtful) = (NEVER, NEVER_TICK);
        self.alive.forget();
    }

    /// May the deadline of a timer that is noted have been past when it was taken to lie ahead?
    pub(crate) fn has_guessed(&self) -> bool {
        self.guesses && !self.fresh.is_empty()
    }

    /// The owner looks at the clock; `reached` is the tick that it has come to.
    pub(crate) fn look(&mut self, now_ns: u64, reached: u64) {
        self.looked = Due { tick: reached, deadline_ns: now_ns };
        if self.guesses {
            (self.ahead_ns, self.doubtful) = (now_ns.saturating_add(AHEAD_NS), reached + 1);
        }
    }

    /// Notes a timer that is about to be started on this thread, if there is room; its reminder is filed by
    /// `settle_fresh`.
    #[inline(always)]
    pub(crate) fn note_fresh(&mut self, entry: Entry) -> bool {
        self.fresh.push(entry)
    }

    /// Notes a timer that is about to be made earlier. What is filed now stands in for the reminder to come.
    #[inline(always)]
    pub(crate) fn note_again(&mut self, entry: Entry) -> bool {
        let room = self.fresh.push(entry);
        if room && self.sole {
            self.alive.ended(entry.slot());
        }
        room
    }

    /// Files the reminders of the newest timers, those that have not ended yet. What there is no memory for
    /// stays.
    #[inline]
    pub(crate) fn settle_fresh(&mut self, slab: &Slab) -> Result<(), Error> {
        if self.fresh.is_empty() { Ok(()) } else { self.settle_some_fresh(slab) }
    }

    #[inline(never)]
    fn settle_some_fresh(&mut self, slab: &Slab) -> Result<(), Error> {
        let mut filed = 0;
        let mut result = Ok(());
        while let (Some(entry), Ok(())) = (self.fresh.get(filed), result) {
            result = self.take_in(slab, entry);
            filed += usize::from(result.is_ok());
        }
        self.fresh.forget_first(filed);
        result
    }

    #[inline]
    fn filed(&mut self, record: &Record, slot: u32, tag: u16) {
        record.set_tag(tag);
        if self.sole {
            self.alive.filed(slot, tag);
        }
        self.stirred += 1;
    }

    /// Files a reminder that must not be lost, after `reserve_ready` has made room for it.
    pub(crate) fn file_surely(&mut self, record: &Record, slot: u32, tick: u64) {
        if self.file(record, slot, tick).is_err() {
            let tag = record.tag().wrapping_add(1);
            self.push_ready(record, slot, tag, tick);
            self.filed(record, slot, tag);
        }
    }

    /// Files a reminder that comes up again in this very turn, after `reserve_ready`: of a timer that
    /// serves each missed period.
    pub(crate) fn file_again(&mut self, record: &Record, slot: u32, tick: u64) {
        let tag = record.tag().wrapping_add(1);
        if tick <= self.wheel.elapsed() || self.wheel.file(slot, tag.into(), tick).is_err() {
            self.ready.push_front(Reminder::new(slot, tag.into(), tick));
            self.ready_now += 1;
        }
        self.filed(record, slot, tag);
    }

    /// Would `take_in` do anything with this entry?
    pub(crate) fn means_something(slab: &Slab, entry: Entry) -> bool {
        let word = slab.at(entry.slot()).word();
        word.is_pending(entry.generation())
    }

    /// Takes in an entry of an inbox. An error leaves it where it is.
    #[inline(always)]
    pub(crate) fn take_in(&mut self, slab: &Slab, entry: Entry) -> Result<(), Error> {
        // SAFETY: who made the entry had the slot.
        let record = unsafe { slab.handed_out(entry.slot()) };
        let word = record.word();
        if !word.is_pending(entry.generation()) {
            return Ok(());
        }
        match slab.tick_of(record, word.offset()) {
            Some(NEVER_TICK) | None => Ok(()),
            Some(tick) => {
                let tick = self.due_tick(slab, record, word, tick);
                self.file_tick(self.done(), record, entry.slot(), tick)
            }
        }
    }

    /// When a timer is due whose word says `tick`: at once, if its deadline was taken to lie ahead and was past.
    #[inline]
    pub(crate) fn due_tick(&self, slab: &Slab, record: &Record, word: Word, tick: u64) -> u64 {
        if tick == self.doubtful { self.at_once_if_past(slab, record, word, tick) } else { tick }
    }

    /// A deadline within the tick that comes next that is past now may have been past when the timer was armed.
    /// Nobody else moves the word meanwhile, or its low bits: only a sole owner guesses.
    #[cold]
    fn at_once_if_past(&self, slab: &Slab, record: &Record, word: Word, tick: u64) -> u64 {
        let Due { tick: reached, deadline_ns: now_ns } = self.looked;
        let kind = record.kind();
        let past = slab.decode(record, word.offset()).is_some_and(|due| due.deadline_ns <= now_ns);
        match kind.offset(reached) {
            Some(offset) if past && !kind.is_exact() && word.offset().is_near() => {
                record.publish(word.with(Phase::Pending, offset));
                reached
            }
            _ => tick,
        }
    }

    /// A timer has been cancelled on this thread: it is taken back if it is the newest; otherwise its reminder is
    /// dead from now on, and the answer is false.
    #[inline(always)]
    pub(crate) fn take_back(&mut self, entry: Entry) -> bool {
        let taken = self.fresh.take_back(entry);
        if !taken {
            self.stirred += 1;
            if self.sole {
                self.alive.ended(entry.slot());
            }
        }
        taken
    }

    /// Is something to be looked at that is not in the wheel?
    pub(crate) fn has_due(&self) -> bool {
        !self.batch.is_empty() || !self.ready.is_empty() || !self.fresh.is_empty()
    }

    /// How many have been collected already, live and dead.
    pub(crate) fn due(&self) -> usize {
        self.batch.rest().len() + self.ready.len()
    }
}

/// Is this the newest reminder that was filed for the slot?
#[inline]
pub(crate) fn is_newest(record: &Record, slot: u32, reminder: Reminder) -> bool {
    reminder.slot() == slot && reminder.generation() == u32::from(record.tag())
}

impl Records for Slab {
    fn look(&self, reminder: Reminder) -> Look {
        if !self.lives(reminder) {
            return Look::Dead;
        }
        let record = self.at(reminder.slot());
        match self.tick_of(record, record.word().offset()) {
            Some(tick) if tick != NEVER_TICK => Look::At(tick),
            _ => Look::Dead,
        }
    }

    #[inline]
    fn lives(&self, reminder: Reminder) -> bool {
        let record = self.at(reminder.slot());
        let word = record.word();
        let comes = word.waits() && word.offset() != Offset::NEVER;
        comes && is_newest(record, reminder.slot(), reminder)
    }

    fn prefetch(&self, reminder: Reminder) {
        if let Some(record) = self.get(reminder.slot()) {
            prefetch_read(std::ptr::from_ref(record));
        }
    }
}

impl Slab {
    /// The record will be looked at soon, and its word moved.
    pub(crate) fn prefetch_to_write(&self, reminder: Reminder) {
        if let Some(record) = self.get(reminder.slot()) {
            prefetch_write(std::ptr::from_ref(record));
        }
    }
}
