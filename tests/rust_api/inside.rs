//! Rule F3: everything is allowed inside a callback, to the end of its own service.

use crate::*;
use shardwheel::{Error, Outcome, Timer, Timers};
use std::cell::RefCell;
use std::sync::Mutex;

#[test]
fn start_cancel_and_reset() {
    let (service, _) = manual();
    let (timers, log) = (service.timers(), Arc::new(Mutex::new(Vec::new())));
    let (later, gone) =
        (service.after(hour(), |_| ()).unwrap(), service.after(hour(), |_| ()).unwrap());
    let seen = log.clone();
    service
        .after(ms(1), move |expiry| {
            let mut log = seen.lock().unwrap();
            log.push("outer");
            assert_eq!(timers.cancel(gone), Ok(Outcome::Done));
            assert_eq!(timers.reset(later, ms(1)), Ok(Outcome::Done));
            assert_eq!(timers.cancel(expiry.timer), Ok(Outcome::Running));
            assert_eq!(timers.cancel_wait(expiry.timer), Err(Error::WouldDeadlock));
            assert_eq!(timers.stop(), Err(Error::WouldDeadlock));
            assert_eq!(timers.remaining(expiry.timer), Ok(None));
            let seen = seen.clone();
            timers.after(Duration::ZERO, move |_| seen.lock().unwrap().push("inner")).unwrap();
        })
        .unwrap();
    assert_eq!(step(&service, ms(1)), 1, "what is started inside comes with the next turn");
    assert_eq!(step(&service, Duration::ZERO), 1);
    assert_eq!(*log.lock().unwrap(), ["outer", "inner"]);
    assert_eq!(service.remaining(later), Ok(Some(ms(1))));
    assert_eq!(service.panics(), 0);
    balanced(&service);
}

#[test]
fn a_closure_that_is_called_once_does_nothing_when_it_is_armed_again() {
    let (service, _) = manual();
    let (timers, calls, dropped) = (service.timers(), Count::default(), Count::default());
    let (add, guard) = (calls.clone(), dropped.guard());
    service
        .after(ms(1), move |expiry| {
            let _guard = guard;
            add.add();
            assert_eq!(timers.reset(expiry.timer, ms(1)), Ok(Outcome::Done));
        })
        .unwrap();
    assert_eq!(step(&service, ms(1)), 1);
    assert_eq!(step(&service, ms(1)), 1);
    assert_eq!(step(&service, ms(1)), 0);
    assert_eq!((calls.get(), dropped.get(), service.panics()), (1, 1, 0));
}

#[test]
fn on_other_shards_of_running_threads() {
    const ROUNDS: u64 = 200;
    fn hop(timers: Timers, left: u64, hops: Count, victim: Option<Timer>) {
        if let Some(victim) = victim {
            assert_eq!(timers.cancel(victim), Ok(Outcome::Done));
        }
        hops.add();
        if left > 0 {
            let shard = (left % 3) as u32;
            let asleep = timers.timer().shard(shard).delay(hour()).start_once(|_| ()).unwrap();
            let way = timers.clone();
            let next = move |_: &shardwheel::Expiry| hop(way, left - 1, hops, Some(asleep));
            timers.timer().shard((shard + 1) % 3).start_once(next).unwrap();
        }
    }
    let service = threaded(3);
    let hops = Count::default();
    hop(service.timers(), ROUNDS, hops.clone(), None);
    eventually("all hops", || hops.get() == ROUNDS + 1);
    eventually("all is quiet", || service.stats().unwrap().pending == 0);
    assert_eq!(service.panics(), 0);
    balanced(&service);
}

/// Ways for a service's last owner to be a timer of its own.
fn owned_by_a_timer(service: Service, period: Option<Duration>, delay: Duration) -> Timers {
    let timers = service.timers();
    let mut owner = Some(service);
    let started = match period {
        None => timers.after(delay, move |_| drop(owner)),
        Some(period) => timers.every(period, move |_| drop(owner.take())),
    };
    started.unwrap();
    timers
}

/// The service has ended, and its other timer with it.
#[track_caller]
fn ends(timers: &Timers, dropped: &Count) {
    eventually("it ends", || timers.after(hour(), |_| ()) == Err(Error::Stopped));
    assert!(timers.stop().is_ok(), "which waits until it is over");
    assert_eq!(dropped.get(), 1);
    assert_eq!(timers.panics(), 0);
    balanced(timers);
}

fn bystander(service: &Service) -> Count {
    let dropped = Count::default();
    let guard = dropped.guard();
    service.after(hour(), move |_| drop(guard)).unwrap();
    dropped
}

#[test]
fn a_service_dropped_on_its_own_thread_ends_all_the_same() {
    for period in [None, Some(ms(1))] {
        let service = threaded(2);
        let dropped = bystander(&service);
        ends(&owned_by_a_timer(service, period, ms(1)), &dropped);
    }
}

#[test]
fn a_service_dropped_inside_a_poll_ends_after_it() {
    for period in [None, Some(ms(1))] {
        let (service, shard) = manual();
        let dropped = bystander(&service);
        service.advance(hour() / 2).unwrap();
        let timers = owned_by_a_timer(service, period, ms(1));
        timers.advance(ms(1)).unwrap();
        assert_eq!(shard.poll(), Ok(1));
        ends(&timers, &dropped);
    }
}

#[test]
fn a_service_dropped_with_its_own_pending_timer() {
    // At the end, which finds it on the way.
    let service = threaded(1);
    let dropped = bystander(&service);
    let timers = owned_by_a_timer(service, None, hour());
    assert_eq!(timers.stop(), Ok(2));
    ends(&timers, &dropped);
    // At a cancel: there is nobody to wait for but others.
    let service = threaded(1);
    let dropped = bystander(&service);
    let timers = service.timers();
    let timer = timers.after(hour(), move |_| drop(service)).unwrap();
    assert_eq!(timers.cancel(timer), Ok(Outcome::Done));
    assert_eq!(timers.after(hour(), |_| ()), Err(Error::Stopped));
    ends(&timers, &dropped);
    // On a shard's thread, when that has ended its last turn.
    thread_local! {
        static KEPT: RefCell<Option<Service>> = const { RefCell::new(None) };
    }
    let service = threaded(1);
    let dropped = bystander(&service);
    let timers = service.timers();
    timers.after(ms(1), move |_| KEPT.set(Some(service))).unwrap();
    eventually("it is kept", || timers.stats().unwrap().ended_by_fire == 1);
    assert_eq!(timers.stop(), Ok(1));
    ends(&timers, &dropped);
}

#[test]
fn the_end_is_not_for_whoever_is_told_of_it() {
    let (service, _) = manual();
    let timers = service.timers();
    service.after(hour(), |_| ()).unwrap();
    let mut service = Some(service);
    let returned = timers.stop_with(|_| {
        assert_eq!(timers.stop(), Err(Error::WouldDeadlock));
        assert_eq!(timers.after(ms(1), |_| ()), Err(Error::Stopped));
        drop(service.take());
    });
    assert_eq!(returned, Ok(1));
}
