//! Which CPUs there are for us, and how a thread comes to run on one of them.
//!
//! Ground rules:
//! - `allowed_cpus` is the mask of the process, that is of its main thread (what `taskset -p` shows
//!   of it), not of the thread that asks: a service that is started from a thread which is
//!   itself pinned still spreads over all CPUs of the process.
//! - Whether a pin is allowed is for the system to say, which knows the control group, the CPUs
//!   that are offline and those that do not exist. The mask above is a habit that any thread may
//!   leave, so an explicit pin outside of it is tried too. What was asked is compared with what
//!   came of it: a pin that did not take is an error, never a silent loss.
//!
//! The core_affinity crate sets the mask where it can. It cannot list CPUs for us (it knows the
//! calling thread's mask alone, and no CPU beyond 1023), and it panics when told to pin to one
//! beyond 1023; there libc is called with a mask of the right size.

use std::ffi::c_ulong;
use std::io;

const WORD_BITS: usize = c_ulong::BITS as usize;
/// Beyond every system that Linux can be built for (8,192 CPUs); a bound for masks.
const MAX_CPUS: usize = 1 << 16;

/// A mask that reaches to the last CPU there can be.
type Mask = [c_ulong; MAX_CPUS / WORD_BITS];

/// The CPUs that the calling thread, and what it starts, may run on, in ascending order. Never
/// empty. `None`: no memory.
pub(crate) fn allowed_cpus() -> Option<Vec<u32>> {
    // 0: the calling thread.
    let mask = mask_of(0).unwrap_or_else(|_| mask_with(0));
    let mut cpus = Vec::new();
    cpus.try_reserve_exact(cpus_in(&mask).count()).ok()?;
    cpus.extend(cpus_in(&mask));
    Some(cpus)
}

/// Binds the calling thread to `cpu` alone. The error is the system's (EINVAL for a CPU that does
/// not exist, is offline, or is closed to the control group), and EINVAL as well if the call went
/// well but the mask is not what was asked for.
pub(crate) fn pin_current_thread(cpu: u32) -> io::Result<()> {
    let index = cpu as usize;
    if index >= MAX_CPUS {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    if index < libc::CPU_SETSIZE as usize {
        if !core_affinity::set_for_current(core_affinity::CoreId { id: index }) {
            return Err(io::Error::last_os_error());
        }
    } else {
        set_mask(index)?;
    }
    // 0: the calling thread.
    if cpus_in(&mask_of(0)?).eq([cpu]) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EINVAL))
    }
}

fn mask_with(cpu: usize) -> Mask {
    let mut mask = [0; MAX_CPUS / WORD_BITS];
    mask[cpu / WORD_BITS] = 1 << (cpu % WORD_BITS);
    mask
}

/// What core_affinity does, with a mask that reaches as far as `cpu`.
fn set_mask(cpu: usize) -> io::Result<()> {
    let mask = mask_with(cpu);
    // SAFETY: the kernel reads as many bytes as it is told the mask has.
    let refused = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    if refused == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn mask_of(thread: libc::pid_t) -> io::Result<Mask> {
    let mut mask = [0; MAX_CPUS / WORD_BITS];
    // SAFETY: the kernel writes at most as many bytes as it is told the mask has.
    let refused =
        unsafe { libc::sched_getaffinity(thread, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if refused == 0 { Ok(mask) } else { Err(io::Error::last_os_error()) }
}

fn cpus_in(mask: &[c_ulong]) -> impl Iterator<Item = u32> + '_ {
    let is_set = |cpu: &usize| mask[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1 == 1;
    (0..mask.len() * WORD_BITS).filter(is_set).map(|cpu| cpu as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_takes_and_other_threads_stay_as_they_were() {
        let before = allowed_cpus().unwrap();
        assert!(!before.is_empty());
        let cpus = before.clone();
        let pinned = std::thread::spawn(move || {
            for cpu in cpus {
                pin_current_thread(cpu).unwrap();
                assert!(cpus_in(&mask_of(0).unwrap()).eq([cpu]));
                set_mask(cpu as usize).unwrap();
                assert!(cpus_in(&mask_of(0).unwrap()).eq([cpu]));
            }
        });
        pinned.join().unwrap();
        assert_eq!(allowed_cpus(), Some(before));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        std::thread::spawn(|| {
            let before = mask_of(0).unwrap();
            for cpu in [1023, 1024, 8191, 65_535, 65_536, u32::MAX] {
                let error = pin_current_thread(cpu).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "CPU {cpu}");
            }
            assert_eq!(mask_of(0).unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn bits_are_cpus() {
        assert!(cpus_in(&[1 | 1 << 63, 0, 2]).eq([0, 63, 129]));
    }
}
