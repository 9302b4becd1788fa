//! Every level boundary, from every origin, on both sides.

use super::*;

/// Boundaries of all levels after `origin`, each with its neighbours.
fn edges(origin: u64) -> Vec<u64> {
    let mut ticks = vec![u64::MAX];
    for level in 0..bits::LEVELS as u32 {
        for k in [1u64, 2, 63, 64] {
            let span = u128::from(k) << (6 * level);
            let far = u128::from(origin) + span;
            for edge in [far, far & !u128::from(bits::below(level))] {
                ticks.extend([edge - 1, edge, edge + 1].map(|t| t.min(u64::MAX.into()) as u64));
            }
        }
    }
    ticks.retain(|&tick| tick > origin);
    ticks.sort();
    ticks.dedup();
    ticks
}

#[test]
fn each_edge_alone() {
    for origin in ORIGINS {
        for tick in edges(origin) {
            let mut model = Model::new(origin);
            let slot = model.file(tick).unwrap();
            assert_eq!(model.advance(tick - 1), 0, "{origin} {tick}");
            model.check();
            assert_eq!(model.advance(tick), 1, "{origin} {tick}");
            assert_eq!(model.fired, [(tick, slot)]);
            model.check();
            assert_eq!(model.wheel.next_tick(), None);
        }
    }
}

#[test]
fn all_edges_at_once_in_one_jump_and_by_slices() {
    for origin in ORIGINS {
        for work in [1, 3, 64, usize::MAX] {
            let mut model = Model::new(origin);
            let ticks = edges(origin);
            for &tick in ticks.iter().rev().chain(&ticks) {
                model.file(tick).unwrap();
            }
            model.check();
            assert_eq!(model.advance_by_slices(u64::MAX, work), 2 * ticks.len());
            assert!(model.fired.iter().map(|fired| fired.0).is_sorted());
        }
    }
}

/// Driven by `next_tick` alone: a reminder is asked for once a level at most.
#[test]
fn next_is_bounded_by_levels() {
    for origin in ORIGINS {
        for tick in edges(origin) {
            let mut model = Model::new(origin);
            model.file(tick).unwrap();
            let mut wakes = 0;
            while let Some(next) = model.wheel.next_tick() {
                assert!(next <= tick && next > model.wheel.elapsed());
                let level = bits::level_of(model.wheel.elapsed(), tick);
                assert_eq!(next, tick & !bits::below(level), "exact to the bucket");
                wakes += 1;
                model.advance(next);
            }
            assert!(wakes <= bits::LEVELS, "{wakes} for {tick} from {origin}");
            assert_eq!(model.fired.len(), 1);
        }
    }
}

/// Few reminders are not woken for before the first of them is due.
#[test]
fn next_due_is_the_first_of_few() {
    for origin in ORIGINS {
        let ticks = edges(origin);
        for (place, &tick) in ticks.iter().enumerate() {
            let mut model = Model::new(origin);
            for &later in ticks[place..].iter().rev().take(7).chain([&tick]) {
                model.file(later).unwrap();
            }
            model.check();
            assert_eq!(model.wheel.next_due(&model.book), Some(tick), "{origin} {tick}");
            model.advance(tick - 1);
            assert_eq!(model.wheel.next_due(&model.book), Some(tick), "{origin} {tick}");
        }
    }
}

/// Where it would cost more than a look at a chunk, the bucket's first tick has to do.
#[test]
fn next_due_of_many_is_their_bucket() {
    let mut model = Model::new(0);
    for _ in 0..ENTRIES {
        model.file(70).unwrap();
    }
    assert_eq!(model.wheel.next_due(&model.book), Some(70));
    model.file(71).unwrap();
    assert_eq!(model.wheel.next_due(&model.book), Some(64));
    model.check();
}

/// A jump over nothing costs nothing and leaves the wheel as it was.
#[test]
fn jumps_short_of_the_first() {
    for origin in ORIGINS {
        for tick in edges(origin) {
            let mut model = Model::new(origin);
            model.file(tick).unwrap();
            for before in edges(origin).into_iter().filter(|&before| before < tick) {
                assert_eq!(model.advance(before), 0);
                assert_eq!(model.wheel.elapsed(), before);
            }
            model.check();
            assert_eq!(model.advance(u64::MAX), 1);
        }
    }
}

