//! Q3, and Q2 for queues: expiries that the host takes.

use crate::support::*;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A timer that is delivered to the queue.
fn into(queue: Queue, door: Door, log: Log) -> Timer {
    door.timer().log(log).queue(queue)
}

#[test]
fn q3_each_once_oldest_deadline_first() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    let delays = [50, 10, 40, 20, 30, 10];
    let timers: Vec<_> =
        delays.iter().map(|&ms| into(queue, *svc, log).delay(ms * MS).start()).collect();
    assert!(queue.poll(10).is_empty());
    svc.advance(35 * MS);
    assert!(queue.poll(10).is_empty(), "delivered by the shard's turn");
    assert_eq!(svc.poll(), 4, "fired includes deliveries to queues");
    svc.advance(20 * MS);
    assert_eq!(svc.poll(), 2);
    // Two at a time, then the rest.
    let mut taken = queue.poll(2);
    assert_eq!(taken.len(), 2);
    taken.extend(queue.poll(1));
    taken.extend(queue.poll(10));
    assert!(queue.poll(10).is_empty());
    let order = [1, 5, 3, 4, 2, 0];
    assert_eq!(taken.len(), 6);
    for (event, nth) in taken.iter().zip(order) {
        assert_eq!(event.0.timer, timers[nth]);
        assert_eq!(event.0.deadline_ns, delays[nth] * MS);
        assert_eq!(event.0.missed, 0);
        assert!(log.is(event.1), "with its ctx");
    }
    // The instant is that of the turn that delivered it, not of the taking.
    assert!(taken[..4].iter().all(|event| event.0.now_ns == 35 * MS));
    let stats = svc.stats();
    assert_eq!((stats.fired, stats.ended_by_fire, stats.pending), (6, 6, 0));
    assert_eq!((log.count(), log.dropped()), (0, 0));
}

/// Deadlines of what one poll takes, in ms.
fn take(queue: Queue, capacity: usize) -> Vec<u64> {
    queue.poll(capacity).iter().map(|event| event.0.deadline_ns / MS).collect()
}

#[test]
fn q3_what_one_poll_takes_is_in_the_order_of_deadlines() {
    let service = || Setup::manual(MS).start();
    let log = Log::new();

    let svc = service();
    let queue = svc.queue();
    for delay in [10, 20] {
        into(queue, *svc, log).delay(delay * MS).start();
    }
    assert_eq!(svc.run(30 * MS), 2);
    into(queue, *svc, log).at(5 * MS).start();
    assert_eq!(svc.poll(), 1);
    assert_eq!(take(queue, 9), [5, 10, 20], "one that was started in the past");

    let svc = service();
    let queue = svc.queue();
    into(queue, *svc, log).delay(5 * MS).start();
    let moved = into(queue, *svc, log).delay(10 * MS).start();
    assert_eq!(svc.run(10 * MS), 2);
    assert_eq!(svc.reset_at(moved, 2 * MS), SW_OK);
    assert_eq!(svc.poll(), 1);
    assert_eq!(take(queue, 9), [2, 5], "one that waited, reset into the past");

    let svc = service();
    let queue = svc.queue();
    into(queue, *svc, log).delay(5 * MS).slack(100 * MS).start();
    into(queue, *svc, log).delay(10 * MS).start();
    assert_eq!(svc.run(10 * MS) + svc.run(100 * MS), 2);
    assert_eq!(take(queue, 9), [5, 10], "one with slack");

    let svc = service();
    let queue = svc.queue();
    into(queue, *svc, log).delay(10 * MS).period(10 * MS).start();
    into(queue, *svc, log).delay(25 * MS).start();
    assert_eq!(svc.run(10 * MS) + svc.run(15 * MS) + svc.run(10 * MS), 2);
    assert_eq!(take(queue, 9), [25, 30], "a periodic one whose event waited");
}

