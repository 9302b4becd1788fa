//! T6 where timers are put off, come due at once, or are started inside callbacks: by deadline tick
//! always, and in one tick by arming, whichever call starts them.

use crate::support::*;
use std::ffi::c_void;
use std::sync::Mutex;

#[test]
fn t6_a_timer_that_was_put_off_comes_in_its_new_place() {
    for attach in [None, Some(SW_ATTACH_SHARED), Some(SW_ATTACH_EXCLUSIVE)] {
        let svc = Setup::manual(MS).start();
        if let Some(how) = attach {
            assert_eq!(svc.attach(0, how), SW_OK);
        }
        // Twice, so that the second time finds all that a first time makes.
        for round in 0..2 {
            let log = Log::new();
            let start = svc.now();
            let put_off: Vec<_> = (1..=5).map(|ms| svc.start(ms * MS, log)).collect();
            for ms in (10..200).step_by(10) {
                svc.start(ms * MS, log);
            }
            if round == 1 {
                svc.poll();
            }
            for (i, &timer) in (1..).zip(&put_off) {
                assert_eq!(svc.reset_at(timer, start + (35 * i) * MS), SW_OK);
            }
            assert_eq!(svc.run(SEC), 24);
            let ticks: Vec<_> = log.deadlines().iter().map(|at| at.div_ceil(MS)).collect();
            assert!(ticks.is_sorted(), "{attach:?}: {ticks:?}");
        }
    }
}

#[test]
fn t6_what_is_due_at_once_does_not_overtake_what_was_due_before() {
    let svc = Setup::manual(MS).start();
    let (door, log) = (svc.door(), Log::new());
    for round in 0..2 {
        // Its callback starts one that is due at that very instant, behind all that is left.
        svc.timer().run(move |_| _ = door.start(0, log)).start();
        for ms in 1..=20 {
            svc.start(ms * MS, log);
        }
        svc.advance(100 * MS);
        while svc.poll_budget(1) > 0 {}
        let ticks: Vec<_> = log.take().iter().map(|fire| fire.deadline.div_ceil(MS)).collect();
        assert_eq!(ticks.len(), 21);
        assert!(ticks.is_sorted(), "round {round}: {ticks:?}");
    }
}

/// What a callback needs that starts others.
struct Starter {
    door: Door,
    log: Log,
    started: Mutex<Vec<sw_timer>>,
    /// How many of them had fired when it was called again.
    ahead: Mutex<Vec<u64>>,
}

/// Starts 100 timers for the tick in which the periodic timer comes again, the short way and now and
/// then the long way.
unsafe extern "C-unwind" fn start_many(ctx: *mut c_void, _expiry: *const sw_expiry) {
    // SAFETY: the test keeps it as long as the timer lives.
    let starter = unsafe { &*ctx.cast_const().cast::<Starter>() };
    let (door, log) = (starter.door, starter.log);
    starter.ahead.lock().unwrap().push(log.count());
    let mut started = starter.started.lock().unwrap();
    for i in 0..if started.is_empty() { 100 } else { 0 } {
        started.push(match i % 81 {
            0 => door.timer().delay(10 * MS).log(log).start(),
            _ => door.start(10 * MS, log),
        });
    }
}

#[test]
fn t6_a_callback_starts_timers_for_the_tick_of_its_own_next_period() {
    let svc = Setup::manual(MS).start();
    let (door, log) = (svc.door(), Log::new());
    let starter = Starter { door, log, started: Mutex::default(), ahead: Mutex::default() };
    let ctx = std::ptr::from_ref(&starter).cast_mut().cast::<c_void>();
    let timer = svc.timer().delay(10 * MS).period(10 * MS);
    let every = timer.with(|spec| (spec.callback, spec.ctx) = (Some(start_many as _), ctx)).start();
    assert_eq!(svc.run(10 * MS), 1);
    assert_eq!(svc.run(10 * MS), 101);
    assert_eq!(log.timers(), *starter.started.lock().unwrap());
    // It is armed again when its callback is over, behind all that this has started.
    assert_eq!(*starter.ahead.lock().unwrap(), [0, 100]);
    assert_eq!(svc.cancel(every), SW_OK);
}
