//! The wheel against a model that cannot be wrong: a map from ticks to queues.

mod boundaries;
mod memory;
mod peers;
mod random;

use super::compact::Compacted;
use super::reminder::GEN_BITS;
use super::*;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Where wheels are started.
pub(super) const ORIGINS: [u64; 13] = [
    0,
    1,
    63,
    (1 << 18) - 1,
    (1 << 24) - 2,
    (1 << 31) - 1,
    (1 << 32) - 3,
    (1 << 36) - 1,
    (1 << 42) - 5,
    0x0fff_ffff_ffff_fff0,
    u64::MAX / 2,
    u64::MAX - 70,
    u64::MAX - 1,
];

/// A timer: its slot is its place in the book.
struct Timer {
    /// `None`: dead.
    tick: Option<u64>,
    /// Ticks at which it may come up.
    allowed: Vec<u64>,
    /// Reminders of it that the wheel may hold; exactly so many while it lives.
    reminders: usize,
    /// Its tick was never changed: it has its place in the order.
    clean: bool,
}

/// The records, with every question counted.
#[derive(Default)]
struct Book {
    timers: Vec<Timer>,
    looks: Cell<usize>,
}

/// Above what a reminder can carry.
fn generation(slot: u32) -> u32 {
    (slot + 1).wrapping_mul(100_003)
}

impl Records for Book {
    fn look(&self, reminder: Reminder) -> Look {
        self.looks.set(self.looks.get() + 1);
        let slot = reminder.slot();
        assert_eq!(reminder.generation(), generation(slot) & ((1 << GEN_BITS) - 1));
        self.timers[slot as usize].tick.map_or(Look::Dead, Look::At)
    }

    fn prefetch(&self, reminder: Reminder) {
        assert!((reminder.slot() as usize) < self.timers.len());
    }
}

/// A wheel, what it must hold, and what came out of it.
struct Model {
    wheel: Wheel,
    book: Book,
    /// Clean timers in the order in which they must come up.
    order: BTreeMap<u64, VecDeque<u32>>,
    batch: Batch,
    /// Tick and slot of all that came up, dead ones apart.
    fired: Vec<(u64, u32)>,
}

impl Model {
    fn new(origin: u64) -> Model {
        let mut wheel = Wheel::new();
        wheel.start_at(origin);
        Model {
            wheel,
            book: Book::default(),
            order: BTreeMap::new(),
            batch: Batch::new(),
            fired: Vec::new(),
        }
    }

    /// A new timer; `None` if the allocator refuses.
    fn file(&mut self, tick: u64) -> Option<u32> {
        let slot = self.book.timers.len() as u32;
        let before = (self.wheel.len(), self.wheel.next_tick());
        if self.wheel.file(slot, generation(slot), tick).is_err() {
            assert_eq!(before, (self.wheel.len(), self.wheel.next_tick()));
            return None;
        }
        self.book.timers.push(Timer {
            tick: Some(tick),
            allowed: vec![tick],
            reminders: 1,
            clean: true,
        });
        self.order.entry(tick).or_default().push_back(slot);
        Some(slot)
    }

    fn kill(&mut self, slot: u32) {
        self.book.timers[slot as usize].tick = None;
    }

    /// A timer's tick changes. An earlier one needs a reminder, as in the engine.
    fn reset(&mut self, slot: u32, tick: u64) {
        let timer = &mut self.book.timers[slot as usize];
        let Some(old) = timer.tick else { return };
        if tick < old && self.wheel.file(slot, generation(slot), tick).is_err() {
            return;
        }
        timer.reminders += usize::from(tick < old);
        timer.tick = Some(tick);
        timer.clean = false;
        timer.allowed.push(tick);
    }

    /// One call of `collect`, with all that must be true of its answer.
    fn collect(&mut self, now: u64, work: &mut usize) -> Result<Collected, NoMemory> {
        let (elapsed, before) = (self.wheel.elapsed(), *work);
        let got = self.wheel.collect(now, &mut self.batch, work, &self.book);
        assert!(*work <= before && self.wheel.elapsed() >= elapsed);
        match got {
            Ok(Collected::Tick(tick)) => {
                assert!(tick <= now.max(elapsed) && tick == self.wheel.elapsed());
                assert!(!self.batch.is_empty());
                while let Some(reminder) = self.batch.next() {
                    self.came_up(tick, reminder.slot());
                }
            }
            Ok(Collected::Idle) => {
                assert_eq!(self.wheel.elapsed(), now.max(elapsed));
                assert!(self.wheel.next_tick().is_none_or(|next| next > now));
                for (tick, queue) in self.order.range(..=now) {
                    assert!(queue.iter().all(|&slot| !self.waits(slot)), "lost at {tick}");
                }
                for timer in &self.book.timers {
                    let due = timer.tick.is_some_and(|tick| tick <= now);
                    assert!(!due || timer.reminders == 0, "lost");
                }
                self.order = self.order.split_off(&now.saturating_add(1));
            }
            Ok(Collected::MoreWork) => assert!(*work == 0 && self.batch.is_empty()),
            Err(NoMemory) => assert!(self.batch.is_empty()),
        }
        got
    }

