//! The calling thread's `errno`: how a C host learns why the system refused.

use crate::status::Error;
use std::io;

/// Leaves the reason in `errno`.
pub(crate) fn system(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::OutOfMemory {
        return Error::NoMemory;
    }
    if let Some(code) = error.raw_os_error() {
        // SAFETY: the address of this thread's own errno.
        unsafe { *libc::__errno_location() = code };
    }
    Error::System
}
