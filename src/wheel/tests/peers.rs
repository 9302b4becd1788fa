//! Cases that other timer libraries test for, as far as they are a wheel's own matter.
//! Where a peer's sizes are baked in, with theirs and with ours.

use super::memory::Rng;
use super::*;

/// A wheel of its own for one timer: silent one tick before, there on the tick.
fn exactly(model: &mut Model, by: u64) {
    let tick = model.wheel.elapsed() + by;
    let slot = model.file(tick).unwrap();
    assert_eq!(model.advance(tick - 1), 0, "early: {tick}");
    assert_eq!(model.advance(tick), 1, "late: {tick}");
    assert_eq!(model.fired.last(), Some(&(tick, slot)));
}

#[test]
fn ratas_01() {
    for turn in [64, 256] {
        let mut model = Model::new(0);
        model.file(5).unwrap();
        assert_eq!(model.advance(5), 1);
        assert_eq!(model.advance(5 + turn), 0);
    }
}

#[test]
fn ratas_06() {
    for slots in [64, 256] {
        let mut model = Model::new(0);
        exactly(&mut model, slots);
        exactly(&mut model, slots + 1);
        for start in [0, 5] {
            let mut model = Model::new(start);
            exactly(&mut model, slots * 4 - 1);
            let mut model = Model::new(start);
            exactly(&mut model, slots * 4 + 5);
            exactly(&mut model, slots * 4 + 5);
        }
    }
}

#[test]
fn ratas_10() {
    let mut rng = Rng(10);
    let mut model = Model::new(0);
    for _ in 0..10_000 {
        let by = 1 + rng.spread(19);
        model.book.timers.clear();
        exactly(&mut model, by);
    }
}

/// One call a reminder, "due now" while it is not finished, and filings in the middle.
#[test]
fn ratas_11() {
    let mut model = Model::new(0);
    model.file(80).unwrap();
    model.advance(70);
    model.file(80).unwrap();
    model.file(80).unwrap();
    model.advance(75);
    for _ in 0..200 {
        model.file(80).unwrap();
    }
    assert_eq!(model.collect(80, &mut 0), Ok(Collected::Tick(80)));
    assert!((3..203).contains(&model.fired.len()), "the tick is half done");
    assert_eq!((model.wheel.elapsed(), model.wheel.next_tick()), (80, Some(80)));
    for by in 1..=512 {
        model.file(80 + by).unwrap();
        assert_eq!(model.wheel.next_tick(), Some(80));
    }
    model.check();
    assert_eq!(model.advance(80), 203 - 63);
    assert_eq!(model.collect(80, &mut 0), Ok(Collected::Idle));
    for tick in 81..=592 {
        assert_eq!(model.advance(tick), 1);
    }
}

/// Everything of one tick comes under that tick's name, before anything of the next.
#[test]
fn ratas_12() {
    let mut model = Model::new(3);
    for tick in [101, 100, 101, 100] {
        model.file(tick).unwrap();
    }
    model.advance(5_000);
    assert_eq!(model.fired, [(100, 1), (100, 3), (101, 0), (101, 2)]);
}

#[test]
fn tokio_04() {
    let mut model = Model::new(0);
    for tick in 1..1024 {
        model.file(tick).unwrap();
    }
    for tick in 1..1024 {
        assert_eq!(model.advance(tick), 1);
        assert_eq!(model.wheel.len() as u64, 1023 - tick);
    }
}

#[test]
fn tokio_05() {
    let mut model = Model::new(0);
    model.file(193).unwrap();
    for now in [62, 192, 192] {
        assert_eq!(model.advance(now), 0);
    }
    assert_eq!(model.advance(193), 1);
}

#[test]
fn hwt_02() {
    let mut model = Model::new(0);
    for _ in 0..1_000 {
        exactly(&mut model, 1);
    }
}

#[test]
fn hwt_03() {
    let mut model = Model::new(0);
    for bit in 0..=24 {
        model.file(1 << bit).unwrap();
    }
    for tick in 1..=1u64 << 24 {
        let due = usize::from(tick.is_power_of_two());
        let got = model.wheel.collect(tick, &mut model.batch, &mut { usize::MAX }, &model.book);
        assert_eq!(got == Ok(Collected::Tick(tick)), due == 1);
        assert_eq!(model.batch.rest().len(), due);
        model.batch.next();
    }
    assert_eq!(model.wheel.len(), 0);
}

#[test]
fn hwt_04() {
    let mut model = Model::new(0);
    for bit in 0..64 {
        model.file(1 << bit).unwrap();
    }
    for bit in 0..64 {
        model.advance((1 << bit) - 1);
        assert_eq!(model.fired.len(), bit);
        assert_eq!(model.advance(1 << bit), 1);
    }
}

