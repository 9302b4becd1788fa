//! O, second half: foreign threads, and starts that race with the shard that takes them in.

use crate::kit::*;
use crate::support::*;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};

/// Memory without any atomics, written on both sides of a timer.
#[derive(Default)]
struct Plain {
    armed: UnsafeCell<u64>,
    called: UnsafeCell<u64>,
}

// SAFETY: whether accesses are ordered is what the test is about.
unsafe impl Sync for Plain {}

unsafe extern "C-unwind" fn write_plain(ctx: *mut c_void, _expiry: *const sw_expiry) {
    // SAFETY: the context is a `Plain` that outlives its timer; the start is before this.
    unsafe {
        let plain = &*ctx.cast_const().cast::<Plain>();
        *plain.called.get() = *plain.armed.get() + 1;
    }
}

/// What was written before the start is seen by the callback, and what the callback wrote by
/// whoever was told that it is over.
#[test]
fn brpc_11() {
    let plains: Vec<Plain> = (0..3000).map(|_| Plain::default()).collect();
    let s = Setup::threaded(1).start();
    for (nth, plain) in plains.iter().enumerate() {
        // SAFETY: the timer does not exist yet.
        unsafe { *plain.armed.get() = nth as u64 };
        let mut timer = SW_TIMER_NONE;
        let ctx = std::ptr::from_ref(plain).cast_mut().cast();
        // SAFETY: the service is alive and `plain` outlives it.
        let status = unsafe { sw_timer_start(s.raw(), 0, Some(write_plain), ctx, &mut timer) };
        assert_eq!(status, SW_OK);
        for _ in 0..nth % 100 {
            std::hint::spin_loop();
        }
        let over = if nth % 2 == 0 {
            s.cancel_wait(timer) != SW_OK
        } else {
            let mut answer = s.cancel(timer);
            while answer == SW_RUNNING {
                answer = s.cancel(timer);
            }
            answer == SW_NOT_FOUND
        };
        // SAFETY: the timer has ended, so nobody writes any more.
        let called = unsafe { *plain.called.get() };
        assert_eq!(called, if over { nth as u64 + 1 } else { 0 });
    }
}

/// A callback takes 300 ms, another thread wants the timer gone at 30: it is answered when the
/// callback is over.
#[test]
fn evt_15() {
    let s = Setup::threaded(1).start();
    let (begun, over) = (Arc::new(Gate::new()), Arc::new(AtomicBool::new(false)));
    let (open, end) = (begun.clone(), over.clone());
    let call = move |_: &sw_expiry| {
        open.open();
        sleep_ms(300);
        end.store(true, Ordering::SeqCst);
    };
    let timer = s.timer().run(call).start();
    begun.wait();
    sleep_ms(30);
    let answer = s.cancel_wait(timer);
    assert!(over.load(Ordering::SeqCst), "it came back before the callback was over");
    assert!([SW_RUNNING, SW_NOT_FOUND].contains(&answer));
}

