//! T7, T8: idle shards, wake-ups, slack.

use crate::due;
use crate::support::*;
use std::time::{Duration, Instant};

/// Wheels have this many levels at most; a far timer may cost as many wake-ups on its way.
const LEVELS: u64 = 11;

/// Lets the shard's thread go to sleep.
fn settle() {
    std::thread::sleep(Duration::from_millis(50));
}

#[test]
fn t7_idle_shards_do_not_wake() {
    let svc = Setup::threaded(2).start();
    let log = Log::new();
    settle();
    let before = svc.stats().wakeups;
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(svc.stats().wakeups, before, "an empty shard ticks");
    // With far timers the way there has a few steps, not one a tick.
    for shard in 0..2 {
        svc.timer().delay(HOUR).shard(shard).log(log).start();
    }
    settle();
    let before = svc.stats().wakeups;
    std::thread::sleep(Duration::from_millis(400));
    let woke = svc.stats().wakeups - before;
    assert!(woke <= 2 * LEVELS, "a shard with a far timer woke {woke} times in 400 ms");
}

#[test]
fn t7_idle_costs_no_processor_time() {
    alone("time_idle::t7_idle_costs_no_processor_time", || {
        let svc = Setup::threaded(4).tick(US).start();
        let log = Log::new();
        for i in 0..1_000 {
            svc.start(HOUR + i, log);
        }
        settle();
        let used = whole_processor_time();
        std::thread::sleep(Duration::from_millis(500));
        let used = whole_processor_time() - used;
        assert!(used < Duration::from_millis(50), "{used:?} used in 500 ms of idling");
    });
}

/// Of all threads together.
fn whole_processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn t7_a_later_timer_does_not_wake_the_shard() {
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    let first = svc.start(HOUR, log);
    settle();
    let before = svc.stats().wakeups;
    for i in 0..100 {
        svc.start(HOUR + SEC + i * MS, log);
        std::thread::sleep(Duration::from_millis(1));
    }
    // Pushing a deadline out wakes nobody either (C8).
    for i in 0..100 {
        assert_eq!(svc.reset(first, 2 * HOUR + i), SW_OK);
        std::thread::sleep(Duration::from_millis(1));
    }
    let woke = svc.stats().wakeups - before;
    assert!(woke <= LEVELS, "200 later deadlines woke the thread {woke} times");
}

#[test]
fn t7_an_earlier_timer_wakes_it_in_time() {
    let witness = Witness::new();
    let svc = Setup::threaded(1).start();
    let (far, near) = (Log::new(), Log::new());
    svc.start(HOUR, far);
    for round in 0..20u64 {
        std::thread::sleep(Duration::from_millis(round));
        let begin = Instant::now();
        svc.start(round % 3 * MS, near);
        within(Duration::from_secs(5), "a lost wake-up", || near.count() == round + 1);
        let took = begin.elapsed().as_nanos() as u64;
        assert!(took < 3 * MS + witness.slack(), "{took} ns");
    }
    // Each earlier than the one before, all while it sleeps.
    let log = Log::new();
    settle();
    for delay in (0..50).rev() {
        svc.start((delay * 4) * MS, log);
    }
    within(Duration::from_secs(5), "all fire", || log.count() == 50);
    for fire in log.fires() {
        assert!(fire.now - fire.deadline < MS + witness.slack(), "{fire:?}");
    }
}

