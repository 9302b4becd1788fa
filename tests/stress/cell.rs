//! One timer, the calls on it, and what became of it.

use crate::book::Book;
use crate::play::{self, Script};
use crate::run::Rng;
use crate::support::*;
use std::cell::Cell as Local;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

/// When a timer is to come.
#[derive(Clone, Copy)]
pub enum When {
    After(u64),
    At(u64),
}

/// A timer as it is asked for.
#[derive(Clone, Copy)]
pub struct Ask {
    pub when: When,
    pub period: u64,
    pub slack: u64,
    pub flags: u32,
    pub shard: u32,
    pub script: Script,
    /// One thread alone calls on it: then each answer pins down the deadline.
    pub owned: bool,
    pub queue: Option<(u32, Queue)>,
    pub seed: u64,
}

impl Ask {
    /// A plain one-shot.
    pub fn after(delay: u64) -> Ask {
        Ask {
            when: When::After(delay),
            period: 0,
            slack: 0,
            flags: 0,
            shard: SW_SHARD_ANY,
            script: Script::Quiet,
            owned: false,
            queue: None,
            seed: 0,
        }
    }
}

/// See the module. Lives until the process ends.
pub struct Cell {
    pub book: &'static Book,
    pub ask: Ask,
    /// The cell that was made before it.
    pub before: AtomicPtr<Cell>,
    pub handle: AtomicU64,
    pub accepted: AtomicBool,
    /// Cancels and resets that have begun.
    pub tries: AtomicU32,
    pub resets: AtomicU32,
    /// Cancels that answered OK, and RUNNING (or WOULD_DEADLOCK, which implies it).
    pub ok: AtomicU32,
    pub running: AtomicU32,
    /// It was in a batch that was cancelled, whose answers are known as a sum only.
    pub batched: AtomicBool,
    /// Times that it was armed again in its own callback, having been over; in which one last.
    pub rearms: AtomicU32,
    pub rearmed_in: AtomicU32,
    /// Callbacks that began and ended; for a queue: events taken.
    pub entered: AtomicU32,
    pub exited: AtomicU32,
    /// So many callbacks may begin in all.
    pub limit: AtomicU32,
    /// An answer said that it has ended.
    pub ended: AtomicBool,
    /// The book's epoch after a cancel had answered OK.
    pub ended_at: AtomicU64,
    pub returned: AtomicU32,
    pub dropped: AtomicU32,
    /// No deadline before this has been asked for.
    pub floor: AtomicU64,
    /// The last deadline lies between these; known for owned cells.
    pub low: AtomicU64,
    pub high: AtomicU64,
    /// As the last callback was told, and the clock as it began.
    pub deadline: AtomicU64,
    pub clock: AtomicU64,
    /// Points of the grid served or missed.
    pub points: AtomicU64,
}

thread_local! {
    /// Whether this thread is inside a call that must not call back.
    static IN_CALL: Local<bool> = const { Local::new(false) };
}

/// Runs one call of the library inside which no callback may run.
pub fn call<T>(of: impl FnOnce() -> T) -> T {
    let before = IN_CALL.replace(true);
    let answer = of();
    IN_CALL.set(before);
    answer
}

pub fn in_call() -> bool {
    IN_CALL.get()
}

