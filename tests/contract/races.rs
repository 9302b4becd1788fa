//! Q5, S2, F3 where threads meet: owners that come and go, stops in odd places.

use crate::Random;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn q5_exclusive_comes_and_goes_under_fire() {
    // Strangers start, cancel and reset all the while; the owner attaches in every way, works, and
    // detaches. Each of the strangers' calls is done or `SW_BUSY`, and no timer is lost.
    let svc = Setup::driven().shards(2).tick(10 * US).start();
    let log = Log::counting();
    let over = AtomicBool::new(false);
    let (accepted, refused, cancelled) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let work = |random: &mut Random, mine: &mut Vec<sw_timer>| {
        let timer = svc.timer().shard(0).delay(random.below(500 * US)).log(log).try_start();
        match timer {
            Ok(timer) => {
                accepted.fetch_add(1, Ordering::SeqCst);
                mine.push(timer);
            }
            Err(status) => {
                assert_eq!(status, SW_BUSY);
                refused.fetch_add(1, Ordering::SeqCst);
            }
        }
        if let Some(&timer) = mine.get(random.below(mine.len().max(1) as u64) as usize) {
            match random.below(3) {
                0 => match svc.cancel(timer) {
                    SW_OK => _ = cancelled.fetch_add(1, Ordering::SeqCst),
                    status => assert!(matches!(status, SW_NOT_FOUND | SW_BUSY | SW_RUNNING)),
                },
                1 => {
                    let status = svc.reset(timer, random.below(500 * US));
                    assert!(matches!(status, SW_OK | SW_NOT_FOUND | SW_BUSY | SW_RUNNING));
                }
                _ => {}
            }
        }
        if mine.len() > 100 {
            mine.drain(..50);
        }
    };
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            let (over, work) = (&over, &work);
            scope.spawn(move || {
                let mut random = Random(seed * 0x1357_9bdf);
                let mut mine = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    work(&mut random, &mut mine);
                }
            });
        }
        let mut random = Random(0x2468);
        let mut mine = Vec::new();
        for round in 0..3_000 {
            let how = if round % 3 == 0 { SW_ATTACH_SHARED } else { SW_ATTACH_EXCLUSIVE };
            assert_eq!(svc.attach(0, how), SW_OK);
            for _ in 0..random.below(20) {
                work(&mut random, &mut mine);
            }
            svc.poll();
            if round % 5 == 0 {
                assert_eq!(svc.attach(0, SW_ATTACH_SHARED), SW_OK);
                assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
                svc.poll();
            }
            assert_eq!(svc.detach(0), SW_OK);
        }
        over.store(true, Ordering::SeqCst);
    });
    eventually("all fire", || {
        svc.poll();
        svc.pending() == 0
    });
    let (accepted, cancelled) = (accepted.into_inner(), cancelled.into_inner());
    assert_eq!(log.count() + cancelled, accepted, "a timer was lost, or ended twice");
    assert_eq!(log.dropped(), accepted + refused.into_inner());
    assert_eq!(svc.stats().started, accepted);
}

#[test]
fn q5_owners_that_end_under_fire() {
    // Each owner thread attaches, works, and simply ends.
    let svc = Setup::driven().tick(10 * US).start();
    let log = Log::counting();
    let accepted = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                match svc.try_start(50 * US, log) {
                    Ok(_) => _ = accepted.fetch_add(1, Ordering::SeqCst),
                    Err(status) => assert!(matches!(status, SW_BUSY | SW_FULL), "{status:?}"),
                }
            }
        });
        for round in 0..200 {
            let how = if round % 2 == 0 { SW_ATTACH_SHARED } else { SW_ATTACH_EXCLUSIVE };
            let (svc, accepted) = (&svc, &accepted);
            let owner = std::thread::scope(|inner| {
                let owner = inner.spawn(move || {
                    assert_eq!(svc.attach(0, how), SW_OK);
                    for _ in 0..20 {
                        svc.start(50 * US, log);
                        accepted.fetch_add(1, Ordering::SeqCst);
                    }
                    svc.poll();
                });
                owner.join()
            });
            owner.unwrap();
        }
        over.store(true, Ordering::SeqCst);
    });
    eventually("all fire", || {
        svc.poll();
        svc.pending() == 0
    });
    assert_eq!(log.count(), accepted.into_inner());
}

#[test]
fn q5_attach_while_another_thread_polls_is_busy() {
    let svc = Setup::manual(MS).start();
    let (inside, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
    let (entered, leave) = (inside.clone(), go.clone());
    let call = move |_: &sw_expiry| {
        entered.open();
        leave.wait();
    };
    svc.timer().run(call).start();
    std::thread::scope(|scope| {
        scope.spawn(|| svc.poll());
        inside.wait();
        assert_eq!(svc.attach(0, SW_ATTACH_SHARED), SW_BUSY);
        assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_BUSY);
        go.open();
    });
    assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
}

