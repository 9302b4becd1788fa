//! F3: everything is allowed inside a callback, and no lock is held while the host's code runs.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Every call that is allowed, on each shard.
fn everything(door: Door) {
    let log = Log::new();
    for shard in 0..door.shard_count() {
        let one = || door.timer().shard(shard).delay(HOUR).log(log);
        let timer = one().start();
        assert_eq!(door.reset(timer, 2 * HOUR), SW_OK);
        assert!(door.remaining(timer).unwrap() > HOUR);
        assert_eq!(door.reset_at(timer, door.now() + HOUR), SW_OK);
        assert_eq!(door.cancel(timer), SW_OK);
        assert_eq!(door.cancel(timer), SW_NOT_FOUND);
        assert_eq!(door.cancel_wait(one().start()), SW_OK);
        let batch = door.start_batch(&[one().spec(), one().spec()]).unwrap();
        assert_eq!(door.cancel_batch(&batch), Ok(2));
        assert_eq!(door.stats_of(shard).size, size_of::<sw_stats>());
    }
    assert_eq!(door.cancel(door.start(HOUR, log)), SW_OK);
    assert_eq!(door.cancel(door.start_at(SW_NEVER, log)), SW_OK);
    assert_eq!(door.cancel(door.start_every(HOUR, log)), SW_OK);
    let queue = door.queue();
    assert!(queue.poll(4).is_empty());
    let timer = door.timer().delay(HOUR).log(log).queue(queue).start();
    assert_eq!(queue.free(), SW_OK);
    assert_eq!(door.cancel(timer), SW_NOT_FOUND);
    assert!(door.pending() <= 1_000);
    assert_eq!(log.count(), 0);
    assert_eq!(log.dropped(), 4 * u64::from(door.shard_count()) + 1);
}

/// What is left on a service that is being stopped: each call returns.
fn refused(door: Door) {
    let log = Log::new();
    assert_eq!(door.try_start(HOUR, log), Err(SW_STOPPED));
    assert_ne!(door.cancel(1 << 20), SW_OK);
    assert_ne!(door.reset(1 << 20, HOUR), SW_OK);
    assert!(door.stats().started > 0);
    assert!(door.shard_count() > 0);
    door.now();
}

/// Runs it on another thread while this one waits: a lock held here would be seen.
fn from_another_thread(door: Door, calls: fn(Door)) {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        calls(door);
        let _ = done.send(());
    });
    let answer = wait.recv_timeout(Duration::from_secs(20));
    assert!(answer.is_ok(), "another thread's calls failed, or waited for this one: {answer:?}");
}

/// Makes the calls in a callback, here and on another thread, and answers when that is over.
fn calls_inside_a_callback(svc: &Svc, poll: bool) {
    let door = svc.door();
    let ran = Arc::new(AtomicU64::new(0));
    for shard in 0..svc.shard_count() {
        let inside = ran.clone();
        let call = move |_: &sw_expiry| {
            everything(door);
            from_another_thread(door, everything);
            inside.fetch_add(1, Ordering::SeqCst);
        };
        svc.timer().shard(shard).run(call).start();
        if poll {
            assert_eq!(svc.poll_shard(shard), 1);
        }
    }
    eventually("all ran", || ran.load(Ordering::SeqCst) == u64::from(svc.shard_count()));
}

#[test]
fn f3_every_call_is_allowed_and_no_lock_is_held() {
    calls_inside_a_callback(&Setup::manual(MS).shards(2).start(), true);
    calls_inside_a_callback(&Setup::driven().shards(2).start(), true);
    calls_inside_a_callback(&Setup::threaded(2).start(), false);
}

#[test]
fn f3_on_an_attached_shard_too() {
    let svc = Setup::manual(MS).shards(2).start();
    assert_eq!(svc.attach(0, SW_ATTACH_SHARED), SW_OK);
    assert_eq!(svc.attach(1, SW_ATTACH_SHARED), SW_OK);
    calls_inside_a_callback(&svc, true);
    // Exclusive: strangers are refused, the owner is not.
    assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
    assert_eq!(svc.attach(1, SW_ATTACH_EXCLUSIVE), SW_OK);
    let door = svc.door();
    svc.timer().shard(0).run(move |_| everything(door)).start();
    assert_eq!(svc.poll_shard(0), 1);
}

