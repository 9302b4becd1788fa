//! shardwheel: millions of timeouts on pinned timing wheels.

mod alarm;
mod arena;
mod arm;
mod attach;
mod cancel;
#[cfg(feature = "capi")]
pub mod capi;
mod clock;
pub mod config;
mod core;
pub mod engine;
mod extra;
mod fire;
mod gate;
mod handle;
mod inbox;
mod lane;
mod port;
pub mod queue;
mod record;
mod reset;
mod shard;
mod slab;
mod stats;
pub mod status;
mod sync;
mod sys;
mod tagged;
mod threads;
mod ticks;
mod turn;
pub mod types;
mod wait;
mod wheel;
mod word;
mod worker;
