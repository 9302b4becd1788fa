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

/// In the order of deadlines too, whatever the wheel had seen before they were armed.
#[test]
fn t6_what_is_armed_too_late_comes_by_its_deadline() {
    for attach in [None, Some(SW_ATTACH_SHARED), Some(SW_ATTACH_EXCLUSIVE)] {
        for (turn_before, many) in [(false, 5), (true, 5), (true, 64), (true, 65), (true, 1_000)] {
            let svc = Setup::manual(MS).start();
            if let Some(how) = attach {
                assert_eq!(svc.attach(0, how), SW_OK);
            }
            svc.advance(2_000 * MS);
            if turn_before {
                svc.poll();
            }
            let log = Log::new();
            let timers: Vec<_> = (0..many).map(|n| svc.start_at(n * 7 % 40 * MS, log)).collect();
            svc.cancel(timers[3]);
            svc.start_at(2_000 * MS + 1, log);
            assert_eq!(svc.run(MS), many as usize);
            let deadlines = log.deadlines();
            assert!(deadlines.is_sorted(), "{attach:?} {turn_before} {many}: {deadlines:?}");
        }
    }
}

#[test]
fn t6_what_a_callback_arms_too_late_comes_by_its_deadline() {
    let svc = Setup::manual(MS).start();
    let (door, log) = (svc.door(), Log::new());
    let arms = move |_: &sw_expiry| {
        for ms in [5, 3, 10, 1, 10, 3] {
            door.start_at(ms * MS, log);
        }
    };
    svc.timer().delay(10 * MS).run(arms).start();
    assert_eq!(svc.run(10 * MS), 1);
    assert_eq!(svc.poll(), 6);
    assert_eq!(log.deadlines(), [1, 3, 3, 5, 10, 10].map(|ms| ms * MS));
    let timers = log.timers();
    assert!(timers[1] != timers[2] && timers[4] != timers[5]);
}
