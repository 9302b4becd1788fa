//! Starting, moving and cancelling, on a clock that the test moves.

use crate::*;
use shardwheel::{Error, Expiry, Outcome, Time, Timer};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

#[test]
fn after_and_at_come_once_at_their_deadline() {
    let (service, shard) = manual();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = |seen: &Arc<Mutex<Vec<Expiry>>>| {
        let seen = seen.clone();
        move |expiry: &Expiry| seen.lock().unwrap().push(*expiry)
    };
    let second = service.at(Time::from_nanos(7_000_000), log(&seen)).unwrap();
    let first = service.after(Duration::from_nanos(4_000_001), log(&seen)).unwrap();
    assert_eq!(step(&service, ms(4)), 0, "not a nanosecond early");
    assert_eq!(step(&service, ms(1)), 1);
    assert_eq!(step(&service, ms(100)), 1);
    assert_eq!(step(&service, ms(100)), 0);
    assert_eq!(shard.next().unwrap(), None);
    let expected = [(first, 4_000_001, 5_000_000), (second, 7_000_000, 105_000_000)];
    let expected = expected.map(|(timer, deadline, now)| Expiry {
        timer,
        deadline: Time::from_nanos(deadline),
        now: Time::from_nanos(now),
        missed: 0,
    });
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(expected[1].late(), ms(98));
}

#[test]
fn no_delay_and_the_past_come_with_the_next_turn() {
    let (service, shard) = manual();
    let count = Count::default();
    service.advance(hour()).unwrap();
    for start in 0..3 {
        let count = count.clone();
        let f = move |_: &Expiry| count.add();
        let timer = match start {
            0 => service.after(Duration::ZERO, f),
            1 => service.at(Time::ZERO, f),
            _ => service.timer().start_once(f),
        };
        assert_eq!(service.remaining(timer.unwrap()), Ok(Some(Duration::ZERO)));
    }
    assert_eq!(count.get(), 0);
    assert_eq!(shard.poll(), Ok(3));
    assert_eq!(count.get(), 3);
}

#[test]
fn never_does_not_come() {
    let (service, _) = manual();
    let timers = [
        service.after(Duration::MAX, |_| panic!()).unwrap(),
        service.at(Time::NEVER, |_| panic!()).unwrap(),
        service.every(Duration::MAX, |_| panic!()).unwrap(),
    ];
    assert_eq!(step(&service, Duration::from_secs(1 << 33)), 0);
    for timer in timers {
        assert_eq!(service.remaining(timer), Ok(Some(Duration::MAX)));
        assert_eq!(service.cancel(timer), Ok(Outcome::Done));
    }
}

#[test]
fn every_keeps_its_grid_and_says_what_it_missed() {
    let (service, _) = manual();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let timer = service
        .every(ms(10), move |expiry| {
            log.lock().unwrap().push((expiry.deadline.as_nanos() / 1_000_000, expiry.missed));
        })
        .unwrap();
    for by in [9, 1, 10, 35, 5] {
        step(&service, ms(by));
    }
    assert_eq!(*seen.lock().unwrap(), [(10, 0), (20, 0), (50, 2), (60, 0)]);
    assert_eq!(service.cancel(timer), Ok(Outcome::Done));
    assert_eq!(step(&service, ms(100)), 0);
}

#[test]
fn the_builder_says_how_periods_are_served() {
    let (service, _) = manual();
    let (bursts, delays, later) = (Count::default(), Count::default(), Count::default());
    let add = |count: &Count| {
        let count = count.clone();
        move |_: &Expiry| count.add()
    };
    service.timer().period(ms(10)).burst().start(add(&bursts)).unwrap();
    service.timer().period(ms(10)).fixed_delay().start(add(&delays)).unwrap();
    service.timer().delay(ms(95)).period(ms(10)).start(add(&later)).unwrap();
    assert_eq!(step(&service, ms(45)), 4 + 1);
    assert_eq!((bursts.get(), delays.get(), later.get()), (4, 1, 0));
    step(&service, ms(9));
    assert_eq!((bursts.get(), delays.get()), (5, 1), "10 ms from the end of the callback");
    step(&service, ms(1));
    assert_eq!((bursts.get(), delays.get()), (5, 2));
    step(&service, ms(40));
    assert_eq!(later.get(), 1);
}

