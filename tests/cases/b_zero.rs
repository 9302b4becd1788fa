//! B. Zero, immediate, past and negative deadlines.

use crate::kit::*;
use crate::support::*;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Three timers due right now all come with the next poll, and then nothing.
#[test]
fn tokio_09() {
    let s = Setup::manual(MS).start();
    s.advance(10 * MS);
    let log = Log::new();
    let mut started: Vec<_> = (0..3).map(|_| s.start_at(s.now(), log)).collect();
    assert_eq!(s.poll(), 3);
    let mut fired = log.timers();
    started.sort_unstable();
    fired.sort_unstable();
    assert_eq!(started, fired);
    assert_eq!((s.poll(), s.next(), s.pending()), (0, SW_NEVER, 0));
}

/// A deadline in the past is due with the next poll; the clock need not move.
#[test]
fn tokio_12() {
    let s = Setup::manual(MS).start();
    s.run(10 * MS);
    let log = Log::new();
    s.start_at(0, log);
    assert_eq!(log.count(), 0, "not inside the call that starts it");
    assert!(s.next() <= s.now());
    assert_eq!(s.poll(), 1);
    assert_eq!((log.last().deadline, log.last().now), (0, 10 * MS));
}

/// A thousand timers without delay one after the other, each started when the one before is
/// over: from outside, then each from the callback of the one before.
#[test]
fn tokio_43() {
    let s = Setup::threaded(1).start();
    for _ in 0..1000 {
        assert!(measure(s.door(), 0) < 10 * SEC);
    }
    fn link(door: Door, left: u64, done: Arc<Gate>) {
        let again = move |_: &sw_expiry| match left {
            0 => done.open(),
            _ => link(door, left - 1, done.clone()),
        };
        door.timer().run(again).start();
    }
    let done = Arc::new(Gate::new());
    link(s.door(), 1000, done.clone());
    done.wait();
}

/// A deadline three nanoseconds ago is delivered once, by an instant after it.
#[test]
fn agrona_18() {
    let s = Setup::manual(MS).start();
    s.run(100 * MS);
    let log = Log::new();
    s.start_at(s.now() - 3, log);
    assert_eq!((s.poll(), s.poll(), s.run(200 * MS)), (1, 0, 0));
    assert!(log.last().now > log.last().deadline);
    assert_eq!(log.last().deadline, 100 * MS - 3);
}

/// On a running service a deadline of 0 is served at once.
#[test]
fn brpc_01() {
    let s = Setup::threaded(1).start();
    let log = Log::new();
    let begin = mono();
    s.start_at(0, log);
    eventually("it fires", || log.count() == 1);
    assert!(mono() - begin < SEC);
}

/// Five deadlines one to five units ago all come, though no time passes.
#[test]
fn kafka_01() {
    for unit in [1, MS, 64 * MS] {
        let s = Setup::manual(MS).start();
        s.run(1000 * MS);
        let log = Log::new();
        let mut started: Vec<_> = (1..=5).map(|n| s.start_at(s.now() - n * unit, log)).collect();
        assert_eq!(s.run(0), 5);
        let mut fired = log.timers();
        started.sort_unstable();
        fired.sort_unstable();
        assert_eq!(started, fired);
    }
}

/// No delay on an empty wheel: ours accepts it and delivers it with the next poll.
#[test]
fn hwt_01() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    s.start(0, log);
    assert_eq!((s.pending(), log.count()), (1, 0));
    assert_eq!((s.poll(), log.count()), (1, 1));
}

/// No delay is not an error: ours answers OK and writes a handle before the callback comes.
#[test]
fn dpdk_10a() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timer = s.try_start(0, log).expect("a delay of 0 is accepted");
    assert_ne!(timer, SW_TIMER_NONE);
    assert_eq!(s.poll(), 1);
    assert_eq!(log.timers(), [timer]);
}

/// Cancel right after a start without delay: on a driven shard it always wins.
#[test]
fn erl_19() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timer = s.start(0, log);
    assert_eq!(s.cancel(timer), SW_OK);
    assert_eq!((s.run(MS), log.count()), (0, 0));
}

/// The same against a running shard: cancelled and never run, or run once and told so.
#[test]
fn erl_19_threads() {
    let cells = cells(5000);
    let s = Setup::threaded(1).start();
    let mut answers = Vec::new();
    for cell in &cells {
        let timer = cell.start(s.door(), 0);
        answers.push(s.cancel(timer));
    }
    eventually("quiet", || s.pending() == 0);
    assert_eq!(s.stop(), SW_OK);
    for (cell, answer) in cells.iter().zip(answers) {
        match answer {
            SW_OK => assert_eq!(cell.ran(), 0),
            SW_RUNNING | SW_NOT_FOUND => assert_eq!(cell.ran(), 1),
            other => panic!("cancel answered {other:?}"),
        }
    }
}

