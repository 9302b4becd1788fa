//! I. Calls from inside callbacks.

use crate::kit::*;
use crate::support::*;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

/// A timer started in a callback is overdue before that callback returns: it fires once, in the
/// next turn.
#[test]
fn folly_02() {
    let s = Setup::manual(MS).start();
    let (door, log) = (s.door(), Log::new());
    s.timer()
        .delay(500 * MS)
        .run(move |_| {
            door.start(MS, log);
            door.advance(5 * MS);
        })
        .start();
    assert_eq!((s.run(500 * MS), log.count()), (1, 0));
    assert_eq!((s.poll(), log.count(), log.last().deadline), (1, 1, 501 * MS));
    assert_eq!((s.run(HOUR), s.pending()), (0, 0));
}

/// The same on a running service, where the callback sleeps.
#[test]
fn folly_02_real() {
    let s = Setup::threaded(1).start();
    let (door, log, over) = (s.door(), Log::new(), Arc::new(AtomicU64::new(0)));
    let end = over.clone();
    s.timer()
        .delay(20 * MS)
        .run(move |_| {
            door.start(MS, log);
            sleep_ms(5);
            end.store(door.now(), Ordering::SeqCst);
        })
        .start();
    eventually("it fires", || log.count() == 1);
    assert!(log.last().now >= over.load(Ordering::SeqCst), "F2: after the one that started it");
}

/// A callback cancels a far timer and starts one that is past: the far one never runs, the other
/// comes right after.
#[test]
fn brpc_03() {
    let s = Setup::manual(MS).start();
    let (door, far, past) = (s.door(), Log::new(), Log::new());
    let timer = s.start(DAY, far);
    s.timer()
        .delay(50 * MS)
        .run(move |_| {
            assert_eq!(door.cancel(timer), SW_OK);
            door.start_at(0, past);
        })
        .start();
    assert_eq!((s.run(50 * MS), s.poll(), past.count()), (1, 1, 1));
    assert_eq!((s.run(2 * DAY), far.count()), (0, 0));
}

/// Three due timers, and a new one of +400 ms started between each delivery: the three come out
/// first, the new ones in their time.
#[test]
fn tokio_26() {
    let s = Setup::manual(MS).start();
    let (due, new) = (Log::new(), Log::new());
    for _ in 0..3 {
        s.start(100 * MS, due);
    }
    s.advance(100 * MS);
    for delivered in 1..=3 {
        assert_eq!((s.poll_budget(1), due.count()), (1, delivered));
        s.start(400 * MS, new);
    }
    assert_eq!((s.poll(), s.run(400 * MS - 1), s.run(1), new.count()), (0, 0, 3, 3));
}

/// A callback cancels its own spent handle, then starts another for the same bucket: the other
/// can be cancelled and never runs.
#[test]
fn node_01() {
    for delay in [5 * MS, 64 * MS, 100 * MS] {
        let s = Setup::manual(MS).start();
        let (door, log) = (s.door(), Log::new());
        s.timer()
            .delay(delay)
            .run(move |expiry| {
                assert_eq!(door.cancel(expiry.timer), SW_RUNNING, "C6");
                let second = door.start(delay, log);
                let third = move |_: &sw_expiry| assert_eq!(door.cancel(second), SW_OK);
                door.timer().delay(MS).run(third).start();
            })
            .start();
        assert_eq!((s.run(delay), s.run(MS), s.run(DAY)), (1, 1, 0));
        assert_eq!((log.count(), s.pending()), (0, 0));
    }
}

/// A timer started in a callback with the callback's own delay does not come in the same pass,
/// though the callback took as long as that.
#[test]
fn node_03() {
    for delay in [0, 100 * MS] {
        let s = Setup::manual(MS).start();
        let (door, log) = (s.door(), Log::new());
        s.timer()
            .delay(delay)
            .run(move |_| {
                door.start(delay, log);
                door.advance(delay);
            })
            .start();
        assert_eq!((s.run(delay), log.count()), (1, 0));
        assert_eq!((s.poll(), log.count()), (1, 1));
    }
}

/// A timer that arms itself again without delay: one callback a poll, not a poll without end.
#[test]
fn uv_05() {
    let s = Setup::manual(MS).start();
    let door = s.door();
    let again = move |expiry: &sw_expiry| assert_eq!(door.reset(expiry.timer, 0), SW_OK);
    let timer = s.timer().run(again).start();
    for _ in 0..10 {
        assert_eq!((s.poll(), s.pending()), (1, 1));
    }
    assert_eq!(s.cancel(timer), SW_OK);
    assert_eq!(s.poll(), 0);
}

/// A hundred timers without delay, each started by the one before: one a turn, handles all
/// different, and it ends.
#[test]
fn folly_25() {
    let s = Setup::manual(MS).start();
    let seen = Arc::new(Mutex::new(Vec::new()));
    fn link(door: Door, seen: Arc<Mutex<Vec<sw_timer>>>) {
        let next = move |expiry: &sw_expiry| {
            seen.lock().unwrap().push(expiry.timer);
            if seen.lock().unwrap().len() < 100 {
                link(door, seen.clone());
            }
        };
        door.timer().run(next).start();
    }
    link(s.door(), seen.clone());
    assert_eq!((s.poll(), s.poll()), (1, 1));
    drive(s.door());
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (100, 100));
}

