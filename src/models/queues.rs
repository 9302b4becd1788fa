//! Queues: lanes, deliveries, takers, and the end of a queue.

use super::*;
use crate::lane::Lane;
use crate::queue::QueueInner;
use crate::types::Event;
use loom::sync::Notify;

/// The owner puts in and makes the lane longer; two threads take. Each entry comes out once, the
/// oldest first.
#[test]
fn lane_take_take_push_grow() {
    explore("lane_take_take_push_grow", Some(2), || {
        let lane = Arc::new(Lane::new());
        let push = |entry| {
            // SAFETY: this thread stands for the owner.
            unsafe {
                assert!(lane.reserve(|_| true));
                lane.push(entry);
            }
        };
        push(1);
        let take = || {
            let lane = lane.clone();
            thread(move || [lane.take(), lane.take()])
        };
        let takers = [take(), take()];
        (2..=4).for_each(push);
        let taken = join(takers);
        let rest: Vec<u64> = std::iter::from_fn(|| lane.take()).collect();
        for some in taken {
            let some: Vec<u64> = some.into_iter().flatten().collect();
            assert!(some.is_sorted());
        }
        let mut all: Vec<u64> = taken.into_iter().flatten().flatten().chain(rest).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4]);
    });
}

/// The owner passes over its own lane, which is full of entries that mean nothing, while a thread
/// takes.
#[test]
fn lane_take_vs_sweep() {
    explore("lane_take_vs_sweep", Some(3), || {
        let lane = Arc::new(Lane::new());
        let push = |entry: u64| {
            // SAFETY: this thread stands for the owner.
            unsafe {
                assert!(lane.reserve(|entry| entry % 2 == 1));
                lane.push(entry);
            }
        };
        push(1);
        push(2);
        let theirs = lane.clone();
        let taker = thread(move || [theirs.take(), theirs.take()]);
        push(3);
        push(5);
        let taken = taker.join().unwrap();
        let rest: Vec<u64> = std::iter::from_fn(|| lane.take()).collect();
        let mut odd: Vec<u64> =
            taken.into_iter().flatten().chain(rest).filter(|entry| entry % 2 == 1).collect();
        odd.sort_unstable();
        assert_eq!(odd, [1, 3, 5]);
    });
}

/// What the owner keeps as it passes over its lane stays in order, also for a thread that takes meanwhile.
#[test]
fn lane_sweep_keeps_order() {
    explore("lane_sweep_keeps_order", Some(3), || {
        let lane = Arc::new(Lane::new());
        let push = |entry: u64, live: fn(u64) -> bool| {
            // SAFETY: this thread stands for the owner.
            unsafe {
                assert!(lane.reserve(live));
                lane.push(entry);
            }
        };
        (1..=4).for_each(|entry| push(entry, |_| true));
        let theirs = lane.clone();
        let taker = thread(move || [theirs.take(), theirs.take()]);
        push(5, |entry| entry % 2 == 1);
        let taken = taker.join().unwrap();
        let rest = std::iter::from_fn(|| lane.take());
        let all: Vec<u64> = taken.into_iter().flatten().chain(rest).collect();
        let odd: Vec<u64> = all.into_iter().filter(|entry| entry % 2 == 1).collect();
        assert_eq!(odd, [1, 3, 5]);
    });
}

#[derive(Clone, Copy)]
pub(crate) struct Queue(*const QueueInner);

// SAFETY: a queue may be used by any thread.
unsafe impl Send for Queue {}

impl Queue {
    pub(crate) fn new(service: &Service) -> Queue {
        Queue(service.queue_new().unwrap())
    }

    pub(crate) fn spec(self, spec: Spec) -> Spec {
        Spec { queue: self.0, callback: None, ..spec }
    }

    /// Takes at most one event.
    pub(crate) fn take(self) -> Option<Event> {
        let mut event = Event { expiry: Expiry::default(), ctx: std::ptr::null_mut() };
        // SAFETY: the models take from queues that live; there is room for one.
        let taken = unsafe { Engine::queue_poll(self.0, &mut event, 1) }.unwrap();
        (taken == 1).then_some(event)
    }

