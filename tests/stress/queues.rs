//! Expiries that go to queues, with two takers, while the queues come and go.

use crate::book::{Book, Lets};
use crate::cell::{Ask, Cell, When};
use crate::run::{Rng, Run, factor};
use crate::support::*;
use crate::work;
use std::sync::RwLock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

/// A place for one queue after the other. Who polls it, or starts a timer that names it, holds
/// the lock: a queue that is freed is not in use. Cancels and resets go on all the while.
struct Place {
    queue: RwLock<(u32, Queue)>,
}

struct Queues {
    book: &'static Book,
    places: Vec<Place>,
    numbers: AtomicU32,
}

impl Queues {
    fn new(book: &'static Book) -> Queues {
        let places = (0..3)
            .map(|number| Place { queue: RwLock::new((number, book.door.queue())) })
            .collect();
        Queues { book, places, numbers: AtomicU32::new(3) }
    }

    fn place(&self, rng: &mut Rng) -> &Place {
        &self.places[rng.below(self.places.len() as u64) as usize]
    }

    /// Frees a queue with all that is in it, and puts a new one in its place.
    fn replace(&self, rng: &mut Rng) {
        let mut place = self.place(rng).queue.write().unwrap();
        let (number, queue) = *place;
        self.book.freed.lock().unwrap().push(number);
        assert_eq!(queue.free(), SW_OK);
        *place = (self.numbers.fetch_add(1, SeqCst), self.book.door.queue());
    }

    fn start(&self, rng: &mut Rng) -> Option<&'static Cell> {
        let owned = rng.one_in(2);
        let mut ask = work::some_timer(self.book, rng, owned);
        if rng.one_in(3) {
            // Soon, so that events wait.
            ask.when = When::After(rng.below(500 * US));
        }
        if rng.one_in(8) {
            // Beside them timers with callbacks.
            return Cell::start(self.book, Ask { owned: false, ..ask }).ok();
        }
        let place = self.place(rng).queue.read().unwrap();
        Cell::start(self.book, Ask { queue: Some(*place), ..ask }).ok()
    }

    /// Takes what there is until the others are done.
    fn take(&self, mut rng: Rng, over: &AtomicBool) {
        while !over.load(SeqCst) {
            let place = self.place(&mut rng).queue.read().unwrap();
            let began = self.book.epoch.load(SeqCst);
            let events = place.1.poll(1 + rng.below(40) as usize);
            for (expiry, ctx) in events {
                // SAFETY: the contexts of this book's timers are cells, which live for ever.
                let cell = unsafe { &*ctx.0.cast_const().cast::<Cell>() };
                let number = cell.ask.queue.map(|(number, _)| number);
                let right = number == Some(place.0);
                self.book.expect(right, || format!("in queue {}: {cell:?}", place.0));
                cell.taken(&expiry, began);
            }
            std::mem::drop(place);
            if rng.one_in(4) {
                std::thread::sleep(Duration::from_micros(rng.below(200)));
            }
        }
    }

    /// Starts, resets and cancels.
    fn work(&self, mut rng: Rng, steps: u64) {
        let mut mine: Vec<&'static Cell> = Vec::new();
        for _ in 0..steps {
            match rng.below(20) {
                0..8 => match self.start(&mut rng) {
                    Some(cell) if cell.ask.owned => mine.push(cell),
                    Some(cell) => work::share(cell, &mut rng, None),
                    None => {}
                },
                8..12 if !mine.is_empty() => {
                    let delay = rng.pick(&[0, 200 * US, 2 * MS, HOUR]);
                    let cell = rng.pick(&mine);
                    cell.reset(When::After(delay), None);
                }
                12..14 if !mine.is_empty() => {
                    let at = rng.below(mine.len() as u64) as usize;
                    mine.swap_remove(at).cancel(rng.one_in(5), None);
                }
                14 => {
                    if let Some(cell) = self.book.any_shared(&mut rng) {
                        cell.cancel(rng.one_in(5), None);
                    }
                }
                15..18 => {
                    let delay = rng.pick(&[0, 200 * US, 2 * MS, HOUR]);
                    if let Some(cell) = self.book.any_shared(&mut rng) {
                        cell.reset(When::After(delay), None);
                    }
                }
                18 => {
                    if let Some(cell) = self.book.any_shared(&mut rng) {
                        cell.remaining();
                    }
                    if !mine.is_empty() {
                        rng.pick(&mine).remaining();
                    }
                }
                _ => std::thread::sleep(Duration::from_micros(rng.below(100))),
            }
            if mine.len() > 80 {
                mine.swap_remove(0).cancel(false, None);
            }
        }
    }
}

#[test]
fn queues_come_and_go() {
    let run = Run::begin("queues_come_and_go");
    for round in 0..4 * factor() {
        let mut rng = run.rng(round);
        let svc = Setup::threaded(2).tick(rng.pick(&[US, 100 * US, MS])).start();
        let book = Book::new(&svc, Lets::default());
        let queues = Queues::new(book);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (queues, over) = (&queues, &over);
            for _ in 0..2 {
                let rng = Rng::new(rng.next());
                scope.spawn(move || queues.take(rng, over));
            }
            let workers: Vec<_> = (0..3)
                .map(|_| {
                    let rng = Rng::new(rng.next());
                    scope.spawn(move || queues.work(rng, 20_000))
                })
                .collect();
            while !workers.iter().all(|worker| worker.is_finished()) {
                std::thread::sleep(Duration::from_micros(rng.below(8_000)));
                queues.replace(&mut rng);
            }
            over.store(true, SeqCst);
        });
        if round % 2 == 0 {
            book.drain();
            assert_eq!(book.stop(), 0);
        } else {
            book.stop();
        }
        book.verdict();
        let stopped = queues.places[0].queue.read().unwrap().1.try_poll(1);
        assert_eq!(stopped.err(), Some(SW_STOPPED), "a queue of a stopped service");
        if round % 2 == 1 {
            // A stopped service's queue can be freed; the others go with it.
            assert_eq!(queues.places[0].queue.read().unwrap().1.free(), SW_OK);
        }
    }
}
