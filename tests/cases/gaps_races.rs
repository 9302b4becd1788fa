//! Gaps: what no peer's suite looks at. Full queues, blocked and unpolled shards, orders of calls.

use crate::kit::*;
use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

/// The shard is stuck in a callback while another thread starts and cancels without end: each
/// cancel wins and returns at once, a start at worst finds the shard full, and nothing is lost.
#[test]
fn gap_04() {
    let s = Setup::threaded(1).max_timers(10_000).start();
    let go = hold_up(s.door());
    let door = s.door();
    let (log, mut full, mut started) = (Log::counting(), 0, 0);
    let begin = mono();
    let mut held = Vec::new();
    for nth in 0..400_000_u64 {
        if full == 20 {
            break; // A refused start may have waited a little; it need not be seen more often.
        }
        match door.try_start(HOUR + nth, log) {
            Ok(timer) => held.push(timer),
            Err(status) => {
                assert_eq!(status, SW_FULL);
                full += 1;
            }
        }
        if held.len() > 500 {
            started += held.len() as u64;
            for timer in held.drain(..) {
                assert_eq!(door.cancel(timer), SW_OK);
            }
        }
    }
    started += held.len() as u64;
    assert_eq!(s.cancel_batch(&held), Ok(held.len()));
    assert!(mono() - begin < 60 * SEC);
    assert_eq!((s.stats().cancelled, s.stats().rejected), (started, full));
    go.open();
    let fresh = Log::new();
    let refilled = || s.try_start(0, fresh).is_ok();
    eventually("there is room again after the shard's next turn", refilled);
    eventually("and it is served", || fresh.count() == 1 && s.pending() == 0);
    assert_eq!(log.count(), 0);
}

/// Two callbacks, each filling the other's shard until it is full: no dead-lock, the answer is
/// `SW_FULL`, and every timer that was accepted fires.
#[test]
fn gap_05() {
    const ROOM: u64 = 2000;
    let s = Setup::threaded(2).max_timers(ROOM).start();
    let (door, log) = (s.door(), Log::counting());
    let meet = Arc::new(Barrier::new(2));
    let (accepted, full) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let both_over = Arc::new(AtomicU64::new(0));
    for shard in 0..2 {
        let (meet, accepted, full) = (meet.clone(), accepted.clone(), full.clone());
        let over = both_over.clone();
        let fill = move |_: &sw_expiry| {
            meet.wait();
            for _ in 0..10 * ROOM {
                match door.timer().shard(1 - shard).log(log).try_start() {
                    Ok(_) => accepted.fetch_add(1, Ordering::SeqCst),
                    Err(status) => {
                        assert_eq!(status, SW_FULL);
                        full.fetch_add(1, Ordering::SeqCst)
                    }
                };
            }
            // Both shards are now full for good: neither can have served anything meanwhile.
            meet.wait();
            over.fetch_add(1, Ordering::SeqCst);
        };
        s.timer().shard(shard).run(fill).start();
    }
    eventually("neither waits for the other", || both_over.load(Ordering::SeqCst) == 2);
    eventually("all that was accepted fires", || s.pending() == 0);
    eventually("the last callback is over", || log.count() == accepted.load(Ordering::SeqCst));
    assert_eq!(accepted.load(Ordering::SeqCst), 2 * ROOM, "all the room, no more");
    assert_eq!(full.load(Ordering::SeqCst), 2 * 9 * ROOM);
}

/// Start, reset and cancel from three threads that a lock puts in order: the last command wins.
#[test]
fn gap_06() {
    let s = Setup::manual(MS).start();
    let (door, mut rng) = (s.door(), Rng::new(6));
    let (mut fired, log) = (0, Log::new());
    for round in 0..400 {
        let base = s.now();
        // The live timer with its deadline, if there is one.
        let state = Arc::new(Mutex::new(None::<(sw_timer, u64)>));
        let barrier = Arc::new(Barrier::new(3));
        let threads: Vec<_> = [0, 1, 2]
            .map(|role| {
                let (state, barrier, seed) = (state.clone(), barrier.clone(), rng.next());
                std::thread::spawn(move || {
                    let mut rng = Rng::new(seed);
                    barrier.wait();
                    for _ in 0..20 {
                        let mut state = state.lock().unwrap();
                        let deadline = base + rng.between(1, 5000) * MS;
                        *state = match (role, *state) {
                            (0, None) => Some((door.start_at(deadline, log), deadline)),
                            (0 | 1, Some((timer, _))) => {
                                assert_eq!(door.reset_at(timer, deadline), SW_OK);
                                Some((timer, deadline))
                            }
                            (2, Some((timer, _))) => {
                                assert_eq!(door.cancel(timer), SW_OK);
                                None
                            }
                            (_, other) => other,
                        };
                    }
                })
            })
            .into();
        if round % 2 == 0 {
            assert_eq!(s.poll(), 0, "a poll in between changes nothing");
        }
        for thread in threads {
            thread.join().unwrap();
        }
        match *state.lock().unwrap() {
            None => assert_eq!(s.pending(), 0),
            Some((timer, deadline)) => {
                assert_eq!(s.remaining(timer), Ok(deadline - base));
                assert_eq!((s.run_to(deadline - 1), s.run(1)), (0, 1), "round {round}");
                fired += 1;
                assert_eq!((log.last().timer, log.last().deadline), (timer, deadline));
            }
        }
        assert_eq!((s.run(6 * SEC), log.count()), (0, fired));
    }
}

