//! C1, C2, C4, C6: what a cancel answers, that it never waits, that due is not too late.

use crate::Random;
use crate::support::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A timer whose callback stands still until it is let go, and that callback has begun.
pub struct Standing {
    pub timer: sw_timer,
    pub go: Arc<Gate>,
    pub ended: Arc<AtomicBool>,
}

impl Standing {
    /// On a shard with a thread of its own (or one that another thread polls).
    pub fn begin(timer: Timer) -> Standing {
        let (inside, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
        let ended = Arc::new(AtomicBool::new(false));
        let (entered, leave, over) = (inside.clone(), go.clone(), ended.clone());
        let call = move |_: &sw_expiry| {
            entered.open();
            leave.wait();
            over.store(true, Ordering::SeqCst);
        };
        let timer = timer.run(call).start();
        inside.wait();
        Standing { timer, go, ended }
    }

    pub fn let_go(&self) {
        self.go.open();
        eventually("the callback ends", || self.ended.load(Ordering::SeqCst));
    }
}

impl Drop for Standing {
    /// Lets a failed test end.
    fn drop(&mut self) {
        self.go.open();
    }
}

#[test]
fn c1_pending_then_gone() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    for delay in [1, MS, HOUR, SW_NEVER] {
        for polled in [false, true] {
            let timer = svc.start(delay, log);
            if polled {
                svc.poll();
            }
            assert_eq!(svc.cancel(timer), SW_OK);
            assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
            assert_eq!(svc.remaining(timer), Err(SW_NOT_FOUND));
            assert_eq!(svc.reset(timer, MS), SW_NOT_FOUND);
            assert_eq!(svc.reset_at(timer, MS), SW_NOT_FOUND);
            assert_eq!(svc.cancel_wait(timer), SW_NOT_FOUND);
        }
    }
    svc.run(SW_NEVER);
    assert_eq!(log.count(), 0);
    assert_eq!(svc.stats().cancelled, 8);
}

#[test]
fn c1_after_it_has_fired() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timer = svc.start(MS, log);
    svc.run(MS);
    assert_eq!(log.count(), 1);
    assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
    assert_eq!(svc.cancel_wait(timer), SW_NOT_FOUND);
    assert_eq!(svc.reset(timer, MS), SW_NOT_FOUND);
    assert_eq!(svc.cancel_batch(&[timer]), Ok(0));
    assert_eq!(svc.stats().cancelled, 0);
}

#[test]
fn c1_while_it_runs() {
    let svc = Setup::threaded(1).start();
    let one = Standing::begin(svc.timer());
    assert_eq!(svc.cancel(one.timer), SW_RUNNING);
    assert_eq!(svc.cancel(one.timer), SW_RUNNING, "still");
    one.let_go();
    eventually("over", || svc.cancel(one.timer) == SW_NOT_FOUND);
    // A periodic one does not run again.
    let periodic = Standing::begin(svc.timer().period(MS));
    assert_eq!(svc.cancel(periodic.timer), SW_RUNNING);
    periodic.let_go();
    eventually("over", || svc.cancel(periodic.timer) == SW_NOT_FOUND);
    let fired = svc.stats().fired;
    stays(Duration::from_millis(50), "no further run", || svc.stats().fired == fired);
    assert_eq!(fired, 2);
}

#[test]
fn c1_a_batch_counts_those_it_prevented() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let fired = svc.start(MS, log);
    svc.run(MS);
    let timers: Vec<_> = (0..1_000).map(|i| svc.start(i % 5 * MS, log)).collect();
    let mut list = timers.clone();
    list.extend([fired, SW_TIMER_NONE, timers[0], timers[1]]);
    assert_eq!(svc.cancel(timers[7]), SW_OK);
    assert_eq!(svc.cancel_batch(&list), Ok(999));
    assert_eq!(svc.run(SEC), 0);
    assert_eq!(svc.pending(), 0);
    // `cancelled` may be NULL.
    let timer = svc.start(MS, log);
    // SAFETY: one handle, no count wanted.
    let status = unsafe { sw_timer_cancel_batch(svc.raw(), &timer, 1, std::ptr::null_mut()) };
    assert_eq!(status, SW_OK);
    assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
}

