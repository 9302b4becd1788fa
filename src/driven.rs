//! Shards as a host sees them: polled by its own threads, and counted.

use crate::host::Running;
use crate::status::Error;
use crate::time::Time;
use crate::timer::Timer;
use crate::timers::Timers;
use crate::types::{self, Details, NEVER, Stats};
use crate::visit::END;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Timers that a visit fetches at a time.
const PART: usize = 64;

/// A timer that is pending, from [`Shard::visit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// Which one.
    pub timer: Timer,
    /// When it is due; [`Time::NEVER`] if that does not come.
    pub deadline: Time,
    /// Of a periodic timer.
    pub period: Option<Duration>,
    /// What it was started with, unless it calls a closure.
    pub token: Option<u64>,
}

impl Pending {
    fn of(raw: types::Pending) -> Option<Pending> {
        Some(Pending {
            timer: Timer::from_bits(raw.timer)?,
            deadline: Time::from_nanos(raw.deadline_ns),
            period: (raw.period_ns != 0).then(|| Duration::from_nanos(raw.period_ns)),
            token: (!raw.owned).then(|| raw.ctx.addr() as u64),
        })
    }
}

/// One shard of a service, from [`Timers::shard`]. It does not keep the service running.
///
/// Of a [driven](crate::Builder::driven) service it is what the host polls: callbacks run inside
/// [`Shard::poll`], on the thread that calls it, one thread at a time for each shard. A host
/// sleeps until [`Shard::next`], or waits for [`Shard::fd`] together with its other descriptors.
///
/// ```
/// use shardwheel::{Service, Time};
/// use std::time::Duration;
///
/// let service = Service::builder().shards(1).driven().manual_clock().build()?;
/// let shard = service.shard(0)?;
/// service.after(Duration::from_millis(20), |expiry| assert_eq!(expiry.late(), Duration::ZERO))?;
/// assert_eq!(shard.poll()?, 0);
/// service.advance(Duration::from_millis(20))?;
/// assert_eq!(shard.poll()?, 1);
/// assert_eq!(shard.next()?, None);
/// # Ok::<(), shardwheel::Error>(())
/// ```
///
/// # Errors of a driven shard
/// All calls but [`Shard::stats`] answer [`Error::Unsupported`] if the service is not driven,
/// [`Error::Stopped`] after its end, and [`Error::Forked`] in a child of its process.
#[derive(Debug, Clone)]
pub struct Shard {
    timers: Timers,
    index: u32,
}

impl Shard {
    pub(crate) fn new(timers: Timers, index: u32) -> Shard {
        Shard { timers, index }
    }

