//! Callbacks that use the service, and threads that wait for them.

use super::*;
use crate::sync::UnsafeCell;
use std::ptr;

/// What the callbacks here work with.
struct Host {
    service: Service,
    seen: Seen,
    /// The timer itself, or the one to wait for.
    timer: AtomicU64,
    /// Written by the callback without any synchronization of its own.
    note: UnsafeCell<u32>,
    answer: AtomicU32,
}

// SAFETY: the models say who touches `note` when, which is what they check.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Host {
    fn new(service: &Service) -> Arc<Host> {
        Arc::new(Host {
            service: service.clone(),
            seen: Seen::default(),
            timer: AtomicU64::new(0),
            note: UnsafeCell::new(0),
            answer: AtomicU32::new(0),
        })
    }

    fn spec(self: &Arc<Host>, callback: crate::types::Callback, tick: u64) -> Spec {
        Spec {
            delay_ns: tick * TICK,
            flags: TIMER_ABSOLUTE,
            callback: Some(callback),
            ctx: Arc::as_ptr(self).cast_mut().cast(),
            ..Spec::default()
        }
    }

    /// Writes without synchronization.
    fn write(&self) {
        // SAFETY: the callbacks of one timer do not overlap, and who reads waits for them to end.
        self.note.with_mut(|note| unsafe { *note += 1 });
    }

    /// Reads without synchronization.
    fn read(&self) -> u32 {
        // SAFETY: no callback runs now: that is what the models check.
        self.note.with(|note| unsafe { *note })
    }
}

unsafe extern "C-unwind" fn again(ctx: *mut c_void, expiry: *const Expiry) {
    // SAFETY: ctx is a `Host` that the model keeps; the expiry is the library's.
    let (host, expiry) = unsafe { (&*ctx.cast::<Host>(), &*expiry) };
    host.seen.fired.fetch_add(1, Ordering::Relaxed);
    host.write();
    let _ = host.service.reset_after(expiry.timer, TICK).unwrap();
    host.write();
}

