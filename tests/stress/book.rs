//! A service with all its cells, and the verdict.

use crate::cell::{Ask, Cell};
use crate::judge::End;
use crate::run::Rng;
use crate::support::*;
use std::ffi::c_void;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// See the module. Lives until the process ends.
pub struct Book {
    pub door: Door,
    pub shards: u32,
    /// Shards are attached exclusively now and then: calls may be `SW_BUSY`.
    busy: bool,
    pub tick: u64,
    last: AtomicPtr<Cell>,
    faults: Mutex<Vec<String>>,
    /// Stop is about to be called, and has returned.
    pub stopping: AtomicBool,
    pub stopped: AtomicBool,
    /// A shard is in a callback.
    pub inside: Vec<AtomicBool>,
    /// Moves on with each cancel that answers OK.
    pub epoch: AtomicU64,
    pub missed: AtomicU64,
    pub full_starts: AtomicU64,
    /// What batches said they cancelled; whether one of them was refused.
    pub batch_ok: AtomicU64,
    pub batch_refused: AtomicBool,
    /// Cells that everybody calls on.
    shared: Vec<AtomicPtr<Cell>>,
    /// Services that the callbacks of this one call on, too.
    pub friends: OnceLock<Vec<&'static Book>>,
    /// Queues that have been freed.
    pub freed: Mutex<Vec<u32>>,
}

