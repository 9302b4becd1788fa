//! The libraries that are compared, each behind the same few operations.
//!
//! Timers are named by slots, numbers that the workload chooses. What a library needs for a timer
//! that its user would hold (a handle, a node) lies in an array of these, made before the
//! measurement begins. Delays are in nanoseconds; each library rounds as it does.

pub mod c;
pub mod delay_queue;
pub mod hash_wheel;
pub mod shardwheel;
pub mod tokio;

/// Which clock a library's timers are counted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The machine's.
    Real,
    /// One that stands still but for `Timers::advance`.
    Manual,
}

/// One thread's view of a library's timers.
pub trait Timers {
    /// Starts a timer in a slot that has none.
    fn start(&mut self, slot: usize, delay_ns: u64);

    /// Cancels the timer in a slot; one that has fired is not missed.
    fn cancel(&mut self, slot: usize);

    /// Gives the timer in a slot a new delay from now.
    fn push_out(&mut self, slot: usize, delay_ns: u64);

    /// What a host's loop does between two bursts of work: look at the clock, serve what is due.
    fn turn(&mut self);

    /// Moves a manual clock on and serves what is due then; answers how many timers that was.
    fn advance(&mut self, by_ns: u64) -> u64;

    /// Bytes of each slot that are the host's: the handle that it would keep.
    const HANDLE: usize;
}

/// A library that several threads use at a time.
pub trait Service: Sync {
    type Local<'a>: Timers
    where
        Self: 'a;

    /// The calling thread's view, with room for so many timers.
    fn local(&self, slots: usize) -> Self::Local<'_>;
}
