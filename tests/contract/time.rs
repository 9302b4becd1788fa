//! T1, T2, T4, T5, T6: when, how late, jumps, order.

use crate::support::*;
use crate::{Random, due};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[test]
fn t1_due_at_the_first_tick_at_or_after_the_deadline() {
    for tick in [US, MS, HOUR, 1_234_567, 1_001] {
        for deadline in [1, tick - 1, tick, tick + 1, 2 * tick - 1, 5 * tick, 63 * tick + 1] {
            let svc = Setup::manual(tick).start();
            let log = Log::new();
            svc.start(deadline, log);
            let due = due(tick, deadline).unwrap();
            assert_eq!(svc.run_to(due - 1), 0, "early: tick {tick}, deadline {deadline}");
            assert_eq!(log.count(), 0);
            assert_eq!(svc.run_to(due), 1, "late: tick {tick}, deadline {deadline}");
            assert_eq!(log.last().deadline, deadline, "to the nanosecond");
            assert_eq!(log.last().now, due);
        }
    }
}

#[test]
fn t1_now_is_the_service_clock_as_the_turn_began() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let door = svc.door();
    svc.timer().delay(MS).run(move |_| door.advance(3 * MS)).start();
    svc.start(2 * MS, log);
    svc.advance(2 * MS + 7);
    assert_eq!(svc.poll(), 2);
    assert_eq!(log.last().now, 2 * MS + 7);
    assert_eq!(svc.now(), 5 * MS + 7);
}

#[test]
fn t1_the_manual_clock_starts_at_zero_and_counts_what_it_is_given() {
    let svc = Setup::manual(MS).start();
    assert_eq!(svc.now(), 0);
    svc.advance(0);
    assert_eq!(svc.now(), 0);
    svc.advance(1_234_567);
    svc.advance(1);
    assert_eq!(svc.now(), 1_234_568);
}

#[test]
fn t1_armed_at_or_past_its_deadline_is_due_at_once() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.advance(10 * MS + MS / 2);
    for deadline in [0, 1, 10 * MS, 10 * MS + 1, 10 * MS + MS / 2] {
        svc.start_at(deadline, log);
        assert_eq!(svc.poll(), 1, "deadline {deadline}");
        assert_eq!(log.last().deadline, deadline);
        assert_eq!(log.last().now, 10 * MS + MS / 2);
    }
    // One nanosecond ahead is not past: it waits for the tick.
    svc.start_at(10 * MS + MS / 2 + 1, log);
    assert_eq!(svc.poll(), 0);
    assert_eq!(svc.run_to(11 * MS - 1), 0);
    assert_eq!(svc.run_to(11 * MS), 1);
}

#[test]
fn t1_a_delay_counts_from_the_call_not_from_the_last_poll() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.poll();
    svc.advance(500_700_000);
    svc.start(MS, log);
    svc.poll();
    assert_eq!(log.count(), 0);
    assert_eq!(svc.run_to(501 * MS), 0);
    assert_eq!(svc.run_to(502 * MS - 1), 0);
    assert_eq!(svc.run_to(502 * MS), 1);
    assert_eq!(log.last().deadline, 501_700_000);
}

/// Starts timers from foreign threads and measures on a clock that the library does not touch.
fn never_early_in_real_time(setup: Setup, polling: bool) {
    let svc = setup.start();
    let door = svc.door();
    let (ended, early) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let over = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        if polling {
            let over = over.clone();
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    door.poll();
                }
            });
        }
        for thread in 0..2 {
            let (ended, early) = (ended.clone(), early.clone());
            scope.spawn(move || {
                let mut random = Random(0x1234_5678 + thread);
                for _ in 0..300 {
                    let delay = random.below(20 * MS);
                    let (ended, early) = (ended.clone(), early.clone());
                    let begin = Instant::now();
                    let call = move |_: &sw_expiry| {
                        if begin.elapsed() < Duration::from_nanos(delay) {
                            early.fetch_add(1, Ordering::SeqCst);
                        }
                        ended.fetch_add(1, Ordering::SeqCst);
                    };
                    door.timer().delay(delay).run(call).start();
                    std::thread::sleep(Duration::from_micros(random.below(300)));
                }
            });
        }
        eventually("all fire", || ended.load(Ordering::SeqCst) == 600);
        over.store(true, Ordering::SeqCst);
    });
    assert_eq!(early.load(Ordering::SeqCst), 0, "T1: before its deadline");
}