impl Book {
    pub fn new(svc: &Svc, tick: u64, busy: bool) -> &'static Book {
        // Where a leak checker finds them, and through them their cells.
        static KEPT: Mutex<Vec<&'static Book>> = Mutex::new(Vec::new());
        let shards = svc.shard_count();
        let book = Box::leak(Box::new(Book {
            door: svc.door(),
            shards,
            busy,
            tick,
            last: AtomicPtr::default(),
            faults: Mutex::default(),
            stopping: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            inside: (0..shards).map(|_| AtomicBool::new(false)).collect(),
            epoch: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            full_starts: AtomicU64::new(0),
            batch_ok: AtomicU64::new(0),
            batch_refused: AtomicBool::new(false),
            shared: (0..24).map(|_| AtomicPtr::default()).collect(),
            friends: OnceLock::new(),
            freed: Mutex::default(),
        }));
        KEPT.lock().unwrap().push(book);
        book
    }

    /// Notes a cell.
    pub fn add(&self, cell: &'static Cell) {
        let this = std::ptr::from_ref(cell).cast_mut();
        let mut before = self.last.load(SeqCst);
        loop {
            cell.before.store(before, SeqCst);
            match self.last.compare_exchange(before, this, SeqCst, SeqCst) {
                Ok(_) => return,
                Err(now) => before = now,
            }
        }
    }

    /// All cells, the newest first.
    pub fn cells(&self) -> impl Iterator<Item = &'static Cell> {
        std::iter::successors(at(&self.last), |cell| at(&cell.before))
    }

    pub fn expect(&self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.fault(what());
        }
    }

    pub fn fault(&self, what: String) {
        let mut faults = self.faults.lock().unwrap();
        if faults.len() < 10 {
            faults.push(what);
        }
    }

    /// May a call be refused?
    pub fn refuses(&self) -> bool {
        self.busy || self.stopping.load(SeqCst)
    }

    /// A call was refused: is that allowed here?
    pub fn refused(&self, status: sw_status, what: &str) {
        let right = match status {
            SW_FULL => true,
            SW_BUSY => self.busy,
            SW_STOPPED => self.stopping.load(SeqCst),
            _ => false,
        };
        self.expect(right, || format!("a {what} answers {status:?}"));
    }

    /// Puts a cell where everybody finds it; answers the one that was there.
    pub fn share(&self, cell: &'static Cell, rng: &mut Rng) -> Option<&'static Cell> {
        let place = &self.shared[rng.below(self.shared.len() as u64) as usize];
        let before = place.swap(std::ptr::from_ref(cell).cast_mut(), SeqCst);
        // SAFETY: cells live for ever.
        unsafe { before.cast_const().as_ref() }
    }

    pub fn any_shared(&self, rng: &mut Rng) -> Option<&'static Cell> {
        at(&self.shared[rng.below(self.shared.len() as u64) as usize])
    }

    /// This book, or one of its friends.
    pub fn friend(&'static self, rng: &mut Rng) -> &'static Book {
        self.friends.get().map_or(self, |friends| rng.pick(friends))
    }

    /// Cancels every timer, however it stands, and waits until none is left. For a book that
    /// nobody else calls on any more, apart from its own callbacks.
    pub fn drain(&'static self) {
        eventually("all cancelled timers are over", || {
            for cell in self.cells().filter(|cell| cell.accepted.load(SeqCst)) {
                cell.cancel(false, None);
            }
            self.door.pending() == 0
        });
        self.balance("drained");
    }

    /// A look at the numbers while everything moves.
    pub fn look(&self) {
        let stats = self.door.stats();
        self.expect(stats.memory_bytes > 0, || format!("{stats:?}"));
    }

    /// T2: a timer that should have come before `then` and has not.
    pub fn late(&self, then: u64) -> Option<&'static Cell> {
        self.cells().find(|cell| cell.is_late(then))
    }

    /// Waits until all that is due now has come. For shards with threads.
    pub fn catch_up(&self) {
        let then = self.door.now();
        let begin = Instant::now();
        while let Some(cell) = self.late(then) {
            assert!(begin.elapsed() < Duration::from_secs(30), "it does not come: {cell:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Serves all that is due now. For driven shards that nobody else polls.
    pub fn poll_up(&self) {
        let then = self.door.now();
        // What callbacks start anew comes in the next turn.
        for _ in 0..50 {
            for shard in 0..self.shards {
                self.door.poll_shard(shard);
            }
        }
        let late = self.late(then);
        assert!(late.is_none(), "it does not come: {late:?}");
    }

    /// S3: each shard takes exactly so many timers. For a service in which nothing is pending.
    pub fn holds(&'static self, max_timers: u64) {
        for shard in 0..self.shards {
            let ask = Ask { shard, ..Ask::after(HOUR) };
            let cells: Vec<_> = (0..max_timers).map(|_| Cell::start(self, ask).unwrap()).collect();
            assert_eq!(self.door.stats_of(shard).pending, max_timers);
            assert_eq!(Cell::start(self, ask).err(), Some(SW_FULL));
            for cell in cells {
                assert_eq!(cell.cancel(false, None), SW_OK);
            }
        }
    }

    /// F1.
    pub fn balance(&self, when: &str) {
        let stats = self.door.stats();
        let ended = stats.ended_by_fire + stats.cancelled + stats.returned;
        assert_eq!(stats.started, ended + stats.pending, "F1 {when}: {stats:?}");
    }

    /// Stops the service; what is handed back is noted in its cells.
    pub fn stop(&self) -> u64 {
        unsafe extern "C-unwind" fn unfired(
            arg: *mut c_void,
            timer: sw_timer,
            ctx: *mut c_void,
            deadline: u64,
        ) {
            // SAFETY: the book, and one of its cells; both live for ever.
            let (book, cell) = unsafe { (&*arg.cast_const().cast::<Book>(), &*ctx.cast::<Cell>()) };
            let right = std::ptr::eq(cell.book, book)
                // A batch writes its handles elsewhere first.
                && (cell.timer() == timer || cell.timer() == SW_TIMER_NONE)
                && cell.returned.fetch_add(1, SeqCst) == 0
                && cell.dropped.load(SeqCst) == 0
                && deadline >= cell.floor.load(SeqCst);
            book.expect(right, || format!("handed back with deadline {deadline} {cell:?}"));
        }
        self.stopping.store(true, SeqCst);
        let arg = std::ptr::from_ref(self).cast_mut().cast();
        let mut returned = u64::MAX;
        let raw = self.door.raw();
        // SAFETY: the service is alive.
        let status = unsafe { sw_service_stop(raw, Some(unfired), arg, &mut returned) };
        assert_eq!(status, SW_OK, "stop");
        self.stopped.store(true, SeqCst);
        returned
    }

    /// The faults, without a verdict.
    pub fn check(&self) {
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    }

    /// When the service has been stopped and nobody calls on it any more: each timer ended in
    /// one way, was dropped once, and the service counts as we do.
    pub fn verdict(&self) {
        let freed = self.freed.lock().unwrap().clone();
        let mut ends = [0; 3];
        let (mut started, mut fired, mut batched) = (0, 0, 0);
        for cell in self.cells() {
            if !cell.accepted.load(SeqCst) {
                let right = cell.dropped.load(SeqCst) == 1 && cell.entered.load(SeqCst) == 0;
                self.expect(right, || format!("a refused timer was called or kept {cell:?}"));
                continue;
            }
            started += 1;
            fired += u64::from(cell.entered.load(SeqCst));
            let queue_freed = cell.ask.queue.is_some_and(|(number, _)| freed.contains(&number));
            match cell.end(queue_freed) {
                Ok(end) => {
                    ends[end as usize] += 1;
                    batched += u64::from(cell.batched.load(SeqCst) && end == End::Cancelled);
                }
                Err(what) => self.fault(format!("{what} {cell:?}")),
            }
            if let Err(what) = cell.check_deadline() {
                self.fault(format!("{what} {cell:?}"));
            }
        }
        self.check();
        let stats = self.door.stats();
        let ours = (started, fired, ends[0], ends[1], ends[2], self.missed.load(SeqCst), 0);
        let its = (
            stats.started,
            stats.fired,
            stats.ended_by_fire,
            stats.cancelled,
            stats.returned,
            stats.missed,
            stats.pending,
        );
        println!("  started, fired, ended by fire, cancelled, returned, missed, pending: {ours:?}");
        assert_eq!(ours, its, "our books and the service's");
        assert!(stats.rejected >= self.full_starts.load(SeqCst), "too few: {stats:?}");
        // Those of a batch that were refused alone have been cancelled, or handed back, later.
        let ok = self.batch_ok.load(SeqCst);
        let some_refused = self.busy || self.batch_refused.load(SeqCst);
        assert!(
            if some_refused { ok <= batched } else { ok == batched },
            "batches: {ok}, {batched}"
        );
    }
}

fn at(place: &AtomicPtr<Cell>) -> Option<&'static Cell> {
    // SAFETY: null or a cell; cells live for ever.
    unsafe { place.load(SeqCst).cast_const().as_ref() }
}
