//! The way out to the host's functions: through a frame that no exception can cross.
//!
//! A C++ exception that leaves a host's function is to end the process by `std::terminate` where
//! it was thrown, with the stack still standing. The unwinder's first pass looks for a handler
//! without touching a frame, and reports the end of the stack when it meets a frame that it has no
//! description of; the C++ runtime then terminates. An ordinary Rust frame would not do: one that
//! may unwind lets the exception pass, to whatever `catch_unwind` lies further up, and one that may
//! not is itself a handler, which unwinds the host's frames and aborts with word of a panic.
//! So every such call goes through `enter`, which has no unwind description.
//!
//! Ground rules: all functions of the host are called from here, on any thread, with no lock of
//! ours held. A panic of a Rust callback must be caught by the callback's own wrapper, on the far
//! side; one that gets here ends the process too.
//!
//! On processors that `enter` is not written for, the call is direct, from a function that may not
//! unwind: the process ends as well, if not in the thrower's frame.

use crate::types::{Callback, DropFn, Expiry};
use std::ffi::c_void;
use std::ptr::without_provenance;

/// An argument register; numbers travel as addresses of nothing.
type Word = *const c_void;

/// Runs a timer's callback.
///
/// # Safety
/// Host and timer agree on `callback` and `ctx`; `expiry` is valid for reads until it returns.
#[inline]
pub(crate) unsafe fn call_host(callback: Callback, ctx: *mut c_void, expiry: *const Expiry) {
    // SAFETY: two pointers to a function of two pointers; the caller vouches for them.
    unsafe { enter(ctx, expiry.cast(), NONE, NONE, NONE, callback as Word) }
}

/// Runs a timer's drop.
///
/// # Safety
/// The timer has ended, and its drop has not run.
#[inline]
pub(crate) unsafe fn drop_host(drop: DropFn, ctx: *mut c_void) {
    // SAFETY: one pointer to a function of one pointer; the caller vouches for them.
    unsafe { enter(ctx, NONE, NONE, NONE, NONE, drop as Word) }
}

/// Tells the host that a shard's thread begins or ends.
///
/// # Safety
/// `hook` may be called with `arg` on this thread.
pub(crate) unsafe fn thread_hook(
    hook: unsafe extern "C-unwind" fn(*mut c_void, u32),
    arg: *mut c_void,
    shard: u32,
) {
    // SAFETY: a pointer and a number to a function of those; the caller vouches for them.
    unsafe { enter(arg, number(shard.into()), NONE, NONE, NONE, hook as Word) }
}

/// Tells the host of a slow callback.
///
/// # Safety
/// `hook` may be called with `arg` on this thread, and `ctx` has not been dropped.
pub(crate) unsafe fn slow_hook(
    hook: unsafe extern "C-unwind" fn(*mut c_void, u32, u64, *mut c_void, u64),
    arg: *mut c_void,
    shard: u32,
    timer: u64,
    ctx: *mut c_void,
    elapsed_ns: u64,
) {
    // SAFETY: five words to a function of those five; the caller vouches for them.
    unsafe {
        enter(arg, number(shard.into()), number(timer), ctx, number(elapsed_ns), hook as Word)
    }
}

/// Tells the host of a callback that still runs.
///
/// # Safety
/// `hook` may be called with `arg` on this thread.
pub(crate) unsafe fn stuck_hook(
    hook: unsafe extern "C-unwind" fn(*mut c_void, u32, u64, u64),
    arg: *mut c_void,
    shard: u32,
    timer: u64,
    elapsed_ns: u64,
) {
    // SAFETY: four words to a function of those four; the caller vouches for them.
    unsafe {
        enter(arg, number(shard.into()), number(timer), number(elapsed_ns), NONE, hook as Word)
    }
}

/// Hands the host a timer that stop found pending.
///
/// # Safety
/// `unfired` may be called with `arg` on this thread, and `ctx` has not been dropped.
#[cfg(feature = "capi")]
pub(crate) unsafe fn unfired_host(
    unfired: unsafe extern "C-unwind" fn(*mut c_void, u64, *mut c_void, u64),
    arg: *mut c_void,
    timer: u64,
    ctx: *mut c_void,
    deadline_ns: u64,
) {
    // SAFETY: four words to a function of those four; the caller vouches for them.
    unsafe { enter(arg, number(timer), ctx, number(deadline_ns), NONE, unfired as Word) }
}

const NONE: Word = std::ptr::null();

fn number(n: u64) -> Word {
    without_provenance(n as usize)
}

/// Calls `f(a, b, c, d, e)`, of which `f` may take less. The arguments are in place already, as
/// `f` comes last; all there is to do is to keep the stack aligned and walkable by frame pointers.
/// Written without a single unwind directive: that is what it is for.
///
/// # Safety
/// `f` is a C function that can be called with the first of these words and answers nothing.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn enter(a: Word, b: Word, c: Word, d: Word, e: Word, f: Word) {
    std::arch::naked_asm!(
        "endbr64", // a landing place for indirect branches, as is every function of a hardened host
        "push rbp",
        "mov rbp, rsp",
        "call r9",
        "pop rbp",
        "ret",
    )
}

