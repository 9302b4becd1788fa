//! Queues: events with tokens, taken by whoever likes.

use crate::driven::readable;
use crate::*;
use shardwheel::{Error, Event, Outcome, Time};
use std::collections::HashSet;
use std::sync::Mutex;

#[test]
fn events_come_in_order_with_their_tokens() {
    let (service, _) = manual();
    let queue = service.queue().unwrap();
    let third = queue.at(Time::ZERO + ms(3), u64::MAX).unwrap();
    let first = queue.after(ms(1), 0).unwrap();
    let second = service.timer().delay(ms(2)).start_in(&queue, 1 << 63).unwrap();
    assert_eq!(queue.pop(), Ok(None));
    assert_eq!(step(&service, ms(3)), 3);
    let mut events = Vec::new();
    assert_eq!(queue.poll(&mut events), Ok(3));
    let seen: Vec<_> = events.iter().map(|event| (event.expiry.timer, event.token)).collect();
    assert_eq!(seen, [(first, 0), (second, 1 << 63), (third, u64::MAX)]);
    assert_eq!(events[0].expiry.late(), ms(2));
    assert_eq!(queue.poll(&mut events), Ok(0));
    assert_eq!(events.len(), 3, "it adds at the end");
}

#[test]
fn what_one_poll_takes_is_in_order() {
    let (service, _) = manual();
    let queue = service.queue().unwrap();
    step(&service, ms(1_000));
    // Each turn delivers an older deadline than the one before.
    for at in (1..=100).rev() {
        queue.at(Time::ZERO + ms(at), at).unwrap();
        assert_eq!(step(&service, ms(1)), 1);
    }
    let token = |event: &Event| event.token;
    // One at a time they come as they were delivered.
    assert_eq!(queue.pop().unwrap().as_ref().map(token), Some(100));
    let mut events = Vec::with_capacity(40);
    let room = events.capacity() as u64;
    assert_eq!(queue.poll(&mut events), Ok(room as usize));
    assert_eq!(events.iter().map(token).collect::<Vec<_>>(), Vec::from_iter(100 - room..100));
    // What was there before stays where it was.
    events.reserve(200);
    assert_eq!(queue.poll(&mut events), Ok(99 - room as usize));
    let wanted: Vec<u64> = (100 - room..100).chain(1..100 - room).collect();
    assert_eq!(events.iter().map(token).collect::<Vec<_>>(), wanted);
    assert!(events.iter().all(|event| event.expiry.deadline == Time::ZERO + ms(event.token)));
}

#[test]
fn a_vector_is_filled_and_not_grown() {
    let (service, _) = manual();
    let queue = service.queue().unwrap();
    for token in 0..200 {
        queue.after(ms(1), token).unwrap();
    }
    step(&service, ms(1));
    let mut events: Vec<Event> = Vec::with_capacity(100);
    let room = events.capacity() as u64;
    assert_eq!(queue.poll(&mut events), Ok(room as usize));
    assert_eq!(events.capacity() as u64, room);
    assert_eq!(queue.pop().unwrap().map(|event| event.token), Some(room));
    let mut rest = Vec::new();
    while queue.poll(&mut rest).unwrap() > 0 {}
    assert_eq!(rest.len() as u64, 200 - room - 1);
}

#[test]
fn what_waits_is_still_a_timer() {
    let (service, _) = manual();
    let queue = service.queue().unwrap();
    let fd = queue.fd().unwrap();
    let cancelled = queue.after(ms(1), 1).unwrap();
    let moved = queue.after(ms(1), 2).unwrap();
    assert!(!readable(fd));
    step(&service, ms(1));
    assert!(readable(fd));
    assert_eq!(service.cancel(cancelled), Ok(Outcome::Done));
    assert_eq!(service.reset(moved, ms(1)), Ok(Outcome::Done));
    assert_eq!(queue.pop(), Ok(None));
    assert!(!readable(fd));
    step(&service, ms(1));
    assert_eq!(queue.pop().unwrap().map(|event| event.token), Some(2));
    assert_eq!(service.cancel(moved), Ok(Outcome::NotFound));
}

