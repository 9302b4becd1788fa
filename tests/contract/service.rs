//! S3, S7, S9: full shards, independent shards, where a timer goes.

use crate::cancel::Standing;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[test]
fn s3_full_is_exact() {
    let svc = Setup::manual(MS).max_timers(100).start();
    let log = Log::new();
    let timers: Vec<_> = (0..100).map(|_| svc.start(HOUR, log)).collect();
    for _ in 0..3 {
        assert_eq!(svc.try_start(HOUR, log), Err(SW_FULL));
    }
    assert_eq!(svc.pending(), 100);
    assert_eq!(svc.stats().rejected, 3);
    assert_eq!(svc.cancel(timers[50]), SW_OK);
    svc.start(MS, log);
    assert_eq!(svc.try_start(HOUR, log), Err(SW_FULL));
    // A firing makes room as well.
    assert_eq!(svc.run(MS), 1);
    svc.start(HOUR, log);
    assert_eq!(svc.try_start(HOUR, log), Err(SW_FULL));
    // Due but not called is still live.
    assert_eq!(svc.reset(timers[0], 0), SW_OK);
    assert_eq!(svc.try_start(HOUR, log), Err(SW_FULL));
    svc.poll();
    svc.start(HOUR, log);
}

#[test]
fn s3_each_shard_for_itself() {
    let svc = Setup::manual(MS).shards(2).max_timers(5).start();
    let log = Log::new();
    for _ in 0..5 {
        svc.timer().shard(0).delay(HOUR).log(log).start();
    }
    assert_eq!(svc.timer().shard(0).delay(HOUR).log(log).try_start(), Err(SW_FULL));
    for _ in 0..5 {
        svc.timer().shard(1).delay(HOUR).log(log).start();
    }
    assert_eq!(svc.timer().shard(1).delay(HOUR).log(log).try_start(), Err(SW_FULL));
}

/// Runs each command on a thread of its own, one after the other.
fn on_thread<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(call).join().unwrap())
}

#[test]
fn s3_across_threads_room_is_made_at_once() {
    for setup in [Setup::manual(MS), Setup::driven(), Setup::threaded(1)] {
        let svc = setup.max_timers(100).start();
        let log = Log::new();
        // This thread fills; others cancel one, a few, all of them; each time exactly as many may
        // be started here at once, by this thread or by a third.
        let mut timers: Vec<_> = (0..100).map(|_| svc.start(HOUR, log)).collect();
        assert_eq!(svc.try_start(HOUR, log), Err(SW_FULL));
        for round in 0..50usize {
            let count = [1, 2, 7, 64, 100][round % 5];
            let gone: Vec<_> = timers.drain(..count).collect();
            let cancel = || gone.iter().all(|&timer| svc.cancel(timer) == SW_OK);
            assert!(on_thread(cancel));
            let start = || -> Vec<_> { (0..count).map(|_| svc.start(HOUR, log)).collect() };
            timers.extend(if round % 2 == 0 { start() } else { on_thread(start) });
            assert_eq!(svc.try_start(HOUR, log), Err(SW_FULL), "round {round}");
            assert_eq!(on_thread(|| svc.try_start(HOUR, log)), Err(SW_FULL));
        }
        assert_eq!(svc.pending(), 100);
        assert_eq!(svc.stats().high_water, 100);
    }
}

#[test]
fn s3_never_more_than_allowed_when_threads_compete() {
    let svc = Setup::threaded(1).max_timers(64).start();
    let log = Log::new();
    for _ in 0..50 {
        let started: Vec<Vec<sw_timer>> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| (0..64).map_while(|_| svc.try_start(HOUR, log).ok()).collect())
                })
                .collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        let timers = started.concat();
        assert_eq!(timers.len(), 64, "exactly as many as there is room for");
        assert_eq!(svc.cancel_batch(&timers), Ok(64));
    }
    assert_eq!(svc.stats().high_water, 64);
}

