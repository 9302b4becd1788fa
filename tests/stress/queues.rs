//! Expiries that go to queues, with two takers, while the queues come and go.

use crate::book::Book;
use crate::cell::{Ask, Cell, When};
use crate::driven;
use crate::run::{Raise, Rng, Run, factor};
use crate::support::*;
use crate::work::{self, Worker};
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
        match queue.free() {
            SW_OK => self.book.freed.lock().unwrap().push(number),
            // A shard is attached exclusively: the queue stays.
            status => return self.book.refused(status, "free of a queue"),
        }
        *place = (self.numbers.fetch_add(1, SeqCst), self.book.door.queue());
        if rng.one_in(2) {
            // From now on its descriptor has to follow.
            place.1.fd();
        }
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

    /// Takes what there is, and answers how much; the queue is not freed meanwhile.
    fn take_some(&self, (number, queue): (u32, Queue), capacity: usize) -> usize {
        let began = self.book.epoch.load(SeqCst);
        let events = queue.poll(capacity);
        for (expiry, ctx) in &events {
            // SAFETY: the contexts of this book's timers are cells, which live for ever.
            let cell = unsafe { &*ctx.0.cast_const().cast::<Cell>() };
            let right = cell.ask.queue.map(|(number, _)| number) == Some(number);
            self.book.expect(right, || format!("in queue {number}: {cell:?}"));
            cell.taken(expiry, began);
        }
        events.len()
    }

    /// With nothing pending: a descriptor is readable when there is something to take, and only then.
    fn follow(&self) {
        for place in &self.places {
            let place = *place.queue.read().unwrap();
            assert_eq!(self.take_some(place, 1), 0);
            assert!(!place.1.readable(), "nothing waits");
            let ask = Ask { queue: Some(place), ..Ask::after(0) };
            let cell = Cell::start(self.book, ask).unwrap();
            eventually("an event waits", || {
                if let Err(status) = self.book.door.try_poll(sw_timer_shard(cell.timer()), 0) {
                    assert_eq!(status, SW_UNSUPPORTED);
                }
                place.1.readable()
            });
            assert_eq!(self.take_some(place, 2), 1);
            eventually("it was the only one", || !place.1.readable());
        }
    }

    /// Takes what there is until the others are done.
    fn take(&self, mut rng: Rng, over: &AtomicBool) {
        while !over.load(SeqCst) {
            let place = self.place(&mut rng).queue.read().unwrap();
            self.take_some(*place, 1 + rng.below(40) as usize);
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
        let driven = round % 4 >= 2;
        let setup = if driven { Setup::driven().shards(2) } else { Setup::threaded(2) };
        let tick = rng.pick(&[US, 100 * US, MS]);
        let svc = setup.tick(tick).start();
        let book = Book::new(&svc, tick, driven);
        let queues = Queues::new(book);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (queues, over) = (&queues, &over);
            let _raised = Raise(over);
            for _ in 0..2 {
                let rng = Rng::new(rng.next());
                scope.spawn(move || queues.take(rng, over));
            }
            for shard in 0..if driven { 2 } else { 0 } {
                let worker = Worker::new(book, Rng::new(rng.next()));
                scope.spawn(move || driven::poll(worker, shard, over));
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
            book.catch_up();
        });
        if round % 2 == 0 {
            book.drain();
            queues.follow();
            assert_eq!(book.stop(), 0);
        } else {
            // A queue is freed while stop hands timers back.
            let first = &queues.places[0];
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let place = first.queue.read().unwrap();
                    book.freed.lock().unwrap().push(place.0);
                    assert_eq!(place.1.free(), SW_OK);
                });
                book.stop();
            });
        }
        book.verdict();
        let place = queues.places[2].queue.read().unwrap();
        assert_eq!(place.1.try_poll(1).err(), Some(SW_STOPPED), "a queue of a stopped service");
        if round % 2 == 1 {
            // A stopped service's queue can be freed; the others go with it.
            assert_eq!(place.1.free(), SW_OK);
        }
    }
}