#[test]
fn f3_what_would_wait_for_this_thread_is_refused() {
    let svc = Setup::manual(MS).shards(2).start();
    let door = svc.door();
    let call = move |expiry: &sw_expiry| {
        assert_eq!(door.stop(), SW_WOULD_DEADLOCK);
        // SAFETY: a live service; the answer says that it stays one.
        assert_eq!(unsafe { sw_service_free(door.raw()) }, SW_WOULD_DEADLOCK);
        assert_eq!(door.cancel_wait(expiry.timer), SW_WOULD_DEADLOCK);
        assert_eq!(door.try_poll(0, 0), Err(SW_BUSY));
        assert_eq!(door.try_poll(1, 0), Err(SW_BUSY));
    };
    svc.timer().shard(0).run(call).start();
    assert_eq!(svc.poll(), 1);
    // And nothing has changed: it goes on.
    let log = Log::new();
    svc.timer().shard(0).delay(MS).log(log).start();
    assert_eq!(svc.run(MS), 1);
}

#[test]
fn f3_also_on_the_shards_own_thread() {
    let svc = Setup::threaded(1).start();
    let door = svc.door();
    let ran = Arc::new(AtomicU64::new(0));
    let inside = ran.clone();
    let call = move |expiry: &sw_expiry| {
        assert_eq!(door.stop(), SW_WOULD_DEADLOCK);
        // SAFETY: a live service; the answer says that it stays one.
        assert_eq!(unsafe { sw_service_free(door.raw()) }, SW_WOULD_DEADLOCK);
        assert_eq!(door.cancel_wait(expiry.timer), SW_WOULD_DEADLOCK);
        inside.fetch_add(1, Ordering::SeqCst);
    };
    svc.timer().run(call).start();
    eventually("it ran", || ran.load(Ordering::SeqCst) == 1);
}

#[test]
fn f3_no_lock_is_held_while_a_drop_runs() {
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let driven = setup.is_manual();
        let svc = setup.start();
        let door = svc.door();
        let ran = Arc::new(AtomicU64::new(0));
        let ended = |ran: &Arc<AtomicU64>| {
            let ran = ran.clone();
            move || {
                everything(door);
                from_another_thread(door, everything);
                ran.fetch_add(1, Ordering::SeqCst);
            }
        };
        // After a firing.
        svc.timer().run(|_| {}).ended(ended(&ran)).start();
        if driven {
            svc.poll();
        }
        eventually("dropped after firing", || ran.load(Ordering::SeqCst) == 1);
        // At a cancel, in each of its forms.
        let far = || svc.timer().delay(HOUR).run(|_| {}).ended(ended(&ran)).start();
        assert_eq!(svc.cancel(far()), SW_OK);
        assert_eq!(svc.cancel_wait(far()), SW_OK);
        assert_eq!(svc.cancel_batch(&[far(), far()]), Ok(2));
        assert_eq!(ran.load(Ordering::SeqCst), 5);
        // At a refusal.
        let refused = svc.timer().shard(99).run(|_| {}).ended(ended(&ran)).try_start();
        assert_eq!(refused, Err(SW_INVALID));
        assert_eq!(ran.load(Ordering::SeqCst), 6);
        // As its queue is freed.
        let queue = svc.queue();
        svc.timer().delay(HOUR).run(|_| {}).ended(ended(&ran)).queue(queue).start();
        assert_eq!(queue.free(), SW_OK);
        assert_eq!(ran.load(Ordering::SeqCst), 7);
    }
}

