//! What those who run a service rely on: numbers that tell the truth, hooks that name what is stuck, timers
//! that can be saved, memory that comes back, storms and faults that lose nothing.
//! On the manual clock numbers are exact; on the real one a bound leaves 100 ms and more to the
//! operating system.

#![cfg(all(feature = "capi", not(loom)))]

#[path = "../support/mod.rs"]
mod support;

mod faults;
mod numbers;
mod prometheus;
mod storms;
mod stuck;
mod trim;
mod visit;

use support::*;

/// `sw_details_read` of one shard, or of all.
fn details(door: Door, shard: u32) -> sw_details {
    // SAFETY: plain numbers.
    let mut details: sw_details = unsafe { std::mem::zeroed() };
    details.size = size_of::<sw_details>();
    // SAFETY: the service lives; `details` is writable and says its size.
    assert_eq!(unsafe { sw_details_read(door.raw(), shard, &mut details) }, SW_OK);
    details
}
