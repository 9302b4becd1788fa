//! A counted reference to the one engine, which threads and queues share: `Arc`, but for one thing: where
//! there is no memory to make it, that is an answer and not the end of the process.
//!
//! Ground rules, those of `Arc`: `strong` counts the references that keep the value, `weak` the others and
//! one more for all the strong ones together. Whoever takes `strong` to 0 drops the value, whoever
//! takes `weak` to 0 frees the memory. Counts do not come near their limits: each is a reference somewhere
//! in memory.
//!
//! The counts come by `super`, because `models::references` takes this file in once more, with loom's: all models hold
//! references, and would explore little else if those were modelled everywhere.

use super::sync::counts::{AtomicU64, Ordering, fence};
use crate::sync::Life;
use crate::sys::memory::boxed;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;

struct Inner<T> {
    strong: AtomicU64,
    weak: AtomicU64,
    value: MaybeUninit<T>,
    life: Life,
}

/// Keeps the value.
pub struct Shared<T>(NonNull<Inner<T>>);

/// Does not keep it, but knows whether it is there.
pub(crate) struct WeakShared<T>(NonNull<Inner<T>>);

// SAFETY: as `Arc`: references and the drop may be on any thread.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for WeakShared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for WeakShared<T> {}

impl<T> Shared<T> {
    /// A value that may keep a weak reference to itself. `None`: no memory.
    pub(crate) fn new_cyclic(make: impl FnOnce(&WeakShared<T>) -> T) -> Option<Shared<T>> {
        let (strong, weak) = (AtomicU64::new(0), AtomicU64::new(1));
        let (value, life) = (MaybeUninit::uninit(), Life::default());
        let inner = boxed(Inner { strong, weak, value, life })?;
        let inner = NonNull::from(Box::leak(inner));
        // The one weak reference of all the strong ones. Should `make` panic it frees the memory.
        let weak = WeakShared(inner);
        let value = make(&weak);
        // SAFETY: until `strong` says so nobody looks at the value.
        unsafe { (&raw mut (*inner.as_ptr()).value).write(MaybeUninit::new(value)) };
        // Release: pairs with the Acquire in `upgrade`.
        weak.inner().strong.store(1, Ordering::Release);
        std::mem::forget(weak);
        Some(Shared(inner))
    }

    fn inner(&self) -> &Inner<T> {
        // SAFETY: freed only when no reference is left.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: written before there was a strong reference, and dropped after the last.
        unsafe { self.inner().value.assume_init_ref() }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        // Relaxed: there is a reference already, through which the value is seen.
        self.inner().strong.fetch_add(1, Ordering::Relaxed);
        Shared(self.0)
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Release: pairs with the fence below: what was done through this reference comes before the drop.
        if self.inner().strong.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        // SAFETY: the last strong reference is gone, and `upgrade` makes no more.
        unsafe { (*self.0.as_ptr()).value.assume_init_drop() };
        drop(WeakShared(self.0));
    }
}

impl<T> WeakShared<T> {
    fn inner(&self) -> &Inner<T> {
        // SAFETY: freed only when no reference is left.
        unsafe { self.0.as_ref() }
    }

    /// A strong reference, if the value is there.
    pub(crate) fn upgrade(&self) -> Option<Shared<T>> {
        let strong = &self.inner().strong;
        let mut count = strong.load(Ordering::Relaxed);
        while count != 0 {
            // Acquire: pairs with the Release in `new_cyclic`.
            match strong.compare_exchange_weak(
                count,
                count + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Shared(self.0)),
                Err(now) => count = now,
            }
        }
        None
    }

    /// A reference to a value that is not there.
    #[cfg(all(loom, test))]
    pub(crate) fn to_nothing() -> WeakShared<T> {
        let (strong, weak) = (AtomicU64::new(0), AtomicU64::new(1));
        let (value, life) = (MaybeUninit::uninit(), Life::default());
        let inner = boxed(Inner { strong, weak, value, life });
        WeakShared(NonNull::from(Box::leak(inner.expect("memory"))))
    }

    /// Is the value there?
    pub(crate) fn is_alive(&self) -> bool {
        self.inner().strong.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn same(&self, other: &WeakShared<T>) -> bool {
        self.0 == other.0
    }
}

impl<T> Clone for WeakShared<T> {
    fn clone(&self) -> Self {
        // Relaxed: as in `Shared::clone`.
        self.inner().weak.fetch_add(1, Ordering::Relaxed);
        WeakShared(self.0)
    }
}

impl<T> Drop for WeakShared<T> {
    fn drop(&mut self) {
        self.inner().life.used();
        // Release: pairs with the fence below.
        if self.inner().weak.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: made by `boxed`, and this was the last reference; the value has been dropped, or never was.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    struct Node {
        me: WeakShared<Node>,
        alive: Arc<()>,
    }

    fn node(alive: &Arc<()>) -> Shared<Node> {
        let make = |me: &WeakShared<Node>| {
            assert!(me.upgrade().is_none(), "not before it is there");
            Node { me: me.clone(), alive: alive.clone() }
        };
        Shared::new_cyclic(make).unwrap()
    }

    #[test]
    fn the_value_goes_with_the_last_strong_reference() {
        let alive = Arc::new(());
        let first = node(&alive);
        let (second, weak) = (first.clone(), first.me.clone());
        assert!(weak.is_alive() && weak.same(&second.me));
        assert!(Arc::ptr_eq(&weak.upgrade().unwrap().alive, &alive));
        drop(first);
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(second);
        assert_eq!(Arc::strong_count(&alive), 1);
        assert!(weak.upgrade().is_none() && !weak.is_alive());
        drop(weak);
    }

    #[test]
    fn a_panic_while_it_is_made_leaves_nothing() {
        let kept = std::cell::RefCell::new(None);
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Shared::<u64>::new_cyclic(|me| {
                *kept.borrow_mut() = Some(me.clone());
                panic!("on purpose");
            })
        }));
        assert!(made.is_err() && kept.into_inner().unwrap().upgrade().is_none());
    }

    #[test]
    fn many_threads_come_and_go() {
        let alive = Arc::new(());
        for _ in 0..200 {
            let shared = node(&alive);
            let threads: Vec<_> = (0..4)
                .map(|nth| {
                    let (strong, weak) = (shared.clone(), shared.me.clone());
                    thread::spawn(move || {
                        for _ in 0..100 {
                            drop(strong.clone());
                            drop(weak.upgrade());
                        }
                        if nth % 2 == 0 {
                            drop(strong);
                        }
                        weak.upgrade().is_some()
                    })
                })
                .collect();
            drop(shared);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(Arc::strong_count(&alive), 1);
        }
    }
}
