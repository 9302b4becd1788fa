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
    wait_long(svc.door());
    let now = svc.now();
    (svc, log, now, timer)
}

/// Waits for longer than a sole owner trusts what it saw, and until some way into a tick.
fn wait_long(door: Door) {
    std::thread::sleep(Duration::from_millis(60));
    while door.now() % (10 * MS) < 3 * MS {
        std::thread::yield_now();
    }
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

#[test]
fn t3_a_deadline_past_while_a_callback_took_long_is_due_at_the_next_turn() {
    let (svc, log, _) = long_not_polled();
    let door = svc.door();
    let slow = move |_: &sw_expiry| {
        wait_long(door);
        door.start_at(door.now() - MS, log);
    };
    svc.timer().delay(0).run(slow).start();
    assert_eq!((svc.poll(), svc.poll()), (1, 1));
}

#[test]
fn t3_a_deadline_already_past_is_due_at_the_next_turn_whoever_makes_it() {
    for how in [None, Some(SW_ATTACH_SHARED), Some(SW_ATTACH_EXCLUSIVE)] {
        let (svc, log, now) = long_not_polled();
        svc.start_at(now - MS, log);
        let status = how.map_or_else(|| svc.detach(0), |how| svc.attach(0, how));
        assert_eq!((status, svc.poll()), (SW_OK, 1), "{how:?}");
    }
}

#[test]
fn t3_a_deadline_already_past_is_due_at_the_next_turn_whatever_comes_between() {
    let svc = Setup::driven().tick(10 * MS).start();
    let log = Log::new();
    assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
    let other = svc.timer().delay(HOUR).slack(HOUR).log(log).start();
    assert_eq!(svc.cancel(svc.start_at(svc.now() + HOUR, log)), SW_OK);
    svc.poll();
    wait_long(svc.door());
    svc.start_at(svc.now() - MS, log);
    assert_eq!(svc.reset(other, HOUR / 4), SW_OK);
    assert_eq!(svc.poll(), 1);
}

#[test]
fn t3_a_reset_from_the_tick_that_has_come_to_a_deadline_already_past() {
    let svc = Setup::driven().tick(10 * MS).start();
    let log = Log::new();
    assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
    // One of them is due at the very tick that the next turn reaches.
    let began = svc.now();
    let timers: Vec<_> = (4..30).map(|tick| svc.start_at(began + tick * 10 * MS, log)).collect();
    svc.poll();
    wait_long(svc.door());
    let now = svc.now();
    let moved = timers.iter().filter(|&&timer| svc.reset_at(timer, now) == SW_OK).count();
    assert_eq!(svc.poll(), moved);
}

#[test]
fn q1_q2_a_deadline_already_past_is_shown_however_long_ago_the_last_turn_was() {
    let (svc, log, now) = long_not_polled();
    assert!(!svc.readable());
    let timer = svc.start_at(now - MS, log);
    assert!(svc.next() <= svc.now() && svc.readable());
    assert_eq!((svc.poll(), svc.readable()), (1, false));
    assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
    svc.start_at(svc.now() + HOUR, log);
    assert!(svc.next() > svc.now() && !svc.readable());
}

/// Dead reminders after many timers have ended, while one lives on.
fn dead_after(end: impl Fn(&Svc, Log)) {
    for how in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
        let svc = Setup::manual(MS).max_timers(30_000).start();
        assert_eq!(svc.attach(0, how), SW_OK);
        let log = Log::counting();
        svc.start(HOUR, log);
        end(&svc, log);
        assert_eq!(svc.pending(), 1);
        for _ in 0..1_000 {
            svc.poll();
        }
        let size = size_of::<sw_details>();
        // SAFETY: integers.
        let mut details = sw_details { size, ..unsafe { std::mem::zeroed() } };
        // SAFETY: a service that lives, and details of that size.
        assert_eq!(unsafe { sw_details_read(svc.raw(), 0, &mut details) }, SW_OK);
        assert!(details.reminders_dead < 10_000, "{how}: {}", details.reminders_dead);
    }
}

#[test]
fn c3_reset_to_earlier_and_cancelled() {
    dead_after(|svc, log| {
        let timers: Vec<_> = (0..20_000).map(|_| svc.start(HOUR, log)).collect();
        svc.poll();
        for timer in timers {
            assert_eq!(svc.reset(timer, HOUR / 2), SW_OK);
            assert_eq!(svc.cancel(timer), SW_OK);
        }
    });
}

#[test]
fn c3_cancelled_while_an_event_waits() {
    dead_after(|svc, log| {
        let queue = svc.queue();
        let start = |_| svc.timer().delay(MS).period(HOUR).queue(queue).log(log).start();
        let timers: Vec<_> = (0..20_000).map(start).collect();
        assert_eq!(svc.run(MS), 20_000);
        assert!(timers.into_iter().all(|timer| svc.cancel(timer) == SW_OK));
    });
}

#[test]
fn c3_a_batch_that_is_refused() {
    dead_after(|svc, log| {
        let specs: Vec<_> = (0..30_000).map(|_| svc.timer().delay(HOUR).log(log).spec()).collect();
        assert_eq!(svc.start_batch(&specs), Err(SW_FULL));
    });
}