#[test]
fn periods_that_wait_are_missed() {
    let (service, _) = manual();
    let queue = service.queue().unwrap();
    let timer = queue.every(ms(1), 9).unwrap();
    for _ in 0..5 {
        step(&service, ms(1));
    }
    let event = queue.pop().unwrap().unwrap();
    assert_eq!((event.token, event.expiry.missed), (9, 4));
    assert_eq!(queue.pop(), Ok(None));
    step(&service, ms(1));
    assert_eq!(queue.pop().unwrap().unwrap().expiry.missed, 0);
    assert_eq!(service.cancel(timer), Ok(Outcome::Done));
}

#[test]
fn dropped_it_cancels_its_timers() {
    let (service, _) = manual();
    let (queue, other) = (service.queue().unwrap(), service.queue().unwrap());
    let timers = [queue.after(ms(1), 0), queue.after(hour(), 0), queue.every(ms(1), 0)];
    other.after(hour(), 0).unwrap();
    step(&service, ms(1));
    drop(queue);
    for timer in timers {
        assert_eq!(service.cancel(timer.unwrap()), Ok(Outcome::NotFound));
    }
    let stats = service.stats().unwrap();
    assert_eq!((stats.pending, stats.cancelled), (1, 3));
    balanced(&service);
}

#[test]
fn dropped_while_a_shard_is_exclusive_it_goes_later() {
    for later in 0..3 {
        let (service, shard) = manual();
        let queue = service.queue().unwrap();
        let waiting = queue.after(ms(1), 0).unwrap();
        queue.after(hour(), 0).unwrap();
        let attached = shard.attach_exclusive().unwrap();
        step(&service, ms(1));
        thread::scope(|scope| {
            scope.spawn(|| drop(queue));
        });
        assert_eq!(service.remaining(waiting), Ok(Some(Duration::ZERO)), "it could not go");
        match later {
            0 => drop(attached),
            1 => drop(service.queue().unwrap()),
            _ => assert_eq!(service.stop(), Ok(2)),
        }
        if later < 2 {
            assert_eq!(service.remaining(waiting), Ok(None));
            assert_eq!(service.stats().unwrap().cancelled, 2);
        }
    }
}

#[test]
fn it_may_outlive_its_service() {
    let (service, _) = manual();
    let queue = service.queue().unwrap();
    let other = manual();
    assert_eq!(other.0.timer().start_in(&queue, 1), Err(Error::Invalid));
    queue.after(ms(1), 1).unwrap();
    step(&service, ms(1));
    drop(service);
    assert_eq!(queue.pop(), Err(Error::Stopped));
    assert_eq!(queue.poll(&mut Vec::new()), Err(Error::Stopped));
    assert_eq!(queue.after(ms(1), 1), Err(Error::Stopped));
    assert_eq!(queue.fd().unwrap_err(), Error::Stopped);
    drop(queue);
}

#[test]
fn any_number_of_threads_take_each_event_once() {
    const EVENTS: u64 = 20_000;
    let service = threaded(2);
    let queue = service.queue().unwrap();
    let seen = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut events = Vec::with_capacity(100);
                while seen.lock().unwrap().len() < EVENTS as usize {
                    if queue.poll(&mut events).unwrap() == 0 {
                        thread::yield_now();
                    }
                    let mut seen = seen.lock().unwrap();
                    for event in events.drain(..) {
                        assert!(seen.insert(event.token), "{} twice", event.token);
                    }
                }
            });
        }
        for token in 0..EVENTS {
            let shard = (token % 2) as u32;
            let delay = Duration::from_micros(token % 5_000);
            service.timer().shard(shard).delay(delay).start_in(&queue, token).unwrap();
        }
    });
    assert_eq!(queue.pop(), Ok(None));
    assert_eq!(service.stats().unwrap().ended_by_fire, EVENTS);
}