#[test]
fn t1_never_early_threaded() {
    never_early_in_real_time(Setup::threaded(2), false);
    never_early_in_real_time(Setup::threaded(1).tick(US), false);
    never_early_in_real_time(Setup::threaded(1).tick(1_234_567), false);
}

#[test]
fn t1_never_early_driven() {
    never_early_in_real_time(Setup::driven(), true);
    never_early_in_real_time(Setup::driven().tick(US), true);
}

#[test]
fn t1_every_clock_runs() {
    let witness = Witness::new();
    for clock in [SW_CLOCK_MONOTONIC as u32, SW_CLOCK_BOOTTIME as u32] {
        let svc = Setup::threaded(1).with(|config| config.clock = clock).start();
        let log = Log::new();
        let (begin, instant) = (svc.now(), Instant::now());
        svc.start(20 * MS, log);
        eventually("it fires", || log.count() == 1);
        assert!(log.last().deadline >= begin + 20 * MS);
        assert!(instant.elapsed() >= Duration::from_millis(20));
        let passed = svc.now() - begin;
        let elapsed = instant.elapsed().as_nanos() as u64;
        assert!(passed <= elapsed + witness.slack(), "the clock does not count nanoseconds");
    }
}

#[test]
fn t2_no_later_than_a_tick_whatever_the_delay() {
    // Exactly at the due tick, for delays on both sides of every level boundary that is quick to
    // walk to, on a shard that is otherwise idle; the walk asks only where `next` says.
    for exponent in [6, 12, 18, 24, 30] {
        for off in [-1i64, 0, 1] {
            let ticks = (1u64 << exponent).checked_add_signed(off).unwrap();
            let svc = Setup::manual(MS).start();
            let log = Log::new();
            svc.advance(MS / 3);
            svc.start(ticks * MS, log);
            let deadline = ticks * MS + MS / 3;
            let due = due(MS, deadline).unwrap();
            while log.count() == 0 {
                let next = svc.next();
                assert!(next <= due, "next {next} is above {due}");
                svc.run_to(next.max(svc.now()));
            }
            assert_eq!(log.last().now, due);
        }
    }
}

#[test]
fn t2_no_later_than_a_tick_in_real_time() {
    let witness = Witness::new();
    // Delays across the boundaries of the two finest levels, on a shard that has gone to sleep,
    // at several instants, so that the clock's own digits differ.
    let svc = Setup::threaded(1).start();
    for round in 0..3 {
        let log = Log::new();
        std::thread::sleep(Duration::from_millis(20 + 7 * round));
        let delays = [0, 1, 63, 64, 65, 127, 128, 200, 400];
        for delay in delays {
            svc.start(delay * MS, log);
        }
        eventually("all fire", || log.count() == delays.len() as u64);
        for fire in log.fires() {
            let late = fire.now - fire.deadline;
            assert!(late <= MS + witness.slack(), "{late} ns late");
        }
    }
    assert!(svc.stats().lateness_max_ns <= MS + witness.slack());
}

#[test]
fn t2_an_idle_shard_adds_nothing() {
    let witness = Witness::new();
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    std::thread::sleep(Duration::from_millis(400));
    let begin = Instant::now();
    svc.start(0, log);
    eventually("it fires", || log.count() == 1);
    let took = begin.elapsed().as_nanos() as u64;
    assert!(took < MS + witness.slack(), "{took} ns");
}

#[test]
fn t4_one_poll_after_any_jump_delivers_everything() {
    let svc = Setup::manual(US).start();
    let log = Log::counting();
    let mut random = Random(0x0bad_cafe);
    for level in 0..50 {
        for _ in 0..200 {
            svc.start(random.below(US << level), log);
        }
    }
    let begin = processor_time();
    svc.advance(US << 50);
    assert_eq!(svc.poll(), 10_000);
    assert_eq!(log.count(), 10_000);
    let used = processor_time() - begin;
    assert!(used < Duration::from_millis(500), "{used:?}");
    assert_eq!(svc.next(), SW_NEVER);
}

#[test]
fn t4_the_cost_of_a_jump_does_not_follow_its_ticks() {
    let svc = Setup::manual(US).start();
    let log = Log::counting();
    let begin = processor_time();
    // An empty wheel, then one far timer that stays, then one that is met each time.
    svc.run(US << 50);
    let far = svc.start(SW_NEVER - 1, log);
    for _ in 0..10 {
        svc.run(US << 50);
    }
    for _ in 0..100 {
        svc.start(US << 45, log);
        svc.run(US << 45);
    }
    assert_eq!(log.count(), 100);
    assert_eq!(svc.cancel(far), SW_OK);
    let used = processor_time() - begin;
    assert!(used < Duration::from_millis(500), "{used:?}");
}