#[test]
fn f3_attach_and_detach_inside_a_callback() {
    // Whatever they answer, the turn goes on and nothing is lost.
    for how in [None, Some(SW_ATTACH_SHARED), Some(SW_ATTACH_EXCLUSIVE)] {
        for inner in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
            let svc = Setup::manual(MS).start();
            let door = svc.door();
            let log = Log::new();
            if let Some(how) = how {
                assert_eq!(svc.attach(0, how), SW_OK);
            }
            let call = move |_: &sw_expiry| {
                let attached = door.attach(0, inner);
                assert!(matches!(attached, SW_OK | SW_BUSY | SW_WOULD_DEADLOCK), "{attached:?}");
                door.timer().shard(0).delay(MS).log(log).start();
                let detached = door.detach(0);
                assert!(matches!(detached, SW_OK | SW_BUSY | SW_INVALID | SW_WOULD_DEADLOCK));
                door.timer().shard(0).delay(MS).log(log).start();
            };
            svc.timer().run(call).start();
            for _ in 0..10 {
                svc.timer().log(log).start();
            }
            assert_eq!(svc.poll(), 11);
            assert_eq!(svc.run(MS), 2);
            assert_eq!(log.count(), 12);
        }
    }
}

#[test]
fn s2_stop_inside_a_drop_on_a_hosts_thread() {
    // Not the service's own thread, nor inside one of its callbacks: it stops, or says why not.
    for setup in [Setup::manual(MS), Setup::threaded(2)] {
        let svc = setup.max_timers(2).start();
        let door = svc.door();
        let said = Arc::new(AtomicU64::new(99));
        let stops = |said: &Arc<AtomicU64>| {
            let said = said.clone();
            move || said.store(door.stop() as u64, Ordering::SeqCst)
        };
        let log = Log::new();
        svc.timer().shard(0).delay(HOUR).log(log).start();
        let timer = svc.timer().shard(0).delay(HOUR).run(|_| {}).ended(stops(&said)).start();
        assert_eq!(svc.cancel(timer), SW_OK);
        let answer = said.load(Ordering::SeqCst);
        let fine = [SW_OK as u64, SW_WOULD_DEADLOCK as i32 as u64];
        assert!(fine.contains(&answer), "{answer}");
        // At a refusal too.
        let refused = svc.timer().shard(9).run(|_| {}).ended(stops(&said)).try_start();
        assert!(matches!(refused, Err(SW_INVALID | SW_STOPPED)));
        let answer = said.load(Ordering::SeqCst);
        assert!(fine.contains(&answer), "{answer}");
    }
}

#[test]
fn s2_free_a_queue_while_the_service_stops() {
    // Queues may be freed before, while and after the service stops: each drop once.
    for round in 0..30 {
        let svc = Setup::threaded(2).start();
        let log = Log::counting();
        let queue = svc.queue();
        for i in 0..200u64 {
            svc.timer().delay(i * 20 * US).log(log).queue(queue).start();
        }
        let back = std::thread::scope(|scope| {
            let free = scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_micros(round * 30));
                assert_eq!(queue.free(), SW_OK);
            });
            std::thread::sleep(std::time::Duration::from_micros(300));
            let back = svc.stop_into().unwrap().len() as u64;
            free.join().unwrap();
            back
        });
        assert_eq!(log.dropped(), 200);
        assert_eq!(svc.stats().cancelled + back, 200, "none was taken");
    }
}

#[test]
fn t5_advances_from_several_threads_add_up() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    for i in 1..=100 {
        svc.start(i * MS, log);
    }
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    let before = svc.now();
                    svc.advance(1_001);
                    assert!(svc.now() >= before + 1_001);
                }
            });
        }
        for _ in 0..1_000 {
            svc.poll();
        }
    });
    assert_eq!(svc.now(), 30_000 * 1_001);
    svc.poll();
    assert_eq!(log.count(), 30);
}

#[test]
fn s3_a_batch_over_several_shards_is_all_or_nothing() {
    let svc = Setup::manual(MS).shards(3).max_timers(100).start();
    let log = Log::new();
    for _ in 0..95 {
        svc.timer().shard(2).delay(HOUR).log(log).start();
    }
    let spread = |count: u32| -> Vec<_> {
        (0..count).map(|i| svc.timer().shard(i % 3).delay(MS).log(log).spec()).collect()
    };
    assert_eq!(svc.start_batch(&spread(18)), Err(SW_FULL), "shard 2 has room for five");
    assert_eq!(svc.stats_of(0).started + svc.stats_of(1).started, 0);
    assert_eq!(log.dropped(), 18);
    let timers = svc.start_batch(&spread(15)).unwrap();
    for (nth, &timer) in timers.iter().enumerate() {
        assert_eq!(sw_timer_shard(timer), nth as u32 % 3);
        assert_eq!(svc.remaining(timer), Ok(MS));
    }
    svc.advance(MS);
    for shard in 0..3 {
        assert_eq!(svc.poll_shard(shard), 5);
    }
    assert_eq!(log.timers().len(), 15);
}

#[test]
fn t6_a_large_batch_comes_in_its_order() {
    for attach in [false, true] {
        let svc = Setup::manual(MS).start();
        if attach {
            assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
        }
        let log = Log::new();
        let spec = svc.timer().delay(70 * MS).log(log).spec();
        let timers = svc.start_batch(&vec![spec; 50_000]).unwrap();
        assert_eq!(svc.cancel_batch(&timers[20_000..30_000]), Ok(10_000));
        assert_eq!(svc.run(70 * MS), 40_000);
        assert!(log.timers().iter().eq(timers[..20_000].iter().chain(&timers[30_000..])));
    }
}
