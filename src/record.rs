//! One timer's record: 32 bytes, two to a cache line.
//!
//! Ground rules:
//! - `word` decides everything; whoever moves it by compare-and-swap has won that race. The thread
//!   that moves it to `Free` owns the slot until it hands it to a free list.
//! - `callback`, `ctx` and `kind` are written by the starting thread while the slot is its own, before
//!   the word says `Pending` (Release); they stay as they are until the word says `Free`. Whoever
//!   read them and then moved the word from a value with the same generation (Acquire when that
//!   word was read) has read what belongs to this timer.
//! - `tag` is the owner's: it goes up each time a reminder is filed for the slot, and the reminder carries
//!   it. An older reminder, of this timer or of one that had the slot before, does not match and is
//!   dropped when it comes up.
//! - `low` holds the low bits of the exact deadline, which together with the word's tick give the
//!   whole. It is stored beside the word, not with it: when the timer is reset at the very moment in
//!   which it is read, or a thread is held up in the middle of a reset, it may be that of another
//!   call. Then it fits no instant within a tick of the word's, mostly, and the deadline that is
//!   *reported* is that of the tick. When the timer fires does not depend on it. Where more depends on
//!   it, for a period or slack, the kind says that it is `exact`: what does not fit in the word is then
//!   in a note, which the word names, so that the two cannot part.
//!
//! A timer with a period, slack, a drop function or a queue has an `Extra` elsewhere; its
//! record holds the index in place of the callback.

use crate::arena::Zeroed;
use crate::sync::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering};
use crate::types::{Callback, DropFn};
use crate::word::{Offset, Word};
use std::ffi::c_void;
use std::ptr;

/// The ticks between two origins. A near offset reaches at least 7.5 * 2^30 ticks past the start.
const ORIGIN_SHIFT: u32 = 33;
const ORIGIN_LIMIT: u64 = 1 << 14;
const EXTRA_BIT: u16 = 1 << 15;
const EXACT_BIT: u16 = 1 << 14;

/// What does not change while a timer lives: where its offsets count from, and whether it has
/// an `Extra`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind(u16);

impl Kind {
    /// The kind of a timer that is started around `tick`.
    #[inline]
    pub(crate) fn new(tick: u64, extra: bool, exact: bool) -> Kind {
        let origin = (tick >> ORIGIN_SHIFT).min(ORIGIN_LIMIT - 1) as u16;
        Kind(origin | if extra { EXTRA_BIT } else { 0 } | if exact { EXACT_BIT } else { 0 })
    }

    /// The kind of a plain timer that is started around `tick`, as a number.
    pub(crate) fn plain_bits(tick: u64) -> u16 {
        Kind::new(tick, false, false).0
    }

    /// The kind of a plain timer with that number.
    #[inline(always)]
    pub(crate) fn plain(bits: u16) -> Kind {
        debug_assert!(bits & (EXTRA_BIT | EXACT_BIT) == 0);
        Kind(bits)
    }

    /// The offset of a tick, of a plain timer, if it is near enough.
    #[inline(always)]
    pub(crate) fn plain_offset(self, tick: u64) -> Option<Offset> {
        // One before the origin is not near either.
        Offset::near(tick.wrapping_sub(u64::from(self.0) << ORIGIN_SHIFT))
    }

    /// Must word and exact deadline never part?
    #[inline]
    pub(crate) fn is_exact(self) -> bool {
        self.0 & EXACT_BIT != 0
    }

    #[inline]
    pub(crate) fn has_extra(self) -> bool {
        self.0 & EXTRA_BIT != 0
    }

    #[inline]
    fn origin(self) -> u64 {
        u64::from(self.0 & !(EXTRA_BIT | EXACT_BIT)) << ORIGIN_SHIFT
    }

    /// The offset of a tick, if it is near enough.
    #[inline]
    pub(crate) fn offset(self, tick: u64) -> Option<Offset> {
        tick.checked_sub(self.origin()).and_then(Offset::near)
    }

    /// The tick of a near offset.
    #[inline]
    pub(crate) fn tick(self, offset: Offset) -> u64 {
        self.origin() + offset.ticks()
    }
}

/// See the head of this file.
#[derive(Debug)]
#[cfg_attr(not(loom), repr(C, align(32)))]
pub(crate) struct Record {
    word: AtomicU64,
    callback: AtomicPtr<c_void>,
    ctx: AtomicPtr<c_void>,
    low: AtomicU32,
    kind: AtomicU16,
    tag: AtomicU16,
}