#[test]
fn hwt_05() {
    let mut model = Model::new(0);
    for bit in 0..64 {
        model.file(1 << bit).unwrap();
    }
    while let Some(next) = model.wheel.next_tick() {
        assert_eq!(model.advance(next - 1), 0);
        model.advance(next);
    }
    let expected: Vec<_> = (0..64).map(|bit| (1 << bit, bit)).collect();
    assert_eq!(model.fired, expected);
}

#[test]
fn hwt_06() {
    for compacted in [false, true] {
        let mut model = Model::new(0);
        let slots = [1, 10, 5].map(|tick| model.file(tick).unwrap());
        model.kill(slots[1]);
        if compacted {
            assert_eq!(model.compact(&mut 10).dropped, 1);
        }
        model.advance(10);
        assert_eq!(model.fired, [(1, slots[0]), (5, slots[2])]);
    }
}

#[test]
fn folly_17() {
    for slots in [64, 256] {
        let mut model = Model::new(0);
        for tick in [2 * slots - 12, 605, 300, 605 * slots, 300 * slots] {
            model.file(tick).unwrap();
        }
        model.advance(1 << 20);
        let mut ticks = [2 * slots - 12, 605, 300, 605 * slots, 300 * slots];
        ticks.sort();
        assert_eq!(model.fired.iter().map(|fired| fired.0).collect::<Vec<_>>(), ticks);
    }
}

#[test]
fn vpp_04() {
    for slots in [64, 256u64] {
        exactly(&mut Model::new(0), slots * slots);
        exactly(&mut Model::new(0), slots * slots * slots);
    }
}

/// 727 ticks at a time; a quarter goes, a quarter comes. Also beyond what a peer's wheel spans.
#[test]
fn vpp_03_and_07() {
    for (range, offset) in [(2_047, 757), (1 << 17, 7_577), (1 << 20, 75_700), (1 << 34, 0)] {
        let mut rng = Rng(range + offset);
        let mut model = Model::new(offset);
        let mut now = offset;
        for _ in 0..100 {
            for _ in 0..500 {
                model.file(now + 1 + rng.below(range)).unwrap();
            }
            let count = model.book.timers.len();
            for slot in count.saturating_sub(1_000)..count {
                match rng.below(8) {
                    0 => model.kill(slot as u32),
                    1 => model.reset(slot as u32, now + 1 + rng.below(range)),
                    _ => {}
                }
            }
            now += 727;
            model.advance(now);
        }
        model.check();
        model.advance(u64::MAX);
        assert_eq!((model.wheel.len(), model.wheel.buckets.pool.used()), (0, 0));
    }
}

#[test]
fn mec_01() {
    let edges = [30, 1, 41, 70, 110, 150, 190, 350, 510, 643, 670, 830];
    let mut model = Model::new(0);
    for edge in edges {
        model.file(edge).unwrap();
        model.file(edge + 1).unwrap();
    }
    while let Some(next) = model.wheel.next_tick() {
        let quiet = next - 1;
        assert_eq!(model.collect(quiet, &mut { usize::MAX }), Ok(Collected::Idle));
        let len = model.wheel.len();
        let level = bits::level(model.wheel.buckets.first().unwrap());
        model.collect(next, &mut { usize::MAX }).unwrap();
        assert!(model.wheel.len() < len || level > 0, "something to do, be it a cascade");
    }
    assert_eq!(model.fired.len(), 2 * edges.len());
}

#[test]
fn mec_02() {
    for span in [16u64.pow(3), 64u64.pow(3), 64u64.pow(10)] {
        let mut model = Model::new(50);
        model.file(50 + span).unwrap();
        model.file(50 + 2 * span).unwrap();
        assert_eq!(model.advance(50 + span), 1);
        assert_eq!(model.advance(50 + 2 * span - 1), 0);
        assert_eq!(model.advance(50 + 2 * span), 1);
    }
}

#[test]
fn mec_06() {
    let mut rng = Rng(6);
    let mut model = Model::new(4);
    for level in 0..11 {
        for _ in 0..300 {
            model.file((5 + rng.below(64) * 64u64.pow(level.min(9))).min(u64::MAX - 1)).unwrap();
        }
    }
    let mut left = model.wheel.len();
    while let Some(next) = model.wheel.next_tick() {
        left -= model.advance(next);
        assert_eq!(model.wheel.len(), left);
    }
    assert_eq!(left, 0);
}

