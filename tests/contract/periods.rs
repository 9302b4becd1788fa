//! F5: periodic timers: the grid, what is missed, bursts, fixed delays, new grids.

use crate::due;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Deadline and missed of each call since the last look.
fn served(log: Log) -> Vec<(u64, u64)> {
    log.take().iter().map(|fire| (fire.deadline, fire.missed)).collect()
}

#[test]
fn f5_the_default_keeps_the_grid_and_says_what_it_skipped() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timer = svc.start_every(10 * MS, log);
    assert_eq!(svc.remaining(timer), Ok(10 * MS));
    assert_eq!(svc.run_to(10 * MS - 1), 0);
    assert_eq!(svc.run_to(10 * MS), 1);
    assert_eq!(served(log), [(10 * MS, 0)]);
    assert_eq!(svc.remaining(timer), Ok(10 * MS));
    // A jump: the latest due point is served, the three before it are missed.
    assert_eq!(svc.run_to(55 * MS), 1);
    assert_eq!(served(log), [(50 * MS, 3)]);
    assert_eq!(svc.remaining(timer), Ok(5 * MS));
    // Late within the period: nothing missed, the grid stays.
    assert_eq!(svc.run_to(60 * MS), 1);
    assert_eq!(svc.run_to(79 * MS), 1);
    assert_eq!(svc.run_to(80 * MS), 1);
    assert_eq!(served(log), [(60 * MS, 0), (70 * MS, 0), (80 * MS, 0)]);
    assert_eq!(svc.stats().missed, 3);
    assert_eq!(svc.stats().fired, 5);
    assert_eq!(svc.stats().ended_by_fire, 0);
    assert_eq!(svc.pending(), 1);
    assert_eq!(svc.cancel(timer), SW_OK);
}

#[test]
fn f5_the_first_deadline_is_the_delay_then_come_the_periods() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.advance(3 * MS);
    svc.timer().delay(0).period(10 * MS).log(log).start();
    svc.timer().delay(7 * MS).period(100 * MS).log(log).start();
    svc.timer().at(4 * MS).period(1_000 * MS).log(log).start();
    assert_eq!(svc.poll(), 1);
    assert_eq!(served(log), [(3 * MS, 0)]);
    for _ in 0..110 {
        svc.run(MS);
    }
    let expected = [4, 10, 13, 23, 33, 43, 53, 63, 73, 83, 93, 103, 110, 113];
    let expected: Vec<_> = expected.iter().map(|&ms| (ms * MS, 0)).collect();
    assert_eq!(served(log), expected);
}

#[test]
fn f5_a_first_deadline_in_the_past_is_on_the_grid() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.advance(55 * MS);
    svc.timer().at(10 * MS).period(10 * MS).log(log).start();
    assert_eq!(svc.poll(), 1);
    assert_eq!(served(log), [(50 * MS, 4)]);
    assert_eq!(svc.run_to(60 * MS), 1);
    assert_eq!(served(log), [(60 * MS, 0)]);
}

#[test]
fn f5_a_grid_that_lies_between_ticks() {
    // Points 2.5, 5, 7.5, 10 … ms are due at 3, 5, 8, 10 …
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.start_every(2_500 * US, log);
    let mut at = Vec::new();
    for _ in 0..10 {
        if svc.run(MS) == 1 {
            at.push(svc.now() / MS);
        }
    }
    assert_eq!(at, [3, 5, 8, 10]);
    assert_eq!(served(log), [2_500, 5_000, 7_500, 10_000].map(|us| (us * US, 0)));
    // At 17.7 the latest point is 17.5, whose tick has not come: it may be served then, or at 18.
    assert_eq!(svc.run_to(17_700 * US), 1);
    svc.run_to(18 * MS);
    let served = served(log);
    assert!(
        served == [(17_500 * US, 2)] || served == [(15 * MS, 1), (17_500 * US, 0)],
        "{served:?}"
    );
}

#[test]
fn f5_a_period_shorter_than_a_tick() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timer = svc.start_every(100, log);
    for tick in 1..=20 {
        assert_eq!(svc.run(MS), 1);
        assert_eq!(served(log), [(tick * MS, 9_999)]);
    }
    let fast = svc.start_every(1, log);
    assert_eq!(svc.run(MS), 2);
    assert_eq!(svc.cancel(fast), SW_OK);
    assert_eq!(svc.cancel(timer), SW_OK);
    let burst = svc.timer().delay(1).period(1_000).flags(SW_TIMER_BURST).log(log).start();
    assert_eq!(svc.run(MS), 1_000, "1 ns, 1,001 ns, … within a millisecond");
    assert_eq!(svc.cancel(burst), SW_OK);
}

