//! A timer that is due, or about to be, and somebody who wants it otherwise.

use super::*;

/// Cancel and fire: one of them wins, and both know which.
#[test]
fn cancel_vs_fire() {
    explore("cancel_vs_fire", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&once(1, &seen));
        service.forward(1);
        let cancel = || {
            let other = service.clone();
            thread(move || other.end(timer))
        };
        let cancellers = [cancel(), cancel()];
        let fired = service.turn0();
        let outcomes = join(cancellers);
        assert_eq!(fired, seen.fired() as usize);
        let won = outcomes.iter().filter(|&&outcome| outcome == Outcome::Done).count();
        assert_eq!(won + fired, 1, "{outcomes:?}");
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.started, stats.cancelled), (0, 1, won as u64));
        threads::leave(true);
    });
}

/// A handle whose slot is in use again means nothing: neither the cancel that comes late nor the owner that
/// still has the old reminder touches the new timer.
#[test]
fn cancel_fire_reuse() {
    explore("cancel_fire_reuse", Some(3), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let timer = service.begin(&once(1, &seen[0]));
        service.forward(1);
        let (other, theirs) = (service.clone(), seen[1].clone());
        let canceller = thread(move || {
            let outcome = other.end(timer);
            let next = other.begin(&once(1, &theirs));
            assert_ne!(next, timer);
            let late = other.end(timer);
            assert!(late == Outcome::NotFound || late == outcome && late == Outcome::Running);
            outcome
        });
        service.turn0();
        let outcome = canceller.join().unwrap();
        service.turn0();
        assert_eq!(seen[0].fired() == 0, outcome == Outcome::Done);
        assert_eq!(seen[1].fired(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// The slot of a timer with an extra is used again for a plain one, and the other way round, while the owner
/// looks at the old reminder.
#[test]
fn look_vs_reuse_of_another_kind() {
    explore("look_vs_reuse_of_another_kind", Some(3), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new(), Seen::new()];
        let timer = service.begin(&with_drop(once(1, &seen[0])));
        service.forward(1);
        let (other, theirs) = (service.clone(), [seen[1].clone(), seen[2].clone()]);
        let canceller = thread(move || {
            let outcome = other.end(timer);
            let plain = other.begin(&once(9, &theirs[0]));
            assert_eq!(other.end(plain), Outcome::Done);
            other.begin(&with_drop(every(1, once(1, &theirs[1]))));
            outcome
        });
        service.turn0();
        let outcome = canceller.join().unwrap();
        service.turn0();
        assert_eq!(seen[0].fired() == 0, outcome == Outcome::Done);
        assert_eq!((seen[0].dropped(), seen[1].fired(), seen[2].dropped()), (1, 0, 0));
        assert!(seen[2].fired() >= 1);
        assert_eq!(service.quiet().pending, 1);
        threads::leave(true);
    });
}

/// A reset to a later instant, without a message, against the owner that finds the timer due: it fires
/// now and the reset says so, or it fires at the new instant and not before.
#[test]
fn reset_later_vs_fire() {
    explore("reset_later_vs_fire", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&once(1, &seen));
        service.forward(1);
        let other = service.clone();
        let mover = thread(move || (other.move_to(timer, 5), other.move_to(timer, 7)));
        let fired = service.turn0();
        let outcomes = mover.join().unwrap();
        if fired == 0 {
            assert_eq!(outcomes, (Outcome::Done, Outcome::Done));
            assert!(service.next(0).unwrap() <= 7 * TICK);
        } else {
            assert_ne!(outcomes.1, Outcome::Done);
        }
        service.forward(5);
        assert_eq!(service.turn0(), 0);
        service.forward(1);
        assert_eq!(service.turn0(), 1 - fired);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A reset to an earlier instant while the owner looks at the old reminder: it comes at the new one,
/// once.
#[test]
fn reset_earlier_vs_fire() {
    explore("reset_earlier_vs_fire", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&once(2, &seen));
        assert_eq!(service.move_to(timer, 9), Outcome::Done);
        service.turn0();
        service.forward(2);
        let other = service.clone();
        let mover = thread(move || {
            assert_eq!(other.move_to(timer, 8), Outcome::Done);
            assert_eq!(other.move_to(timer, 3), Outcome::Done);
        });
        assert_eq!(service.turn0(), 0);
        mover.join().unwrap();
        assert!(service.next(0).unwrap() <= 3 * TICK);
        service.forward(1);
        assert_eq!(service.turn0(), 1);
        service.forward(9);
        assert_eq!(service.turn0(), 0);
        assert_eq!(seen.fired(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// Two threads move one timer, one earlier and one later, while the owner works: the one that came last is
/// what counts, and no reminder is missing.
#[test]
fn resets_both_ways() {
    explore("resets_both_ways", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&once(4, &seen));
        service.forward(1);
        let mover = |tick| {
            let other = service.clone();
            thread(move || assert_eq!(other.move_to(timer, tick), Outcome::Done))
        };
        let movers = [mover(3), mover(6)];
        assert_eq!(service.turn0(), 0);
        join(movers);
        let (_, left_ns) = service.remaining(timer).unwrap();
        let tick = 1 + left_ns / TICK;
        assert!(tick == 3 || tick == 6);
        service.forward(tick - 2);
        assert_eq!(service.turn0(), 0);
        service.forward(1);
        assert_eq!(service.turn0(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A reset by a handle that another thread cancels and whose slot it uses again: it moves the old timer or
/// none, never the new one.
#[test]
fn reset_vs_cancel_vs_recycle() {
    explore("reset_vs_cancel_vs_recycle", Some(2), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let timer = service.begin(&once(4, &seen[0]));
        let (other, theirs) = (service.clone(), seen[1].clone());
        let canceller = thread(move || {
            assert_eq!(other.end(timer), Outcome::Done);
            other.begin(&once(4, &theirs))
        });
        let other = service.clone();
        let mover = thread(move || other.move_to(timer, 2));
        service.turn0();
        let next = canceller.join().unwrap();
        mover.join().unwrap();
        assert_eq!(service.remaining(next).unwrap(), (Outcome::Done, 4 * TICK));
        service.forward(3);
        assert_eq!(service.turn0(), 0);
        service.forward(1);
        assert_eq!(service.turn0(), 1);
        assert_eq!((seen[0].fired(), seen[1].fired()), (0, 1));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A periodic timer goes on by itself until the cancel from elsewhere, and not a single time after.
#[test]
fn periodic_rearm_vs_cancel() {
    explore("periodic_rearm_vs_cancel", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&with_drop(every(2, once(1, &seen))));
        service.forward(1);
        let other = service.clone();
        let canceller = thread(move || other.end(timer));
        let fired = service.turn0();
        let outcome = canceller.join().unwrap();
        assert!(outcome == Outcome::Done || outcome == Outcome::Running && fired == 1);
        service.forward(2);
        assert_eq!(service.turn0(), 0);
        assert_eq!((seen.fired() as usize, seen.dropped()), (fired, 1));
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.cancelled, stats.ended_by_fire), (0, 1, 0));
        threads::leave(true);
    });
}

/// A reset of a periodic timer from elsewhere, also while its callback runs, starts a new grid.
#[test]
fn periodic_rearm_vs_reset() {
    explore("periodic_rearm_vs_reset", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&every(10, once(1, &seen)));
        service.forward(1);
        let other = service.clone();
        let mover = thread(move || assert_eq!(other.move_to(timer, 4), Outcome::Done));
        let fired = service.turn0();
        mover.join().unwrap();
        assert!(service.next(0).unwrap() <= 4 * TICK);
        service.forward(3);
        assert_eq!(service.turn0(), 1);
        service.forward(9);
        assert_eq!(service.turn0(), 0);
        service.forward(1);
        assert_eq!(service.turn0(), 1);
        assert_eq!(seen.fired() as usize, fired + 2);
        assert_eq!(service.quiet().pending, 1);
        threads::leave(true);
    });
}

/// Whoever ends the timer runs its drop, and nobody else does.
#[test]
fn drop_runs_once() {
    explore("drop_runs_once", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&with_drop(once(1, &seen)));
        service.forward(1);
        let cancel = || {
            let other = service.clone();
            thread(move || other.end(timer))
        };
        let cancellers = [cancel(), cancel()];
        service.turn0();
        let outcomes = join(cancellers);
        let won = outcomes.iter().filter(|&&outcome| outcome == Outcome::Done).count();
        assert_eq!((won + seen.fired() as usize, seen.dropped()), (1, 1));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// Of the reminders of a timer that is reset from elsewhere the newest alone is served; the others go as they come up.
#[test]
fn old_reminders_go() {
    explore("old_reminders_go", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&every(10, once(4, &seen)));
        service.turn0();
        let other = service.clone();
        let mover = thread(move || assert_eq!(other.move_to(timer, 2), Outcome::Done));
        assert_eq!(service.turn0(), 0);
        mover.join().unwrap();
        service.attach(0, false).unwrap();
        for (ticks, fires) in [(2, 1), (2, 0), (8, 1)] {
            service.forward(ticks);
            assert_eq!(service.turn0(), fires);
        }
        // SAFETY: this thread owns the shard.
        let reminders = unsafe { service.shards()[0].with_core(|core| core.wheel.len()) };
        assert_eq!((reminders, seen.fired()), (1, 2));
        service.detach(0).unwrap();
        assert_eq!(service.quiet().pending, 1);
        threads::leave(true);
    });
}
