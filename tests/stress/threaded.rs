//! The shards' own threads fire while four threads do everything else.

use crate::book::Book;
use crate::run::{Run, factor};
use crate::support::*;
use crate::work::Worker;

#[test]
fn four_threads_on_two_shards() {
    let run = Run::begin("four_threads_on_two_shards");
    for round in 0..6 * factor() {
        let mut rng = run.rng(round);
        let tick = rng.pick(&[US, 100 * US, MS]);
        let mut setup = Setup::threaded(2).tick(tick);
        // Now and then the shards are full.
        let full = round % 3 == 2;
        if full {
            setup = setup.max_timers(120);
        }
        let svc = setup.start();
        let book = Book::new(&svc, tick, false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mut worker = Worker::new(book, crate::run::Rng::new(rng.next()));
                scope.spawn(move || worker.steps(20_000));
            }
        });
        book.catch_up();
        if round % 2 == 0 {
            book.drain();
            if full {
                book.holds(120);
            }
            assert_eq!(book.stop(), 0);
        } else {
            book.stop();
        }
        book.verdict();
    }
}
