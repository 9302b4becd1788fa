//! One shard: its slots, its ports, its owner's wheel, and the few words that other threads look at.
//!
//! Ground rules: words that different threads write lie on different cache lines. What an operation
//! does is told in `arm`, `cancel`, `reset` (any thread) and `turn`, `fire` (the owner).

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::config::{ClockKind, Config, Hooks, Mode};
use crate::core::{Core, Entry};
use crate::gate::Gate;
use crate::handle::{GENERATION_BITS, Handle};
use crate::port::Port;
use crate::record::Kind;
use crate::slab::Slab;
use crate::status::Error;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crate::sys::barrier;
use crate::sys::fork::Mark;
use crate::sys::futex::WaitWord;
use crate::tally::{Tally, Woken};
use crate::ticks::{NEAR_NS, Ticks};
use crossbeam_utils::CachePadded;
use std::ptr;

/// Entries that may wait in one inbox before the owner is woken to take them in.
pub(crate) const PRESSURE: u64 = 8_192;
/// Entries that one inbox may hold whatever the number of live timers: 2 MiB.
const INBOX: u64 = if cfg!(loom) { 8 } else { 1 << 18 };
/// The longest tick with which a sole owner guesses.
const GUESS_TICK_NS: u64 = 10_000_000;

/// See the head of this file.
pub(crate) struct Shard {
    pub(crate) index: u32,
    pub(crate) ticks: Ticks,
    pub(crate) max_timers: u64,
    pub(crate) slow_callback_ns: u64,
    pub(crate) hooks: Hooks,
    mark: Mark,
    pub(crate) slab: Slab,
    ports: AtomicPtr<Port>,
    /// The kind of a plain timer that is started now, or some turns ago: the owner writes it.
    plain: AtomicU16,
    /// Timers with deadlines beyond this one go the long way: so the exact deadline fits in a record, and the tick is a
    /// product.
    plain_end_ns: u64,
    /// May a sole owner take a deadline to lie ahead without a look at the clock?
    pub(crate) guesses: bool,
    /// A handle of this shard without slot and generation.
    handle_base: u64,
    pub(crate) gate: CachePadded<Gate>,
    pub(crate) alarm: CachePadded<Alarm>,
    /// The owner is to give back what memory it can.
    pub(crate) trim_wanted: AtomicBool,
    /// Credits that no port has.
    pub(crate) pool: CachePadded<AtomicU64>,
    pub(crate) high_water: AtomicU64,
    /// Timers handed back by stop.
    pub(crate) returned: AtomicU64,
    /// The thread that owns the shard now, or 0.
    pub(crate) owner: CachePadded<AtomicU32>,
    /// Is the owner attached, rather than polling?
    pub(crate) attached: AtomicBool,
    /// The thread that runs a turn now, or 0.
    pub(crate) turner: AtomicU32,
    /// The timer for whose end this shard's callback, or the drop after it, waits, or 0.
    pub(crate) waits_for: AtomicU64,
    /// Moves when a callback that somebody waits for is over.
    pub(crate) epoch: CachePadded<WaitWord>,
    /// The timer whose callback, or drop after it, runs now, or 0. Written by the owner.
    pub(crate) running: CachePadded<AtomicU64>,
    pub(crate) tally: CachePadded<Tally>,
    core: CachePadded<UnsafeCell<Core>>,
}

// SAFETY: `core` is touched through `with_core` alone, by the owner.
unsafe impl Send for Shard {}
// SAFETY: as above.
unsafe impl Sync for Shard {}