/// Filings for the range of a bucket whose cascade is interrupted come after what it holds.
#[test]
fn filed_in_the_middle_of_a_cascade() {
    for level in 1..bits::LEVELS as u32 {
        let first = 1u64 << (6 * level);
        let mut model = Model::new(0);
        for tick in [first, first + 1, first + 9].repeat(70) {
            model.file(tick).unwrap();
        }
        assert_eq!(model.collect(first + 9, &mut 100), Ok(Collected::MoreWork));
        assert!(model.wheel.is_cascading());
        assert_eq!(model.wheel.elapsed(), first - 1);
        assert_eq!(model.wheel.next_tick(), Some(first));
        for tick in [first + 9, first + 1, first, first + 64, u64::MAX] {
            model.file(tick).unwrap();
            model.check();
        }
        assert_eq!(model.collect(first + 9, &mut 50), Ok(Collected::MoreWork));
        model.file(first).unwrap();
        assert!(model.wheel.is_cascading());
        model.check();
        assert_eq!(model.advance_by_slices(first + 9, 30), 214);
        assert_eq!(model.advance(u64::MAX), 2);
        assert!(model.fired.iter().map(|fired| fired.0).is_sorted());
    }
}

/// A bucket in the middle of its cascade is emptied from behind.
#[test]
fn emptied_in_the_middle_of_a_cascade() {
    let mut model = Model::new(0);
    for tick in 64..84 {
        model.file(tick).unwrap();
    }
    assert_eq!(model.collect(70, &mut 10), Ok(Collected::MoreWork));
    (0..20).for_each(|slot| model.kill(slot));
    model.compact(&mut { usize::MAX });
    assert_eq!((model.wheel.len(), model.wheel.next_tick()), (0, None));
    let slot = model.file(66).unwrap();
    model.check();
    assert_eq!(model.wheel.next_tick(), Some(64));
    assert_eq!(model.advance(70), 1);
    assert_eq!(model.fired, [(66, slot)]);
}

/// What the record says counts on the way down from high levels: later, earlier, and dead.
#[test]
fn looks_only_out_of_high_levels() {
    for level in 1..bits::LEVELS as u32 {
        let first = 1u64 << (6 * level);
        let mut model = Model::new(0);
        let ticks = [first, first + 5, first + 6, first + 7];
        let [_, later, earlier, dead] = ticks.map(|tick| model.file(tick).unwrap());
        model.reset(later, first + 60);
        model.reset(earlier, first - 1);
        model.kill(dead);
        assert_eq!(model.advance(first - 1), 1);
        let looks = model.book.looks.get();
        assert_eq!(model.advance(first), 1);
        assert_eq!(model.book.looks.get() - looks, if level >= 4 { 4 } else { 0 });
        assert_eq!(model.wheel.len(), if level >= 4 { 1 } else { 3 });
        model.check();
        assert_eq!(model.advance(u64::MAX), 1);
    }
}

/// Made earlier while the reminder of that is still on its way: the old one comes as soon as it can.
#[test]
fn made_earlier_than_the_bucket() {
    for level in 4..bits::LEVELS as u32 {
        let first = 1u64 << (6 * level);
        let mut model = Model::new(first - 9);
        let ahead = model.file(first + 5).unwrap();
        let slot = model.file(first + 6).unwrap();
        let timer = &mut model.book.timers[slot as usize];
        (timer.tick, timer.clean) = (Some(first - 1), false);
        assert_eq!(model.advance(first), 1);
        assert_eq!(model.advance(first + 6), 1);
        assert_eq!(model.fired, [(first, slot), (first + 5, ahead)]);
    }
}

/// Put off again and again, also into the very bucket that is being emptied.
#[test]
fn put_off_again_and_again() {
    let mut model = Model::new(0);
    let slot = model.file(1 << 24).unwrap();
    let mut due = 1u64 << 24;
    for shift in 0..39 {
        due = due.saturating_add(1 << (shift + 24));
        model.reset(slot, due);
        assert_eq!(model.advance(due - 1), 0);
        assert!(model.wheel.next_tick().is_some_and(|next| next <= due));
        model.check();
    }
    assert_eq!(model.advance(due), 1);
}

#[test]
fn the_last_tick_of_all() {
    let mut model = Model::new(0);
    for _ in 0..70 {
        model.file(u64::MAX).unwrap();
    }
    assert_eq!(model.advance(u64::MAX - 1), 0);
    model.file(u64::MAX).unwrap();
    assert_eq!(model.advance(u64::MAX), 71);
    assert_eq!(model.advance(u64::MAX), 0);
    assert_eq!(model.wheel.elapsed(), u64::MAX);
}

#[test]
fn a_clock_that_steps_back() {
    let mut model = Model::new(1000);
    model.file(1010).unwrap();
    model.advance(1005);
    assert_eq!(
        model.wheel.collect(900, &mut Batch::new(), &mut 0, &model.book),
        Ok(Collected::Idle)
    );
    assert_eq!(model.wheel.elapsed(), 1005);
    assert_eq!(model.advance(1010), 1);
}