#[test]
fn s3_a_batch_that_does_not_fit_takes_nothing() {
    let svc = Setup::manual(MS).max_timers(10).start();
    let log = Log::new();
    let spec = svc.timer().delay(HOUR).log(log).spec();
    assert_eq!(svc.start_batch(&[spec; 11]), Err(SW_FULL));
    assert_eq!(svc.pending(), 0);
    let first = svc.start_batch(&[spec; 6]).unwrap();
    assert_eq!(svc.start_batch(&[spec; 5]), Err(SW_FULL));
    assert_eq!(svc.pending(), 6);
    assert_eq!(svc.start_batch(&[spec; 4]).unwrap().len(), 4);
    assert_eq!(svc.cancel_batch(&first), Ok(6));
    assert_eq!(svc.start_batch(&[spec; 6]).unwrap().len(), 6);
}

#[test]
fn s3_a_running_one_shot_counts_as_gone() {
    let svc = Setup::manual(MS).max_timers(1).start();
    let door = svc.door();
    let log = Log::new();
    let seen = Arc::new(AtomicU64::new(0));
    let inside = seen.clone();
    let call = move |expiry: &sw_expiry| {
        // Room for one: either the timer itself again …
        assert_eq!(door.reset(expiry.timer, MS), SW_OK);
        assert_eq!(door.try_start(MS, log), Err(SW_FULL));
        inside.fetch_add(1, Ordering::SeqCst);
    };
    let timer = svc.timer().run(call).start();
    assert_eq!(svc.poll(), 1);
    assert_eq!(svc.pending(), 1);
    assert_eq!(svc.cancel(timer), SW_OK);
    // … or another, and then to re-arm it is refused, and changes nothing.
    let inside = seen.clone();
    let call = move |expiry: &sw_expiry| {
        door.start(MS, log);
        assert_eq!(door.reset(expiry.timer, MS), SW_FULL);
        assert_eq!(door.reset_at(expiry.timer, MS), SW_FULL);
        inside.fetch_add(1, Ordering::SeqCst);
    };
    svc.timer().run(call).start();
    assert_eq!(svc.poll(), 1);
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    assert_eq!(svc.run(MS), 1);
    assert_eq!(log.count(), 1);
    assert_eq!(svc.pending(), 0);
}

#[test]
fn s3_a_running_periodic_timer_keeps_its_place() {
    let svc = Setup::manual(MS).max_timers(1).start();
    let door = svc.door();
    let log = Log::new();
    let call = move |_: &sw_expiry| assert_eq!(door.try_start(MS, log), Err(SW_FULL));
    svc.timer().period(MS).run(call).start();
    for _ in 0..5 {
        assert_eq!(svc.run(MS), 1);
        assert_eq!(svc.pending(), 1);
    }
}

#[test]
fn s3_the_largest_number_allowed() {
    let full = |max: u64| Setup::manual(MS).max_timers(max).try_start().map(drop);
    assert_eq!(full(1 << 28), Ok(()));
    assert_eq!(full((1 << 28) + 1), Err(SW_INVALID));
    assert_eq!(full(u64::MAX), Err(SW_INVALID));
    assert_eq!(full(1), Ok(()));
    assert_eq!(full(0), Ok(()), "the default");
}

#[test]
fn s7_a_blocked_shard_changes_nothing_on_the_others() {
    let witness = Witness::new();
    let svc = Setup::threaded(3).start();
    let log = Log::new();
    let stuck = Standing::begin(svc.timer().shard(1));
    // Work for the blocked one piles up meanwhile.
    for i in 0..10_000 {
        svc.timer().shard(1).delay(i * US).log(Log::counting()).start();
    }
    for i in 0..100 {
        svc.timer().shard(0).delay(i * MS).log(log).start();
        svc.timer().shard(2).delay(i * MS).log(log).start();
    }
    eventually("the others go on", || log.count() == 200);
    for fire in log.fires() {
        assert!(fire.now - fire.deadline < MS + witness.slack(), "{fire:?}");
    }
    let begin = Instant::now();
    let timer = svc.timer().shard(2).delay(HOUR).log(log).start();
    assert_eq!(svc.reset(timer, MS), SW_OK);
    eventually("and on", || log.count() == 201);
    assert!((begin.elapsed().as_nanos() as u64) < 2 * MS + witness.slack());
    stuck.let_go();
}