#[test]
fn q3_of_each_shard_what_one_poll_takes_is_in_order_and_stable() {
    const SHARDS: u32 = 3;
    let svc = Setup::manual(MS).shards(SHARDS).start();
    let log = Log::new();
    let queue = svc.queue();
    // Each shard's turns deliver later deadlines first; four timers have the same.
    let (rounds, of_each) = (25, 4);
    let mut started: HashMap<(u32, u64), Vec<sw_timer>> = HashMap::new();
    svc.advance(1_000 * MS);
    for round in (1..=rounds).rev() {
        for shard in 0..SHARDS {
            let deadline = (10 * round + u64::from(shard)) * MS;
            let timers = (0..of_each)
                .map(|_| into(queue, *svc, log).shard(shard).at(deadline).start())
                .collect();
            started.insert((shard, deadline), timers);
        }
        assert_eq!((0..SHARDS).map(|shard| svc.poll_shard(shard)).sum::<usize>(), 3 * 4);
    }
    let all = rounds as usize * of_each * SHARDS as usize;
    // From call to call they come in the order of delivery; here none is torn apart.
    let first = queue.poll(2 * of_each);
    assert_eq!(first.len(), 2 * of_each);
    let newest: Vec<_> = first.iter().map(|event| event.0.deadline_ns / (10 * MS)).collect();
    assert_eq!(newest, [24, 24, 24, 24, 25, 25, 25, 25]);
    let rest = queue.poll(all);
    assert_eq!(first.len() + rest.len(), all);
    for events in [first, rest] {
        for shard in 0..SHARDS {
            let of_shard: Vec<_> =
                events.iter().filter(|event| sw_timer_shard(event.0.timer) == shard).collect();
            for same in of_shard.chunks(of_each) {
                let deadline = same[0].0.deadline_ns;
                let timers: Vec<_> = same.iter().map(|event| event.0.timer).collect();
                assert_eq!(timers, started[&(shard, deadline)], "of one deadline, as delivered");
            }
            assert!(of_shard.is_sorted_by_key(|event| event.0.deadline_ns));
        }
    }
}

#[test]
fn q3_the_budget_counts_deliveries() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    for i in 0..10 {
        into(queue, *svc, log).delay(i * MS).start();
        svc.start(i * MS, log);
    }
    svc.advance(20 * MS);
    assert_eq!(svc.poll_budget(5), 5);
    let taken = queue.poll(20).len();
    assert_eq!(log.count() + taken as u64, 5);
    assert_eq!(svc.poll(), 15);
    assert_eq!(log.count(), 10);
    assert_eq!(queue.poll(20).len(), 10 - taken);
}

#[test]
fn q3_an_event_that_waits_holds_its_place() {
    let svc = Setup::manual(MS).max_timers(1).start();
    let log = Log::new();
    let queue = svc.queue();
    into(queue, *svc, log).start();
    assert_eq!(svc.poll(), 1);
    assert_eq!(svc.pending(), 1);
    assert_eq!(svc.try_start(MS, log), Err(SW_FULL));
    assert_eq!(queue.poll(1).len(), 1);
    assert_eq!(svc.pending(), 0);
    svc.start(MS, log);
}

#[test]
fn q3_the_callback_is_not_called() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    let mut spec = into(queue, *svc, log).spec();
    spec.callback = Some(Log::callback);
    svc.start_spec(&spec).unwrap();
    assert_eq!(svc.poll(), 1);
    assert_eq!(queue.poll(9).len(), 1);
    assert_eq!(log.count(), 0);
}

#[test]
fn q3_any_number_of_threads_take_each_event_once() {
    let svc = Setup::threaded(2).start();
    let log = Log::new();
    let queue = svc.queue();
    let all = 20_000;
    let taken: Mutex<Vec<sw_timer>> = Mutex::default();
    let due = svc.now() + 500 * MS;
    let disorder: Mutex<Option<Vec<u64>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let begin = Instant::now();
                while taken.lock().unwrap().len() < all && begin.elapsed() < Duration::from_secs(30)
                {
                    let events = queue.poll(16);
                    // Within one shard what one poll takes is in the order of deadlines.
                    for shard in 0..2 {
                        let deadlines: Vec<_> = events
                            .iter()
                            .filter(|event| sw_timer_shard(event.0.timer) == shard)
                            .map(|event| event.0.deadline_ns)
                            .collect();
                        if !deadlines.is_sorted() {
                            *disorder.lock().unwrap() = Some(deadlines);
                        }
                    }
                    taken.lock().unwrap().extend(events.iter().map(|event| event.0.timer));
                    std::thread::yield_now();
                }
            });
        }
        for i in 0..all as u64 {
            let shard = (i % 2) as u32;
            into(queue, *svc, log).shard(shard).at(due + i * 97 % 50 * MS).start();
        }
    });
    assert_eq!(disorder.into_inner().unwrap(), None, "deadlines of one poll of one shard");
    let taken = taken.into_inner().unwrap();
    assert_eq!(taken.len(), all);
    let unique: std::collections::HashSet<_> = taken.iter().collect();
    assert_eq!(unique.len(), all);
    assert_eq!(svc.stats().fired, all as u64);
    assert_eq!(log.dropped(), 0);
}

