//! Room: credits on their way between threads.

use super::*;
use loom::sync::Notify;

/// All room can be used, by one thread, and not more.
fn room_is(service: &Service, room: usize) {
    let seen = Seen::new();
    let timers: Vec<u64> = (0..room).map(|_| service.begin(&once(9, &seen))).collect();
    assert_eq!(service.try_start(&once(9, &seen)), Err(Error::Full));
    timers.into_iter().for_each(|timer| assert_eq!(service.end(timer), Outcome::Done));
    assert_eq!(service.quiet().pending, 0);
}

/// Threads that look for room take it from wherever it lies, from each other too: none is lost and
/// none is had twice.
#[test]
fn credits_never_lost() {
    explore("credits_never_lost", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let first = service.begin(&once(9, &seen));
        let start = || {
            let (service, seen) = (service.clone(), seen.clone());
            thread(move || service.try_start(&once(9, &seen)).ok())
        };
        let started = join([start(), start()]);
        started.into_iter().flatten().chain([first]).for_each(|timer| {
            assert_eq!(service.end(timer), Outcome::Done);
        });
        assert_eq!(service.quiet().pending, 0);
        room_is(&service, 4);
        threads::leave(true);
    });
}

/// Room that a cancel makes can be found by all, and is found by one.
#[test]
fn freed_credit_is_taken_once() {
    explore("freed_credit_is_taken_once", Some(2), || {
        let service = Service::new(1);
        let seen = Seen::new();
        let first = service.begin(&once(9, &seen));
        let start = || {
            let (service, seen) = (service.clone(), seen.clone());
            thread(move || service.try_start(&once(9, &seen)).ok())
        };
        let starters = [start(), start()];
        assert_eq!(service.end(first), Outcome::Done);
        let started = join(starters);
        assert!(started.iter().flatten().count() <= 1);
        started.into_iter().flatten().for_each(|timer| {
            assert_eq!(service.end(timer), Outcome::Done);
        });
        room_is(&service, 1);
        threads::leave(true);
    });
}

/// `Full` is said when the shard is full, not before: two threads start at once, and there is room for two.
#[test]
fn full_is_exact() {
    explore("full_is_exact", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        for _ in 0..2 {
            service.begin(&once(9, &seen));
        }
        let start = || {
            let (service, seen) = (service.clone(), seen.clone());
            thread(move || service.try_start(&once(9, &seen)).is_ok())
        };
        let started = join([start(), start()]);
        assert_eq!(started, [true, true]);
        assert_eq!(service.try_start(&once(9, &seen)), Err(Error::Full));
        assert_eq!(service.quiet().pending, 4);
        threads::leave(true);
    });
}

/// The same where all the room lies with a third thread, which does not use it.
#[test]
fn full_is_exact_when_collected() {
    explore("full_is_exact_when_collected", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        // Two to use and two that stay here.
        let timers = [(); 3].map(|()| service.begin(&once(9, &seen)));
        assert_eq!(service.end(timers[2]), Outcome::Done);
        let start = || {
            let (service, seen) = (service.clone(), seen.clone());
            thread(move || service.try_start(&once(9, &seen)).is_ok())
        };
        let started = join([start(), start()]);
        assert_eq!(started, [true, true]);
        assert_eq!(service.quiet().pending, 4);
        threads::leave(true);
    });
}

/// A start that finds the shard full makes room for itself as soon as a cancel has returned.
#[test]
fn cancel_makes_room_at_once() {
    explore("cancel_makes_room_at_once", Some(3), || {
        let service = Service::new(2);
        let seen = Seen::new();
        let timers = [(); 2].map(|()| service.begin(&once(9, &seen)));
        let replace = |timer| {
            let (service, seen) = (service.clone(), seen.clone());
            thread(move || {
                assert_eq!(service.end(timer), Outcome::Done);
                service.begin(&once(9, &seen));
            })
        };
        join(timers.map(replace));
        assert_eq!(service.try_start(&once(9, &seen)), Err(Error::Full));
        assert_eq!(service.quiet().pending, 2);
        threads::leave(true);
    });
}

/// One thread starts with room that it has, while another, which has none, takes that away: one of them gets it.
fn start_vs_collect(dress: fn(Spec) -> Spec) {
    let service = Service::new(4);
    let (seen, begun) = (Seen::new(), Arc::new(Notify::new()));
    service.begin(&once(9, &seen));
    service.begin(&once(9, &seen));
    let (other, theirs, bell) = (service.clone(), seen.clone(), begun.clone());
    let holder = thread(move || {
        other.begin(&once(9, &theirs));
        bell.notify();
        other.try_start(&dress(once(9, &theirs))).is_ok()
    });
    begun.wait();
    let mine = service.try_start(&once(9, &seen)).is_ok();
    assert_ne!(mine, holder.join().unwrap());
    assert_eq!(service.quiet().pending, 4);
    threads::leave(true);
}

/// A thread starts by the short way with room that it has, while another, which has none, takes that away: one of
/// them gets it.
#[test]
fn plain_start_vs_collect() {
    explore("plain_start_vs_collect", Some(3), || start_vs_collect(|spec| spec));
}

/// The same for a start that goes the long way.
#[test]
fn slow_start_vs_collect() {
    explore("slow_start_vs_collect", Some(3), || start_vs_collect(|spec| every(9, spec)));
}

/// A thread ends while another takes the room that it has left over: it is had once.
#[test]
fn thread_end_vs_collect() {
    explore("thread_end_vs_collect", Some(2), || {
        let service = Service::new(4);
        let seen = Seen::new();
        service.begin(&once(9, &seen));
        service.begin(&once(9, &seen));
        let (other, theirs) = (service.clone(), seen.clone());
        let ending = mortal(move || other.begin(&once(9, &theirs)));
        let mine = service.try_start(&once(9, &seen)).is_ok();
        ending.join().unwrap();
        let late = service.try_start(&once(9, &seen)).is_ok();
        assert_ne!(mine, late);
        assert_eq!(service.try_start(&once(9, &seen)), Err(Error::Full));
        assert_eq!(service.quiet().pending, 4);
        threads::leave(true);
    });
}

/// What most lived at once is not forgotten when somebody reads it meanwhile.
#[test]
fn high_water_vs_read() {
    explore_with_upkeep("high_water_vs_read", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        service.begin(&once(9, &seen));
        let other = service.clone();
        let reader = thread(move || other.shards()[0].high_water());
        let timer = service.begin(&once(9, &seen));
        assert_eq!(service.end(timer), Outcome::Done);
        assert!(reader.join().unwrap() <= 2);
        assert_eq!(service.quiet().high_water, 2);
        threads::leave(true);
    });
}