impl Cell {
    fn new(book: &'static Book, ask: Ask) -> &'static Cell {
        let cell = Box::leak(Box::new(Cell {
            book,
            ask,
            before: AtomicPtr::default(),
            handle: AtomicU64::new(SW_TIMER_NONE),
            accepted: AtomicBool::new(false),
            tries: AtomicU32::new(0),
            resets: AtomicU32::new(0),
            ok: AtomicU32::new(0),
            running: AtomicU32::new(0),
            batched: AtomicBool::new(false),
            rearms: AtomicU32::new(0),
            rearmed_in: AtomicU32::new(0),
            entered: AtomicU32::new(0),
            exited: AtomicU32::new(0),
            limit: AtomicU32::new(u32::MAX),
            ended: AtomicBool::new(false),
            ended_at: AtomicU64::new(u64::MAX),
            returned: AtomicU32::new(0),
            dropped: AtomicU32::new(0),
            floor: AtomicU64::new(u64::MAX),
            low: AtomicU64::new(0),
            high: AtomicU64::new(u64::MAX),
            deadline: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            points: AtomicU64::new(0),
        }));
        book.add(cell);
        cell
    }

    /// The timer's spec; its context is the cell.
    fn spec(&'static self) -> sw_timer_spec {
        let ask = &self.ask;
        let mut timer = self.book.door.timer().period(ask.period).slack(ask.slack);
        timer = match ask.when {
            When::After(delay) => timer.delay(delay),
            When::At(deadline) => timer.at(deadline),
        };
        timer = timer.flags(ask.flags).shard(ask.shard);
        if let Some((_, queue)) = ask.queue {
            timer = timer.queue(queue);
        }
        timer
            .with(|spec| {
                spec.callback = Some(play::fire);
                spec.ctx = std::ptr::from_ref(self).cast_mut().cast();
                spec.drop = Some(play::drop);
            })
            .spec()
    }

    /// The deadline, were it asked for now: before the call a lower bound, after it an upper one.
    fn instant(&self, when: When) -> u64 {
        match when {
            When::After(delay) => self.book.door.now().saturating_add(delay),
            When::At(deadline) => deadline,
        }
    }

    /// Starts a timer; on refusal its drop has run.
    pub fn start(book: &'static Book, ask: Ask) -> Result<&'static Cell, sw_status> {
        let cell = Cell::new(book, ask);
        let spec = cell.spec();
        let low = cell.instant(ask.when);
        cell.floor.store(low, SeqCst);
        // The callback compares: so the library writes the handle where the callback reads it.
        let out = cell.handle.as_ptr();
        let over = book.stopped.load(SeqCst);
        // SAFETY: the service is alive; the cell lives for ever.
        let status = call(|| unsafe { sw_timer_start_spec(book.door.raw(), &spec, out) });
        book.expect(!over || status == SW_STOPPED, || format!("{status:?} after stop {cell:?}"));
        if status == SW_FULL {
            book.full_starts.fetch_add(1, SeqCst);
        }
        cell.started(status, low)
    }

    /// Starts all or none.
    pub fn start_batch(book: &'static Book, asks: &[Ask]) -> Result<Vec<&'static Cell>, sw_status> {
        let cells: Vec<_> = asks.iter().map(|&ask| Cell::new(book, ask)).collect();
        let specs: Vec<_> = cells.iter().map(|cell| cell.spec()).collect();
        let lows: Vec<_> = cells.iter().map(|cell| cell.instant(cell.ask.when)).collect();
        for (cell, &low) in cells.iter().zip(&lows) {
            cell.floor.store(low, SeqCst);
        }
        let mut timers = vec![SW_TIMER_NONE; cells.len()];
        let (first, count) = (specs.as_ptr(), specs.len());
        // SAFETY: the service is alive; both arrays have `count` elements.
        let status = call(|| unsafe {
            sw_timer_start_batch(book.door.raw(), first, count, timers.as_mut_ptr())
        });
        for ((cell, low), timer) in cells.iter().zip(lows).zip(timers) {
            cell.handle.store(timer, SeqCst);
            let _ = cell.started(status, low);
        }
        if status == SW_OK { Ok(cells) } else { Err(status) }
    }

    fn started(&'static self, status: sw_status, low: u64) -> Result<&'static Cell, sw_status> {
        if status == SW_OK {
            self.accepted.store(true, SeqCst);
            self.low.store(low, SeqCst);
            self.high.store(self.instant(self.ask.when), SeqCst);
            return Ok(self);
        }
        self.book.expect(self.dropped.load(SeqCst) == 1, || format!("refused, no drop {self:?}"));
        self.book.refused(status, "start");
        Err(status)
    }

    pub fn timer(&self) -> sw_timer {
        self.handle.load(SeqCst)
    }

    fn is_quiet(&self) -> bool {
        // The end first: what began before it is then seen to have begun.
        let exited = self.exited.load(SeqCst);
        self.ask.queue.is_some() || self.entered.load(SeqCst) == exited
    }

    /// No callback begins any more.
    fn seal(&self) {
        if self.ask.queue.is_none() {
            self.limit.fetch_min(self.entered.load(SeqCst), SeqCst);
        }
    }

    /// The callback that runs now, if it has not begun yet, is the last.
    fn seal_after_this(&self) {
        let exited = self.exited.load(SeqCst);
        let entered = self.entered.load(SeqCst);
        self.limit.fetch_min(if entered > exited { entered } else { entered + 1 }, SeqCst);
    }

    /// Cancels. `inside`: the cell whose callback this thread runs.
    pub fn cancel(&self, wait: bool, inside: Option<&Cell>) -> sw_status {
        let own = inside.is_some_and(|cell| std::ptr::eq(cell, self));
        let ended = self.ended.load(SeqCst);
        self.tries.fetch_add(1, SeqCst);
        let door = self.book.door;
        let timer = self.timer();
        let answer = call(|| if wait { door.cancel_wait(timer) } else { door.cancel(timer) });
        let dropped = self.dropped.load(SeqCst);
        let expect = |right: bool, what: &str| {
            self.book
                .expect(right, || format!("{what}: {answer:?} wait {wait} own {own} {self:?}"));
        };
        match answer {
            SW_OK => {
                let stamp = self.book.epoch.fetch_add(1, SeqCst) + 1;
                self.ended_at.fetch_min(stamp, SeqCst);
                expect(self.ok.fetch_add(1, SeqCst) == 0, "a second OK");
                if own {
                    expect(self.ask.period != 0 && !wait, "OK in its own callback");
                } else {
                    expect(self.is_quiet(), "OK while it runs");
                    expect(dropped == 1, "OK before its drop");
                    self.ended.store(true, SeqCst);
                }
                self.seal();
            }
            SW_RUNNING | SW_WOULD_DEADLOCK => {
                self.running.fetch_add(1, SeqCst);
                expect(self.ask.queue.is_none(), "an event does not run");
                if answer == SW_WOULD_DEADLOCK {
                    expect(wait && inside.is_some(), "no deadlock");
                } else if wait {
                    expect(!own, "it waited for itself");
                    expect(self.is_quiet(), "it runs after the wait");
                    expect(dropped == 1, "it waited, but not for the drop");
                    self.ended.store(true, SeqCst);
                    self.seal();
                } else {
                    expect(!own || self.ask.period == 0, "RUNNING in its own callback");
                }
                self.seal_after_this();
            }
            SW_NOT_FOUND if own => {
                let others = self.tries.load(SeqCst) > 1;
                expect(self.ask.period != 0 && others, "not found in its own callback");
            }
            SW_NOT_FOUND => {
                expect(self.is_quiet(), "not found while it runs");
                // An event that was taken is not dropped.
                let taken = self.ask.queue.is_some() && self.ask.period == 0;
                expect(!wait || taken || dropped == 1, "over, but not dropped");
                self.ended.store(true, SeqCst);
                self.seal();
            }
            refused => self.book.refused(refused, "cancel"),
        }
        self.stale(ended, answer);
        answer
    }

    /// Moves the deadline; an owned cell's bounds move with it.
    pub fn reset(&self, when: When, inside: Option<&Cell>) -> sw_status {
        let own = inside.is_some_and(|cell| std::ptr::eq(cell, self));
        let ended = self.ended.load(SeqCst);
        self.resets.fetch_add(1, SeqCst);
        let low = self.instant(when);
        self.floor.fetch_min(low, SeqCst);
        let door = self.book.door;
        let answer = call(|| match when {
            When::After(delay) => door.reset(self.timer(), delay),
            When::At(deadline) => door.reset_at(self.timer(), deadline),
        });
        match answer {
            SW_OK => {
                self.low.store(low, SeqCst);
                self.high.store(self.instant(when), SeqCst);
                let entered = self.entered.load(SeqCst);
                // A second time in one callback only moves what has just been armed.
                if own && self.ask.period == 0 && self.rearmed_in.swap(entered, SeqCst) != entered {
                    self.rearms.fetch_add(1, SeqCst);
                }
            }
            SW_RUNNING => {
                let doomed = self.tries.load(SeqCst) > 0;
                let right = !own && (self.ask.period == 0 || doomed) && self.ask.queue.is_none();
                self.book.expect(right, || format!("a reset answers RUNNING {self:?}"));
            }
            SW_NOT_FOUND if own => {
                let doomed = self.tries.load(SeqCst) > 0;
                self.book.expect(doomed, || format!("not armed again {self:?}"));
            }
            SW_NOT_FOUND => {
                self.book.expect(self.is_quiet(), || format!("not found while it runs {self:?}"));
                self.ended.store(true, SeqCst);
                self.seal();
            }
            refused => self.book.refused(refused, "reset"),
        }
        self.stale(ended, answer);
        answer
    }

    pub fn remaining(&self) {
        let ended = self.ended.load(SeqCst);
        let begin = self.book.door.now();
        let answer = call(|| self.book.door.remaining(self.timer()));
        match answer {
            Ok(left) if self.ask.owned && self.ask.period == 0 => {
                let (low, high) = (self.low.load(SeqCst), self.high.load(SeqCst));
                let least = low.saturating_sub(self.book.door.now());
                let most = high.saturating_sub(begin);
                let right = self.ask.script != Script::Quiet || (least..=most).contains(&left);
                self.book.expect(right, || format!("{left} left, not {least}..={most} {self:?}"));
            }
            Ok(_) => {}
            Err(SW_RUNNING) => {
                self.book.expect(self.ask.queue.is_none(), || format!("an event runs {self:?}"));
            }
            Err(SW_NOT_FOUND) => self.ended.store(true, SeqCst),
            Err(refused) => self.book.refused(refused, "remaining"),
        }
        self.stale(ended, answer.map_or_else(|status| status, |_| SW_OK));
    }

    /// What had ended before the call stays so.
    fn stale(&self, ended: bool, answer: sw_status) {
        let right = !ended || matches!(answer, SW_NOT_FOUND | SW_BUSY | SW_STOPPED);
        self.book.expect(right, || format!("it had ended, but: {answer:?} {self:?}"));
    }

    /// Its event has been taken by a poll that began at this epoch of the book.
    pub fn taken(&self, expiry: &sw_expiry, began: u64) {
        let entered = self.entered.fetch_add(1, SeqCst) + 1;
        self.exited.fetch_add(1, SeqCst);
        let expect = |right: bool, what: &str| {
            self.book.expect(right, || format!("event: {what}: {expiry:?} {self:?}"));
        };
        expect(self.ask.queue.is_some(), "not of a queue");
        expect(self.ended_at.load(SeqCst) > began, "taken after a cancel that answered OK");
        expect(self.ask.period != 0 || entered == 1, "taken twice");
        expect(self.ask.period != 0 || self.dropped.load(SeqCst) == 0, "dropped and taken");
        self.told(expiry);
    }

    /// How far the deadline that is told may lie beside the true one. Of a timer without a period and
    /// slack word and exact part are stored apart: where a reset meets the firing, the part may be
    /// another's, of which each is less than a tick.
    pub fn vague(&self) -> u64 {
        let exact = self.ask.period != 0 || self.ask.slack != 0;
        if exact { 0 } else { 2 * self.book.tick - 1 }
    }

    /// What a callback and an event have in common.
    pub fn told(&self, expiry: &sw_expiry) {
        let clock = self.book.door.now();
        let floor = self.floor.load(SeqCst);
        let expect = |right: bool, what: &str| {
            self.book.expect(right, || format!("{what}: {expiry:?} at {clock} {self:?}"));
        };
        // A batch writes its handles where no callback can read them in time.
        let timer = self.timer();
        expect(timer == expiry.timer || timer == SW_TIMER_NONE, "another timer's expiry");
        expect(expiry.now_ns >= expiry.deadline_ns && clock >= expiry.now_ns, "early");
        expect(clock >= floor, "earlier than ever asked for");
        let least = floor.saturating_sub(self.vague());
        expect(expiry.deadline_ns >= least, "told of a deadline before any that was asked for");
        expect(self.ask.period != 0 || expiry.missed == 0, "a one-shot misses nothing");
        self.clock.store(clock, SeqCst);
        self.deadline.fetch_max(expiry.deadline_ns, SeqCst);
        self.points.fetch_add(expiry.missed + 1, SeqCst);
        self.book.missed.fetch_add(expiry.missed, SeqCst);
    }
}

/// The choices of one callback: the same for the same cell and run.
pub fn rng_of(cell: &Cell) -> Rng {
    Rng::new(cell.ask.seed ^ u64::from(cell.entered.load(SeqCst)) << 48)
}
