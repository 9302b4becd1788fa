//! F1, F2, F4: each timer once, one callback at a time, turns.

use crate::Random;
use crate::support::*;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The books must balance at this moment.
#[track_caller]
fn balanced(svc: &Svc) {
    let stats = svc.stats();
    let ended = stats.ended_by_fire + stats.cancelled + stats.returned;
    assert_eq!(stats.started, ended + stats.pending, "F1: {stats:?}");
}

#[test]
fn f1_each_timer_ends_in_one_way_and_the_books_balance() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let mut random = Random(7);
    let mut alive = Vec::new();
    let (mut started, mut cancelled, mut polled) = (0, 0, 0);
    for _ in 0..20_000 {
        match random.below(10) {
            0..5 => {
                alive.push(svc.timer().delay(random.below(5_000 * MS)).log(log).start());
                started += 1;
            }
            5..8 if !alive.is_empty() => {
                let timer = alive.swap_remove(random.below(alive.len() as u64) as usize);
                match svc.cancel(timer) {
                    SW_OK => cancelled += 1,
                    status => assert_eq!(status, SW_NOT_FOUND),
                }
            }
            8 if !alive.is_empty() => {
                let timer = alive[random.below(alive.len() as u64) as usize];
                let status = svc.reset(timer, random.below(5_000 * MS));
                assert!(status == SW_OK || status == SW_NOT_FOUND);
            }
            _ => polled += svc.run(random.below(100 * MS)),
        }
        let stats = svc.stats();
        assert_eq!(stats.started, started);
        assert_eq!(stats.cancelled, cancelled);
        assert_eq!(stats.ended_by_fire, log.count());
        assert_eq!(stats.fired, log.count());
        assert_eq!(stats.pending, started - cancelled - log.count());
        assert_eq!(stats.returned, 0);
    }
    assert_eq!(polled as u64, log.count());
    let unique: HashSet<_> = log.timers().into_iter().collect();
    assert_eq!(unique.len() as u64, log.count(), "a timer fired twice");
    let back = svc.stop_into().unwrap();
    let stats = svc.stats();
    assert_eq!(stats.returned, back.len() as u64);
    assert_eq!(stats.pending, 0);
    assert_eq!(started, log.count() + cancelled + stats.returned);
    assert_eq!(log.dropped(), started);
    assert!(back.iter().all(|one| !unique.contains(&one.timer)));
    balanced(&svc);
}

#[test]
fn f1_the_books_balance_for_each_shard_too() {
    let svc = Setup::manual(MS).shards(3).start();
    let log = Log::new();
    for shard in 0..3u32 {
        for i in 0..10 * (u64::from(shard) + 1) {
            svc.timer().shard(shard).delay(i * MS).log(log).start();
        }
    }
    svc.advance(5 * MS);
    for shard in 0..3 {
        assert_eq!(svc.poll_shard(shard), 6);
        let stats = svc.stats_of(shard);
        let all = 10 * (u64::from(shard) + 1);
        assert_eq!((stats.started, stats.ended_by_fire, stats.pending), (all, 6, all - 6));
        assert_eq!(stats.high_water, all);
    }
    let sum = svc.stats();
    assert_eq!((sum.started, sum.ended_by_fire, sum.pending), (60, 18, 42));
}

#[test]
fn f1_capacity_comes_back_at_the_cancel_and_before_the_callback() {
    let svc = Setup::manual(MS).max_timers(1).start();
    let log = Log::new();
    let door = svc.door();
    for _ in 0..100 {
        let timer = svc.start(HOUR, log);
        assert_eq!(svc.try_start(HOUR, log), Err(SW_FULL));
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    let next = Arc::new(AtomicU64::new(0));
    let (seen, inside) = (Arc::new(AtomicU64::new(9)), next.clone());
    let pending = seen.clone();
    let call = move |_: &sw_expiry| {
        pending.store(door.pending(), Ordering::SeqCst);
        inside.store(door.start(MS, log), Ordering::SeqCst);
    };
    svc.timer().delay(MS).run(call).start();
    assert_eq!(svc.run(MS), 1);
    assert_eq!(seen.load(Ordering::SeqCst), 0, "counted as pending in its callback");
    assert_eq!(svc.pending(), 1);
    assert_eq!(svc.run(MS), 1);
    assert_eq!(log.timers(), [next.load(Ordering::SeqCst)]);
}

#[test]
fn f1_high_water_and_rejected() {
    let svc = Setup::manual(MS).max_timers(10).start();
    let log = Log::new();
    let timers: Vec<_> = (0..10).map(|_| svc.start(HOUR, log)).collect();
    for _ in 0..3 {
        assert_eq!(svc.try_start(0, log), Err(SW_FULL));
    }
    for timer in timers {
        svc.cancel(timer);
    }
    svc.start(HOUR, log);
    let stats = svc.stats();
    assert_eq!((stats.high_water, stats.rejected, stats.started), (10, 3, 11));
}

#[test]
fn f1_under_a_storm_of_threads() {
    let svc = Setup::threaded(2).start();
    let log = Log::counting();
    let cancelled = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 1..=4 {
            let (svc, cancelled) = (&svc, &cancelled);
            scope.spawn(move || {
                let mut random = Random(seed * 0x9e37_79b9);
                let mut mine = Vec::new();
                for _ in 0..20_000 {
                    let shard = random.below(2) as u32;
                    let delay = random.below(3 * MS);
                    mine.push(svc.timer().shard(shard).delay(delay).log(log).start());
                    let victim = mine[random.below(mine.len() as u64) as usize];
                    match random.below(3) {
                        0 if svc.cancel(victim) == SW_OK => {
                            cancelled.fetch_add(1, Ordering::SeqCst);
                        }
                        1 => {
                            svc.reset(victim, random.below(3 * MS));
                        }
                        _ => {}
                    }
                }
            });
        }
    });
    eventually("all ended", || svc.pending() == 0);
    eventually("all dropped", || log.dropped() == 80_000);
    assert_eq!(log.count() + cancelled.load(Ordering::SeqCst), 80_000);
    balanced(&svc);
}

