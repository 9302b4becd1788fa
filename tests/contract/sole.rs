//! A thread that owns its shard exclusively need not look at the clock for each start: nobody can tell, not even
//! when it has not polled for long.

use crate::Random;
use crate::support::*;
use std::time::Duration;

/// A service whose only thread has not looked at the clock for longer than it trusts what it saw, some way
/// into a long tick. Answers the time, too, and a timer that was started `before` the last look ended.
fn long_not_polled_with(before: u64) -> (Svc, Log, u64, sw_timer) {
    let svc = Setup::driven().tick(10 * MS).start();
    let log = Log::new();
    assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
    // So that it has the short ways.
    for _ in 0..3 {
        let timer = svc.start_at(svc.now() + HOUR, log);
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    svc.poll();
    let timer = svc.start_at(svc.now() + before, log);
    svc.poll();
    std::thread::sleep(Duration::from_millis(60));
    while svc.now() % (10 * MS) < 3 * MS {
        std::thread::yield_now();
    }
    let now = svc.now();
    (svc, log, now, timer)
}

fn long_not_polled() -> (Svc, Log, u64) {
    let (svc, log, now, _) = long_not_polled_with(HOUR);
    (svc, log, now)
}

#[test]
fn t3_a_deadline_already_past_is_due_at_the_next_turn_however_long_ago_the_last_was() {
    for back in [0, MS, 2 * MS, 15 * MS] {
        let (svc, log, now) = long_not_polled();
        svc.start_at(now - back, log);
        assert_eq!(svc.poll(), 1, "{back} ns past");
        assert_eq!(log.last().deadline, now - back);
    }
}

#[test]
fn t3_many_at_once_past_and_to_come() {
    let (svc, log, now) = long_not_polled();
    let mut far = Vec::new();
    for past in 0..200 {
        svc.start_at(now - past, log);
        far.push(svc.start_at(now + HOUR, log));
    }
    assert_eq!(svc.poll(), 200);
    let deadlines: Vec<_> = log.fires().iter().map(|fire| fire.deadline).collect();
    let armed: Vec<_> = (0..200).map(|past| now - past).collect();
    assert_eq!(deadlines, armed, "one tick, so in the order of their starts");
    assert!(far.into_iter().all(|timer| svc.cancel(timer) == SW_OK));
}

#[test]
fn t3_a_reset_to_a_deadline_already_past_is_due_at_the_next_turn() {
    // It was due some ticks before; in the tick that comes next; later.
    for old in [20 * MS, 40 * MS, 59 * MS, 62 * MS, 64 * MS, HOUR] {
        let (svc, log, now, timer) = long_not_polled_with(old);
        for back in [MS, 0] {
            assert_eq!(svc.reset_at(timer, now - back), SW_OK);
        }
        assert_eq!(svc.poll() + svc.poll(), 1, "started {old} ns ahead");
        assert_eq!(log.last().deadline, now);
    }
}

#[test]
fn t1_f1_a_sole_owner_in_real_time() {
    for tick in [US, 50 * US, MS, 10 * MS] {
        let svc = Setup::driven().tick(tick).start();
        assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
        let log = Log::new();
        let mut random = Random(tick);
        let (mut timers, mut cancelled) = (Vec::new(), 0);
        let began = svc.now();
        for step in 0..40_000 {
            let deadline = svc.now() + random.below(80 * MS);
            match random.below(8) {
                0..=3 => timers.push(svc.start_at(deadline, log)),
                4 | 5 if !timers.is_empty() => {
                    let any = random.below(timers.len() as u64) as usize;
                    let status = svc.reset_at(timers[any], deadline);
                    assert!([SW_OK, SW_NOT_FOUND].contains(&status));
                }
                6 if !timers.is_empty() => {
                    let any = random.below(timers.len() as u64) as usize;
                    cancelled += u64::from(svc.cancel(timers.swap_remove(any)) == SW_OK);
                }
                _ if step % 500 < 100 => drop(svc.poll()),
                _ => {}
            }
        }
        eventually("all fire", || {
            svc.poll();
            svc.pending() == 0
        });
        let fires = log.fires();
        assert!(fires.iter().all(|fire| fire.now >= fire.deadline && fire.deadline >= began));
        let stats = svc.stats();
        assert_eq!((stats.cancelled, stats.ended_by_fire), (cancelled, fires.len() as u64));
        assert_eq!(stats.started, cancelled + fires.len() as u64);
    }
}

#[test]
fn f1_a_shard_that_is_owned_now_exclusively_now_not_loses_nothing() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let log = Log::counting();
    let mut random = Random(7);
    let (mut timers, mut cancelled) = (Vec::new(), 0);
    for round in 0..60 {
        let how = [SW_ATTACH_EXCLUSIVE, SW_ATTACH_SHARED][round % 2];
        assert_eq!(svc.attach(0, how), SW_OK);
        // Many more than there are live timers: their reminders are dropped in rounds of compaction.
        for _ in 0..6_000 {
            match random.below(16) {
                0..=6 => timers.push(svc.start(MS + random.below(9_000 * MS), log)),
                7..=14 if timers.len() > 1_000 => {
                    let any = random.below(timers.len() as u64) as usize;
                    cancelled += u64::from(svc.cancel(timers.swap_remove(any)) == SW_OK);
                }
                15 if !timers.is_empty() => {
                    let any = random.below(timers.len() as u64) as usize;
                    svc.reset(timers[any], MS + random.below(9_000 * MS));
                }
                _ => {}
            }
        }
        if how == SW_ATTACH_SHARED {
            let some: Vec<_> = timers.drain(..timers.len() / 2).collect();
            let ended = std::thread::spawn(move || {
                some.iter().filter(|&&timer| door.cancel(timer) == SW_OK).count()
            });
            cancelled += ended.join().unwrap() as u64;
        }
        svc.run(random.below(40) * MS);
        if round % 7 == 6 {
            assert_eq!(svc.detach(0), SW_OK);
            svc.run(MS);
        }
    }
    svc.run(9_000 * MS);
    let stats = svc.stats();
    assert_eq!((stats.pending, stats.cancelled), (0, cancelled));
    assert_eq!(stats.started, cancelled + log.count());
    assert!(stats.memory_bytes < 8 << 20, "{} bytes", stats.memory_bytes);
}