#[test]
fn f5_burst_serves_each_one_in_one_poll() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timer = svc.timer().delay(10 * MS).period(10 * MS).flags(SW_TIMER_BURST).log(log).start();
    svc.advance(55 * MS);
    assert_eq!(svc.poll(), 5);
    assert!(log.fires().iter().all(|fire| fire.now == 55 * MS && fire.timer == timer));
    assert_eq!(served(log), [10, 20, 30, 40, 50].map(|ms| (ms * MS, 0)));
    assert_eq!(svc.poll(), 0);
    assert_eq!(svc.run_to(60 * MS), 1);
    assert_eq!(served(log), [(60 * MS, 0)]);
    assert_eq!(svc.stats().missed, 0);
    assert_eq!(svc.stats().fired, 6);
}

#[test]
fn f5_burst_as_far_as_the_budget_goes() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timer = svc.timer().delay(10 * MS).period(10 * MS).flags(SW_TIMER_BURST).log(log).start();
    svc.advance(55 * MS);
    assert_eq!(svc.poll_budget(2), 2);
    assert_eq!(served(log), [(10 * MS, 0), (20 * MS, 0)]);
    assert!(svc.next() <= svc.now());
    assert_eq!(svc.poll_budget(2), 2);
    assert_eq!(svc.poll_budget(2), 1);
    assert_eq!(svc.poll_budget(2), 0);
    assert_eq!(served(log), [30, 40, 50].map(|ms| (ms * MS, 0)));
    // Cancelled in the middle of a burst, it is over.
    svc.advance(50 * MS);
    assert_eq!(svc.poll_budget(2), 2);
    assert_eq!(svc.cancel(timer), SW_OK);
    assert_eq!(svc.poll(), 0);
    assert_eq!(log.dropped(), 1);
}

#[test]
fn f5_burst_keeps_its_place_among_others() {
    // T6: by deadline tick, also across a jump.
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.timer().delay(10 * MS).period(10 * MS).flags(SW_TIMER_BURST).log(log).start();
    svc.start(15 * MS, log);
    svc.start(25 * MS, log);
    svc.advance(30 * MS);
    assert_eq!(svc.poll(), 5);
    assert_eq!(log.deadlines(), [10, 15, 20, 25, 30].map(|ms| ms * MS));
}

#[test]
fn f5_burst_cancelled_by_its_own_callback() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let ran = Arc::new(AtomicU64::new(0));
    let inside = ran.clone();
    let call = move |expiry: &sw_expiry| {
        if inside.fetch_add(1, Ordering::SeqCst) == 2 {
            assert_eq!(door.cancel(expiry.timer), SW_OK);
        }
    };
    svc.timer().delay(MS).period(MS).flags(SW_TIMER_BURST).run(call).start();
    assert_eq!(svc.run(100 * MS), 3);
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    assert_eq!(svc.pending(), 0);
}

#[test]
fn f5_fixed_delay_counts_from_the_callbacks_end() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let log = Log::new();
    let call = move |expiry: &sw_expiry| {
        door.advance(7 * MS);
        assert_eq!(expiry.missed, 0);
        // SAFETY: the log is a log, the expiry is one.
        unsafe { Log::callback(log.ctx(), expiry) };
    };
    let spec = svc.timer().delay(10 * MS).period(10 * MS).flags(SW_TIMER_FIXED_DELAY);
    let timer = spec.run(call).start();
    assert_eq!(svc.run_to(10 * MS), 1);
    assert_eq!(svc.now(), 17 * MS);
    assert_eq!(svc.remaining(timer), Ok(10 * MS));
    assert_eq!(svc.run_to(27 * MS - 1), 0);
    assert_eq!(svc.run_to(27 * MS), 1);
    // A jump over many periods: one call, none is called missed, no catching up.
    assert_eq!(svc.run_to(100 * MS), 1);
    assert_eq!(svc.poll(), 0);
    assert_eq!(svc.run_to(117 * MS - 1), 0);
    assert_eq!(svc.run_to(117 * MS), 1);
    assert_eq!(served(log), [10, 27, 44, 117].map(|ms| (ms * MS, 0)));
    assert_eq!(svc.stats().missed, 0);
}

