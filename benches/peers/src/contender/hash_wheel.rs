//! hierarchical_hash_wheel_timer's cancellable wheel. A timer's id is its slot's number; the wheel
//! counts milliseconds. Its way of pushing out is to cancel and start anew.

use super::{Clock, Timers};
use hierarchical_hash_wheel_timer::wheels::cancellable::{
    CancellableTimerEntry, QuadWheelWithOverflow,
};
use std::rc::Rc;
use std::time::{Duration, Instant};

const TICK_NS: u64 = 1_000_000;

#[derive(Debug)]
struct Entry {
    slot: u64,
}

impl CancellableTimerEntry for Entry {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.slot
    }
}

pub struct HashWheel {
    wheel: QuadWheelWithOverflow<Entry>,
    clock: Clock,
    began: Instant,
    /// What the wheel has been moved on by.
    ticks: u64,
    advanced_ns: u64,
}

impl HashWheel {
    pub fn new(clock: Clock) -> HashWheel {
        let (wheel, began) = (QuadWheelWithOverflow::new(), Instant::now());
        HashWheel { wheel, clock, began, ticks: 0, advanced_ns: 0 }
    }

    fn catch_up(&mut self) -> u64 {
        let now_ns = match self.clock {
            Clock::Real => self.began.elapsed().as_nanos() as u64,
            Clock::Manual => self.advanced_ns,
        };
        let mut expired = 0;
        while self.ticks < now_ns / TICK_NS {
            expired += self.wheel.tick().len() as u64;
            self.ticks += 1;
        }
        expired
    }
}

impl Timers for HashWheel {
    const HANDLE: usize = 0;

    #[inline]
    fn start(&mut self, slot: usize, delay_ns: u64) {
        let (entry, delay) = (Rc::new(Entry { slot: slot as u64 }), Duration::from_nanos(delay_ns));
        self.wheel.insert_ref_with_delay(entry, delay).expect("a millisecond at least");
    }

    #[inline]
    fn cancel(&mut self, slot: usize) {
        let _ = self.wheel.cancel(&(slot as u64));
    }

    #[inline]
    fn push_out(&mut self, slot: usize, delay_ns: u64) {
        self.cancel(slot);
        self.start(slot, delay_ns);
    }

    fn turn(&mut self) {
        self.catch_up();
    }

    fn advance(&mut self, by_ns: u64) -> u64 {
        self.advanced_ns += by_ns;
        self.catch_up()
    }
}