#[test]
fn c1_one_winner_among_cancel_reset_and_fire() {
    // Each timer is fought over by two cancelling threads and its own deadline.
    let svc = Setup::threaded(1).tick(US).start();
    let log = Log::new();
    let mut random = Random(99);
    let mut won = 0;
    let rounds = 20;
    let mut fates = HashMap::new();
    for _ in 0..rounds {
        let timers: Vec<_> =
            (0..500).map(|_| svc.timer().delay(random.below(2 * MS)).log(log).start()).collect();
        let answers: Vec<_> = std::thread::scope(|scope| {
            let fight = || timers.iter().map(|&timer| (timer, svc.cancel(timer))).collect();
            let threads: Vec<_> = (0..2)
                .map(|_| scope.spawn(fight))
                .collect::<Vec<std::thread::ScopedJoinHandle<Vec<_>>>>();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        for (timer, status) in answers {
            if status == SW_OK {
                won += 1;
                assert!(fates.insert(timer, "cancelled").is_none(), "two cancels won");
            }
        }
    }
    eventually("all dropped", || log.dropped() == rounds * 500);
    for timer in log.timers() {
        assert!(fates.insert(timer, "fired").is_none(), "cancelled (or fired) and fired");
    }
    assert_eq!(won + log.count(), rounds * 500);
}

#[test]
fn c1_a_reset_that_answers_ok_moves_the_deadline() {
    // Reset races with fire: OK means that it does not fire before the new deadline.
    let svc = Setup::threaded(1).tick(US).start();
    let log = Log::new();
    let mut moved = HashMap::new();
    let mut random = Random(1234);
    for _ in 0..5_000 {
        let timer = svc.timer().delay(random.below(30 * US)).log(log).start();
        let begin = Instant::now();
        let wait = Duration::from_nanos(random.below(60 * US));
        while begin.elapsed() < wait {}
        let to = svc.now() + 20 * MS;
        match svc.reset_at(timer, to) {
            SW_OK => assert!(moved.insert(timer, to).is_none()),
            status => assert!(status == SW_NOT_FOUND || status == SW_RUNNING),
        }
    }
    eventually("all fire", || log.count() == 5_000);
    for fire in log.fires() {
        if let Some(&to) = moved.get(&fire.timer) {
            assert_eq!(fire.deadline, to, "fired at its old deadline after a reset that won");
            assert!(fire.now >= to);
        }
    }
}

#[test]
fn c2_a_cancel_never_waits_for_the_wheel() {
    // The shard is stuck in a callback: cancels and resets from outside return at once, and their
    // answers hold.
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    let stuck = Standing::begin(svc.timer());
    let timers: Vec<_> = (0..50_000).map(|i| svc.start(20 * MS + i, log)).collect();
    let begin = Instant::now();
    for pair in timers.chunks(2) {
        assert_eq!(svc.cancel(pair[0]), SW_OK);
        assert_eq!(svc.reset(pair[1], HOUR), SW_OK);
    }
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert_eq!(svc.pending(), 25_000);
    std::thread::sleep(Duration::from_millis(50));
    stuck.let_go();
    stays(Duration::from_millis(50), "cancelled or moved", || log.count() == 0);
}

#[test]
fn c2_any_thread() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timers: Vec<_> = (0..4_000).map(|i| svc.start(MS + i * US, log)).collect();
    std::thread::scope(|scope| {
        for part in timers.chunks(1_000) {
            let svc = &svc;
            scope.spawn(move || {
                for &timer in part {
                    assert_eq!(svc.cancel(timer), SW_OK);
                }
            });
        }
    });
    assert_eq!(svc.run(SEC), 0);
    assert_eq!(svc.pending(), 0);
}

#[test]
fn c4_due_and_not_polled() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timers: Vec<_> = (0..100u64).map(|i| svc.start(i * MS, log)).collect();
    svc.poll();
    assert_eq!(log.count(), 1);
    svc.advance(SEC);
    for &timer in &timers[1..] {
        assert_eq!(svc.remaining(timer), Ok(0));
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    assert_eq!(svc.poll(), 0);
    assert_eq!(log.count(), 1);
}

#[test]
fn c4_collected_and_left_by_a_budget() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timers: Vec<_> = (0..100).map(|_| svc.start(MS, log)).collect();
    svc.advance(MS);
    assert_eq!(svc.poll_budget(10), 10);
    for &timer in &timers[10..60] {
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    for &timer in &timers[60..80] {
        assert_eq!(svc.reset(timer, MS), SW_OK);
    }
    assert_eq!(svc.poll(), 20);
    assert_eq!(svc.run(MS), 20);
    assert_eq!(log.count(), 50);
}

#[test]
fn c4_later_in_the_same_turn() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let log = Log::new();
    let victims: Arc<Mutex<Vec<sw_timer>>> = Arc::default();
    let list = victims.clone();
    let call = move |_: &sw_expiry| {
        let list = list.lock().unwrap();
        assert_eq!(door.cancel(list[0]), SW_OK);
        assert_eq!(door.cancel_wait(list[1]), SW_OK);
        assert_eq!(door.cancel_batch(&list[2..4]), Ok(2));
        assert_eq!(door.reset(list[4], 5 * MS), SW_OK);
    };
    svc.timer().delay(MS).run(call).start();
    for _ in 0..6 {
        victims.lock().unwrap().push(svc.start(MS, log));
    }
    assert_eq!(svc.run(MS), 2);
    assert_eq!(log.timers(), [victims.lock().unwrap()[5]]);
    assert_eq!(svc.run(5 * MS), 1);
}