#[test]
fn agrona_07_and_10() {
    exactly(&mut Model::new(0), 63);
    for turn in [8, 16, 64, 256] {
        let mut model = Model::new(0);
        for tick in [turn + 7, 2 * turn + 7, turn + 7] {
            model.file(tick).unwrap();
        }
        assert_eq!(model.advance(turn + 6), 0);
        assert_eq!(model.advance(turn + 7), 2);
        assert_eq!(model.advance(2 * turn + 6), 0);
        assert_eq!(model.advance(2 * turn + 7), 1);
    }
}

#[test]
fn agrona_09_and_21() {
    let mut model = Model::new(0);
    model.file(15).unwrap();
    assert_eq!(model.advance(32), 1);
    assert_eq!(model.advance(32), 0);
    let mut fired = 0;
    model.file(32 + 55).unwrap();
    for step in 1..20 {
        fired += model.advance(32 + step * 9);
        assert_eq!(fired, usize::from(step * 9 >= 55));
    }
}

#[test]
fn akka_08_and_12() {
    for turn in [32, 64, 64 * 64] {
        exactly(&mut Model::new(0), turn);
        exactly(&mut Model::new(1), turn);
        exactly(&mut Model::new(turn - 1), turn);
    }
    let mut model = Model::new(0);
    for tick in 1..=5 {
        model.file(tick).unwrap();
    }
    assert_eq!(model.advance(4), 4);
    assert_eq!(model.wheel.next_tick(), Some(5));
}

#[test]
fn kafka_02() {
    let mut model = Model::new(0);
    for tick in (1..5).chain(10..100).chain(10..100).chain(100..500) {
        model.file(tick).unwrap();
    }
    let mut expected: Vec<_> =
        (0..).zip(&model.book.timers).map(|(s, t)| (t.allowed[0], s)).collect();
    expected.sort();
    model.advance_by_slices(500, 2);
    assert_eq!(model.fired, expected);
}

#[test]
fn caff_01_and_03() {
    for origin in ORIGINS.into_iter().chain([1 << 63, (1 << 63) - 1, 0x00ff_ffff_fc00_0000]) {
        for (advance, due) in [(10, 0), (180, 2), (600, 3)] {
            let mut model = Model::new(origin);
            if u64::MAX - origin > 600_000 {
                for by in [25, 90, 240] {
                    model.file(origin + by * 1_000).unwrap();
                }
                assert_eq!(model.advance(origin + advance * 1_000), due);
            }
        }
        let mut model = Model::new(origin);
        model.file(origin + 1).unwrap();
        assert_eq!(model.advance(u64::MAX), 1);
    }
}

/// Each comes in the one step that reaches its tick; what comes next is never told too late.
fn wahern(origin: u64, ticks: std::ops::Range<u64>, spread: bool, step: u64, end: u64) {
    let mut rng = Rng(origin + step + ticks.end);
    let mut model = Model::new(origin);
    for _ in 0..1_000 {
        let tick = match spread {
            true => ticks.start + rng.spread(u64::from(ticks.end.ilog2())),
            false => ticks.start + rng.below(ticks.end - ticks.start),
        };
        if tick > origin {
            model.file(tick).unwrap();
        }
    }
    let mut now = origin;
    while now < end && model.wheel.len() > 0 {
        let old = now;
        now += 1 + if spread { rng.spread(step) } else { rng.below(step) };
        let (next, before) = (model.wheel.next_tick(), model.fired.len());
        let mut waiting = true;
        while waiting {
            waiting = model.collect(now, &mut 20).unwrap() != Collected::Idle;
            let late = model.wheel.next_tick().is_none_or(|next| next > now);
            assert!(waiting || late, "none waits after the last");
        }
        for &(tick, _) in &model.fired[before..] {
            assert!(old < tick && tick <= now && next.is_some_and(|next| next <= tick));
        }
    }
    model.check();
    let left = model.book.timers.iter().filter(|timer| timer.tick.is_some()).count();
    assert_eq!(left, model.book.timers.iter().filter(|timer| timer.allowed[0] > now).count());
}

#[test]
fn wahern_02_and_08_and_09() {
    (1..60).for_each(|step| wahern(5, 1..100, false, 1 + step % 10, 1_000));
}

#[test]
fn wahern_03() {
    (1..60).for_each(|seed| wahern(10 + seed, 30 + seed..1_010 + seed, false, 5, 100 + seed));
}

#[test]
fn wahern_05() {
    (25..32).for_each(|bits| wahern(100, 2_000..1 << 50, true, bits, 1 << 36));
    wahern(100, 2_000..1 << 50, true, 47, 1 << 49);
}
