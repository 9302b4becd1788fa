//! Stop in the middle of everything: what races with it is refused, or handed back once.

use crate::book::Book;
use crate::cell::{Ask, Cell};
use crate::run::{Rng, Run, factor};
use crate::support::*;
use crate::work::Worker;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

#[test]
fn stop_in_the_middle() {
    let run = Run::begin("stop_in_the_middle");
    let mut returned = 0;
    for round in 0..60 * factor() {
        returned += one(&run, round);
    }
    assert!(returned > 0, "nothing was ever handed back");
}

fn one(run: &Run, round: u64) -> u64 {
    let mut rng = run.rng(round);
    let driven = round % 3 == 2;
    let setup = if driven { Setup::driven().shards(2) } else { Setup::threaded(2) };
    let tick = rng.pick(&[US, MS]);
    let svc = setup.tick(tick).start();
    let book = Book::new(&svc, tick, driven);
    let pause = Duration::from_micros(rng.below(4_000));
    let returned = std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut worker = Worker::new(book, Rng::new(rng.next()));
            scope.spawn(move || worker.steps(u64::MAX));
        }
        if driven {
            for shard in 0..2 {
                scope.spawn(move || {
                    while !book.stopped.load(SeqCst) {
                        if let Err(status) = book.door.try_poll(shard, 0) {
                            book.refused(status, "poll");
                        }
                    }
                });
            }
        }
        std::thread::sleep(pause);
        let twice = rng.one_in(3);
        let other = scope.spawn(move || if twice { book.stop() } else { 0 });
        book.stop() + other.join().unwrap()
    });
    assert_eq!(book.stop(), 0, "once more");
    assert_eq!(returned, book.door.stats().returned);
    let late = Cell::start(book, Ask::after(0));
    assert_eq!(late.err(), Some(SW_STOPPED));
    for cell in book.cells().filter(|cell| cell.accepted.load(SeqCst)).take(20) {
        assert_eq!(book.door.cancel(cell.timer()), SW_STOPPED);
        assert_eq!(book.door.reset(cell.timer(), 0), SW_STOPPED);
    }
    book.verdict();
    returned
}
