//! One producer thread's hands: it starts, pushes out and cancels its own timers, with a line in
//! the ledger around each call, and keeps a small agenda of what to do some milliseconds from now.

use crate::clock::{self, MS};
use crate::fire::{Desk, Mailbox, on_expiry};
use crate::ledger::{Arena, Entry, Key, Phase, Plan, Tally, bump};
use crate::service::Service;
use shardwheel::capi::{sw_status, sw_timer_spec};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// Most starts in one call.
pub const BATCH: u32 = 64;

/// Something to do later with a timer, if it is still the same one by then.
#[derive(Debug, Clone, Copy)]
pub struct Todo {
    pub slot: u32,
    pub generation: u64,
    /// The standing timer that it belongs to.
    pub owner: u32,
}

/// Things to do, by millisecond; at most `REACH` ahead.
#[derive(Debug)]
pub struct Agenda {
    days: Vec<Vec<Todo>>,
    today: u64,
}

impl Agenda {
    const REACH: u64 = 8192;

    fn new() -> Agenda {
        Agenda { days: vec![Vec::new(); Self::REACH as usize], today: clock::now() / MS }
    }

    fn put(&mut self, delay_ns: u64, todo: Todo) {
        let day = self.today + (delay_ns / MS).clamp(1, Self::REACH - 1);
        self.days[(day % Self::REACH) as usize].push(todo);
    }

    /// What was planned for the next day that is not over yet; `None` when all is done up to now.
    fn next(&mut self, now: u64) -> Option<Vec<Todo>> {
        if self.today > now / MS {
            return None;
        }
        let todo = std::mem::take(&mut self.days[(self.today % Self::REACH) as usize]);
        self.today += 1;
        Some(todo)
    }
}

/// SplitMix64: small, and good enough to pick connections.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly in `from..to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        let width = u128::from(to.saturating_sub(from));
        from + ((u128::from(self.next()) * width) >> 64) as u64
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.between(0, n) == 0
    }
}

#[derive(Debug)]
pub struct Producer {
    desk: &'static Desk,
    service: Service,
    index: usize,
    arena: &'static Arena,
    mailbox: Mailbox,
    /// Name the shards one after the other; else the library's choice, this thread's home.
    spread: bool,
    /// Entries without a timer, beyond the standing ones.
    free: Vec<u32>,
    blank: sw_timer_spec,
    agenda: Agenda,
    pub standing: u32,
    pub dice: Dice,
}

impl Producer {
    pub fn new(
        desk: &'static Desk,
        index: usize,
        mailbox: Mailbox,
        standing: u32,
        spread: bool,
    ) -> Producer {
        let arena = &desk.ledger.arenas[index];
        let mut blank = Service::spec();
        blank.callback = Some(on_expiry);
        Producer {
            desk,
            service: desk.service,
            index,
            arena,
            mailbox,
            spread,
            free: (standing..arena.entries().len() as u32).rev().collect(),
            blank,
            agenda: Agenda::new(),
            standing,
            dice: Dice(index as u64 * 7919 + 1),
        }
    }

