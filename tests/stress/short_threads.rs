//! Thousands of threads that start a few timers and end: what a thread costs comes back.

use crate::book::Book;
use crate::cell::Cell;
use crate::run::{Rng, Run, factor};
use crate::support::*;
use crate::work::Worker;

/// Threads that live at the same time.
const AT_ONCE: u64 = 6;

/// What a service may grow by, once it has seen some hundreds of threads.
const GROWTH: u64 = 256 << 10;

fn brief_threads(book: &'static Book, rng: &mut Rng, count: u64) {
    let driven = book.shards == 1;
    for _ in 0..count / AT_ONCE {
        let left: Vec<&'static Cell> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    let mut worker = Worker::new(book, Rng::new(rng.next()));
                    scope.spawn(move || {
                        worker.steps(12);
                        if driven && let Err(status) = book.door.try_poll(0, 0) {
                            book.refused(status, "poll");
                        }
                        worker.hand_over()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        for cell in left {
            cell.cancel(true, None);
        }
    }
}

fn flat(name: &'static str, setup: Setup, busy: bool, max_timers: u64) {
    let run = Run::begin(name);
    let mut rng = run.rng(0);
    let svc = setup.max_timers(max_timers).start();
    let book = Book::new(&svc, MS, busy);
    brief_threads(book, &mut rng, 600);
    let before = svc.stats().memory_bytes;
    brief_threads(book, &mut rng, 3_000 * factor());
    let after = svc.stats().memory_bytes;
    println!("  memory_bytes: {before} to {after}");
    assert!(after <= before + GROWTH, "memory_bytes: {before} to {after}");
    book.drain();
    if max_timers != 0 {
        book.holds(max_timers);
    }
    assert_eq!(book.stop(), 0);
    book.verdict();
}

#[test]
fn thousands_of_threads() {
    flat("thousands_of_threads", Setup::threaded(2), false, 0);
}

#[test]
fn thousands_of_threads_that_poll() {
    flat("thousands_of_threads_that_poll", Setup::driven(), true, 0);
}

#[test]
fn thousands_of_threads_and_no_room() {
    flat("thousands_of_threads_and_no_room", Setup::threaded(2), false, 40);
}
