//! From the thread that starts to the shard's owner: inboxes, and who wakes whom.

use super::*;
use crate::inbox::Inbox;
use loom::sync::Notify;

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
    explore("inbox_block_reuse", None, || {
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
#[ignore = "more branches than loom takes"]
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

/// Stop always finds the thread, awake or about to sleep.
#[test]
fn stop_vs_sleep() {
    explore("stop_vs_sleep", None, || {
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
    explore("rest_vs_start", None, || {
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

/// The same for a reset to an earlier tick.
#[test]
fn rest_vs_reset_earlier() {
    explore("rest_vs_reset_earlier", None, || {
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
    explore("cancel_before_taken_in", None, || {
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
