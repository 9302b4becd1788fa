//! Queues: expiries that the host takes instead of being called back.
//!
//! Ground rules: the shard's owner delivers (`queue/deliver`), any thread takes (`take`). An event that waits
//! is a timer whose word says `Queued`; the lane's entry is only a hint where to look. So a cancel wins until
//! the event is taken, a reset withdraws it, and neither has to find it in the lane. While an
//! event of a periodic timer waits, its word holds the next point of the grid; each point that goes
//! by moves it on, and the taker reads off how many were missed.
//!
//! Freeing a queue keeps deliveries and starts out by the same handshake as the gate's: it marks the
//! queue closed, runs the heavy half of the fence, and lets every port that is at work settle.

mod deliver;

use crate::engine::Engine;
use crate::extra::Extra;
use crate::gate::Work;
use crate::grid::Grid;
use crate::handle::GENERATION_BITS;
use crate::lane::Lane;
use crate::order::put_in_order;
use crate::port::Port;
use crate::record::Record;
use crate::shard::Shard;
use crate::shared::WeakShared;
use crate::status::Error;
use crate::sync::{AtomicBool, AtomicI64, AtomicU32, Life, Ordering, fence};
use crate::sys::eventfd::EventFd;
use crate::sys::memory::boxed_slice;
use crate::types::{Event, Expiry};
use crate::word::{Phase, Word};
use std::sync::OnceLock;

/// See the head of this file.
pub struct QueueInner {
    engine: WeakShared<Engine>,
    /// One for each shard.
    lanes: Box<[Lane]>,
    /// Events that wait. Counted up after the event can be taken, so it may be below zero for a moment. Relaxed:
    /// nothing is handed over through it, and full fences order it against the descriptor.
    waiting: AtomicI64,
    descriptor: OnceLock<EventFd>,
    closed: AtomicBool,
    /// Where the next taker begins, so that no shard is always first.
    turn: AtomicU32,
    life: Life,
}

impl std::fmt::Debug for QueueInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.waiting.load(Ordering::Relaxed)).finish()
    }
}

/// An event as a taker keeps it.
pub trait Kept {
    /// An event that has been taken.
    fn of(event: Event) -> Self;
    /// Its deadline.
    fn deadline_ns(&self) -> u64;
}

impl Kept for Event {
    fn of(event: Event) -> Event {
        event
    }

    fn deadline_ns(&self) -> u64 {
        self.expiry.deadline_ns
    }
}

/// What a look at a lane brought.
enum Taken {
    Event(Event),
    /// An entry whose event waits no more.
    Stale,
    Nothing,
}

/// An entry of a lane: slot, generation, and the low bits of a number that is new for each delivery.
#[derive(Debug, Clone, Copy)]
struct Hint {
    slot: u32,
    generation: u32,
    delivery: u8,
}

impl Hint {
    fn pack(self) -> u64 {
        u64::from(self.delivery) << 56
            | u64::from(self.slot) << GENERATION_BITS
            | u64::from(self.generation)
    }

    fn unpack(bits: u64) -> Hint {
        let handle = crate::handle::Handle::unpack(bits);
        Hint { slot: handle.slot, generation: handle.generation, delivery: (bits >> 56) as u8 }
    }

    /// Does the event that it stands for still wait?
    fn waits(self, shard: &Shard) -> Option<(&Record, &Extra, Word)> {
        let record = shard.slab.get(self.slot)?;
        let word = record.word();
        if word.generation() != self.generation || word.phase() != Phase::Queued {
            return None;
        }
        let extra = shard.extra_of(record)?;
        (extra.delivery.load(Ordering::Relaxed) as u8 == self.delivery)
            .then_some((record, extra, word))
    }
}

impl QueueInner {
    /// `None`: no memory.
    pub(crate) fn new(engine: WeakShared<Engine>, shards: usize) -> Option<QueueInner> {
        Some(QueueInner {
            engine,
            lanes: boxed_slice((0..shards).map(|_| Lane::new()))?,
            waiting: AtomicI64::new(0),
            descriptor: OnceLock::new(),
            closed: AtomicBool::new(false),
            turn: AtomicU32::new(0),
            life: Life::default(),
        })
    }

    pub(crate) fn engine(&self) -> &WeakShared<Engine> {
        &self.engine
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.life.used();
        // Relaxed: asked inside the gate, whose fences order it.
        self.closed.load(Ordering::Relaxed)
    }

    /// Marks it closed; the caller then lets the ports settle.
    pub(crate) fn close(&self) -> bool {
        // Relaxed: one closer wins; the caller's fence orders the rest.
        !self.closed.swap(true, Ordering::Relaxed)
    }

    /// The descriptor, made when first asked for.
    pub(crate) fn descriptor(&self) -> std::io::Result<i32> {
        if self.descriptor.get().is_none() {
            let _ = self.descriptor.set(EventFd::new()?);
            // Full: either `arrived` sees the descriptor or this sees the event.
            fence(Ordering::SeqCst);
            self.show();
        }
        Ok(self.descriptor.get().map_or(-1, EventFd::raw_fd))
    }

    /// Makes the descriptor say whether events wait, until that stays so.
    fn show(&self) {
        let Some(descriptor) = self.descriptor.get() else { return };
        loop {
            let some = self.waiting.load(Ordering::Relaxed) > 0;
            if some {
                descriptor.set();
            } else {
                descriptor.clear();
            }
            // Full: whoever changes `waiting` after this sets the descriptor after this.
            fence(Ordering::SeqCst);
            if (self.waiting.load(Ordering::Relaxed) > 0) == some {
                return;
            }
        }
    }

