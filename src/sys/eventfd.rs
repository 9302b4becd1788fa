//! A flag that a host can wait for in its own poll loop.
//!
//! Ground rules: any thread may set and clear. The descriptor is readable exactly while the flag is
//! set; setting it twice is setting it once. The owner of the condition clears first and looks
//! again afterwards, so that a set in between is not lost.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A level-triggered flag with a descriptor.
#[derive(Debug)]
pub(crate) struct EventFd {
    fd: File,
}

impl EventFd {
    /// A flag that is not set. Fails when the process is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: takes no pointer.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(EventFd { fd: unsafe { OwnedFd::from_raw_fd(fd) }.into() })
    }

    /// Makes the descriptor readable.
    pub(crate) fn set(&self) {
        // A write that is refused for want of room finds the flag set already.
        let _ = (&self.fd).write(&1u64.to_ne_bytes());
    }

    /// Makes the descriptor not readable.
    pub(crate) fn clear(&self) {
        // A read that finds nothing finds the flag clear already.
        let _ = (&self.fd).read(&mut [0; 8]);
    }

    /// The descriptor, for the host to wait on; it stays ours.
    pub(crate) fn raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::timerfd::tests::readable;

    #[test]
    fn readable_while_set() {
        let flag = EventFd::new().unwrap();
        flag.clear();
        assert!(!readable(flag.raw_fd()));
        flag.set();
        flag.set();
        assert!(readable(flag.raw_fd()));
        assert!(readable(flag.raw_fd()));
        flag.clear();
        assert!(!readable(flag.raw_fd()));
    }
}
