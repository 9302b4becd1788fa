//! How late each callback came, one histogram for each shard.
//!
//! The shard's thread writes and must never wait for the reader. So there are two pages, and the
//! writer takes whichever is not being read; the reader holds one at a time, for as long as it
//! takes to swap two pointers.

use crate::clock::SECOND;
use hdrhistogram::Histogram;
use std::sync::{Mutex, TryLockError};

/// Up to this long, with two digits.
const LONGEST: u64 = 600 * SECOND;

pub fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are good")
}

#[derive(Debug)]
pub struct Lateness {
    pages: [Mutex<Histogram<u64>>; 2],
}

impl Lateness {
    pub fn new() -> Lateness {
        Lateness { pages: [Mutex::new(empty()), Mutex::new(empty())] }
    }

    /// The shard's thread alone.
    pub fn record(&self, late_ns: u64) {
        for page in self.pages.iter().cycle() {
            match page.try_lock() {
                Ok(mut page) => return page.saturating_record(late_ns),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Poisoned(page)) => {
                    return page.into_inner().saturating_record(late_ns);
                }
            }
        }
    }

    /// What has come since the last time, added to `sum` and answered.
    pub fn take(&self, sum: &mut Histogram<u64>) -> Histogram<u64> {
        let mut fresh = empty();
        for page in &self.pages {
            let mut other = empty();
            std::mem::swap(&mut *page.lock().expect("no writer panics"), &mut other);
            fresh.add(other).expect("the same bounds");
        }
        sum.add(&fresh).expect("the same bounds");
        fresh
    }
}
