//! Q1, Q2, Q4: when a driven shard wants a poll, its descriptor, two threads that poll.

use crate::Random;
use crate::support::*;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Wheels have this many levels at most.
const LEVELS: usize = 11;

/// Waits in `poll(2)` until the descriptor is readable; false when `limit` passes first.
fn wait_readable(fd: i32, limit: Duration) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd.
    let answer = unsafe { libc::poll(&mut poll, 1, limit.as_millis() as i32) };
    assert!(answer >= 0);
    answer == 1
}

#[test]
fn q1_never_when_nothing_is_pending() {
    let svc = Setup::manual(MS).shards(2).start();
    let log = Log::new();
    assert_eq!(svc.next(), SW_NEVER);
    let timer = svc.timer().shard(0).delay(MS).log(log).start();
    assert!(svc.next() <= MS);
    assert_eq!(svc.next_of(1), Ok(SW_NEVER));
    assert_eq!(svc.cancel(timer), SW_OK);
    assert_eq!(svc.next(), SW_NEVER, "cancelled");
    svc.timer().shard(0).delay(MS).log(log).start();
    assert_eq!(svc.run(MS), 1);
    assert_eq!(svc.next(), SW_NEVER, "fired");
    let timer = svc.timer().shard(0).delay(MS).log(log).start();
    svc.poll();
    assert_eq!(svc.cancel(timer), SW_OK);
    svc.poll();
    assert_eq!(svc.next(), SW_NEVER);
}

#[test]
fn q1_never_above_the_truth() {
    // At every moment: not above the earliest due instant of those pending.
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let mut random = Random(11);
    let mut alive: Vec<(sw_timer, u64)> = Vec::new();
    for _ in 0..5_000 {
        match random.below(6) {
            0 | 1 => {
                let range = 1 << random.below(46);
                let delay = random.below(range);
                alive.push((svc.start(delay, log), svc.now() + delay));
            }
            2 if !alive.is_empty() => {
                let (timer, _) = alive.swap_remove(random.below(alive.len() as u64) as usize);
                assert_eq!(svc.cancel(timer), SW_OK);
            }
            3 if !alive.is_empty() => {
                let place = random.below(alive.len() as u64) as usize;
                let range = 1 << random.below(46);
                let to = svc.now() + random.below(range);
                assert_eq!(svc.reset_at(alive[place].0, to), SW_OK);
                alive[place].1 = to;
            }
            4 => {
                let range = 1 << random.below(34);
                svc.advance(random.below(range));
            }
            _ => {
                svc.poll();
                for fire in log.take() {
                    alive.retain(|&(timer, _)| timer != fire.timer);
                }
            }
        }
        let truth = alive.iter().map(|&(_, deadline)| crate::due(MS, deadline).unwrap()).min();
        // What was armed at or past its deadline is due at once.
        let truth = truth.map(|due| if due < svc.now() { svc.now() } else { due });
        let next = svc.next();
        assert!(next <= truth.unwrap_or(SW_NEVER), "{next} is above {truth:?}");
        if alive.is_empty() {
            assert_eq!(next, SW_NEVER);
        }
    }
}

#[test]
fn q1_following_next_leads_to_every_timer_with_few_polls() {
    for tick in [US, MS, 1_234_567] {
        let mut random = Random(tick);
        for _ in 0..200 {
            let svc = Setup::manual(tick).start();
            let log = Log::new();
            svc.run(random.next() >> 8);
            let count = 1 + random.below(4) as usize;
            for _ in 0..count {
                let range = 1 << random.below(55);
                svc.start(random.below(range), log);
            }
            let mut polls = 0;
            while log.count() < count as u64 {
                let next = svc.next();
                assert_ne!(next, SW_NEVER);
                if next > svc.now() {
                    svc.advance_to(next);
                }
                svc.poll();
                polls += 1;
                assert!(polls <= count * (LEVELS + 1), "{polls} polls for {count} timers");
            }
            assert_eq!(svc.next(), SW_NEVER);
            for fire in log.fires() {
                let due = crate::due(tick, fire.deadline).unwrap();
                assert!(fire.now <= due.max(fire.deadline), "late: {fire:?}");
            }
        }
    }
}

