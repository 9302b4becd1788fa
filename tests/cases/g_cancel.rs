//! G. Cancel.

use crate::kit::*;
use crate::support::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What `remaining`, `cancel` and `reset` may answer of a handle that was never issued.
pub fn unknown(status: sw_status) -> bool {
    status == SW_NOT_FOUND || status == SW_INVALID
}

/// The first cancel finds the timer, the second does not, and it never fires.
#[test]
fn agrona_08() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timer = s.start(63 * MS, log);
    s.run(16 * MS);
    assert_eq!((s.cancel(timer), s.cancel(timer)), (SW_OK, SW_NOT_FOUND));
    assert_eq!((s.run(112 * MS), log.count()), (0, 0));
}

/// Read, cancel and read of a fired timer say "none"; a pending one is read, then cancelled once.
#[test]
fn erl_01() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let fired = s.start(MS, log);
    assert_eq!(s.run(MS), 1);
    assert_eq!(s.remaining(fired), Err(SW_NOT_FOUND));
    assert_eq!(s.cancel(fired), SW_NOT_FOUND);
    assert_eq!(s.remaining(fired), Err(SW_NOT_FOUND));
    let pending = s.start(1000 * MS, log);
    s.run(300 * MS);
    assert_eq!(s.remaining(pending), Ok(700 * MS));
    assert_eq!((s.cancel(pending), s.cancel(pending)), (SW_OK, SW_NOT_FOUND));
    assert_eq!(s.remaining(pending), Err(SW_NOT_FOUND));
    assert_eq!((s.run(HOUR), log.count()), (0, 1));
}

/// Handles that were never issued: told so, and the service works on.
#[test]
fn erl_05() {
    let s = Setup::manual(MS).shards(2).start();
    let log = Log::new();
    let real = s.timer().delay(MS).shard(0).log(log).start();
    let mut rng = Rng::new(5);
    let near = (0..64).map(|bit| real ^ (1 << bit));
    let wild = (0..1000).map(|_| rng.next());
    for handle in [0, u64::MAX, 1, 1 << 63].into_iter().chain(near).chain(wild) {
        if handle == real {
            continue;
        }
        assert!(unknown(s.cancel(handle)), "{handle:#x}");
        assert!(unknown(s.cancel_wait(handle)), "{handle:#x}");
        assert!(unknown(s.reset(handle, 5 * MS)), "{handle:#x}");
        assert!(unknown(s.remaining(handle).unwrap_err()), "{handle:#x}");
    }
    assert_eq!((s.run(MS), log.timers()), (1, vec![real]));
}

/// A cancel of what is over already can be told from a real one.
#[test]
fn dpdk_12() {
    let s = Setup::manual(MS).start();
    let fired = s.start(MS, Log::new());
    let cancelled = s.start(2 * MS, Log::new());
    assert_eq!(s.cancel(cancelled), SW_OK);
    s.run(MS);
    for timer in [fired, cancelled] {
        assert_eq!((s.cancel(timer), s.cancel_wait(timer)), (SW_NOT_FOUND, SW_NOT_FOUND));
    }
}

/// A batch counts what it really cancelled.
#[test]
fn dpdk_10b() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let fired = s.start(MS, log);
    let pending = s.start(10 * SEC, log);
    s.run(MS);
    assert_eq!(s.cancel_batch(&[fired]), Ok(0));
    assert_eq!(s.cancel_batch(&[fired, pending]), Ok(1));
    assert_eq!(s.cancel_batch(&[fired, pending]), Ok(0));
    assert_eq!((s.run(HOUR), log.count()), (0, 1));
}

/// A periodic timer that is cancelled at once never runs.
#[test]
fn uv_01a() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timer = s.timer().delay(100 * MS).period(100 * MS).log(log).start();
    assert_eq!(s.cancel(timer), SW_OK);
    assert_eq!((s.run(SEC), log.count(), log.dropped()), (0, 0, 1));
}

/// Of three timers the one started second is cancelled: exactly the other two fire.
#[test]
fn hwt_06() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let [one, ten, five] = [1, 10, 5].map(|delay| s.start(delay * MS, log));
    assert_eq!(s.cancel(ten), SW_OK);
    for _ in 0..10 {
        s.run(MS);
    }
    assert_eq!(log.timers(), [one, five]);
}