impl Default for Record {
    fn default() -> Self {
        Record {
            word: AtomicU64::new(0),
            callback: AtomicPtr::new(ptr::null_mut()),
            ctx: AtomicPtr::new(ptr::null_mut()),
            low: AtomicU32::new(0),
            kind: AtomicU16::new(0),
            tag: AtomicU16::new(0),
        }
    }
}

// SAFETY: integers and pointers; zero is the `Default`.
unsafe impl Zeroed for Record {}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Record>() == 32 && align_of::<Record>() == 32);

impl Record {
    /// Acquire: pairs with the Release of `publish` and of every `swap`, so that what was written
    /// before the word took this value is seen.
    #[inline]
    pub(crate) fn word(&self) -> Word {
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

    /// Moves the word if it still is `seen`.
    ///
    /// Release: hands what this thread wrote to whoever reads the new word. What was written before the old one the
    /// caller has seen when it read that, by `word`, or here when it failed (Acquire).
    #[inline]
    pub(crate) fn swap(&self, seen: Word, new: Word) -> Result<(), Word> {
        self.word
            .compare_exchange(seen.bits(), new.bits(), Ordering::Release, Ordering::Acquire)
            .map(drop)
            .map_err(Word::from_bits)
    }

    /// Stores the word: for the thread that owns the slot, or that owns the shard exclusively.
    ///
    /// Release: pairs with the Acquire of `word` and `swap`.
    #[inline]
    pub(crate) fn publish(&self, word: Word) {
        self.word.store(word.bits(), Ordering::Release);
    }

    /// Fills a slot that is this thread's own. Relaxed: the word's Release publishes it.
    #[inline]
    pub(crate) fn fill(&self, kind: Kind, callback: *mut c_void, ctx: *mut c_void) {
        self.kind.store(kind.0, Ordering::Relaxed);
        self.callback.store(callback, Ordering::Relaxed);
        self.ctx.store(ctx, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        Kind(self.kind.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn ctx(&self) -> *mut c_void {
        self.ctx.load(Ordering::Relaxed)
    }

    /// The plain timer's function, or the address-sized index of its extra.
    #[inline]
    pub(crate) fn callback(&self) -> *mut c_void {
        self.callback.load(Ordering::Relaxed)
    }

    /// The index of the extra, of a timer whose kind says that it has one.
    #[inline]
    pub(crate) fn extra_index(&self) -> u32 {
        self.callback().addr() as u32
    }

    #[inline]
    pub(crate) fn low(&self) -> u32 {
        self.low.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_low(&self, deadline_ns: u64) {
        self.low.store(deadline_ns as u32, Ordering::Relaxed);
    }

    /// The tag of the newest reminder that was filed for this slot. The owner's.
    #[inline]
    pub(crate) fn tag(&self) -> u16 {
        self.tag.load(Ordering::Relaxed)
    }

    /// A reminder has been filed with this tag. The owner's.
    #[inline]
    pub(crate) fn set_tag(&self, tag: u16) {
        self.tag.store(tag, Ordering::Relaxed);
    }
}

/// A function of the host as the records keep it.
pub(crate) fn pointer_of(callback: Option<Callback>) -> *mut c_void {
    callback.map_or(ptr::null_mut(), |function| function as *mut c_void)
}

/// The callback behind a pointer made by `pointer_of`.
pub(crate) fn callback_of(pointer: *mut c_void) -> Option<Callback> {
    // SAFETY: the pointer is null, which is `None`, or was made from a `Callback`.
    unsafe { std::mem::transmute::<*mut c_void, Option<Callback>>(pointer) }
}

/// The drop function as an extra keeps it.
pub(crate) fn pointer_of_drop(drop: Option<DropFn>) -> *mut c_void {
    drop.map_or(ptr::null_mut(), |function| function as *mut c_void)
}

/// The drop function behind a pointer made by `pointer_of_drop`.
pub(crate) fn drop_of(pointer: *mut c_void) -> Option<DropFn> {
    // SAFETY: the pointer is null, which is `None`, or was made from a `DropFn`.
    unsafe { std::mem::transmute::<*mut c_void, Option<DropFn>>(pointer) }
}
