//! The numbers: what they say on a clock that the test moves.

use super::details;
use crate::support::*;
use std::time::Duration;

/// Percentiles are never below the truth, and less than 3.2 % above it.
#[track_caller]
fn about(measured: u64, truth: u64) {
    assert!(measured >= truth && measured * 1_000 <= truth * 1_032, "{measured} for {truth}");
}

#[test]
fn lateness_is_from_the_deadline_to_the_slice() {
    let svc = Setup::manual(MS).shards(2).start();
    let log = Log::counting();
    for nth in 0..1_000 {
        svc.timer().shard(nth % 2).delay((1 + u64::from(nth)) * MS).log(log).start();
    }
    svc.advance(1_000 * MS);
    assert_eq!(svc.poll_shard(0) + svc.poll_shard(1), 1_000);
    let stats = svc.stats();
    about(stats.lateness_p50_ns, 499 * MS);
    about(stats.lateness_p99_ns, 989 * MS);
    about(stats.lateness_p999_ns, 998 * MS);
    assert_eq!(stats.lateness_max_ns, 999 * MS);
    // Shard 0 has the odd instants, shard 1 the even ones.
    assert_eq!(svc.stats_of(0).lateness_max_ns, 999 * MS);
    assert_eq!(svc.stats_of(1).lateness_max_ns, 998 * MS);
    about(svc.stats_of(1).lateness_p50_ns, 498 * MS);
}

#[test]
fn lateness_within_a_long_turn_goes_on() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let log = Log::counting();
    // Time goes on in the first callback of many: what comes in later slices is so much later.
    svc.timer().delay(MS).run(move |_| door.advance(50 * MS)).start();
    for _ in 0..999 {
        svc.start(MS, log);
    }
    svc.advance(MS);
    assert_eq!(svc.poll(), 1_000);
    let stats = svc.stats();
    about(stats.lateness_p50_ns, 50 * MS);
    assert_eq!(stats.lateness_max_ns, 50 * MS);
}

#[test]
fn lateness_of_what_a_queue_gets_is_that_of_its_delivery() {
    let svc = Setup::manual(MS).start();
    let queue = svc.queue();
    svc.timer().delay(MS).queue(queue).log(Log::counting()).start();
    svc.advance(4 * MS);
    assert_eq!(svc.poll(), 1);
    svc.advance(HOUR);
    assert_eq!(queue.poll(10).len(), 1);
    assert_eq!(svc.stats().lateness_max_ns, 3 * MS);
}

#[test]
fn callbacks_are_timed_each_where_slow_ones_are_reported() {
    let svc = Setup::manual(MS).on_slow(HOUR, |_, _, _, _| {}).start();
    for nth in 0..10 {
        let nap = Duration::from_millis(if nth == 7 { 20 } else { 1 });
        svc.timer().delay(MS).run(move |_| std::thread::sleep(nap)).start();
    }
    svc.advance(MS);
    assert_eq!(svc.poll(), 10);
    let stats = svc.stats();
    assert!((MS..=stats.callback_p99_ns).contains(&stats.callback_p50_ns), "{stats:?}");
    assert!(stats.callback_max_ns >= 20 * MS && stats.callback_p99_ns >= 20 * MS, "{stats:?}");
    assert_eq!(stats.slow_callbacks, 0, "none took an hour");
    assert!(details(svc.door(), 0).turn_max_ns >= 29 * MS);
}

#[test]
fn of_many_callbacks_one_in_64_is_timed_otherwise() {
    let svc = Setup::manual(MS).start();
    for _ in 0..64 {
        svc.timer().delay(MS).run(|_| std::thread::sleep(Duration::from_micros(200))).start();
    }
    svc.advance(MS);
    assert_eq!(svc.poll(), 64);
    let stats = svc.stats();
    assert!(stats.callback_p50_ns >= 200 * US, "{stats:?}");
    assert!(stats.callback_max_ns >= stats.callback_p999_ns);
}

#[test]
fn few_callbacks_are_timed_each() {
    let svc = Setup::manual(MS).start();
    let log = Log::counting();
    for turn in 1..100 {
        svc.start(MS, log);
        let nap = Duration::from_millis(if turn == 50 { 20 } else { 0 });
        svc.timer().delay(MS).run(move |_| std::thread::sleep(nap)).start();
        assert_eq!(svc.run(MS), 2);
    }
    let stats = svc.stats();
    assert!(stats.callback_max_ns >= 20 * MS && stats.callback_p50_ns < 20 * MS, "{stats:?}");
}

#[test]
fn lateness_grows_with_a_long_callback() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let stall = move |_: &sw_expiry| {
        std::thread::sleep(Duration::from_millis(1));
        door.advance(60 * MS);
    };
    svc.timer().delay(MS).run(stall).start();
    svc.start(MS, Log::counting());
    svc.advance(MS);
    assert_eq!(svc.poll(), 2);
    assert_eq!(svc.stats().lateness_max_ns, 60 * MS);
}