impl Shard {
    /// The shard of a service that is built at `now_ns`. `first_generation` and `uses` are those of
    /// `Slab::new`. `None`: no memory.
    pub(crate) fn new(
        index: u32,
        config: &Config,
        mark: Mark,
        now_ns: u64,
        first_generation: u32,
        uses: u32,
    ) -> Option<Shard> {
        let ticks = Ticks::new(config.tick_ns);
        let tally = Tally::new()?;
        Some(Shard {
            index,
            ticks,
            max_timers: config.max_timers,
            slow_callback_ns: config.slow_callback_ns,
            hooks: config.hooks,
            mark,
            slab: Slab::new(ticks, first_generation, uses),
            ports: AtomicPtr::new(ptr::null_mut()),
            plain: AtomicU16::new(Kind::plain_bits(ticks.reached(now_ns))),
            plain_end_ns: if ticks.always_fits_low() { NEAR_NS } else { 0 },
            // Not on a manual clock, where it is known to the nanosecond when a timer is due, and a look costs nothing;
            // nor with long ticks, for which that makes a difference.
            guesses: config.clock != ClockKind::Manual && config.tick_ns <= GUESS_TICK_NS,
            handle_base: Handle { shard: index, slot: 0, generation: 0 }.pack(),
            gate: CachePadded::new(Gate::new()),
            alarm: CachePadded::new(Alarm::new(config.mode == Mode::Threaded, ticks)),
            trim_wanted: AtomicBool::new(false),
            pool: CachePadded::new(AtomicU64::new(config.max_timers)),
            high_water: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            owner: CachePadded::new(AtomicU32::new(0)),
            attached: AtomicBool::new(false),
            turner: AtomicU32::new(0),
            waits_for: AtomicU64::new(0),
            epoch: CachePadded::new(WaitWord::new()),
            running: CachePadded::new(AtomicU64::new(0)),
            tally: CachePadded::new(tally),
            core: CachePadded::new(UnsafeCell::new(Core::new(ticks.reached(now_ns)))),
        })
    }

