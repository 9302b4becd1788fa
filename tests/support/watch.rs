//! What is wrong that no test asked about: found anywhere, told when the service ends.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// A pointer that may go to other threads: the tests vouch for what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ptr(pub *mut c_void);
// SAFETY: only tests make these, of contexts that live until the process ends.
unsafe impl Send for Ptr {}
// SAFETY: as above.
unsafe impl Sync for Ptr {}

/// The faults of one service, and the drop counts of its closures.
#[derive(Default)]
pub(super) struct Watch {
    faults: Mutex<Vec<String>>,
    drops: Mutex<Vec<&'static AtomicU32>>,
}

impl Watch {
    pub(super) fn new() -> &'static Watch {
        keep(Watch::default())
    }

    pub(super) fn fault(&self, what: String) {
        self.faults.lock().unwrap().push(what);
    }

    /// A context whose drop must have run exactly once when the service is gone.
    pub(super) fn expect_drop(&self, count: &'static AtomicU32) {
        self.drops.lock().unwrap().push(count);
    }

    /// Panics if anything was wrong. For a service that has been stopped.
    pub(super) fn verdict(&self) {
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "faults seen in callbacks:\n  {}", faults.join("\n  "));
        for (nth, count) in self.drops.lock().unwrap().iter().enumerate() {
            let ran = count.load(Ordering::SeqCst);
            assert_eq!(ran, 1, "F9: the drop of context number {nth} ran {ran} times");
        }
    }
}

/// Keeps a value until the process ends, where a leak checker still finds it.
pub fn keep<T: Send + Sync + 'static>(value: T) -> &'static T {
    static KEPT: Mutex<Vec<Ptr>> = Mutex::new(Vec::new());
    let kept: &'static T = Box::leak(Box::new(value));
    KEPT.lock().unwrap().push(Ptr(std::ptr::from_ref(kept).cast_mut().cast()));
    kept
}
