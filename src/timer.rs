//! A timer's handle, what its callback is told, and the way to ask for one with everything that can
//! be asked.

use crate::closure;
use crate::engine::Engine;
use crate::events::Queue;
use crate::status::Error;
use crate::time::{Time, nanos};
use crate::timers::Timers;
use crate::types::{self, SHARD_ANY, Spec, TIMER_ABSOLUTE, TIMER_BURST, TIMER_FIXED_DELAY};
use std::num::NonZeroU64;
use std::time::Duration;

/// A timer's handle: a number, to be copied and kept as one likes.
///
/// It does not keep the timer alive, and the timer does not care whether a handle is kept. A handle
/// whose timer has ended never comes to mean another timer of its service; to use it finds
/// [`Outcome::NotFound`](crate::Outcome::NotFound) for ever. (In another service it is
/// refused or not found, but for a chance below one in 10⁷.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Timer(NonZeroU64);

impl Timer {
    /// The handle as a number, for instance to keep it in an atomic or to hand it to C.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0.get()
    }

    /// The handle of [`Timer::to_bits`]. `None` for 0, which is no timer's; any other number is
    /// harmless, as operations check it.
    #[inline]
    pub const fn from_bits(bits: u64) -> Option<Timer> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Timer(bits)),
            None => None,
        }
    }

    /// The shard that the timer lives on, whatever has become of it.
    #[inline]
    pub fn shard(self) -> u32 {
        Engine::shard_of(self.to_bits())
    }

    /// A number that the engine has handed out.
    #[inline]
    fn of_engine(bits: u64) -> Timer {
        debug_assert_ne!(bits, 0, "no timer's handle is 0");
        Timer(NonZeroU64::new(bits).unwrap_or(NonZeroU64::MAX))
    }

    /// The numbers of many handles.
    #[inline]
    pub(crate) fn bits_of(timers: &[Timer]) -> &[u64] {
        // SAFETY: `Timer` is transparent over a `NonZeroU64`, which has the layout of a `u64`.
        unsafe { std::slice::from_raw_parts(timers.as_ptr().cast(), timers.len()) }
    }
}

/// What a callback, or a queue, is told of one expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// Whose expiry it is.
    pub timer: Timer,
    /// When it was due. Of a periodic timer: the point of its grid that is served.
    pub deadline: Time,
    /// The service's clock as the turn began; never before `deadline`.
    pub now: Time,
    /// Whole periods that went by unserved before this expiry (periodic timers).
    pub missed: u64,
}

impl Expiry {
    /// How long after its deadline it is delivered.
    pub fn late(&self) -> Duration {
        self.now.since(self.deadline)
    }

    #[inline]
    pub(crate) fn from_raw(raw: &types::Expiry) -> Expiry {
        Expiry {
            timer: Timer::of_engine(raw.timer),
            deadline: Time::from_nanos(raw.deadline_ns),
            now: Time::from_nanos(raw.now_ns),
            missed: raw.missed,
        }
    }
}

/// A timer in the making: from [`Timers::timer`], through what is asked of it, to one of the
/// `start`s.
///
/// It is `Copy`: what it asks for can start any number of timers.
///
/// ```
/// use shardwheel::Service;
/// use std::time::Duration;
///
/// let service = Service::builder().shards(2).driven().manual_clock().build()?;
/// let lazy = service.timer().delay(Duration::from_secs(1)).slack(Duration::from_millis(100));
/// let first = lazy.shard(1).start_once(|_| println!("on shard 1"))?;
/// let second = lazy.period(Duration::from_secs(5)).start(|expiry| println!("{expiry:?}"))?;
/// assert_eq!(first.shard(), 1);
/// # let _ = second;
/// # Ok::<(), shardwheel::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is started yet"]
pub struct TimerBuilder<'a> {
    timers: &'a Timers,
    /// The delay or deadline, if it has been said.
    first_ns: Option<u64>,
    period_ns: Option<u64>,
    slack_ns: u64,
    flags: u32,
    shard: u32,
}

impl<'a> TimerBuilder<'a> {
    pub(crate) fn new(timers: &'a Timers) -> TimerBuilder<'a> {
        TimerBuilder {
            timers,
            first_ns: None,
            period_ns: None,
            slack_ns: 0,
            flags: 0,
            shard: SHARD_ANY,
        }
    }

    /// Due so long from the call that starts it. Every duration is accepted; zero is due at the
    /// shard's next turn, and one beyond 584 years does not come. Without a delay or a deadline:
    /// one period, or zero if there is none.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.first_ns = Some(nanos(delay));
        self.flags &= !TIMER_ABSOLUTE;
        self
    }

    /// Due at an instant on the service's clock, in place of a delay. One that is past is due at
    /// the shard's next turn.
    pub fn deadline(mut self, deadline: Time) -> Self {
        self.first_ns = Some(deadline.as_nanos());
        self.flags |= TIMER_ABSOLUTE;
        self
    }

    /// Due again and again, at this distance: the first deadline begins a grid that does not drift.
    /// Points that went by while the shard was busy are skipped and counted in [`Expiry::missed`].
    /// Zero is refused by the start.
    pub fn period(mut self, period: Duration) -> Self {
        self.period_ns = Some(nanos(period));
        self
    }

