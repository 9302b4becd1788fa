//! What a closure captured is dropped exactly once, when its timer has ended, and not before.

use crate::*;
use shardwheel::{Error, Expiry, Outcome};

/// A closure that owns a guard.
fn owner(dropped: &Count) -> impl FnMut(&Expiry) + Send + 'static + use<> {
    let guard = dropped.guard();
    move |_| {
        let _ = &guard;
    }
}

#[test]
fn after_the_only_call() {
    let (service, _) = manual();
    let dropped = Count::default();
    service.after(ms(1), owner(&dropped)).unwrap();
    service.timer().delay(ms(1)).start(owner(&dropped)).unwrap();
    assert_eq!(dropped.get(), 0);
    step(&service, ms(1));
    assert_eq!(dropped.get(), 2);
    drop(service);
    assert_eq!(dropped.get(), 2);
}

#[test]
fn inside_the_only_call_if_it_is_used_up_there() {
    let (service, _) = manual();
    let (dropped, seen) = (Count::default(), Count::default());
    let (guard, count, log) = (dropped.guard(), dropped.clone(), seen.clone());
    service
        .after(ms(1), move |_| {
            drop(guard);
            assert_eq!(count.get(), 1);
            log.add();
        })
        .unwrap();
    step(&service, ms(1));
    assert_eq!((dropped.get(), seen.get(), service.panics()), (1, 1, 0));
}

#[test]
fn at_the_cancel() {
    let (service, _) = manual();
    let dropped = Count::default();
    let once = service.after(ms(1), owner(&dropped)).unwrap();
    let often = service.every(ms(1), owner(&dropped)).unwrap();
    step(&service, Duration::ZERO);
    assert_eq!(service.cancel(once), Ok(Outcome::Done));
    assert_eq!(dropped.get(), 1);
    assert_eq!(service.cancel_all(&[once, often]), Ok(1));
    assert_eq!(dropped.get(), 2);
    step(&service, hour());
    drop(service);
    assert_eq!(dropped.get(), 2);
}

#[test]
fn after_the_last_of_many_calls() {
    let (service, _) = manual();
    let (dropped, calls) = (Count::default(), Count::default());
    let (guard, count, timers) = (dropped.guard(), calls.clone(), service.timers());
    service
        .every(ms(1), move |expiry| {
            count.add();
            if count.get() == 3 {
                assert_eq!(timers.cancel(expiry.timer), Ok(Outcome::Done));
                assert_eq!(guard.0.get(), 0, "not while it runs");
            }
        })
        .unwrap();
    for _ in 0..5 {
        step(&service, ms(1));
    }
    assert_eq!((calls.get(), dropped.get(), service.panics()), (3, 1, 0));
}

#[test]
fn at_the_end_of_the_service() {
    for explicitly in [false, true] {
        let (service, _) = manual();
        let dropped = Count::default();
        for n in 0..100 {
            service.after(ms(n), owner(&dropped)).unwrap();
            service.every(ms(n + 1), owner(&dropped)).unwrap();
        }
        if explicitly {
            assert_eq!(service.stop(), Ok(200));
            assert_eq!(dropped.get(), 200);
            assert_eq!(service.after(ms(1), owner(&dropped)), Err(Error::Stopped));
            assert_eq!(dropped.get(), 201);
            balanced(&service);
        }
        drop(service);
        assert_eq!(dropped.get(), if explicitly { 201 } else { 200 });
    }
}

#[test]
fn after_unfired_has_been_told() {
    let (service, _) = manual();
    let dropped = Count::default();
    let timer = service.at(shardwheel::Time::from_nanos(123), owner(&dropped)).unwrap();
    let mut told = Vec::new();
    let returned = service.stop_with(|unfired| {
        assert_eq!(dropped.get(), 0);
        told.push((unfired.timer, unfired.deadline.as_nanos()));
    });
    assert_eq!(returned, Ok(1));
    assert_eq!(told, [(timer, 123)]);
    assert_eq!(dropped.get(), 1);
}

#[test]
fn once_however_cancel_fire_and_stop_race() {
    const THREADS: u64 = 3;
    const EACH: u64 = 3_000;
    let service = threaded(2);
    let (dropped, called) = (Count::default(), Count::default());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for n in 0..EACH {
                    let (guard, called) = (dropped.guard(), called.clone());
                    let f = move |_: &Expiry| {
                        let _ = &guard;
                        called.add();
                    };
                    let timer = service.after(Duration::from_micros(n % 3_000), f).unwrap();
                    match n % 3 {
                        0 => drop(service.cancel(timer).unwrap()),
                        1 => drop(service.cancel_wait(timer).unwrap()),
                        _ => drop(service.reset(timer, ms(1)).unwrap()),
                    }
                }
            });
        }
    });
    service.stop().unwrap();
    balanced(&service);
    let stats = service.stats().unwrap();
    assert_eq!(stats.started, THREADS * EACH);
    assert_eq!(stats.fired, called.get());
    assert_eq!(dropped.get(), THREADS * EACH);
}
