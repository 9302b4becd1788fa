//! S. Random runs against a model, soak, scale.

use crate::kit::*;
use crate::support::*;
use std::collections::BTreeMap;

/// A thousand deadlines of 1 to 100 from an origin of 5, in random steps: due at the start only if
/// not after the origin; each in the one step that reaches it, none twice.
#[test]
fn wahern_02() {
    let mut rng = Rng::new(2);
    for round in 0..300 {
        let tick = [US, MS][round % 2];
        let mut model = BTreeMap::<u64, usize>::new();
        let s = Setup::manual(tick).start();
        s.run(5 * tick);
        let log = Log::counting();
        for _ in 0..1000 {
            let deadline = rng.between(1, 100) * tick;
            s.start_at(deadline, log);
            *model.entry(deadline).or_default() += 1;
        }
        let mut step = 0;
        while s.now() < 1000 * tick {
            s.advance(step);
            let later = model.split_off(&(s.now() + 1));
            let expect: usize = std::mem::replace(&mut model, later).values().sum();
            assert_eq!(s.poll(), expect, "round {round} at {}", s.now() / tick);
            step = rng.between(1, 10) * tick;
        }
        assert_eq!((log.count(), s.pending()), (1000, 0));
    }
}

/// Delays of 20 to 1000 started all along the way from 10 to 100 in steps of up to 5, counted from
/// the moment of each start.
#[test]
fn wahern_03() {
    let mut rng = Rng::new(3);
    for round in 0..300 {
        let tick = [US, MS][round % 2];
        let mut model = BTreeMap::<u64, usize>::new();
        let s = Setup::manual(tick).start();
        s.run(10 * tick);
        let log = Log::counting();
        while s.now() < 1200 * tick {
            if s.now() < 100 * tick {
                for _ in 0..40 {
                    let delay = rng.between(20, 1000) * tick;
                    s.start(delay, log);
                    *model.entry(s.now() + delay).or_default() += 1;
                }
            }
            s.advance(rng.between(1, 5) * tick);
            let later = model.split_off(&(s.now() + 1));
            let expect: usize = std::mem::replace(&mut model, later).values().sum();
            assert_eq!(s.poll(), expect, "round {round} at {}", s.now() / tick);
        }
        assert_eq!(s.pending(), 0);
    }
}

/// Many timers within `range` ticks; then, each time after 727 ticks, a quarter of the live ones
/// is deleted and as many are added. Each survivor expires on its exact tick.
fn churn(timers: usize, range: u64, offset: u64, rounds: u32) {
    let mut rng = Rng::new(range);
    let cells = cells(timers);
    let s = Setup::manual(MS).start();
    let door = s.door();
    s.run(offset * MS);
    let start = |cell: &Cell, rng: &mut Rng| {
        let delay = rng.between(1, range) * MS;
        (cell.start(door, delay), door.now() + delay)
    };
    let mut live: Vec<_> = cells.iter().map(|cell| start(cell, &mut rng)).collect();
    let mut runs = vec![0; timers];
    // Moves on in the wheel's own steps, so that each expiry is seen on its own tick.
    let advance_to = |end: u64, live: &[(sw_timer, u64)], runs: &mut [u32]| {
        let mut dues: Vec<u64> = live
            .iter()
            .map(|&(_, due)| due)
            .filter(|due| (door.now() + 1..=end).contains(due))
            .collect();
        dues.sort_unstable();
        for same in dues.chunk_by(|a, b| a == b) {
            door.advance_to(same[0] - 1);
            assert_eq!(door.poll(), 0, "before tick {}", same[0] / MS);
            assert_eq!(door.run_to(same[0]), same.len(), "on tick {}", same[0] / MS);
        }
        door.run_to(end);
        for (run, &(_, due)) in runs.iter_mut().zip(live) {
            *run += u32::from((end - 727 * MS + 1..=end).contains(&due));
        }
    };
    for _ in 0..rounds {
        advance_to(door.now() + 727 * MS, &live, &mut runs);
        for at in 0..timers {
            if rng.one_in(4) {
                let over = live[at].1 <= door.now();
                let answer = if over { SW_NOT_FOUND } else { SW_OK };
                assert_eq!(door.cancel(live[at].0), answer);
                assert_eq!(cells[at].ran(), runs[at]);
                live[at] = start(&cells[at], &mut rng);
            }
        }
    }
    drive(door);
    assert_eq!(s.pending(), 0);
    for ((cell, run), (_, due)) in cells.iter().zip(runs).zip(live) {
        assert!(cell.ran() == run || (cell.ran(), cell.now()) == (run + 1, due));
    }
}

