//! S2: stop.

use crate::cancel::Standing;
use crate::support::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[test]
fn s2_hands_back_each_timer_that_had_not_fired() {
    for setup in [Setup::manual(MS).shards(3), Setup::threaded(3)] {
        let svc = setup.start();
        let log = Log::new();
        let queue = svc.queue();
        let mut wanted = HashMap::new();
        for i in 0..300u64 {
            let deadline = svc.now() + HOUR + i * 1_234_567;
            let timer = svc.timer().shard((i % 3) as u32).at(deadline).log(log);
            let timer = match i % 4 {
                0 => timer.period(SEC).start(),
                1 => timer.queue(queue).start(),
                2 => {
                    let timer = timer.start();
                    assert_eq!(svc.reset_at(timer, deadline + 5), SW_OK);
                    wanted.insert(timer, deadline + 5);
                    continue;
                }
                _ => timer.start(),
            };
            wanted.insert(timer, deadline);
        }
        let never = svc.timer().at(SW_NEVER).log(log).start();
        wanted.insert(never, SW_NEVER);
        for back in svc.stop_into().unwrap() {
            assert!(log.is(back.ctx));
            assert_eq!(wanted.remove(&back.timer), Some(back.deadline), "its deadline, once");
        }
        assert!(wanted.is_empty(), "not handed back: {wanted:?}");
        assert_eq!(log.dropped(), 301);
        assert_eq!(log.count(), 0);
        assert_eq!(svc.stats().returned, 301);
        assert_eq!(svc.pending(), 0);
    }
}

#[test]
fn s2_not_those_that_ended_before() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    svc.timer().delay(MS).log(log).start();
    let cancelled = svc.timer().delay(HOUR).log(log).start();
    let kept = svc.timer().delay(HOUR).log(log).start();
    svc.timer().delay(MS).log(log).queue(queue).start();
    let waiting = svc.timer().delay(2 * MS).log(log).queue(queue).start();
    let due = svc.timer().delay(3 * MS).log(log).start();
    svc.run(MS);
    assert_eq!(queue.poll(1).len(), 1);
    svc.run(MS);
    svc.advance(MS);
    assert_eq!(svc.cancel(cancelled), SW_OK);
    let mut back: Vec<_> = svc.stop_into().unwrap().iter().map(|one| one.timer).collect();
    let mut wanted = vec![kept, waiting, due];
    back.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(back, wanted, "pending, waiting in a queue, and due but not called");
    assert_eq!(log.dropped(), 5, "all but the one whose event was taken");
}

#[test]
fn s2_idempotent() {
    for setup in [Setup::manual(MS), Setup::threaded(2)] {
        let svc = setup.start();
        let log = Log::new();
        svc.start(HOUR, log);
        assert_eq!(svc.stop_into().unwrap().len(), 1);
        assert_eq!(svc.stop_into().unwrap().len(), 0);
        assert_eq!(svc.stop(), SW_OK);
        assert_eq!(svc.stats().returned, 1);
    }
}

#[test]
fn s2_two_at_once_both_wait_for_the_end() {
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    for _ in 0..1_000 {
        svc.start(HOUR, log);
    }
    let one = Standing::begin(svc.timer());
    std::thread::scope(|scope| {
        let stops: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let back = svc.stop_into().unwrap().len();
                    assert!(one.ended.load(Ordering::SeqCst), "a callback outlives stop");
                    back
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        one.go.open();
        let back: usize = stops.into_iter().map(|stop| stop.join().unwrap()).sum();
        assert_eq!(back, 1_000, "together they hand back each timer once");
    });
}

/// The text of `sw_stats_prometheus`.
fn prometheus(door: Door) -> String {
    let mut text = vec![0u8; 1 << 16];
    let mut needed = 0;
    // SAFETY: the buffer has that capacity.
    let status = unsafe {
        sw_stats_prometheus(door.raw(), text.as_mut_ptr().cast(), text.len(), &mut needed)
    };
    assert_eq!(status, SW_OK);
    text.truncate(needed);
    String::from_utf8(text).unwrap()
}