/// Callbacks that notice when two of them are at work at once.
fn serial(svc: &Svc, shards: u32, count: u64) -> Arc<AtomicU64> {
    let ran = Arc::new(AtomicU64::new(0));
    let at_work: Vec<_> = (0..shards).map(|_| Arc::new(AtomicBool::new(false))).collect();
    for i in 0..count {
        let shard = (i % u64::from(shards)) as u32;
        let (ran, at_work) = (ran.clone(), at_work[shard as usize].clone());
        let call = move |_: &sw_expiry| {
            assert!(!at_work.swap(true, Ordering::SeqCst), "F2: callbacks of a shard overlap");
            std::thread::sleep(Duration::from_micros(100));
            at_work.store(false, Ordering::SeqCst);
            ran.fetch_add(1, Ordering::SeqCst);
        };
        svc.timer().shard(shard).delay(i % 5 * MS).run(call).start();
    }
    ran
}

#[test]
fn f2_the_callbacks_of_a_shard_never_overlap() {
    let svc = Setup::threaded(2).start();
    let ran = serial(&svc, 2, 500);
    eventually("all run", || ran.load(Ordering::SeqCst) == 500);
}

#[test]
fn f2_nor_when_many_threads_poll() {
    let svc = Setup::driven().shards(2).start();
    let ran = serial(&svc, 2, 500);
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let (svc, ran) = (&svc, &ran);
            scope.spawn(move || {
                let begin = Instant::now();
                while ran.load(Ordering::SeqCst) < 500 {
                    assert!(begin.elapsed() < Duration::from_secs(30));
                    match svc.try_poll(thread % 2, 0) {
                        Ok(_) => std::thread::yield_now(),
                        Err(status) => assert_eq!(status, SW_BUSY),
                    }
                }
            });
        }
    });
    assert_eq!(ran.load(Ordering::SeqCst), 500);
}

#[test]
fn f2_a_periodic_timer_never_overlaps_itself() {
    // The callback takes longer than the period; the harness watches for overlap.
    let svc = Setup::threaded(1).start();
    let ran = Arc::new(AtomicU64::new(0));
    let inside = ran.clone();
    let call = move |_: &sw_expiry| {
        std::thread::sleep(Duration::from_millis(5));
        inside.fetch_add(1, Ordering::SeqCst);
    };
    let timer = svc.timer().delay(MS).period(MS).run(call).start();
    eventually("it has run", || ran.load(Ordering::SeqCst) >= 20);
    svc.cancel_wait(timer);
}

#[test]
fn f4_a_timer_started_inside_a_callback_comes_in_the_next_turn() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let log = Log::new();
    let call = move |_: &sw_expiry| {
        door.start(0, log);
        door.start_at(0, log);
        door.start_batch(&[door.timer().delay(0).log(log).spec()]).unwrap();
    };
    svc.timer().delay(MS).run(call).start();
    svc.start(MS, log);
    assert_eq!(svc.run(MS), 2, "the two that were due as the turn began");
    assert_eq!(log.count(), 1);
    assert!(svc.next() <= svc.now());
    assert_eq!(svc.poll(), 3);
    assert_eq!(svc.poll(), 0);
}

#[test]
fn f4_a_chain_takes_one_turn_each() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let ran = Arc::new(AtomicU64::new(0));
    fn link(door: Door, ran: Arc<AtomicU64>) {
        let call = move |_: &sw_expiry| {
            ran.fetch_add(1, Ordering::SeqCst);
            link(door, ran.clone());
        };
        door.timer().delay(0).run(call).start();
    }
    link(door, ran.clone());
    for turn in 1..=50 {
        assert_eq!(svc.poll(), 1);
        assert_eq!(ran.load(Ordering::SeqCst), turn);
    }
}

#[test]
fn f4_a_timer_re_armed_for_now_comes_in_the_next_turn() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let call = move |expiry: &sw_expiry| assert_eq!(door.reset(expiry.timer, 0), SW_OK);
    let timer = svc.timer().delay(MS).run(call).start();
    svc.advance(MS);
    for _ in 0..50 {
        assert_eq!(svc.poll(), 1);
    }
    assert_eq!(svc.cancel(timer), SW_OK);
    assert_eq!(svc.poll(), 0);
}

#[test]
fn f4_with_a_thread_of_its_own_the_chain_goes_on_and_others_get_their_turn() {
    let svc = Setup::threaded(1).start();
    let door = svc.door();
    let log = Log::new();
    let ran = Arc::new(AtomicU64::new(0));
    let inside = ran.clone();
    let call = move |expiry: &sw_expiry| {
        inside.fetch_add(1, Ordering::SeqCst);
        door.reset(expiry.timer, 0);
    };
    let chain = svc.timer().delay(0).run(call).start();
    svc.start(20 * MS, log);
    within(Duration::from_secs(5), "the other one", || log.count() == 1);
    eventually("many links", || ran.load(Ordering::SeqCst) > 1_000);
    svc.cancel_wait(chain);
}
