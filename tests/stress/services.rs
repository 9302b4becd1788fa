//! Several services on the same threads, with callbacks that call on each other's; others come
//! and go beside them.

use crate::book::Book;
use crate::run::{Raise, Rng, Run, factor};
use crate::support::*;
use crate::work::Worker;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn several_services_at_once() {
    let run = Run::begin("several_services_at_once");
    for round in 0..2 * factor() {
        let mut rng = run.rng(round);
        let setups = [Setup::threaded(1), Setup::threaded(2).tick(US), Setup::driven().shards(2)];
        let services = setups.map(Setup::start);
        let books = services.each_ref().map(|svc| Book::new(svc, MS, true));
        for book in books {
            assert!(book.friends.set(books.to_vec()).is_ok());
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let over = &over;
            let _raised = Raise(over);
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    let mut of = books.map(|book| Worker::new(book, Rng::new(rng.next())));
                    scope.spawn(move || {
                        for _ in 0..3_000 {
                            of.iter_mut().for_each(Worker::step);
                        }
                    })
                })
                .collect();
            let driven = books[2];
            scope.spawn(move || {
                while !over.load(SeqCst) {
                    for shard in 0..2 {
                        if let Err(status) = driven.door.try_poll(shard, 0) {
                            driven.refused(status, "poll");
                        }
                    }
                    std::thread::yield_now();
                }
            });
            let mut guest = Rng::new(rng.next());
            while !workers.iter().all(|worker| worker.is_finished()) {
                come_and_go(&mut guest, &books);
            }
        });
        // A callback may call on any of them until all have been stopped.
        for book in books {
            book.stop();
        }
        books.iter().for_each(|book| book.verdict());
    }
}

/// A service that lives for a moment. What it leaves behind means nothing to the others.
fn come_and_go(rng: &mut Rng, others: &[&'static Book]) {
    let svc = Setup::threaded(1 + rng.below(3) as u32).start();
    let book = Book::new(&svc, MS, false);
    let mut worker = Worker::new(book, Rng::new(rng.next()));
    worker.steps(300);
    let strange: Vec<_> = book.cells().map(|cell| cell.timer()).take(5).collect();
    let unknown = |status| matches!(status, SW_NOT_FOUND | SW_INVALID);
    for &timer in &strange {
        for other in others {
            assert!(unknown(other.door.cancel(timer)));
            assert!(unknown(other.door.reset(timer, 0)));
        }
    }
    for other in others {
        for timer in other.cells().map(|cell| cell.timer()).take(2) {
            assert!(unknown(svc.cancel(timer)));
        }
    }
    book.stop();
    book.verdict();
}