    /// Its descriptor.
    pub(crate) fn descriptor(self) -> i32 {
        // SAFETY: the models ask queues that live.
        unsafe { Engine::queue_fd(self.0) }.unwrap()
    }

    /// Frees it while another thread may own the shard; once more when that is over, if it was refused.
    fn free_beside(self, owner_ends: impl FnOnce()) {
        // SAFETY: freed once; used again only if that was refused.
        let freed = unsafe { Engine::queue_free(self.0) };
        owner_ends();
        if freed.is_err() {
            assert_eq!(freed, Err(Error::Busy));
            self.free();
        }
    }

    pub(crate) fn free(self) {
        // SAFETY: the models do not use it afterwards.
        unsafe { Engine::queue_free(self.0) }.unwrap();
    }
}

/// A cancel wins until the event is taken, wherever the timer is on its way to the queue.
#[test]
fn queue_deliver_vs_cancel() {
    explore("queue_deliver_vs_cancel", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        let timer = service.begin(&queue.spec(with_drop(once(1, &seen))));
        service.forward(1);
        let other = service.clone();
        let canceller = thread(move || other.end(timer));
        service.turn0();
        assert_eq!(canceller.join().unwrap(), Outcome::Done);
        assert!(queue.take().is_none());
        assert_eq!(seen.dropped(), 1);
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.cancelled), (0, 1));
        queue.free();
        threads::leave(true);
    });
}

/// Delivery, a taker and a canceller at once: the event is taken or cancelled.
#[test]
fn queue_take_vs_cancel() {
    explore("queue_take_vs_cancel", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        let timer = service.begin(&queue.spec(with_drop(once(1, &seen))));
        service.forward(1);
        let other = service.clone();
        let canceller = thread(move || other.end(timer));
        let taker = thread(move || queue.take().is_some());
        service.turn0();
        let cancelled = canceller.join().unwrap() == Outcome::Done;
        let taken = taker.join().unwrap() || queue.take().is_some();
        assert_ne!(cancelled, taken);
        assert_eq!(seen.dropped(), u32::from(cancelled));
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.fired), (0, u64::from(taken)));
        queue.free();
        threads::leave(true);
    });
}

/// Two takers, two events: each comes once.
#[test]
fn queue_take_vs_take() {
    explore("queue_take_vs_take", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = [Seen::new(), Seen::new()];
        let timers =
            [1, 2].map(|tick| service.begin(&queue.spec(once(tick, &seen[tick as usize - 1]))));
        service.forward(2);
        service.turn0();
        let take = || thread(move || queue.take().map(|event| event.expiry.timer));
        let mut taken: Vec<u64> =
            [take(), take()].into_iter().filter_map(|taker| taker.join().unwrap()).collect();
        taken.extend(queue.take().map(|event| event.expiry.timer));
        taken.sort_unstable();
        let mut timers = timers.to_vec();
        timers.sort_unstable();
        assert_eq!(taken, timers);
        assert_eq!(service.quiet().pending, 0);
        queue.free();
        threads::leave(true);
    });
}

/// A reset withdraws an event that waits, or comes too late: then it has been taken.
#[test]
fn queue_take_vs_reset() {
    explore("queue_take_vs_reset", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        let timer = service.begin(&queue.spec(once(1, &seen)));
        service.forward(1);
        service.turn0();
        let other = service.clone();
        let mover = thread(move || other.move_to(timer, 3));
        let taker = thread(move || queue.take().is_some());
        service.turn0();
        let moved = mover.join().unwrap();
        let taken = taker.join().unwrap();
        assert_eq!(moved, if taken { Outcome::NotFound } else { Outcome::Done });
        assert!(queue.take().is_none());
        service.forward(2);
        service.turn0();
        assert_eq!(queue.take().is_some(), !taken);
        assert_eq!(service.quiet().pending, 0);
        queue.free();
        threads::leave(true);
    });
}