#[test]
fn slack_shares_a_wake_up() {
    let (service, shard) = manual();
    service.timer().deadline(Time::ZERO + ms(90)).slack(ms(60)).start_once(|_| ()).unwrap();
    let next = shard.next().unwrap().unwrap();
    assert!(next <= Time::ZERO + ms(150), "{next:?}");
    assert_eq!(step(&service, ms(89)), 0);
    assert_eq!(step(&service, ms(61)), 1);
}

#[test]
fn what_cannot_be_is_refused() {
    let (service, _) = manual();
    let dropped = Count::default();
    let owner = || {
        let guard = dropped.guard();
        move |_: &Expiry| {
            let _ = &guard;
        }
    };
    assert_eq!(service.timer().period(Duration::ZERO).start(owner()), Err(Error::Invalid));
    assert_eq!(dropped.get(), 1);
    let timer = service.timer();
    assert_eq!(service.every(Duration::ZERO, |_| ()), Err(Error::Invalid));
    assert_eq!(timer.period(ms(1)).start_once(|_| ()), Err(Error::Invalid));
    assert_eq!(timer.burst().start(|_| ()), Err(Error::Invalid));
    assert_eq!(timer.fixed_delay().start(|_| ()), Err(Error::Invalid));
    assert_eq!(timer.period(ms(1)).burst().fixed_delay().start(|_| ()), Err(Error::Invalid));
    assert_eq!(timer.shard(1).start(owner()), Err(Error::Invalid));
    assert_eq!(dropped.get(), 2);
    assert_eq!(service.stats().unwrap().started, 0);
}

#[test]
fn plain_functions_are_told_their_token() {
    static SUM: AtomicU64 = AtomicU64::new(0);
    fn add(token: u64, expiry: &Expiry) {
        assert_eq!(expiry.missed, 0);
        SUM.fetch_add(token, Ordering::SeqCst);
    }
    let (service, _) = manual();
    service.after_fn(ms(1), add, 3).unwrap();
    let closure = |token, _: &Expiry| {
        SUM.fetch_add(token, Ordering::SeqCst);
    };
    service.timer().delay(ms(1)).start_fn(closure, 1 << 40).unwrap();
    service.timer().period(ms(1)).start_fn(add, 1 << 63).unwrap();
    assert_eq!(step(&service, ms(1)), 3);
    assert_eq!(SUM.load(Ordering::SeqCst), 3 + (1 << 40) + (1 << 63));
}

#[test]
fn a_batch_is_started_all_or_none() {
    fn add(_: u64, _: &Expiry) {}
    let service =
        Service::builder().shards(1).max_timers(4).driven().manual_clock().build().unwrap();
    let queue = service.queue().unwrap();
    let (dropped, called) = (Count::default(), Count::default());
    let closure = || {
        let (guard, called) = (dropped.guard(), called.clone());
        move |_: &Expiry| {
            let _ = &guard;
            called.add();
        }
    };
    let timer = service.timer().delay(ms(1));
    let mut batch = service.batch();
    batch.add(timer.period(ms(1)), closure());
    batch.add_once(timer, closure());
    batch.add_fn(timer, add, 1);
    batch.add_in(timer, &queue, 2);
    let timers = batch.start().unwrap();
    assert_eq!(step(&service, ms(1)), 4);
    assert_eq!((called.get(), dropped.get()), (2, 1));
    assert_eq!(queue.pop().unwrap().map(|event| event.expiry.timer), Some(timers[3]));
    assert_eq!(service.remaining(timers[0]), Ok(Some(ms(1))));

    // One too many; one that cannot be; one that is not started at all.
    let mut batch = service.batch();
    (0..4).for_each(|_| batch.add_once(timer, closure()));
    assert_eq!(batch.start(), Err(Error::Full));
    assert_eq!(dropped.get(), 5);
    let mut batch = service.batch();
    batch.add_once(timer, closure());
    batch.add_once(timer.period(ms(1)), closure());
    batch.add(timer, closure());
    assert_eq!(batch.start(), Err(Error::Invalid));
    assert_eq!(dropped.get(), 8);
    let mut batch = service.batch();
    batch.add(timer, closure());
    drop(batch);
    assert_eq!(dropped.get(), 9);
    assert_eq!(service.batch().start(), Ok(vec![]));
    assert_eq!(service.cancel_all(&timers), Ok(1));
    assert_eq!(service.stats().unwrap().pending, 0);
    balanced(&service);
}