#[test]
fn q1_spurious_wake_ups_in_real_time_are_few() {
    let svc = Setup::driven().start();
    let log = Log::new();
    svc.start(700 * MS, log);
    let fd = svc.fd_of(0).unwrap();
    let mut wakes = 0;
    while log.count() == 0 {
        assert!(wait_readable(fd, Duration::from_secs(10)));
        svc.poll();
        wakes += 1;
    }
    // One more: the start itself is something to take in.
    assert!(wakes <= LEVELS + 2, "{wakes} wake-ups for one timer");
}

#[test]
fn q2_readable_exactly_while_there_is_something_to_do() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    assert!(!svc.readable(), "nothing was ever started");
    svc.poll();
    assert!(!svc.readable(), "and a poll changes nothing");
    svc.start(10 * MS, log);
    svc.poll();
    assert!(!svc.readable(), "polled, and not due");
    svc.advance(10 * MS - 1);
    assert!(!svc.readable(), "one nanosecond before");
    svc.advance(1);
    for _ in 0..3 {
        assert!(svc.readable(), "due, and stays so until it is polled");
    }
    assert_eq!(svc.poll(), 1);
    assert!(!svc.readable());
    svc.run(HOUR);
    assert!(!svc.readable());
    // Due at once.
    svc.start(0, log);
    assert!(svc.readable());
    assert_eq!(svc.poll(), 1);
    assert!(!svc.readable());
}

/// Neither a level's boundary nor the bucket that a timer lies in makes it readable.
#[test]
fn q2_dark_until_due_however_far() {
    const K: u64 = 1 << 10;
    for tick in [1_000, MS, 1_234_567] {
        for ticks in
            [63, 64, 65, 100, 155, 4_095, 4_096, 5_000, 256 * K + 7, 17 * K * K + 3, K * K * K]
        {
            let svc = Setup::manual(tick).start();
            let log = Log::new();
            svc.run(3 * tick);
            let due = svc.now() + ticks * tick;
            svc.start_at(due, log);
            svc.start_at(due + 5 * tick, log);
            assert_eq!(svc.poll(), 0);
            assert_eq!(svc.next(), due, "{ticks} ticks of {tick}");
            for early in [ticks / 2 * tick, tick, 1] {
                svc.advance_to(due - early);
                assert!(!svc.readable(), "{early} before {ticks} ticks of {tick}");
            }
            svc.advance(1);
            assert!(svc.readable());
            assert_eq!(svc.poll(), 1);
            assert_eq!(svc.next(), due + 5 * tick);
        }
    }
}

/// What was due and has ended before the turn does.
#[test]
fn q2_what_a_callback_takes_back_is_nothing_to_do() {
    for attach in [None, Some(SW_ATTACH_SHARED), Some(SW_ATTACH_EXCLUSIVE)] {
        let svc = Setup::manual(MS).start();
        let log = Log::new();
        if let Some(how) = attach {
            assert_eq!(svc.attach(0, how), SW_OK);
        }
        let door = svc.door();
        svc.start(HOUR, log);
        svc.start(MS, log);
        let take_back = move |_: &sw_expiry| {
            for _ in 0..3 {
                assert_eq!(door.cancel(door.start(0, log)), SW_OK);
            }
        };
        svc.timer().delay(MS).run(take_back).start();
        svc.advance(MS);
        assert!(svc.readable());
        assert_eq!(svc.poll(), 2);
        assert_eq!(svc.next(), HOUR);
        assert!(!svc.readable());
    }
}

