//! Fences between a thread that asks all the time and one that hardly ever does.
//!
//! Both sides of the question are the same: each writes its own word, then reads the other's, and
//! at least one of the two must see what the other wrote ("I am busy" against "the gate is shut").
//! That takes a full fence between the write and the read, on both sides. Where one side is hot and
//! the other rare, the rare one can pay for both:
//!
//! - hot:  write mine, `light()`, read theirs
//! - rare: write mine, `heavy()`, read theirs
//!
//! `heavy` makes every thread of the process that is running right now pass a full fence
//! (membarrier, by an interrupt to its CPU; a thread that is not running passes one as it is
//! switched in), wherever it happens to be. If that is before the hot side's write, or
//! between its write and its read, the hot side's read comes after the rare side's write and sees
//! it. If it is after the hot side's read, its write came before and is seen by the rare side. All
//! that `light` has to do is keep the compiler from swapping the hot side's write and read.
//!
//! Ground rules:
//! - `init` comes before the first use of `heavy` and `light`: a service calls it as it starts.
//!   Before, and for ever where the kernel has no membarrier, both are ordinary full fences. Which
//!   it is changes once, towards membarrier, and a rare side that was handed its service after
//!   `init` knows. So there is never a hot side that relies on membarrier and a rare side that
//!   leaves it out; all other pairings are sound.
//! - `light` pairs with `heavy` and with nothing else, above all not with another `light`. Each use
//!   names its partner. Two hot sides use `full`.
//! - The words on both sides are atomics. In the language's terms `light` is no fence, and what
//!   membarrier adds lies outside of it; a model sees two full fences, as which they act.

use crate::sync::{Ordering, fence};
use std::io;
use std::sync::atomic::AtomicBool;

const QUERY: libc::c_int = 0;
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Whether the rare side pays for both.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// Finds out what this kernel can do. Any thread, any number of times. The first call in a process
/// with several threads may take some milliseconds.
pub(crate) fn init() {
    // Relaxed: a second registration does no harm. Once true it stays.
    if cfg!(loom) || ASYMMETRIC.load(Ordering::Relaxed) {
        return;
    }
    let there = membarrier(QUERY).is_ok_and(|all| all & PRIVATE_EXPEDITED != 0);
    if there && membarrier(REGISTER_PRIVATE_EXPEDITED).is_ok() && heavy_by_kernel().is_ok() {
        // Relaxed: a hot side that sees it has no more to see; a rare side is ordered after it by
        // the way that its service was handed over.
        ASYMMETRIC.store(true, Ordering::Relaxed);
    }
}

/// The hot side's fence: nothing but a bar to the compiler, given membarrier.
#[cfg_attr(loom, track_caller)]
#[inline(always)]
pub(crate) fn light() {
    // Relaxed: see `init`.
    if light_is_free() {
        bar_to_the_compiler();
    } else {
        full();
    }
}

/// What `light` is where it is free: for those who know that already. A full fence in a model.
#[inline(always)]
pub(crate) fn bar_to_the_compiler() {
    if cfg!(loom) {
        full();
    } else {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }
}

/// Is the hot side's fence nothing but a bar to the compiler, for good? Never in a model.
pub(crate) fn light_is_free() -> bool {
    // Relaxed: see `init`.
    !cfg!(loom) && ASYMMETRIC.load(Ordering::Relaxed)
}

/// The rare side's fence. A system call that interrupts the other CPUs on which we run.
#[cfg_attr(loom, track_caller)]
pub(crate) fn heavy() {
    // SeqCst: partner of the hot sides that found no membarrier; and between two rare sides.
    fence(Ordering::SeqCst);
    // Relaxed: see `init`.
    if !cfg!(loom) && ASYMMETRIC.load(Ordering::Relaxed) {
        if let Err(error) = heavy_by_kernel() {
            // Hot sides have run without a fence of their own, and nothing else can stand in.
            eprintln!("shardwheel: membarrier was there and is gone: {error}");
            std::process::abort();
        }
        // SeqCst: the kernel's fence once more, in the language's terms.
        fence(Ordering::SeqCst);
    }
}

/// Keeps a write before and a read after it in this order: to be seen by another `full`, or by
/// `heavy`. (On x86-64 compilers make it a locked no-op on the stack, at 3 ns; an MFENCE, which old
/// ones chose, takes 20.)
#[cfg_attr(loom, track_caller)]
#[inline(always)]
pub(crate) fn full() {
    // SeqCst: partner of another `full`, and of `heavy`.
    fence(Ordering::SeqCst);
}

/// A child of a fork may have to register for itself; a kernel that is short of memory for a
/// moment is asked again.
fn heavy_by_kernel() -> io::Result<()> {
    for _ in 0..1000 {
        let error = match membarrier(PRIVATE_EXPEDITED) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EPERM) => drop(membarrier(REGISTER_PRIVATE_EXPEDITED)?),
            Some(libc::ENOMEM | libc::EINTR | libc::EAGAIN) => std::thread::yield_now(),
            _ => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ENOMEM))
}

fn membarrier(command: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: takes numbers alone.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer as libc::c_int),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    /// Each thread writes its word and reads the other's, many times over; in no round may both
    /// have missed the other.
    fn never_both_blind(rounds: u32, ours: fn(), theirs: fn()) {
        init();
        let words = Arc::new([const { AtomicU32::new(0) }; 2]);
        let arrived = Arc::new(AtomicU32::new(0));
        let side = |me: usize, between: fn()| {
            let (words, arrived) = (words.clone(), arrived.clone());
            move || {
                let mut seen = Vec::with_capacity(rounds as usize);
                for round in 1..=rounds {
                    arrived.fetch_add(1, Ordering::AcqRel);
                    while arrived.load(Ordering::Acquire) < 2 * round {
                        std::thread::yield_now();
                    }
                    words[me].store(round, Ordering::Relaxed);
                    between();
                    seen.push(words[1 - me].load(Ordering::Relaxed) == round);
                }
                seen
            }
        };
        let other = std::thread::spawn(side(0, theirs));
        let mine = side(1, ours)();
        let blind = mine.iter().zip(other.join().unwrap()).filter(|(a, b)| !**a && !*b);
        assert_eq!(blind.count(), 0);
    }

    #[test]
    fn light_and_heavy_order_writes_before_reads() {
        never_both_blind(5_000, light, heavy);
    }

    #[test]
    fn two_full_ones_order_writes_before_reads() {
        never_both_blind(5_000, full, full);
    }

    #[test]
    fn a_forked_child_can_fence() {
        init();
        // SAFETY: the child makes system calls alone and leaves.
        match unsafe { libc::fork() } {
            0 => {
                heavy();
                // SAFETY: ends the child on the spot.
                unsafe { libc::_exit(42) }
            }
            child => {
                let mut status = 0;
                // SAFETY: waits for our own child.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42);
            }
        }
    }
}