#[test]
fn f3_no_lock_is_held_while_the_service_stops() {
    use std::ffi::c_void;
    unsafe extern "C-unwind" fn unfired(arg: *mut c_void, _: sw_timer, _: *mut c_void, _: u64) {
        // SAFETY: `arg` is the pair below.
        let (door, told) = unsafe { &*arg.cast::<(Door, AtomicU64)>() };
        refused(*door);
        from_another_thread(*door, refused);
        // A stop inside stop must return, whatever it says.
        let inner = door.stop();
        assert!(inner == SW_OK || inner == SW_WOULD_DEADLOCK, "{inner:?}");
        told.fetch_add(1, Ordering::SeqCst);
    }
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let svc = setup.start();
        let door = svc.door();
        let ran = Arc::new(AtomicU64::new(0));
        let inside = ran.clone();
        let ended = move || {
            refused(door);
            from_another_thread(door, refused);
            inside.fetch_add(1, Ordering::SeqCst);
        };
        svc.timer().delay(HOUR).run(|_| {}).ended(ended).start();
        let told = (door, AtomicU64::new(0));
        let arg = std::ptr::from_ref(&told).cast_mut().cast();
        let mut returned = 0;
        // SAFETY: a live service, `arg` lives on.
        let status = unsafe { sw_service_stop(svc.raw(), Some(unfired), arg, &mut returned) };
        assert_eq!((status, returned), (SW_OK, 1));
        assert_eq!(told.1.load(Ordering::SeqCst), 1);
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn f3_no_lock_is_held_while_a_hook_runs() {
    static DOOR: std::sync::OnceLock<Door> = std::sync::OnceLock::new();
    let told = Arc::new(AtomicU64::new(0));
    let (slow, stop) = (told.clone(), told.clone());
    let svc = Setup::threaded(1)
        .on_slow(MS, move |_, _, _, _| {
            let door = *DOOR.get().unwrap();
            everything(door);
            from_another_thread(door, everything);
            assert_eq!(door.stop(), SW_WOULD_DEADLOCK);
            slow.fetch_add(1, Ordering::SeqCst);
        })
        .on_thread_stop(move |_| {
            let door = *DOOR.get().unwrap();
            refused(door);
            from_another_thread(door, refused);
            assert_eq!(door.stop(), SW_WOULD_DEADLOCK);
            stop.fetch_add(1, Ordering::SeqCst);
        })
        .start();
    assert!(DOOR.set(svc.door()).is_ok());
    svc.timer().run(|_| std::thread::sleep(Duration::from_millis(20))).start();
    eventually("the slow callback is told", || told.load(Ordering::SeqCst) == 1);
    assert_eq!(svc.stop(), SW_OK);
    assert_eq!(told.load(Ordering::SeqCst), 2);
}

/// Armed at or past its deadline it is due at the next turn, though it was due in this one.
#[test]
fn t3_a_reset_to_now_in_a_callback_waits_for_the_next_turn() {
    for attach in [None, Some(SW_ATTACH_SHARED), Some(SW_ATTACH_EXCLUSIVE)] {
        for past in [true, false] {
            for tick_of_other in [1, 2] {
                let svc = Setup::manual(MS).start();
                let log = Log::new();
                if let Some(how) = attach {
                    assert_eq!(svc.attach(0, how), SW_OK);
                }
                let door = svc.door();
                let other = Arc::new(AtomicU64::new(0));
                let resets = {
                    let other = other.clone();
                    move |_: &sw_expiry| {
                        let other = other.load(Ordering::Relaxed);
                        let status =
                            if past { door.reset_at(other, MS) } else { door.reset(other, 0) };
                        assert_eq!(status, SW_OK);
                    }
                };
                svc.timer().delay(MS).run(resets).start();
                other.store(svc.start(tick_of_other * MS, log), Ordering::Relaxed);
                svc.start(2 * MS, log);
                assert_eq!(svc.run(2 * MS), 2, "{attach:?} {past} {tick_of_other}");
                assert!(svc.readable());
                assert_eq!(svc.next(), 2 * MS);
                assert_eq!(svc.poll(), 1);
                assert_eq!(log.last().timer, other.load(Ordering::Relaxed));
                assert_eq!(log.last().deadline, if past { MS } else { 2 * MS });
            }
        }
    }
}

/// Also where that instant is a point of its old grid.
#[test]
fn t3_a_burst_that_resets_itself_to_now_waits_for_the_next_turn() {
    for period in 1..=4 {
        let svc = Setup::manual(MS).start();
        let door = svc.door();
        let log = Arc::new(std::sync::Mutex::new(Vec::new()));
        let calls = {
            let log = log.clone();
            move |expiry: &sw_expiry| {
                let mut log = log.lock().unwrap();
                log.push(expiry.deadline_ns / MS);
                if log.len() == 2 {
                    assert_eq!(door.reset(expiry.timer, 0), SW_OK);
                }
            }
        };
        let burst = SW_TIMER_BURST;
        svc.timer().delay(period * MS).period(period * MS).flags(burst).run(calls).start();
        assert_eq!(svc.run(3 * period * MS), 2, "every {period} ticks");
        assert_eq!(svc.poll(), 1);
        assert_eq!(*log.lock().unwrap(), [1, 2, 3].map(|nth| nth * period));
    }
}