    /// Each point of the grid is served, also those that are behind (in a queue: but for those that find
    /// an event of the timer waiting, which adds them to its `missed`). Needs a period; excludes
    /// `fixed_delay`.
    pub fn burst(mut self) -> Self {
        self.flags |= TIMER_BURST;
        self
    }

    /// Each deadline counts from the end of the callback before (from the taking of the event, in a
    /// queue). Needs a period; excludes `burst`.
    pub fn fixed_delay(mut self) -> Self {
        self.flags |= TIMER_FIXED_DELAY;
        self
    }

    /// It may come this much later than its deadline, to share a wake-up with others.
    pub fn slack(mut self, slack: Duration) -> Self {
        self.slack_ns = nanos(slack);
        self
    }

    /// On this shard. Without it: on the calling thread's own shard (that of the callback it is in,
    /// or the one that it attached to last), or else the thread's home shard.
    pub fn shard(mut self, shard: u32) -> Self {
        self.shard = shard;
        self
    }

    /// Starts it with a closure that is called at each expiry. It is dropped when the timer has
    /// ended: after the last call, or on the thread that cancels or stops.
    ///
    /// A one-shot may be armed again inside the closure, by [`Timers::reset`]; then it is called
    /// again. A closure that panics is called again too, if its timer goes on, whatever state it
    /// left its captures in.
    ///
    /// # Errors
    /// [`Error::Invalid`]: no such shard, a period of zero, `burst` or `fixed_delay` without a
    /// period, or both. [`Error::Full`], [`Error::NoMemory`], [`Error::Stopped`],
    /// [`Error::Forked`]. [`Error::Busy`]: another thread is attached to the shard exclusively. The
    /// closure is dropped then.
    pub fn start<F>(self, f: F) -> Result<Timer, Error>
    where
        F: FnMut(&Expiry) + Send + 'static,
    {
        let spec = self.spec()?;
        self.arm(&closure::repeated(&self.timers.host, f)?.put_in(spec))
    }

    /// Starts a one-shot with a closure that is called once, and may use up what it captured. It is
    /// dropped when it has been called, or when its timer ends without that.
    ///
    /// To arm its timer again inside it is of no use: the second run does nothing. That is for
    /// [`TimerBuilder::start`].
    ///
    /// # Errors
    /// As `start`; [`Error::Invalid`] also with a period.
    pub fn start_once<F>(self, f: F) -> Result<Timer, Error>
    where
        F: FnOnce(&Expiry) + Send + 'static,
    {
        let spec = self.spec_once()?;
        self.arm(&closure::once(&self.timers.host, f)?.put_in(spec))
    }

    /// Starts it with a plain function, which is told the token. Nothing is allocated, and of a
    /// one-shot without slack nothing is kept but its 32-byte record.
    ///
    /// `f` is the name of a function, or a closure that captures nothing. A pointer to a function,
    /// or a closure with captures, does not compile:
    ///
    /// ```compile_fail
    /// # let service = shardwheel::Service::builder().shards(1).driven().build().unwrap();
    /// let f: fn(u64, &shardwheel::Expiry) = |_, _| ();
    /// let _ = service.timer().start_fn(f, 7);
    /// ```
    ///
    /// # Errors
    /// As `start`.
    pub fn start_fn<F>(self, f: F, token: u64) -> Result<Timer, Error>
    where
        F: Fn(u64, &Expiry) + Copy + Send + 'static,
    {
        self.arm(&closure::plain(f, token).put_in(self.spec()?))
    }

    /// Starts it with a queue: each expiry waits there, with the token, until a thread takes it.
    /// Nothing is allocated.
    ///
    /// # Errors
    /// As `start`; [`Error::Invalid`] also with a queue of another service.
    pub fn start_in(self, queue: &Queue, token: u64) -> Result<Timer, Error> {
        self.arm(&queue.put_in(self.spec()?, token))
    }

    /// All that has been asked, in the engine's words.
    pub(crate) fn spec(&self) -> Result<Spec, Error> {
        if self.period_ns == Some(0) {
            return Err(Error::Invalid);
        }
        Ok(Spec {
            delay_ns: self.first_ns.or(self.period_ns).unwrap_or(0),
            period_ns: self.period_ns.unwrap_or(0),
            slack_ns: self.slack_ns,
            flags: self.flags,
            shard: self.shard,
            ..Spec::default()
        })
    }

    /// The same for a closure that is called once.
    pub(crate) fn spec_once(&self) -> Result<Spec, Error> {
        if self.period_ns.is_some() { Err(Error::Invalid) } else { self.spec() }
    }

    #[inline]
    fn arm(&self, spec: &Spec) -> Result<Timer, Error> {
        let mut timer = 0;
        // SAFETY: what is called and dropped is `Send` and `'static` and made for its ctx; a queue
        // is borrowed, so not freed, and the engine refuses one that is not its own.
        unsafe { self.timers.engine.arm(spec, &mut timer)? };
        Ok(Timer::of_engine(timer))
    }
}
