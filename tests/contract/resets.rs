//! C8: reset.

use crate::Random;
use crate::cancel::Standing;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[test]
fn c8_keeps_handle_shard_and_ctx() {
    let svc = Setup::manual(MS).shards(3).start();
    let log = Log::new();
    for shard in 0..3 {
        let timer = svc.timer().shard(shard).delay(HOUR).log(log).start();
        assert_eq!(svc.reset(timer, 2 * HOUR), SW_OK);
        assert_eq!(svc.reset(timer, 7 * MS), SW_OK);
        assert_eq!(svc.reset_at(timer, svc.now() + 5 * MS), SW_OK);
        assert_eq!(sw_timer_shard(timer), shard);
        svc.advance(5 * MS);
        assert_eq!(svc.poll_shard((shard + 1) % 3), 0);
        assert_eq!(svc.poll_shard(shard), 1);
        assert_eq!(log.last().timer, timer);
        assert_eq!(log.last().deadline, svc.now());
    }
    let stats = svc.stats();
    assert_eq!((stats.started, stats.fired, log.dropped()), (3, 3, 3));
}

#[test]
fn c8_later_and_earlier_exactly() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let mut random = Random(5);
    for polled in [false, true] {
        for _ in 0..500 {
            let (first, second) = (1 + random.below(200_000), 1 + random.below(200_000));
            let timer = svc.start(first * 1_000 * US, log);
            if polled {
                svc.poll();
            }
            let to = svc.now() + second * MS - random.below(MS);
            assert_eq!(svc.reset_at(timer, to), SW_OK);
            assert_eq!(svc.remaining(timer), Ok(to - svc.now()));
            let due = crate::due(MS, to).unwrap();
            assert!(svc.next() <= due, "next is above the truth");
            assert_eq!(svc.run_to(due - 1), 0, "{first} to {second}");
            assert_eq!(svc.run_to(due), 1, "{first} to {second}");
            assert_eq!(log.last().deadline, to);
        }
    }
}

#[test]
fn c8_over_and_over_the_last_one_counts() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let mut random = Random(6);
    let timer = svc.start(HOUR, log);
    for _ in 0..10_000 {
        let range = 1 << random.below(45);
        assert_eq!(svc.reset(timer, MS + random.below(range)), SW_OK);
        if random.below(10) == 0 {
            // A short step cannot reach it: it is at least a millisecond away.
            assert_eq!(svc.reset(timer, HOUR), SW_OK);
            assert_eq!(svc.run(random.below(10 * MS)), 0);
        }
    }
    assert_eq!(svc.reset(timer, 3 * MS), SW_OK);
    let due = crate::due(MS, svc.now() + 3 * MS).unwrap();
    assert_eq!(svc.run_to(due - 1), 0);
    assert_eq!(svc.run_to(due), 1);
    assert_eq!(svc.run(SW_NEVER), 0);
    assert_eq!(svc.stats().started, 1);
}

#[test]
fn c8_a_due_timer_is_withdrawn() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let (timer, other) = (svc.start(5 * MS, log), svc.start(6 * MS, log));
    svc.advance(10 * MS);
    assert_eq!(svc.reset(timer, MS), SW_OK);
    assert_eq!(svc.remaining(timer), Ok(MS));
    assert_eq!(svc.poll(), 1);
    assert_eq!(log.timers(), [other]);
    assert_eq!(svc.run(MS), 1);
    assert_eq!(log.last().deadline, 11 * MS);
}

#[test]
fn c8_to_never_and_back() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timer = svc.start(MS, log);
    assert_eq!(svc.reset_at(timer, SW_NEVER), SW_OK);
    assert_eq!(svc.run(HOUR), 0);
    assert_eq!(svc.reset(timer, SW_NEVER), SW_OK);
    assert_eq!(svc.run(HOUR), 0);
    assert_eq!(svc.reset(timer, 1 << 60), SW_OK);
    assert_eq!(svc.remaining(timer), Ok(1 << 60));
    assert_eq!(svc.reset(timer, MS), SW_OK);
    assert_eq!(svc.run(MS), 1);
}

#[test]
fn c8_not_found_after_the_end() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let (fired, cancelled) = (svc.start(MS, log), svc.start(HOUR, log));
    svc.run(MS);
    svc.cancel(cancelled);
    for timer in [fired, cancelled] {
        assert_eq!(svc.reset(timer, MS), SW_NOT_FOUND);
        assert_eq!(svc.reset_at(timer, 0), SW_NOT_FOUND);
    }
    assert_eq!(svc.run(HOUR), 0);
}