/// A periodic timer whose event waits while its grid goes by, against the taker: each point of the grid is
/// told once, as an event or as missed.
#[test]
fn queue_periodic_take_vs_deliver() {
    explore("queue_periodic_take_vs_deliver", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        let timer = service.begin(&queue.spec(every(1, once(1, &seen))));
        service.forward(1);
        service.turn0();
        service.forward(1);
        let taker = thread(move || queue.take().map(|event| event.expiry));
        service.turn0();
        let first = taker.join().unwrap();
        let points = |expiry: Option<Expiry>| expiry.map_or(0, |expiry| 1 + expiry.missed);
        let mut told = points(first);
        while let Some(event) = queue.take() {
            told += points(Some(event.expiry));
        }
        assert_eq!(told, 2);
        assert_eq!(service.end(timer), Outcome::Done);
        assert_eq!(service.quiet().pending, 0);
        queue.free();
        threads::leave(true);
    });
}

/// A queue is freed while the owner is about to deliver to it: the timer is cancelled, and nobody uses
/// the queue after its end.
#[test]
fn queue_free_vs_deliver() {
    explore("queue_free_vs_deliver", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        let timer = service.begin(&queue.spec(with_drop(once(1, &seen))));
        service.forward(1);
        let other = service.clone();
        let poller = thread(move || other.turn0());
        queue.free();
        assert_eq!(seen.dropped(), 1, "by the time that the queue is free");
        poller.join().unwrap();
        assert_eq!(service.end(timer), Outcome::NotFound);
        assert_eq!(service.turn0(), 0);
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.cancelled), (0, 1));
        threads::leave(true);
    });
}

/// A queue is freed while another thread takes the shard for itself: then it is not freed, or its timers
/// are gone.
#[test]
fn queue_free_vs_attach_exclusive() {
    explore("queue_free_vs_attach_exclusive", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        service.begin(&queue.spec(with_drop(once(1, &seen))));
        service.forward(1);
        let other = service.clone();
        let owner = thread(move || {
            if other.attach(0, true).is_ok() {
                other.turn0();
                other.detach(0).unwrap();
            }
        });
        queue.free_beside(|| owner.join().unwrap());
        assert_eq!(seen.dropped(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A taker moves a waiting event's word even while the shard has an exclusive owner, who moves it too: each point
/// of the grid is told once.
#[test]
fn queue_take_vs_exclusive_owner() {
    explore("queue_take_vs_exclusive_owner", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        service.attach(0, true).unwrap();
        let timer = service.begin(&queue.spec(every(1, once(1, &seen))));
        service.forward(1);
        service.turn0();
        service.forward(1);
        let taker = thread(move || queue.take().map(|event| event.expiry));
        service.turn0();
        let first = taker.join().unwrap();
        let points = |expiry: Option<Expiry>| expiry.map_or(0, |expiry| 1 + expiry.missed);
        let mut told = points(first);
        while let Some(event) = queue.take() {
            told += points(Some(event.expiry));
        }
        assert_eq!(told, 2);
        assert_eq!(service.end(timer), Outcome::Done);
        service.detach(0).unwrap();
        assert_eq!(service.quiet().pending, 0);
        queue.free();
        threads::leave(true);
    });
}

/// A queue is freed while another thread takes the shard for itself and keeps it: the free is refused, or has
/// come before; it does not wait for the other thread.
#[test]
fn queue_free_waits_for_no_owner() {
    explore("queue_free_waits_for_no_owner", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        service.begin(&queue.spec(with_drop(once(1, &seen))));
        let (other, over) = (service.clone(), Arc::new(Notify::new()));
        let bell = over.clone();
        let owner = thread(move || {
            let attached = other.attach(0, true).is_ok();
            bell.wait();
            if attached {
                other.detach(0).unwrap();
            }
        });
        queue.free_beside(|| {
            over.notify();
            owner.join().unwrap();
        });
        assert_eq!(seen.dropped(), 1);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A queue with an event that waits is freed while the service stops: each timer ends once, and nobody uses the
/// queue after its end.
#[test]
fn queue_free_vs_stop() {
    explore("queue_free_vs_stop", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        service.begin(&queue.spec(with_drop(once(1, &seen))));
        service.forward(1);
        service.turn0();
        let other = service.clone();
        let stopper = thread(move || other.halt());
        queue.free();
        let returned = stopper.join().unwrap();
        assert_eq!((u64::from(seen.returned()), seen.dropped()), (returned, 1));
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.cancelled), (0, 1 - returned));
        threads::leave(true);
    });
}
