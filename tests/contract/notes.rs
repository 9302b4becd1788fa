//! T7, C3, S8: deadlines that do not fit in a timer's word (here: slack and periods off the tick's grid) cost memory
//! elsewhere, which comes back too.

use crate::support::*;

/// What of the service's own memory may go to them: 2^18 of 24 bytes, an inbox of as many entries.
const MOST: u64 = 12 << 20;

/// A deadline that is no multiple of any tick used here, each time a later one.
fn later(nth: u64) -> u64 {
    HOUR + nth * 7 * MS + 1
}

#[test]
fn t7_an_unpolled_shard_fills_up_with_resets_and_has_room_after_its_next_turn() {
    let svc = Setup::manual(MS).start();
    let timer = svc.timer().delay(HOUR).slack(MS / 3).log(Log::counting()).start();
    let refused = (0..1_000_000).position(|nth| svc.reset_at(timer, later(nth)) != SW_OK);
    let refused = refused.expect("a million resets were taken") as u64;
    assert!(refused > 200_000, "full after {refused}");
    assert_eq!(svc.reset_at(timer, later(refused)), SW_FULL);
    assert_eq!(svc.remaining(timer), Ok(later(refused - 1)), "nothing has changed");
    assert!(svc.stats().memory_bytes < MOST, "{}", svc.stats().memory_bytes);
    assert_eq!(svc.reset_at(timer, 2 * HOUR), SW_OK, "one that fits needs no room");
    assert!(svc.readable(), "under pressure");
    assert_eq!(svc.poll(), 0);
    assert!(!svc.readable());
    for nth in 0..200_000 {
        assert_eq!(svc.reset_at(timer, later(nth)), SW_OK);
    }
    assert!(svc.stats().memory_bytes < MOST);
}

#[test]
fn t7_an_unpolled_shard_fills_up_with_starts_and_has_room_after_its_next_turn() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let start = |nth| svc.timer().delay(later(nth)).period(MS + 1).log(log).try_start();
    let mut started = 0;
    let refused = loop {
        match start(started) {
            Ok(timer) => assert_eq!(svc.cancel(timer), SW_OK),
            Err(status) => break status,
        }
        started += 1;
        assert!(started < 1_000_000, "a million starts were taken");
    };
    assert_eq!(refused, SW_FULL);
    assert_eq!(log.dropped(), started + 1, "each, and the refused one");
    assert!(svc.stats().memory_bytes < MOST, "{}", svc.stats().memory_bytes);
    assert_eq!(svc.poll(), 0);
    let timer = start(0).expect("there is room again");
    assert_eq!(svc.cancel(timer), SW_OK);
}

#[test]
fn c3_an_owner_never_fills_up() {
    for how in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
        let svc = Setup::manual(MS).start();
        assert_eq!(svc.attach(0, how), SW_OK);
        let log = Log::counting();
        let timer = svc.timer().delay(HOUR).slack(MS / 3).log(log).start();
        for nth in 0..400_000 {
            assert_eq!(svc.reset_at(timer, later(nth)), SW_OK);
            let other = svc.timer().delay(later(nth)).period(MS + 1).log(log).start();
            assert_eq!(svc.cancel(other), SW_OK);
        }
        assert!(svc.stats().memory_bytes < 1 << 20, "{}", svc.stats().memory_bytes);
    }
}

#[test]
fn c3_a_callback_never_fills_up() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let log = Log::counting();
    let calls = move |_: &sw_expiry| {
        for nth in 0..400_000 {
            let other = door.timer().delay(later(nth)).period(MS + 1).log(log).start();
            assert_eq!(door.reset_at(other, later(nth + 1)), SW_OK);
            assert_eq!(door.cancel(other), SW_OK);
        }
    };
    svc.timer().delay(MS).run(calls).start();
    assert_eq!(svc.run(MS), 1);
    assert!(svc.stats().memory_bytes < 2 << 20, "{}", svc.stats().memory_bytes);
}

#[test]
fn t7_a_sleeping_thread_is_woken_before_it_is_too_much() {
    let svc = Setup::threaded(1).start();
    let timer = svc.timer().delay(HOUR).slack(MS / 3).log(Log::counting()).start();
    let start = svc.now();
    for nth in 0..1_000_000 {
        // Where the thread gets no CPU meanwhile the shard may fill up, for as long as that.
        eventually("there is room", || svc.reset_at(timer, start + later(nth)) == SW_OK);
    }
    assert!(svc.stats().memory_bytes < MOST, "{}", svc.stats().memory_bytes);
}

#[test]
fn s8_a_burst_serves_a_million_points_without_memory_for_each() {
    for slack in [0, MS / 3] {
        let svc = Setup::manual(MS).start();
        let log = Log::counting();
        let burst = SW_TIMER_BURST;
        svc.timer().delay(MS).period(MS + 1).slack(slack).flags(burst).log(log).start();
        let before = svc.stats().memory_bytes;
        assert_eq!(svc.run(500_000 * MS), log.count() as usize);
        assert!(log.count() > 499_000);
        let after = svc.stats().memory_bytes;
        assert!(after < before + (1 << 19), "{before} to {after}");
    }
}
