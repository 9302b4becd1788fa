//! What the wheel takes from the allocator, and what happens when that refuses.

use super::*;
use crate::wheel::chunks::ENTRIES;

/// A small generator for loads that need not shrink.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Of every magnitude up to `bits` bits, all equally likely.
    pub(super) fn spread(&mut self, bits: u64) -> u64 {
        let bit = self.below(bits);
        self.below(2 << bit)
    }
}

/// Every reminder is alive, at the tick it was filed for.
struct Filed(Vec<u64>);

impl Records for Filed {
    fn look(&self, reminder: Reminder) -> Look {
        Look::At(self.0[reminder.slot() as usize])
    }
    fn prefetch(&self, _: Reminder) {}
}

#[test]
fn flat_in_a_steady_state() {
    let mut rng = Rng(9);
    let mut wheel = Wheel::new();
    let mut filed = Filed(vec![0; 20_000]);
    let mut batch = Batch::new();
    for slot in 0..20_000 {
        filed.0[slot] = 1 + rng.below(100_000);
        wheel.file(slot as u32, 0, filed.0[slot]).unwrap();
    }
    let mut memory = 0;
    for now in 1..600_000 {
        while let Collected::Tick(tick) =
            wheel.collect(now, &mut batch, &mut { usize::MAX }, &filed).unwrap()
        {
            while let Some(reminder) = batch.next() {
                let slot = reminder.slot() as usize;
                assert_eq!(filed.0[slot], tick);
                filed.0[slot] = tick + 1 + rng.below(100_000);
                wheel.file(reminder.slot(), 0, filed.0[slot]).unwrap();
            }
        }
        assert_eq!(wheel.len(), 20_000);
        if now == 300_000 {
            memory = wheel.memory_bytes();
        }
    }
    assert!(wheel.memory_bytes() <= memory + 32 * 1024, "{memory} {}", wheel.memory_bytes());
    wheel.check();
}

#[test]
fn about_eight_bytes_each() {
    let mut wheel = Wheel::new();
    assert!(wheel.memory_bytes() < 8 * 1024);
    for slot in 0..1_000_000 {
        wheel.file(slot, 0, 1 + u64::from(slot) % 10_000).unwrap();
    }
    let each = (wheel.memory_bytes() - size_of::<Wheel>()) as f64 / 1e6;
    assert!(each < 8.3, "{each}");
    wheel.clear();
    wheel.check();
    wheel.trim();
    assert_eq!(wheel.memory_bytes(), size_of::<Wheel>());
}

#[test]
fn one_chunk_for_each_occupied_bucket() {
    let mut model = Model::new(0);
    for level in 0..bits::LEVELS as u32 {
        for digit in 1..if level == 10 { 16 } else { 64 } {
            model.file(digit << (6 * level)).unwrap();
        }
    }
    assert_eq!(model.wheel.buckets.pool.used(), 10 * 63 + 15);
    assert!(model.wheel.memory_bytes() < 400 * 1024);
    model.check();
}

#[test]
fn compaction_gives_chunks_back_and_keeps_order() {
    let mut rng = Rng(5);
    for work in [1, 63, 64, 1_000, usize::MAX] {
        let mut model = Model::new(7);
        for _ in 0..20_000 {
            let tick = 8 + rng.spread(20);
            model.file(tick).unwrap();
        }
        for slot in 0..20_000 {
            if rng.below(4) > 0 {
                model.kill(slot);
            }
        }
        let (mut dropped, mut calls) = (0, 0);
        loop {
            let done = model.compact(&mut { work });
            (dropped, calls) = (dropped + done.dropped, calls + 1);
            if done.finished {
                break;
            }
        }
        assert_eq!(model.wheel.len(), 20_000 - dropped);
        let live = model.book.timers.iter().filter(|timer| timer.tick.is_some()).count();
        assert_eq!(model.wheel.len(), live);
        assert!(calls <= 2 + 20_000 / work, "{calls} calls");
        let occupied: usize =
            model.wheel.buckets.occupied.iter().map(|word| word.count_ones() as usize).sum();
        let used = model.wheel.buckets.pool.used();
        assert!(used <= occupied + live / ENTRIES, "{used} chunks, {occupied} buckets");
        model.check();
        assert_eq!(model.advance(u64::MAX), live);
    }
}

