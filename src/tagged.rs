//! A lock-free stack of indices into an arena (Treiber's, with a tag against ABA).
//!
//! Any thread pushes and pops. The head holds an index and a tag that changes with every success, so
//! a pop whose `next` was read from an element that has come and gone meanwhile fails. Elements are
//! never freed while the stack lives, so the stale read is harmless. Index 0 stands for the end.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The stack's head.
#[derive(Debug)]
pub(crate) struct TaggedStack {
    head: AtomicU64,
}

impl TaggedStack {
    pub(crate) fn new() -> TaggedStack {
        TaggedStack { head: AtomicU64::new(0) }
    }

    /// Puts an element on top. `link` is the element's own link field.
    pub(crate) fn push(&self, index: u32, link: &AtomicU32) {
        debug_assert_ne!(index, 0);
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            link.store(head as u32, Ordering::Relaxed);
            // Release: hands the element's content and link to the Acquire in `pop`.
            match self.head.compare_exchange_weak(
                head,
                retagged(head, index),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the top element. `link_of` finds an element's link field.
    pub(crate) fn pop<'a>(&self, link_of: impl Fn(u32) -> &'a AtomicU32) -> Option<u32> {
        // Acquire, here and where the exchange fails: pairs with the Release in `push`.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let index = head as u32;
            if index == 0 {
                return None;
            }
            let next = link_of(index).load(Ordering::Relaxed);
            // Relaxed: it takes what was seen above.
            match self.head.compare_exchange_weak(
                head,
                retagged(head, next),
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
    }
}

fn retagged(head: u64, index: u32) -> u64 {
    ((head >> 32).wrapping_add(1) << 32) | u64::from(index)
}
