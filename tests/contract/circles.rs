//! C5: waits that would close a circle: somebody is refused, nobody hangs.

use crate::cancel::Standing;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A ring of shards whose callbacks each wait for the next one's: at least one is refused, all
/// come to an end, none runs again.
fn circle(svc: &Svc) {
    let shards = svc.shard_count();
    let door = svc.door();
    let timers: Arc<Vec<AtomicU64>> = Arc::new((0..shards).map(|_| AtomicU64::new(0)).collect());
    let inside = Arc::new(AtomicU64::new(0));
    let refused = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicU64::new(0));
    let ready = Arc::new(Gate::new());
    for shard in 0..shards {
        let (timers, inside, refused, over, begin) =
            (timers.clone(), inside.clone(), refused.clone(), over.clone(), ready.clone());
        let own = timers.clone();
        let call = move |_: &sw_expiry| {
            begin.wait();
            inside.fetch_add(1, Ordering::SeqCst);
            eventually("all inside", || inside.load(Ordering::SeqCst) == u64::from(shards));
            let next = &timers[((shard + 1) % shards) as usize];
            match door.cancel_wait(next.load(Ordering::SeqCst)) {
                SW_WOULD_DEADLOCK => _ = refused.fetch_add(1, Ordering::SeqCst),
                status => assert!(status == SW_RUNNING || status == SW_NOT_FOUND, "{status:?}"),
            }
            over.fetch_add(1, Ordering::SeqCst);
        };
        let timer = svc.timer().shard(shard).period(HOUR).run(call).start();
        own[shard as usize].store(timer, Ordering::SeqCst);
    }
    ready.open();
    let all = u64::from(shards);
    eventually("every callback ended", || over.load(Ordering::SeqCst) == all);
    assert!(refused.load(Ordering::SeqCst) >= 1, "somebody must be refused");
    eventually("none is to run again", || svc.pending() == 0);
}

#[test]
fn c5_a_circle_of_two_shards() {
    alone("circles::c5_a_circle_of_two_shards", || {
        for _ in 0..20 {
            circle(&Setup::threaded(2).start());
        }
    });
}

#[test]
fn c5_a_circle_of_three_shards() {
    alone("circles::c5_a_circle_of_three_shards", || {
        for _ in 0..10 {
            circle(&Setup::threaded(3).start());
        }
    });
}

#[test]
fn c5_a_circle_of_driven_shards() {
    alone("circles::c5_a_circle_of_driven_shards", || {
        for _ in 0..10 {
            let svc = Setup::manual(MS).shards(2).start();
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for shard in 0..2 {
                    let (svc, over) = (&svc, &over);
                    scope.spawn(move || {
                        while !over.load(Ordering::SeqCst) {
                            svc.poll_shard(shard);
                            std::thread::yield_now();
                        }
                    });
                }
                circle(&svc);
                over.store(true, Ordering::SeqCst);
            });
        }
    });
}

