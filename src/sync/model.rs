//! Loom's atomics, made to explore what loom 0.7 leaves out.
//!
//! Loom reverses two accesses of different threads if one of them writes. It remembers the last access to
//! an atomic alone, so a thread that loads and then writes hides, by its own load, the earlier load of
//! another thread from its write: "load, then store" against "load" is explored in one order only (its
//! issues 166 and 392). Nearly all of our atomics are used like that.
//!
//! So here each thread that loads an atomic has a mark beside it: a condition variable that nobody ever waits
//! for. A load first notifies the thread's own mark, a write first notifies the marks of all others: a
//! pair that loom reverses. Without a waiter that moves no knowledge from thread to thread.
//!
//! A load by the one thread that has written so far, which can only bring what it wrote last, is answered
//! from here, after the mark: that keeps the interleavings fewer and changes none.
//!
//! Nor does loom reverse two fences, though which SeqCst fence comes first decides what may be read after it. So
//! all of them notify one mark.
//!
//! And loom lets a thread's store pass before another thread's swap that has read an earlier store of the
//! same thread, as if something could stand between a swap and what it read (its issue 282). Where that can
//! happen (`SwappedU64`) a store looks at the swap first, without learning anything else from it.

use super::mutant::{half, is, order as weakened, torn};
use loom::sync::Condvar;
pub(super) use loom::sync::atomic as raw;
use loom::thread::{ThreadId, current};
use raw::Ordering;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

std::thread_local! {
    /// Whether the model that runs on this thread of the system does what `leaves_out_upkeep` asks about.
    pub(crate) static UPKEEP: Cell<bool> = const { Cell::new(false) };
}

type Mark = Rc<Condvar>;

std::thread_local! {
    /// The mark of the fences of this interleaving.
    static FENCES: RefCell<Option<Mark>> = const { RefCell::new(None) };
}

/// What is kept beside an atomic.
struct Beside<V> {
    marks: RefCell<Vec<(ThreadId, Mark)>>,
    /// The one thread that has written so far, the maker included; `None` when there are several.
    writer: Cell<Option<ThreadId>>,
    /// The last value written.
    value: Cell<V>,
    /// Who stored last, other than by an operation that reads and writes; `None`: the maker, at birth.
    stored: Cell<Option<ThreadId>>,
    /// Who has read and written last since.
    updated: Cell<Option<ThreadId>>,
}

// SAFETY: the threads of a model are one thread of the system, and no borrow is held where another of
// them can take over.
unsafe impl<V> Send for Beside<V> {}
// SAFETY: as above.
unsafe impl<V> Sync for Beside<V> {}

impl<V: Copy> Beside<V> {
    fn new(value: V) -> Beside<V> {
        Beside {
            marks: RefCell::default(),
            writer: Cell::new(Some(current().id())),
            value: Cell::new(value),
            stored: Cell::new(None),
            updated: Cell::new(None),
        }
    }

    /// Before a load; the value, if it is this thread's own.
    fn load(&self) -> Option<V> {
        let me = current().id();
        let known =
            self.marks.borrow().iter().find(|(id, _)| *id == me).map(|(_, mark)| mark.clone());
        let mark = known.unwrap_or_else(|| {
            let mark = Mark::new(Condvar::new());
            self.marks.borrow_mut().push((me, mark.clone()));
            mark
        });
        mark.notify_all();
        (self.writer.get() == Some(me)).then(|| self.value.get())
    }

    /// Before a write.
    fn write(&self) {
        let me = current().id();
        let count = self.marks.borrow().len();
        for index in 0..count {
            let (id, mark) = self.marks.borrow()[index].clone();
            if id != me {
                mark.notify_all();
            }
        }
    }

    /// Does an update by another thread stand between this thread's last store (or birth) and its next?
    fn is_behind(&self) -> bool {
        let me = Some(current().id());
        let mine = self.stored.get().is_none() || self.stored.get() == me;
        mine && self.updated.get().is_some() && self.updated.get() != me
    }

    fn stores(&self, value: V) {
        let me = Some(current().id());
        self.value.set(value);
        self.stored.set(me);
        self.updated.set(None);
        self.writes(me);
    }

    fn updates(&self, value: V) {
        let me = Some(current().id());
        self.value.set(value);
        self.updated.set(me);
        self.writes(me);
    }

    fn writes(&self, me: Option<ThreadId>) {
        if self.writer.get() != me {
            self.writer.set(None);
        }
    }
}

/// Loom's fence.
#[track_caller]
pub(crate) fn fence(order: Ordering) {
    if is(Location::caller(), "dropped") {
        return;
    }
    if order == Ordering::SeqCst {
        let mark = FENCES.with_borrow(Clone::clone);
        mark.inspect(|mark| mark.notify_all());
    }
    raw::fence(order);
}

/// An interleaving begins.
pub(crate) fn begin() {
    FENCES.set(Some(Mark::new(Condvar::new())));
}

