//! Two shards polled by two threads, while four others start, cancel and reset, and anybody
//! attaches to a shard now and then.

use crate::book::Book;
use crate::run::{Raise, Rng, Run, factor};
use crate::support::*;
use crate::work::Worker;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

#[test]
fn two_polling_threads_and_four_others() {
    let run = Run::begin("two_polling_threads_and_four_others");
    for round in 0..6 * factor() {
        let mut rng = run.rng(round);
        let manual = round % 2 == 1;
        let tick = rng.pick(&[US, 100 * US, MS]);
        let setup = if manual { Setup::manual(tick) } else { Setup::driven().tick(tick) };
        let svc = setup.shards(2).start();
        let book = Book::new(&svc, tick, true);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let over = &over;
            let _raised = Raise(over);
            for shard in 0..2 {
                let worker = Worker::new(book, Rng::new(rng.next()));
                scope.spawn(move || poll(worker, shard, over));
            }
            if manual {
                let mut rng = Rng::new(rng.next());
                scope.spawn(move || {
                    while !over.load(SeqCst) {
                        book.door.advance(rng.below(2 * MS));
                        std::thread::sleep(Duration::from_micros(rng.below(300)));
                    }
                });
            }
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    let worker = Worker::new(book, Rng::new(rng.next()));
                    scope.spawn(move || work(worker, 10_000))
                })
                .collect();
            for worker in workers {
                worker.join().unwrap();
            }
        });
        book.poll_up();
        if round % 3 == 0 {
            book.drain();
            assert_eq!(book.stop(), 0);
        } else {
            book.stop();
        }
        book.verdict();
    }
}

/// Polls one shard, and now and then another; sometimes attached.
pub fn poll(mut worker: Worker, shard: u32, over: &AtomicBool) {
    while !over.load(SeqCst) {
        match worker.rng.below(200) {
            0 => attached(&mut worker, shard),
            1..5 => poll_once(&mut worker, 1 - shard),
            5..20 => std::thread::sleep(Duration::from_micros(worker.rng.below(100))),
            20..60 => std::thread::yield_now(),
            _ => poll_once(&mut worker, shard),
        }
    }
}

fn poll_once(worker: &mut Worker, shard: u32) {
    let budget = worker.rng.pick(&[0, 0, 1, 7, 64]);
    match worker.book.door.try_poll(shard, budget) {
        Ok(fired) => {
            let right = budget == 0 || fired <= budget;
            worker.book.expect(right, || format!("{fired} fired of at most {budget}"));
        }
        Err(status) => worker.book.refused(status, "poll"),
    }
}

/// Steps and polls as the owner of a shard, if it is to be had.
fn attached(worker: &mut Worker, shard: u32) {
    let how = worker.rng.pick(&[SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE]);
    let door = worker.book.door;
    match door.attach(shard, how) {
        SW_OK => {}
        status => return worker.book.refused(status, "attach"),
    }
    for _ in 0..worker.rng.below(60) {
        worker.step();
        if worker.rng.one_in(4) {
            poll_once(worker, shard);
        }
        if worker.rng.one_in(40) {
            let how = worker.rng.pick(&[SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE]);
            // Refused while a queue is freed; then it stays attached as it was.
            match door.attach(shard, how) {
                SW_OK => {}
                status => worker.book.refused(status, "attach again"),
            }
        }
    }
    let answer = door.detach(shard);
    worker.book.expect(answer == SW_OK, || format!("the owner's detach: {answer:?}"));
}

/// A worker's day, with shards of its own now and then.
fn work(mut worker: Worker, steps: u64) {
    for _ in 0..steps {
        worker.step();
        if worker.rng.one_in(400) {
            let shard = worker.rng.below(2) as u32;
            attached(&mut worker, shard);
        }
        if worker.rng.one_in(800) {
            // It ends while it is attached.
            let (book, seed) = (worker.book, worker.rng.next());
            let brief = std::thread::spawn(move || {
                let mut worker = Worker::new(book, Rng::new(seed));
                let shard = worker.rng.below(2) as u32;
                if book.door.attach(shard, worker.rng.below(2) as u32) == SW_OK {
                    worker.steps(20);
                    poll_once(&mut worker, shard);
                }
            });
            brief.join().unwrap();
        }
    }
}
