//! What the tests share: a service with its end-of-life checks, timers whose callbacks are
//! closures, logs of expiries, waits, and a look at the operating system.
//!
//! Everything goes through the C ABI, as a C program would. The parts:
//!
//! - [`Setup`] builds a service: `Setup::manual(MS).start()`, `Setup::driven()`,
//!   `Setup::threaded(2)`, then `.shards(4)`, `.max_timers(10)`, `.with(|config| ..)` ...
//! - [`Svc`] is the running service. When it goes out of scope it is stopped and freed, and the
//!   test fails if the books do not balance (rule F1), if a context was not dropped exactly once
//!   (F9), or if a callback panicked, overlapped itself, or was told of a deadline after now.
//! - [`Door`] is the service's calls: `Copy`, for closures and threads. `Svc` derefs to it.
//! - [`Timer`] is a `sw_timer_spec` in the making: `door.timer().delay(5 * MS).run(|e| ..).start()`.
//! - [`Log`] counts and records expiries and drops; it is a context that many timers may share.
//!   `door.start(delay, log)`, `door.timer().delay(..).log(log).start()`.
//! - [`Queue`] is a `sw_queue`; [`readable`] asks `poll(2)` about a descriptor.
//! - [`eventually`] waits for something that must come, [`stays`] watches for something that
//!   must not, [`alone`] runs a test's body in a process of its own.
//! - [`Witness`] watches how late the machine itself is; bounds on real time ask it.
//!
//! Contexts, logs and closures stay allocated until the process ends, so that a library which
//! called one too late is found out by a count, not by a crash.
#![allow(dead_code, unused_imports)]

mod door;
mod log;
mod os;
mod queue;
mod setup;
mod timer;
mod wait;
mod watch;
mod witness;

pub use door::{Door, Unfired};
pub use log::{Fire, Log};
pub use os::{alone, asleep, processor_time, readable, rss_bytes, task_named, tasks, tid};
pub use queue::Queue;
pub use setup::{Setup, Svc};
pub use shardwheel::capi::*;
pub use timer::Timer;
pub use wait::{Gate, eventually, stays, within};
pub use watch::{Ptr, keep};
pub use witness::Witness;

/// One microsecond in nanoseconds.
pub const US: u64 = 1_000;
/// One millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;
/// One second in nanoseconds.
pub const SEC: u64 = 1_000_000_000;
/// One hour in nanoseconds.
pub const HOUR: u64 = 3_600 * SEC;