/// Timers whose drops meet, then each wait for the other's: both come back.
fn drops_that_wait(svc: &Svc, mut end: impl FnMut(usize, [sw_timer; 2])) {
    let door = svc.door();
    let timers: Arc<[AtomicU64; 2]> = Arc::default();
    let (inside, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let started: Vec<sw_timer> = (0..2)
        .map(|nth| {
            let (timers, inside, over) = (timers.clone(), inside.clone(), over.clone());
            let ended = move || {
                inside.fetch_add(1, Ordering::SeqCst);
                eventually("both drop", || inside.load(Ordering::SeqCst) == 2);
                let status = door.cancel_wait(timers[1 - nth].load(Ordering::SeqCst));
                assert!(status == SW_WOULD_DEADLOCK || status == SW_NOT_FOUND, "{status:?}");
                over.fetch_add(1, Ordering::SeqCst);
            };
            svc.timer().shard(nth as u32).delay(HOUR).run(|_| {}).ended(ended).start()
        })
        .collect();
    for (place, &timer) in timers.iter().zip(&started) {
        place.store(timer, Ordering::SeqCst);
    }
    for nth in 0..2 {
        end(nth, [started[0], started[1]]);
    }
    eventually("both drops ended", || over.load(Ordering::SeqCst) == 2);
}

#[test]
fn c5_a_circle_of_two_drops() {
    alone("circles::c5_a_circle_of_two_drops", || {
        for _ in 0..10 {
            let svc = Setup::threaded(2).start();
            let door = svc.door();
            // On cancelling threads; on the shards' own; one of each.
            let cancels = |timer| _ = std::thread::spawn(move || door.cancel(timer));
            drops_that_wait(&svc, |nth, timers| cancels(timers[nth]));
            drops_that_wait(&svc, |nth, timers| assert_eq!(door.reset(timers[nth], 0), SW_OK));
            drops_that_wait(&svc, |nth, timers| match nth {
                0 => cancels(timers[0]),
                _ => assert_eq!(door.reset(timers[1], 0), SW_OK),
            });
        }
    });
}

#[test]
fn c5_a_circle_of_a_callback_and_a_drop() {
    alone("circles::c5_a_circle_of_a_callback_and_a_drop", || {
        for _ in 0..10 {
            let svc = Setup::threaded(1).start();
            let door = svc.door();
            let handles: Arc<[AtomicU64; 2]> = Arc::default();
            let (inside, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let part = |nth: usize| {
                let (handles, inside, over) = (handles.clone(), inside.clone(), over.clone());
                move || {
                    inside.fetch_add(1, Ordering::SeqCst);
                    eventually("both inside", || inside.load(Ordering::SeqCst) == 2);
                    let status = door.cancel_wait(handles[1 - nth].load(Ordering::SeqCst));
                    assert_ne!(status, SW_OK);
                    over.fetch_add(1, Ordering::SeqCst);
                }
            };
            let calls = part(0);
            let called = svc.timer().delay(HOUR).run(move |_| calls()).start();
            let dropped = svc.timer().delay(HOUR).run(|_| {}).ended(part(1)).start();
            handles[0].store(called, Ordering::SeqCst);
            handles[1].store(dropped, Ordering::SeqCst);
            assert_eq!(svc.reset(called, 0), SW_OK);
            std::thread::spawn(move || door.cancel(dropped));
            eventually("both ended", || over.load(Ordering::SeqCst) == 2);
        }
    });
}

#[test]
fn c5_a_wait_and_a_stop_for_one_callback() {
    // One waits for the callback, one stops the service: both come back when it ends.
    alone("circles::c5_a_wait_and_a_stop_for_one_callback", || {
        for round in 0..10 {
            let svc = Setup::threaded(1).start();
            let one = Standing::begin(svc.timer());
            let timer = one.timer;
            std::thread::scope(|scope| {
                let named = |name: &str| std::thread::Builder::new().name(name.into());
                let waits =
                    || named("waits").spawn_scoped(scope, || svc.cancel_wait(timer)).unwrap();
                let stops = || named("stops").spawn_scoped(scope, || svc.stop()).unwrap();
                let stands = |name| eventually(name, || task_named(name).is_some_and(asleep));
                let (wait, stop) = if round % 2 == 0 {
                    let wait = waits();
                    stands("waits");
                    (wait, stops())
                } else {
                    let stop = stops();
                    stands("stops");
                    (waits(), stop)
                };
                std::thread::sleep(std::time::Duration::from_millis(5));
                one.go.open();
                let expected = [SW_RUNNING, SW_STOPPED][round % 2];
                assert_eq!(wait.join().unwrap(), expected);
                assert_eq!(stop.join().unwrap(), SW_OK);
            });
        }
    });
}

/// Timers on two shards that wait for each other, the first in its drop after its callback, the second in its
/// callback: one is refused, and both come to an end.
#[test]
fn c5_a_circle_of_a_callback_and_the_drop_after_one() {
    alone("circles::c5_a_circle_of_a_callback_and_the_drop_after_one", || {
        for round in 0..20 {
            let svc = Setup::threaded(2).start();
            let door = svc.door();
            let handles: Arc<[AtomicU64; 2]> = Arc::default();
            let [entered, called, dropping, refused, over]: [Arc<AtomicU64>; 5] =
                Default::default();
            let wait = |nth: usize| {
                let (handles, refused, over) = (handles.clone(), refused.clone(), over.clone());
                move || {
                    let status = door.cancel_wait(handles[1 - nth].load(Ordering::SeqCst));
                    assert_ne!(status, SW_OK);
                    refused.fetch_add(u64::from(status == SW_WOULD_DEADLOCK), Ordering::SeqCst);
                    over.fetch_add(1, Ordering::SeqCst);
                }
            };
            let (waits, waits_too) = (wait(0), wait(1));
            let stage = |stage: &Arc<AtomicU64>| {
                let stage = stage.clone();
                move || eventually("both inside", || stage.load(Ordering::SeqCst) == 1)
            };
            let (met, meets) = (entered.clone(), stage(&called));
            let callback = move |_: &sw_expiry| {
                met.store(1, Ordering::SeqCst);
                meets();
            };
            let (met, meets) = (called.clone(), stage(&entered));
            let drops = (round % 2 == 0).then(|| stage(&dropping));
            let other = move |_: &sw_expiry| {
                met.store(1, Ordering::SeqCst);
                meets();
                // Or it waits for the callback first, and then still for the drop.
                if let Some(drops) = &drops {
                    drops();
                }
                waits_too();
            };
            let dropped = move || {
                dropping.store(1, Ordering::SeqCst);
                waits();
            };
            let timers = [
                svc.timer().shard(0).delay(HOUR).run(callback).ended(dropped).start(),
                svc.timer().shard(1).delay(HOUR).run(other).start(),
            ];
            for (place, timer) in handles.iter().zip(timers) {
                place.store(timer, Ordering::SeqCst);
            }
            for timer in timers {
                assert_eq!(svc.reset(timer, 0), SW_OK);
            }
            eventually("both ended", || over.load(Ordering::SeqCst) == 2);
            assert_ne!(refused.load(Ordering::SeqCst), 0);
        }
    });
}

/// A callback waits for a drop that another thread's cancel runs, and that one for the end of the service.
#[test]
fn c5_a_circle_through_a_stop() {
    alone("circles::c5_a_circle_through_a_stop", || {
        for first_stops in [false, true] {
            let svc = Setup::threaded(1).start();
            let door = svc.door();
            let [called, answer]: [Arc<AtomicU64>; 2] = Default::default();
            let dropping = Arc::new(Gate::new());
            let (begun, calls, runs) = (dropping.clone(), called.clone(), called.clone());
            let ended = move || {
                begun.open();
                eventually("the callback runs", || calls.load(Ordering::SeqCst) == 1);
                // Most likely it waits by then.
                std::thread::sleep(Duration::from_millis(20));
                assert_eq!(door.stop(), SW_OK);
            };
            let timer = svc.timer().delay(HOUR).run(|_| {}).ended(ended).start();
            let (begun, told) = (dropping.clone(), answer.clone());
            let call = move |_: &sw_expiry| {
                begun.wait();
                called.store(1, Ordering::SeqCst);
                told.store(door.cancel_wait(timer) as u64, Ordering::SeqCst);
            };
            svc.timer().run(call).start();
            std::thread::scope(|scope| {
                if first_stops {
                    scope.spawn(|| {
                        eventually("the callback runs", || runs.load(Ordering::SeqCst) == 1);
                        assert_eq!(svc.stop(), SW_OK);
                    });
                }
                scope.spawn(|| assert_eq!(svc.cancel(timer), SW_OK));
            });
            let answer = answer.load(Ordering::SeqCst) as i64;
            let refused = [SW_WOULD_DEADLOCK, SW_STOPPED].map(|status| status as i64);
            assert!(refused.contains(&answer), "{answer}");
        }
    });
}
