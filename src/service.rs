//! The owner of a service: it starts with it and ends with it.

use crate::builder::Builder;
use crate::status::Error;
use crate::time::Time;
use crate::timer::Timer;
use crate::timers::Timers;
use std::ops::Deref;
use std::thread;

/// A timer service: a number of shards, each with a timing wheel and, unless it is
/// [driven](Builder::driven), a thread of its own.
///
/// All calls on it are those of [`Timers`], to which it dereferences. The `Service` itself is its
/// life: when it is dropped, the service ends as by [`Timers::stop`]. It can be shared by reference
/// or in an `Arc`; what lives longer, or lives inside the callbacks, takes a [`Timers`] by
/// [`Service::timers`]. (A callback that held the `Service` itself would keep it from ever being
/// dropped.)
///
/// # Drop
/// Dropping it waits until no callback runs and the threads have ended, and drops the closures of
/// all timers that had not fired.
///
/// Where that wait would be for the dropping thread itself (inside a callback, a hook, or the drop
/// of a closure while the service stops) it is left to a thread that is made for it, and the drop
/// returns at once: the service ends soon after the callback has returned. If no thread can be
/// made, the service goes on.
///
/// In a child of the process that started it the drop does nothing, and leaks: closures are
/// not dropped there.
///
/// ```
/// use shardwheel::{Outcome, Service};
/// use std::time::Duration;
///
/// let service = Service::new()?;
/// let timer = service.after(Duration::from_secs(60), |_| println!("a minute has gone by"))?;
/// assert_eq!(service.cancel(timer)?, Outcome::Done);
/// # Ok::<(), shardwheel::Error>(())
/// ```
#[derive(Debug)]
pub struct Service {
    timers: Timers,
}

/// A timer that had not fired when its service stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfired {
    /// Which one; it has ended.
    pub timer: Timer,
    /// When it would have been due.
    pub deadline: Time,
}

impl Service {
    /// Starts a service with all defaults: a pinned thread for each CPU that the process may use,
    /// ticks of 1 ms, the monotonic clock, 2²⁴ timers a shard.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<Service, Error> {
        Service::builder().build()
    }

    /// Begins a service with everything that can be asked of one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn of(timers: Timers) -> Service {
        Service { timers }
    }

    /// A way in that can be cloned, kept by other threads and captured by callbacks, and does not
    /// keep the service from ending.
    pub fn timers(&self) -> Timers {
        self.timers.clone()
    }
}

impl Deref for Service {
    type Target = Timers;

    #[inline]
    fn deref(&self) -> &Timers {
        &self.timers
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The shard's own thread is waited for even after its last turn, in its thread-locals'
        // drops.
        if !self.timers.host.is_current() {
            match self.timers.stop() {
                Ok(_) => return,
                Err(Error::WouldDeadlock) => {}
                // What cannot be stopped must not be let go of: see `Host`.
                Err(_) => return std::mem::forget(self.timers()),
            }
        }
        let timers = self.timers();
        let stop = move || {
            if timers.stop().is_err() {
                std::mem::forget(timers);
            }
        };
        if thread::Builder::new().name("wheel-stop".to_string()).spawn(stop).is_err() {
            std::mem::forget(self.timers());
        }
    }
}
