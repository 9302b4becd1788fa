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

use loom::sync::{Condvar, atomic as raw};
use loom::thread::{ThreadId, current};
use raw::Ordering;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

type Mark = Rc<Condvar>;

/// The marks of one atomic.
#[derive(Default)]
struct Marks(RefCell<Vec<(ThreadId, Mark)>>);

// SAFETY: the threads of a model are one thread of the system, and no borrow is held where another of
// them can take over.
unsafe impl Send for Marks {}
// SAFETY: as above.
unsafe impl Sync for Marks {}

impl Marks {
    fn load(&self) {
        let me = current().id();
        let known = self.0.borrow().iter().find(|(id, _)| *id == me).map(|(_, mark)| mark.clone());
        let mark = known.unwrap_or_else(|| {
            let mark = Mark::new(Condvar::new());
            self.0.borrow_mut().push((me, mark.clone()));
            mark
        });
        mark.notify_all();
    }

    fn write(&self) {
        let me = current().id();
        let count = self.0.borrow().len();
        for index in 0..count {
            let (id, mark) = self.0.borrow()[index].clone();
            if id != me {
                mark.notify_all();
            }
        }
    }
}

macro_rules! wrap {
    ($name:ident $(<$t:ident>)?, $value:ty) => {
        /// Loom's atomic with marks.
        pub(crate) struct $name $(<$t>)? {
            inner: raw::$name $(<$t>)?,
            marks: Marks,
        }

        impl $(<$t>)? $name $(<$t>)? {
            #[track_caller]
            pub(crate) fn new(value: $value) -> Self {
                Self { inner: raw::$name::new(value), marks: Marks::default() }
            }

            #[track_caller]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.marks.load();
                self.inner.load(order)
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.marks.write();
                self.inner.store(value, order);
            }

            #[track_caller]
            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.marks.write();
                self.inner.swap(value, order)
            }

            #[track_caller]
            pub(crate) fn compare_exchange(
                &self,
                seen: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.marks.write();
                self.inner.compare_exchange(seen, new, success, failure)
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
    ($name:ident, $value:ty: $($op:ident)*) => {
        impl $name {
            $(
                #[track_caller]
                pub(crate) fn $op(&self, value: $value, order: Ordering) -> $value {
                    self.marks.write();
                    self.inner.$op(value, order)
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

wrap!(AtomicBool, bool);
wrap!(AtomicI64, i64);
wrap!(AtomicU16, u16);
wrap!(AtomicU32, u32);
wrap!(AtomicU64, u64);
wrap!(AtomicPtr<T>, *mut T);

count!(AtomicI64, i64: fetch_add fetch_sub);
count!(AtomicU16, u16:);
count!(AtomicU32, u32: fetch_add fetch_sub fetch_and fetch_or);
count!(AtomicU64, u64: fetch_add fetch_max fetch_min);

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}

#[cfg(test)]
mod models {
    use super::*;
    use std::collections::HashSet;
    use std::sync::{Arc, Mutex};

    /// Loom alone explores this in one order; with marks both are seen.
    #[test]
    fn a_load_hides_no_other() {
        let outcomes = Arc::new(Mutex::new(HashSet::new()));
        let all = outcomes.clone();
        loom::model(move || {
            let shared = Arc::new(AtomicBool::new(false));
            let theirs = shared.clone();
            let other = loom::thread::spawn(move || {
                theirs.load(Ordering::Relaxed);
                theirs.store(true, Ordering::Relaxed);
            });
            let seen = shared.load(Ordering::Relaxed);
            other.join().unwrap();
            all.lock().unwrap().insert(seen);
        });
        assert_eq!(outcomes.lock().unwrap().len(), 2);
    }
}
