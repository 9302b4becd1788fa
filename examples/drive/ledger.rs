//! The ledger: what the example itself knows of each timer, apart from the library's counters.
//!
//! Each producer thread has an arena of entries, and each running timer has one entry. The timer's
//! ctx is not a pointer but the entry's name and generation packed in 64 bits, so that a callback
//! that comes too often, or after a cancel, is recognised even when the entry serves another timer
//! by then.
//!
//! Ground rules
//! - Only the arena's producer opens an entry, moves its bound, or closes it after a cancel.
//! - Only the timer's callback closes it as fired; only `unfired` closes it as returned.
//! - Whoever closes it does so by a compare-and-swap from "armed, this generation". Whoever loses
//!   has seen a timer that ended twice.
//! - `bound` is the instant before which a callback would be early: the producer's clock as read
//!   *before* the call, plus the delay. So it is never past the library's own deadline.
//! - While a reset is under way the bound holds the earlier of both instants with MOVING set: a
//!   callback that comes meanwhile is early only if it is before both.

use crossbeam_utils::CachePadded;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::*};

const GENERATION: u64 = (1 << 28) - 1;
const SLOT_BITS: u32 = 28;
/// Bounds are even; the low bit says that a reset is under way.
const MOVING: u64 = 1;

/// Where a timer's life is. Anything but `Armed` is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Phase {
    Idle = 0,
    Armed = 1,
    Fired = 2,
    Cancelled = 3,
    Returned = 4,
}

/// What happens at an expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    Once,
    /// Periodic, nanoseconds.
    Every(u64),
    /// The callback arms the timer again, `left` times, each time after twice the delay.
    Retry {
        left: u8,
        delay_ns: u64,
    },
}

impl Plan {
    fn pack(self) -> u64 {
        match self {
            Plan::Once => 0,
            Plan::Every(period) => 1 << 62 | period,
            Plan::Retry { left, delay_ns } => 2 << 62 | u64::from(left) << 54 | delay_ns,
        }
    }

    fn unpack(word: u64) -> Plan {
        match word >> 62 {
            0 => Plan::Once,
            1 => Plan::Every(word & (u64::MAX >> 2)),
            _ => Plan::Retry { left: (word >> 54) as u8, delay_ns: word & ((1 << 54) - 1) },
        }
    }
}

/// Which timer a ctx speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub arena: usize,
    pub slot: u32,
    pub generation: u64,
}

impl Key {
    pub fn to_ctx(self) -> *mut c_void {
        let name = (self.arena as u64) << SLOT_BITS | u64::from(self.slot);
        (name << 28 | self.generation) as usize as *mut c_void
    }

    pub fn from_ctx(ctx: *mut c_void) -> Key {
        let word = ctx as usize as u64;
        let name = word >> 28;
        Key {
            arena: (name >> SLOT_BITS) as usize,
            slot: (name & ((1 << SLOT_BITS) - 1)) as u32,
            generation: word & GENERATION,
        }
    }
}

/// A timer that ended twice: the entry was not armed in this generation any more.
#[derive(Debug)]
pub struct EndedBefore;

/// One timer's page, 32 bytes.
#[derive(Debug, Default)]
#[repr(align(32))]
pub struct Entry {
    /// Generation and phase.
    state: AtomicU64,
    bound: AtomicU64,
    plan: AtomicU64,
    /// The library's handle; the producer's alone.
    timer: AtomicU64,
}

fn state(generation: u64, phase: Phase) -> u64 {
    generation << 8 | phase as u64
}

impl Entry {
    /// A new generation begins. Producer only, before the call that starts the timer.
    pub fn open(&self, bound: u64, plan: Plan) -> u64 {
        let generation = ((self.state.load(Relaxed) >> 8) + 1) & GENERATION;
        self.bound.store(bound & !MOVING, Relaxed);
        self.plan.store(plan.pack(), Relaxed);
        // Release: pairs with the acquire in `is_armed` and `close`, which then see bound and plan.
        self.state.store(state(generation, Phase::Armed), Release);
        generation
    }

    /// The start was refused: there never was a timer.
    pub fn refuse(&self) {
        self.state.store(state(self.generation(), Phase::Idle), Relaxed);
    }

    pub fn generation(&self) -> u64 {
        self.state.load(Relaxed) >> 8
    }

    pub fn is_armed(&self, generation: u64) -> bool {
        // Acquire: pairs with `open`, and with the callback's `close`.
        self.state.load(Acquire) == state(generation, Phase::Armed)
    }

    /// Armed, in whatever generation. For audits.
    fn is_open(&self) -> bool {
        self.state.load(Acquire) & 0xff == Phase::Armed as u64
    }

    /// The timer has ended, this way.
    pub fn close(&self, generation: u64, phase: Phase) -> Result<(), EndedBefore> {
        let armed = state(generation, Phase::Armed);
        // AcqRel: sees what `open` wrote, and shows the producer all that came before the end.
        self.state
            .compare_exchange(armed, state(generation, phase), AcqRel, Relaxed)
            .map(|_| ())
            .map_err(|_| EndedBefore)
    }

