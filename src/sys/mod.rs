//! The only calls to the operating system, one idea a file.
//!
//! Ground rules:
//! - No other module calls libc, blocks a thread, or asks the system for anything but ordinary
//!   memory. What a file here offers is described in terms of shardwheel, not of the system call.
//! - An error that a caller can act on is an `io::Error` that carries the errno; the C ABI hands
//!   it on. A failure that only a broken program can cause (a closed descriptor) is a debug
//!   assertion.
//! - Facts about the whole process (is membarrier there, which generation of forks is this) are
//!   kept in `std` atomics even in a build for models: a model has no processes. What a model must
//!   see, the fences and the wait word, goes through `crate::sync`.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("shardwheel runs on 64-bit Linux");

pub(crate) mod affinity;
pub(crate) mod barrier;
pub(crate) mod call;
pub(crate) mod clock;
pub(crate) mod errno;
pub(crate) mod eventfd;
pub(crate) mod fork;
pub(crate) mod futex;
pub(crate) mod memory;
pub(crate) mod prefetch;
pub(crate) mod random;
pub(crate) mod thread;
pub(crate) mod timerfd;