/// A second thread that polls a shard meanwhile is refused.
#[test]
fn gap_07() {
    let s = Setup::driven().start();
    let (begun, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
    let (open, wait) = (begun.clone(), go.clone());
    let hold = move |_: &sw_expiry| {
        open.open();
        wait.wait();
    };
    s.timer().run(hold).start();
    let (door, log) = (s.door(), Log::new());
    let first = std::thread::spawn(move || door.poll());
    begun.wait();
    s.start(0, log);
    assert_eq!(s.try_poll(0, 0), Err(SW_BUSY));
    assert_eq!(log.count(), 0);
    go.open();
    let early = first.join().unwrap();
    assert_eq!(early + s.poll(), 2);
    assert_eq!(log.count(), 1);
}

/// Four threads poll one shard all the time: nothing is delivered twice, nothing is lost.
#[test]
fn gap_07_storm() {
    let cells = cells(20_000);
    let s = Setup::driven().tick(US).start();
    let (door, end, total) = (s.door(), AtomicBool::new(false), AtomicU64::new(0));
    let mut rng = Rng::new(7);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !end.load(Ordering::SeqCst) {
                    match door.try_poll(0, 100) {
                        Ok(fired) => total.fetch_add(fired as u64, Ordering::SeqCst),
                        Err(status) => {
                            assert_eq!(status, SW_BUSY);
                            0
                        }
                    };
                }
            });
        }
        for cell in &cells {
            cell.start(door, rng.below(2000) * US);
        }
        eventually("all are delivered", || s.stats().fired == 20_000);
        end.store(true, Ordering::SeqCst);
    });
    assert!(cells.iter().all(|cell| cell.ran() == 1));
    assert_eq!((total.load(Ordering::SeqCst), s.pending()), (20_000, 0));
}

/// The host has stopped polling a shard: starts and cancels of other threads still return, at
/// worst with `SW_FULL`, in bounded memory; a poll makes room again, and stop works without one.
#[test]
fn gap_08() {
    for polls_again in [true, false] {
        let s = Setup::manual(MS).max_timers(50_000).start();
        let (door, log) = (s.door(), Log::counting());
        let far = s.timer().delay(2 * HOUR).log(Log::new()).start();
        let churn = move |rounds: u64| {
            let mut full = 0;
            for nth in 0..rounds {
                match door.try_start(HOUR + nth % 1000 * MS, log) {
                    Ok(timer) => assert_eq!(door.cancel(timer), SW_OK),
                    Err(status) => {
                        assert_eq!(status, SW_FULL);
                        full += 1;
                    }
                }
            }
            full
        };
        std::thread::spawn(move || churn(200_000)).join().unwrap();
        let early = s.stats().memory_bytes;
        std::thread::spawn(move || churn(1_000_000)).join().unwrap();
        let late = s.stats().memory_bytes;
        assert!(late <= early + (16 << 20), "it grew from {early} to {late}");
        assert_eq!((s.pending(), s.remaining(far)), (1, Ok(2 * HOUR)));
        if polls_again {
            assert_eq!(s.poll(), 0);
            let refused = std::thread::spawn(move || churn(1000)).join().unwrap();
            assert_eq!(refused, 0, "T7: room again after the next turn");
        }
        assert_eq!(s.stop_into().unwrap().len(), 1);
        assert_eq!(log.count(), 0);
    }
}

/// One shard's callback blocks for a second: another shard is no later than before, and cancels
/// of the blocked shard's other timers are answered at once, from a thread and from a callback.
#[test]
fn gap_12() {
    let s = Setup::threaded(2).start();
    let go = hold_up_shard(s.door(), 0);
    let (door, log) = (s.door(), Log::new());
    let timers: Vec<_> =
        (0..100).map(|nth| s.timer().delay(nth * MS).shard(0).log(log).start()).collect();
    let begin = mono();
    while mono() - begin < SEC {
        let (fired, at) = (Log::new(), mono());
        s.timer().delay(10 * MS).shard(1).log(fired).start();
        eventually("the other shard goes on", || fired.count() == 1);
        assert!(mono() - at < SEC);
    }
    let (halves, won) = (timers.clone(), Arc::new(AtomicU64::new(0)));
    let count = won.clone();
    let cancel = move |_: &sw_expiry| {
        let at = mono();
        assert_eq!(door.cancel_batch(&halves[..50]), Ok(50));
        assert!(mono() - at < SEC);
        count.fetch_add(50, Ordering::SeqCst);
    };
    s.timer().shard(1).run(cancel).start();
    eventually("the callback's cancels are answered", || won.load(Ordering::SeqCst) == 50);
    let at = mono();
    assert_eq!(s.cancel_batch(&timers), Ok(50));
    assert!(mono() - at < SEC);
    go.open();
    sleep_ms(50);
    assert_eq!((log.count(), log.dropped()), (0, 100));
}