    /// Lends the owner's part.
    ///
    /// # Safety
    /// The calling thread owns the shard, and `f` neither calls the host nor lends it again.
    #[inline]
    pub(crate) unsafe fn with_core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        // SAFETY: the caller's promise makes this the only reference.
        self.core.with_mut(|core| f(unsafe { &mut *core }))
    }

    /// Is this a child that was forked since the service was started? Asked where a function of the host's has
    /// returned: if that forked, what it was called from ends in the child, and calls no other.
    #[inline(always)]
    pub(crate) fn forked(&self) -> bool {
        self.mark.forked()
    }

    #[inline]
    pub(crate) fn handle(&self, slot: u32, generation: u32) -> u64 {
        self.handle_of(Entry::new(slot, generation))
    }

    #[inline(always)]
    pub(crate) fn handle_of(&self, entry: Entry) -> u64 {
        self.handle_base | entry.bits()
    }

    /// The kind of a plain timer that is started now. Offsets count from an origin that the clock had reached when the
    /// owner last looked.
    #[inline(always)]
    pub(crate) fn plain_kind(&self) -> Kind {
        // Relaxed: any that was right once will do.
        Kind::plain(self.plain.load(Ordering::Relaxed))
    }

    /// When a deadline that lies after now is due, if a record holds it beside a plain timer's word.
    #[inline(always)]
    pub(crate) fn tick_ahead(&self, deadline_ns: u64, now_ns: u64) -> Option<u64> {
        let ahead = deadline_ns > now_ns && deadline_ns <= self.plain_end_ns;
        ahead.then(|| self.ticks.ceil_near(deadline_ns))
    }

    /// The owner's turn has reached a tick.
    pub(crate) fn note_origin(&self, tick: u64) {
        let bits = Kind::plain_bits(tick);
        if bits != self.plain.load(Ordering::Relaxed) {
            self.plain.store(bits, Ordering::Relaxed);
        }
    }

    // ------------------------------------------------------------------ ports

    /// Each port that was ever made.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &Port> {
        // Acquire: pairs with the Release in `claim_port`, of this port and, as each is put before the last by an
        // exchange, of all behind it.
        let mut next = self.ports.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: ports live as long as the shard.
            let port = unsafe { next.as_ref() }?;
            next = port.next.load(Ordering::Relaxed);
            Some(port)
        })
    }

    /// A port for a thread that has none here: one that another thread has left, or a new one.
    pub(crate) fn claim_port(&self) -> Result<&Port, Error> {
        if let Some(port) = self.ports().find(|port| port.claim()) {
            return Ok(port);
        }
        let port = allocate_port(self).ok_or(Error::NoMemory)?;
        let mut head = self.ports.load(Ordering::Relaxed);
        loop {
            // SAFETY: just made; shared from the exchange on.
            unsafe { (*port).next.store(head, Ordering::Relaxed) };
            // Release: pairs with the Acquire in `ports`.
            match self.ports.compare_exchange_weak(head, port, Ordering::Release, Ordering::Relaxed)
            {
                // SAFETY: ports live as long as the shard.
                Ok(_) => return Ok(unsafe { &*port }),
                Err(now) => head = now,
            }
        }
    }

    /// Does anything wait in an inbox?
    pub(crate) fn anything_waits(&self) -> bool {
        self.ports().any(|port| port.inbox.waiting() > 0)
    }

    /// Makes room in the port's inbox for `count` entries. When very many wait there, because the owner
    /// is stuck or is not polled, those that mean nothing any more are dropped first: what is left is
    /// bounded by the number of live timers.
    ///
    /// # Safety
    /// The calling thread has claimed the port.
    #[inline]
    pub(crate) unsafe fn reserve(&self, port: &Port, count: usize) -> Result<(), Error> {
        let limit = || (2 * self.pending()).max(INBOX);
        // SAFETY: the port's thread is its producer.
        match unsafe { port.inbox.reserve(count, limit) } {
            Err(Error::Full) => {
                // SAFETY: as above.
                unsafe {
                    port.inbox
                        .purge(|bits| Core::means_something(&self.slab, Entry::from_bits(bits)));
                    port.inbox.reserve(count, || u64::MAX)
                }
            }
            other => other,
        }
    }

    /// Makes the calling thread the owner, unless another thread is.
    pub(crate) fn own(&self, token: u32) -> bool {
        // Acquire: pairs with the Release in `disown`.
        self.owner.compare_exchange(0, token, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends the calling thread's ownership.
    pub(crate) fn disown(&self) {
        // Release: pairs with the Acquire in `own`.
        self.owner.store(0, Ordering::Release);
    }

    /// Hands a timer to the owner through this port's inbox, where `arm` or `reset` has reserved room.
    ///
    /// # Safety
    /// The calling thread has claimed the port.
    #[inline(always)]
    pub(crate) unsafe fn hand_over(
        &self,
        port: &Port,
        clock: &Clock,
        slot: u32,
        generation: u32,
        tick: u64,
    ) {
        let entry = Entry::new(slot, generation).bits();
        // SAFETY: the caller is the port's thread.
        let block_full = unsafe { port.inbox.push(entry) };
        // Full: partner of the one in `Alarm::sleep` and `Alarm::rest`.
        barrier::full();
        self.alarm.notice(tick, clock);
        if block_full && port.inbox.waiting() >= PRESSURE {
            self.alarm.ring(Woken::Pressure, clock);
        }
    }

    /// Bytes held for timers and wheels, as the owner last said and the arenas say now.
    pub(crate) fn bytes(&self) -> u64 {
        self.slab.bytes() as u64
            + self.tally.wheel_bytes.get()
            + self.ports().count() as u64 * size_of::<Port>() as u64
            + self.ports().map(|port| port.inbox.bytes()).sum::<u64>()
            + size_of::<Shard>() as u64
    }
}

const _: () = assert!(GENERATION_BITS == 27);

fn allocate_port(shard: &Shard) -> Option<*mut Port> {
    let layout = std::alloc::Layout::new::<Port>();
    // SAFETY: a port is not of size zero.
    let place = unsafe { std::alloc::alloc(layout) }.cast::<Port>();
    if place.is_null() {
        return None;
    }
    // SAFETY: fresh memory of a port's layout.
    unsafe { place.write(Port::new(shard)) };
    Some(place)
}

impl Drop for Shard {
    fn drop(&mut self) {
        let mut next = self.ports.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: made by `allocate_port` with the global allocator and a port's layout; in the
            // list once; nobody else is here.
            let port = unsafe { Box::from_raw(next) };
            next = port.next.load(Ordering::Relaxed);
        }
    }
}