#[test]
fn q3_while_an_event_waits_periods_add_to_its_missed() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    let timer = into(queue, *svc, log).delay(10 * MS).period(10 * MS).start();
    // Taken at once: nothing missed.
    svc.run(10 * MS);
    let events = queue.poll(9);
    assert_eq!((events.len(), events[0].0.deadline_ns, events[0].0.missed), (1, 10 * MS, 0));
    // Points 20, 30, 40, 50 go by before it is taken: one event stands for four.
    for _ in 0..40 {
        svc.run(MS);
    }
    let events = queue.poll(9);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].0.timer, timer);
    assert_eq!(events[0].0.missed, 3);
    assert!((20 * MS..=50 * MS).contains(&events[0].0.deadline_ns));
    assert_eq!(events[0].0.deadline_ns % (10 * MS), 0);
    // And it goes on, on the same grid.
    svc.run_to(60 * MS);
    let events = queue.poll(9);
    assert_eq!((events.len(), events[0].0.deadline_ns, events[0].0.missed), (1, 60 * MS, 0));
    assert_eq!(svc.stats().missed, 3);
    assert_eq!(svc.stats().fired, 3);
    assert_eq!(svc.pending(), 1);
}

/// T4, F5: one poll works off a burst, and leaves nothing due; what finds the event waiting is missed.
#[test]
fn q3_a_burst_that_waits_is_one_event_after_one_poll() {
    // Points within a tick, of a tick each, and of many.
    for (period, jump) in [(MS / 4, 7 * MS / 2), (MS, 7 * MS / 2), (10 * MS, 35 * MS)] {
        let svc = Setup::manual(MS).start();
        let log = Log::new();
        let queue = svc.queue();
        let burst = || into(queue, *svc, log).delay(period).period(period).flags(SW_TIMER_BURST);
        let timers = [burst().start(), burst().start()];
        let other = into(queue, *svc, log).delay(2 * period).start();
        svc.advance(jump);
        // Up to the last tick that has been reached.
        let points = jump / MS * MS / period;
        assert_eq!(svc.poll(), 3, "points that find an event waiting are no deliveries");
        let next = (points + 1) * period;
        assert_eq!(svc.next(), next.next_multiple_of(MS), "nothing is due any more");
        let events = queue.poll(9);
        assert_eq!(events.len(), 3);
        for event in events {
            let (deadline, missed) = (event.0.deadline_ns, event.0.missed);
            if event.0.timer == other {
                assert_eq!((deadline, missed), (2 * period, 0));
            } else {
                assert!(timers.contains(&event.0.timer));
                assert_eq!((deadline, missed), (points * period, points - 1));
            }
        }
        assert_eq!(svc.stats().missed, 2 * (points - 1));
        assert_eq!(svc.run_to(next.next_multiple_of(MS)), 2, "and the burst goes on");
    }
}

/// F5: as far as the budget goes; who takes what a poll delivered gets each point of a burst.
#[test]
fn q3_a_burst_that_is_taken_at_once_misses_nothing() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    into(queue, *svc, log).delay(10 * MS).period(10 * MS).flags(SW_TIMER_BURST).start();
    svc.advance(35 * MS);
    for point in 1..=3 {
        assert_eq!(svc.poll_budget(1), 1);
        let events = queue.poll(9);
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].0.deadline_ns, events[0].0.missed), (point * 10 * MS, 0));
    }
    assert_eq!((svc.poll(), svc.next()), (0, 40 * MS));
}

#[test]
fn q3_a_reset_withdraws_the_event() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    for period in [0, 10 * MS] {
        let timer = into(queue, *svc, log).period(period).start();
        svc.poll();
        assert!(queue.readable());
        let before = svc.now();
        assert_eq!(svc.reset(timer, 5 * MS), SW_OK);
        assert!(queue.poll(9).is_empty(), "withdrawn");
        assert_eq!(svc.run(5 * MS - 1), 0);
        assert!(queue.poll(9).is_empty());
        assert_eq!(svc.run(1), 1);
        let events = queue.poll(9);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].0.timer, timer);
        assert_eq!((events[0].0.deadline_ns, events[0].0.missed), (before + 5 * MS, 0));
        svc.cancel(timer);
    }
}

#[test]
fn q3_a_cancelled_event_is_never_seen() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    let timers: Vec<_> = (0..100).map(|i| into(queue, *svc, log).delay(i).start()).collect();
    assert_eq!(svc.run(MS), 100);
    for timer in timers.iter().step_by(2) {
        assert_eq!(svc.cancel(*timer), SW_OK);
    }
    let taken: Vec<_> = queue.poll(100).iter().map(|event| event.0.timer).collect();
    let kept: Vec<_> = timers.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(taken, kept);
    assert_eq!(svc.stats().cancelled, 50);
    assert_eq!(svc.stats().fired, 50);
}