#[test]
fn t7_no_wake_up_is_lost_between_arming_and_sleeping() {
    // Ping-pong: each start meets the thread as it is about to sleep.
    let svc = Setup::threaded(1).tick(US).start();
    let log = Log::counting();
    for round in 0..20_000 {
        svc.start(0, log);
        let begin = Instant::now();
        while log.count() == round {
            assert!(begin.elapsed() < Duration::from_secs(5), "lost in round {round}");
            std::hint::spin_loop();
            if begin.elapsed() > Duration::from_micros(50) {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn t7_queues_stay_bounded_while_the_thread_sleeps() {
    alone("time_idle::t7_queues_stay_bounded_while_the_thread_sleeps", || {
        let svc = Setup::threaded(1).start();
        let log = Log::counting();
        let work = |rounds: u64| {
            for i in 0..rounds {
                let timer = svc.start(HOUR + i, log);
                assert_eq!(svc.cancel(timer), SW_OK);
            }
        };
        work(200_000);
        let before = (rss_bytes(), svc.stats().memory_bytes);
        work(2_000_000);
        let after = (rss_bytes(), svc.stats().memory_bytes);
        assert!(after.0 < before.0 + (16 << 20), "resident: {before:?} to {after:?}");
        assert!(after.1 < before.1 + (16 << 20), "its own count: {before:?} to {after:?}");
    });
}

#[test]
fn t7_resets_to_and_fro_stay_bounded_while_the_thread_sleeps() {
    alone("time_idle::t7_resets_to_and_fro_stay_bounded_while_the_thread_sleeps", || {
        let svc = Setup::threaded(1).start();
        let log = Log::counting();
        let timers: Vec<_> = (0..100).map(|i| svc.start(HOUR + i * MS, log)).collect();
        let work = |rounds: u64| {
            for i in 0..rounds {
                // Later is free, earlier tells the owner: both, over and over.
                let timer = timers[i as usize % timers.len()];
                let hours = if i / 100 % 2 == 0 { 3 } else { 2 };
                assert_eq!(svc.reset(timer, hours * HOUR), SW_OK);
            }
        };
        work(200_000);
        let before = rss_bytes();
        work(2_000_000);
        let after = rss_bytes();
        assert!(after < before + (16 << 20), "resident: {before} to {after}");
    });
}

#[test]
fn t7_a_driven_shard_that_nobody_polls_fills_up_at_worst() {
    let svc = Setup::manual(MS).max_timers(1_000).start();
    let log = Log::counting();
    let mut kept = Vec::new();
    for i in 0..100_000u64 {
        match svc.try_start(HOUR + i, log) {
            Ok(timer) if i % 100 == 0 && kept.len() < 500 => kept.push(timer),
            Ok(timer) => assert_eq!(svc.cancel(timer), SW_OK),
            Err(status) => assert_eq!(status, SW_FULL),
        }
    }
    // Nothing lost, and room again after a turn.
    svc.poll();
    assert_eq!(svc.pending(), kept.len() as u64);
    for _ in kept.len()..1_000 {
        svc.start(HOUR, log);
    }
    assert_eq!(svc.try_start(HOUR, log), Err(SW_FULL));
    svc.run(2 * HOUR);
    assert_eq!(log.count(), 1_000);
}

#[test]
fn t7_a_shard_stuck_in_a_callback_fills_up_at_worst() {
    static STUCK: Gate = Gate::new();
    let svc = Setup::threaded(1).max_timers(1_000).start();
    let log = Log::counting();
    svc.timer().run(|_| STUCK.wait()).start();
    let mut kept = Vec::new();
    for i in 0..100_000u64 {
        match svc.try_start(HOUR + i, log) {
            Ok(timer) if i % 100 == 0 && kept.len() < 500 => kept.push(timer),
            Ok(timer) => assert_eq!(svc.cancel(timer), SW_OK),
            Err(status) => assert_eq!(status, SW_FULL),
        }
    }
    STUCK.open();
    eventually("room again", || {
        let room = svc.try_start(HOUR, log);
        room.is_ok_and(|timer| svc.cancel(timer) == SW_OK)
    });
    assert_eq!(svc.pending(), kept.len() as u64);
    for timer in kept {
        assert_eq!(svc.cancel(timer), SW_OK);
    }
}

#[test]
fn t8_slack_never_early_never_past_its_end() {
    for slack in [0, 1, MS / 2, MS, 10 * MS, 70 * MS] {
        let svc = Setup::manual(MS).start();
        let log = Log::new();
        let mut wanted = std::collections::HashMap::new();
        for i in 0..200u64 {
            let deadline = 5 * MS + i * 777_777;
            let timer = svc.timer().delay(deadline).slack(slack).log(log).start();
            wanted.insert(timer, deadline);
        }
        for _ in 0..300 {
            svc.run(MS);
        }
        assert_eq!(log.count(), 200);
        for fire in log.fires() {
            let deadline = wanted[&fire.timer];
            let latest = due(MS, deadline).unwrap().max(deadline + slack);
            assert!(fire.now >= due(MS, deadline).unwrap(), "early: {fire:?}");
            assert!(fire.now <= latest, "slack {slack}: at {} for {deadline}", fire.now);
        }
    }
}

/// Rounding up the deadline takes from the slack.
#[test]
fn t8_slack_ends_where_it_says() {
    for (delay_us, slack_us, tick) in [(6_250, 1_500, 7), (6_250, 1_749, 7), (6_250, 1_750, 8)] {
        let svc = Setup::manual(MS).start();
        let log = Log::new();
        svc.timer().delay(delay_us * US).slack(slack_us * US).log(log).start();
        assert_eq!(svc.run_to(tick * MS - 1), 0);
        assert_eq!(svc.run_to(tick * MS), 1, "{delay_us} + {slack_us}");
    }
}

#[test]
fn t8_slack_of_a_periodic_timer_is_no_drift() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timer = svc.timer().delay(10 * MS).period(10 * MS).slack(4 * MS).log(log).start();
    for _ in 0..1_000 {
        svc.run(MS);
    }
    let fires = log.fires();
    assert!((99..=100).contains(&fires.len()), "{} calls", fires.len());
    for (nth, fire) in (1..).zip(&fires) {
        assert!((nth * 10 * MS..=(nth * 10 + 4) * MS).contains(&fire.now), "{nth}: {fire:?}");
    }
    assert_eq!(svc.cancel(timer), SW_OK);
}

#[test]
fn t8_slack_of_any_size_is_accepted() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    for slack in [1 << 40, 1 << 63, SW_NEVER] {
        let timer = svc.timer().delay(MS).slack(slack).log(log).start();
        assert_eq!(svc.cancel(timer), SW_OK);
        let timer = svc.timer().delay(SW_NEVER).slack(slack).log(log).start();
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    assert_eq!(log.dropped(), 6);
}
