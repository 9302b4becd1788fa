//! From the thread that starts to the shard's owner: inboxes, and who wakes whom.

use super::*;
use crate::inbox::Inbox;
use loom::sync::Notify;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;

/// Drains until `want` entries have come, and tells when there is nothing.
fn drain(inbox: &Inbox, into: &mut Vec<u64>) {
    // SAFETY: the model has one consumer.
    unsafe {
        inbox.take(usize::MAX, |entry, _| {
            into.push(entry);
            true
        })
    };
}

fn push(inbox: &Inbox, entry: u64) {
    // SAFETY: each inbox of the models has one producer.
    unsafe {
        inbox.reserve(1, || u64::MAX).unwrap();
        inbox.push(entry);
    }
}

/// Each entry comes out once, in order, across blocks that are used again; of two producers, each
/// one's own order.
#[test]
fn inbox_push_drain() {
    explore("inbox_push_drain", Some(3), || {
        let inboxes = Arc::new([Inbox::new(), Inbox::new()]);
        let producer = |index: usize, entries: u64| {
            let inboxes = inboxes.clone();
            thread(move || (0..entries).for_each(|entry| push(&inboxes[index], entry)))
        };
        let producers = [producer(0, 7), producer(1, 2)];
        let mut taken = [Vec::new(), Vec::new()];
        for _ in 0..3 {
            for (inbox, taken) in inboxes.iter().zip(&mut taken) {
                drain(inbox, taken);
            }
        }
        join(producers);
        for (inbox, taken) in inboxes.iter().zip(&mut taken) {
            drain(inbox, taken);
            assert_eq!(inbox.waiting(), 0);
        }
        assert_eq!(taken[0], (0..7).collect::<Vec<_>>());
        assert_eq!(taken[1], [0, 1]);
    });
}

/// A block is not filled again before the consumer has left it.
#[test]
fn inbox_block_reuse() {
    explore("inbox_block_reuse", Some(3), || {
        let inbox = Arc::new(Inbox::new());
        let theirs = inbox.clone();
        let producer = thread(move || (0..7).for_each(|entry| push(&theirs, entry)));
        let mut taken = Vec::new();
        for _ in 0..2 {
            drain(&inbox, &mut taken);
        }
        producer.join().unwrap();
        drain(&inbox, &mut taken);
        assert_eq!(taken, (0..7).collect::<Vec<_>>());
    });
}

/// The producer purges its inbox while the consumer takes: what means something comes out once, in order, and nothing
/// else twice.
#[test]
fn inbox_purge_vs_take() {
    explore("inbox_purge_vs_take", Some(3), || {
        let inbox = Arc::new(Inbox::new());
        (0..5).for_each(|entry| push(&inbox, entry));
        let theirs = inbox.clone();
        let producer = thread(move || {
            // SAFETY: this thread is the producer now.
            unsafe { theirs.purge(|entry| entry % 2 == 1) };
            (5..8).for_each(|entry| push(&theirs, entry));
        });
        let mut taken = Vec::new();
        for _ in 0..2 {
            drain(&inbox, &mut taken);
        }
        producer.join().unwrap();
        drain(&inbox, &mut taken);
        assert!(taken.is_sorted_by(|a, b| a < b), "{taken:?}");
        let live = |entry: &u64| entry % 2 == 1 || *entry >= 5;
        let live: Vec<u64> = taken.into_iter().filter(live).collect();
        assert_eq!(live, [1, 3, 5, 6, 7]);
    });
}

/// What a callback tells a waiting thread.
struct Called {
    seen: Arc<Seen>,
    bell: Notify,
}

unsafe extern "C-unwind" fn ring(ctx: *mut c_void, _: *const Expiry) {
    // SAFETY: ctx is a `Called` that the model keeps.
    let called = unsafe { &*ctx.cast::<Called>() };
    called.seen.fired.fetch_add(1, Ordering::Relaxed);
    called.bell.notify();
}

impl Called {
    fn new() -> Arc<Called> {
        Arc::new(Called { seen: Seen::new(), bell: Notify::new() })
    }

    /// Sleeps until the callback has run.
    fn wait(&self) {
        while self.seen.fired() == 0 {
            self.bell.wait();
        }
    }

