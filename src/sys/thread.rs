//! The wheels' own threads, and a cheap name for any thread.
//!
//! Ground rules:
//! - A wheel's thread is made by pthread_create and not by `std::thread`, whose base frame catches
//!   whatever unwinds. A C++ exception that leaves a host's function must find no handler at all,
//!   so that it ends in `std::terminate` with the thrower's stack still standing.
//! - It is born with every signal blocked: the spawner blocks them around the birth, so that there
//!   is no instant at which a signal of the host could choose this thread.
//! - Whoever spawns joins. In a forked child there is nobody to join: forget the handle there.
//! - The entry does not unwind; a panic that leaves it aborts the process.

use crate::sync;
use crate::sys::memory::boxed;
use std::ffi::c_void;
use std::fmt::{self, Write};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

/// The kernel's limit for a thread's name.
const NAME_BYTES: usize = 15;

/// The address of the calling thread's control block: a name that no other living thread has, at the
/// price of one instruction. Never 0, but in a model, where it names nobody.
#[inline(always)]
pub(crate) fn pointer() -> usize {
    if cfg!(loom) {
        return 0;
    }
    let pointer: usize;
    // SAFETY: both ABIs keep the pointer there; it is read and nothing else. On x86-64 the block begins
    // with its own address.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}

/// A thread that is to be joined.
#[derive(Debug)]
#[must_use = "a thread that nobody joins is leaked"]
pub(crate) struct JoinHandle {
    thread: libc::pthread_t,
}

// SAFETY: a pthread_t, a pointer in some C libraries, is a name that is good on any thread.
unsafe impl Send for JoinHandle {}
// SAFETY: as above; and nothing can be done with a shared one.
unsafe impl Sync for JoinHandle {}

impl JoinHandle {
    /// Sleeps until the thread has ended; what it wrote is then visible. Never on that thread.
    pub(crate) fn join(self) {
        // SAFETY: the thread was made joinable, and the handle is used up here.
        let refused = unsafe { libc::pthread_join(self.thread, null_mut()) };
        debug_assert_eq!(refused, 0, "a thread that joins itself");
    }
}

struct Start {
    name: [u8; NAME_BYTES + 1],
    entry: Box<dyn FnOnce() + Send>,
}

/// Runs `entry` on a new thread that is called `<prefix>-<shard>` (cut to 15 bytes), has all
/// signals blocked and is woken without timer slack. The error is the system's, EAGAIN above all.
pub(crate) fn spawn(
    prefix: &str,
    shard: u32,
    entry: Box<dyn FnOnce() + Send>,
) -> io::Result<JoinHandle> {
    let start = boxed(Start { name: thread_name(prefix, shard)?, entry });
    let start = Box::into_raw(start.ok_or(io::ErrorKind::OutOfMemory)?);
    let mut thread = MaybeUninit::uninit();
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: sigfillset makes the set that the next call reads, which saves the old one for the
    // call after; `start` goes over to the new thread, if there is one. `begin` takes and
    // answers what a start function does; C has no word for whether it may unwind.
    let refused = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let begin = std::mem::transmute::<
            unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
            extern "C" fn(*mut c_void) -> *mut c_void,
        >(begin);
        let refused = libc::pthread_create(thread.as_mut_ptr(), null(), begin, start.cast());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
        refused
    };
    if refused != 0 {
        // SAFETY: no thread came to be, so `start` is still ours.
        drop(unsafe { Box::from_raw(start) });
        return Err(io::Error::from_raw_os_error(refused));
    }
    // SAFETY: pthread_create succeeded and has written it.
    Ok(JoinHandle { thread: unsafe { thread.assume_init() } })
}

/// "C-unwind", as a Rust function that promised not to unwind would be a handler.
unsafe extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: `spawn` made it with Box::into_raw and gave it to this thread alone.
    let Start { name, entry } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    // A refused name or slack is no reason not to run.
    // SAFETY: the name is a C string of at most 15 bytes; the slack is a number.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr().cast::<libc::c_char>());
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
    }
    entry();
    null_mut()
}

