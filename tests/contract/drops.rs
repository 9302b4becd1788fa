//! F9: the drop runs exactly once, when the timer has ended.

use crate::support::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

type Threads = Arc<Mutex<Vec<ThreadId>>>;

/// A closure that notes the thread it runs on.
fn noting(threads: &Threads) -> impl FnMut() + Send + 'static {
    let threads = threads.clone();
    move || threads.lock().unwrap().push(std::thread::current().id())
}

fn me() -> ThreadId {
    std::thread::current().id()
}

#[test]
fn f9_after_the_last_callback() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let log = Log::new();
    // The harness faults a drop before or during the callback.
    svc.timer().delay(MS).log(log).start();
    assert_eq!(svc.run(MS), 1);
    assert_eq!(log.dropped(), 1);
    // Re-armed inside: not before the last run.
    let (ran, dropped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (inside, count) = (ran.clone(), dropped.clone());
    let call = move |expiry: &sw_expiry| {
        if inside.fetch_add(1, Ordering::SeqCst) < 3 {
            assert_eq!(door.reset(expiry.timer, MS), SW_OK);
        }
    };
    let ended = move || assert_eq!(count.fetch_add(1, Ordering::SeqCst), 0);
    svc.timer().delay(MS).run(call).ended(ended).start();
    for run in 1..=4 {
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        assert_eq!(svc.run(MS), 1);
        assert_eq!(ran.load(Ordering::SeqCst), run);
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    svc.run(HOUR);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[test]
fn f9_of_a_periodic_timer_once_at_its_end() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    for flags in [0, SW_TIMER_BURST, SW_TIMER_FIXED_DELAY] {
        let before = log.dropped();
        let timer = svc.timer().delay(MS).period(MS).flags(flags).log(log).start();
        for _ in 0..10 {
            svc.run(MS);
        }
        svc.run(10 * MS);
        assert_eq!(log.dropped(), before);
        assert_eq!(svc.cancel(timer), SW_OK);
        assert_eq!(log.dropped(), before + 1);
        svc.run(10 * MS);
        assert_eq!(log.dropped(), before + 1);
    }
}

#[test]
fn f9_at_the_winning_cancel_on_the_cancelling_thread() {
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let svc = setup.start();
        let threads = Threads::default();
        let far = || svc.timer().delay(HOUR).run(|_| {}).ended(noting(&threads)).start();
        let timers = [far(), far(), far(), far()];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(svc.cancel(timers[0]), SW_OK);
                assert_eq!(*threads.lock().unwrap(), [me()]);
                assert_eq!(svc.cancel_wait(timers[1]), SW_OK);
                assert_eq!(svc.cancel_batch(&timers[2..]), Ok(2));
                assert_eq!(*threads.lock().unwrap(), [me(); 4]);
                // One that has lost does not drop again.
                assert_eq!(svc.cancel(timers[0]), SW_NOT_FOUND);
                assert_eq!(svc.cancel_wait(timers[1]), SW_NOT_FOUND);
                assert_eq!(svc.cancel_batch(&timers), Ok(0));
                assert_eq!(threads.lock().unwrap().len(), 4);
            });
        });
    }
}