#[test]
fn s2_after_stop() {
    for setup in [Setup::manual(MS), Setup::driven(), Setup::threaded(1)] {
        let manual = setup.is_manual();
        let svc = setup.start();
        let log = Log::new();
        let queue = svc.queue();
        let timer = svc.start(HOUR, log);
        let clock = svc.now();
        assert_eq!(svc.stop(), SW_OK);
        let none = std::ptr::null_mut();
        let call = Some(Log::callback as _);
        // SAFETY: the service is stopped, not freed.
        unsafe {
            assert_eq!(sw_timer_start(svc.raw(), 0, call, log.ctx(), none), SW_STOPPED);
            assert_eq!(sw_timer_start_at(svc.raw(), 0, call, log.ctx(), none), SW_STOPPED);
            assert_eq!(sw_timer_start_every(svc.raw(), MS, call, log.ctx(), none), SW_STOPPED);
        }
        assert_eq!(svc.timer().log(log).try_start(), Err(SW_STOPPED));
        assert_eq!(svc.start_batch(&[svc.timer().log(log).spec()]), Err(SW_STOPPED));
        assert_eq!(svc.cancel(timer), SW_STOPPED);
        assert_eq!(svc.cancel_wait(timer), SW_STOPPED);
        assert_eq!(svc.cancel_batch(&[timer]), Err(SW_STOPPED));
        assert_eq!(svc.reset(timer, MS), SW_STOPPED);
        assert_eq!(svc.reset_at(timer, 0), SW_STOPPED);
        assert_eq!(queue.try_poll(4).err(), Some(SW_STOPPED));
        if svc.try_poll(0, 0) != Err(SW_UNSUPPORTED) {
            assert_eq!(svc.try_poll(0, 0), Err(SW_STOPPED));
        }
        // These still work.
        assert_eq!(svc.shard_count(), 1);
        assert!(svc.now() >= clock);
        if manual {
            svc.advance(5 * MS);
            assert_eq!(svc.now(), clock + 5 * MS);
        }
        let stats = svc.stats();
        assert_eq!((stats.started, stats.returned, stats.pending), (1, 1, 0));
        assert_eq!(svc.stats_of(0).started, 1);
        assert!(!prometheus(svc.door()).is_empty());
        assert_eq!(queue.free(), SW_OK);
        assert_eq!(log.count(), 0);
    }
}

#[test]
fn s2_free_alone_and_null() {
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { sw_service_free(std::ptr::null_mut()) }, SW_OK);
    let svc = Setup::threaded(2).start();
    let log = Log::new();
    for i in 0..100 {
        svc.timer().delay(HOUR + i).log(log).start();
    }
    let raw = svc.raw();
    std::mem::forget(svc);
    // SAFETY: the last use.
    assert_eq!(unsafe { sw_service_free(raw) }, SW_OK);
    assert_eq!(log.dropped(), 100);
}

#[test]
fn s2_joins_within_one_running_callback() {
    let witness = Witness::new();
    let svc = Setup::threaded(1).start();
    let ran = Arc::new(AtomicU64::new(0));
    let stuck = Standing::begin(svc.timer());
    for _ in 0..500 {
        let inside = ran.clone();
        let call = move |_: &sw_expiry| {
            inside.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
        };
        svc.timer().run(call).start();
    }
    stuck.let_go();
    eventually("the first of them", || ran.load(Ordering::SeqCst) >= 1);
    let begin = Instant::now();
    let before = ran.load(Ordering::SeqCst);
    let back = svc.stop_into().unwrap().len() as u64;
    let took = begin.elapsed().as_nanos() as u64;
    assert!(took < 20 * MS + witness.slack(), "{took} ns");
    let after = ran.load(Ordering::SeqCst);
    let late = witness.slack() / (20 * MS);
    assert!(after <= before + 2 + late, "it worked off {} more", after - before);
    assert_eq!(back + after, 500);
    stays(Duration::from_millis(50), "none runs after stop", || {
        ran.load(Ordering::SeqCst) == after
    });
}

#[test]
fn s2_a_long_callback_is_waited_for() {
    let svc = Setup::threaded(1).start();
    let one = Standing::begin(svc.timer());
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| {
            assert_eq!(svc.stop(), SW_OK);
            assert!(one.ended.load(Ordering::SeqCst), "stop returned before the callback");
        });
        std::thread::sleep(Duration::from_millis(100));
        assert!(!stop.is_finished());
        one.go.open();
        stop.join().unwrap();
    });
    assert_eq!(svc.stats().ended_by_fire, 1);
}

