//! Descriptors: readable while there is something to do, whoever is at work at that moment.
//!
//! The descriptors are real ones of the kernel. The calls are points in an interleaving, as loom switches
//! threads before and after them.

use super::*;
use crate::models::queues::Queue;

fn readable(fd: i32) -> bool {
    let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which lives until the call is over.
    unsafe { libc::poll(&mut entry, 1, 0) == 1 }
}

/// One event waits and is taken while a second one is delivered: the queue's descriptor is readable as long as
/// one waits, and not after.
#[test]
fn queue_fd_take_vs_deliver() {
    explore("queue_fd_take_vs_deliver", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let fd = queue.descriptor();
        let seen = Seen::new();
        for tick in [1, 2] {
            service.begin(&queue.spec(once(tick, &seen)));
        }
        service.forward(1);
        service.turn0();
        assert!(readable(fd));
        service.forward(1);
        let taker = thread(move || queue.take().is_some());
        service.turn0();
        assert!(taker.join().unwrap());
        assert!(readable(fd));
        assert!(queue.take().is_some());
        assert!(!readable(fd));
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.ended_by_fire), (0, 2));
        queue.free();
        threads::leave(true);
    });
}

/// The same when the descriptor is made while the event is delivered.
#[test]
fn queue_fd_made_vs_deliver() {
    explore("queue_fd_made_vs_deliver", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        service.begin(&queue.spec(once(1, &seen)));
        service.forward(1);
        let maker = thread(move || queue.descriptor());
        service.turn0();
        let fd = maker.join().unwrap();
        assert!(readable(fd));
        assert!(queue.take().is_some());
        assert!(!readable(fd));
        assert_eq!(service.quiet().pending, 0);
        queue.free();
        threads::leave(true);
    });
}

/// A start of a timer that is due at once, while a poll ends: the poll delivers it or the shard's descriptor is
/// readable.
#[test]
fn shard_fd_start_vs_rest() {
    explore("shard_fd_start_vs_rest", Some(3), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let fd = service.fd(0).unwrap();
        service.begin(&once(9, &seen[0]));
        let (other, theirs) = (service.clone(), seen[1].clone());
        let starter = thread(move || other.begin(&once(0, &theirs)));
        let fired = service.turn0();
        starter.join().unwrap();
        assert!(fired == 1 || readable(fd));
        assert_eq!(fired + service.turn0(), 1);
        assert!(!readable(fd));
        assert_eq!(service.quiet().pending, 1);
        threads::leave(true);
    });
}

/// The same when it is the clock that moves.
#[test]
fn shard_fd_advance_vs_rest() {
    explore("shard_fd_advance_vs_rest", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let fd = service.fd(0).unwrap();
        service.begin(&once(5, &seen));
        let other = service.clone();
        let mover = thread(move || other.forward(5));
        let fired = service.turn0();
        mover.join().unwrap();
        assert!(fired == 1 || readable(fd));
        assert_eq!(fired + service.turn0(), 1);
        assert!(!readable(fd));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// The same when the descriptor is made meanwhile.
#[test]
fn shard_fd_made_vs_start() {
    explore("shard_fd_made_vs_start", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let (other, theirs) = (service.clone(), seen.clone());
        let starter = thread(move || other.begin(&once(0, &theirs)));
        let fd = service.fd(0).unwrap();
        starter.join().unwrap();
        assert!(readable(fd));
        assert_eq!(service.turn0(), 1);
        assert!(!readable(fd));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// The same for a start from outside while the clock moves, and nobody polls.
#[test]
fn shard_fd_start_vs_advance() {
    explore("shard_fd_start_vs_advance", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let fd = service.fd(0).unwrap();
        let other = service.clone();
        let mover = thread(move || other.forward(5));
        service.begin(&once(5, &seen));
        mover.join().unwrap();
        assert!(readable(fd));
        assert_eq!((service.turn0(), service.quiet().pending), (1, 0));
        assert!(!readable(fd));
        threads::leave(true);
    });
}

/// Two events wait and two threads take: after that the queue's descriptor is not readable.
#[test]
fn queue_fd_take_vs_take() {
    explore("queue_fd_take_vs_take", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let fd = queue.descriptor();
        let seen = Seen::new();
        for tick in [1, 2] {
            service.begin(&queue.spec(once(tick, &seen)));
        }
        service.forward(2);
        service.turn0();
        assert!(readable(fd));
        let taker = thread(move || queue.take().is_some());
        let mine = queue.take().is_some();
        assert!(taker.join().unwrap() && mine);
        assert!(!readable(fd));
        assert_eq!(service.quiet().pending, 0);
        queue.free();
        threads::leave(true);
    });
}

/// An event is taken while the queue's descriptor is made: it is not readable then.
#[test]
fn queue_fd_made_vs_take() {
    explore("queue_fd_made_vs_take", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        service.begin(&queue.spec(once(1, &seen)));
        service.forward(1);
        service.turn0();
        let taker = thread(move || queue.take().is_some());
        let fd = queue.descriptor();
        assert!(taker.join().unwrap());
        assert!(!readable(fd));
        assert_eq!(service.quiet().pending, 0);
        queue.free();
        threads::leave(true);
    });
}

/// A thread that has looked when the next poll is wanted makes the queue's descriptor before that poll is over.
#[test]
fn queue_fd_made_within_a_poll() {
    explore("queue_fd_made_within_a_poll", Some(3), || {
        let service = Service::new(4);
        let queue = Queue::new(&service);
        let seen = Seen::new();
        service.begin(&queue.spec(once(1, &seen)));
        service.forward(1);
        let other = service.clone();
        let maker = thread(move || {
            other.next(0).unwrap();
            queue.descriptor()
        });
        service.turn0();
        let fd = maker.join().unwrap();
        assert!(readable(fd));
        assert!(queue.take().is_some());
        assert!(!readable(fd));
        assert_eq!(service.quiet().pending, 0);
        queue.free();
        threads::leave(true);
    });
}