#[test]
fn s7_an_unpolled_shard_changes_nothing_on_the_others() {
    let svc = Setup::manual(MS).shards(2).max_timers(100).start();
    let (dead, log) = (Log::new(), Log::new());
    while svc.timer().shard(0).delay(MS).log(dead).try_start().is_ok() {}
    for round in 1..=1_000 {
        let timer = svc.timer().shard(1).delay(MS).log(log).start();
        let other = svc.timer().shard(1).delay(HOUR).log(log).start();
        assert_eq!(svc.cancel(other), SW_OK);
        svc.advance(MS);
        assert_eq!(svc.poll_shard(1), 1);
        assert_eq!(log.last().timer, timer);
        assert_eq!(log.count(), round);
        assert_eq!(svc.next_of(1), Ok(SW_NEVER));
    }
    assert_eq!(dead.count(), 0);
    assert_eq!(svc.poll_shard(0), 100);
}

#[test]
fn s9_an_explicit_shard_is_obeyed() {
    for setup in [Setup::manual(MS).shards(4), Setup::threaded(4)] {
        let driven = setup.is_manual();
        let svc = setup.start();
        for shard in 0..4 {
            let log = Log::new();
            let timer = svc.timer().shard(shard).log(log).start();
            assert_eq!(sw_timer_shard(timer), shard);
            let batch = svc.start_batch(&[svc.timer().shard(shard).log(log).spec(); 3]).unwrap();
            assert!(batch.iter().all(|&timer| sw_timer_shard(timer) == shard));
            if driven {
                assert_eq!(svc.poll_shard((shard + 1) % 4), 0);
                assert_eq!(svc.poll_shard(shard), 4);
            }
            eventually("all fire", || log.count() == 4);
            assert_eq!(svc.stats_of(shard).started, 4);
        }
        assert_eq!(svc.timer().shard(4).log(Log::new()).try_start(), Err(SW_INVALID));
    }
}

#[test]
fn s9_any_from_a_callback_is_that_shard() {
    for setup in [Setup::manual(MS).shards(4), Setup::threaded(4)] {
        let driven = setup.is_manual();
        let svc = setup.start();
        let door = svc.door();
        let log = Log::new();
        for shard in 0..4 {
            let (told, hear) = mpsc::channel();
            let call = move |_: &sw_expiry| {
                let batch = [door.timer().delay(HOUR).log(log).spec(); 2];
                let mut timers = vec![door.start(HOUR, log), door.start_every(HOUR, log)];
                timers.extend(door.start_batch(&batch).unwrap());
                told.send(timers).unwrap();
            };
            svc.timer().shard(shard).run(call).start();
            if driven {
                assert_eq!(svc.poll_shard(shard), 1);
            }
            for timer in hear.recv_timeout(Duration::from_secs(20)).unwrap() {
                assert_eq!(sw_timer_shard(timer), shard);
            }
        }
    }
}

#[test]
fn s9_any_from_elsewhere_is_a_home_spread_over_threads() {
    for setup in [Setup::manual(MS).shards(4), Setup::threaded(4)] {
        let svc = setup.start();
        let log = Log::new();
        let mut homes = [0; 4];
        for _ in 0..64 {
            let home = on_thread(|| {
                let home = sw_timer_shard(svc.start(HOUR, log));
                for _ in 0..20 {
                    assert_eq!(sw_timer_shard(svc.start(HOUR, log)), home, "one home a thread");
                }
                home
            });
            homes[home as usize] += 1;
        }
        assert!(homes.iter().all(|&threads| (8..=24).contains(&threads)), "uneven: {homes:?}");
    }
}