#[test]
fn q3_taking_races_with_cancel_and_reset() {
    let svc = Setup::threaded(1).tick(US).start();
    let log = Log::new();
    let queue = svc.queue();
    let all = 10_000u64;
    let (ended, cancelled) = (AtomicU64::new(0), AtomicU64::new(0));
    let over = AtomicBool::new(false);
    let mut fates: HashMap<sw_timer, u32> = HashMap::new();
    let taken = std::thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let mut taken = Vec::new();
            let begin = Instant::now();
            while !over.load(Ordering::SeqCst) && begin.elapsed() < Duration::from_secs(40) {
                for event in queue.poll(8) {
                    taken.push(event.0.timer);
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            }
            taken
        });
        for i in 0..all {
            let timer = into(queue, *svc, log).delay(i % 50 * US).start();
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_micros(i % 70) {}
            if i % 3 == 0 {
                svc.reset(timer, 10 * US);
            }
            if i % 2 == 0 && svc.cancel(timer) == SW_OK {
                *fates.entry(timer).or_default() += 1;
                cancelled.fetch_add(1, Ordering::SeqCst);
                ended.fetch_add(1, Ordering::SeqCst);
            }
        }
        eventually("all ended", || ended.load(Ordering::SeqCst) == all);
        over.store(true, Ordering::SeqCst);
        taker.join().unwrap()
    });
    for timer in taken {
        *fates.entry(timer).or_default() += 1;
    }
    assert_eq!(fates.len() as u64, all);
    assert!(fates.values().all(|&ends| ends == 1), "cancelled and taken, or taken twice");
    assert_eq!(log.dropped(), cancelled.load(Ordering::SeqCst), "only those cancelled");
}

#[test]
fn q3_freeing_a_queue_cancels_its_timers() {
    let svc = Setup::manual(MS).shards(2).start();
    let log = Log::new();
    let (queue, other) = (svc.queue(), svc.queue());
    let mut timers = Vec::new();
    for i in 0..100u64 {
        let shard = (i % 2) as u32;
        timers.push(into(queue, *svc, log).shard(shard).delay(i * MS).start());
        timers.push(into(queue, *svc, log).shard(shard).delay(i * MS).period(MS).start());
        into(other, *svc, Log::new()).shard(shard).delay(MS).start();
    }
    svc.advance(10 * MS);
    svc.poll_shard(0);
    assert_eq!(queue.free(), SW_OK);
    for timer in timers {
        assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
    }
    assert_eq!(log.dropped(), 200);
    assert_eq!(svc.stats().cancelled, 200);
    assert_eq!(svc.pending(), 100, "another queue's are not concerned");
    svc.poll_shard(1);
    assert_eq!(other.poll(200).len(), 100);
}

#[test]
fn q3_a_service_frees_the_queues_that_are_left() {
    let log = Log::new();
    let svc = Setup::threaded(1).start();
    for _ in 0..10 {
        let queue = svc.queue();
        into(queue, *svc, log).start();
        into(queue, *svc, log).delay(HOUR).start();
    }
    drop(svc);
    assert_eq!(log.dropped(), 20);
}

#[test]
fn q2_a_queue_is_readable_exactly_while_events_wait() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    assert!(!queue.readable());
    into(queue, *svc, log).delay(MS).start();
    let second = into(queue, *svc, log).delay(MS).start();
    assert!(!queue.readable());
    svc.advance(MS);
    assert!(!queue.readable());
    svc.poll();
    assert!(queue.readable());
    assert_eq!(queue.poll(1).len(), 1);
    assert!(queue.readable(), "one is left");
    assert_eq!(svc.cancel(second), SW_OK);
    assert!(!queue.readable(), "the one left was cancelled");
    assert!(queue.poll(1).is_empty());
    assert!(!queue.readable());
    let third = into(queue, *svc, log).start();
    svc.poll();
    assert!(queue.readable());
    assert_eq!(svc.reset(third, HOUR), SW_OK);
    assert!(!queue.readable(), "withdrawn");
    assert_eq!(svc.run(HOUR), 1);
    assert!(queue.readable());
    assert_eq!(queue.poll(9).len(), 1);
    assert!(!queue.readable());
}

#[test]
fn q2_no_event_is_lost_to_a_host_that_sleeps_on_the_queue() {
    let svc = Setup::threaded(1).tick(US).start();
    let log = Log::new();
    let queue = svc.queue();
    let fd = queue.fd();
    for round in 0..3_000u64 {
        into(queue, *svc, log).delay(round % 50 * US).start();
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        assert_eq!(unsafe { libc::poll(&mut poll, 1, 10_000) }, 1, "lost in round {round}");
        assert_eq!(queue.poll(4).len(), 1, "readable, but nothing to take");
        assert!(!readable(fd));
    }
}