#[test]
fn f5_fixed_delay_in_real_time() {
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    let call = move |expiry: &sw_expiry| {
        // SAFETY: the log is a log, the expiry is one.
        unsafe { Log::callback(log.ctx(), expiry) };
        std::thread::sleep(Duration::from_millis(15));
    };
    let spec = svc.timer().delay(MS).period(10 * MS).flags(SW_TIMER_FIXED_DELAY);
    let timer = spec.run(call).start();
    eventually("a few", || log.count() >= 5);
    svc.cancel_wait(timer);
    for pair in log.fires().windows(2) {
        assert!(pair[1].now - pair[0].now >= 25 * MS, "{pair:?}");
    }
}

#[test]
fn f5_bad_combinations_are_invalid() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let none = std::ptr::null_mut();
    // SAFETY: a live service, a log and its callback.
    let every = unsafe { sw_timer_start_every(svc.raw(), 0, Some(Log::callback), log.ctx(), none) };
    assert_eq!(every, SW_INVALID);
    for (period, flags) in [
        (0, SW_TIMER_FIXED_DELAY),
        (0, SW_TIMER_BURST),
        (0, SW_TIMER_FIXED_DELAY | SW_TIMER_BURST),
        (0, SW_TIMER_ABSOLUTE | SW_TIMER_BURST),
        (MS, SW_TIMER_FIXED_DELAY | SW_TIMER_BURST),
        (MS, SW_TIMER_ABSOLUTE | SW_TIMER_FIXED_DELAY | SW_TIMER_BURST),
    ] {
        let timer = svc.timer().delay(MS).period(period).flags(flags).log(log);
        assert_eq!(timer.try_start(), Err(SW_INVALID), "{period} {flags:b}");
    }
    assert_eq!(svc.stats().started, 0);
    assert_eq!(log.dropped(), 6);
    // The good ones, for comparison.
    for flags in [0, SW_TIMER_ABSOLUTE, SW_TIMER_FIXED_DELAY, SW_TIMER_BURST] {
        let timer = svc.timer().delay(MS).period(MS).flags(flags).log(log).start();
        assert_eq!(svc.cancel(timer), SW_OK);
    }
}

#[test]
fn f5_no_drift_in_a_million_periods() {
    for (tick, period) in [(MS, 1_234_567), (MS, MS), (US, 999), (1_234_567, 5_000_001)] {
        let svc = Setup::manual(tick).start();
        let last = Arc::new(AtomicU64::new(0));
        let inside = last.clone();
        let call = move |expiry: &sw_expiry| {
            let points = expiry.missed + 1;
            let before = inside.fetch_add(points * period, Ordering::Relaxed);
            assert_eq!(expiry.deadline_ns, before + points * period, "off the grid");
        };
        svc.timer().delay(period).period(period).run(call).start();
        for point in 1..=1_000_000u64 {
            svc.run_to(due(tick, point * period).unwrap());
        }
        // Where ticks are coarser than the period two points may share a call.
        assert_eq!(last.load(Ordering::Relaxed), 1_000_000 * period);
    }
}

#[test]
fn f5_no_drift_in_a_burst_of_a_million() {
    let svc = Setup::manual(MS).start();
    let log = Log::counting();
    let period = 1_234_567;
    let timer = svc.timer().delay(period).period(period).flags(SW_TIMER_BURST).log(log).start();
    assert_eq!(svc.run(1_000_000 * period + MS), 1_000_000);
    assert_eq!(log.missed(), 0);
    assert_eq!(svc.remaining(timer), Ok(period - MS));
}

#[test]
fn f5_a_jump_over_a_million_periods_is_counted_exactly() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.start_every(3 * MS + 1, log);
    assert_eq!(svc.run_to(1 << 55), 1);
    let latest = log.last().deadline;
    let points = latest / (3 * MS + 1);
    assert_eq!(latest % (3 * MS + 1), 0);
    // A point whose deadline has passed and whose tick has not may be served or left.
    assert!(latest <= 1 << 55);
    assert!(due(MS, latest + 3 * MS + 1).unwrap() > 1 << 55);
    assert_eq!(log.last().missed, points - 1);
    assert_eq!(svc.stats().missed, points - 1);
}

