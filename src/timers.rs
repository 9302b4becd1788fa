//! The way in to a service: every call that can be made on it, from any thread.

use crate::batch::Batch;
use crate::driven::Shard;
use crate::engine::Engine;
use crate::events::Queue;
use crate::host::Host;
use crate::report::Growing;
use crate::service::Unfired;
use crate::shared::Shared;
use crate::status::{Error, Outcome};
use crate::time::{Time, nanos};
use crate::timer::{Expiry, Timer, TimerBuilder};
use crate::types::{Details, NEVER, SHARD_ANY, Stats};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// A way in to a [`Service`](crate::Service), to be cloned freely.
///
/// A service has an owner, the `Service`, which ends it when it is dropped; and any number of
/// these, which do not keep it running. Hand them to threads, and capture them in the callbacks
/// that start, cancel and reset timers themselves. After the end every call answers
/// [`Error::Stopped`], except where it says otherwise.
///
/// All calls can be made from any thread, also inside callbacks. In a child of the process that
/// started the service all of them answer [`Error::Forked`].
#[derive(Clone)]
pub struct Timers {
    pub(crate) engine: Shared<Engine>,
    pub(crate) host: Shared<Host>,
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").field("shards", &self.engine.shard_count()).finish_non_exhaustive()
    }
}

/// # Starting
impl Timers {
    /// Starts a timer that calls `f` once, `delay` from now.
    ///
    /// Zero is due at the next turn of the shard, never inside this call; a delay beyond 584 years
    /// does not come. The timer lives on the calling thread's shard; see [`Timers::timer`] for one
    /// with more asked of it.
    ///
    /// ```
    /// use shardwheel::Service;
    /// use std::time::Duration;
    ///
    /// let service = Service::new()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// service.after(Duration::from_millis(2), move |expiry| {
    ///     let _ = tell.send(expiry.late());
    /// })?;
    /// println!("{:?} late", told.recv().unwrap());
    /// # Ok::<(), shardwheel::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Full`]: the shard has `max_timers` live timers. [`Error::NoMemory`],
    /// [`Error::Stopped`], [`Error::Forked`]. [`Error::Busy`]: other threads are attached to all
    /// shards exclusively. The closure is dropped then.
    pub fn after<F>(&self, delay: Duration, f: F) -> Result<Timer, Error>
    where
        F: FnOnce(&Expiry) + Send + 'static,
    {
        self.timer().delay(delay).start_once(f)
    }

    /// As [`Timers::after`], at an instant on the service's clock. One that is past is due at the
    /// next turn of the shard.
    ///
    /// # Errors
    /// As `after`.
    pub fn at<F>(&self, deadline: Time, f: F) -> Result<Timer, Error>
    where
        F: FnOnce(&Expiry) + Send + 'static,
    {
        self.timer().deadline(deadline).start_once(f)
    }

    /// Starts a timer that calls `f` every `period`, the first time one period from now, on a grid
    /// that does not drift. Points of the grid that went by while the shard was busy are skipped,
    /// and [`Expiry::missed`] says how many.
    ///
    /// It goes on until it is cancelled, also after a panic of `f`.
    ///
    /// # Errors
    /// As `after`; [`Error::Invalid`]: a period of zero.
    pub fn every<F>(&self, period: Duration, f: F) -> Result<Timer, Error>
    where
        F: FnMut(&Expiry) + Send + 'static,
    {
        self.timer().period(period).start(f)
    }

    /// As [`Timers::after`], without an allocation: `f` is a plain function (or captures nothing),
    /// and is told the token. See [`TimerBuilder::start_fn`].
    ///
    /// ```
    /// use shardwheel::{Expiry, Service};
    /// use std::time::Duration;
    ///
    /// fn overdue(order: u64, expiry: &Expiry) {
    ///     println!("order {order} has not been paid by {:?}", expiry.deadline);
    /// }
    ///
    /// let service = Service::new()?;
    /// let timer = service.after_fn(Duration::from_secs(600), overdue, 4711)?;
    /// service.cancel(timer)?;
    /// # Ok::<(), shardwheel::Error>(())
    /// ```
    ///
    /// # Errors
    /// As `after`.
    #[inline]
    pub fn after_fn<F>(&self, delay: Duration, f: F, token: u64) -> Result<Timer, Error>
    where
        F: Fn(u64, &Expiry) + Copy + Send + 'static,
    {
        self.timer().delay(delay).start_fn(f, token)
    }

