//! C3: memory comes back, however far the deadlines and even while the shard's thread sleeps.

use crate::support::*;

/// What the process may grow by, once it is warm.
const GROWTH: u64 = 16 << 20;

/// Starts and cancels `rounds` timers of an hour with at most `live` of them alive.
fn churn(door: Door, rounds: u64, live: usize, log: Log, mut now_and_then: impl FnMut()) {
    let mut timers = std::collections::VecDeque::with_capacity(live);
    for round in 0..rounds {
        if timers.len() == live {
            let oldest = timers.pop_front().unwrap();
            assert_eq!(door.cancel(oldest), SW_OK);
        }
        timers.push_back(door.start(HOUR, log));
        if round % 10_000 == 9_999 {
            now_and_then();
        }
    }
    for timer in timers {
        assert_eq!(door.cancel(timer), SW_OK);
    }
}

/// Warms up, churns, and looks at the process's memory and at the service's own count of it.
fn bounded(svc: &Svc, rounds: u64, live: usize, mut now_and_then: impl FnMut()) {
    let log = Log::counting();
    churn(svc.door(), 100_000, live, log, &mut now_and_then);
    let before = (rss_bytes(), svc.stats().memory_bytes);
    churn(svc.door(), rounds, live, log, &mut now_and_then);
    let after = (rss_bytes(), svc.stats().memory_bytes);
    assert!(after.0 <= before.0 + GROWTH, "resident: {} to {}", before.0, after.0);
    assert!(after.1 <= before.1 + GROWTH, "its own count: {} to {}", before.1, after.1);
    assert_eq!(log.count(), 0);
    assert_eq!(svc.pending(), 0);
    assert_eq!(svc.stats().cancelled, rounds + 100_000);
    assert!(svc.stats().high_water <= live as u64);
}

#[test]
fn c3_ten_million_while_the_thread_sleeps() {
    alone("memory::c3_ten_million_while_the_thread_sleeps", || {
        bounded(&Setup::threaded(1).start(), 10_000_000, 1_000, || {});
    });
}

#[test]
fn c3_with_one_live_at_a_time() {
    alone("memory::c3_with_one_live_at_a_time", || {
        bounded(&Setup::threaded(1).start(), 2_000_000, 1, || {});
    });
}

#[test]
fn c3_driven_given_a_poll_now_and_then() {
    alone("memory::c3_driven_given_a_poll_now_and_then", || {
        let svc = Setup::driven().start();
        let door = svc.door();
        bounded(&svc, 3_000_000, 1_000, move || assert_eq!(door.poll(), 0));
    });
}

#[test]
fn c3_driven_by_an_owner() {
    alone("memory::c3_driven_by_an_owner", || {
        for how in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
            let svc = Setup::driven().start();
            assert_eq!(svc.attach(0, how), SW_OK);
            let door = svc.door();
            bounded(&svc, 3_000_000, 1_000, move || assert_eq!(door.poll(), 0));
        }
    });
}

#[test]
fn c3_the_manual_clock_does_not_have_to_move() {
    alone("memory::c3_the_manual_clock_does_not_have_to_move", || {
        let svc = Setup::manual(MS).start();
        let door = svc.door();
        bounded(&svc, 3_000_000, 1_000, move || assert_eq!(door.poll(), 0));
    });
}

/// The reminders of two and a half million resets, each to an earlier instant, would be 20 MB.
#[test]
fn c3_an_owner_that_makes_timers_earlier_and_never_polls() {
    alone("memory::c3_an_owner_that_makes_timers_earlier_and_never_polls", || {
        for how in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
            let svc = Setup::manual(MS).start();
            assert_eq!(svc.attach(0, how), SW_OK);
            let log = Log::counting();
            let mut deadline = HOUR;
            let moved = svc.start_at(deadline, log);
            let before = rss_bytes();
            for _ in 0..40_000 {
                for _ in 0..63 {
                    deadline -= MS;
                    assert_eq!(svc.reset_at(moved, deadline), SW_OK);
                }
                svc.start_at(HOUR, log);
            }
            let after = rss_bytes();
            assert!(after <= before + (10 << 20), "resident: {before} to {after}");
        }
    });
}

#[test]
fn c3_started_by_one_thread_and_cancelled_by_another() {
    alone("memory::c3_started_by_one_thread_and_cancelled_by_another", || {
        let svc = Setup::threaded(1).start();
        let log = Log::counting();
        let exchange = |rounds: u64| {
            // The lists of handles go round as well, so that the test itself allocates nothing.
            let (send, receive) = std::sync::mpsc::sync_channel::<Vec<sw_timer>>(4);
            let (give_back, empty) = std::sync::mpsc::sync_channel::<Vec<sw_timer>>(8);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for mut timers in receive {
                        assert_eq!(svc.cancel_batch(&timers), Ok(timers.len()));
                        timers.clear();
                        let _ = give_back.try_send(timers);
                    }
                });
                for _ in 0..rounds / 100 {
                    let mut timers = empty.try_recv().unwrap_or_default();
                    timers.extend((0..100).map(|_| svc.start(HOUR, log)));
                    send.send(timers).unwrap();
                }
                drop(send);
            });
        };
        exchange(100_000);
        let before = rss_bytes();
        exchange(3_000_000);
        let after = rss_bytes();
        assert!(after <= before + GROWTH, "resident: {before} to {after}");
        assert_eq!(svc.pending(), 0);
    });
}

#[test]
fn c3_a_cancelled_slot_is_reusable_at_once_for_a_full_shard() {
    // However far the deadline: with room for ten, one hundred thousand pass through.
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let driven = setup.is_manual();
        let svc = setup.max_timers(10).start();
        let log = Log::counting();
        let mut timers: Vec<_> = (0..10).map(|_| svc.start(SW_NEVER - 1, log)).collect();
        for round in 0..100_000 {
            let place = round % 10;
            assert_eq!(svc.cancel(timers[place]), SW_OK);
            timers[place] = svc.start(SW_NEVER - 1, log);
            if driven && round % 100 == 0 {
                svc.poll();
            }
        }
        assert_eq!(svc.pending(), 10);
        assert!(svc.stats().memory_bytes < 4 << 20, "{}", svc.stats().memory_bytes);
    }
}

#[test]
#[ignore = "half a minute in release, minutes in debug: CI runs it in release"]
fn c3_a_hundred_million_while_the_thread_sleeps() {
    alone("memory::c3_a_hundred_million_while_the_thread_sleeps", || {
        bounded(&Setup::threaded(1).start(), 100_000_000, 1_000, || {});
    });
}