#[test]
fn c4_waiting_in_a_queue() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    let event = |period| svc.timer().period(period).log(log).queue(queue).start();
    let (one, periodic, third) = (event(0), event(MS), event(0));
    assert_eq!(svc.poll(), 3);
    assert_eq!(svc.pending(), 3, "not taken: not ended");
    assert_eq!(svc.cancel(one), SW_OK);
    assert_eq!(svc.cancel_wait(periodic), SW_OK);
    let taken = queue.poll(9);
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].0.timer, third);
    assert_eq!(svc.cancel(third), SW_NOT_FOUND, "taken");
    assert_eq!(log.dropped(), 2);
}

#[test]
fn c6_a_one_shot_in_its_own_callback_is_running() {
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let driven = setup.is_manual();
        let svc = setup.start();
        let door = svc.door();
        let ran = Arc::new(AtomicU64::new(0));
        let inside = ran.clone();
        let call = move |expiry: &sw_expiry| {
            assert_eq!(door.cancel(expiry.timer), SW_RUNNING);
            assert_eq!(door.cancel_batch(&[expiry.timer]), Ok(0));
            // After a cancel that answered RUNNING it cannot be re-armed any more.
            assert_ne!(door.reset(expiry.timer, MS), SW_OK);
            assert_ne!(door.reset_at(expiry.timer, 0), SW_OK);
            inside.fetch_add(1, Ordering::SeqCst);
        };
        svc.timer().run(call).start();
        if driven {
            assert_eq!(svc.poll(), 1);
            assert_eq!(svc.run(HOUR), 0);
        }
        eventually("it ran", || svc.stats().ended_by_fire == 1);
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        assert_eq!(svc.stats().cancelled, 0);
    }
}

#[test]
fn c6_a_periodic_timer_in_its_own_callback_is_ok() {
    for flags in [0, SW_TIMER_BURST, SW_TIMER_FIXED_DELAY] {
        let svc = Setup::manual(MS).start();
        let door = svc.door();
        let ran = Arc::new(AtomicU64::new(0));
        let inside = ran.clone();
        let call = move |expiry: &sw_expiry| {
            if inside.fetch_add(1, Ordering::SeqCst) == 4 {
                assert_eq!(door.cancel(expiry.timer), SW_OK);
            }
        };
        let timer = svc.timer().period(MS).flags(flags).run(call).start();
        for _ in 0..20 {
            svc.run(MS);
        }
        assert_eq!(ran.load(Ordering::SeqCst), 5, "no further run");
        assert_eq!(svc.pending(), 0);
        assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
    }
}