    /// Begins a timer with everything that can be asked of one.
    #[inline]
    pub fn timer(&self) -> TimerBuilder<'_> {
        TimerBuilder::new(self)
    }

    /// Begins a number of timers that are to be started all or none.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Makes a queue: timers that are started with it wait there instead of calling back.
    ///
    /// # Errors
    /// [`Error::NoMemory`], [`Error::Stopped`], [`Error::Forked`].
    pub fn queue(&self) -> Result<Queue, Error> {
        Queue::new(self)
    }
}

/// # Cancelling and moving
impl Timers {
    /// Cancels a timer. Lock-free, never waits.
    ///
    /// - [`Outcome::Done`]: it will not run again, and is not running. Its closure has been
    ///   dropped, on this thread. (Inside the callback of the periodic timer itself: it will not
    ///   run again.)
    /// - [`Outcome::Running`]: its callback is running now, and will not run again.
    /// - [`Outcome::NotFound`]: it had ended before.
    ///
    /// A timer that is due, or whose event waits in a queue, is cancelled like any other, as long
    /// as its callback has not begun and its event has not been taken.
    ///
    /// # Errors
    /// [`Error::Invalid`]: no timer of this service has such a handle. [`Error::Busy`]: another
    /// thread is attached to its shard exclusively. [`Error::Stopped`], [`Error::Forked`].
    #[inline]
    pub fn cancel(&self, timer: Timer) -> Result<Outcome, Error> {
        self.engine.cancel(timer.to_bits())
    }

    /// Cancels a timer, then sleeps until its callback is not running and its closure has been
    /// dropped. What the callback wrote is then visible here.
    ///
    /// [`Outcome::Done`]: a run was prevented. [`Outcome::Running`]: it waited for the last one.
    /// [`Outcome::NotFound`]: all was over.
    ///
    /// # Errors
    /// As `cancel`. [`Error::WouldDeadlock`]: in the timer's own callback, or where the wait would
    /// close a circle; then it will not run again, but may be running.
    pub fn cancel_wait(&self, timer: Timer) -> Result<Outcome, Error> {
        self.engine.cancel_wait(timer.to_bits())
    }

    /// Cancels many timers, any of which may have ended; answers of how many a run was prevented.
    ///
    /// # Errors
    /// As `cancel`, but for `Invalid`; those before the one that was refused have been cancelled.
    pub fn cancel_all(&self, timers: &[Timer]) -> Result<usize, Error> {
        self.engine.cancel_batch(Timer::bits_of(timers))
    }

    /// Moves a timer's deadline to `delay` from now. Handle, shard and closure stay; of a periodic
    /// timer a new grid begins. To a later instant it is one atomic operation.
    ///
    /// - [`Outcome::Done`]: it is armed. Inside the timer's own callback: again.
    /// - [`Outcome::Running`]: the callback of the one-shot is running, on another thread; nothing
    ///   has changed.
    /// - [`Outcome::NotFound`]: it had ended before.
    ///
    /// # Errors
    /// As `cancel`. [`Error::Full`]: a one-shot counts as gone while its callback runs, and another
    /// timer has taken its room. [`Error::NoMemory`].
    #[inline]
    pub fn reset(&self, timer: Timer, delay: Duration) -> Result<Outcome, Error> {
        self.engine.reset_after(timer.to_bits(), nanos(delay))
    }

    /// As [`Timers::reset`], to an instant on the service's clock.
    ///
    /// # Errors
    /// As `reset`.
    #[inline]
    pub fn reset_at(&self, timer: Timer, deadline: Time) -> Result<Outcome, Error> {
        self.engine.reset_at(timer.to_bits(), deadline.as_nanos())
    }

