//! The C ABI: the exports of `include/shardwheel.h`, which is generated from these files.
//!
//! Ground rules:
//! - An export checks pointers and sizes, turns C's words into the engine's, and does nothing else.
//!   Ranges are the engine's to check.
//! - Integers come in and are validated; enums only go out.
//! - Outputs are written on success only.
//! - The exports are `extern "C"`: should a panic ever reach one, the process ends there. Functions
//!   of the host are called through a frame that no exception crosses (`sys::call`), so nothing
//!   unwinds into here.
//! - Safety, for all exports alike: a pointer is null, or points to what its type says, for as long
//!   as the call lasts; a service or queue is one that this library made and has not freed.
#![allow(non_camel_case_types)]
#![allow(clippy::missing_safety_doc)] // The last ground rule is the section that each would repeat.

mod batch;
mod queue;
mod service;
mod shard;
mod sized;
mod stats;
mod status;
mod timer;
mod types;

pub use batch::*;
pub use queue::*;
pub use service::*;
pub use shard::*;
pub use stats::*;
pub use status::sw_status::*;
pub use status::*;
pub use timer::*;
pub use types::sw_clock::*;
pub use types::sw_mode::*;
pub use types::sw_pinning::*;
pub use types::*;

use crate::engine::Engine;

/// The engine behind a service; `None` for null.
///
/// # Safety
/// `service` is null or a live service of this library, which stays alive for `'a`.
unsafe fn engine<'a>(service: *const sw_service) -> Option<&'a Engine> {
    // SAFETY: the caller's promise.
    unsafe { service.as_ref() }.map(|service| &*service.engine)
}
