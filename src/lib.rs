//! shardwheel: millions of timeouts on pinned timing wheels.

#[cfg(feature = "capi")]
pub mod capi;
pub mod config;
pub mod engine;
pub mod queue;
pub mod status;
mod sync;
mod sys;
pub mod types;
mod wheel;