/// Two timers on a level's edge, one polled out: the other, its deadline equal to the wheel's own
/// time, is still there for a cancel.
#[test]
fn tokio_20() {
    for edge in [64, 4096, 262_144, 256, 512] {
        let s = Setup::manual(MS).start();
        let log = Log::new();
        let timers = [s.start(edge * MS, log), s.start(edge * MS, log)];
        s.advance((edge + 16) * MS);
        assert_eq!(s.poll_budget(1), 1);
        let other = if log.last().timer == timers[0] { timers[1] } else { timers[0] };
        assert_eq!(s.cancel(other), SW_OK, "C4: due is not too late");
        assert_eq!((s.poll(), log.count(), s.next()), (0, 1, SW_NEVER));
    }
}

/// What is left of a timer that is none, armed, due, and over.
#[test]
fn folly_12() {
    let s = Setup::manual(MS).start();
    assert!(unknown(s.remaining(SW_TIMER_NONE).unwrap_err()));
    let timer = s.start(10 * MS, Log::new());
    assert_eq!(s.remaining(timer), Ok(10 * MS));
    s.run(4 * MS);
    assert_eq!(s.remaining(timer), Ok(6 * MS));
    s.advance(8 * MS);
    assert_eq!(s.remaining(timer), Ok(0));
    s.poll();
    assert_eq!(s.remaining(timer), Err(SW_NOT_FOUND));
}

/// Right after the start no more is left than was asked for: the clock is not a coarse one.
#[test]
fn evt_22() {
    let s = Setup::threaded(1).start();
    for _ in 0..1000 {
        let before = s.now();
        let timer = s.start(100 * US, Log::counting());
        if let Ok(left) = s.remaining(timer) {
            assert!(left <= 100 * US, "{left}");
            assert!(s.now() + left >= before + 100 * US, "nor less than what is true");
        }
    }
    eventually("all fire", || s.pending() == 0);
}

/// Reading does not disturb; after the cancel nothing is left to read.
#[test]
fn erl_08() {
    let s = Setup::threaded(1).start();
    let delay = (1 << 31) * MS;
    let timer = s.start(delay, Log::new());
    let first = s.remaining(timer).unwrap();
    let second = s.remaining(timer).unwrap();
    assert!(second <= first && first <= delay && second > delay - HOUR);
    assert_eq!(s.cancel(timer), SW_OK);
    assert_eq!(s.remaining(timer), Err(SW_NOT_FOUND));
}

/// The winning cancel hands the very context back, on the canceller's thread, before it returns.
#[test]
fn odp_05() {
    let s = Setup::threaded(1).start();
    let payload = Arc::new(Mutex::new(None));
    let owned = payload.clone();
    let timer = s
        .timer()
        .delay(u64::MAX / 2)
        .run(|_| panic!("it was cancelled"))
        .ended(move || *owned.lock().unwrap() = Some(std::thread::current().id()))
        .start();
    assert_eq!(s.cancel(timer), SW_OK);
    assert_eq!(*payload.lock().unwrap(), Some(std::thread::current().id()));
}

/// Two timers of one tick whose callbacks and drops all cancel everything: one fires, one is
/// cancelled, and the recursion ends.
#[test]
fn folly_10() {
    let s = Setup::manual(MS).start();
    let all = Arc::new(Mutex::new(Vec::new()));
    let cancelled = Arc::new(AtomicU64::new(0));
    let door = s.door();
    let cancel_all = {
        let (all, cancelled) = (all.clone(), cancelled.clone());
        move || {
            let timers: Vec<_> = all.lock().unwrap().clone();
            let won = door.cancel_batch(&timers).unwrap();
            cancelled.fetch_add(won as u64, Ordering::SeqCst);
        }
    };
    for _ in 0..2 {
        let (in_callback, in_drop) = (cancel_all.clone(), cancel_all.clone());
        let timer = s.timer().delay(MS).run(move |_| in_callback()).ended(in_drop).start();
        all.lock().unwrap().push(timer);
    }
    assert_eq!(s.run(MS), 1);
    assert_eq!(cancelled.load(Ordering::SeqCst), 1);
    let stats = s.stats();
    assert_eq!((stats.ended_by_fire, stats.cancelled, stats.pending), (1, 1, 0));
}

