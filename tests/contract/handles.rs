//! C7: handles never alias.

use crate::Random;
use crate::support::*;
use std::collections::HashSet;

/// Every call that takes a handle finds nothing behind this one, and says so.
#[track_caller]
fn nothing_there(door: Door, timer: sw_timer) {
    let fine = |status| status == SW_NOT_FOUND || status == SW_INVALID;
    assert!(fine(door.cancel(timer)), "cancel {timer:#x}");
    assert!(fine(door.cancel_wait(timer)), "cancel_wait {timer:#x}");
    assert!(fine(door.reset(timer, MS)), "reset {timer:#x}");
    assert!(fine(door.reset_at(timer, 0)), "reset_at {timer:#x}");
    assert!(fine(door.remaining(timer).unwrap_err()), "remaining {timer:#x}");
    match door.cancel_batch(&[timer]) {
        Ok(count) => assert_eq!(count, 0, "cancel_batch {timer:#x}"),
        Err(status) => assert_eq!(status, SW_INVALID),
    }
    let _ = sw_timer_shard(timer);
}

#[test]
fn c7_a_stale_handle_stays_not_found() {
    // One slot, used over and over: every old handle is dead for ever and none comes again.
    let svc = Setup::manual(MS).max_timers(1).start();
    let log = Log::counting();
    let mut old = Vec::new();
    for round in 0..20_000u64 {
        let timer = svc.start(MS, log);
        assert_ne!(timer, SW_TIMER_NONE);
        if round % 2 == 0 {
            assert_eq!(svc.cancel(timer), SW_OK);
        } else {
            assert_eq!(svc.run(MS), 1);
        }
        old.push(timer);
    }
    let unique: HashSet<_> = old.iter().collect();
    assert_eq!(unique.len(), old.len(), "a handle came twice");
    let live = svc.start(HOUR, log);
    for &timer in &old {
        assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
        assert_eq!(svc.reset(timer, 0), SW_NOT_FOUND);
        assert_eq!(svc.remaining(timer), Err(SW_NOT_FOUND));
    }
    assert_eq!(svc.remaining(live), Ok(HOUR), "untouched");
    assert_eq!(svc.cancel(live), SW_OK);
}

#[test]
fn c7_zero_all_ones_and_invented_handles() {
    for setup in [Setup::manual(MS), Setup::manual(MS).shards(3), Setup::threaded(2)] {
        let svc = setup.start();
        let log = Log::counting();
        // Also on a service that has never had a timer.
        for timer in [SW_TIMER_NONE, u64::MAX, 1, u64::MAX - 1] {
            nothing_there(svc.door(), timer);
        }
        let live: Vec<_> = (0..1_000).map(|i| svc.start(HOUR + i, log)).collect();
        let mut random = Random(0xfeed);
        for _ in 0..200_000 {
            // All over the range, and with the upper or lower parts of a live one.
            let noise = random.next();
            let like = live[random.below(1_000) as usize];
            let timer = match noise % 4 {
                0 => noise,
                1 => like ^ (1 << random.below(64)),
                2 => (like & 0xffff_ffff) | (noise << 32),
                _ => (like & !0xffff_ffff) | (noise >> 32),
            };
            if !live.contains(&timer) {
                nothing_there(svc.door(), timer);
            }
        }
        for timer in [SW_TIMER_NONE, u64::MAX] {
            nothing_there(svc.door(), timer);
        }
        assert_eq!(svc.pending(), 1_000);
        for timer in live {
            assert_eq!(svc.cancel(timer), SW_OK);
        }
    }
}

#[test]
fn c7_another_services_handles() {
    let log = Log::counting();
    let gone: Vec<_> = {
        let svc = Setup::manual(MS).start();
        let timers = (0..2_000).map(|_| svc.start(HOUR, log)).collect();
        drop(svc);
        timers
    };
    let other = Setup::manual(MS).start();
    let theirs: Vec<_> = (0..2_000).map(|_| other.start(HOUR, log)).collect();
    let svc = Setup::manual(MS).start();
    let live: Vec<_> = (0..2_000).map(|_| svc.start(HOUR, log)).collect();
    // Each of the 4,000 may be one of ours by a chance below 1 in 10^7.
    let mut hits = 0;
    for timer in gone.into_iter().chain(theirs.iter().copied()) {
        match svc.cancel(timer) {
            SW_OK => hits += 1,
            status => assert!(status == SW_NOT_FOUND || status == SW_INVALID),
        }
    }
    assert!(hits <= 1, "{hits} handles of other services hit");
    assert_eq!(svc.pending(), live.len() as u64 - hits);
    for timer in theirs {
        assert_eq!(other.cancel(timer), SW_OK);
    }
}

#[test]
fn c7_handles_are_not_zero_and_differ() {
    let svc = Setup::manual(MS).shards(4).start();
    let log = Log::counting();
    let mut seen = HashSet::new();
    for i in 0..50_000u64 {
        let timer = svc.timer().shard((i % 4) as u32).delay(HOUR).log(log).start();
        assert_ne!(timer, SW_TIMER_NONE);
        assert_eq!(u64::from(sw_timer_shard(timer)), i % 4);
        assert!(seen.insert(timer));
    }
}

#[test]
#[ignore = "uses one slot 2^27 times: most of a minute in release; CI runs it in release"]
fn c7_a_slot_whose_generations_are_used_up_is_retired() {
    let svc = Setup::manual(MS).max_timers(1).start();
    let log = Log::counting();
    let first: Vec<_> = (0..1_000)
        .map(|_| {
            let timer = svc.start(HOUR, log);
            assert_eq!(svc.cancel(timer), SW_OK);
            timer
        })
        .collect();
    let seen: HashSet<_> = first.iter().copied().collect();
    for round in 0..(1u64 << 27) + 5_000 {
        let timer = svc.start(HOUR, log);
        assert!(!seen.contains(&timer), "round {round}: {timer:#x} came again");
        assert_eq!(svc.cancel(timer), SW_OK);
        if round % 1_000 == 0 {
            svc.poll();
        }
    }
    let live = svc.start(HOUR, log);
    for timer in first {
        assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
    }
    assert_eq!(svc.cancel(live), SW_OK);
}