/// As on x86-64.
///
/// # Safety
/// `f` is a C function that can be called with the first of these words and answers nothing.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn enter(a: Word, b: Word, c: Word, d: Word, e: Word, f: Word) {
    std::arch::naked_asm!(
        "hint #34", // bti c
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "blr x5",
        "ldp x29, x30, [sp], #16",
        "ret",
    )
}

/// The direct call. "C" and not "C-unwind": an exception stops here.
///
/// # Safety
/// `f` is a C function that can be called with the first of these words and answers nothing.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe extern "C" fn enter(a: Word, b: Word, c: Word, d: Word, e: Word, f: Word) {
    type Five = unsafe extern "C-unwind" fn(Word, Word, Word, Word, Word);
    // SAFETY: the caller vouches for `f`; words in registers that it does not take are not looked
    // at, on any processor with five of them.
    unsafe { std::mem::transmute::<Word, Five>(f)(a, b, c, d, e) }
}

#[cfg(all(test, target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use std::ffi::c_int;
    use std::ptr::{from_mut, from_ref, null, null_mut};

    #[repr(C, align(16))]
    struct Exception {
        class: u64,
        cleanup: *const c_void,
        private: [usize; 6],
    }

    unsafe extern "C-unwind" {
        fn _Unwind_RaiseException(exception: *mut Exception) -> c_int;
        fn _Unwind_Find_FDE(pc: *const c_void, bases: *mut [usize; 3]) -> *const c_void;
    }

    const END_OF_STACK: c_int = 5;

    unsafe extern "C-unwind" fn throw(ctx: *mut c_void, expiry: *const Expiry) {
        let mut exception = Exception { class: 1, cleanup: null(), private: [0; 6] };
        // SAFETY: an exception of our own. If the raise comes back, nothing was unwound.
        unsafe {
            *ctx.cast::<c_int>() = _Unwind_RaiseException(&mut exception);
            assert_eq!((*expiry).missed, 7);
        }
    }

    #[test]
    fn an_exception_finds_the_end_of_the_stack_whoever_would_catch() {
        let mut answer: c_int = 0;
        let expiry = Expiry { missed: 7, ..Expiry::default() };
        let ctx = from_mut(&mut answer).cast::<c_void>().addr();
        let call = move || {
            // SAFETY: `throw` takes these two; both outlive the call.
            unsafe { call_host(throw, std::ptr::with_exposed_provenance_mut(ctx), &expiry) }
        };
        from_mut(&mut answer).expose_provenance();
        std::panic::catch_unwind(call).unwrap();
        assert_eq!(answer, END_OF_STACK);
        answer = 0;
        crate::sys::thread::spawn("throw", 0, Box::new(call)).unwrap().join();
        // SAFETY: written by the thread that was joined, through the exposed address.
        assert_eq!(unsafe { from_ref(&answer).read_volatile() }, END_OF_STACK);
    }

    #[test]
    fn the_frame_is_not_described_to_the_unwinder() {
        let describes = |f: *const c_void| {
            // SAFETY: looks an address up; `bases` is ours to write to.
            !unsafe { _Unwind_Find_FDE(f.byte_add(4), &mut [0; 3]) }.is_null()
        };
        assert!(describes(throw as *const c_void));
        assert!(!describes(enter as *const c_void));
    }

    #[test]
    fn all_signatures_get_their_words_on_an_aligned_stack() {
        #[repr(align(16))]
        struct Aligned([u64; 5]);
        unsafe extern "C-unwind" fn five(a: *mut c_void, b: u32, c: u64, d: *mut c_void, e: u64) {
            let local = Aligned([7, b.into(), c, d.addr() as u64, e]);
            assert_eq!(std::hint::black_box(from_ref(&local)).addr() % 16, 0);
            // SAFETY: the test hands its own array.
            unsafe { *a.cast::<[u64; 5]>() = local.0 };
        }
        unsafe extern "C-unwind" fn four(a: *mut c_void, b: u64, c: *mut c_void, d: u64) {
            // SAFETY: as in `five`.
            unsafe { five(a, 0, b, c, d) };
        }
        unsafe extern "C-unwind" fn two(a: *mut c_void, b: u32) {
            // SAFETY: as in `five`.
            unsafe { five(a, b, 0, null_mut(), 0) };
        }
        unsafe extern "C-unwind" fn one(a: *mut c_void) {
            // SAFETY: as in `five`.
            unsafe { five(a, 0, 0, null_mut(), 0) };
        }
        let mut got = [0u64; 5];
        let to = from_mut(&mut got).cast::<c_void>();
        // SAFETY: each function is called with what it takes, and `to` is the array.
        unsafe {
            let far = std::ptr::without_provenance_mut(usize::MAX - 1);
            slow_hook(five, to, u32::MAX, 1 << 63, far, u64::MAX);
            assert_eq!(
                *to.cast::<[u64; 5]>(),
                [7, u32::MAX.into(), 1 << 63, u64::MAX - 1, u64::MAX]
            );
            unfired_host(four, to, 3, far, 4);
            assert_eq!(*to.cast::<[u64; 5]>(), [7, 0, 3, u64::MAX - 1, 4]);
            thread_hook(two, to, 9);
            assert_eq!(*to.cast::<[u64; 5]>(), [7, 9, 0, 0, 0]);
            drop_host(one, to);
            assert_eq!(*to.cast::<[u64; 5]>(), [7, 0, 0, 0, 0]);
        }
    }
}