#[test]
fn c8_inside_its_callback_a_one_shot_is_armed_again() {
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let driven = setup.is_manual();
        let svc = setup.start();
        let door = svc.door();
        let ran = Arc::new(AtomicU64::new(0));
        let inside = ran.clone();
        let call = move |expiry: &sw_expiry| {
            let nth = inside.fetch_add(1, Ordering::SeqCst);
            if nth < 4 {
                assert_eq!(door.reset(expiry.timer, HOUR), SW_OK);
                assert_eq!(door.reset_at(expiry.timer, door.now() + 2 * MS), SW_OK, "again");
                assert!(door.remaining(expiry.timer).unwrap() <= 2 * MS);
            }
        };
        let timer = svc.timer().delay(MS).run(call).start();
        if driven {
            assert_eq!(svc.run(MS), 1);
            for _ in 0..4 {
                assert_eq!(svc.run(2 * MS - 1), 0);
                assert_eq!(svc.run(1), 1);
            }
        }
        // While an earlier run goes on the timer counts as ended too, until it arms itself again.
        eventually("five runs", || ran.load(Ordering::SeqCst) == 5);
        eventually("the last is over", || svc.stats().ended_by_fire == 1);
        let stats = svc.stats();
        assert_eq!((stats.started, stats.fired, stats.pending), (1, 5, 0));
        assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
    }
}

#[test]
fn c8_re_armed_inside_then_cancelled_from_outside() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let call = move |expiry: &sw_expiry| assert_eq!(door.reset(expiry.timer, MS), SW_OK);
    let timer = svc.timer().delay(MS).run(call).start();
    assert_eq!(svc.run(MS), 1);
    assert_eq!(svc.pending(), 1);
    assert_eq!(svc.reset(timer, 5 * MS), SW_OK);
    assert_eq!(svc.run(5 * MS - 1), 0);
    assert_eq!(svc.run(1), 1);
    assert_eq!(svc.cancel(timer), SW_OK);
    assert_eq!(svc.run(HOUR), 0);
}

#[test]
fn c8_from_elsewhere_a_running_one_shot_is_running_and_unchanged() {
    let svc = Setup::threaded(1).start();
    let one = Standing::begin(svc.timer());
    assert_eq!(svc.reset(one.timer, 0), SW_RUNNING);
    assert_eq!(svc.reset_at(one.timer, SW_NEVER), SW_RUNNING);
    assert_eq!(svc.pending(), 0, "a running one-shot counts as gone");
    one.let_go();
    eventually("over", || svc.reset(one.timer, 0) == SW_NOT_FOUND);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(svc.stats().fired, 1);
    assert_eq!(svc.pending(), 0);
}

#[test]
fn c8_from_elsewhere_includes_another_callback() {
    // Shard 1's callback resets a one-shot that runs on shard 0: not from inside it.
    let svc = Setup::threaded(2).start();
    let one = Standing::begin(svc.timer().shard(0));
    let (door, timer) = (svc.door(), one.timer);
    let answer = Arc::new(AtomicU64::new(99));
    let inside = answer.clone();
    let call = move |_: &sw_expiry| {
        inside.store(door.reset(timer, MS) as u64, Ordering::SeqCst);
    };
    svc.timer().shard(1).run(call).start();
    eventually("answered", || answer.load(Ordering::SeqCst) == SW_RUNNING as u64);
    one.let_go();
    eventually("over", || svc.stats().ended_by_fire == 2);
}

#[test]
fn c8_later_wakes_nobody_earlier_does() {
    let witness = Witness::new();
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    let timer = svc.start(HOUR, log);
    std::thread::sleep(Duration::from_millis(50));
    let before = svc.stats().wakeups;
    for i in 0..50 {
        assert_eq!(svc.reset(timer, 2 * HOUR + i), SW_OK);
        std::thread::sleep(Duration::from_millis(1));
    }
    // A few steps of the wheel may fall into this time, one for each level at most.
    assert!(svc.stats().wakeups - before <= 11, "later deadlines wake the thread");
    let begin = Instant::now();
    assert_eq!(svc.reset(timer, 10 * MS), SW_OK);
    within(Duration::from_secs(5), "woken for the earlier one", || log.count() == 1);
    assert!(begin.elapsed() >= Duration::from_millis(10));
    let took = begin.elapsed().as_nanos() as u64;
    assert!(took < 11 * MS + witness.slack(), "{took} ns");
    assert!(log.last().now >= log.last().deadline);
}

#[test]
fn c8_pushed_out_again_and_again_it_never_fires() {
    // The idle timeout of a busy connection, from several threads.
    let svc = Setup::threaded(2).start();
    let log = Log::new();
    let timers: Vec<_> = (0..100).map(|_| svc.start(2 * SEC, log)).collect();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while begin.elapsed() < Duration::from_millis(3_000) {
                    for &timer in &timers {
                        assert_eq!(svc.reset(timer, 2 * SEC), SW_OK);
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
        }
    });
    assert_eq!(log.count(), 0);
    for timer in timers {
        assert_eq!(svc.cancel(timer), SW_OK);
    }
}

#[test]
fn c8_of_timers_that_have_not_reached_the_wheel() {
    // Started and reset before the shard has had a turn, in both directions.
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..1_000u64 {
                let timer = svc.start(HOUR, log);
                assert_eq!(svc.reset(timer, (i + 1) * MS), SW_OK);
                let timer = svc.start(MS, log);
                assert_eq!(svc.reset(timer, HOUR + i), SW_OK);
            }
        });
    });
    assert_eq!(svc.run(MS), 1);
    for _ in 0..999 {
        assert_eq!(svc.run(MS), 1);
    }
    assert_eq!(log.count(), 1_000);
    svc.run(2 * HOUR);
    assert_eq!(log.count(), 2_000);
}
