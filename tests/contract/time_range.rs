//! T3: the whole range of delays, deadlines and uptimes.

use crate::due;
use crate::support::*;
use std::collections::HashMap;
use std::thread::ThreadId;
use std::time::Duration;

const TICKS: [u64; 5] = [US, MS, HOUR, 1_234_567, 60_000_000_007];

/// Tick counts worth a test: near each level's boundary and the four that the contract names.
fn boundaries() -> impl Iterator<Item = u64> {
    (1..=10).map(|level| 1u64 << (6 * level)).chain([1 << 31, 1 << 32, 1 << 36, 1 << 42])
}

#[test]
fn t3_long_delays_around_every_boundary() {
    for tick in TICKS {
        for edge in boundaries() {
            for ticks in [edge - 1, edge, edge + 1] {
                let Some(deadline) = ticks.checked_mul(tick) else { continue };
                for deadline in [deadline - 1, deadline, deadline.saturating_add(1)] {
                    let Some(due) = due(tick, deadline) else { continue };
                    let svc = Setup::manual(tick).start();
                    let log = Log::new();
                    let timer = svc.start(deadline, log);
                    assert_eq!(svc.remaining(timer), Ok(deadline));
                    assert_eq!(svc.run_to(due - 1), 0, "tick {tick}, {deadline}");
                    assert_eq!(svc.run_to(due), 1, "tick {tick}, {deadline}");
                    assert_eq!(log.last().deadline, deadline);
                }
            }
        }
    }
}

#[test]
fn t3_the_clock_near_every_boundary() {
    // An old service: the clock stands just before the boundary, near timers lie around it.
    for tick in TICKS {
        for edge in boundaries() {
            let Some(at_edge) = edge.checked_mul(tick) else { continue };
            if at_edge > SW_NEVER - 200 * tick.min(SW_NEVER / 400) {
                continue;
            }
            for short_of in [0, 1, tick, tick + 1, 3 * tick] {
                let svc = Setup::manual(tick).start();
                let log = Log::new();
                svc.run_to(at_edge - short_of);
                let mut deadlines = Vec::new();
                for delay in
                    [1, tick - 1, tick, tick + 1, 2 * tick, 3 * tick, 64 * tick, 100 * tick]
                {
                    svc.start(delay, log);
                    deadlines.push(at_edge - short_of + delay);
                }
                walk(&svc, log, tick, &deadlines);
            }
        }
    }
}

/// Walks the clock to one nanosecond before and then to each due instant; at each exactly the
/// timers due are delivered.
fn walk(svc: &Svc, log: Log, tick: u64, deadlines: &[u64]) {
    let mut instants: Vec<u64> = deadlines.iter().map(|&d| due(tick, d).unwrap()).collect();
    instants.sort_unstable();
    instants.dedup();
    for instant in instants {
        if instant > svc.now() + 1 {
            assert_eq!(svc.run_to(instant - 1), 0, "early, before {instant}");
        }
        svc.run_to(instant);
        let mut expected: Vec<u64> =
            deadlines.iter().copied().filter(|&d| due(tick, d) == Some(instant)).collect();
        let mut found = log.take().iter().map(|fire| fire.deadline).collect::<Vec<_>>();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "at {instant}, tick {tick}");
    }
}

#[test]
fn t3_a_timer_set_on_one_side_of_a_boundary_and_reset_on_the_other() {
    for edge in [1u64 << 31, 1 << 32, 1 << 36, 1 << 42] {
        let svc = Setup::manual(MS).start();
        let log = Log::new();
        svc.run_to((edge - 10) * MS);
        let timer = svc.start(20 * MS, log);
        svc.run_to((edge + 5) * MS);
        assert_eq!(svc.reset(timer, 30 * MS), SW_OK);
        assert_eq!(svc.run_to((edge + 10) * MS), 0);
        assert_eq!(svc.run_to((edge + 35) * MS - 1), 0);
        assert_eq!(svc.run_to((edge + 35) * MS), 1);
    }
}

#[test]
fn t3_every_delay_is_accepted() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.advance(12_345);
    let mut timers = HashMap::new();
    for bit in 0..64 {
        for delay in [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1] {
            let timer = svc.start(delay, log);
            let left = svc.remaining(timer).unwrap();
            assert!(left <= delay, "{left} of {delay}");
            if delay < SW_NEVER - 12_345 {
                assert_eq!(left, delay);
            }
            timers.insert(timer, delay + 12_345);
            timers.insert(svc.start_at(delay, log), delay);
        }
    }
    timers.insert(svc.start(SW_NEVER, log), SW_NEVER);
    timers.insert(svc.start_at(SW_NEVER, log), SW_NEVER);
    assert_eq!(svc.pending(), timers.len() as u64);
    // Exactly those due by then.
    svc.run_to(1 << 40);
    for fire in log.fires() {
        assert_eq!(timers.remove(&fire.timer), Some(fire.deadline));
        assert!(due(MS, fire.deadline).unwrap() <= 1 << 40 || fire.deadline <= 12_345);
    }
    for (timer, deadline) in timers {
        assert!(due(MS, deadline).is_none_or(|due| due > 1 << 40), "{deadline} was due");
        assert_eq!(svc.cancel(timer), SW_OK);
    }
}

