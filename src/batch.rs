//! Many timers at once: all of them, or none.

use crate::closure::{self, Call};
use crate::events::Queue;
use crate::status::Error;
use crate::time::nanos;
use crate::timer::{Expiry, Timer, TimerBuilder};
use crate::timers::Timers;
use crate::types::{Spec, spread};
use std::fmt;
use std::time::Duration;

/// Timers that are to be started together, from [`Timers::batch`].
///
/// Each is added with what a [`TimerBuilder`] asks for, and [`Batch::start`] starts all of them or
/// none. What has been added and is not started is dropped with the batch.
///
/// ```
/// use shardwheel::Service;
/// use std::time::Duration;
///
/// let service = Service::new()?;
/// let mut batch = service.batch();
/// for order in 0..1_000 {
///     let in_time = service.timer().delay(Duration::from_secs(600));
///     batch.add_fn(in_time, |order, _| println!("order {order} is closed"), order);
/// }
/// let timers = batch.start()?;
/// assert_eq!(timers.len(), 1_000);
/// # Ok::<(), shardwheel::Error>(())
/// ```
#[must_use = "nothing is started yet"]
pub struct Batch<'a> {
    timers: &'a Timers,
    /// Those that came before the first that cannot be.
    specs: Vec<Spec>,
    refused: Option<Error>,
}

// SAFETY: what a spec names here is a closure that is `Send`, a token, or a queue, which is `Sync`.
unsafe impl Send for Batch<'_> {}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("timers", &self.specs.len()).finish_non_exhaustive()
    }
}

impl<'a> Batch<'a> {
    pub(crate) fn new(timers: &'a Timers) -> Batch<'a> {
        Batch { timers, specs: Vec::new(), refused: None }
    }

    /// Adds a timer that [`TimerBuilder::start`] would start. What that would refuse, the batch's
    /// start refuses.
    pub fn add<F>(&mut self, timer: TimerBuilder<'_>, f: F)
    where
        F: FnMut(&Expiry) + Send + 'static,
    {
        if let Some(spec) = self.check(timer.spec()) {
            self.push(closure::repeated(&self.timers.host, f), spec);
        }
    }

    /// Adds a timer that [`TimerBuilder::start_once`] would start.
    pub fn add_once<F>(&mut self, timer: TimerBuilder<'_>, f: F)
    where
        F: FnOnce(&Expiry) + Send + 'static,
    {
        if let Some(spec) = self.check(timer.spec_once()) {
            self.push(closure::once(&self.timers.host, f), spec);
        }
    }

    /// Adds a timer that [`TimerBuilder::start_fn`] would start.
    pub fn add_fn<F>(&mut self, timer: TimerBuilder<'_>, f: F, token: u64)
    where
        F: Fn(u64, &Expiry) + Copy + Send + 'static,
    {
        if let Some(spec) = self.check(timer.spec()) {
            self.specs.push(closure::plain(f, token).put_in(spec));
        }
    }

    /// Adds a timer that [`TimerBuilder::start_in`] would start.
    pub fn add_in(&mut self, timer: TimerBuilder<'_>, queue: &'a Queue, token: u64) {
        if let Some(spec) = self.check(timer.spec()) {
            self.specs.push(queue.put_in(spec, token));
        }
    }

    /// A spec that can be, with room for it.
    fn check(&mut self, spec: Result<Spec, Error>) -> Option<Spec> {
        if self.refused.is_some() {
            return None;
        }
        let room = self.specs.try_reserve(1).map_err(|_| Error::NoMemory);
        room.and(spec).map_err(|error| self.refused = Some(error)).ok()
    }

    fn push(&mut self, call: Result<Call, Error>, spec: Spec) {
        match call {
            Ok(call) => self.specs.push(call.put_in(spec)),
            Err(error) => self.refused = Some(error),
        }
    }

    /// Moves the deadlines that have gone by to instants spread evenly over `window` from now, in the
    /// order in which their timers were added: for timers that were saved before a restart, so that it is
    /// no stampede. See [`Shard::visit`](crate::Shard::visit).
    pub fn spread(&mut self, window: Duration) {
        spread(&mut self.specs, self.timers.engine.now(), nanos(window));
    }

    /// Starts all of them, and answers their handles in the order in which they were added.
    ///
    /// # Errors
    /// As [`TimerBuilder::start`], if one of them would be refused; then none has been started, and
    /// all closures are dropped.
    pub fn start(mut self) -> Result<Vec<Timer>, Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let specs = std::mem::take(&mut self.specs);
        let mut timers: Vec<Timer> = Vec::new();
        if timers.try_reserve_exact(specs.len()).is_err() {
            self.specs = specs;
            return Err(Error::NoMemory);
        }
        // SAFETY: what is called and dropped is `Send` and `'static` and made for its ctx; queues
        // are borrowed, so not freed. There is room for so many handles, all of which are written
        // on success; a `Timer` has the layout of a `u64`, and no handle is 0.
        unsafe {
            self.timers.engine.arm_batch(&specs, timers.as_mut_ptr().cast())?;
            timers.set_len(specs.len());
        }
        Ok(timers)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for spec in &self.specs {
            if let Some(drop) = spec.drop {
                // SAFETY: the engine has not been given this closure.
                unsafe { drop(spec.ctx) };
            }
        }
    }
}