/// Whatever was dead when a round began is gone when it ends, cascades in between or not.
#[test]
fn a_round_misses_none() {
    let mut rng = Rng(77);
    let mut model = Model::new(0);
    for _ in 0..5_000 {
        model.file(1 + rng.below(1 << 20)).unwrap();
    }
    for slot in (0..5_000).filter(|slot| slot % 3 > 0) {
        model.kill(slot);
    }
    let mut now = 0;
    while !model.compact(&mut 100).finished {
        now += 1 + rng.below(20_000);
        model.advance_by_slices(now, 20);
    }
    let live = model.book.timers.iter().filter(|timer| timer.tick.is_some()).count();
    assert_eq!(model.wheel.len(), live);
}

/// Out of memory at every possible moment, and nothing is lost.
#[test]
fn refusals_lose_nothing() {
    for limit in (1..12).chain([17, 30]) {
        let mut rng = Rng(limit as u64);
        let mut model = Model::new(0);
        model.wheel.buckets.pool.limit = Some(limit);
        let mut refused = 0;
        let mut now = 0;
        for _ in 0..200 {
            for _ in 0..30 {
                let by = rng.spread(30);
                refused += usize::from(model.file(now + 1 + by).is_none());
            }
            now += rng.spread(20);
            loop {
                match model.collect(now, &mut { 50 }) {
                    Ok(Collected::Idle) => break,
                    Ok(_) => {}
                    // A little more, until it can go on.
                    Err(NoMemory) => {
                        refused += 1;
                        model.check();
                        *model.wheel.buckets.pool.limit.as_mut().unwrap() += 1;
                    }
                }
            }
            model.check();
        }
        assert!(refused > 0);
        let live = model.book.timers.iter().filter(|timer| timer.tick.is_some()).count();
        model.wheel.buckets.pool.limit = None;
        assert_eq!(model.advance(u64::MAX), live);
    }
}

/// Reminders that stand alone need no memory on their way down.
#[test]
fn a_lone_reminder_always_gets_through() {
    let mut model = Model::new(0);
    model.wheel.buckets.pool.limit = Some(2);
    model.file(1 << 60).unwrap();
    model.file(u64::MAX).unwrap();
    assert!(model.file(5).is_none());
    assert_eq!(model.advance(u64::MAX), 2);
}

/// A part of a chunk needs memory, as the chunk stays; the whole of it less, as it goes.
#[test]
fn as_far_as_memory_goes() {
    let mut model = Model::new(0);
    for tick in 64..64 + ENTRIES as u64 {
        model.file(tick).unwrap();
    }
    model.wheel.buckets.pool.limit = Some(1);
    for work in [1, 62, 63] {
        assert_eq!(model.collect(64, &mut { work }), Err(NoMemory));
        assert_eq!(model.wheel.next_tick(), Some(64));
        model.check();
    }
    // Two can move, and then the third waits.
    model.wheel.buckets.pool.limit = Some(3);
    let mut work = 63;
    assert_eq!(model.collect(64, &mut work), Err(NoMemory));
    assert_eq!(work, 61);
    model.check();
    model.wheel.buckets.pool.limit = Some(ENTRIES);
    assert_eq!(model.advance(63 + ENTRIES as u64), ENTRIES);
}

#[test]
fn clear_forgets_everything() {
    let mut model = Model::new(5);
    for tick in 6..5_000 {
        model.file(tick).unwrap();
    }
    assert_eq!(model.collect(70, &mut { usize::MAX }), Ok(Collected::Tick(6)));
    while model.collect(70, &mut 1) != Ok(Collected::MoreWork) {}
    let (memory, elapsed) = (model.wheel.memory_bytes(), model.wheel.elapsed());
    model.compact(&mut 10);
    model.clear();
    model.check();
    assert!(!model.wheel.is_cascading());
    assert_eq!((model.wheel.len(), model.wheel.next_tick()), (0, None));
    assert_eq!((model.wheel.memory_bytes(), model.wheel.elapsed()), (memory, elapsed));
    model.fired.clear();
    model.file(elapsed + 1).unwrap();
    model.file(1 << 40).unwrap();
    assert_eq!(model.advance(u64::MAX), 2);
    model.wheel.start_at(3);
    model.file(4).unwrap();
    assert_eq!(model.advance(4), 1);
}
