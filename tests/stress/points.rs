//! On the manual clock each point of a grid is known: none is lost where the shard's turns meet the
//! takers of a queue.

use crate::book::Book;
use crate::cell::{Ask, Cell, When};
use crate::run::{Raise, Run, factor};
use crate::support::*;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// So many periodic timers, and parts of so many points.
const TIMERS: u64 = 50;
const PARTS: u64 = 100;
const POINTS: u64 = 10;

#[test]
fn no_point_is_lost() {
    let run = Run::begin("no_point_is_lost");
    let mut rng = run.rng(0);
    for _ in 0..2 * factor() {
        let svc = Setup::manual(MS).start();
        let book = Book::new(&svc, MS, false);
        let queue = book.door.queue();
        let ask = |seed| Ask {
            when: When::At(10 * MS),
            period: 10 * MS,
            queue: Some((0, queue)),
            owned: true,
            seed,
            ..Ask::after(0)
        };
        let cells: Vec<_> = (0..TIMERS).map(|seed| Cell::start(book, ask(seed)).unwrap()).collect();
        let (over, taken) = (AtomicBool::new(false), AtomicU64::new(0));
        let take = || {
            let began = book.epoch.load(SeqCst);
            let events = queue.poll(5);
            for (expiry, ctx) in &events {
                // SAFETY: the contexts of this book's timers are cells, which live for ever.
                unsafe { &*ctx.0.cast_const().cast::<Cell>() }.taken(expiry, began);
                taken.fetch_add(1, SeqCst);
            }
            events.len()
        };
        std::thread::scope(|scope| {
            let _raised = Raise(&over);
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(SeqCst) {
                        take();
                    }
                });
            }
            for part in 1..=PARTS {
                for _ in 0..POINTS {
                    svc.advance(10 * MS);
                    let before = taken.load(SeqCst);
                    svc.poll();
                    // The next turn meets takers that are at it.
                    let some = rng.below(TIMERS / 2);
                    while taken.load(SeqCst) < before + some {
                        std::hint::spin_loop();
                    }
                }
                // Nobody polls the shard now: what has not been delivered would not come.
                let all = part * POINTS;
                let behind = || cells.iter().find(|cell| cell.points.load(SeqCst) != all);
                let begin = Instant::now();
                while let Some(cell) = behind() {
                    let patient = begin.elapsed() < Duration::from_secs(5);
                    assert!(patient, "not all of its {all} points: {cell:?}");
                }
            }
        });
        book.drain();
        book.stop();
        book.verdict();
    }
}