    /// Which shard of the service it is.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Who is pending here: a walk that the shard does not notice, from any thread, in any mode. Each
    /// timer that is pending all the while comes exactly once, in no order; one that starts or ends
    /// meanwhile may or may not. A one-shot whose callback runs does not come, a periodic timer does.
    ///
    /// ```
    /// use shardwheel::Service;
    /// use std::time::Duration;
    ///
    /// let service = Service::new()?;
    /// service.timer().shard(0).delay(Duration::from_secs(600)).start_fn(|_, _| {}, 4711)?;
    /// let pending: Vec<_> = service.shard(0)?.visit().collect();
    /// assert_eq!(pending.len(), 1);
    /// assert_eq!(pending[0].token, Some(4711));
    /// # Ok::<(), shardwheel::Error>(())
    /// ```
    pub fn visit(&self) -> impl Iterator<Item = Pending> + '_ {
        let (mut place, mut part, mut left) = (0, [None; PART], 0);
        std::iter::from_fn(move || {
            while left == 0 && place != END {
                let mut tell = |timer| {
                    part[left] = Pending::of(timer);
                    left += 1;
                };
                self.timers.engine.visit(self.index, &mut place, PART, &mut tell).ok()?;
            }
            left = left.checked_sub(1)?;
            part[left]
        })
    }

    /// Delivers everything that is due, oldest deadline first; answers how much that was,
    /// deliveries to queues included. What becomes due meanwhile is left for the next poll.
    ///
    /// # Errors
    /// [`Error::Busy`]: another thread polls it or is attached to it, or this is inside a callback.
    pub fn poll(&self) -> Result<usize, Error> {
        self.poll_within(0)
    }

    /// As [`Shard::poll`], at most `most` expiries.
    ///
    /// # Errors
    /// As `poll`; [`Error::Invalid`]: `most` is 0.
    pub fn poll_at_most(&self, most: usize) -> Result<usize, Error> {
        if most == 0 { Err(Error::Invalid) } else { self.poll_within(most) }
    }

    fn poll_within(&self, budget: usize) -> Result<usize, Error> {
        let _running = Running::begin(&self.timers.host);
        self.timers.engine.poll(self.index, budget)
    }

    /// When it next wants a poll: never later than that, and now and then earlier, up to once for
    /// each of a long delay's levels. `None`: nothing is pending. Any thread.
    ///
    /// # Errors
    /// None but those that all calls have.
    pub fn next(&self) -> Result<Option<Time>, Error> {
        let next = self.timers.engine.next(self.index)?;
        Ok((next != NEVER).then(|| Time::from_nanos(next)))
    }

    /// A descriptor that is readable when the shard wants a poll, for epoll and its like. Level
    /// triggered. It is the service's, to be neither read nor written.
    ///
    /// # Errors
    /// [`Error::System`]: none was to be had.
    pub fn fd(&self) -> Result<BorrowedFd<'_>, Error> {
        let fd = self.timers.engine.fd(self.index)?;
        // SAFETY: it is open as long as the engine lives, which `self` keeps.
        Ok(unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Makes the calling thread the shard's owner, until the guard is dropped: it alone polls it,
    /// the timers that it starts go there, and its calls on them work on the wheel directly. Never
    /// needed, only faster.
    ///
    /// A thread can own many shards; its timers go to the one attached last. Where the thread owns
    /// the shard already, this changes how, and the guard that is dropped first ends it.
    ///
    /// # Errors
    /// [`Error::Busy`]: another thread is attached or polls it, or this is inside a callback.
    /// [`Error::NoMemory`].
    pub fn attach(&self) -> Result<Attached, Error> {
        self.attach_as(false)
    }

    /// As [`Shard::attach`], and keeps all others out: their starts, cancels and resets on this
    /// shard answer [`Error::Busy`], and the owner's need no atomic read-modify-write.
    ///
    /// # Errors
    /// As `attach`.
    pub fn attach_exclusive(&self) -> Result<Attached, Error> {
        self.attach_as(true)
    }

    fn attach_as(&self, exclusive: bool) -> Result<Attached, Error> {
        self.timers.engine.attach(self.index, exclusive)?;
        Ok(Attached { shard: self.clone(), _this_thread: PhantomData })
    }

    /// The shard's counters. Of any service, also after its end.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn stats(&self) -> Result<Stats, Error> {
        self.timers.engine.stats(self.index)
    }

    /// What the shard looks like inside. Also after the end.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn details(&self) -> Result<Details, Error> {
        self.timers.engine.details(self.index)
    }
}

/// A shard that the current thread is attached to, from [`Shard::attach`]; it cannot leave the
/// thread. Everything that a [`Shard`] does, it does.
///
/// Dropped, it detaches. Inside a callback that is refused: then the thread stays attached until it
/// ends, or until a later guard of the shard is dropped.
#[derive(Debug)]
pub struct Attached {
    shard: Shard,
    _this_thread: PhantomData<*const ()>,
}

impl Attached {
    /// Ends the ownership, and says how that went.
    ///
    /// # Errors
    /// [`Error::Busy`]: inside a callback; the thread stays attached. [`Error::Invalid`]: another
    /// guard has ended it before. [`Error::Forked`].
    pub fn detach(self) -> Result<(), Error> {
        // The drop that follows finds nothing left to do, or is refused again.
        self.shard.timers.engine.detach(self.shard.index)
    }
}

impl Deref for Attached {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let Timers { engine, host } = &self.shard.timers;
        let _ = engine.detach(self.shard.index);
        crate::events::free_left(host);
    }
}