#[test]
fn q2_what_a_budget_leaves_keeps_it_readable() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    for _ in 0..10 {
        svc.start(MS, log);
    }
    svc.advance(MS);
    for _ in 0..5 {
        assert!(svc.readable());
        assert_eq!(svc.poll_budget(2), 2);
    }
    assert!(!svc.readable());
    // A timer started in a callback for the next turn.
    let door = svc.door();
    svc.timer().run(move |_| _ = door.start(0, log)).start();
    assert_eq!(svc.poll(), 1);
    assert!(svc.readable());
    assert_eq!(svc.poll(), 1);
    assert!(!svc.readable());
}

#[test]
fn q2_an_earlier_timer_makes_it_readable_a_later_one_does_not() {
    // From another thread, before and after; a host that sleeps on the descriptor alone is woken.
    for setup in [Setup::manual(MS), Setup::driven()] {
        let manual = setup.is_manual();
        let svc = setup.start();
        let log = Log::new();
        let elsewhere = |delay: u64| {
            std::thread::scope(|scope| scope.spawn(|| svc.start(delay, log)).join().unwrap())
        };
        elsewhere(50 * HOUR);
        svc.poll();
        assert!(!svc.readable());
        elsewhere(60 * HOUR);
        assert!(!svc.readable(), "a later one");
        elsewhere(0);
        assert!(wait_readable(svc.fd_of(0).unwrap(), Duration::from_secs(5)), "due at once");
        assert_eq!(svc.poll(), 1);
        assert!(!svc.readable());
        let timer = elsewhere(55 * HOUR);
        assert!(!svc.readable(), "another later one");
        // A reset to an earlier instant counts as well.
        assert_eq!(svc.reset(timer, 0), SW_OK);
        assert!(wait_readable(svc.fd_of(0).unwrap(), Duration::from_secs(5)), "reset");
        assert_eq!(svc.poll(), 1);
        assert!(!svc.readable());
        if manual {
            // After a poll nothing but the timer itself is in the way of sleep.
            elsewhere(20 * MS);
            svc.poll();
            assert!(!svc.readable());
            assert_eq!(svc.run(20 * MS), 1);
        }
    }
}

#[test]
fn q2_on_a_real_clock_it_becomes_readable_when_due() {
    let witness = Witness::new();
    let svc = Setup::driven().start();
    let log = Log::new();
    let fd = svc.fd_of(0).unwrap();
    for round in 1..=10u64 {
        let begin = Instant::now();
        svc.start(round * 7 * MS, log);
        let mut wakes = 0;
        while log.count() < round {
            assert!(wait_readable(fd, Duration::from_secs(10)), "never readable");
            svc.poll();
            wakes += 1;
            assert!(wakes <= LEVELS + 2, "readable, but there is nothing to do");
        }
        assert!(begin.elapsed() >= Duration::from_millis(round * 7));
        assert!(log.last().now - log.last().deadline < MS + witness.slack());
        assert!(!svc.readable());
    }
}

#[test]
fn q2_no_edge_is_lost_when_another_thread_starts() {
    // A host that does nothing but sleep on the descriptor, and a thread that starts.
    let svc = Setup::driven().tick(US).start();
    let log = Log::counting();
    let fd = svc.fd_of(0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(3);
            for round in 0..5_000 {
                svc.start(random.below(100 * US), log);
                let begin = Instant::now();
                while log.count() <= round && begin.elapsed() < Duration::from_secs(20) {
                    std::hint::spin_loop();
                    if begin.elapsed() > Duration::from_micros(50) {
                        std::thread::yield_now();
                    }
                }
            }
        });
        while log.count() < 5_000 {
            assert!(wait_readable(fd, Duration::from_secs(10)), "an edge is lost");
            svc.poll();
        }
    });
}

