//! Memory comes back after a peak: `sw_service_trim`.

use super::details;
use crate::support::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

fn trim(door: Door) {
    // SAFETY: the service lives.
    assert_eq!(unsafe { sw_service_trim(door.raw()) }, SW_OK);
}

const MIB: u64 = 1 << 20;

/// The wheel's reminders and the free slots are gone; what stays is told.
fn comes_back(svc: &Svc, count: usize, start: impl Fn(u64) -> sw_timer, turn: impl Fn()) {
    let door = svc.door();
    let warm: Vec<_> = (0..1_000).map(&start).collect();
    turn();
    assert_eq!(svc.cancel_batch(&warm), Ok(1_000));
    turn();
    // The test's own list is there from the beginning.
    let mut timers = vec![SW_TIMER_NONE; count];
    timers.fill(1);
    let before = rss_bytes();
    for (nth, timer) in timers.iter_mut().enumerate() {
        *timer = start(nth as u64);
        if nth % 100_000 == 0 {
            turn();
        }
    }
    turn();
    let peak = rss_bytes();
    for &timer in &timers {
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    turn();
    trim(door);
    turn();
    let near = || rss_bytes() <= before + 16 * MIB;
    let told = || {
        let (after, counted) = (rss_bytes(), svc.stats().memory_bytes);
        format!("{before} before, {peak} at the peak, {after} after; {counted} counted")
    };
    for _ in 0..1_000 {
        if near() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    println!("{}", told());
    assert!(peak > before + count as u64 * 36, "{}", told());
    assert!(near(), "{}", told());
    assert!(svc.stats().memory_bytes < 16 * MIB, "{}", told());
    // It grows and serves again, and no old handle comes to life.
    let old: HashSet<_> = timers.iter().copied().collect();
    for timer in &mut timers[..count / 10] {
        *timer = start(0);
        assert!(!old.contains(timer));
    }
    for &timer in old.iter().take(100_000) {
        assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
    }
    assert_eq!(svc.pending(), count as u64 / 10);
    assert_eq!(svc.cancel_batch(&timers[..count / 10]), Ok(count / 10));
}

fn threaded(name: &str, count: usize) {
    alone(name, || {
        let svc = Setup::threaded(1).start();
        let (door, log) = (svc.door(), Log::counting());
        let plain = move |nth: u64| {
            let mut timer = SW_TIMER_NONE;
            let delay = HOUR + nth * 7_919 % (8 * HOUR);
            // SAFETY: the log takes its own context.
            let status = unsafe {
                sw_timer_start(door.raw(), delay, Some(Log::callback), log.ctx(), &mut timer)
            };
            assert_eq!(status, SW_OK);
            timer
        };
        let settle = || std::thread::sleep(std::time::Duration::from_millis(10));
        comes_back(&svc, count, plain, settle);
    });
}

#[test]
fn of_half_a_million_timers() {
    threaded("trim::of_half_a_million_timers", 500_000);
}

#[test]
#[ignore = "5 million timers"]
fn of_five_million_timers() {
    threaded("trim::of_five_million_timers", 5_000_000);
}

#[test]
fn of_timers_with_extras_on_a_driven_shard() {
    alone("trim::of_timers_with_extras_on_a_driven_shard", || {
        let svc = Setup::driven().start();
        let (door, log) = (svc.door(), Log::counting());
        let start = move |nth: u64| {
            door.timer().delay(HOUR + nth * MS).period(HOUR).slack(1).log(log).start()
        };
        comes_back(&svc, 200_000, start, || assert_eq!(door.poll(), 0));
    });
}

#[test]
fn of_one_that_lives_nothing_is_taken() {
    let svc = Setup::manual(MS).start();
    let (door, log) = (svc.door(), Log::new());
    let timers: Vec<_> = (0..50_000).map(|nth| svc.start((1 + nth) * MS, log)).collect();
    let kept: Vec<_> = timers.iter().copied().step_by(1_000).collect();
    for timer in timers.iter().filter(|timer| !kept.contains(timer)) {
        assert_eq!(svc.cancel(*timer), SW_OK);
    }
    svc.poll();
    let before = details(door, 0);
    trim(door);
    svc.poll();
    let after = details(door, 0);
    assert_eq!((after.reminders_live, after.reminders_dead), (50, 0), "{before:?}");
    assert!(after.slots_allocated < before.slots_allocated / 2, "{after:?}");
    for &timer in &kept {
        assert!(svc.remaining(timer).is_ok());
    }
    svc.advance(HOUR);
    svc.poll();
    assert_eq!(log.timers(), kept);
}

#[test]
fn while_timers_come_and_go() {
    let svc = Setup::threaded(2).start();
    let (door, log) = (svc.door(), Log::counting());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = HashSet::new();
                for round in 0..60 {
                    let timers: Vec<_> =
                        (0..2_000).map(|nth| door.start(nth % 3 * HOUR, log)).collect();
                    for &timer in &timers {
                        assert!(seen.insert(timer), "a handle comes once: round {round}");
                        door.cancel(timer);
                    }
                }
                over.store(true, Ordering::Relaxed);
            });
        }
        while !over.load(Ordering::Relaxed) {
            trim(door);
        }
    });
    eventually("all have ended", || svc.pending() == 0);
}
