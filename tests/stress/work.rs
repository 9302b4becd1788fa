//! What a thread does all day: one random call after the other.

use crate::book::Book;
use crate::cell::{Ask, Cell, When};
use crate::play::Script;
use crate::run::Rng;
use crate::support::*;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// So many timers of its own a thread has at most.
const MINE: usize = 60;

/// One worker with its own timers.
pub struct Worker {
    pub book: &'static Book,
    pub rng: Rng,
    mine: Vec<&'static Cell>,
}

/// Any shard, or the one that the library chooses.
pub fn some_shard(book: &Book, rng: &mut Rng) -> u32 {
    if rng.one_in(2) { SW_SHARD_ANY } else { rng.below(u64::from(book.shards)) as u32 }
}

/// Gives a cell to all; the one in its place is cancelled.
pub fn share(cell: &'static Cell, rng: &mut Rng, inside: Option<&Cell>) {
    if let Some(old) = cell.book.share(cell, rng) {
        old.cancel(false, inside);
    }
}

/// An instant soon, now, in the past, or far away.
fn some_time(book: &Book, rng: &mut Rng) -> When {
    let delay = match rng.below(10) {
        0 => 0,
        1..4 => rng.below(MS),
        4..7 => rng.below(10 * MS),
        7 => rng.below(SEC),
        8 => HOUR + rng.below(HOUR),
        _ => return When::At(book.door.now().saturating_sub(rng.below(5 * MS))),
    };
    if rng.one_in(2) { When::After(delay) } else { When::At(book.door.now() + delay) }
}

/// Any timer, without a queue.
pub fn some_timer(book: &Book, rng: &mut Rng, owned: bool) -> Ask {
    let periodic = rng.one_in(5);
    let script = if rng.one_in(2) { Script::Quiet } else { rng.pick(&Script::ALL) };
    let flags = if periodic { rng.pick(&[0, 0, SW_TIMER_FIXED_DELAY, SW_TIMER_BURST]) } else { 0 };
    let period = match rng.below(5) {
        _ if !periodic => 0,
        0 => HOUR,
        _ => 200 * US + rng.below(10 * MS),
    };
    Ask {
        when: some_time(book, rng),
        period,
        slack: if rng.one_in(6) { rng.below(3 * MS) } else { 0 },
        flags,
        shard: some_shard(book, rng),
        script,
        owned,
        queue: None,
        seed: rng.next(),
    }
}

impl Worker {
    pub fn new(book: &'static Book, rng: Rng) -> Worker {
        Worker { book, rng, mine: Vec::new() }
    }

    /// So many steps, or until the service has been stopped.
    pub fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.step();
            if self.book.stopped.load(SeqCst) {
                return;
            }
        }
    }

    fn keep(&mut self, cell: &'static Cell) {
        self.mine.push(cell);
        if self.mine.len() > MINE {
            self.any_of_mine().cancel(false, None);
        }
    }

    /// Takes one of its own out.
    fn any_of_mine(&mut self) -> &'static Cell {
        let at = self.rng.below(self.mine.len() as u64) as usize;
        self.mine.swap_remove(at)
    }

    fn one_of_mine(&mut self) -> Option<&'static Cell> {
        let count = self.mine.len() as u64;
        (count > 0).then(|| self.mine[self.rng.below(count) as usize])
    }

    /// Its own timers, which are the caller's from now on.
    pub fn hand_over(self) -> Vec<&'static Cell> {
        self.mine
    }

    pub fn step(&mut self) {
        let (book, rng) = (self.book, &mut self.rng);
        match rng.below(100) {
            0..28 => {
                if let Ok(cell) = Cell::start(book, some_timer(book, rng, true)) {
                    self.keep(cell);
                }
            }
            28..44 => {
                let when = some_time(book, rng);
                if let Some(cell) = self.one_of_mine() {
                    cell.reset(when, None);
                }
            }
            44..58 => {
                let wait = rng.one_in(6);
                if !self.mine.is_empty() {
                    self.any_of_mine().cancel(wait, None);
                }
            }
            58..66 => {
                if let Ok(cell) = Cell::start(book, some_timer(book, rng, false)) {
                    share(cell, rng, None);
                }
            }
            66..76 => {
                let when = some_time(book, rng);
                if let Some(cell) = book.any_shared(rng) {
                    cell.reset(when, None);
                }
            }
            76..84 => {
                if let Some(cell) = book.any_shared(rng) {
                    cell.cancel(rng.one_in(2), None);
                }
            }
            84..90 => {
                if let Some(cell) = book.any_shared(rng) {
                    cell.remaining();
                }
                if let Some(cell) = self.one_of_mine() {
                    cell.remaining();
                }
            }
            90..93 => self.batch(),
            93..95 => book.look(),
            95..98 => std::thread::sleep(Duration::from_micros(50)),
            _ => std::thread::yield_now(),
        }
    }

    /// Starts a batch; cancels some of it as one, and gives the rest to the others.
    fn batch(&mut self) {
        let (book, rng) = (self.book, &mut self.rng);
        let asks: Vec<_> = (0..1 + rng.below(9))
            .map(|_| Ask { shard: some_shard(book, rng), ..Ask::after(rng.pick(&[0, MS, HOUR])) })
            .collect();
        let Ok(mut cells) = Cell::start_batch(book, &asks) else { return };
        for _ in 0..rng.below(4) {
            if let Some(cell) = cells.pop() {
                share(cell, rng, None);
            }
        }
        cells.iter().for_each(|cell| cell.batched.store(true, SeqCst));
        let timers: Vec<_> = cells.iter().map(|cell| cell.timer()).collect();
        match book.door.cancel_batch(&timers) {
            Ok(count) => drop(book.batch_ok.fetch_add(count as u64, SeqCst)),
            Err(status) => {
                book.refused(status, "batch of cancels");
                book.batch_refused.store(true, SeqCst);
            }
        }
    }
}
