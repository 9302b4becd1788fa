//! shardwheel: millions of timeouts on pinned timing wheels.

pub mod config;
pub mod status;
mod sync;