    /// A clean timer that must still come up.
    fn waits(&self, slot: u32) -> bool {
        let timer = &self.book.timers[slot as usize];
        timer.clean && timer.tick.is_some() && timer.reminders > 0
    }

    fn came_up(&mut self, tick: u64, slot: u32) {
        let timer = &mut self.book.timers[slot as usize];
        assert!(timer.reminders > 0, "{slot} comes up once too often");
        timer.reminders -= 1;
        let clean = timer.clean;
        match timer.tick {
            None => return,
            Some(due) if due > tick => {
                // Put off since it was filed: file it again, as the engine does.
                assert!(timer.allowed.contains(&tick), "{slot} at {tick}");
                assert!(!clean);
                if self.wheel.file(slot, generation(slot), due).is_ok() {
                    timer.reminders += 1;
                } else {
                    timer.tick = None;
                }
                return;
            }
            Some(_) if clean => assert!(timer.allowed.contains(&tick), "{slot} at {tick}"),
            Some(_) => {}
        }
        if clean {
            while let Some(mut entry) = self.order.first_entry() {
                let first = *entry.key();
                match entry.get_mut().pop_front() {
                    None => drop(entry.remove()),
                    Some(next) if next == slot => {
                        assert_eq!(first, tick);
                        break;
                    }
                    Some(next) => assert!(!self.waits(next), "{slot} came before {next}"),
                }
            }
        }
        let timer = &mut self.book.timers[slot as usize];
        timer.tick = None;
        self.fired.push((tick, slot));
    }

    /// Collects up to `now` with `work` a call, checking all the way. Returns how many fired.
    fn advance_by_slices(&mut self, now: u64, work: usize) -> usize {
        let before = self.fired.len();
        loop {
            let got = self.collect(now, &mut { work }).expect("no limit is set");
            self.check();
            if got == Collected::Idle {
                return self.fired.len() - before;
            }
        }
    }

    /// Collects up to `now` in one go. Returns how many fired.
    fn advance(&mut self, now: u64) -> usize {
        let before = self.fired.len();
        while self.collect(now, &mut { usize::MAX }).expect("no limit is set") != Collected::Idle {}
        self.fired.len() - before
    }

    fn compact(&mut self, work: &mut usize) -> Compacted {
        let before = self.wheel.len();
        let done = self.wheel.compact(work, &self.book);
        assert_eq!(self.wheel.len() + done.dropped, before);
        done
    }

    fn clear(&mut self) {
        self.wheel.clear();
        self.order.clear();
        for timer in &mut self.book.timers {
            (timer.tick, timer.reminders) = (None, 0);
        }
    }

    /// The wheel's own check, and that it holds every live timer, each in its bucket.
    fn check(&self) {
        self.wheel.check();
        let mut held: HashMap<u32, usize> = HashMap::new();
        for (bucket, reminder) in self.wheel.dump() {
            let slot = reminder.slot();
            *held.entry(slot).or_default() += 1;
            let timer = &self.book.timers[slot as usize];
            if timer.clean && timer.tick.is_some() && !self.wheel.is_cascading() {
                let belongs = bits::bucket_of(self.wheel.elapsed(), timer.allowed[0]);
                assert_eq!(bucket, belongs);
            }
        }
        for (slot, timer) in self.book.timers.iter().enumerate() {
            let held = held.get(&(slot as u32)).copied().unwrap_or(0);
            if timer.tick.is_some() {
                assert_eq!(held, timer.reminders, "reminders of {slot}");
                assert!(timer.reminders > 0);
            } else {
                assert!(held <= timer.reminders, "reminders of {slot}");
            }
        }
        let next = self.wheel.next_tick();
        for slot in self.order.values().flatten().filter(|&&slot| self.waits(slot)) {
            let tick = self.book.timers[*slot as usize].allowed[0];
            assert!(next.is_some_and(|next| next <= tick), "next is after {tick}");
        }
        let looks = self.book.looks.get();
        let due = self.wheel.next_due(&self.book);
        self.book.looks.set(looks);
        assert!(due >= next && due.is_some() == next.is_some());
        for tick in self.book.timers.iter().filter_map(|timer| timer.tick) {
            assert!(due.is_some_and(|due| due <= tick), "due is after {tick}");
        }
    }
}