    /// An event can be taken.
    fn arrived(&self) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            fence(Ordering::SeqCst);
            self.show();
        }
    }

    /// An event waits no more: taken, cancelled, withdrawn.
    pub(crate) fn left(&self) {
        self.life.used();
        if self.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            fence(Ordering::SeqCst);
            self.show();
        }
    }

    /// Takes at most `capacity` events; those of one shard in the order of their deadlines, of equal ones in that of
    /// delivery.
    ///
    /// # Safety
    /// `out` has room for `capacity` events.
    pub(crate) unsafe fn take<T: Kept>(
        &self,
        engine: &Engine,
        out: *mut T,
        capacity: usize,
    ) -> Result<usize, Error> {
        engine.running()?;
        let shards = engine.shards();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) as usize;
        let mut taken = 0;
        for index in (0..shards.len()).map(|n| (first + n) % shards.len()) {
            let (begin, mut result) = (taken, Ok(()));
            while taken < capacity {
                match self.take_one(engine, &shards[index]) {
                    Ok(Taken::Event(event)) => {
                        // SAFETY: fewer than `capacity` have been written.
                        unsafe { out.add(taken).write(T::of(event)) };
                        taken += 1;
                    }
                    Ok(Taken::Stale) => {}
                    Ok(Taken::Nothing) => break,
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            if taken - begin > 1 {
                // SAFETY: these have been written just now, to the caller's array.
                let part = unsafe { std::slice::from_raw_parts_mut(out.add(begin), taken - begin) };
                put_in_order(part, T::deadline_ns);
            }
            match result {
                // What has been taken is the host's; the error comes with the next call.
                Err(_) if taken > 0 => return Ok(taken),
                result => result?,
            }
        }
        Ok(taken)
    }

    /// Takes the oldest entry of one shard's lane.
    fn take_one(&self, engine: &Engine, shard: &Shard) -> Result<Taken, Error> {
        let port = engine.port(shard)?;
        // Takers move only `Queued` words, which even an exclusive owner moves by compare-and-swap: so
        // they go in as if they were the owner.
        let _inside = shard.gate.enter(&port.own.busy, Work::Other, true)?;
        // SAFETY: the port is this thread's.
        unsafe { shard.reserve(&port, 1)? };
        let Some(bits) = self.lanes[shard.index as usize].take() else {
            return Ok(Taken::Nothing);
        };
        // SAFETY: the port is this thread's and has room in its inbox.
        let event = unsafe { self.redeem(engine, shard, &port, Hint::unpack(bits)) };
        Ok(event.map_or(Taken::Stale, Taken::Event))
    }

    /// Turns a hint into the event that it stands for, if that still waits.
    ///
    /// # Safety
    /// The calling thread has claimed the port, which is inside the gate, with room in its inbox.
    unsafe fn redeem(
        &self,
        engine: &Engine,
        shard: &Shard,
        port: &Port,
        hint: Hint,
    ) -> Option<Event> {
        while let Some((record, extra, word)) = hint.waits(shard) {
            let mut event = Event {
                expiry: Expiry {
                    timer: shard.handle(hint.slot, hint.generation),
                    deadline_ns: extra.event_deadline_ns.load(Ordering::Relaxed),
                    now_ns: extra.event_now_ns.load(Ordering::Relaxed),
                    missed: extra.event_missed.load(Ordering::Relaxed),
                },
                ctx: record.ctx(),
            };
            let grid = Grid::of(extra);
            let counters = &port.own.counters;
            if grid.period_ns == 0 {
                let (free, spent) = shard.slab.freed(word.generation());
                if record.swap(word, free).is_err() {
                    continue;
                }
                shard.before_end(port);
                counters.fired.add(1);
                counters.ended_by_fire.add(1);
                // Its ctx is the taker's now, so its drop is not run.
                // SAFETY: the swap was won, and the caller has claimed the port.
                unsafe { shard.give_up(port, record, hint.slot, word, spent) };
                return Some(event);
            }
            let (offset, due) = if grid.fixed_delay {
                shard.after(record, extra, engine.clock().now())
            } else {
                let Some(next) = shard.slab.decode(record, word.offset()) else { continue };
                let later = next.deadline_ns.saturating_sub(event.expiry.deadline_ns);
                // Rounded up, because what follows the last point there is is no point but `NEVER`.
                let points = later.div_ceil(grid.period_ns).max(1) - 1;
                event.expiry.deadline_ns += points * grid.period_ns;
                event.expiry.missed += points;
                (word.offset(), next)
            };
            if record.swap(word, word.with(Phase::Pending, offset)).is_err() {
                if grid.fixed_delay {
                    shard.slab.unencode(offset);
                }
                continue;
            }
            if grid.fixed_delay {
                shard.slab.set_low(record, offset, due);
                // SAFETY: the caller's promise.
                unsafe {
                    shard.hand_over(port, engine.clock(), hint.slot, hint.generation, due.tick);
                }
            }
            event.expiry.now_ns = event.expiry.now_ns.max(event.expiry.deadline_ns);
            counters.fired.add(1);
            counters.missed.add(event.expiry.missed);
            self.left();
            return Some(event);
        }
        None
    }

    fn still_waits(shard: &Shard, bits: u64) -> bool {
        Hint::unpack(bits).waits(shard).is_some()
    }
}