/// The longest beginning of `<prefix>-<shard>` that fits and does not tear a character, and a NUL.
fn thread_name(prefix: &str, shard: u32) -> io::Result<[u8; NAME_BYTES + 1]> {
    if prefix.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut name = Name { bytes: [0; NAME_BYTES + 1], length: 0, full: false };
    // It takes everything.
    let _ = write!(name, "{prefix}-{shard}");
    Ok(name.bytes)
}

/// A name that keeps what fits.
struct Name {
    bytes: [u8; NAME_BYTES + 1],
    length: usize,
    full: bool,
}

impl Write for Name {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for letter in part.chars() {
            let end = self.length + letter.len_utf8();
            self.full |= end > NAME_BYTES;
            if !self.full {
                letter.encode_utf8(&mut self.bytes[self.length..end]);
                self.length = end;
            }
        }
        Ok(())
    }
}

/// A number for the calling thread that no other thread of this process has or had (until 2^32
/// threads have asked). Never 0. Costs a load of the thread's own memory, at any time of its life.
#[inline]
pub(crate) fn current_token() -> u32 {
    TOKEN.with(|token| match token.get() {
        0 => first_token(token),
        known => known,
    })
}

#[cold]
fn first_token(token: &std::cell::Cell<u32>) -> u32 {
    loop {
        // Relaxed: it hands out numbers and orders nothing.
        let next = NEXT_TOKEN.fetch_add(1, sync::Ordering::Relaxed);
        if next != 0 {
            token.set(next);
            return next;
        }
    }
}

#[cfg(not(loom))]
thread_local! {
    // No destructor, so that it can be read while other thread-locals are taken down.
    static TOKEN: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}
#[cfg(not(loom))]
static NEXT_TOKEN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);

// In a model all threads share one of the system's, and each run counts from the start again.
#[cfg(loom)]
loom::thread_local! {
    static TOKEN: std::cell::Cell<u32> = std::cell::Cell::new(0);
}
#[cfg(loom)]
loom::lazy_static! {
    static ref NEXT_TOKEN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn names_are_cut_at_15_bytes_between_characters() {
        let name = |prefix, shard| {
            let bytes = thread_name(prefix, shard).unwrap();
            let end = bytes.iter().position(|&byte| byte == 0).unwrap();
            String::from_utf8(bytes[..end].to_vec()).unwrap()
        };
        assert_eq!(name("wheel", 0), "wheel-0");
        assert_eq!(name("", 255), "-255");
        assert_eq!(name("exactly-12-by", 7), "exactly-12-by-7");
        assert_eq!(name("a-very-long-prefix", 7), "a-very-long-pre");
        assert_eq!(name("fourteen-bytes\u{e9}", 7), "fourteen-bytes");
        assert!(thread_name("a\0b", 0).is_err());
    }

    #[test]
    fn a_thread_is_born_named_and_deaf() {
        let mask = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("SigBlk:")).unwrap();
            u64::from_str_radix(line[7..].trim(), 16).unwrap()
        };
        let before = mask();
        let (tell, told) = mpsc::channel();
        let entry = move || {
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
            // SAFETY: takes a number and answers one.
            let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
            tell.send((name, mask(), slack)).unwrap();
        };
        let thread = spawn("wheel", 12, Box::new(entry)).unwrap();
        thread.join();
        let (name, blocked, slack) = told.recv().unwrap();
        assert_eq!(name.trim_end(), "wheel-12");
        // All but KILL and STOP, which cannot be, and the two that glibc keeps for itself.
        let never = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
        assert_eq!(blocked | never | 3 << 31, u64::MAX);
        assert_eq!(slack, 1);
        assert_eq!(mask(), before, "the spawner's mask is restored");
    }

    #[test]
    fn tokens_are_unique_and_stay() {
        let mine = current_token();
        assert_ne!(mine, 0);
        assert_eq!(current_token(), mine);
        let (tell, told) = mpsc::channel();
        for shard in 0..4 {
            let tell = tell.clone();
            let entry = Box::new(move || tell.send(current_token()).unwrap());
            spawn("token", shard, entry).unwrap().join();
        }
        drop(tell);
        let mut all: Vec<u32> = told.iter().chain([mine]).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5);
    }
}
