//! Waits. A condition that must come true gets ample time (the machine may be busy); what must
//! not happen is watched for as long as the test says.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Waits up to 30 s for `cond`.
#[track_caller]
pub fn eventually(what: &str, cond: impl FnMut() -> bool) {
    within(Duration::from_secs(30), what, cond);
}

/// Waits up to `limit` for `cond`.
#[track_caller]
pub fn within(limit: Duration, what: &str, mut cond: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !cond() {
        assert!(begin.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Watches for `time` that `cond` stays true.
#[track_caller]
pub fn stays(time: Duration, what: &str, mut cond: impl FnMut() -> bool) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        assert!(cond(), "after {:?} no longer: {what}", begin.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A door between two threads that opens once and stays open.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub const fn new() -> Gate {
        Gate { open: Mutex::new(false), opened: Condvar::new() }
    }

    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    pub fn is_open(&self) -> bool {
        *self.open.lock().unwrap()
    }

    /// Waits until it is open; after 30 s the test has failed.
    #[track_caller]
    pub fn wait(&self) {
        let open = self.open.lock().unwrap();
        let limit = Duration::from_secs(30);
        let (open, _) = self.opened.wait_timeout_while(open, limit, |open| !*open).unwrap();
        assert!(*open, "the gate stayed shut for {limit:?}");
    }
}
