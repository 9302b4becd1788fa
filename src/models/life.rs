//! Stop, attach, and the gate.

use super::*;
use crate::sync::UnsafeCell;

/// What a callback, or who is handed a timer back, writes without any synchronization of its own.
struct Note(UnsafeCell<u32>);

// SAFETY: the models say who touches it when, which is what they check.
unsafe impl Send for Note {}
// SAFETY: as above.
unsafe impl Sync for Note {}

impl Note {
    fn new() -> Arc<Note> {
        Arc::new(Note(UnsafeCell::new(0)))
    }

    fn write(&self) {
        // SAFETY: one at a time: that is what the models check.
        self.0.with_mut(|note| unsafe { *note += 1 });
    }

    fn read(&self) -> u32 {
        // SAFETY: nobody writes any more: that is what the models check.
        self.0.with(|note| unsafe { *note })
    }

    fn spec(self: &Arc<Note>, tick: u64) -> Spec {
        let ctx = Arc::as_ptr(self).cast_mut().cast();
        Spec {
            delay_ns: tick * TICK,
            flags: TIMER_ABSOLUTE,
            callback: Some(write),
            ctx,
            ..Spec::default()
        }
    }
}

unsafe extern "C-unwind" fn write(ctx: *mut c_void, _: *const Expiry) {
    // SAFETY: ctx is a `Note` that the model keeps.
    unsafe { &*ctx.cast::<Note>() }.write();
}

