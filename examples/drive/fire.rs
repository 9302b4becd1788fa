//! What runs on the shards' threads: the callback of every timer, and `unfired` at stop.
//!
//! A callback reads the clock by itself, compares with the ledger, closes the entry (or turns to
//! the next expiry) and mails the free entry back to its producer. It takes no lock that anyone
//! could hold for longer than a pointer swap, and it never blocks.

use crate::clock;
use crate::lateness::Lateness;
use crate::ledger::{Entry, Key, Ledger, Phase, Plan, bump};
use crate::options::Sabotage;
use crate::service::Service;
use crossbeam_utils::CachePadded;
use shardwheel::capi;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What one shard's callbacks have written. The shard's thread alone writes.
#[derive(Debug)]
pub struct ShardPage {
    pub fired: AtomicU64,
    pub ended: AtomicU64,
    pub missed: AtomicU64,
    /// Armed again by the callback itself.
    pub rearmed: AtomicU64,
    /// Handed back; written by the thread that stops.
    pub returned: AtomicU64,
    pub lateness: Lateness,
    /// The way home of entries, one for each producer.
    mail: Box<[Sender<u32>]>,
}

/// Everything a callback needs. There is one of it in the process, set before the first timer.
#[derive(Debug)]
pub struct Desk {
    pub service: Service,
    pub ledger: Ledger,
    pub pages: Box<[CachePadded<ShardPage>]>,
    /// What was due up to here has had its chance: if stop hands it back, it was lost.
    pub settled: AtomicU64,
    /// When it was set up.
    opened: u64,
    sabotage: Option<Sabotage>,
    sabotaged: AtomicBool,
}

static DESK: OnceLock<Desk> = OnceLock::new();

/// Entries that have fired, from each shard.
pub type Mailbox = Vec<Receiver<u32>>;

impl Desk {
    /// Sets up the one desk, and a mailbox for each producer.
    pub fn open(
        service: Service,
        ledger: Ledger,
        sabotage: Option<Sabotage>,
    ) -> (&'static Desk, Vec<Mailbox>) {
        let mut boxes: Vec<Mailbox> = ledger.arenas.iter().map(|_| Mailbox::new()).collect();
        let page = |_| {
            let (senders, receivers): (Vec<_>, Vec<_>) = boxes.iter().map(|_| channel()).unzip();
            boxes.iter_mut().zip(receivers).for_each(|(mine, receiver)| mine.push(receiver));
            CachePadded::new(ShardPage {
                fired: AtomicU64::new(0),
                ended: AtomicU64::new(0),
                missed: AtomicU64::new(0),
                rearmed: AtomicU64::new(0),
                returned: AtomicU64::new(0),
                lateness: Lateness::new(),
                mail: senders.into(),
            })
        };
        let pages = (0..ledger.shards).map(page).collect();
        let settled = AtomicU64::new(0);
        let sabotaged = AtomicBool::new(false);
        let opened = clock::now();
        let desk = Desk { service, ledger, pages, settled, opened, sabotage, sabotaged };
        DESK.set(desk).expect("one desk for each process");
        (DESK.get().expect("just set"), boxes)
    }

    pub fn total(&self, counter: fn(&ShardPage) -> &AtomicU64) -> u64 {
        self.pages.iter().map(|page| counter(page).load(Relaxed)).sum()
    }

