//! Every operation in every order, from many origins.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    File { by: u64, count: usize },
    Kill { every: usize, from: usize },
    Later { pick: usize, by: u64 },
    Earlier { pick: usize, by: u64 },
    Collect { by: u64, work: usize, calls: usize },
    ToNext { short: u64, work: usize },
    Compact { work: usize },
    CompactAll,
    Limit { chunks: Option<usize> },
    Clear,
    Trim,
}

fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..70,
        3 => 0u64..10_000,
        4 => (0u32..64, 0u64..3).prop_map(|(bit, k)| (1u64 << bit).saturating_add(k) - 1),
        2 => (0u32..64, any::<u64>()).prop_map(|(bit, k)| k >> bit),
        1 => Just(u64::MAX),
    ]
}

fn budget() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..4, 1usize..200, Just(usize::MAX)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (distance(), prop_oneof![3 => 1usize..4, 1 => 1usize..200])
            .prop_map(|(by, count)| Op::File { by, count }),
        2 => (1usize..5, 0usize..100).prop_map(|(every, from)| Op::Kill { every, from }),
        1 => (any::<usize>(), distance()).prop_map(|(pick, by)| Op::Later { pick, by }),
        1 => (any::<usize>(), distance()).prop_map(|(pick, by)| Op::Earlier { pick, by }),
        4 => (distance(), budget(), 1usize..30)
            .prop_map(|(by, work, calls)| Op::Collect { by, work, calls }),
        3 => (0u64..2, budget()).prop_map(|(short, work)| Op::ToNext { short, work }),
        3 => budget().prop_map(|work| Op::Compact { work }),
        1 => Just(Op::CompactAll),
        1 => prop_oneof![Just(None), (0usize..40).prop_map(Some)]
            .prop_map(|chunks| Op::Limit { chunks }),
        1 => prop_oneof![1 => Just(Op::Clear), 3 => Just(Op::Trim)],
    ]
}

impl Model {
    fn step(&mut self, op: &Op) {
        let elapsed = self.wheel.elapsed();
        match *op {
            Op::File { by, count } if elapsed < u64::MAX => {
                let tick = (elapsed + 1).saturating_add(by);
                for _ in 0..count {
                    if self.file(tick).is_none() {
                        assert!(self.wheel.buckets.pool.limit.is_some());
                        break;
                    }
                }
            }
            Op::Kill { every, from } => {
                for slot in (from..self.book.timers.len()).step_by(every) {
                    self.kill(slot as u32);
                }
            }
            Op::Later { pick, by } => {
                if let Some((slot, tick)) = self.pick(pick) {
                    self.reset(slot, tick.saturating_add(by));
                }
            }
            Op::Earlier { pick, by } => {
                if let Some((slot, tick)) = self.pick(pick) {
                    let earlier = tick.saturating_sub(by).max(elapsed.saturating_add(1));
                    if earlier < tick {
                        self.reset(slot, earlier);
                    }
                }
            }
            Op::Collect { by, work, calls } => {
                self.some_calls(elapsed.saturating_add(by), work, calls);
            }
            Op::ToNext { short, work } => {
                if let Some(next) = self.wheel.next_tick() {
                    let fired = self.fired.len();
                    self.some_calls(next - short.min(next), work, 5);
                    assert!(short == 0 || next == elapsed || self.fired.len() == fired);
                }
            }
            Op::Compact { mut work } => drop(self.compact(&mut work)),
            Op::CompactAll => {
                while !self.compact(&mut { usize::MAX }).finished {}
                while !self.compact(&mut { 50 }).finished {}
                let live = self.book.timers.iter().filter(|timer| timer.tick.is_some());
                assert_eq!(self.wheel.len(), live.map(|timer| timer.reminders).sum());
            }
            Op::Limit { chunks } => {
                let pool = &mut self.wheel.buckets.pool;
                pool.limit = chunks.map(|chunks| chunks.max(pool.used()));
            }
            Op::Clear => self.clear(),
            Op::Trim => self.wheel.trim(),
            Op::File { .. } => {}
        }
        self.check();
    }

    /// A live timer and its tick.
    fn pick(&self, pick: usize) -> Option<(u32, u64)> {
        let slot = pick.checked_rem(self.book.timers.len())?;
        self.book.timers[slot].tick.map(|tick| (slot as u32, tick))
    }

    fn some_calls(&mut self, now: u64, work: usize, calls: usize) {
        for _ in 0..calls {
            match self.collect(now, &mut { work }) {
                Ok(Collected::Idle) => break,
                Ok(_) => {}
                Err(NoMemory) => assert!(self.wheel.buckets.pool.limit.is_some()),
            }
            self.check();
        }
    }

    /// Up to the last tick there is. Everything must have come out.
    fn finish(&mut self, work: usize) {
        self.wheel.buckets.pool.limit = None;
        for now in [self.wheel.next_tick().unwrap_or(0), u64::MAX] {
            while self.collect(now, &mut { work }).expect("no limit is set") != Collected::Idle {}
        }
        self.check();
        assert_eq!((self.wheel.len(), self.wheel.next_tick()), (0, None));
        assert!(self.book.timers.iter().all(|timer| timer.tick.is_none()));
        self.wheel.trim();
        assert_eq!(self.wheel.buckets.pool.used(), 0);
        assert_eq!(self.wheel.memory_bytes(), size_of::<Wheel>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn as_the_model(
        origin in proptest::sample::select(ORIGINS.to_vec()),
        ops in proptest::collection::vec(op(), 1..60),
        last in 1usize..100,
    ) {
        let mut model = Model::new(origin);
        ops.iter().for_each(|op| model.step(op));
        model.finish(last);
    }

    /// Ticks out of a small set, so that many are filed for the same one from different levels.
    #[test]
    fn order_within_a_tick(
        origin in proptest::sample::select(ORIGINS[..12].to_vec()),
        targets in proptest::collection::vec(distance(), 1..4),
        steps in proptest::collection::vec((0usize..4, 1usize..80, distance(), 1usize..70), 1..40),
    ) {
        let mut model = Model::new(origin);
        let targets: Vec<u64> =
            targets.iter().map(|by| (origin + 1).saturating_add(*by)).collect();
        for (target, count, by, work) in steps {
            let target = targets[target % targets.len()];
            let elapsed = model.wheel.elapsed();
            if target > elapsed {
                for _ in 0..count {
                    model.file(target).unwrap();
                }
            }
            // Towards the next target, most of the time not all the way.
            let now = elapsed.saturating_add(by.min(target.saturating_sub(elapsed)));
            model.some_calls(now, work, 2);
        }
        model.advance(u64::MAX);
        prop_assert!(model.fired.is_sorted());
        prop_assert_eq!(model.fired.len(), model.book.timers.len());
    }
}
