//! Programs in small: what the service is there for.

use crate::*;
use shardwheel::{Error, Expiry, Outcome, Timer, Timers};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8};

/// An hourglass: a timer that arms itself again, with a new interval each time.
struct Hourglass {
    timers: Timers,
    timer: Timer,
}

impl Hourglass {
    /// `turn` says how long until the next turn; `None`: it stops.
    fn start(
        timers: Timers,
        first: Duration,
        mut turn: impl FnMut(&Expiry) -> Option<Duration> + Send + 'static,
    ) -> Result<Hourglass, Error> {
        let inside = timers.clone();
        let timer = timers.timer().delay(first).start(move |expiry| {
            // Armed first, so that a turn that fails is not the last; then for when it said.
            inside.reset(expiry.timer, first).unwrap();
            match turn(expiry) {
                Some(next) => inside.reset(expiry.timer, next).unwrap(),
                None => inside.cancel(expiry.timer).unwrap(),
            };
        })?;
        Ok(Hourglass { timers, timer })
    }

    fn stop(&self) -> Result<Outcome, Error> {
        self.timers.cancel_wait(self.timer)
    }
}

#[test]
fn an_hourglass_turns_with_a_new_interval_each_time() {
    let (service, _) = manual();
    let (turned, dropped) = (Arc::new(Mutex::new(Vec::new())), Count::default());
    let (log, guard) = (turned.clone(), dropped.guard());
    let mut n = 0;
    Hourglass::start(service.timers(), ms(1), move |expiry| {
        let _ = &guard;
        log.lock().unwrap().push(expiry.now.as_nanos() / 1_000_000);
        n += 1;
        (n < 5).then(|| ms(1 << n))
    })
    .unwrap();
    for _ in 0..100 {
        step(&service, ms(1));
    }
    assert_eq!(*turned.lock().unwrap(), [1, 3, 7, 15, 31]);
    assert_eq!(dropped.get(), 1, "it stopped itself");
    assert_eq!(service.stats().unwrap().pending, 0);
    balanced(&service);
}

#[test]
fn an_hourglass_goes_on_after_a_failure_and_stops_when_told() {
    let service = threaded(1);
    let (turns, dropped) = (Count::default(), Count::default());
    let (add, guard) = (turns.clone(), dropped.guard());
    let glass = Hourglass::start(service.timers(), ms(1), move |_| {
        let _ = &guard;
        add.add();
        // Without a word from the panic hook: the test means it.
        if add.get() % 2 == 0 {
            std::panic::resume_unwind(Box::new("the sand got wet"));
        }
        Some(Duration::from_micros(500))
    })
    .unwrap();
    eventually("it turns", || turns.get() >= 10);
    assert_ne!(glass.stop().unwrap(), Outcome::NotFound);
    let stopped = turns.get();
    assert_eq!(dropped.get(), 1);
    assert_eq!(service.panics(), stopped / 2);
    thread::sleep(ms(20));
    assert_eq!(turns.get(), stopped);
    assert_eq!(glass.stop(), Ok(Outcome::NotFound));
    balanced(&service);
}

/// What becomes of an order.
const OPEN: u8 = 0;
const PAID: u8 = 1;
const CLOSED: u8 = 2;

/// 100,000 orders are to be paid in time. To pay cancels the time-out, and whoever comes second
/// finds out; the rest are closed, exactly once each.
#[test]
fn orders_are_paid_or_closed() {
    const ORDERS: usize = 100_000;
    static STATES: [AtomicU8; ORDERS] = [const { AtomicU8::new(OPEN) }; ORDERS];
    static WRONG: AtomicBool = AtomicBool::new(false);

    fn close(order: u64, _: &Expiry) {
        if STATES[order as usize].swap(CLOSED, Ordering::SeqCst) != OPEN {
            WRONG.store(true, Ordering::SeqCst);
        }
    }

    let service = threaded(2);
    let paid = AtomicU64::new(0);
    let pay = |order: usize, timer: Timer| {
        if service.cancel(timer) == Ok(Outcome::Done) {
            let before = STATES[order].swap(PAID, Ordering::SeqCst);
            assert_eq!(before, OPEN, "closed although its time-out was cancelled");
            paid.fetch_add(1, Ordering::SeqCst);
        }
    };
    thread::scope(|scope| {
        for first in 0..2 {
            let (service, pay) = (&service, &pay);
            scope.spawn(move || {
                let mut waiting = VecDeque::new();
                for order in (first..ORDERS).step_by(2) {
                    // A third is never paid, a third in good time, a third about when it is closed.
                    let in_time = match order % 3 {
                        0 => Duration::from_micros(order as u64 % 50_000),
                        1 => hour(),
                        _ => Duration::from_micros(order as u64 % 3_000),
                    };
                    waiting.push_back((order, service.after_fn(in_time, close, order as u64)));
                    if waiting.len() > 1_000 || order + 2 >= ORDERS {
                        let rest = if order + 2 >= ORDERS { waiting.len() } else { 1 };
                        for (order, timer) in waiting.drain(..rest).filter(|one| one.0 % 3 != 0) {
                            pay(order, timer.unwrap());
                        }
                    }
                }
            });
        }
    });
    eventually("the rest are closed", || service.stats().unwrap().pending == 0);
    let paid = paid.into_inner();
    assert!(paid >= ORDERS as u64 / 3);
    let stats = service.stats().unwrap();
    assert_eq!((stats.cancelled, stats.ended_by_fire), (paid, ORDERS as u64 - paid));
    service.stop().unwrap();
    let of = |state| STATES.iter().filter(|one| one.load(Ordering::SeqCst) == state).count() as u64;
    assert_eq!((of(OPEN), of(PAID), of(CLOSED)), (0, paid, ORDERS as u64 - paid));
    assert!(!WRONG.load(Ordering::SeqCst), "an order was closed twice, or after it was paid");
    balanced(&service);
}

/// Connections that are idle for too long are closed. What keeps them alive is a reset to later.
#[test]
fn idle_connections() {
    let (service, _) = manual();
    let queue = service.queue().unwrap();
    let idle = ms(100);
    let timers: Vec<Timer> = (0..10).map(|id| queue.after(idle, id).unwrap()).collect();
    for tick in 1..=20 {
        step(&service, ms(10));
        for (id, &timer) in timers.iter().enumerate() {
            if id % 2 == 0 && tick < 10 {
                assert_eq!(service.reset(timer, idle), Ok(Outcome::Done));
            }
        }
        let mut closed = Vec::new();
        queue.poll(&mut closed).unwrap();
        let closed: Vec<u64> = closed.iter().map(|event| event.token).collect();
        match tick {
            10 => assert_eq!(closed, [1, 3, 5, 7, 9]),
            19 => assert_eq!(closed, [0, 2, 4, 6, 8]),
            _ => assert_eq!(closed, [0; 0]),
        }
    }
}