    pub fn timer(&self) -> u64 {
        self.timer.load(Relaxed)
    }

    pub fn set_timer(&self, timer: u64) {
        self.timer.store(timer, Relaxed);
    }

    pub fn plan(&self) -> Plan {
        Plan::unpack(self.plan.load(Relaxed))
    }

    /// The bound, and whether a reset is under way.
    pub fn bound(&self) -> (u64, bool) {
        // Acquire: pairs with the stores below. The library orders a reset before the expiry that
        // it brought about, so that a callback sees at least the mark.
        let bound = self.bound.load(Acquire);
        (bound & !MOVING, bound & MOVING != 0)
    }

    /// Before a reset: from now on a callback may come at the earlier of both. Answers the old.
    pub fn bound_moving(&self, to: u64) -> u64 {
        let old = self.bound.load(Relaxed);
        self.bound.store((to & !MOVING).min(old) | MOVING, Release);
        old
    }

    /// After a reset: the new bound, or the old one again.
    pub fn bound_moved(&self, to: u64) {
        self.bound.store(to & !MOVING, Release);
    }

    /// In the callback: the next expiry's bound and plan, unless a reset is just changing them.
    pub fn advance(&self, from: u64, to: u64, plan: Plan) {
        self.plan.store(plan.pack(), Relaxed);
        let _ = self.bound.compare_exchange(from, to & !MOVING, AcqRel, Relaxed);
    }
}

/// The entries of one producer.
#[derive(Debug)]
pub struct Arena {
    entries: Box<[Entry]>,
}

impl Arena {
    pub fn new(entries: usize) -> Arena {
        assert!(entries < 1 << SLOT_BITS, "an arena holds at most 2^28 timers");
        Arena { entries: (0..entries).map(|_| Entry::default()).collect() }
    }

    pub fn entry(&self, slot: u32) -> &Entry {
        &self.entries[slot as usize]
    }

    pub fn get(&self, slot: u32) -> Option<&Entry> {
        self.entries.get(slot as usize)
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// What one producer did on one shard. Written by that producer alone, read by anyone.
#[derive(Debug, Default)]
pub struct Tally {
    pub started: AtomicU64,
    pub cancelled: AtomicU64,
    /// Cancelled while the callback ran, which had armed the timer again.
    pub caught: AtomicU64,
    pub moved: AtomicU64,
}

/// What went wrong, or was refused; anyone's, rare.
#[derive(Debug, Default)]
pub struct Faults {
    pub early: AtomicU64,
    pub twice: AtomicU64,
    /// Handed back by stop although long due.
    pub overdue: AtomicU64,
    /// Answers that cannot be true, such as "not found" for a timer that has not ended.
    pub wrong: AtomicU64,
    /// Starts that the library refused.
    pub refused: AtomicU64,
}

/// All that is known.
#[derive(Debug)]
pub struct Ledger {
    pub arenas: Box<[Arena]>,
    pub shards: usize,
    tallies: Box<[CachePadded<Tally>]>,
    pub faults: Faults,
}

impl Ledger {
    pub fn new(arenas: usize, entries: usize, shards: usize) -> Ledger {
        Ledger {
            arenas: (0..arenas).map(|_| Arena::new(entries)).collect(),
            shards,
            tallies: (0..arenas * shards).map(|_| CachePadded::default()).collect(),
            faults: Faults::default(),
        }
    }

    pub fn tally(&self, arena: usize, shard: usize) -> &Tally {
        &self.tallies[arena * self.shards + shard]
    }

    /// A counter of one shard, summed over the producers.
    pub fn of_shard(&self, shard: usize, counter: fn(&Tally) -> &AtomicU64) -> u64 {
        (0..self.arenas.len()).map(|a| counter(self.tally(a, shard)).load(Relaxed)).sum()
    }

    pub fn total(&self, counter: fn(&Tally) -> &AtomicU64) -> u64 {
        self.tallies.iter().map(|tally| counter(tally).load(Relaxed)).sum()
    }

    pub fn entry(&self, key: Key) -> Option<&Entry> {
        self.arenas.get(key.arena)?.get(key.slot)
    }

    fn armed(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.arenas.iter().flat_map(|arena| arena.entries());
        entries.filter(|entry| entry.is_open())
    }

    /// Timers of which nothing was heard: armed still, after everything has ended.
    pub fn unheard(&self) -> u64 {
        self.armed().count() as u64
    }

    /// Timers that were due by then and have not fired.
    pub fn overdue(&self, then: u64) -> u64 {
        self.armed().filter(|entry| entry.bound().0 <= then).count() as u64
    }

    /// When the last one-shot comes due, of those that do by then.
    pub fn last_due_by(&self, then: u64) -> Option<u64> {
        let once = self.armed().filter(|entry| entry.plan() == Plan::Once);
        once.map(|entry| entry.bound().0).filter(|&bound| bound <= then).max()
    }
}

/// Adds one to a counter that only the calling thread writes.
pub fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}