#[test]
fn the_wheel_tells_what_it_holds() {
    let svc = Setup::manual(MS).start();
    let log = Log::counting();
    let door = svc.door();
    assert_eq!(svc.poll(), 0);
    // One bucket of level 0, two of level 1, one of level 2.
    let delays = [10 * MS, 100 * MS, 200 * MS, 5_000 * MS];
    let timers: Vec<_> = delays.iter().map(|&delay| svc.start(delay, log)).collect();
    let more: Vec<_> = (0..200).map(|_| svc.start(5_000 * MS, log)).collect();
    assert_eq!(details(door, 0).inbox_depth, 204, "nobody has taken them in");
    assert_eq!(svc.poll(), 0);
    let told = details(door, SW_SHARD_ANY);
    assert_eq!((told.inbox_depth, told.reminders_live, told.reminders_dead), (0, 204, 0));
    assert_eq!(told.buckets_occupied, [1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(told.bucket_longest, 201);
    assert_eq!(told.turns, 2);
    // Cancels leave dead reminders.
    for &timer in &more[..150] {
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    let told = details(door, 0);
    assert_eq!((told.reminders_live, told.reminders_dead), (54, 150));
    assert_eq!((told.slots_retired, told.slots_cached), (0, told.slots_allocated - 54));
    svc.advance(10 * MS);
    assert_eq!(svc.poll(), 1);
    let told = details(door, 0);
    assert_eq!(told.buckets_occupied[..3], [0, 2, 1]);
    assert_eq!(svc.cancel(timers[1]), SW_OK);
}

#[test]
fn wakeups_say_why() {
    let svc = Setup::threaded(1).start();
    let log = Log::counting();
    let door = svc.door();
    let sleeps = || task_named("wheel-0").is_some_and(asleep);
    // On a busy machine it may not be asleep yet when a timer comes, or when it is due: once more, then.
    let mut started = 0;
    eventually("woken by a deadline", || {
        svc.start(20 * MS, log);
        started += 1;
        eventually("it fires", || log.count() == started);
        details(door, 0).wakeups_deadline > 0
    });
    let early = details(door, 0).wakeups_earlier;
    eventually("woken for an earlier one", || {
        let far = svc.start(HOUR, log);
        eventually("it is asleep", sleeps);
        svc.start(10 * MS, log);
        started += 1;
        eventually("it fires", || log.count() == started);
        svc.cancel(far);
        details(door, 0).wakeups_earlier > early
    });
    // Later ones, more than an inbox is to hold.
    eventually("woken because much waits", || {
        for _ in 0..2_000 {
            let timer = svc.start(2 * HOUR, log);
            assert_eq!(svc.cancel(timer), SW_OK);
        }
        details(door, 0).wakeups_pressure > 0
    });
    let told = details(door, 0);
    let known = told.wakeups_deadline + told.wakeups_earlier + told.wakeups_pressure;
    assert!(known <= svc.stats().wakeups, "{told:?}");
}

#[test]
fn a_read_waits_for_no_shard() {
    static HELD: Gate = Gate::new();
    static STARTED: Gate = Gate::new();
    let svc = Setup::threaded(1).on_slow(HOUR, |_, _, _, _| {}).start();
    let far = svc.start(HOUR, Log::counting());
    let hold = |_: &sw_expiry| {
        STARTED.open();
        HELD.wait();
    };
    svc.timer().run(hold).start();
    STARTED.wait();
    assert_eq!(svc.stats().started, 2);
    assert!(details(svc.door(), 0).callback_running_ns > 0);
    for print in [sw_stats_prometheus, sw_stats_report] {
        let mut needed = 0;
        // SAFETY: no buffer, no room.
        assert_eq!(unsafe { print(svc.raw(), std::ptr::null_mut(), 0, &mut needed) }, SW_OK);
        assert!(needed > 500);
    }
    assert_eq!(super::visit::visit(svc.door(), 0, 10)[0].timer, far);
    assert!(!HELD.is_open(), "its callback still runs");
    HELD.open();
}

#[test]
fn numbers_of_a_stopped_service_stay() {
    let svc = Setup::manual(MS).start();
    svc.start(MS, Log::counting());
    svc.advance(3 * MS);
    assert_eq!(svc.poll(), 1);
    assert_eq!(svc.stop(), SW_OK);
    assert_eq!(svc.stats().lateness_max_ns, 2 * MS);
    assert_eq!(details(svc.door(), SW_SHARD_ANY).turns, 1);
}

#[test]
fn details_refuse_what_stats_refuse() {
    let svc = Setup::manual(MS).start();
    let mut one = details(svc.door(), 0);
    let full = size_of::<sw_details>();
    for size in [0, 1, 8, full - 1] {
        one.size = size;
        // SAFETY: `one` is writable, and a size that is too small is refused.
        assert_eq!(unsafe { sw_details_read(svc.raw(), 0, &mut one) }, SW_INVALID);
    }
    one.size = full;
    // SAFETY: as above; NULL is refused.
    unsafe {
        assert_eq!(sw_details_read(svc.raw(), 1, &mut one), SW_INVALID);
        assert_eq!(sw_details_read(svc.raw(), 0, std::ptr::null_mut()), SW_INVALID);
        assert_eq!(sw_details_read(std::ptr::null_mut(), 0, &mut one), SW_INVALID);
    }
}