/// Deletes and adds at a small size, within one, two and three of the peer's levels.
#[test]
fn vpp_03() {
    churn(2000, 2047, 757, 30);
    churn(2000, 1 << 17, 7577, 30);
    churn(2000, 1 << 26, 75_700, 30);
}

/// The same at the peer's size.
#[test]
#[ignore = "long: run with --ignored in release"]
fn vpp_03_full() {
    churn(100_000, 2047, 757, 200);
    churn(100_000, 1 << 17, 7577, 1000);
    churn(100_000, 1 << 26, 75_700, 200);
}

/// A thousand random deadlines in the range of each level, with no other clock than `next`: each
/// once, within a tick; the number of the live ones always is the model's.
#[test]
fn mec_06() {
    let mut rng = Rng::new(6);
    for (base, levels, tick_us) in [(4_u64, 4, 4), (64, 6, 1)] {
        let tick = tick_us * US;
        for level in 1..=levels {
            let s = Setup::manual(tick).start();
            let log = Log::new();
            let mut model: Vec<u64> = Vec::new();
            let mut left = 1000;
            while left > 0 || !model.is_empty() {
                for _ in 0..left.min(rng.between(1, 100)) {
                    let delay = rng.between(1, base.pow(level) * tick);
                    s.start(delay, log);
                    model.push(s.now() + delay);
                    left -= 1;
                }
                let next = s.next();
                if next > s.now() {
                    s.advance_to(next);
                }
                s.poll();
                for fire in log.take() {
                    let at = model.iter().position(|&deadline| deadline == fire.deadline);
                    model.swap_remove(at.expect("a deadline of the model"));
                    assert!(fire.now >= due(fire.deadline, tick));
                    assert!(fire.now < fire.deadline + tick, "later than a tick");
                }
                assert_eq!(s.pending(), model.len() as u64);
            }
            assert_eq!((log.count(), s.next()), (1000, SW_NEVER));
        }
    }
}

/// A mix on a running service: a third of the timers fires and arms itself once more from its
/// callback, which takes a millisecond; two thirds are cancelled 256 ms ahead by another timer.
fn stress(count: u64, longest_ms: u64) {
    let mut rng = Rng::new(20);
    let s = Setup::threaded(1).start();
    let (door, kept, gone) = (s.door(), Log::counting(), Log::counting());
    let mut expect = 0;
    for nth in 0..count {
        let delay = rng.between(300, longest_ms) * MS;
        if nth % 3 == 0 {
            expect += 2;
            let mut first = true;
            let call = move |expiry: &sw_expiry| {
                // SAFETY: a log's own callback with a log's context.
                unsafe { Log::callback(kept.ctx(), expiry) };
                if std::mem::take(&mut first) {
                    assert_eq!(door.reset(expiry.timer, 300 * MS), SW_OK);
                }
                sleep_ms(1);
            };
            s.timer().delay(delay).run(call).start();
        } else {
            let deadline = s.now() + delay;
            let timer = s.start_at(deadline, gone);
            let cancel = move |_: &sw_expiry| assert_eq!(door.cancel(timer), SW_OK);
            s.timer().at(deadline - 256 * MS).run(cancel).start();
        }
    }
    eventually("none is live", || s.pending() == 0);
    eventually("the last callback is over", || kept.count() == expect);
    assert_eq!(gone.count(), 0);
}

/// The mix at a small size.
#[test]
fn folly_20() {
    stress(900, 1000);
}

/// The mix at the peer's size.
#[test]
#[ignore = "long: run with --ignored in release"]
fn folly_20_full() {
    stress(10_000, 10_000);
}

/// All on one deadline, then all on random ones: each round everything fires. A poll with nothing
/// there, and one with a single far timer, deliver nothing.
fn scale(count: usize) {
    let mut rng = Rng::new(count as u64);
    let cells = cells(count);
    let s = Setup::manual(MS).start();
    assert_eq!(s.poll(), 0);
    for round in 1..=2 {
        for cell in &cells {
            let delay = if round == 1 { 500 } else { rng.between(1, 500) };
            cell.start(s.door(), delay * MS);
        }
        let mut fired = 0;
        for _ in 0..500 {
            fired += s.run(MS);
        }
        assert_eq!(fired, count);
        assert!(cells.iter().all(|cell| cell.ran() == round));
    }
    assert_eq!((s.poll(), s.next()), (0, SW_NEVER));
    s.start(DAY, Log::new());
    for _ in 0..1000 {
        assert_eq!(s.run(MS), 0);
    }
}

/// A hundred to a hundred thousand timers.
#[test]
fn dpdk_08() {
    for count in [100, 1000, 10_000, 100_000] {
        scale(count);
    }
}

/// A million timers.
#[test]
#[ignore = "long: run with --ignored in release"]
fn dpdk_08_full() {
    scale(1_000_000);
}