/// A hundred foreign threads, each starting 3 ms and waiting for it a hundred times.
#[test]
fn evt_20() {
    let s = Setup::threaded(2).start();
    let door = s.door();
    let threads: Vec<_> = (0..100)
        .map(|_| {
            std::thread::spawn(move || {
                let (tell, hear) = mpsc::channel();
                for _ in 0..100 {
                    let tell = tell.clone();
                    door.timer().delay(3 * MS).run(move |_| tell.send(()).unwrap()).start();
                    hear.recv_timeout(LONG).expect("a thread is stuck");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    eventually("the last callback is over", || s.stats().fired == 10_000);
    assert_eq!(s.pending(), 0);
}

/// One timer of an hour: eight threads reset it a thousand times each, then eight more stop it
/// meanwhile.
#[test]
fn go_18() {
    let s = Setup::threaded(1).start();
    let (door, log) = (s.door(), Log::new());
    for stoppers in [0, 8] {
        let timer = s.start(HOUR, log);
        let barrier = Arc::new(Barrier::new(8 + stoppers));
        let threads: Vec<_> = (0..8 + stoppers)
            .map(|nth| {
                let barrier = barrier.clone();
                std::thread::spawn(move || {
                    barrier.wait();
                    if nth < 8 {
                        let mut oks = 0;
                        for more in 0..1000 {
                            match door.reset(timer, HOUR + more) {
                                SW_OK => oks += 1,
                                other => assert_eq!(other, SW_NOT_FOUND),
                            }
                        }
                        oks
                    } else {
                        u64::from(door.cancel(timer) == SW_OK)
                    }
                })
            })
            .collect();
        let found: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        if stoppers == 0 {
            assert_eq!(found, [1000; 8]);
            assert!(s.remaining(timer).unwrap() > HOUR - 60 * SEC);
            assert_eq!(s.cancel(timer), SW_OK);
        } else {
            assert_eq!(found[8..].iter().sum::<u64>(), 1, "exactly one stop wins");
            assert!(s.remaining(timer).is_err());
        }
    }
    assert_eq!((s.pending(), log.count()), (0, 0));
}

/// A foreign thread starts +1 s while the driver moves the clock by 2 s at some point of that
/// race: exactly one firing, never lost. (The peer runs this as a model; here as threads.)
#[test]
fn tokio_01() {
    let s = Setup::manual(MS).start();
    let (door, log) = (s.door(), Log::new());
    let barrier = Arc::new(Barrier::new(2));
    const ROUNDS: u64 = 3000;
    let foreign = {
        let barrier = barrier.clone();
        std::thread::spawn(move || {
            for round in 0..ROUNDS {
                barrier.wait();
                door.start_at(round * 2 * SEC + SEC, log);
                barrier.wait();
            }
        })
    };
    for round in 1..=ROUNDS {
        barrier.wait();
        for _ in 0..round % 50 {
            std::hint::spin_loop();
        }
        let raced = s.run(2 * SEC);
        barrier.wait();
        assert_eq!(raced + s.poll(), 1, "round {round}");
        assert_eq!((log.count(), s.next()), (round, SW_NEVER));
    }
    foreign.join().unwrap();
}

/// A start that the shard has not taken in yet is cancelled: it never gets into the wheel.
#[test]
fn tokio_63() {
    for s in [Setup::manual(MS).start(), Setup::driven().start()] {
        let (door, log) = (s.door(), Log::new());
        assert_eq!(s.poll(), 0);
        let queued = move || {
            let timer = door.start(10 * MS, log);
            assert_eq!(door.cancel(timer), SW_OK);
        };
        std::thread::spawn(queued).join().unwrap();
        assert_eq!((s.poll(), s.next(), s.pending()), (0, SW_NEVER, 0));
        let timer = std::thread::spawn(move || door.start(10 * MS, log)).join().unwrap();
        assert_eq!(s.cancel(timer), SW_OK, "and by another thread than the starter");
        assert_eq!((s.poll(), s.next()), (0, SW_NEVER));
        assert_eq!((log.count(), s.pending()), (0, 0));
    }
}

/// Cancels race with the shard that is taking the very starts in: either end is clean, nothing is
/// stuck, nothing fires. (The peer runs this as a model; here as threads.)
#[test]
fn tokio_64() {
    let s = Setup::manual(MS).max_timers(64).start();
    let (door, log, end) = (s.door(), Log::counting(), Arc::new(AtomicBool::new(false)));
    let poller = {
        let end = end.clone();
        std::thread::spawn(move || {
            while !end.load(Ordering::SeqCst) {
                assert_eq!(door.poll(), 0);
            }
        })
    };
    let (hand, take) = mpsc::sync_channel(4);
    let canceller = std::thread::spawn(move || {
        for timer in take {
            assert_eq!(door.cancel(timer), SW_OK);
        }
    });
    for nth in 0..100_000 {
        let timer = loop {
            match door.try_start(HOUR + nth % 128 * MS, log) {
                Ok(timer) => break timer,
                Err(status) => assert_eq!(status, SW_FULL),
            }
            std::thread::yield_now();
        };
        if nth % 2 == 0 {
            assert_eq!(door.cancel(timer), SW_OK);
        } else {
            hand.send(timer).unwrap();
        }
    }
    drop(hand);
    canceller.join().unwrap();
    end.store(true, Ordering::SeqCst);
    poller.join().unwrap();
    assert_eq!((s.poll(), s.next(), s.pending()), (0, SW_NEVER, 0));
    assert_eq!((s.run(2 * HOUR), log.count()), (0, 0));
}

/// A timer of one service is reset by a callback of a younger one: 2 ms count on its own clock.
#[test]
fn tokio_61() {
    let old = Setup::manual(MS).start();
    old.run(100 * SEC);
    let young = Setup::manual(MS).start();
    let (door, log) = (old.door(), Log::new());
    let timer = old.start(HOUR, log);
    let reset = move |_: &sw_expiry| assert_eq!(door.reset(timer, 2 * MS), SW_OK);
    young.timer().delay(5 * MS).run(reset).start();
    assert_eq!(young.run(5 * MS), 1);
    assert_eq!((old.run(2 * MS - 1), old.run(1)), (0, 1));
    assert_eq!(log.last().deadline, 100 * SEC + 2 * MS);
    // And with shards of their own threads, each service's clock the same.
    let (old, young) = (Setup::threaded(1).start(), Setup::threaded(1).start());
    let (door, log, at) = (old.door(), Log::new(), Arc::new(AtomicU64::new(0)));
    let timer = old.start(HOUR, log);
    let stamp = at.clone();
    let reset = move |_: &sw_expiry| {
        stamp.store(door.now(), Ordering::SeqCst);
        assert_eq!(door.reset(timer, 2 * MS), SW_OK);
    };
    young.timer().delay(MS).run(reset).start();
    eventually("it fires", || log.count() == 1);
    assert!(log.last().deadline >= at.load(Ordering::SeqCst) + 2 * MS);
}

/// 512 timers of 10 ms at once, on one shard and on four: none early, all come.
#[test]
fn tokio_68() {
    for shards in [1, 4] {
        let s = Setup::threaded(shards).start();
        let (fired, early) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        for nth in 0..512 {
            let (fired, early) = (fired.clone(), early.clone());
            let begin = mono();
            let call = move |_: &sw_expiry| {
                early.fetch_add(u64::from(mono() - begin < 10 * MS), Ordering::SeqCst);
                fired.fetch_add(1, Ordering::SeqCst);
            };
            s.timer().delay(10 * MS).shard(nth % shards).run(call).start();
        }
        eventually("all 512", || fired.load(Ordering::SeqCst) == 512);
        assert_eq!(early.load(Ordering::SeqCst), 0);
    }
}

/// One worker of `odp_08`: its own timers, set, reset and cancelled by chance; `late` counts the
/// firings that its cancels and resets came too late for.
fn odp_worker(door: Door, cells: &[Cell], seed: u64, until: u64) {
    let mut rng = Rng::new(seed);
    let mut late = vec![0; cells.len()];
    // Whole ticks: of two deadlines in one tick either may be told where a reset meets the firing.
    let deadline = |rng: &mut Rng| (door.now() / MS + rng.below(20)) * MS;
    let start = |cell: &Cell, at: u64| {
        let mut spec = cell.spec(door);
        (spec.delay_ns, spec.flags, spec.drop) = (at, SW_TIMER_ABSOLUTE, None);
        (door.start_spec(&spec).unwrap(), at)
    };
    let set = |cell: &Cell, rng: &mut Rng| start(cell, deadline(rng));
    let mut timers: Vec<_> = cells.iter().map(|cell| Some(set(cell, &mut rng))).collect();
    let too_late = |cell: &Cell, late: &mut u32, at: u64| {
        *late += 1;
        eventually("the one event", || cell.ran() == *late);
        assert_eq!(cell.deadline(), at, "the deadline that was set last");
        assert!(cell.now() >= at, "T1");
    };
    while door.now() < until {
        for _ in 0..cells.len() / 20 {
            let at = rng.below(cells.len() as u64) as usize;
            let (cell, late) = (&cells[at], &mut late[at]);
            match (timers[at], rng.below(3)) {
                (None, _) => timers[at] = Some(set(cell, &mut rng)),
                (Some((timer, was)), 0) => {
                    if door.cancel(timer) != SW_OK {
                        too_late(cell, late, was);
                    }
                    timers[at] = None;
                }
                (Some((timer, was)), _) => {
                    let new = deadline(&mut rng);
                    timers[at] = Some((timer, new));
                    if door.reset_at(timer, new) != SW_OK {
                        too_late(cell, late, was);
                        timers[at] = None;
                    }
                }
            }
        }
        sleep_ms(1);
    }
    for (at, timer) in timers.iter().enumerate() {
        if let Some((timer, was)) = *timer
            && door.cancel(timer) != SW_OK
        {
            too_late(&cells[at], &mut late[at], was);
        }
    }
    sleep_ms(50);
    for (cell, late) in cells.iter().zip(late) {
        assert_eq!(cell.ran(), late, "an event that nobody expected, or one that is missing");
    }
}

/// Four workers with 500 timers each: every "too late" is followed by its one event, and nothing
/// comes unexpected.
#[test]
fn odp_08() {
    let cells = cells(4 * 500);
    let s = Setup::threaded(2).start();
    let (door, until) = (s.door(), s.now() + SEC);
    std::thread::scope(|scope| {
        for (seed, cells) in (0..).zip(cells.chunks(500)) {
            scope.spawn(move || odp_worker(door, cells, seed, until));
        }
    });
    assert_eq!(s.pending(), 0);
}
