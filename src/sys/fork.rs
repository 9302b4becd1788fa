//! How a service notices that it has become a copy in a forked child.
//!
//! Ground rules: the process holds one page that the kernel empties in a child
//! (MADV_WIPEONFORK). A service keeps the mark that was current when it started and asks it at
//! every door: one load. In a child the parent's page reads zero for good, and the first new
//! service there makes a page of its own, and so on for the child's children. Pages are never
//! given back, as services that outlive a fork still look at them: one for each generation.
//!
//! Nothing here takes a lock: in a child, a lock may be held by a thread that does not exist.
//!
//! A kernel older than 4.14 refuses to empty the page. Then it holds the number of its process
//! instead, and every question is a system call: slower, and as right as process numbers are
//! (one that is born in a pid namespace of its own could bear the same number).
//!
//! Children that share our memory (vfork, posix_spawn) are no copies and are not noticed; they
//! must not call us anyway.

use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The word that the kernel leaves in a wiped page.
const WIPED: u32 = 0;
/// This page is wiped in a child: as long as the word stands, there was no fork.
const WATCHED: u32 = 1;
/// This page is copied to a child: ask whose it is.
const COPIED: u32 = 2;

#[repr(C)]
struct Page {
    state: AtomicU32,
    process: AtomicU32,
}

/// The page of this process, if it has one; after a fork, its parent's until there is a new one.
static CURRENT: AtomicPtr<Page> = AtomicPtr::new(null_mut());

/// Tells the process in which it was made from the children that were forked since.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    page: &'static Page,
}

impl std::fmt::Debug for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mark").field("forked", &self.forked()).finish()
    }
}

impl Mark {
    /// Whether this is a child of the process that the mark was made in.
    #[inline(always)]
    pub(crate) fn forked(&self) -> bool {
        // Relaxed: in one process the word never changes once the mark is out, and a fork happens
        // before all that its child does.
        let state = self.page.state.load(Ordering::Relaxed);
        state != WATCHED && self.forked_slow(state)
    }

    #[cold]
    fn forked_slow(&self, state: u32) -> bool {
        state == WIPED || self.page.process.load(Ordering::Relaxed) != std::process::id()
    }
}

/// The mark of this process. The first one, here or after a fork, maps a page.
pub(crate) fn mark() -> io::Result<Mark> {
    // Acquire: partner of the Release below, so that the page's words are seen.
    let mut current = CURRENT.load(Ordering::Acquire);
    let mut new = None;
    loop {
        // SAFETY: what stands there is null or a page, and pages are never unmapped.
        if let Some(page) = unsafe { current.as_ref() } {
            let mark = Mark { page };
            if !mark.forked() {
                if let Some(page) = new {
                    unmap(page);
                }
                return Ok(mark);
            }
        }
        let page = match new {
            Some(page) => page,
            None => *new.insert(map(true)?),
        };
        // Release: partner of the Acquires, the page's words come first. Acquire: as above.
        let swap =
            CURRENT.compare_exchange(current, page.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
        match swap {
            // SAFETY: mapped by us, and now that it is out, for ever.
            Ok(_) => return Ok(Mark { page: unsafe { page.as_ref() } }),
            Err(theirs) => current = theirs,
        }
    }
}

/// A new page with its words set. `may_watch` is false in a test of the long way.
fn map(may_watch: bool) -> io::Result<NonNull<Page>> {
    let (page, watched) = map_zeros(size_of::<Page>(), may_watch)?;
    let page = page.cast::<Page>();
    // SAFETY: mapped, zeroed (which both atomics may be), aligned to a page, not yet shared.
    let words = unsafe { page.as_ref() };
    words.process.store(std::process::id(), Ordering::Relaxed);
    words.state.store(if watched { WATCHED } else { COPIED }, Ordering::Relaxed);
    Ok(page)
}

/// New memory of zeros, and whether the kernel empties it in a child.
fn map_zeros(bytes: usize, may_watch: bool) -> io::Result<(NonNull<u8>, bool)> {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping touches none that exists. The kernel rounds up to a page.
    let address = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is ours.
    let watched = may_watch && unsafe { libc::madvise(address, bytes, libc::MADV_WIPEONFORK) } == 0;
    let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok((address, watched))
}

/// Memory of zeros; true: it is all zeros again in a child.
pub(crate) fn watched_pages(bytes: usize) -> io::Result<(NonNull<u8>, bool)> {
    map_zeros(bytes, true)
}

/// Gives back what `watched_pages` gave.
///
/// # Safety
/// As many bytes as were asked for; nobody uses them any more.
pub(crate) unsafe fn unmap_pages(address: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(address.as_ptr().cast(), bytes) };
}

/// Gives back a page that never became current.
fn unmap(page: NonNull<Page>) {
    // SAFETY: from `map`, and nobody else has seen it.
    unsafe { libc::munmap(page.as_ptr().cast(), size_of::<Page>()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `check` in a forked child and answers its exit code. The child is a copy of a process
    /// with many threads: it may do no more than `fork.rs` itself does.
    fn in_child(check: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child runs `check`, which takes no lock and no heap memory, and leaves.
        match unsafe { libc::fork() } {
            0 => {
                let code = check();
                // SAFETY: ends the child on the spot.
                unsafe { libc::_exit(code) }
            }
            child => {
                assert!(child > 0, "{}", io::Error::last_os_error());
                let mut status = 0;
                // SAFETY: waits for our own child.
                let ended = unsafe { libc::waitpid(child, &mut status, 0) };
                assert!(ended == child && libc::WIFEXITED(status), "status {status:#x}");
                libc::WEXITSTATUS(status)
            }
        }
    }

    #[test]
    fn a_child_is_told_and_can_begin_anew() {
        let ours = mark().unwrap();
        assert!(!ours.forked());
        assert!(std::ptr::eq(mark().unwrap().page, ours.page));
        let code = in_child(|| {
            if !ours.forked() {
                return 1;
            }
            let Ok(theirs) = mark() else { return 2 };
            if theirs.forked() || !ours.forked() || std::ptr::eq(theirs.page, ours.page) {
                return 3;
            }
            if !mark().is_ok_and(|again| std::ptr::eq(again.page, theirs.page)) {
                return 4;
            }
            let grandchild = in_child(|| i32::from(!(theirs.forked() && ours.forked())));
            if grandchild != 0 || theirs.forked() { 5 } else { 42 }
        });
        assert_eq!(code, 42);
        assert!(!ours.forked());
    }

    #[test]
    fn a_kernel_that_wipes_nothing_is_asked_for_the_process() {
        let page = map(false).unwrap();
        // SAFETY: just mapped.
        let mark = Mark { page: unsafe { page.as_ref() } };
        assert_eq!(mark.page.state.load(Ordering::Relaxed), COPIED);
        assert!(!mark.forked());
        assert_eq!(in_child(|| i32::from(mark.forked())), 1);
        assert!(!mark.forked());
        unmap(page);
    }

    #[test]
    fn one_mark_for_all_threads() {
        let all: Vec<_> = (0..8).map(|_| std::thread::spawn(|| mark().unwrap())).collect();
        let ours = mark().unwrap();
        for thread in all {
            assert!(std::ptr::eq(thread.join().unwrap().page, ours.page));
        }
    }
}
