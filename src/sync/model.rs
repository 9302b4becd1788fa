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

use loom::sync::{Condvar, atomic as raw};
use loom::thread::{ThreadId, current};
use raw::Ordering;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

std::thread_local! {
    /// Whether the model that runs on this thread of the system does what `leaves_out_upkeep` asks about.
    pub(crate) static UPKEEP: Cell<bool> = const { Cell::new(false) };
}

type Mark = Rc<Condvar>;

/// Who has written.
enum Writer<V> {
    /// The maker, or this thread alone so far; its last value, which is not known after an operation
    /// that reads and writes.
    One(ThreadId, Option<V>),
    Many,
}

/// What is kept beside an atomic: the marks, and who has written.
struct Beside<V> {
    marks: RefCell<Vec<(ThreadId, Mark)>>,
    writer: RefCell<Writer<V>>,
}

// SAFETY: the threads of a model are one thread of the system, and no borrow is held where another of
// them can take over.
unsafe impl<V> Send for Beside<V> {}
// SAFETY: as above.
unsafe impl<V> Sync for Beside<V> {}

impl<V: Copy> Beside<V> {
    fn new(value: V) -> Beside<V> {
        let writer = Writer::One(current().id(), Some(value));
        Beside { marks: RefCell::default(), writer: RefCell::new(writer) }
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
        match *self.writer.borrow() {
            Writer::One(id, value) if id == me => value,
            _ => None,
        }
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

    /// After a write.
    fn wrote(&self, value: Option<V>) {
        let me = current().id();
        let mut writer = self.writer.borrow_mut();
        *writer = match *writer {
            Writer::One(id, _) if id == me => Writer::One(me, value),
            _ => Writer::Many,
        };
    }
}

macro_rules! wrap {
    ($name:ident $(<$t:ident>)?, $value:ty) => {
        /// Loom's atomic with marks.
        pub(crate) struct $name $(<$t>)? {
            inner: raw::$name $(<$t>)?,
            beside: Beside<$value>,
        }

        impl $(<$t>)? $name $(<$t>)? {
            #[track_caller]
            pub(crate) fn new(value: $value) -> Self {
                Self { inner: raw::$name::new(value), beside: Beside::new(value) }
            }

            #[track_caller]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                match self.beside.load() {
                    Some(value) => value,
                    None => self.inner.load(order),
                }
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.beside.write();
                self.inner.store(value, order);
                self.beside.wrote(Some(value));
            }

            #[track_caller]
            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.beside.write();
                let old = self.inner.swap(value, order);
                self.beside.wrote(Some(value));
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
                self.beside.write();
                let result = self.inner.compare_exchange(seen, new, success, failure);
                if result.is_ok() {
                    self.beside.wrote(Some(new));
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
    ($name:ident, $value:ty: $($op:ident)*) => {
        impl $name {
            $(
                #[track_caller]
                pub(crate) fn $op(&self, value: $value, order: Ordering) -> $value {
                    self.beside.write();
                    let old = self.inner.$op(value, order);
                    self.beside.wrote(None);
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