macro_rules! wrap {
    ($name:ident $(<$t:ident>)?, $raw:ident, $value:ty, $other:expr, $strict:expr) => {
        /// Loom's atomic, and what is kept beside it.
        pub(crate) struct $name $(<$t>)? {
            inner: raw::$raw $(<$t>)?,
            beside: Beside<$value>,
        }

        #[allow(dead_code, reason = "not each kind is used in each way")]
        impl $(<$t>)? $name $(<$t>)? {
            #[track_caller]
            pub(crate) fn new(value: $value) -> Self {
                Self { inner: raw::$raw::new(value), beside: Beside::new(value) }
            }

            #[track_caller]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                let order = half(Location::caller(), order, "acquire");
                match self.beside.load() {
                    Some(value) => value,
                    None => self.inner.load(order),
                }
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                let order = half(Location::caller(), order, "release");
                self.beside.write();
                if $strict {
                    self.beside.load();
                    loom::stop_exploring();
                    if self.beside.is_behind() {
                        // Fails, and has then seen the update; the store comes at once.
                        let other = $other(self.beside.value.get());
                        let relaxed = Ordering::Relaxed;
                        let seen = self.inner.compare_exchange(other, other, relaxed, relaxed);
                        assert!(seen.is_err());
                    }
                    self.inner.store(value, order);
                    loom::explore();
                } else {
                    self.inner.store(value, order);
                }
                self.beside.stores(value);
            }

            #[track_caller]
            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                if is(Location::caller(), "torn") {
                    let (load, store) = torn(order);
                    let old = self.load(load);
                    self.store(value, store);
                    return old;
                }
                let order = weakened(Location::caller(), order);
                self.beside.write();
                let old = self.inner.swap(value, order);
                self.beside.updates(value);
                old
            }

            #[track_caller]
            pub(crate) fn compare_exchange(
                &self,
                seen: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if is(Location::caller(), "torn") {
                    let (load, store) = torn(success);
                    let old = self.load(load);
                    if old != seen {
                        return Err(old);
                    }
                    self.store(new, store);
                    return Ok(old);
                }
                let success = weakened(Location::caller(), success);
                let failure = half(Location::caller(), failure, "failure");
                self.beside.write();
                let result = self.inner.compare_exchange(seen, new, success, failure);
                if result.is_ok() {
                    self.beside.updates(new);
                }
                result
            }

            /// Does not fail without a reason here.
            #[track_caller]
            pub(crate) fn compare_exchange_weak(
                &self,
                seen: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(seen, new, success, failure)
            }
        }

        impl $(<$t>)? fmt::Debug for $name $(<$t>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

macro_rules! count {
    ($name:ident, $value:ty: $($op:ident $new:expr),*) => {
        impl $name {
            $(
                #[track_caller]
                pub(crate) fn $op(&self, value: $value, order: Ordering) -> $value {
                    let new: fn($value, $value) -> $value = $new;
                    if is(Location::caller(), "torn") {
                        let (load, store) = torn(order);
                        let old = self.load(load);
                        self.store(new(old, value), store);
                        return old;
                    }
                    let order = weakened(Location::caller(), order);
                    self.beside.write();
                    let old = self.inner.$op(value, order);
                    self.beside.updates(new(old, value));
                    old
                }
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }
    };
}

wrap!(AtomicBool, AtomicBool, bool, |value: bool| !value, false);
wrap!(AtomicI64, AtomicI64, i64, |value: i64| !value, false);
wrap!(AtomicU16, AtomicU16, u16, |value: u16| !value, false);
wrap!(AtomicU32, AtomicU32, u32, |value: u32| !value, false);
wrap!(AtomicU64, AtomicU64, u64, |value: u64| !value, false);
wrap!(SwappedU64, AtomicU64, u64, |value: u64| !value, true);
wrap!(AtomicPtr<T>, AtomicPtr, *mut T, |value: *mut T| value.wrapping_byte_add(1), false);

count!(AtomicI64, i64: fetch_add i64::wrapping_add, fetch_sub i64::wrapping_sub);
count!(AtomicU16, u16:);
count!(
    AtomicU32, u32:
    fetch_add u32::wrapping_add,
    fetch_sub u32::wrapping_sub,
    fetch_and |old, value| old & value,
    fetch_or |old, value| old | value
);
count!(
    AtomicU64, u64:
    fetch_add u64::wrapping_add,
    fetch_sub u64::wrapping_sub,
    fetch_max u64::max
);
count!(SwappedU64, u64: fetch_min u64::min);

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}

#[cfg(test)]
mod models {
    use super::*;
    use crate::models::explore;
    use std::collections::HashSet;
    use std::sync::{Arc, LazyLock, Mutex};

    /// What a swap has read is followed by the swap.
    #[test]
    fn a_store_comes_after_the_swap_that_read_the_last() {
        explore("a_store_comes_after_the_swap_that_read_the_last", None, || {
            let shared = Arc::new(SwappedU64::new(0));
            let theirs = shared.clone();
            let other = loom::thread::spawn(move || {
                let first = theirs.swap(10, Ordering::Relaxed);
                (first, theirs.swap(20, Ordering::Relaxed))
            });
            shared.store(1, Ordering::Relaxed);
            shared.store(2, Ordering::Relaxed);
            let (first, second) = other.join().unwrap();
            let last = shared.swap(0, Ordering::Relaxed);
            let orders = [(0, 10, 2), (0, 1, 2), (0, 2, 20), (1, 10, 2), (1, 2, 20), (2, 10, 20)];
            assert!(orders.contains(&(first, second, last)), "{first} {second} {last}");
        });
    }

    /// Loom alone explores this in one order; with marks both are seen.
    #[test]
    fn a_load_hides_no_other() {
        static OUTCOMES: LazyLock<Mutex<HashSet<bool>>> = LazyLock::new(Mutex::default);
        explore("a_load_hides_no_other", None, || {
            let shared = Arc::new(AtomicBool::new(false));
            let theirs = shared.clone();
            let other = loom::thread::spawn(move || {
                theirs.load(Ordering::Relaxed);
                theirs.store(true, Ordering::Relaxed);
            });
            let seen = shared.load(Ordering::Relaxed);
            other.join().unwrap();
            OUTCOMES.lock().unwrap().insert(seen);
        });
        assert_eq!(OUTCOMES.lock().unwrap().len(), 2);
    }
}
