//! O. Concurrency: cancel against fire, across shards, from foreign threads. (Second half:
//! `o_foreign.rs`.)

use crate::g_cancel::unknown;
use crate::kit::*;
use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

/// 301 timers on each shard for one instant, and a canceller that begins just before it. Each
/// timer is either cancelled and never delivered, or delivered once and the cancel says so.
fn cancel_around(other_thread: bool) {
    const SHARDS: u32 = 2;
    for lead in [500, 300, 200, 100, 0, 400, 250, 50] {
        let cells = cells(301 * SHARDS as usize);
        let s = Setup::threaded(SHARDS).tick(US).start();
        let instant = s.now() + 30 * MS;
        let mut timers = Vec::new();
        for (nth, cell) in cells.iter().enumerate() {
            let mut spec = cell.spec(s.door());
            spec.shard = nth as u32 % SHARDS;
            spec.delay_ns = instant;
            spec.flags = SW_TIMER_ABSOLUTE;
            timers.push(s.start_spec(&spec).unwrap());
        }
        let door = s.door();
        let cancel_all = move || -> Vec<sw_status> {
            while door.now() < instant - lead * US {
                std::hint::spin_loop();
            }
            timers.iter().map(|&timer| door.cancel(timer)).collect()
        };
        let answers = match other_thread {
            true => std::thread::spawn(cancel_all).join().unwrap(),
            false => cancel_all(),
        };
        eventually("none is live", || s.pending() == 0);
        eventually("each context is let go", || cells.iter().all(|cell| cell.dropped() == 1));
        for (cell, answer) in cells.iter().zip(&answers) {
            let ran = match answer {
                SW_OK => 0,
                SW_RUNNING | SW_NOT_FOUND => 1,
                other => panic!("cancel answered {other:?}"),
            };
            assert_eq!((cell.ran(), cell.dropped()), (ran, 1));
        }
        let stats = s.stats();
        let cancelled = answers.iter().filter(|&&answer| answer == SW_OK).count() as u64;
        assert_eq!(stats.cancelled, cancelled);
        assert_eq!(stats.ended_by_fire, cells.len() as u64 - cancelled);
    }
}

/// The canceller is the thread that started them.
#[test]
fn erl_14() {
    cancel_around(false);
}

/// The canceller is another thread.
#[test]
fn erl_15() {
    cancel_around(true);
}

/// Pending, fired and unknown timers cancelled from a callback of their own shard, then again from
/// one of another shard.
#[test]
fn erl_06() {
    let s = Setup::threaded(2).start();
    let (pending, fired) = (Log::new(), Log::new());
    let mut rng = Rng::new(6);
    for shard in [0, 1] {
        let start = |delay, log| s.timer().delay(delay).shard(0).log(log).start();
        let far: Vec<_> = (0..3).map(|_| start(SEC, pending)).collect();
        let gone: Vec<_> = (0..3).map(|_| start(0, fired)).collect();
        let never: Vec<_> = (0..3).map(|_| rng.next() | 1 << 63).collect();
        eventually("three fire", || fired.dropped() == 3 * (u64::from(shard) + 1));
        let answers = Arc::new(Mutex::new(Vec::new()));
        for _ in 0..2 {
            let all: Vec<_> = far.iter().chain(&gone).chain(&never).copied().collect();
            let (door, seen) = (s.door(), answers.clone());
            let call = move |_: &sw_expiry| {
                let found: Vec<_> = all.iter().map(|&timer| door.cancel(timer)).collect();
                seen.lock().unwrap().push(found);
            };
            s.timer().shard(shard).run(call).start();
        }
        eventually("both callbacks are over", || answers.lock().unwrap().len() == 2);
        let answers = answers.lock().unwrap();
        assert_eq!(answers[0][..3], [SW_OK; 3]);
        assert_eq!(answers[1][..3], [SW_NOT_FOUND; 3]);
        for found in answers.iter() {
            assert_eq!(found[3..6], [SW_NOT_FOUND; 3]);
            assert!(found[6..].iter().all(|&status| unknown(status)));
        }
    }
    assert_eq!(pending.count(), 0);
}