/// Timers without delay started in callbacks, link by link, do not wait for a far timer.
#[test]
fn erl_18() {
    let s = Setup::manual(MS).start();
    s.start(7500 * MS, Log::new());
    let door = s.door();
    let links = Arc::new(AtomicU64::new(0));
    fn link(door: Door, links: Arc<AtomicU64>) {
        if links.fetch_add(1, Ordering::SeqCst) < 5 {
            let links = links.clone();
            door.timer().run(move |_| link(door, links.clone())).start();
        }
    }
    let count = links.clone();
    s.timer().delay(500 * MS).run(move |_| link(door, count.clone())).start();
    assert_eq!(s.run_to(500 * MS), 1);
    for _ in 0..5 {
        assert!(s.next() <= s.now());
        assert_eq!(s.poll(), 1, "F4: one link a turn, without the clock moving");
    }
    assert_eq!((links.load(Ordering::SeqCst), s.poll()), (6, 0));
}

/// The same with real time: the chain is over soon after its first timer.
#[test]
fn erl_18_real() {
    let s = Setup::threaded(1).start();
    s.start(7500 * MS, Log::new());
    let door = s.door();
    let done = Arc::new(Gate::new());
    fn link(door: Door, left: u32, done: Arc<Gate>) {
        let next = move |_: &sw_expiry| match left {
            0 => done.open(),
            _ => link(door, left - 1, done.clone()),
        };
        door.timer().run(next).start();
    }
    let open = done.clone();
    let begin = mono();
    s.timer().delay(200 * MS).run(move |_| link(door, 20, open.clone())).start();
    done.wait();
    let took = mono() - begin;
    assert!((200 * MS..1200 * MS).contains(&took), "{took}");
}

/// Who waits, and how often its timer has fired.
struct Waiter {
    count: AtomicU64,
    thread: std::thread::Thread,
}

impl Waiter {
    unsafe extern "C-unwind" fn wake(ctx: *mut c_void, _expiry: *const sw_expiry) {
        // SAFETY: the context is the waiter of `zero_timers`, which outlives its service.
        let waiter = unsafe { &*ctx.cast_const().cast::<Waiter>() };
        waiter.count.fetch_add(1, Ordering::SeqCst);
        waiter.thread.unpark();
    }

    /// Two seconds without the firing after `seen` are a lost wake-up.
    fn wait(&self, seen: u64) {
        let begin = std::time::Instant::now();
        while self.count.load(Ordering::SeqCst) == seen {
            std::thread::park_timeout(Duration::from_millis(100));
            assert!(begin.elapsed() < Duration::from_secs(2), "a wake-up was lost");
        }
    }

    fn spec(&self, door: Door, delay_ns: u64) -> sw_timer_spec {
        let ctx = std::ptr::from_ref(self).cast_mut().cast();
        let edit = |spec: &mut sw_timer_spec| {
            spec.callback = Some(Waiter::wake);
            spec.ctx = ctx;
        };
        door.timer().delay(delay_ns).with(edit).spec()
    }
}

/// Start without delay and wait for it, over and over: with a new timer each time, with one
/// periodic timer pulled to now each time, and with a one-shot armed far out first.
fn zero_timers(rounds: u64) {
    let waiter = Waiter { count: AtomicU64::new(0), thread: std::thread::current() };
    let s = Setup::threaded(1).start();
    let at_once = waiter.spec(s.door(), 0);
    for seen in 0..rounds {
        s.start_spec(&at_once).unwrap();
        waiter.wait(seen);
    }
    let mut periodic = waiter.spec(s.door(), HOUR);
    periodic.period_ns = HOUR;
    let periodic = s.start_spec(&periodic).unwrap();
    for seen in rounds..2 * rounds {
        assert_eq!(s.reset(periodic, 0), SW_OK);
        waiter.wait(seen);
    }
    // Its last callback may still be on the way out.
    assert_ne!(s.cancel_wait(periodic), SW_NOT_FOUND);
    let far = waiter.spec(s.door(), HOUR);
    for seen in 2 * rounds..3 * rounds {
        let timer = s.start_spec(&far).unwrap();
        assert_eq!(s.reset(timer, 0), SW_OK);
        waiter.wait(seen);
    }
}

/// No wake-up is lost between a start that is earlier than all and a shard that goes to sleep.
#[test]
fn go_15() {
    zero_timers(10_000);
}

/// The same at the size that found the bug in the peer.
#[test]
#[ignore = "long: run with --ignored in release"]
fn go_15_full() {
    zero_timers(1_000_000);
}

/// A spec whose delay was never set and one whose delay is 0 both fire once; neither is "never".
#[test]
fn evt_12() {
    let s = Setup::manual(MS).start();
    let (unset, zero) = (Log::new(), Log::new());
    s.timer().log(unset).start();
    s.timer().delay(0).log(zero).start();
    assert_eq!(s.poll(), 2);
    assert_eq!(s.run(DAY), 0);
    assert_eq!((unset.count(), zero.count()), (1, 1));
    assert_eq!((unset.dropped(), zero.dropped()), (1, 1));
}
