//! The one door to atomics, cells and threads: `std` in a build for use, loom in a build for
//! models (`RUSTFLAGS="--cfg loom"`), and shuttle in loom's place in one for scenarios (`--cfg shuttle` as
//! well: see `lib.rs` and `.ci/shuttle`).
//!
//! Ground rule: no other module names `std::sync::atomic`, `std::cell::UnsafeCell` or
//! `std::thread` in code that a model runs, so that what loom checks is the code that ships.

#[cfg(all(loom, not(shuttle)))]
pub(crate) mod model;
#[cfg(all(loom, not(shuttle)))]
pub(crate) mod mutant;

#[cfg(all(loom, not(shuttle)))]
pub(crate) use loom::sync::atomic::Ordering;
#[cfg(shuttle)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering, fence,
};
#[cfg(all(loom, not(shuttle)))]
pub(crate) use model::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, SwappedU64, fence,
};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering, fence,
};

/// For `shared`, which models explore apart.
pub(crate) mod counts {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
}

/// One that some threads store to and others swap, without waiting for each other (see `model`).
#[cfg(any(not(loom), shuttle))]
pub(crate) type SwappedU64 = AtomicU64;

/// A cell whose access is scoped to a closure, so that loom can see each access begin and end.
#[cfg(all(loom, not(shuttle)))]
pub(crate) use loom::cell::UnsafeCell;

#[cfg(any(not(loom), shuttle))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(any(not(loom), shuttle))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Lends the address for reading. The caller of the closure's dereference proves that nobody
    /// writes meanwhile.
    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Lends the address for writing. The caller of the closure's dereference proves that nobody
    /// else reads or writes meanwhile.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Stands for memory that is given back: a model sees who uses it after its end.
#[derive(Debug, Default)]
pub(crate) struct Life {
    #[cfg(loom)]
    cell: UnsafeCell<()>,
}

// SAFETY: nothing is in it.
unsafe impl Sync for Life {}

impl Life {
    /// What it stands for is used by this thread.
    #[inline(always)]
    pub(crate) fn used(&self) {
        #[cfg(loom)]
        self.cell.with(|_| ());
    }
}

#[cfg(loom)]
impl Drop for Life {
    fn drop(&mut self) {
        self.cell.with_mut(|_| ());
    }
}

/// A number of the whole process, which a model does not explore.
pub(crate) use std::sync::atomic::AtomicU64 as ProcessWide;

/// Comes before a load is repeated that may have brought an old value: in time a newer one comes, and a
/// model brings it now.
#[inline(always)]
pub(crate) fn look_again() {
    #[cfg(loom)]
    yield_now();
}

/// Asked before work that reads what all ports have counted, to keep statistics or to save memory, and before a
/// thread reports that it has begun. A
/// model leaves it out unless it is about that: the interleavings would be very many.
#[inline(always)]
pub(crate) fn leaves_out_upkeep() -> bool {
    #[cfg(all(loom, not(shuttle)))]
    return !model::UPKEEP.get();
    #[cfg(any(not(loom), shuttle))]
    false
}

/// Gives the processor to another thread.
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;
