//! Faults that the model-based tests found, each as its shortest story.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// T6: one that is pushed out takes its place among those due later, also when the clock jumps past all
/// of them at once.
#[test]
fn t6_a_timer_that_is_pushed_out_comes_in_its_new_place() {
    for attached in [false, true] {
        let svc = Setup::manual(MS).start();
        if attached {
            assert_eq!(svc.attach(0, SW_ATTACH_SHARED), SW_OK);
        }
        let log = Log::new();
        let pushed = svc.start(2 * MS, log);
        let others: Vec<_> = (3..200).map(|at| svc.start(at * MS, log)).collect();
        assert_eq!(svc.reset(pushed, 100 * MS), SW_OK);
        assert_eq!(svc.run(HOUR), 198);
        let order = log.timers();
        let place = order.iter().position(|&timer| timer == pushed).unwrap();
        assert!((97..=98).contains(&place), "among those of its tick, not {place}");
        let rest: Vec<_> = order.into_iter().filter(|&timer| timer != pushed).collect();
        assert_eq!(rest, others);
    }
}

/// The same in a queue, and with budgets that end in the middle.
#[test]
fn t6_pushed_out_with_a_queue_and_a_budget() {
    let svc = Setup::manual(MS).start();
    let (log, queue) = (Log::new(), svc.queue());
    let start = |at: u64| svc.timer().delay(at * MS).log(log).queue(queue).start();
    let pushed = start(1);
    let others = [start(2), start(3), start(4)];
    assert_eq!(svc.reset(pushed, 10 * MS), SW_OK);
    svc.advance(HOUR);
    for _ in 0..4 {
        assert_eq!(svc.poll_budget(1), 1);
    }
    let taken: Vec<_> = queue.poll(8).iter().map(|(expiry, _)| expiry.timer).collect();
    assert_eq!(taken, [&others[..], &[pushed]].concat());
}

/// F4, where the new timer gets the slot of one that was due in this turn and is cancelled in it.
#[test]
fn f4_a_timer_in_the_slot_of_one_that_was_due_waits_for_the_next_turn() {
    let svc = Setup::manual(MS).start();
    let (door, log) = (svc.door(), Log::new());
    let victim = Arc::new(AtomicU64::new(0));
    let due = victim.clone();
    svc.timer()
        .run(move |_| {
            assert_eq!(door.cancel(due.load(Ordering::SeqCst)), SW_OK);
            door.start(0, log);
        })
        .start();
    victim.store(svc.start(0, log), Ordering::SeqCst);
    assert_eq!((svc.poll(), log.count()), (1, 0));
    assert_eq!((svc.poll(), log.count()), (1, 1));
}

/// Q3: the last points of a grid before the end of time, of which one waits and the rest is missed.
#[test]
fn q3_the_points_missed_at_the_end_of_time() {
    for flags in [0, SW_TIMER_BURST] {
        let svc = Setup::manual(MS).start();
        let (log, queue) = (Log::new(), svc.queue());
        let timer = svc.timer().delay(0).period(MS).flags(flags).log(log).queue(queue);
        timer.start();
        svc.advance(u64::MAX);
        svc.poll();
        svc.poll();
        let [(expiry, _)] = queue.poll(2)[..] else { panic!("one event") };
        let last = u64::MAX / MS;
        assert_eq!((expiry.deadline_ns, expiry.missed), (last * MS, last), "flags {flags}");
        assert_eq!(svc.stats().overdue_ns, 0);
    }
}

/// More periods missed than a counter can count: it wraps, and nothing panics.
#[test]
fn f5_the_count_of_the_missed_wraps() {
    let svc = Setup::manual(MS).shards(2).start();
    let log = Log::new();
    for shard in [0, 1, 1] {
        svc.timer().shard(shard).period(1).log(log).start();
    }
    svc.advance(u64::MAX);
    assert_eq!((svc.poll_shard(0), svc.poll_shard(1)), (1, 2));
    let each = u64::MAX;
    assert_eq!(svc.stats().missed, each.wrapping_mul(3));
}

/// S2: a batch of none is a start too.
#[test]
fn s2_an_empty_batch_on_a_stopped_service() {
    let svc = Setup::manual(MS).start();
    assert_eq!(svc.start_batch(&[]), Ok(vec![]));
    assert_eq!(svc.stop(), SW_OK);
    assert_eq!(svc.start_batch(&[]), Err(SW_STOPPED));
    assert_eq!(svc.cancel_batch(&[]), Err(SW_STOPPED));
}