    fn expired(&self, key: Key, expiry: &capi::sw_expiry, now: u64) {
        let page = &self.pages[Service::shard_of(expiry.timer)];
        let faults = &self.ledger.faults;
        bump(&page.fired);
        let Some(entry) = self.ledger.entry(key).filter(|e| e.is_armed(key.generation)) else {
            faults.twice.fetch_add(1, Relaxed);
            return;
        };
        let (bound, moving) = entry.bound();
        let plan = entry.plan();
        let due = match plan {
            Plan::Every(period) => {
                page.missed.store(page.missed.load(Relaxed) + expiry.missed, Relaxed);
                bound.saturating_add(period.saturating_mul(expiry.missed))
            }
            _ => bound,
        };
        if now < due || expiry.now_ns < expiry.deadline_ns {
            faults.early.fetch_add(1, Relaxed);
        }
        // While its producer resets it the ledger cannot say when the timer was due.
        let late = if moving {
            expiry.now_ns.saturating_sub(expiry.deadline_ns)
        } else {
            now.saturating_sub(due)
        };
        page.lateness.record(match self.sabotage {
            Some(Sabotage::Drift) => late + now.saturating_sub(self.opened) / 16,
            _ => late,
        });
        match plan {
            Plan::Every(period) => entry.advance(bound, due.saturating_add(period), plan),
            Plan::Retry { left: 1.., .. } if self.retry(entry, expiry.timer, now) => {
                bump(&page.rearmed)
            }
            _ => match entry.close(key.generation, Phase::Fired) {
                Ok(()) => {
                    bump(&page.ended);
                    // Nobody listens any more at the end of the run.
                    let _ = page.mail[key.arena].send(key.slot);
                }
                Err(_) => {
                    faults.twice.fetch_add(1, Relaxed);
                }
            },
        }
    }

    /// Backoff: the timer's own callback arms it again, after twice the delay. False once a
    /// producer has cancelled it meanwhile.
    fn retry(&self, entry: &Entry, timer: u64, now: u64) -> bool {
        let Plan::Retry { left, delay_ns } = entry.plan() else { return false };
        let delay_ns = delay_ns.saturating_mul(2);
        let (bound, _) = entry.bound();
        let plan = Plan::Retry { left: left - 1, delay_ns };
        entry.advance(bound, now.saturating_add(delay_ns), plan);
        self.service.reset(timer, delay_ns) == capi::sw_status::SW_OK
    }

    /// Falsifies one record, to prove that the verdict would notice. True: leave this one out.
    #[cold]
    fn falsify(&self, kind: Sabotage, key: Key, expiry: &capi::sw_expiry) -> bool {
        if matches!(kind, Sabotage::Leak | Sabotage::Drift) {
            return false;
        }
        let once = self.ledger.entry(key).is_some_and(|entry| entry.plan() == Plan::Once);
        if !once || self.sabotaged.swap(true, Relaxed) {
            return false;
        }
        match kind {
            Sabotage::Early => self.expired(key, expiry, 0),
            Sabotage::Lost => {}
            Sabotage::Leak | Sabotage::Drift => unreachable!("these falsify no record"),
            Sabotage::Double => {
                self.expired(key, expiry, clock::now());
                self.expired(key, expiry, clock::now());
            }
        }
        true
    }
}

/// Every timer's callback.
///
/// # Safety
/// Called by the library, with an expiry that is valid during the call.
pub unsafe extern "C-unwind" fn on_expiry(ctx: *mut c_void, expiry: *const capi::sw_expiry) {
    let now = clock::now();
    // SAFETY: the library's promise.
    let expiry = unsafe { &*expiry };
    let desk = DESK.get().expect("set before the first timer");
    let key = Key::from_ctx(ctx);
    if let Some(kind) = desk.sabotage
        && desk.falsify(kind, key, expiry)
    {
        return;
    }
    desk.expired(key, expiry, now);
}

/// Told by stop of each timer that had not fired.
///
/// # Safety
/// Called by the library; it may be called with any arguments.
pub unsafe extern "C-unwind" fn on_unfired(
    _: *mut c_void,
    timer: capi::sw_timer,
    ctx: *mut c_void,
    _: u64,
) {
    let desk = DESK.get().expect("set before the first timer");
    let key = Key::from_ctx(ctx);
    let faults = &desk.ledger.faults;
    match desk.ledger.entry(key).map(|entry| (entry, entry.close(key.generation, Phase::Returned)))
    {
        Some((entry, Ok(()))) => {
            bump(&desk.pages[Service::shard_of(timer)].returned);
            if entry.bound().0 <= desk.settled.load(Relaxed) {
                faults.overdue.fetch_add(1, Relaxed);
            }
        }
        _ => {
            faults.twice.fetch_add(1, Relaxed);
        }
    }
}
