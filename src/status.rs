//! What a call can answer. The numbers are those of the C ABI and never change.

use std::fmt;

/// A refusal: the call changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum Error {
    /// An argument is out of its range.
    Invalid = -1,
    /// The shard holds `max_timers` already.
    Full = -2,
    /// The allocator refused.
    NoMemory = -3,
    /// The service has been stopped.
    Stopped = -4,
    /// A blocking call from the thread that it would wait for.
    WouldDeadlock = -5,
    /// The shard is another thread's, or poll was called from inside a callback.
    Busy = -6,
    /// Not in this mode.
    Unsupported = -7,
    /// The service belongs to the parent process.
    Forked = -8,
    /// The operating system refused; the `errno` of the calling thread says why.
    System = -9,
}

impl Error {
    /// The text that `sw_status_text` gives for the same number.
    pub const fn text(self) -> &'static str {
        match self {
            Error::Invalid => "an argument is out of its range",
            Error::Full => "the shard is full",
            Error::NoMemory => "out of memory",
            Error::Stopped => "the service has been stopped",
            Error::WouldDeadlock => "the call would wait for its own thread",
            Error::Busy => "the shard belongs to another thread",
            Error::Unsupported => "not supported in this mode",
            Error::Forked => "the service belongs to the parent process",
            Error::System => "the operating system refused",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Error {}

/// What a cancel or a reset found. The call itself worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Outcome {
    /// Done: a cancelled timer will not run (again) and is not running; a reset one is armed.
    Done = 0,
    /// The callback is running now. After a cancel it will not run again.
    Running = 1,
    /// No such timer any more: it fired, was cancelled, or was returned by stop.
    NotFound = 2,
}