#[test]
fn f5_a_real_clock_stays_on_the_grid() {
    let svc = Setup::threaded(1).start();
    let log = Log::new();
    let timer = svc.start_every(7_777_777, log);
    eventually("some periods", || log.count() >= 30);
    svc.cancel_wait(timer);
    let fires = log.fires();
    for pair in fires.windows(2) {
        let points = pair[1].missed + 1;
        assert_eq!(pair[1].deadline - pair[0].deadline, points * 7_777_777, "{pair:?}");
    }
}

#[test]
fn f5_a_reset_starts_a_new_grid() {
    for flags in [0, SW_TIMER_BURST, SW_TIMER_FIXED_DELAY] {
        let svc = Setup::manual(MS).start();
        let log = Log::new();
        let timer = svc.timer().delay(10 * MS).period(10 * MS).flags(flags).log(log).start();
        svc.run_to(10 * MS);
        svc.advance(2 * MS);
        assert_eq!(svc.reset(timer, 7 * MS), SW_OK);
        assert_eq!(svc.remaining(timer), Ok(7 * MS));
        for _ in 0..40 {
            svc.run(MS);
        }
        assert_eq!(served(log), [10, 19, 29, 39, 49].map(|ms| (ms * MS, 0)), "flags {flags}");
        // To an earlier point as well, and by an instant.
        assert_eq!(svc.reset_at(timer, 54 * MS), SW_OK);
        for _ in 0..15 {
            svc.run(MS);
        }
        assert_eq!(served(log), [54, 64].map(|ms| (ms * MS, 0)), "flags {flags}");
        // What was due and not yet served is forgotten.
        svc.advance(100 * MS);
        assert_eq!(svc.reset(timer, 5 * MS), SW_OK);
        assert_eq!(svc.poll(), 0);
        assert_eq!(svc.run(5 * MS), 1);
        assert_eq!(served(log), [(svc.now(), 0)]);
    }
}

#[test]
fn f5_a_reset_inside_the_callback_starts_a_new_grid() {
    for flags in [0, SW_TIMER_BURST, SW_TIMER_FIXED_DELAY] {
        let svc = Setup::manual(MS).start();
        let door = svc.door();
        let log = Log::new();
        let call = move |expiry: &sw_expiry| {
            if log.count() == 0 {
                assert_eq!(door.reset(expiry.timer, 3 * MS), SW_OK);
            }
            // SAFETY: the log is a log, the expiry is one.
            unsafe { Log::callback(log.ctx(), expiry) };
        };
        svc.timer().delay(10 * MS).period(10 * MS).flags(flags).run(call).start();
        // Also when points are waiting: the new grid begins 3 ms from the call at 25 ms.
        assert_eq!(svc.run_to(25 * MS), 1, "flags {flags}");
        for _ in 0..25 {
            svc.run(MS);
        }
        let first = if flags == 0 { (20 * MS, 1) } else { (10 * MS, 0) };
        assert_eq!(served(log), [first, (28 * MS, 0), (38 * MS, 0), (48 * MS, 0)]);
    }
}

#[test]
fn f5_a_reset_from_elsewhere_while_the_callback_runs_starts_a_new_grid() {
    for flags in [0, SW_TIMER_BURST, SW_TIMER_FIXED_DELAY] {
        let svc = Setup::manual(MS).start();
        let door = svc.door();
        let log = Log::new();
        let (inside, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
        let (entered, leave) = (inside.clone(), go.clone());
        let call = move |expiry: &sw_expiry| {
            entered.open();
            leave.wait();
            // SAFETY: the log is a log, the expiry is one.
            unsafe { Log::callback(log.ctx(), expiry) };
        };
        let timer = svc.timer().delay(10 * MS).period(10 * MS).flags(flags).run(call).start();
        svc.advance(10 * MS);
        std::thread::scope(|scope| {
            scope.spawn(move || assert_eq!(door.poll(), 1));
            inside.wait();
            assert_eq!(svc.reset(timer, 4 * MS), SW_OK, "flags {flags}");
            assert_eq!(svc.remaining(timer), Ok(4 * MS));
            go.open();
        });
        for _ in 0..15 {
            svc.run(MS);
        }
        assert_eq!(served(log), [10, 14, 24].map(|ms| (ms * MS, 0)), "flags {flags}");
    }
}