#[test]
fn q2_works_with_epoll() {
    let svc = Setup::driven().start();
    let log = Log::new();
    // SAFETY: plain system calls on our own descriptors.
    unsafe {
        let epoll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
        assert!(epoll >= 0);
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 42 };
        let fd = svc.fd_of(0).unwrap();
        assert_eq!(libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event), 0);
        svc.poll();
        let mut found = event;
        assert_eq!(libc::epoll_wait(epoll, &mut found, 1, 0), 0);
        svc.start(20 * MS, log);
        while log.count() == 0 {
            assert_eq!(libc::epoll_wait(epoll, &mut found, 1, 10_000), 1);
            assert_eq!({ found.u64 }, 42);
            svc.poll();
        }
        assert_eq!(libc::epoll_wait(epoll, &mut found, 1, 0), 0);
        libc::close(epoll);
    }
}

#[test]
fn q2_one_descriptor_for_each_shard() {
    let svc = Setup::manual(MS).shards(3).start();
    let log = Log::new();
    let fds: HashSet<i32> = (0..3).map(|shard| svc.fd_of(shard).unwrap()).collect();
    assert_eq!(fds.len(), 3);
    for shard in 0..3 {
        svc.poll_shard(shard);
        assert_eq!(svc.fd_of(shard), svc.fd_of(shard), "the same each time");
    }
    svc.timer().shard(1).log(log).start();
    let seen: Vec<_> = (0..3).map(|shard| readable(svc.fd_of(shard).unwrap())).collect();
    assert_eq!(seen, [false, true, false]);
    svc.poll_shard(1);
}

#[test]
fn q2_queues_under_pressure_are_something_to_do() {
    // So many starts and cancels that the shard needs a turn: the host is told by the descriptor,
    // and one that heeds it never meets a full shard.
    let svc = Setup::manual(MS).max_timers(2_000).start();
    let log = Log::counting();
    svc.poll();
    let mut turns = 0;
    for _ in 0..200_000 {
        let timer = svc.start(HOUR, log);
        assert_eq!(svc.cancel(timer), SW_OK);
        if svc.readable() {
            svc.poll();
            turns += 1;
        }
    }
    // A start on an empty wheel is an earlier timer, so it may well be each time.
    assert!(turns <= 200_000);
    svc.poll();
    assert!(!svc.readable());
    assert_eq!(svc.pending(), 0);
}

#[test]
fn q4_a_second_poll_at_the_same_time_is_busy() {
    let svc = Setup::manual(MS).shards(2).start();
    let door = svc.door();
    let (inside, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
    let (entered, leave) = (inside.clone(), go.clone());
    let call = move |_: &sw_expiry| {
        entered.open();
        leave.wait();
    };
    svc.timer().shard(0).run(call).start();
    let log = Log::new();
    svc.timer().shard(0).log(log).start();
    svc.timer().shard(1).log(log).start();
    std::thread::scope(|scope| {
        let first = scope.spawn(move || door.poll_shard(0));
        inside.wait();
        assert_eq!(svc.try_poll(0, 0), Err(SW_BUSY));
        assert_eq!(svc.try_poll(0, 1), Err(SW_BUSY));
        assert_eq!(log.count(), 0);
        assert_eq!(svc.poll_shard(1), 1, "another shard is not concerned");
        go.open();
        assert_eq!(first.join().unwrap(), 2);
    });
    assert_eq!(svc.poll(), 0);
    assert_eq!(log.count(), 2);
}

#[test]
fn q4_nothing_is_delivered_twice() {
    let svc = Setup::driven().tick(US).start();
    let log = Log::new();
    let sum = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let begin = Instant::now();
                while log.count() < 20_000 && begin.elapsed() < Duration::from_secs(30) {
                    match svc.try_poll(0, 10) {
                        Ok(fired) => _ = sum.fetch_add(fired as u64, Ordering::SeqCst),
                        Err(status) => assert_eq!(status, SW_BUSY),
                    }
                    std::thread::yield_now();
                }
            });
        }
        for i in 0..20_000u64 {
            svc.start(i % 100 * US, log);
        }
    });
    assert_eq!(log.count(), 20_000);
    assert_eq!(sum.load(Ordering::SeqCst), 20_000);
    let unique: HashSet<_> = log.timers().into_iter().collect();
    assert_eq!(unique.len(), 20_000);
}