/// A start that races with stop is refused or handed back, never lost; drop runs either way.
#[test]
fn stop_vs_start() {
    explore("stop_vs_start", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let (other, theirs) = (service.clone(), seen.clone());
        let starter = thread(move || other.try_start(&with_drop(once(9, &theirs))));
        let returned = service.halt();
        let started = starter.join().unwrap();
        match started {
            Ok(_) => assert_eq!((returned, seen.returned()), (1, 1)),
            Err(error) => assert_eq!((error, returned), (Error::Stopped, 0)),
        }
        assert_eq!(seen.dropped(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// All of a batch or none.
#[test]
fn stop_vs_batch() {
    explore("stop_vs_batch", Some(3), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let (other, theirs) = (service.clone(), seen.clone());
        let starter = thread(move || {
            let specs = theirs.each_ref().map(|seen| with_drop(once(9, seen)));
            // SAFETY: as in `try_start`.
            unsafe { other.arm_batch(&specs, std::ptr::null_mut()) }
        });
        let returned = service.halt();
        let started = starter.join().unwrap();
        assert_eq!(returned, if started.is_ok() { 2 } else { 0 });
        for seen in seen {
            assert_eq!((seen.returned(), seen.dropped()), ((returned / 2) as u32, 1));
        }
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A timer is cancelled or handed back, not both and not neither.
#[test]
fn stop_vs_cancel() {
    explore("stop_vs_cancel", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&with_drop(once(9, &seen)));
        let other = service.clone();
        let canceller = thread(move || other.cancel(timer));
        let returned = service.halt();
        let cancelled = canceller.join().unwrap();
        match cancelled {
            Ok(outcome) => assert_eq!((outcome, returned), (Outcome::Done, 0)),
            Err(error) => assert_eq!((error, returned), (Error::Stopped, 1)),
        }
        assert_eq!(seen.dropped(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A timer fires or is handed back, and no callback runs once stop has returned.
#[test]
fn stop_vs_poll() {
    explore("stop_vs_poll", Some(3), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let note = Note::new();
        for seen in &seen {
            service.begin(&with_drop(once(1, seen)));
        }
        service.begin(&note.spec(1));
        service.forward(1);
        let other = service.clone();
        let poller = thread(move || other.poll(0, 0));
        let returned = service.stop(&mut |_, _, _| {}).unwrap();
        note.read();
        let after = seen.each_ref().map(|seen| (seen.fired(), seen.dropped()));
        let fired = poller.join().unwrap().unwrap_or(0);
        assert_eq!(fired as u64 + returned, 3);
        for (seen, after) in seen.iter().zip(after) {
            assert_eq!((seen.fired(), seen.dropped()), after);
            assert_eq!(seen.dropped(), 1);
        }
        assert_eq!(service.poll(0, 0), Err(Error::Stopped));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// Two threads stop: one is told what was left, and neither returns before it is over.
#[test]
fn stop_vs_stop() {
    explore("stop_vs_stop", Some(3), || {
        let service = Service::new(4);
        let note = Note::new();
        service.begin(&note.spec(9));
        let stop = |service: Service, note: Arc<Note>| {
            let returned = service.stop(&mut |_, _, _| note.write()).unwrap();
            assert_eq!(note.read(), 1);
            returned
        };
        let (other, theirs) = (service.clone(), note.clone());
        let stopper = thread(move || stop(other, theirs));
        let returned = stop(service.clone(), note);
        assert_eq!(returned + stopper.join().unwrap(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// An exclusive owner moves words by plain stores: by then all others are out, or are refused.
#[test]
fn attach_exclusive_vs_cancel() {
    explore("attach_exclusive_vs_cancel", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&with_drop(once(1, &seen)));
        service.forward(1);
        let other = service.clone();
        let canceller = thread(move || other.cancel(timer));
        service.attach(0, true).unwrap();
        let fired = service.turn0() as u32;
        service.detach(0).unwrap();
        let cancelled = canceller.join().unwrap();
        assert_eq!(fired + u32::from(cancelled == Ok(Outcome::Done)), 1, "{cancelled:?}");
        assert_eq!((seen.fired(), seen.dropped()), (fired, 1));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A start from elsewhere is refused, or is under the exclusive owner's eyes when attach returns.
#[test]
fn attach_exclusive_vs_start() {
    explore("attach_exclusive_vs_start", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let (other, theirs) = (service.clone(), seen.clone());
        let starter = thread(move || other.try_start(&Spec { shard: 0, ..once(0, &theirs) }));
        service.attach(0, true).unwrap();
        let fired = service.turn0() as u32;
        let again = service.turn0();
        service.detach(0).unwrap();
        let started = starter.join().unwrap();
        assert!(started.is_ok() || started == Err(Error::Busy));
        assert!(again == 0);
        assert_eq!(
            (seen.fired(), fired + service.turn0() as u32),
            (fired, fired + u32::from(started.is_ok() && fired == 0))
        );
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// Two threads that poll, or attach: one at a time owns the shard, and each timer comes once.
#[test]
fn poll_vs_poll() {
    explore("poll_vs_poll", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        service.begin(&once(1, &seen));
        service.forward(1);
        let other = service.clone();
        let poller = thread(move || other.poll(0, 0));
        let mine = service.poll(0, 0);
        let theirs = poller.join().unwrap();
        assert!([mine, theirs].iter().all(|result| matches!(result, Ok(_) | Err(Error::Busy))));
        assert_eq!(mine.unwrap_or(0) + theirs.unwrap_or(0), 1);
        assert_eq!(seen.fired(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// The same for a timer that is started and cancelled by the short way.
#[test]
fn stop_vs_plain_cancel() {
    explore("stop_vs_plain_cancel", Some(3), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let (other, theirs) = (service.clone(), seen.clone());
        let canceller = thread(move || {
            let first = other.try_start(&once(9, &theirs[0]));
            let second = other.try_start(&once(9, &theirs[1]));
            let cancelled = first.ok().is_some_and(|timer| other.cancel(timer).is_ok());
            u64::from(first.is_ok()) + u64::from(second.is_ok()) - u64::from(cancelled)
        });
        let returned = service.halt();
        assert_eq!(canceller.join().unwrap(), returned);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// The service is stopped while a start looks for room: the gate stays shut, and what was started is handed back.
#[test]
fn stop_vs_search_for_room() {
    explore("stop_vs_search_for_room", Some(3), || {
        let service = Service::new(1);
        let seen = Seen::new();
        service.begin(&once(9, &seen));
        let (other, theirs) = (service.clone(), seen.clone());
        let starter = thread(move || other.try_start(&once(9, &theirs)));
        assert_eq!(service.halt(), 1);
        let refused = starter.join().unwrap();
        assert!(matches!(refused, Err(Error::Full | Error::Stopped)), "{refused:?}");
        assert!(service.shards()[0].gate.is(crate::gate::STOPPED));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// Two threads attach, work on the wheel, and detach: what the first has done there the second finds.
#[test]
fn attach_vs_attach() {
    explore("attach_vs_attach", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let own = |service: &Service, seen: &Arc<Seen>| {
            if service.attach(0, false).is_err() {
                return 0;
            }
            service.begin(&once(9, seen));
            service.detach(0).unwrap();
            1
        };
        let (other, theirs) = (service.clone(), seen.clone());
        let owner = thread(move || own(&other, &theirs));
        let mine = own(&service, &seen);
        let started = mine + owner.join().unwrap();
        service.forward(9);
        assert_eq!((service.turn0(), seen.fired()), (started, started as u32));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}