/// Two due timers and a turn that is to end after the first: the second is still there, and can
/// be cancelled.
#[test]
fn evt_11() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timers = [s.start(0, log), s.start(0, log)];
    assert_eq!((s.poll_budget(1), s.pending()), (1, 1));
    let left = timers.into_iter().find(|&timer| timer != log.last().timer).unwrap();
    assert_eq!(s.remaining(left), Ok(0));
    assert_eq!((s.cancel(left), s.poll(), log.count()), (SW_OK, 0, 1));
}

/// A poll from inside a callback is refused; the outer one goes on as if nothing had been.
#[test]
fn evt_16() {
    let s = Setup::manual(MS).start();
    let (door, log) = (s.door(), Log::new());
    s.timer().run(move |_| assert_eq!(door.try_poll(0, 0), Err(SW_BUSY))).start();
    s.start(0, log);
    assert_eq!((s.poll(), log.count()), (2, 1));
    s.start(0, log);
    assert_eq!((s.poll(), log.count()), (1, 2));
}

/// A context on the heap, freed by its drop.
struct Owned {
    door: Door,
    runs: u32,
    log: Log,
}

unsafe extern "C-unwind" fn owned_callback(ctx: *mut c_void, expiry: *const sw_expiry) {
    // SAFETY: the context is a boxed `Owned` until its drop has run; the expiry is readable.
    let (owned, expiry) = unsafe { (&mut *ctx.cast::<Owned>(), &*expiry) };
    // SAFETY: a log's own callback with a log's context.
    unsafe { Log::callback(owned.log.ctx(), expiry) };
    owned.runs += 1;
    if owned.runs < 20 {
        assert_eq!(owned.door.reset(expiry.timer, MS), SW_OK);
    } else {
        assert_eq!(owned.door.cancel(expiry.timer), SW_RUNNING);
        assert_ne!(owned.door.reset(expiry.timer, MS), SW_OK, "C5: not any more");
    }
}

unsafe extern "C-unwind" fn owned_drop(ctx: *mut c_void) {
    // SAFETY: the only drop of this box, whose fields need none; nobody looks at it afterwards.
    unsafe {
        ctx.cast::<u8>().write_bytes(0xDD, size_of::<Owned>());
        drop(Box::from_raw(ctx.cast::<std::mem::MaybeUninit<Owned>>()));
    }
}

/// A one-shot that arms itself nineteen times, then stops itself; its drop scribbles over its
/// context and frees it.
#[test]
fn dpdk_04() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let ctx = Box::into_raw(Box::new(Owned { door: s.door(), runs: 0, log }));
    let edit = |spec: &mut sw_timer_spec| {
        spec.callback = Some(owned_callback);
        spec.drop = Some(owned_drop);
        spec.ctx = ctx.cast();
    };
    s.timer().delay(MS).with(edit).start();
    for _ in 0..20 {
        assert_eq!(s.run(MS), 1);
    }
    assert_eq!((s.run(DAY), log.count(), s.pending()), (0, 20, 0));
}

/// Each callback starts the next timer on the next shard: ten firings, each on another thread
/// than the one before.
#[test]
fn dpdk_05() {
    let s = Setup::threaded(4).start();
    let hops = Arc::new(Mutex::new(Vec::<(u32, ThreadId)>::new()));
    fn hop(door: Door, shard: u32, hops: Arc<Mutex<Vec<(u32, ThreadId)>>>) {
        let next = move |expiry: &sw_expiry| {
            let here = (sw_timer_shard(expiry.timer), std::thread::current().id());
            hops.lock().unwrap().push(here);
            if hops.lock().unwrap().len() < 10 {
                hop(door, (shard + 1) % 4, hops.clone());
            }
        };
        door.timer().delay(MS).shard(shard).run(next).start();
    }
    hop(s.door(), 0, hops.clone());
    eventually("ten hops", || hops.lock().unwrap().len() == 10);
    let hops = hops.lock().unwrap();
    for (nth, hop) in hops.iter().enumerate() {
        assert_eq!(hop.0, nth as u32 % 4);
        assert_eq!(hop.1, hops[nth % 4].1, "a shard's callbacks run on its thread");
    }
    assert_eq!(hops.iter().map(|hop| hop.1).collect::<std::collections::HashSet<_>>().len(), 4);
}