    fn tally(&self, timer: u64) -> &'static Tally {
        self.desk.ledger.tally(self.index, Service::shard_of(timer))
    }

    fn spec(&self, slot: u32, generation: u64, plan: Plan, delay_ns: u64) -> sw_timer_spec {
        let mut spec = self.blank;
        spec.delay_ns = delay_ns;
        spec.ctx = Key { arena: self.index, slot, generation }.to_ctx();
        if let Plan::Every(period) = plan {
            spec.period_ns = period;
        }
        if self.spread {
            spec.shard = slot % self.desk.ledger.shards as u32;
        }
        spec
    }

    /// Starts a timer in an entry that has none. False: the library refused.
    pub fn start(&mut self, slot: u32, plan: Plan, delay_ns: u64) -> bool {
        let entry = self.arena.entry(slot);
        let generation = entry.open(clock::now().saturating_add(delay_ns), plan);
        match self.service.start_timer(&self.spec(slot, generation, plan, delay_ns)) {
            Ok(timer) => {
                self.started(entry, timer);
                true
            }
            Err(_) => {
                self.refused(entry);
                false
            }
        }
    }

    fn started(&self, entry: &Entry, timer: u64) {
        entry.set_timer(timer);
        bump(&self.tally(timer).started);
    }

    fn refused(&self, entry: &Entry) {
        entry.refuse();
        self.desk.ledger.faults.refused.fetch_add(1, Relaxed);
    }

    /// Starts a timer in each of at most `BATCH` entries, as `draw` says, by one call.
    pub fn start_batch(
        &mut self,
        slots: Range<u32>,
        mut draw: impl FnMut(&mut Dice, u32) -> (Plan, u64),
    ) {
        let mut timers = [0; BATCH as usize];
        let mut specs = Vec::with_capacity(slots.len());
        let now = clock::now();
        for slot in slots.clone() {
            let (plan, delay_ns) = draw(&mut self.dice, slot);
            let generation = self.arena.entry(slot).open(now.saturating_add(delay_ns), plan);
            specs.push(self.spec(slot, generation, plan, delay_ns));
        }
        let entries = slots.map(|slot| self.arena.entry(slot));
        match self.service.start_batch(&specs, &mut timers) {
            Ok(()) => entries.zip(timers).for_each(|(entry, timer)| self.started(entry, timer)),
            Err(_) => entries.for_each(|entry| self.refused(entry)),
        }
    }

    /// Moves a timer's deadline, if it still runs.
    pub fn push_out(&mut self, slot: u32, delay_ns: u64) {
        let entry = self.arena.entry(slot);
        let generation = entry.generation();
        let timer = entry.timer();
        let bound = clock::now().saturating_add(delay_ns);
        let old = entry.bound_moving(bound);
        match self.service.reset(timer, delay_ns) {
            sw_status::SW_OK => {
                entry.bound_moved(bound);
                bump(&self.tally(timer).moved);
            }
            sw_status::SW_RUNNING => entry.bound_moved(old),
            answer => {
                entry.bound_moved(old);
                self.must_have_ended(entry, generation, answer);
            }
        }
    }

    /// Cancels. True if that ended it, so that the entry is free now; false if it had fired, so
    /// that the entry comes (or came) by mail.
    pub fn cancel(&mut self, slot: u32) -> bool {
        let entry = self.arena.entry(slot);
        let generation = entry.generation();
        let timer = entry.timer();
        match self.service.cancel(timer) {
            sw_status::SW_OK => {
                bump(&self.tally(timer).cancelled);
                if entry.close(generation, Phase::Cancelled).is_err() {
                    // It ran, although the answer says that it never will.
                    self.desk.ledger.faults.twice.fetch_add(1, Relaxed);
                }
                true
            }
            sw_status::SW_RUNNING => {
                // Once the callback is over, has it ended or armed itself for another time? Then
                // that time will not come any more.
                self.service.cancel_wait(timer);
                let caught = entry.close(generation, Phase::Cancelled).is_ok();
                if caught {
                    bump(&self.tally(timer).caught);
                }
                caught
            }
            answer => {
                self.must_have_ended(entry, generation, answer);
                false
            }
        }
    }

    /// "Not found" is true only of a timer that has ended; nothing else is expected here.
    fn must_have_ended(&self, entry: &Entry, generation: u64, answer: sw_status) {
        if answer != sw_status::SW_NOT_FOUND || entry.is_armed(generation) {
            self.desk.ledger.faults.wrong.fetch_add(1, Relaxed);
        }
    }

    /// One of the standing timers, at random.
    pub fn pick(&mut self) -> u32 {
        self.dice.between(0, u64::from(self.standing)) as u32
    }

    /// Starts a passing timer in any free entry; `None` when there is none, or no room.
    pub fn start_passing(&mut self, plan: Plan, delay_ns: u64) -> Option<u32> {
        let slot = self.free.pop()?;
        if self.start(slot, plan, delay_ns) {
            return Some(slot);
        }
        self.free.push(slot);
        None
    }

    /// A passing timer's entry is free again.
    pub fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Puts the timer in `slot` on the agenda.
    pub fn later(&mut self, delay_ns: u64, slot: u32, owner: u32) {
        let generation = self.arena.entry(slot).generation();
        self.agenda.put(delay_ns, Todo { slot, generation, owner });
    }

    /// What is planned up to now.
    pub fn todo(&mut self) -> Option<Vec<Todo>> {
        self.agenda.next(clock::now())
    }

    /// Cancels what was planned, if the entry still holds the same timer.
    pub fn cancel_planned(&mut self, todo: Todo) -> bool {
        self.arena.entry(todo.slot).generation() == todo.generation && self.cancel(todo.slot)
    }

    /// The next entry that has come home after its timer fired.
    pub fn fired(&mut self) -> Option<u32> {
        self.mailbox.iter().find_map(|shard| shard.try_recv().ok())
    }
}