    /// How long a timer still has: zero when it is due, [`Duration::MAX`] if its deadline does not
    /// come, `None` if it is not armed (it has ended, or its last callback is running).
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Stopped`], [`Error::Forked`].
    pub fn remaining(&self, timer: Timer) -> Result<Option<Duration>, Error> {
        Ok(match self.engine.remaining(timer.to_bits())? {
            (Outcome::Done, NEVER) => Some(Duration::MAX),
            (Outcome::Done, ns) => Some(Duration::from_nanos(ns)),
            (Outcome::Running | Outcome::NotFound, _) => None,
        })
    }
}

/// # Clock, shards, counters
impl Timers {
    /// The service's clock. Goes on after the end.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.engine.now())
    }

    /// Moves a manual clock on; it stops at [`Time::NEVER`]. Nothing is delivered by it: that is
    /// for the next poll of each shard.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: the clock is not a manual one. [`Error::Forked`].
    pub fn advance(&self, by: Duration) -> Result<(), Error> {
        self.engine.advance(nanos(by))
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> u32 {
        self.engine.shard_count()
    }

    /// One shard: to poll it (driven services), and for its counters.
    ///
    /// # Errors
    /// [`Error::Invalid`]: there are not so many.
    pub fn shard(&self, index: u32) -> Result<Shard, Error> {
        if index < self.shard_count() {
            Ok(Shard::new(self.clone(), index))
        } else {
            Err(Error::Invalid)
        }
    }

    /// All shards, in order.
    pub fn shards(&self) -> impl Iterator<Item = Shard> + '_ {
        (0..self.shard_count()).map(|index| Shard::new(self.clone(), index))
    }

    /// The counters of all shards together. Also after the end.
    ///
    /// While other threads are at work they are of slightly different instants; when the service is
    /// quiet, `started == ended_by_fire + cancelled + returned + pending`.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn stats(&self) -> Result<Stats, Error> {
        self.engine.stats(SHARD_ANY)
    }

    /// What all shards together look like inside. Also after the end.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn details(&self) -> Result<Details, Error> {
        self.engine.details(SHARD_ANY)
    }

    /// The numbers of every shard in the Prometheus text format. Also after the end.
    ///
    /// # Errors
    /// [`Error::NoMemory`], [`Error::Forked`].
    pub fn prometheus(&self) -> Result<String, Error> {
        let mut text = Growing::default();
        self.engine.prometheus(&mut text)?;
        text.whole()
    }

    /// The numbers for people to read: what to look at first when timers are late. Also after the end.
    ///
    /// ```
    /// let service = shardwheel::Service::new()?;
    /// assert!(service.report()?.contains("0 pending"));
    /// # Ok::<(), shardwheel::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoMemory`], [`Error::Forked`].
    pub fn report(&self) -> Result<String, Error> {
        let mut text = Growing::default();
        self.engine.report(&mut text)?;
        text.whole()
    }

    /// Gives memory that a peak of timers has left behind back to the system: that of free slots at once, that of
    /// the wheels soon after (in the next poll of each shard, if the service is driven). No start,
    /// cancel or firing waits for it.
    ///
    /// ```
    /// let service = shardwheel::Service::new()?;
    /// service.trim()?;
    /// # Ok::<(), shardwheel::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoMemory`]: to look for it takes a little. [`Error::Forked`].
    pub fn trim(&self) -> Result<(), Error> {
        self.engine.trim()
    }

    /// How many panics of the host's code have been caught: of callbacks and hooks, and of what
    /// they captured, as it was dropped. Also after the end.
    ///
    /// A panic is reported by the panic hook, as on any thread, and goes no further: the
    /// shard goes on, and so does the timer, if it is periodic or has been armed again.
    pub fn panics(&self) -> u64 {
        self.host.panics()
    }
}

/// # The end
impl Timers {
    /// Ends the service: no callback runs after this returns, its threads have ended, and every
    /// timer that had not fired is over, its closure dropped on this thread. Answers how many those
    /// were. It waits for the callbacks that are running, one a shard at most. A second call
    /// answers 0, when the first is over.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`]: inside a callback or hook of this service. [`Error::Forked`].
    pub fn stop(&self) -> Result<u64, Error> {
        self.engine.stop(&mut |_, _, _| {})
    }

    /// As [`Timers::stop`]; each timer that had not fired is told to `unfired`, before its closure
    /// is dropped.
    ///
    /// ```
    /// use shardwheel::Service;
    /// use std::time::Duration;
    ///
    /// let service = Service::new()?;
    /// let timer = service.after(Duration::from_secs(3_600), |_| println!("in an hour"))?;
    /// let mut left = Vec::new();
    /// assert_eq!(service.stop_with(|unfired| left.push(unfired.timer))?, 1);
    /// assert_eq!(left, [timer]);
    /// # Ok::<(), shardwheel::Error>(())
    /// ```
    ///
    /// # Errors
    /// As `stop`.
    ///
    /// # Panics
    /// If `unfired` does; the service has ended all the same, and `unfired` is not called again.
    pub fn stop_with(&self, mut unfired: impl FnMut(Unfired)) -> Result<u64, Error> {
        let mut panicked = None;
        let result = self.engine.stop(&mut |timer, _, deadline_ns| {
            let (None, Some(timer)) = (&panicked, Timer::from_bits(timer)) else { return };
            let one = Unfired { timer, deadline: Time::from_nanos(deadline_ns) };
            // The engine is in the middle of its end, and has to come to it.
            panicked = catch_unwind(AssertUnwindSafe(|| unfired(one))).err();
        });
        match panicked {
            Some(payload) => resume_unwind(payload),
            None => result,
        }
    }
}