/// The 25th callback of a periodic timer stops another shard's and waits for it, then starts a
/// third there: the other is over for good, the third comes once.
#[test]
fn dpdk_06() {
    let s = Setup::threaded(2).start();
    let (door, other, third) = (s.door(), Log::new(), Log::new());
    let stopped = s.timer().delay(2 * MS).period(2 * MS).shard(1).log(other).start();
    let (turns, at_stop) = (AtomicU64::new(0), Arc::new(AtomicU64::new(u64::MAX)));
    let seen = at_stop.clone();
    let main = move |expiry: &sw_expiry| {
        if turns.fetch_add(1, Ordering::SeqCst) == 24 {
            assert!([SW_OK, SW_RUNNING].contains(&door.cancel_wait(stopped)));
            seen.store(other.count(), Ordering::SeqCst);
            door.timer().delay(MS).shard(1).log(third).start();
            assert_eq!(door.cancel(expiry.timer), SW_OK);
        }
    };
    s.timer().delay(2 * MS).period(2 * MS).shard(0).run(main).start();
    eventually("the third fires", || third.dropped() == 1);
    sleep_ms(50);
    assert_eq!(other.count(), at_stop.load(Ordering::SeqCst));
    assert_eq!((third.count(), other.dropped()), (1, 1));
}

/// Each callback starts its own successor, then takes long: all run, one after the other.
#[test]
fn go_02() {
    fn link(door: Door, left: u64, hold: u64, done: Arc<Gate>) {
        let next = move |_: &sw_expiry| {
            match left {
                1 => done.open(),
                _ => link(door, left - 1, hold, done.clone()),
            }
            sleep_ms(hold);
        };
        door.timer().run(next).start();
    }
    let s = Setup::threaded(1).start();
    for (links, hold) in [(10, 30), (1000, 0)] {
        let (begin, done) = (mono(), Arc::new(Gate::new()));
        link(s.door(), links, hold, done.clone());
        done.wait();
        assert!(mono() - begin >= (links - 1) * hold * MS, "F2: one at a time");
    }
}

/// A timer that starts its successor a hundred milliseconds on: stop hands the last one back.
#[test]
fn netty_05() {
    let s = Setup::manual(100 * MS).start();
    let count = Arc::new(AtomicU64::new(0));
    fn link(door: Door, count: Arc<AtomicU64>) {
        let next = move |_: &sw_expiry| {
            count.fetch_add(1, Ordering::SeqCst);
            link(door, count.clone());
        };
        door.timer().delay(100 * MS).run(next).start();
    }
    link(s.door(), count.clone());
    for _ in 0..3 {
        s.run(100 * MS);
    }
    assert_eq!(count.load(Ordering::SeqCst), 3);
    let left = s.stop_into().unwrap();
    assert_eq!(left.iter().map(|left| left.deadline).collect::<Vec<_>>(), [400 * MS]);
}

/// On a wheel that lags a callback arms itself again for a whole turn of the wheel, into the very
/// bucket that is being emptied: not in this pass.
#[test]
fn tgst_01() {
    for turn in [8, 32, 64, 256, 4096, 262_144] {
        for lag in [0, 1, 5, 63] {
            let s = Setup::manual(MS).start();
            let door = s.door();
            let again = move |expiry: &sw_expiry| {
                assert_eq!(door.reset(expiry.timer, turn * MS), SW_OK);
            };
            s.timer().delay(10 * MS).run(again).start();
            assert_eq!(s.run((10 + lag) * MS), 1, "turn {turn}, lag {lag}");
            for _ in 0..3 {
                assert_eq!(s.run(turn * MS - 1), 0, "turn {turn}, lag {lag}");
                assert_eq!(s.run(1), 1, "turn {turn}, lag {lag}");
            }
        }
    }
}

/// A callback at 10 stops the timer of 20, with the clock at 15: no dead-lock, 20 never fires.
#[test]
fn clk_05() {
    let s = Setup::manual(MS).start();
    let (door, log) = (s.door(), Log::new());
    let second = s.start(20 * MS, log);
    s.timer().delay(10 * MS).run(move |_| assert_eq!(door.cancel(second), SW_OK)).start();
    assert_eq!((s.run(15 * MS), s.run(15 * MS), log.count()), (1, 0, 0));
}

/// A callback declines its expiry by arming itself again: still live, not counted as ended, called
/// again in its time; what else was due in that poll is delivered.
#[test]
fn caff_19() {
    let s = Setup::manual(MS).start();
    let (door, log, runs) = (s.door(), Log::new(), Arc::new(AtomicU64::new(0)));
    let count = runs.clone();
    let decline = move |expiry: &sw_expiry| {
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            assert_eq!(door.reset(expiry.timer, 50 * MS), SW_OK);
        }
    };
    let timer = s.timer().delay(10 * MS).run(decline).start();
    s.start(10 * MS, log);
    assert_eq!((s.run(10 * MS), log.count()), (2, 1));
    let stats = s.stats();
    assert_eq!((stats.pending, stats.ended_by_fire, stats.fired), (1, 1, 2));
    assert_eq!(s.remaining(timer), Ok(50 * MS));
    assert_eq!((s.run(50 * MS - 1), s.run(1), runs.load(Ordering::SeqCst)), (0, 1, 2));
    assert_eq!((s.pending(), s.stats().ended_by_fire), (0, 2));
}