#[test]
fn t4_a_jump_delivers_what_was_started_on_the_way() {
    let svc = Setup::manual(MS).start();
    let log = Log::counting();
    let mut started = 0;
    for step in 0..2_000u64 {
        svc.start((step * step % 5_000) * MS, log);
        svc.advance(3 * MS);
        started += 1;
        if step % 100 == 99 {
            svc.poll();
        }
    }
    svc.run(5_000 * MS);
    assert_eq!(log.count(), started);
}

#[test]
fn t5_the_clock_never_steps_back() {
    // Real time: across threads. Manual: a sum beyond the end is clipped, it does not wrap.
    let svc = Setup::threaded(1).start();
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..50_000 {
                    let before = seen.load(Ordering::SeqCst);
                    let now = svc.now();
                    assert!(now >= before, "{now} after {before}");
                    seen.fetch_max(now, Ordering::SeqCst);
                }
            });
        }
    });
    let manual = Setup::manual(MS).start();
    manual.advance(5);
    manual.advance(SW_NEVER);
    assert_eq!(manual.now(), SW_NEVER);
    manual.advance(7);
    assert_eq!(manual.now(), SW_NEVER);
}

/// Tick of deadline and place in the order of arming, for each timer delivered.
fn order_of(log: Log, armed: &[sw_timer]) -> Vec<(u64, usize)> {
    let place: std::collections::HashMap<_, _> =
        armed.iter().enumerate().map(|(place, &timer)| (timer, place)).collect();
    log.fires().iter().map(|fire| (fire.deadline.div_ceil(MS), place[&fire.timer])).collect()
}

#[test]
fn t6_by_deadline_tick_then_by_arming_across_a_jump() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let mut random = Random(42);
    let mut armed = Vec::new();
    for level in 0..40u64 {
        for _ in 0..100 {
            // Few ticks, many in each, off the tick by a fraction.
            let ticks = random.below(16) << (level % 10 * 2);
            armed.push(svc.start(ticks * MS + random.below(MS), log));
        }
    }
    svc.run(1 << 50);
    let order = order_of(log, &armed);
    assert_eq!(order.len(), armed.len());
    assert!(order.is_sorted(), "T6");
}

#[test]
fn t6_one_tick_armed_from_many_distances() {
    // The same tick, reached from each level in turn: the first armed is still the first.
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let target = (1 << 20) + 77;
    let mut armed = Vec::new();
    for back in [1 << 19, 70_000, 5_000, 4_096, 4_095, 65, 64, 63, 2, 1] {
        svc.run_to((target - back) * MS);
        armed.push(svc.start_at(target * MS, log));
        armed.push(svc.start_at(target * MS - 5, log));
    }
    svc.run_to(target * MS);
    assert_eq!(log.timers(), armed);
}

#[test]
fn t6_holds_across_polls_with_a_budget() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let armed: Vec<_> = (0..500u64).map(|i| svc.start((i * 7 % 50 + 1) * MS, log)).collect();
    svc.advance(100 * MS);
    while svc.poll_budget(7) > 0 {}
    let order = order_of(log, &armed);
    assert_eq!(order.len(), 500);
    assert!(order.is_sorted());
}

#[test]
fn t6_holds_for_another_thread_and_for_an_owner() {
    for attached in [false, true] {
        let svc = Setup::manual(MS).start();
        let log = Log::new();
        let door = svc.door();
        if attached {
            assert_eq!(svc.attach(0, SW_ATTACH_SHARED), SW_OK);
        }
        let arm = move || -> Vec<_> {
            (0..1_000u64).map(|i| door.start((i * 31 % 100 + 1) * MS + i, log)).collect()
        };
        // One thread arms all: the owner itself, or a stranger.
        let armed = if attached { arm() } else { std::thread::spawn(arm).join().unwrap() };
        svc.run(SEC);
        let order = order_of(log, &armed);
        assert_eq!(order.len(), 1_000);
        assert!(order.is_sorted(), "attached: {attached}");
    }
}

#[test]
fn t6_in_real_time_a_batch_comes_in_order() {
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    let base = svc.now() + 300 * MS;
    let armed: Vec<_> = (0..1_000u64).map(|i| svc.start_at(base + i % 10 * MS, log)).collect();
    let in_time = svc.now() < base;
    eventually("all fire", || log.count() == 1_000);
    let order = order_of(log, &armed);
    // Armed before any was due (else the rule says nothing).
    assert!(!in_time || order.is_sorted());
}