#[test]
fn full_is_full_until_the_next_cancel() {
    let service =
        Service::builder().shards(1).max_timers(2).driven().manual_clock().build().unwrap();
    let first = service.after(hour(), |_| ()).unwrap();
    service.after(hour(), |_| ()).unwrap();
    let dropped = Count::default();
    let guard = dropped.guard();
    assert_eq!(service.after(hour(), move |_| drop(guard)), Err(Error::Full));
    assert_eq!(dropped.get(), 1);
    assert_eq!(service.cancel(first), Ok(Outcome::Done));
    service.after(hour(), |_| ()).unwrap();
    assert_eq!(service.stats().unwrap().rejected, 1);
}

#[test]
fn reset_moves_a_timer_both_ways() {
    let (service, _) = manual();
    let count = Count::default();
    let add = count.clone();
    let timer = service.after(ms(10), move |_| add.add()).unwrap();
    assert_eq!(service.reset(timer, ms(100)), Ok(Outcome::Done));
    assert_eq!(service.remaining(timer), Ok(Some(ms(100))));
    assert_eq!(step(&service, ms(50)), 0);
    assert_eq!(service.reset_at(timer, service.now() + ms(5)), Ok(Outcome::Done));
    assert_eq!(service.remaining(timer), Ok(Some(ms(5))));
    assert_eq!(step(&service, ms(5)), 1);
    assert_eq!(count.get(), 1);
    assert_eq!(service.remaining(timer), Ok(None));
    assert_eq!(service.reset(timer, ms(1)), Ok(Outcome::NotFound));
    assert_eq!(service.cancel(timer), Ok(Outcome::NotFound));
    assert_eq!(service.cancel_wait(timer), Ok(Outcome::NotFound));
}

#[test]
fn cancel_all_counts_what_it_prevented() {
    let (service, _) = manual();
    let mut timers: Vec<Timer> =
        (0..10).map(|n| service.after(ms(n + 1), |_| ()).unwrap()).collect();
    assert_eq!(step(&service, ms(3)), 3);
    timers.extend(Timer::from_bits(1));
    timers.extend(Timer::from_bits(u64::MAX));
    assert_eq!(service.cancel_all(&timers), Ok(7));
    assert_eq!(service.cancel_all(&timers), Ok(0));
    assert_eq!(service.cancel_all(&[]), Ok(0));
    assert_eq!(step(&service, hour()), 0);
    balanced(&service);
}

#[test]
fn a_handle_is_a_number() {
    let service = Service::builder().shards(3).driven().build().unwrap();
    let timer = service.timer().shard(2).delay(hour()).start_once(|_| ()).unwrap();
    assert_eq!(timer.shard(), 2);
    assert_eq!(Timer::from_bits(timer.to_bits()), Some(timer));
    assert_eq!(Timer::from_bits(0), None);
    assert_eq!(size_of::<Option<Timer>>(), 8);
    for bits in [1, 1 << 27, u64::MAX, timer.to_bits() ^ 1, timer.to_bits() ^ 1 << 27] {
        let invented = Timer::from_bits(bits).unwrap();
        let answer = service.cancel(invented);
        assert!(matches!(answer, Ok(Outcome::NotFound) | Err(Error::Invalid)), "{answer:?}");
    }
    assert_eq!(service.cancel(timer), Ok(Outcome::Done));
}

#[test]
fn cancel_wait_returns_when_the_callback_is_over() {
    let service = threaded(1);
    let (begun, over, dropped) =
        (Count::default(), Arc::new(AtomicBool::new(false)), Count::default());
    let (begin, end, guard) = (begun.clone(), over.clone(), dropped.guard());
    let timer = service
        .every(ms(1), move |_| {
            let _ = &guard;
            begin.add();
            thread::sleep(ms(30));
            end.store(true, Ordering::Relaxed);
        })
        .unwrap();
    eventually("it runs", || begun.get() > 0);
    let outcome = service.cancel_wait(timer).unwrap();
    assert!(over.load(Ordering::Relaxed));
    assert_eq!(dropped.get(), 1);
    assert!(matches!(outcome, Outcome::Running | Outcome::Done));
    assert_eq!(service.cancel(timer), Ok(Outcome::NotFound));
}
