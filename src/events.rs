//! Queues of the Rust API: expiries that the host takes when it likes.

use crate::closure::of_token;
use crate::engine::Engine;
use crate::host::Host;
use crate::queue::{Kept, QueueInner};
use crate::status::Error;
use crate::time::Time;
use crate::timer::{Expiry, Timer};
use crate::timers::Timers;
use crate::types::{self, Spec};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Room that is made in a vector that has none.
const ROOM: usize = 64;

/// One expiry, taken from a [`Queue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What came due.
    pub expiry: Expiry,
    /// What the timer was started with.
    pub token: u64,
}

impl Kept for Event {
    fn of(event: types::Event) -> Event {
        Event { expiry: Expiry::from_raw(&event.expiry), token: event.ctx.addr() as u64 }
    }

    fn deadline_ns(&self) -> u64 {
        self.expiry.deadline.as_nanos()
    }
}

/// Expiries that wait to be taken, instead of calling back. From [`Timers::queue`].
///
/// Each timer that is started with it carries a token, a number of the host's own. Any number of
/// threads can take events; each event is delivered once. What one [`Queue::poll`] takes of a shard is
/// in the order of deadlines; from one call to the next they come in the order of delivery: that of
/// deadlines, but for a timer that comes in a later turn than its deadline asks for (started or reset
/// to the past, with slack, or periodic and waiting). An event that waits is still a timer: cancelled, it is never seen; reset, it comes again later.
/// While an event of a periodic timer waits, further periods add to its [`Expiry::missed`].
///
/// Dropped, it cancels its timers, and the events that wait in it are gone. (If another thread is
/// attached to a shard exclusively, that happens when it has detached.) It does not keep the
/// service running.
///
/// ```
/// use shardwheel::Service;
/// use std::time::Duration;
///
/// let service = Service::builder().shards(1).driven().manual_clock().build()?;
/// let queue = service.queue()?;
/// queue.after(Duration::from_millis(1), 4711)?;
/// service.advance(Duration::from_millis(1))?;
/// service.shard(0)?.poll()?;
///
/// let event = queue.pop()?.expect("it is due");
/// assert_eq!(event.token, 4711);
/// assert_eq!(queue.pop()?, None);
/// # Ok::<(), shardwheel::Error>(())
/// ```
#[derive(Debug)]
pub struct Queue {
    timers: Timers,
    /// Of the engine in `timers`; freed by this drop, or later.
    raw: *const QueueInner,
}

// SAFETY: `QueueInner` is shared between threads by its own rules, which allow every call that is
// made here on any thread.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    pub(crate) fn new(timers: &Timers) -> Result<Queue, Error> {
        free_left(&timers.host);
        let raw = timers.engine.queue_new()?;
        Ok(Queue { timers: timers.clone(), raw })
    }

    /// The same spec, to be delivered here.
    pub(crate) fn put_in(&self, spec: Spec, token: u64) -> Spec {
        Spec { queue: self.raw, ctx: of_token(token), ..spec }
    }

    /// Starts a timer whose event comes here `delay` from now. For one with more asked of it:
    /// [`TimerBuilder::start_in`](crate::TimerBuilder::start_in).
    ///
    /// # Errors
    /// As [`Timers::after`].
    pub fn after(&self, delay: Duration, token: u64) -> Result<Timer, Error> {
        self.timers.timer().delay(delay).start_in(self, token)
    }

    /// As [`Queue::after`], at an instant on the service's clock.
    ///
    /// # Errors
    /// As [`Timers::at`].
    pub fn at(&self, deadline: Time, token: u64) -> Result<Timer, Error> {
        self.timers.timer().deadline(deadline).start_in(self, token)
    }

    /// Starts a timer whose events come here every `period`.
    ///
    /// # Errors
    /// As [`Timers::every`].
    pub fn every(&self, period: Duration, token: u64) -> Result<Timer, Error> {
        self.timers.timer().period(period).start_in(self, token)
    }

    /// Takes one event, if one waits.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::NoMemory`], [`Error::Forked`].
    pub fn pop(&self) -> Result<Option<Event>, Error> {
        let mut event = MaybeUninit::<Event>::uninit();
        // SAFETY: the queue is freed by drop alone; there is room for one.
        let taken = unsafe { Engine::queue_poll(self.raw, event.as_mut_ptr(), 1) }?;
        // SAFETY: the engine wrote it.
        Ok((taken == 1).then(|| unsafe { event.assume_init() }))
    }

    /// Takes the events that wait and puts them at the end of `events`, as many as it has spare
    /// capacity for; if it has none, room for some is made. Answers how many were taken: less than
    /// there was room for if no more wait. Those of one shard are in the order of their deadlines.
    ///
    /// # Errors
    /// As `pop`; then none have been taken.
    pub fn poll(&self, events: &mut Vec<Event>) -> Result<usize, Error> {
        if events.len() == events.capacity() {
            events.try_reserve(ROOM).map_err(|_| Error::NoMemory)?;
        }
        let room = events.spare_capacity_mut();
        let (out, most) = (room.as_mut_ptr().cast::<Event>(), room.len());
        // SAFETY: the queue is freed by drop alone; there is room for so many.
        let taken = unsafe { Engine::queue_poll(self.raw, out, most) }?;
        // SAFETY: the engine wrote so many.
        unsafe { events.set_len(events.len() + taken) };
        Ok(taken)
    }

    /// A descriptor that is readable while events wait, for epoll and its like. Level triggered. It
    /// is the queue's, to be neither read nor written.
    ///
    /// # Errors
    /// [`Error::System`]: none was to be had. [`Error::Stopped`], [`Error::Forked`].
    pub fn fd(&self) -> Result<BorrowedFd<'_>, Error> {
        // SAFETY: the queue is freed by drop alone.
        let fd = unsafe { Engine::queue_fd(self.raw)? };
        // SAFETY: it is open as long as the queue is.
        Ok(unsafe { BorrowedFd::borrow_raw(fd) })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let host = &self.timers.host;
        host.leave(self.raw);
        free_left(host);
    }
}

/// Frees the queues that nobody holds any more; those that cannot be now, another time, or with
/// their engine.
pub(crate) fn free_left(host: &Host) {
    for queue in host.take_left() {
        // SAFETY: a queue is left by its one holder's drop, and whoever takes it from there alone
        // has it; it was made by the engine of this host, whose calls are what got us here.
        let freed = unsafe { Engine::queue_free(queue) };
        if freed == Err(Error::Busy) {
            host.leave(queue);
        }
    }
}