/// One timer that every thread, and its own callback, resets, stops and starts on any shard, while
/// all of them poll: no hang, and a last stop ends it.
#[test]
fn dpdk_01() {
    const SHARDS: u32 = 2;
    let s = Setup::driven().shards(SHARDS).tick(US).start();
    let (door, timer) = (s.door(), Arc::new(AtomicU64::new(0)));
    let (end, runs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let start = {
        let (current, runs) = (timer.clone(), runs.clone());
        move |rng: &mut Rng| {
            let (runs, again) = (runs.clone(), rng.below(20) * US);
            let call = move |expiry: &sw_expiry| {
                if runs.fetch_add(1, Ordering::SeqCst) % 3 != 0 {
                    let answer = door.reset(expiry.timer, again);
                    assert!([SW_OK, SW_RUNNING, SW_NOT_FOUND].contains(&answer), "{answer:?}");
                }
            };
            let (delay, shard) = (rng.below(20) * US, rng.below(u64::from(SHARDS)) as u32);
            let new = door.timer().delay(delay).shard(shard).run(call).start();
            let old = current.swap(new, Ordering::SeqCst);
            assert!(old == 0 || [SW_OK, SW_RUNNING, SW_NOT_FOUND].contains(&door.cancel(old)));
        }
    };
    let workers: Vec<_> = (0..3)
        .map(|seed| {
            let (timer, end, start) = (timer.clone(), end.clone(), start.clone());
            std::thread::spawn(move || {
                let mut rng = Rng::new(seed);
                while !end.load(Ordering::SeqCst) {
                    let polled = door.try_poll(rng.below(u64::from(SHARDS)) as u32, 0);
                    assert!(matches!(polled, Ok(_) | Err(SW_BUSY)), "{polled:?}");
                    let now = timer.load(Ordering::SeqCst);
                    match rng.below(40) {
                        0..20 => drop(door.reset(now, rng.below(30) * US)),
                        20 => drop(door.cancel(now)),
                        21..23 => start(&mut rng),
                        _ => std::thread::yield_now(),
                    }
                }
            })
        })
        .collect();
    sleep_ms(1000);
    end.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.join().unwrap();
    }
    let last = door.cancel_wait(timer.load(Ordering::SeqCst));
    assert!([SW_OK, SW_NOT_FOUND].contains(&last), "{last:?}");
    let before = runs.load(Ordering::SeqCst);
    assert!(before > 0);
    sleep_ms(1);
    for shard in 0..SHARDS {
        door.poll_shard(shard);
    }
    assert_eq!((s.pending(), runs.load(Ordering::SeqCst)), (0, before));
}

const MANY: usize = 8192;

/// Polls shard 0 without moving the clock until told to end: nothing is due.
fn keep_polling(door: Door, end: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !end.load(Ordering::SeqCst) {
            assert_eq!(door.poll(), 0);
            std::thread::yield_now();
        }
    })
}

/// All threads arm the same 8192 timers on one shard at once: after the deadline one poll yields
/// exactly 8192 callbacks, one for each timer.
#[test]
fn dpdk_02() {
    let cells = cells(MANY);
    let s = Setup::manual(MS).start();
    let door = s.door();
    let timers: Arc<Vec<_>> = Arc::new(cells.iter().map(|cell| cell.start(door, HOUR)).collect());
    let barrier = Arc::new(Barrier::new(4));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (timers, barrier) = (timers.clone(), barrier.clone());
            std::thread::spawn(move || {
                barrier.wait();
                for &timer in timers.iter() {
                    assert_eq!(door.reset(timer, 100 * MS), SW_OK);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!((s.run(100 * MS - 1), s.run(1)), (0, MANY));
    assert!(cells.iter().all(|cell| cell.ran() == 1));
    assert_eq!((s.run(HOUR), s.pending()), (0, 0));
}

/// Four threads, 100,000 calls each: mostly a reset of a random timer, sometimes a stop and a new
/// start in its place. Again exactly 8192 callbacks.
#[test]
fn dpdk_03() {
    let cells = Arc::new(cells(MANY));
    let s = Setup::manual(MS).start();
    let (door, end) = (s.door(), Arc::new(AtomicBool::new(false)));
    let start = |cell: &Cell| Mutex::new(cell.start(door, 100 * MS));
    let timers: Arc<Vec<_>> = Arc::new(cells.iter().map(start).collect());
    let poller = keep_polling(door, end.clone());
    let workers: Vec<_> = (0..4)
        .map(|seed| {
            let (timers, cells) = (timers.clone(), cells.clone());
            std::thread::spawn(move || {
                let mut rng = Rng::new(seed);
                for _ in 0..100_000 {
                    let at = rng.below(MANY as u64) as usize;
                    let Ok(mut timer) = timers[at].try_lock() else { continue };
                    let delay = rng.between(50, 150) * MS;
                    if rng.one_in(10) {
                        assert_eq!(door.cancel(*timer), SW_OK);
                        *timer = cells[at].start(door, delay);
                    } else {
                        assert_eq!(door.reset(*timer, delay), SW_OK);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    end.store(true, Ordering::SeqCst);
    poller.join().unwrap();
    assert_eq!((s.run(50 * MS - 1), s.run(150 * MS)), (0, MANY));
    assert!(cells.iter().all(|cell| cell.ran() == 1));
    assert_eq!((s.run(HOUR), s.pending()), (0, 0));
}

/// A cancel of a timer whose callback is running: the answer says so, comes at once, and does not
/// touch the run.
#[test]
fn brpc_05() {
    let s = Setup::threaded(1).start();
    let (begun, go, over) = (Arc::new(Gate::new()), Arc::new(Gate::new()), Arc::new(Gate::new()));
    let (open, wait, end) = (begun.clone(), go.clone(), over.clone());
    let call = move |_: &sw_expiry| {
        open.open();
        wait.wait();
        end.open();
    };
    let timer = s.timer().run(call).start();
    begun.wait();
    let begin = mono();
    assert_eq!((s.cancel(timer), s.cancel(timer)), (SW_RUNNING, SW_RUNNING));
    assert!(mono() - begin < SEC && !over.is_open());
    go.open();
    over.wait();
    assert!([SW_RUNNING, SW_NOT_FOUND].contains(&s.cancel_wait(timer)));
    assert_eq!((s.cancel(timer), s.stats().ended_by_fire), (SW_NOT_FOUND, 1));
}