    fn spec(self: &Arc<Called>, tick: u64) -> Spec {
        let ctx = Arc::as_ptr(self).cast_mut().cast();
        Spec { callback: Some(ring), ctx, ..once(tick, &self.seen) }
    }
}

/// A timer that is started while the shard's thread goes to sleep is not slept through: either the
/// starter sees that it sleeps, or it sees the timer. (A lost wake-up is a deadlock here: a sleep
/// never times out.) Stop finds it asleep, too.
#[test]
fn start_vs_sleep() {
    explore("start_vs_sleep", Some(3), || {
        let service = Service::threaded(4);
        let called = Called::new();
        let worker = service.worker();
        service.begin(&called.spec(0));
        called.wait();
        assert_eq!(called.seen.fired(), 1);
        assert_eq!(service.halt(), 0);
        worker.join().unwrap();
        assert_eq!(service.quiet().ended_by_fire, 1);
        threads::leave(true);
    });
}

/// The same for a timer that is earlier than the one that the thread sleeps for, from two threads.
#[test]
fn two_starts_vs_sleep() {
    explore("two_starts_vs_sleep", Some(2), || {
        let service = Service::threaded(4);
        let (seen, called) = (Seen::new(), [Called::new(), Called::new()]);
        service.begin(&once(100, &seen));
        let worker = service.worker();
        let (other, theirs) = (service.clone(), called[0].clone());
        let starter = thread(move || {
            other.begin(&theirs.spec(0));
        });
        service.begin(&called[1].spec(0));
        called[0].wait();
        called[1].wait();
        starter.join().unwrap();
        assert_eq!(service.halt(), 1);
        worker.join().unwrap();
        assert_eq!((seen.fired(), seen.returned()), (0, 1));
        service.quiet();
        threads::leave(true);
    });
}

/// A reset to an earlier instant reaches the sleeping thread as a start does.
#[test]
fn reset_earlier_vs_sleep() {
    explore("reset_earlier_vs_sleep", Some(3), || {
        let service = Service::threaded(4);
        let called = Called::new();
        let timer = service.begin(&called.spec(100));
        let worker = service.worker();
        assert_eq!(service.move_to(timer, 0), Outcome::Done);
        called.wait();
        assert_eq!(service.halt(), 0);
        worker.join().unwrap();
        assert_eq!(service.quiet().ended_by_fire, 1);
        threads::leave(true);
    });
}

/// Timers are cancelled, and others started in their place, while the shard's thread sleeps for a later one or
/// is about to: room and slots come back without it.
#[test]
fn cancel_vs_sleep() {
    explore("cancel_vs_sleep", Some(3), || {
        let service = Service::threaded(2);
        let seen = Seen::new();
        let late = service.begin(&once(100, &seen));
        let worker = service.worker();
        for _ in 0..2 {
            let timer = service.begin(&once(200, &seen));
            assert_eq!(service.try_start(&once(200, &seen)), Err(Error::Full));
            assert_eq!(service.end(timer), Outcome::Done);
        }
        assert_eq!(service.end(late), Outcome::Done);
        assert!(service.shards()[0].slab.end() <= 3);
        assert_eq!(service.halt(), 0);
        worker.join().unwrap();
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.started, stats.cancelled), (0, 3, 3));
        threads::leave(true);
    });
}

/// Stop always finds the thread, awake or about to sleep.
#[test]
fn stop_vs_sleep() {
    explore("stop_vs_sleep", Some(3), || {
        let service = Service::threaded(4);
        let worker = service.worker();
        assert_eq!(service.halt(), 0);
        worker.join().unwrap();
        service.quiet();
        threads::leave(true);
    });
}

/// A driven shard: after a start and a poll at the same time, the shard wants to be polled by the timer's
/// tick (Q1), and that poll delivers it.
#[test]
fn rest_vs_start() {
    explore("rest_vs_start", Some(3), || {
        let service = Service::new(4);
        let (late, early) = (Seen::new(), Seen::new());
        service.begin(&once(9, &late));
        let (other, theirs) = (service.clone(), early.clone());
        let starter = thread(move || other.begin(&once(5, &theirs)));
        assert_eq!(service.turn0(), 0);
        starter.join().unwrap();
        assert!(service.next(0).unwrap() <= 5 * TICK);
        service.forward(5);
        assert_eq!(service.turn0(), 1);
        assert_eq!((late.fired(), early.fired()), (0, 1));
        assert_eq!(service.quiet().pending, 1);
        threads::leave(true);
    });
}