#[test]
fn s2_what_a_callback_does_while_stop_waits_for_it() {
    // A start or a re-arming there races with stop: refused, or handed back; never lost, never run.
    for period in [0, MS] {
        let svc = Setup::threaded(1).start();
        let door = svc.door();
        let log = Log::new();
        let (inside, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
        let (entered, leave) = (inside.clone(), go.clone());
        let (ran, armed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (count, accepted) = (ran.clone(), armed.clone());
        let call = move |expiry: &sw_expiry| {
            count.fetch_add(1, Ordering::SeqCst);
            entered.open();
            leave.wait();
            std::thread::sleep(Duration::from_millis(50));
            match door.timer().delay(0).log(log).try_start() {
                Ok(_) => _ = accepted.fetch_add(1, Ordering::SeqCst),
                Err(status) => assert_eq!(status, SW_STOPPED),
            }
            match door.reset(expiry.timer, 0) {
                SW_OK => _ = accepted.fetch_add(1, Ordering::SeqCst),
                status => {
                    assert_eq!(status, SW_STOPPED);
                    // The periodic one had a further run before it.
                    accepted.fetch_add(u64::from(period > 0), Ordering::SeqCst);
                }
            }
        };
        svc.timer().period(period).run(call).start();
        inside.wait();
        std::thread::scope(|scope| {
            let stop = scope.spawn(|| svc.stop_into().unwrap().len() as u64);
            go.open();
            assert_eq!(stop.join().unwrap(), armed.load(Ordering::SeqCst));
        });
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        assert_eq!(log.count(), 0);
    }
}

#[test]
fn s2_starts_that_race_with_stop_are_never_lost() {
    for round in 0..30 {
        let setup = if round % 3 == 0 { Setup::driven().shards(2) } else { Setup::threaded(2) };
        let svc = setup.start();
        let log = Log::new();
        let accepted = AtomicU64::new(0);
        let refused = AtomicU64::new(0);
        let stopped = AtomicBool::new(false);
        let back = std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let (svc, accepted, refused, stopped) = (&svc, &accepted, &refused, &stopped);
                scope.spawn(move || {
                    for i in 0.. {
                        // Some due at once, some in a while, some far.
                        let delay = [0, MS, HOUR][(i + thread) as usize % 3];
                        let shard = (i % 2) as u32;
                        match svc.timer().shard(shard).delay(delay).log(log).try_start() {
                            Ok(_) => accepted.fetch_add(1, Ordering::SeqCst),
                            Err(status) => {
                                assert_eq!(status, SW_STOPPED);
                                refused.fetch_add(1, Ordering::SeqCst)
                            }
                        };
                        if refused.load(Ordering::SeqCst) > 0 && stopped.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(round % 7));
            let back = svc.stop_into().unwrap();
            let count = log.count();
            stopped.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!(log.count(), count, "a callback after stop");
            back
        });
        let mut ends: HashMap<sw_timer, u32> = HashMap::new();
        for timer in log.timers().into_iter().chain(back.iter().map(|one| one.timer)) {
            *ends.entry(timer).or_default() += 1;
        }
        assert!(ends.values().all(|&count| count == 1), "fired or handed back twice");
        assert_eq!(ends.len() as u64, accepted.load(Ordering::SeqCst), "round {round}");
        let all = accepted.load(Ordering::SeqCst) + refused.load(Ordering::SeqCst);
        assert_eq!(log.dropped(), all, "each drop once");
        assert_eq!(svc.stats().started, accepted.load(Ordering::SeqCst));
    }
}

#[test]
fn s2_cancels_and_resets_that_race_with_stop() {
    for round in 0..30 {
        let svc = Setup::threaded(1).start();
        let log = Log::new();
        let timers: Vec<_> =
            (0..2_000u64).map(|i| svc.timer().delay(i * 2 * US).log(log).start()).collect();
        let cancelled = AtomicU64::new(0);
        let back = std::thread::scope(|scope| {
            scope.spawn(|| {
                for (i, &timer) in timers.iter().enumerate() {
                    if i % 2 == 0 {
                        svc.reset(timer, MS);
                    } else if svc.cancel(timer) == SW_OK {
                        cancelled.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
            std::thread::sleep(Duration::from_micros(100 * (round % 10)));
            svc.stop_into().unwrap().len() as u64
        });
        assert_eq!(log.count() + back + cancelled.load(Ordering::SeqCst), 2_000);
        assert_eq!(log.dropped(), 2_000);
    }
}

#[test]
fn s2_in_driven_mode_it_waits_for_the_polling_thread() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    std::thread::scope(|scope| {
        let (inside, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
        let (entered, leave) = (inside.clone(), go.clone());
        let ended = Arc::new(AtomicBool::new(false));
        let over = ended.clone();
        let call = move |_: &sw_expiry| {
            entered.open();
            leave.wait();
            std::thread::sleep(Duration::from_millis(30));
            over.store(true, Ordering::SeqCst);
        };
        svc.timer().run(call).start();
        for _ in 0..10 {
            svc.start(0, log);
        }
        let poll = scope.spawn(|| svc.try_poll(0, 0));
        inside.wait();
        let door = svc.door();
        let stop = scope.spawn(move || {
            let back = door.stop_into().unwrap().len();
            assert!(ended.load(Ordering::SeqCst), "stop returned before the callback");
            back
        });
        std::thread::sleep(Duration::from_millis(30));
        go.open();
        let back = stop.join().unwrap();
        assert_eq!(back as u64 + log.count(), 10);
        let _ = poll.join().unwrap();
    });
}

#[test]
fn s2_stop_from_the_services_own_threads_would_deadlock() {
    // From a callback in both modes: see f3. From a drop on a shard's thread: here.
    let svc = Setup::threaded(1).start();
    let door = svc.door();
    let said = Arc::new(AtomicBool::new(false));
    let inside = said.clone();
    let ended = move || {
        assert_eq!(door.stop(), SW_WOULD_DEADLOCK);
        inside.store(true, Ordering::SeqCst);
    };
    svc.timer().run(|_| {}).ended(ended).start();
    eventually("the drop runs", || said.load(Ordering::SeqCst));
    // The service goes on.
    let log = Log::new();
    svc.start(0, log);
    eventually("it fires", || log.count() == 1);
}