/// One callback running, others queued behind it: the running one cannot be taken back, the
/// queued ones can, once.
#[test]
fn jdk_05() {
    let s = Setup::threaded(1).start();
    let (begun, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
    let (open, wait) = (begun.clone(), go.clone());
    let running = s
        .timer()
        .run(move |_| {
            open.open();
            wait.wait();
        })
        .start();
    begun.wait();
    let log = Log::new();
    let queued = [0, 0, 1, MS, HOUR].map(|delay| s.start(delay, log));
    sleep_ms(20);
    assert_eq!(s.cancel(running), SW_RUNNING);
    for timer in queued {
        assert_eq!((s.cancel(timer), s.cancel(timer)), (SW_OK, SW_NOT_FOUND));
    }
    assert_eq!(s.pending(), 0);
    go.open();
    assert!([SW_RUNNING, SW_NOT_FOUND].contains(&s.cancel_wait(running)));
    sleep_ms(50);
    assert_eq!(log.count(), 0);
}

/// A cancel also takes back expiries that wait for delivery: of a periodic timer in a queue.
#[test]
fn lnx_04() {
    let s = Setup::manual(MS).start();
    let queue = s.queue();
    let timer = s.timer().delay(100 * MS).period(100 * MS).queue(queue).start();
    for _ in 0..10 {
        s.run(100 * MS);
    }
    assert!(queue.readable());
    assert_eq!(s.cancel(timer), SW_OK);
    assert!(queue.poll(8).is_empty());
    assert!(!queue.readable());
}

/// The same behind a callback that holds the shard up.
#[test]
fn lnx_04_blocked() {
    let s = Setup::threaded(1).start();
    let log = Log::new();
    let go = hold_up(s.door());
    let timer = s.start_every(20 * MS, log);
    sleep_ms(200);
    assert_eq!(s.cancel(timer), SW_OK);
    go.open();
    sleep_ms(100);
    assert_eq!(log.count(), 0);
}

/// After a cancel, or a reset into the far future, no expiry from before can be seen any more.
#[test]
fn go_23() {
    let manual = Setup::manual(MS).start();
    let real = Setup::threaded(1).start();
    for period in [0, 100 * MS] {
        for cancel in [true, false] {
            for (s, driven) in [(&manual, true), (&real, false)] {
                let queue = s.queue();
                let timer = s.timer().delay(MS).period(period).queue(queue).start();
                if driven {
                    s.run(MS);
                }
                eventually("the event waits", || queue.readable());
                let answer = if cancel { s.cancel(timer) } else { s.reset(timer, HOUR) };
                assert_eq!(answer, SW_OK);
                assert!(queue.poll(8).is_empty(), "period {period}, cancel {cancel}");
                if driven && !cancel {
                    assert_eq!((s.run(HOUR - 1), s.run(1)), (0, 1));
                    assert_eq!(queue.poll(8)[0].0.timer, timer);
                }
                s.cancel(timer);
                assert_eq!(queue.free(), SW_OK);
            }
        }
    }
}

/// Eight one-shots and a periodic timer: one that has fired and one that is pending are
/// cancelled; all others come as often as they should.
#[test]
fn mec_04() {
    let s = Setup::manual(MS).start();
    let (shots, periodic) = (Log::new(), Log::new());
    let timers = [2, 10, 20, 50, 80, 120, 160, 200].map(|delay| s.start(delay * MS, shots));
    let ticker = s.start_every(7 * MS, periodic);
    while s.now() < 203 * MS {
        if s.now() == 3 * MS {
            assert_eq!((s.cancel(timers[0]), s.cancel(timers[3])), (SW_NOT_FOUND, SW_OK));
        }
        s.run(MS);
    }
    assert_eq!((shots.count(), periodic.count()), (7, 29));
    assert!(!shots.timers().contains(&timers[3]));
    assert_eq!(s.cancel(ticker), SW_OK);
}