/// Two threads start at once while the owner is at rest: the earlier of the two counts.
#[test]
fn rest_vs_two_starts() {
    explore("rest_vs_two_starts", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let start = |tick| {
            let (service, seen) = (service.clone(), seen.clone());
            thread(move || service.begin(&once(tick, &seen)))
        };
        join([start(3), start(5)]);
        assert!(service.next(0).unwrap() <= 3 * TICK);
        service.forward(3);
        assert_eq!(service.turn0(), 1);
        assert!(service.next(0).unwrap() <= 5 * TICK);
        assert_eq!(service.quiet().pending, 1);
        threads::leave(true);
    });
}

/// The same for a reset to an earlier tick.
#[test]
fn rest_vs_reset_earlier() {
    explore("rest_vs_reset_earlier", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let timer = service.begin(&once(9, &seen));
        let other = service.clone();
        let mover = thread(move || assert_eq!(other.move_to(timer, 5), Outcome::Done));
        assert_eq!(service.turn0(), 0);
        mover.join().unwrap();
        assert!(service.next(0).unwrap() <= 5 * TICK);
        service.forward(5);
        assert_eq!(service.turn0(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A timer is cancelled, and its slot used again, before the owner has taken it in, or while it does.
#[test]
fn cancel_before_taken_in() {
    explore("cancel_before_taken_in", Some(3), || {
        let service = Service::new(4);
        let (first, second) = (Seen::new(), Seen::new());
        let (other, theirs) = (service.clone(), [first.clone(), second.clone()]);
        let starter = thread(move || {
            let timer = other.begin(&once(0, &theirs[0]));
            let outcome = other.end(timer);
            other.begin(&once(0, &theirs[1]));
            outcome
        });
        service.turn0();
        let outcome = starter.join().unwrap();
        service.turn0();
        assert_eq!(first.fired() == 0, outcome == Outcome::Done, "{outcome:?}");
        assert_eq!(second.fired(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// The owner drops all reminders at once when no timer lives; never one of a timer that does.
#[test]
fn clear_vs_start() {
    explore_with_upkeep("clear_vs_start", Some(2), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let timer = service.begin(&once(7, &seen[0]));
        let (other, theirs) = (service.clone(), seen[1].clone());
        let starter = thread(move || {
            assert_eq!(other.end(timer), Outcome::Done);
            other.begin(&once(7, &theirs));
        });
        service.turn0();
        service.turn0();
        starter.join().unwrap();
        service.forward(7);
        service.turn0();
        assert_eq!((seen[0].fired(), seen[1].fired()), (0, 1));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// Who sees the new time sees what came before it.
#[test]
fn advance_publishes() {
    explore("advance_publishes", Some(3), || {
        let service = Service::new(4);
        let note = Arc::new(AtomicU32::new(0));
        let (other, theirs) = (service.clone(), note.clone());
        let mover = thread(move || {
            theirs.store(1, Relaxed);
            other.forward(5);
        });
        if service.now() == 5 * TICK {
            assert_eq!(note.load(Relaxed), 1);
        }
        mover.join().unwrap();
        threads::leave(true);
    });
}

/// Two threads move the clock: it goes on by what both say.
#[test]
fn advance_vs_advance() {
    explore("advance_vs_advance", Some(3), || {
        let service = Service::new(4);
        let other = service.clone();
        let mover = thread(move || other.forward(2));
        service.forward(3);
        mover.join().unwrap();
        assert_eq!(service.now(), 5 * TICK);
        threads::leave(true);
    });
}

/// The same where the one that is cancelled was started elsewhere, too: its end is not counted without its start.
#[test]
fn clear_vs_start_and_cancel() {
    explore_with_upkeep("clear_vs_start_and_cancel", Some(2), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        service.begin(&once(7, &seen[0]));
        service.turn0();
        let (other, theirs) = (service.clone(), seen[1].clone());
        let canceller = thread(move || {
            let timer = other.begin(&once(7, &theirs));
            assert_eq!(other.end(timer), Outcome::Done);
        });
        service.turn0();
        canceller.join().unwrap();
        service.forward(7);
        service.turn0();
        assert_eq!((seen[0].fired(), seen[1].fired()), (1, 0));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}