#[test]
fn t3_remaining_of_a_deadline_that_is_no_tick() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.advance(777);
    let timer = svc.start(5 * MS + 123, log);
    assert_eq!(svc.remaining(timer), Ok(5 * MS + 123));
    svc.advance(5 * MS);
    assert_eq!(svc.remaining(timer), Ok(123));
    svc.poll();
    assert_eq!(svc.remaining(timer), Ok(123));
    // Past its deadline, not yet its tick: nothing is left of it.
    svc.advance(123);
    assert_eq!(svc.remaining(timer), Ok(0));
    svc.advance(MS);
    assert_eq!(svc.remaining(timer), Ok(0), "0 when due");
    assert_eq!(svc.poll(), 1);
    assert_eq!(svc.remaining(timer), Err(SW_NOT_FOUND));
}

#[test]
fn t3_the_end_of_time() {
    for tick in TICKS {
        let svc = Setup::manual(tick).start();
        let (last, never) = (Log::new(), Log::new());
        svc.advance(1_000);
        // The last instant that is a tick, and three ways to say "never".
        let end = SW_NEVER / tick * tick;
        svc.start_at(end, last);
        svc.start(SW_NEVER, never);
        svc.start_at(SW_NEVER, never);
        let sum = svc.start(SW_NEVER - 500, never);
        assert_eq!(svc.run_to(end - 1), 0, "tick {tick}");
        assert_eq!(svc.run_to(end), 1, "tick {tick}");
        assert_eq!(last.last().deadline, end);
        // Beyond the end the clock is clipped; never does not come.
        svc.run(SW_NEVER);
        svc.run(1);
        assert_eq!(svc.now(), SW_NEVER);
        assert_eq!(never.count(), 0, "SW_NEVER came, tick {tick}");
        assert_eq!(svc.pending(), 3);
        assert_eq!(svc.cancel(sum), SW_OK);
    }
}

#[test]
fn t3_a_sum_that_saturates_does_not_wrap() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.run_to(1 << 63);
    let timer = svc.start(1 << 63, log);
    let near = svc.start(MS, log);
    assert_eq!(svc.poll(), 0, "a wrapped deadline is in the past");
    assert_eq!(svc.run(2 * MS), 1);
    assert_eq!(log.timers(), [near]);
    assert_eq!(svc.reset(timer, SW_NEVER), SW_OK);
    assert_eq!(svc.poll(), 0);
    assert_eq!(svc.reset(timer, 5 * MS), SW_OK);
    assert_eq!(svc.run(6 * MS), 1);
}

#[test]
fn t3_periods_of_any_size() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let half = svc.start_every(1 << 63, log);
    let never = svc.start_every(SW_NEVER, log);
    assert_eq!(svc.run_to(due(MS, 1 << 63).unwrap()), 1);
    assert_eq!(log.last().deadline, 1 << 63);
    // Its next point lies beyond the end of time.
    svc.run(SW_NEVER);
    assert_eq!(log.count(), 1);
    assert_eq!(svc.cancel(half), SW_OK);
    assert_eq!(svc.cancel(never), SW_OK);
}

#[test]
fn t3_zero_and_the_past_are_due_at_the_next_turn_never_inside_the_call() {
    let svc = Setup::manual(MS).start();
    svc.advance(10 * MS);
    for attach in [None, Some(SW_ATTACH_SHARED), Some(SW_ATTACH_EXCLUSIVE)] {
        if let Some(how) = attach {
            assert_eq!(svc.attach(0, how), SW_OK);
        }
        let log = Log::new();
        svc.start(0, log);
        svc.start_at(0, log);
        svc.start_at(10 * MS, log);
        let specs = [svc.timer().delay(0).log(log).spec(), svc.timer().at(3).log(log).spec()];
        svc.start_batch(&specs).unwrap();
        let reset = svc.start(SEC, log);
        assert_eq!(svc.reset(reset, 0), SW_OK);
        let reset = svc.start(SEC, log);
        assert_eq!(svc.reset_at(reset, 1), SW_OK);
        assert_eq!(log.count(), 0, "inside the call that starts it");
        assert!(svc.next() <= svc.now());
        assert_eq!(svc.poll(), 7);
        assert_eq!(log.count(), 7);
    }
}

#[test]
fn t3_zero_runs_on_the_shards_thread() {
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    for _ in 0..200 {
        svc.start(0, log);
        svc.start_at(0, log);
    }
    eventually("all fire", || log.count() == 400);
    let me: ThreadId = std::thread::current().id();
    assert!(log.fires().iter().all(|fire| fire.thread != me));
}

#[test]
fn t3_real_clocks_take_the_whole_range_too() {
    let svc = Setup::threaded(1).start();
    let (far, near) = (Log::new(), Log::new());
    let mut timers = vec![svc.start(SW_NEVER, far), svc.start_at(SW_NEVER, far)];
    for bit in 45..64 {
        timers.push(svc.start(1 << bit, far));
        timers.push(svc.start((1 << bit) - 1, far));
    }
    // One bad deadline does not poison the shard.
    svc.start(1, near);
    svc.start(10 * MS, near);
    within(Duration::from_secs(5), "the near ones fire", || near.count() == 2);
    assert_eq!(far.count(), 0);
    for timer in timers {
        assert_eq!(svc.cancel(timer), SW_OK);
    }
}
