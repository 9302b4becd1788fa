//! One random number, for the generations of a new service to start at.
//!
//! Ground rules: any thread; a start of a service may afford a system call. The number guards
//! against accidents, not against attackers, so it never waits for the system's entropy: if there
//! is none yet, or the call is forbidden, the clock and an address stand in. A model gets the same
//! number every time, as it must run the same way twice.

/// A number that another service, here or in another process, most likely did not get.
pub(crate) fn random_u64() -> u64 {
    if cfg!(loom) { 0x9e37_79b9_7f4a_7c15 } else { from_system().unwrap_or_else(from_clock) }
}

fn from_system() -> Option<u64> {
    let mut number = 0u64;
    loop {
        let to = (&raw mut number).cast();
        // SAFETY: eight bytes of ours to write to.
        let got = unsafe { libc::getrandom(to, size_of::<u64>(), libc::GRND_NONBLOCK) };
        if got == size_of::<u64>() as isize {
            return Some(number);
        }
        let interrupted =
            got < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        if !interrupted {
            return None;
        }
    }
}

/// Two clocks, an address (which the system randomizes) and the process, well stirred.
fn from_clock() -> u64 {
    let local = 0u8;
    let mut number = super::clock::monotonic_ns().rotate_left(32);
    for part in [super::clock::boottime_ns(), (&raw const local).addr() as u64, pid()] {
        number = stir(number ^ part);
    }
    number
}

fn pid() -> u64 {
    u64::from(std::process::id())
}

/// The finalizer of splitmix64: every bit of the input reaches every bit of the output.
fn stir(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ() {
        for source in [random_u64, from_clock] {
            let mut seen: Vec<u64> = (0..64).map(|_| source()).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 64);
        }
        assert!(from_system().is_some());
    }
}