/// `cancel_wait` against a callback that arms its timer again each time: when it returns the callback is
/// not running and never runs again, and what it wrote is seen.
#[test]
fn cancel_wait_vs_rearming_callback() {
    explore("cancel_wait_vs_rearming_callback", Some(3), || {
        let service = Service::new(4);
        let host = Host::new(&service);
        let timer = service.begin(&host.spec(again, 1));
        service.forward(1);
        let theirs = host.clone();
        let waiter = thread(move || {
            let outcome = theirs.service.cancel_wait(timer).unwrap();
            (outcome, theirs.read(), theirs.seen.fired())
        });
        service.turn0();
        let (outcome, wrote, fired) = waiter.join().unwrap();
        assert_eq!(wrote, 2 * fired);
        assert!(outcome == Outcome::Done || outcome == Outcome::Running && fired == 1);
        service.forward(1);
        assert_eq!(service.turn0(), 0);
        assert_eq!(host.seen.fired(), fired);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

unsafe extern "C-unwind" fn plain(ctx: *mut c_void, _: *const Expiry) {
    // SAFETY: as in `again`.
    let host = unsafe { &*ctx.cast::<Host>() };
    host.seen.fired.fetch_add(1, Ordering::Relaxed);
    host.write();
}

unsafe extern "C-unwind" fn plain_drop(ctx: *mut c_void) {
    // SAFETY: as in `again`.
    let host = unsafe { &*ctx.cast::<Host>() };
    host.seen.dropped.fetch_add(1, Ordering::Relaxed);
    host.write();
}

/// `cancel_wait` of a timer with a drop: it returns when that has run too, whoever runs it.
#[test]
fn cancel_wait_vs_drop() {
    explore("cancel_wait_vs_drop", Some(3), || {
        let service = Service::new(4);
        let host = Host::new(&service);
        let spec = Spec { drop: Some(plain_drop), ..host.spec(plain, 1) };
        let timer = service.begin(&spec);
        service.forward(1);
        let theirs = host.clone();
        let waiter = thread(move || {
            let outcome = theirs.service.cancel_wait(timer).unwrap();
            let ran = u32::from(outcome != Outcome::Done);
            if outcome != Outcome::NotFound {
                assert_eq!((theirs.read(), theirs.seen.dropped()), (1 + ran, 1));
            }
            outcome
        });
        service.turn0();
        let won = u32::from(waiter.join().unwrap() == Outcome::Done);
        assert_eq!((won + host.seen.fired(), host.seen.dropped()), (1, 1));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// Two threads wait for one callback, with a drop behind it: both return, after it has run, or one of them has
/// prevented it.
#[test]
fn two_cancel_waits_vs_callback() {
    explore("two_cancel_waits_vs_callback", Some(2), || {
        let service = Service::new(4);
        let host = Host::new(&service);
        let spec = Spec { drop: Some(plain_drop), ..host.spec(plain, 1) };
        let timer = service.begin(&spec);
        service.forward(1);
        let wait = || {
            let host = host.clone();
            thread(move || {
                let outcome = host.service.cancel_wait(timer).unwrap();
                if outcome == Outcome::Running {
                    assert_eq!((host.read(), host.seen.dropped()), (2, 1));
                }
                outcome
            })
        };
        let waiters = [wait(), wait()];
        service.turn0();
        let outcomes = join(waiters);
        let won = outcomes.iter().filter(|&&outcome| outcome == Outcome::Done).count() as u32;
        assert_eq!((won + host.seen.fired(), host.seen.dropped()), (1, 1));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A callback that cancels its own periodic timer, and a stranger that does it too: one of them is told
/// that it did.
#[test]
fn cancel_inside_vs_cancel() {
    unsafe extern "C-unwind" fn stop_me(ctx: *mut c_void, expiry: *const Expiry) {
        // SAFETY: as in `again`.
        let (host, expiry) = unsafe { (&*ctx.cast::<Host>(), &*expiry) };
        host.seen.fired.fetch_add(1, Ordering::Relaxed);
        let done = host.service.end(expiry.timer) == Outcome::Done;
        host.answer.store(u32::from(done), Ordering::Relaxed);
    }
    explore("cancel_inside_vs_cancel", Some(3), || {
        let service = Service::new(4);
        let host = Host::new(&service);
        let timer = service.begin(&every(1, host.spec(stop_me, 1)));
        service.forward(1);
        let other = service.clone();
        let canceller = thread(move || other.end(timer));
        let fired = service.turn0();
        let outcome = canceller.join().unwrap();
        let inside = host.answer.load(Ordering::Relaxed) == 1;
        assert!(!(inside && outcome == Outcome::Done));
        assert!(inside || outcome != Outcome::NotFound);
        service.forward(1);
        assert_eq!(service.turn0(), 0);
        assert_eq!(host.seen.fired() as usize, fired);
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.cancelled), (0, 1));
        threads::leave(true);
    });
}

unsafe extern "C-unwind" fn wait_for_other(ctx: *mut c_void, _: *const Expiry) {
    // SAFETY: as in `again`.
    let host = unsafe { &*ctx.cast::<Host>() };
    host.seen.fired.fetch_add(1, Ordering::Relaxed);
    let refused = host.service.cancel_wait(host.timer.load(Ordering::Relaxed)).is_err();
    host.answer.store(u32::from(refused), Ordering::Relaxed);
}

/// The callbacks of two shards wait for each other's: not both sleep for ever, and who is not refused has
/// waited.
#[test]
fn cancel_wait_circle() {
    explore("cancel_wait_circle", Some(3), || {
        let service = Service::with(Mode::Driven, 2, 4);
        let hosts = [Host::new(&service), Host::new(&service)];
        let timers = [0, 1].map(|shard| {
            let spec = Spec { shard, ..hosts[shard as usize].spec(wait_for_other, 1) };
            service.begin(&spec)
        });
        hosts[0].timer.store(timers[1], Ordering::Relaxed);
        hosts[1].timer.store(timers[0], Ordering::Relaxed);
        service.forward(1);
        let other = service.clone();
        let poller = thread(move || other.poll(1, 0).unwrap());
        let fired = [service.poll(0, 0).unwrap(), poller.join().unwrap()];
        let refused = hosts.each_ref().map(|host| host.answer.load(Ordering::Relaxed));
        assert!(fired[0] + fired[1] >= 1);
        assert!(refused[0] + refused[1] <= fired.iter().sum::<usize>() as u32);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// `cancel_wait` of a timer that another thread cancels: when it returns the drop has run, whoever ran it.
#[test]
fn cancel_wait_vs_cancel() {
    explore("cancel_wait_vs_cancel", Some(3), || {
        let service = Service::new(4);
        let host = Host::new(&service);
        let spec = Spec { drop: Some(plain_drop), ..host.spec(plain, 1) };
        let timer = service.begin(&spec);
        let other = service.clone();
        let canceller = thread(move || other.end(timer));
        let outcome = service.cancel_wait(timer).unwrap();
        assert_eq!((host.read(), host.seen.dropped()), (1, 1), "{outcome:?}");
        let done = [outcome, canceller.join().unwrap()].map(|outcome| outcome == Outcome::Done);
        assert_ne!(done[0], done[1]);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A callback waits for a timer that another thread cancels: it is not refused, and when it goes on the drop has run,
/// whoever ran it.
#[test]
fn cancel_wait_inside_vs_cancel() {
    unsafe extern "C-unwind" fn wait_and_read(ctx: *mut c_void, _: *const Expiry) {
        // SAFETY: as in `again`.
        let host = unsafe { &*ctx.cast::<Host>() };
        host.service.cancel_wait(host.timer.load(Ordering::Relaxed)).unwrap();
        assert_eq!((host.read(), host.seen.dropped()), (1, 1));
        host.answer.store(1, Ordering::Relaxed);
    }
    explore("cancel_wait_inside_vs_cancel", Some(2), || {
        let service = Service::new(4);
        let host = Host::new(&service);
        let spec = Spec { drop: Some(plain_drop), ..host.spec(plain, 5) };
        let timer = service.begin(&spec);
        host.timer.store(timer, Ordering::Relaxed);
        service.begin(&host.spec(wait_and_read, 1));
        service.forward(1);
        let other = service.clone();
        let canceller = thread(move || other.end(timer));
        assert_eq!(service.turn0(), 1);
        canceller.join().unwrap();
        assert_eq!(host.answer.load(Ordering::Relaxed), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// As `cancel_wait_circle`, but one of the two waits in the drop after its callback.
#[test]
fn cancel_wait_circle_with_a_drop() {
    unsafe extern "C-unwind" fn wait_in_drop(ctx: *mut c_void) {
        // SAFETY: as in `again`.
        unsafe { wait_for_other(ctx, ptr::null()) };
    }
    unsafe extern "C-unwind" fn nothing(_: *mut c_void, _: *const Expiry) {}
    explore("cancel_wait_circle_with_a_drop", Some(2), || {
        let service = Service::with(Mode::Driven, 2, 4);
        let hosts = [Host::new(&service), Host::new(&service)];
        let first = Spec { drop: Some(wait_in_drop), ..hosts[0].spec(nothing, 1) };
        let first = service.begin(&Spec { shard: 0, ..first });
        let second = service.begin(&Spec { shard: 1, ..hosts[1].spec(wait_for_other, 1) });
        hosts[0].timer.store(second, Ordering::Relaxed);
        hosts[1].timer.store(first, Ordering::Relaxed);
        service.forward(1);
        let other = service.clone();
        let poller = thread(move || other.poll(1, 0).unwrap());
        service.poll(0, 0).unwrap();
        poller.join().unwrap();
        assert_eq!(hosts[0].seen.fired(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A callback waits for a drop that another thread's cancel runs, and in which that thread stops the service: all
/// come to an end.
#[test]
fn cancel_wait_inside_vs_stop_in_drop() {
    unsafe extern "C-unwind" fn stop_in_drop(ctx: *mut c_void) {
        // SAFETY: as in `again`.
        let host = unsafe { &*ctx.cast::<Host>() };
        let stopped = host.service.stop(&mut |_, _, _| {});
        host.answer.store(u32::from(stopped.is_ok()), Ordering::Relaxed);
    }
    explore("cancel_wait_inside_vs_stop_in_drop", Some(2), || {
        let service = Service::new(4);
        let [host, waiter] = [Host::new(&service), Host::new(&service)];
        let spec = Spec { drop: Some(stop_in_drop), ..host.spec(plain, 5) };
        let timer = service.begin(&spec);
        waiter.timer.store(timer, Ordering::Relaxed);
        service.begin(&waiter.spec(wait_for_other, 1));
        service.forward(1);
        let other = service.clone();
        let canceller = thread(move || other.end(timer));
        service.poll(0, 0).ok();
        // The callback's cancel may have won: then it is refused to stop.
        let won = canceller.join().unwrap() == Outcome::Done;
        assert_eq!(host.answer.load(Ordering::Relaxed), u32::from(won));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// The service is stopped while a callback runs, and its timer cancelled: `cancel_wait`, also if it is refused, returns
/// only when a callback that was running is over.
#[test]
fn cancel_wait_vs_stop_and_callback() {
    explore("cancel_wait_vs_stop_and_callback", Some(2), || {
        let service = Service::new(4);
        let host = Host::new(&service);
        let timer = service.begin(&host.spec(plain, 1));
        service.forward(1);
        let other = service.clone();
        let poller = thread(move || other.poll(0, 0));
        let other = service.clone();
        let stopper = thread(move || other.stop(&mut |_, _, _| {}).unwrap());
        let begun = host.seen.fired() == 1;
        let outcome = service.cancel_wait(timer);
        if begun || outcome.is_ok() {
            assert_eq!(host.read(), host.seen.fired());
        }
        let returned = stopper.join().unwrap() as u32;
        poller.join().unwrap().ok();
        let fired = host.seen.fired();
        assert_eq!(host.read(), fired);
        match outcome {
            Ok(Outcome::Done) => assert_eq!(fired + returned, 0),
            Ok(_) => assert_eq!((fired, returned), (1, 0)),
            Err(error) => assert_eq!((error, fired + returned), (Error::Stopped, 1)),
        }
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

unsafe extern "C-unwind" fn drop_that_cancels(ctx: *mut c_void) {
    // SAFETY: as in `again`.
    let host = unsafe { &*ctx.cast::<Host>() };
    host.seen.dropped.fetch_add(1, Ordering::Relaxed);
    let timer = host.timer.load(Ordering::Relaxed);
    assert_eq!(host.service.end(timer), Outcome::NotFound);
    assert_eq!(host.service.move_to(timer, 5), Outcome::NotFound);
}

/// Whoever runs a timer's drop, a cancel and a reset in there find that it has ended.
#[test]
fn drop_finds_its_timer_ended() {
    explore("drop_finds_its_timer_ended", Some(3), || {
        let service = Service::new(4);
        let host = Host::new(&service);
        let spec = Spec { drop: Some(drop_that_cancels), ..host.spec(plain, 1) };
        let timer = service.begin(&spec);
        host.timer.store(timer, Ordering::Relaxed);
        service.forward(1);
        let other = service.clone();
        let canceller = thread(move || other.end(timer));
        service.turn0();
        let won = u32::from(canceller.join().unwrap() == Outcome::Done);
        assert_eq!((won + host.seen.fired(), host.seen.dropped()), (1, 1));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}
