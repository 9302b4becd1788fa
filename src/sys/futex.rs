//! The word that threads sleep on.
//!
//! Ground rules: nobody else in the crate calls futex. Use is always the same three steps: read the
//! word, look whether there is reason to sleep, `wait` for the word that was read. Whoever gives a
//! reason to get up writes it first and then bumps. A bump between the read and the sleep is never
//! lost: the kernel compares the word again under the lock that the waker takes too. `wait` may
//! return for no reason at all, so the caller always looks again. (A sleeper that is overtaken by
//! exactly 2^32 bumps between its read and its sleep would miss them all; we live with that.)
//!
//! Instants are those of `CLOCK_MONOTONIC`; futex knows no `CLOCK_BOOTTIME` (see `timerfd`).
//!
//! In a model the word is a loom atomic with a loom mutex and condition variable in the kernel's
//! place. A timed wait never times out there, which is the harder case.

use crate::sync::{AtomicU32, Ordering};

/// A counter of reasons to get up.
#[derive(Debug)]
pub(crate) struct WaitWord {
    word: AtomicU32,
    #[cfg(loom)]
    kernel: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl WaitWord {
    /// A word that nobody has bumped.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        WaitWord { word: AtomicU32::new(0) }
    }

    /// A word that nobody has bumped.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        WaitWord {
            word: AtomicU32::new(0),
            kernel: (loom::sync::Mutex::new(()), loom::sync::Condvar::new()),
        }
    }

    /// The word to wait for. What was written before the bumps that it counts is visible.
    #[inline]
    pub(crate) fn load(&self) -> u32 {
        // Acquire: partner of the Release in `bump_and_wake_all`.
        self.word.load(Ordering::Acquire)
    }

    /// Makes every `wait` for an earlier word return, also one that has yet to begin. A system
    /// call, whether anybody sleeps or not.
    #[cfg(not(loom))]
    pub(crate) fn bump_and_wake_all(&self) {
        // Release: partner of the Acquire in `load`; the reason to get up comes first.
        self.word.fetch_add(1, Ordering::Release);
        wake(&self.word, i32::MAX);
    }

    /// Makes every `wait` for an earlier word return, also one that has yet to begin.
    #[cfg(loom)]
    pub(crate) fn bump_and_wake_all(&self) {
        // Release: partner of the Acquire in `load`; the reason to get up comes first.
        self.word.fetch_add(1, Ordering::Release);
        drop(self.kernel.0.lock().unwrap());
        self.kernel.1.notify_all();
    }

    /// Sleeps while the word is `expected`, until the deadline (`None`, `u64::MAX`: for ever).
    /// Does not say why it returned, which may be for no reason.
    #[cfg(not(loom))]
    pub(crate) fn wait(&self, expected: u32, deadline_ns: Option<u64>) {
        wait(&self.word, expected, deadline_ns);
    }

    /// Sleeps while the word is `expected`, whatever the deadline.
    #[cfg(loom)]
    pub(crate) fn wait(&self, expected: u32, _deadline_ns: Option<u64>) {
        let held = self.kernel.0.lock().unwrap();
        // Relaxed: the kernel's own look at the word. It orders nothing for the caller.
        if self.word.load(Ordering::Relaxed) == expected {
            drop(self.kernel.1.wait(held).unwrap());
        }
    }
}

impl Default for WaitWord {
    fn default() -> Self {
        Self::new()
    }
}

/// FUTEX_WAIT_BITSET is the one wait that takes an absolute instant.
#[cfg(not(loom))]
fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) {
    let until = deadline_ns.filter(|&ns| ns != u64::MAX).map(super::clock::timespec);
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the instant (or null) live until the call is over. A signal, a changed
    // word and the deadline all end it early, and to the caller they are one.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            until,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        );
    }
}

/// Wakes up to `count` threads that sleep on `word`.
#[cfg(not(loom))]
fn wake(word: &AtomicU32, count: i32) {
    // SAFETY: the kernel takes the address for a name and does not look at the word.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count,
        );
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sys::clock::monotonic_ns;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_changed_word_does_not_sleep() {
        let word = WaitWord::new();
        let seen = word.load();
        word.bump_and_wake_all();
        word.wait(seen, None);
        word.wait(seen, Some(u64::MAX));
        assert_eq!(word.load(), seen + 1);
    }

    #[test]
    fn a_deadline_ends_the_sleep_and_not_before() {
        let word = WaitWord::new();
        word.wait(0, Some(0));
        let deadline = monotonic_ns() + 20_000_000;
        while monotonic_ns() < deadline {
            word.wait(0, Some(deadline));
        }
        assert!(monotonic_ns() >= deadline);
    }

    #[test]
    fn all_sleepers_get_up_whatever_their_deadline() {
        let word = Arc::new((WaitWord::new(), AtomicBool::new(false)));
        let deadlines = [None, Some(u64::MAX), Some(u64::MAX - 1), Some(1 << 63)];
        let sleepers = deadlines.map(|deadline| {
            let word = word.clone();
            std::thread::spawn(move || {
                loop {
                    let seen = word.0.load();
                    if word.1.load(Ordering::Relaxed) {
                        return;
                    }
                    word.0.wait(seen, deadline);
                }
            })
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        word.1.store(true, Ordering::Relaxed);
        word.0.bump_and_wake_all();
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    }
}

#[cfg(all(test, loom, not(shuttle)))]
mod models {
    use super::*;
    use crate::models::explore;
    use loom::sync::Arc;
    use loom::thread;

    /// Who sleeps until a reason is there gets up when it is.
    #[test]
    fn wait_word_loses_no_bump() {
        explore("wait_word_loses_no_bump", None, || {
            let shared = Arc::new((WaitWord::new(), AtomicU32::new(0)));
            let theirs = shared.clone();
            let waker = thread::spawn(move || {
                theirs.1.store(1, Ordering::Relaxed);
                theirs.0.bump_and_wake_all();
            });
            loop {
                let seen = shared.0.load();
                if shared.1.load(Ordering::Relaxed) == 1 {
                    break;
                }
                assert_eq!(seen, 0, "the reason comes before the bump");
                shared.0.wait(seen, Some(1));
            }
            waker.join().unwrap();
        });
    }

    /// The same where two give a reason at once.
    #[test]
    fn wait_word_loses_no_bump_of_two() {
        explore("wait_word_loses_no_bump_of_two", None, || {
            let reasons = [(); 2].map(|()| AtomicU32::new(0));
            let shared = Arc::new((WaitWord::new(), reasons));
            let wakers = [0, 1].map(|nth| {
                let theirs = shared.clone();
                thread::spawn(move || {
                    theirs.1[nth].store(1, Ordering::Relaxed);
                    theirs.0.bump_and_wake_all();
                })
            });
            loop {
                let seen = shared.0.load();
                if shared.1.iter().all(|reason| reason.load(Ordering::Relaxed) == 1) {
                    break;
                }
                shared.0.wait(seen, None);
            }
            for waker in wakers {
                waker.join().unwrap();
            }
        });
    }
}