#[test]
fn f9_many_cancels_of_one_timer_drop_once() {
    let svc = Setup::threaded(1).start();
    let log = Log::counting();
    let wins = AtomicU64::new(0);
    for round in 1..=500 {
        let timer = svc.timer().delay(round % 3 * 100 * US).log(log).start();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    if svc.cancel(timer) == SW_OK {
                        wins.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        eventually("one drop", || log.dropped() == round);
    }
    assert_eq!(log.count() + wins.load(Ordering::SeqCst), 500);
}

#[test]
fn f9_cancelled_while_it_runs_it_is_dropped_after_the_run_on_that_thread() {
    for period in [0, HOUR] {
        let svc = Setup::threaded(1).start();
        let threads = Threads::default();
        let (inside, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
        let (entered, leave) = (inside.clone(), go.clone());
        let call = move |_: &sw_expiry| {
            entered.open();
            leave.wait();
        };
        let timer = svc.timer().period(period).run(call).ended(noting(&threads)).start();
        inside.wait();
        assert_eq!(svc.cancel(timer), SW_RUNNING);
        assert!(threads.lock().unwrap().is_empty(), "dropped while it runs");
        go.open();
        eventually("dropped", || threads.lock().unwrap().len() == 1);
        assert_ne!(threads.lock().unwrap()[0], me());
    }
}

#[test]
fn f9_a_periodic_timer_that_cancels_itself_is_dropped_after_its_callback() {
    for flags in [0, SW_TIMER_BURST, SW_TIMER_FIXED_DELAY] {
        let svc = Setup::manual(MS).start();
        let door = svc.door();
        let dropped = Arc::new(AtomicU64::new(0));
        let (count, inside) = (dropped.clone(), dropped.clone());
        let call = move |expiry: &sw_expiry| {
            assert_eq!(door.cancel(expiry.timer), SW_OK);
            assert_eq!(inside.load(Ordering::SeqCst), 0, "dropped inside its callback");
        };
        let ended = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        svc.timer().period(MS).flags(flags).run(call).ended(ended).start();
        assert_eq!(svc.poll(), 1);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        assert_eq!(svc.run(10 * MS), 0);
    }
}

#[test]
fn f9_after_unfired() {
    for setup in [Setup::manual(MS), Setup::threaded(1)] {
        let svc = setup.start();
        let log = Log::new();
        let queue = svc.queue();
        for i in 0..10 {
            svc.timer().delay(HOUR + i).log(log).start();
            svc.timer().delay(HOUR + i).period(MS).log(log).start();
            svc.timer().delay(HOUR + i).log(log).queue(queue).start();
        }
        unsafe extern "C-unwind" fn unfired(
            arg: *mut std::ffi::c_void,
            _: sw_timer,
            ctx: *mut std::ffi::c_void,
            _: u64,
        ) {
            // SAFETY: `arg` is the pair below.
            let (log, told) = unsafe { &*arg.cast::<(Log, AtomicU64)>() };
            assert!(log.is(Ptr(ctx)));
            // So many told, at most so many dropped: never a drop ahead of its unfired.
            let told = told.fetch_add(1, Ordering::SeqCst);
            assert!(log.dropped() <= told);
        }
        let told = (log, AtomicU64::new(0));
        let arg = std::ptr::from_ref(&told).cast_mut().cast();
        // SAFETY: a live service, `arg` lives on.
        let status =
            unsafe { sw_service_stop(svc.raw(), Some(unfired), arg, std::ptr::null_mut()) };
        assert_eq!(status, SW_OK);
        assert_eq!(told.1.load(Ordering::SeqCst), 30);
        assert_eq!(log.dropped(), 30);
        assert_eq!(log.count(), 0);
    }
}

#[test]
fn f9_also_when_nobody_is_told() {
    // Stop without `unfired`, and free without stop.
    for stop in [true, false] {
        let log = Log::new();
        let svc = Setup::manual(MS).start();
        for i in 0..10 {
            svc.timer().delay(i * HOUR).log(log).start();
        }
        if stop {
            assert_eq!(svc.stop(), SW_OK);
            assert_eq!(log.dropped(), 10);
            drop(svc);
        } else {
            // SAFETY: the last use.
            assert_eq!(unsafe { sw_service_free(svc.raw()) }, SW_OK);
            std::mem::forget(svc);
        }
        assert_eq!(log.dropped(), 10);
    }
}

#[test]
fn f9_when_a_start_is_refused_whatever_the_reason() {
    let svc = Setup::manual(MS).shards(2).max_timers(2).start();
    let log = Log::new();
    let mut refusals = 0;
    let mut refused = |timer: Timer, why: sw_status| {
        refusals += 1;
        assert_eq!(timer.try_start(), Err(why));
        assert_eq!(log.dropped(), refusals, "{why:?}");
    };
    refused(svc.timer().log(log).shard(2), SW_INVALID);
    refused(svc.timer().log(log).flags(1 << 7), SW_INVALID);
    refused(svc.timer().log(log).flags(SW_TIMER_BURST), SW_INVALID);
    refused(svc.timer().log(log).with(|spec| spec.callback = None), SW_INVALID);
    let full = Log::new();
    for _ in 0..2 {
        svc.timer().delay(HOUR).shard(0).log(full).start();
    }
    refused(svc.timer().log(log).shard(0), SW_FULL);
    let (attached, over) = (Gate::new(), Gate::new());
    std::thread::scope(|scope| {
        let (svc, attached, over) = (&svc, &attached, &over);
        let owner = scope.spawn(move || {
            assert_eq!(svc.attach(1, SW_ATTACH_EXCLUSIVE), SW_OK);
            attached.open();
            over.wait();
        });
        attached.wait();
        refused(svc.timer().log(log).shard(1), SW_BUSY);
        over.open();
        owner.join().unwrap();
    });
    assert_eq!(svc.stop(), SW_OK);
    refused(svc.timer().log(log).shard(1), SW_STOPPED);
    // No service at all.
    let spec = svc.timer().log(log).spec();
    let none = std::ptr::null_mut();
    // SAFETY: a null service and a readable spec.
    assert_eq!(unsafe { sw_timer_start_spec(none, &spec, std::ptr::null_mut()) }, SW_INVALID);
    assert_eq!(log.dropped(), refusals + 1);
    assert_eq!(log.count(), 0);
}

#[test]
fn f9_when_a_batch_is_refused_each_spec_is_dropped() {
    let svc = Setup::manual(MS).max_timers(10).start();
    let log = Log::new();
    let good = svc.timer().delay(MS).log(log).spec();
    let mut specs = vec![good; 8];
    specs[7].shard = 9;
    assert_eq!(svc.start_batch(&specs), Err(SW_INVALID));
    assert_eq!(log.dropped(), 8);
    assert_eq!(svc.start_batch(&[good; 11]), Err(SW_FULL));
    let nowhere = svc.timer().log(log).shard(9).spec();
    let mixed: Vec<_> = std::iter::repeat_n(good, 11).chain([nowhere]).collect();
    assert_eq!(svc.start_batch(&mixed), Err(SW_INVALID), "S4 before S3");
    assert_eq!(log.dropped(), 31);
    assert_eq!(svc.stats().started, 0, "all or nothing");
    assert_eq!(svc.start_batch(&[good; 10]).unwrap().len(), 10);
    assert_eq!(svc.start_batch(&[good; 1]), Err(SW_FULL));
    assert_eq!(svc.run(MS), 10);
    assert_eq!(log.dropped(), 42);
    svc.stop();
    assert_eq!(svc.start_batch(&[good; 3]), Err(SW_STOPPED));
    assert_eq!(log.dropped(), 45);
}

#[test]
fn f9_a_one_shots_event_taken_from_a_queue_is_the_takers() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let queue = svc.queue();
    svc.timer().delay(MS).log(log).queue(queue).start();
    assert_eq!(svc.run(MS), 1);
    let taken = queue.poll(9);
    assert_eq!(taken.len(), 1);
    assert!(log.is(taken[0].1));
    assert_eq!(log.dropped(), 0, "ctx is the taker's");
    // A periodic timer keeps its ctx while its events are taken.
    let timer = svc.timer().delay(MS).period(MS).log(log).queue(queue).start();
    for _ in 0..5 {
        assert_eq!(svc.run(MS), 1);
        assert_eq!(queue.poll(9).len(), 1);
    }
    assert_eq!(log.dropped(), 0);
    assert_eq!(svc.cancel(timer), SW_OK);
    assert_eq!(log.dropped(), 1);
    // Events that nobody takes: cancelled, queue freed, service stopped.
    let event = || svc.timer().log(log).queue(queue).start();
    assert_eq!(
        svc.cancel({
            let timer = event();
            svc.poll();
            timer
        }),
        SW_OK
    );
    assert_eq!(log.dropped(), 2);
    event();
    svc.timer().delay(HOUR).log(log).queue(queue).start();
    svc.poll();
    assert_eq!(queue.free(), SW_OK);
    assert_eq!(log.dropped(), 4);
    let queue = svc.queue();
    svc.timer().log(log).queue(queue).start();
    svc.poll();
    assert_eq!(svc.stop(), SW_OK);
    assert_eq!(log.dropped(), 5);
    assert_eq!(log.count(), 0);
}
