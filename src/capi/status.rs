//! What a call answers, in C.

use crate::status::{Error, Outcome};
use std::ffi::{CStr, c_char};

/// What a call answers. 0 and above: the call worked, and this is what it found. Below 0: it was
/// refused and changed nothing, unless the call says otherwise.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum sw_status {
    /// Done.
    SW_OK = 0,
    /// The timer's callback is running now.
    SW_RUNNING = 1,
    /// No such timer any more: it fired, was cancelled, or was returned by stop.
    SW_NOT_FOUND = 2,
    /// An argument is out of its range, or NULL where that is not allowed.
    SW_INVALID = -1,
    /// The shard holds `max_timers` live timers already.
    SW_FULL = -2,
    /// The allocator refused.
    SW_NO_MEMORY = -3,
    /// The service has been stopped.
    SW_STOPPED = -4,
    /// A blocking call from the thread that it would wait for.
    SW_WOULD_DEADLOCK = -5,
    /// The shard is another thread's (which polls it now, or has attached to it), or poll was
    /// called from inside a callback.
    SW_BUSY = -6,
    /// Not in this mode: poll on a threaded service, advance on a real clock.
    SW_UNSUPPORTED = -7,
    /// The service belongs to the parent process.
    SW_FORKED = -8,
    /// The operating system refused; `errno` says why.
    SW_SYSTEM = -9,
}

use sw_status::*;

impl From<Error> for sw_status {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid => SW_INVALID,
            Error::Full => SW_FULL,
            Error::NoMemory => SW_NO_MEMORY,
            Error::Stopped => SW_STOPPED,
            Error::WouldDeadlock => SW_WOULD_DEADLOCK,
            Error::Busy => SW_BUSY,
            Error::Unsupported => SW_UNSUPPORTED,
            Error::Forked => SW_FORKED,
            Error::System => SW_SYSTEM,
        }
    }
}

impl From<Outcome> for sw_status {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => SW_OK,
            Outcome::Running => SW_RUNNING,
            Outcome::NotFound => SW_NOT_FOUND,
        }
    }
}

/// The status of a call that finds nothing but success.
pub(super) fn done(result: Result<(), Error>) -> sw_status {
    result.map_or_else(sw_status::from, |()| SW_OK)
}

/// The status of a call about one timer.
pub(super) fn found(result: Result<Outcome, Error>) -> sw_status {
    result.map_or_else(sw_status::from, sw_status::from)
}

/// The status of a call with an output, which is written on success only; `out` may be null.
///
/// # Safety
/// `out` is null or may be written.
pub(super) unsafe fn give<T>(result: Result<T, Error>, out: *mut T) -> sw_status {
    match result {
        Ok(value) => {
            if !out.is_null() {
                // SAFETY: not null, so the caller's promise.
                unsafe { out.write(value) };
            }
            SW_OK
        }
        Err(error) => error.into(),
    }
}

/// What a status means, in a few English words.
///
/// `status`: any number. Returns static text, never NULL; a number that is no status has a text
/// too. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn sw_status_text(status: i32) -> *const c_char {
    text(status).as_ptr()
}

fn text(status: i32) -> &'static CStr {
    match status {
        0 => c"ok",
        1 => c"the callback is running",
        2 => c"no such timer any more",
        -1 => c"an argument is out of its range",
        -2 => c"the shard is full",
        -3 => c"out of memory",
        -4 => c"the service has been stopped",
        -5 => c"the call would wait for its own thread",
        -6 => c"the shard belongs to another thread",
        -7 => c"not supported in this mode",
        -8 => c"the service belongs to the parent process",
        -9 => c"the operating system refused",
        _ => c"not a status of shardwheel",
    }
}

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => unreachable!(),
    };

/// The library's version, "MAJOR.MINOR.PATCH". Static text, never NULL. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn sw_version() -> *const c_char {
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERRORS: [Error; 9] = [
        Error::Invalid,
        Error::Full,
        Error::NoMemory,
        Error::Stopped,
        Error::WouldDeadlock,
        Error::Busy,
        Error::Unsupported,
        Error::Forked,
        Error::System,
    ];

    #[test]
    fn c_and_rust_agree_on_numbers_and_texts() {
        for (error, number) in ERRORS.into_iter().zip((-9..=-1).rev()) {
            assert_eq!(error as i32, number);
            assert_eq!(sw_status::from(error) as i32, number);
            assert_eq!(text(number).to_str(), Ok(error.text()));
        }
        for outcome in [Outcome::Done, Outcome::Running, Outcome::NotFound] {
            assert_eq!(sw_status::from(outcome) as i32, outcome as i32);
        }
    }

    #[test]
    fn every_number_has_a_text() {
        for number in [3, -10, i32::MIN, i32::MAX] {
            assert_eq!(text(number), c"not a status of shardwheel");
        }
    }

    #[test]
    fn the_version_is_the_packages() {
        assert_eq!(VERSION.to_str(), Ok(env!("CARGO_PKG_VERSION")));
    }
}
