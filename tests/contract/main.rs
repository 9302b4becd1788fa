//! The contract, rule by rule: each test is named after the rule that it holds the library to.
//! On the manual clock instants are exact; on the real one a bound leaves 100 ms and more to the
//! operating system.

#[path = "../support/mod.rs"]
mod support;

mod arguments;
mod attach;
mod cancel;
mod circles;
mod drops;
mod firing;
mod found;
mod handles;
mod host;
mod inside;
mod memory;
mod notes;
mod order;
mod periods;
mod processes;
mod queues;
mod races;
mod resets;
mod service;
mod slow;
mod sole;
mod stop;
mod storm;
mod threads;
mod time;
mod time_idle;
mod time_range;
mod waits;
mod warm;

/// The instant at which a timer with this deadline is due: the first tick at or after it. None
/// if the clock cannot get there.
fn due(tick_ns: u64, deadline_ns: u64) -> Option<u64> {
    deadline_ns.div_ceil(tick_ns).checked_mul(tick_ns)
}

/// Numbers without a pattern, the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
