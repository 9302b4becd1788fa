//! The engine: shards, routing, and the operations that the C ABI and the Rust API are thin layers over.
//!
//! Every function can be called from any thread unless it says otherwise, and answers
//! [`Error::Forked`] in a child of the process that started the engine. Shards and handles are raw
//! numbers here; times are nanoseconds on the engine's clock.

use crate::arm::{Prepared, check};
use crate::cancel::is_dropping;
use crate::clock::Clock;
use crate::config::{Config, Mode};
use crate::doors::{ANY, Doors};
use crate::gate::{EXCLUSIVE, Work};
use crate::handle::{GENERATION_MASK, Handle};
use crate::port::Port;
use crate::queue::QueueInner;
use crate::record::pointer_of;
use crate::reset::To;
use crate::shard::Shard;
use crate::shared::{Shared, WeakShared};
use crate::status::{Error, Outcome};
use crate::stuck::StuckHook;
use crate::sync::{AtomicU32, Ordering, ProcessWide, fence};
use crate::sys::memory::boxed;
use crate::sys::{affinity, barrier, call::drop_host, fork, random, thread};
use crate::ticks::NEVER_TICK;
use crate::types::{Callback, Event, NEVER, SHARD_ANY, Spec, TIMER_ABSOLUTE};
use crate::worker::Lifecycle;
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};

/// See the head of this file.
pub struct Engine {
    id: u64,
    me: WeakShared<Engine>,
    mark: fork::Mark,
    mode: Mode,
    clock: Clock,
    shards: Box<[Shard]>,
    homes: AtomicU32,
    pub(crate) doors: Doors,
    pub(crate) lifecycle: Lifecycle,
    /// Queues that are being freed now.
    closing: AtomicU32,
    /// Whom to tell of callbacks that are stuck.
    pub(crate) stuck: OnceLock<StuckHook>,
    /// Queues that have not been freed. Never locked on a hot path.
    queues: Mutex<Vec<OwnedQueue>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("mode", &self.mode)
            .field("shards", &self.shards.len())
            .finish()
    }
}

/// Every engine of the process has its own number, so that what a thread keeps of one that is gone is
/// never taken for that of another at the same address.
static IDS: ProcessWide = ProcessWide::new(1);

impl Engine {
    /// Starts a service.
    ///
    /// # Errors
    /// `Invalid`: a value out of its range. `NoMemory`. `System`: a thread, a pin or a descriptor was
    /// refused; `errno` says why, and nothing is left behind.
    pub fn start(config: Config) -> Result<Shared<Engine>, Error> {
        Engine::start_with(config, GENERATION_MASK + 1)
    }

    /// As `start`, with slots that are retired after so many timers.
    pub(crate) fn start_with(config: Config, uses: u32) -> Result<Shared<Engine>, Error> {
        let cpus = affinity::allowed_cpus().ok_or(Error::NoMemory)?;
        let config = config.checked(cpus.len() as u32)?;
        let engine = Engine::build(&config, uses)?;
        if config.mode == Mode::Threaded {
            engine.start_workers(&config, &cpus)?;
        }
        Ok(engine)
    }

    /// An engine whose threads, if it is to have any, are still to be started.
    pub(crate) fn build(config: &Config, uses: u32) -> Result<Shared<Engine>, Error> {
        barrier::init();
        let mark = fork::mark().map_err(crate::sys::errno::system)?;
        let doors = Doors::new().map_err(crate::sys::errno::system)?;
        let first_generation = random::random_u64() as u32 & GENERATION_MASK;
        let clock = Clock::new(config.clock);
        let now_ns = clock.now();
        let mut shards = Vec::new();
        shards.try_reserve_exact(config.shards as usize).map_err(|_| Error::NoMemory)?;
        for index in 0..config.shards {
            let shard = Shard::new(index, config, now_ns, first_generation, uses);
            shards.push(shard.ok_or(Error::NoMemory)?);
        }
        let shards = shards.into_boxed_slice();
        Shared::new_cyclic(|me| Engine {
            // Relaxed: only uniqueness matters.
            id: IDS.fetch_add(1, Ordering::Relaxed),
            me: me.clone(),
            mark,
            mode: config.mode,
            clock,
            shards,
            homes: AtomicU32::new(0),
            doors,
            lifecycle: Lifecycle::new(),
            closing: AtomicU32::new(0),
            stuck: OnceLock::new(),
            queues: Mutex::new(Vec::new()),
        })
        .ok_or(Error::NoMemory)
    }

    // ---------------------------------------------------------------- routing

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn weak(&self) -> WeakShared<Engine> {
        self.me.clone()
    }

    #[inline]
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A home shard for a thread; each thread gets the next.
    pub(crate) fn next_home(&self) -> u32 {
        self.homes.fetch_add(1, Ordering::Relaxed) % self.shards.len() as u32
    }

    #[inline]
    pub(crate) fn alive(&self) -> Result<(), Error> {
        if self.mark.forked() { Err(Error::Forked) } else { Ok(()) }
    }

    pub(crate) fn driven(&self) -> Result<(), Error> {
        if self.mode == Mode::Driven { Ok(()) } else { Err(Error::Unsupported) }
    }

    #[inline]
    pub(crate) fn shard(&self, index: u32) -> Result<&Shard, Error> {
        self.shards.get(index as usize).ok_or(Error::Invalid)
    }

    /// The shard of a handle. `Invalid` for what no handle of any service can be.
    #[inline]
    fn find(&self, timer: u64) -> Result<(&Shard, Handle), Error> {
        let handle = Handle::unpack(timer);
        if handle.slot == 0 || handle.slot >= crate::handle::SLOT_END {
            return Err(Error::Invalid);
        }
        Ok((self.shard(handle.shard)?, handle))
    }

    /// The shard that a spec names, or that the library chooses.
    #[inline]
    fn route(&self, shard: u32) -> Result<&Shard, Error> {
        if shard != SHARD_ANY {
            return self.shard(shard);
        }
        let home = match self.set() {
            Some(set) => match set.own_shard() {
                Some(own) => return self.shard(own),
                None => set.home(|| self.next_home()),
            },
            None => 0,
        };
        let home = self.shard(home)?;
        if home.gate.is(EXCLUSIVE) {
            return self.shards.iter().find(|shard| !shard.gate.is(EXCLUSIVE)).ok_or(Error::Busy);
        }
        Ok(home)
    }

    // ----------------------------------------------------------------- timers

    /// Starts a timer. `out`, if not null, is written before the callback can run, and only on success.
    /// On refusal, whatever the reason, the spec's drop has run.
    ///
    /// # Errors
    /// `Invalid`, `Full`, `NoMemory`, `Stopped`, `Busy`, `Forked`.
    ///
    /// # Safety
    /// The spec's functions can be called with its ctx on any thread of the service or that polls,
    /// cancels or stops it, until the timer has ended; its queue is null or a queue of this engine that
    /// has not been freed; `out` is null or can be written.
    pub unsafe fn arm(&self, spec: &Spec, out: *mut u64) -> Result<(), Error> {
        let code = if spec.shard == SHARD_ANY { ANY } else { spec.shard };
        if let Some((to, callback)) = spec.plain()
            && (code < ANY || spec.shard == SHARD_ANY)
            && let Some(port) = self.door(code)
            // SAFETY: the port is this thread's; the rest is the caller's promise.
            && unsafe { self.arm_through(port, to, callback, spec.ctx, out) }
        {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.arm_slowly(spec, out) }
    }

    /// As `arm`, for a one-shot on any shard that calls `callback`: at the deadline `ns` if `AT`, otherwise
    /// after `ns`.
    ///
    /// # Errors
    /// As `arm`.
    ///
    /// # Safety
    /// As `arm`.
    #[inline(always)]
    pub unsafe fn arm_one<const AT: bool>(
        &self,
        ns: u64,
        callback: Callback,
        ctx: *mut c_void,
        out: *mut u64,
    ) -> Result<(), Error> {
        let port = self.first_door(ANY);
        if let Some(port) = port
            && port.is_exclusive()
        {
            let (to, callback) = (To::of::<AT>(ns), pointer_of(Some(callback)));
            // SAFETY: the port is this thread's, which owns the shard exclusively; the rest is the
            // caller's promise.
            let done = unsafe {
                port.shard().arm_plain::<true>(port, &self.clock, to, callback, ctx, out)
            };
            if done {
                return Ok(());
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.arm_one_next::<AT>(port, ns, callback, ctx, out) }
    }

    #[inline(never)]
    unsafe fn arm_one_next<const AT: bool>(
        &self,
        port: Option<&Port>,
        ns: u64,
        callback: Callback,
        ctx: *mut c_void,
        out: *mut u64,
    ) -> Result<(), Error> {
        let (to, pointer) = (To::of::<AT>(ns), pointer_of(Some(callback)));
        if let Some(port) = port
            // SAFETY: the port is this thread's; the rest is the caller's promise.
            && unsafe {
                port.shard().arm_plain::<false>(port, &self.clock, to, pointer, ctx, out)
            }
        {
            return Ok(());
        }
        let flags = if AT { TIMER_ABSOLUTE } else { 0 };
        let callback = Some(callback);
        let spec = Spec { delay_ns: ns, flags, callback, ctx, ..Spec::default() };
        // SAFETY: the caller's promise.
        unsafe { if port.is_some() { self.arm_slowly(&spec, out) } else { self.arm(&spec, out) } }
    }

    /// Starts a plain timer through one of this thread's ports, if the short way leads there.
    ///
    /// # Safety
    /// As `arm`; the port is this thread's.
    #[inline(never)]
    unsafe fn arm_through(
        &self,
        port: &Port,
        to: To,
        callback: *mut c_void,
        ctx: *mut c_void,
        out: *mut u64,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { port.shard().arm_plain::<false>(port, &self.clock, to, callback, ctx, out) }
    }

    #[inline(never)]
    unsafe fn arm_slowly(&self, spec: &Spec, out: *mut u64) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let result = unsafe { self.arm_checked(spec, out) };
        match result {
            Ok(()) => self.open_any(),
            Err(_) => refuse(spec),
        }
        result
    }

    unsafe fn arm_checked(&self, spec: &Spec, out: *mut u64) -> Result<(), Error> {
        self.alive()?;
        check(spec)?;
        self.check_queue(spec)?;
        let shard = self.route(spec.shard)?;
        let port = self.port(shard)?;
        // SAFETY: the port is this thread's; the rest is the caller's promise.
        unsafe { shard.arm(&port, &self.clock, spec, out) }
    }

    fn check_queue(&self, spec: &Spec) -> Result<(), Error> {
        // SAFETY: the caller of `arm` says that it is null or a queue.
        match unsafe { spec.queue.as_ref() } {
            Some(queue) if queue.is_closed() || !queue.engine().same(&self.me) => {
                Err(Error::Invalid)
            }
            _ => Ok(()),
        }
    }

    /// Starts all of the timers or none. `out`, if not null, has room for a handle of each.
    ///
    /// # Errors
    /// As `arm`; then each spec's drop has run.
    ///
    /// # Safety
    /// As `arm`, for each spec.
    pub unsafe fn arm_batch(&self, specs: &[Spec], out: *mut u64) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.arm_batch_checked(specs, out) }.inspect_err(|_| specs.iter().for_each(refuse))
    }

    unsafe fn arm_batch_checked(&self, specs: &[Spec], out: *mut u64) -> Result<(), Error> {
        self.alive()?;
        self.running()?;
        let set = self.needed_set()?;
        let mut prepared = set.batch.borrow_mut();
        prepared.clear();
        prepared.try_reserve(specs.len()).map_err(|_| Error::NoMemory)?;
        // SAFETY: the caller's promise.
        let result = unsafe {
            self.prepare_all(specs, &mut prepared)
                .and_then(|()| self.publish_all(&self.shards, &prepared, out))
        };
        if result.is_err() {
            for &(index, one) in prepared.iter() {
                let shard = &self.shards[index as usize];
                if let Ok(port) = self.port(shard) {
                    // SAFETY: the port is this thread's, and the timer has not been published.
                    unsafe { shard.discard(&port, one) };
                }
            }
        }
        result
    }

    unsafe fn prepare_all(
        &self,
        specs: &[Spec],
        prepared: &mut Vec<(u32, Prepared)>,
    ) -> Result<(), Error> {
        for spec in specs {
            check(spec)?;
            self.check_queue(spec)?;
        }
        for spec in specs {
            let shard = self.route(spec.shard)?;
            let port = self.port(shard)?;
            // More room than the ones before it can have taken in this shard's inbox.
            let ahead = prepared.len() + 1;
            // SAFETY: the port is this thread's; the rest is the caller's promise.
            let one = unsafe { shard.prepare_one(&port, &self.clock, spec, ahead)? };
            prepared.push((shard.index, one));
        }
        Ok(())
    }

    /// Publishes prepared timers once the gates of all their shards are passed: goes through that of the
    /// first of `shards`, then on to the rest.
    unsafe fn publish_all(
        &self,
        shards: &[Shard],
        prepared: &[(u32, Prepared)],
        out: *mut u64,
    ) -> Result<(), Error> {
        if let Some((shard, rest)) = shards.split_first() {
            // SAFETY: the caller's promise, as for the rest of this function.
            let go_on = || unsafe { self.publish_all(rest, prepared, out) };
            if !prepared.iter().any(|&(index, _)| index == shard.index) {
                return go_on();
            }
            let port = self.port(shard)?;
            let _inside = shard.gate.enter(&port.own.busy, Work::Other, port.is_owner())?;
            return go_on();
        }
        for (index, &(shard, one)) in prepared.iter().enumerate() {
            let shard = &self.shards[shard as usize];
            let port = self.port(shard)?;
            let out = if out.is_null() { out } else { out.wrapping_add(index) };
            // SAFETY: the port is this thread's and inside the gate; `out` has room for each.
            unsafe { shard.publish(&port, &self.clock, one, out) };
        }
        Ok(())
    }

    /// Cancels. `Done`: it will not run (again), and is not running. `Running`: its callback is running
    /// now and it will not run again. `NotFound`: it had ended. Lock-free, never waits.
    ///
    /// # Errors
    /// `Invalid` (no such handle can be), `Stopped`, `Busy`, `Forked`.
    #[inline(always)]
    pub fn cancel(&self, timer: u64) -> Result<Outcome, Error> {
        let handle = Handle::unpack(timer);
        let port = self.first_door(handle.shard);
        if let Some(port) = port
            && port.is_exclusive()
            // SAFETY: the port is this thread's, which owns the shard exclusively.
            && unsafe { port.shard().cancel_plain::<true>(port, handle) }
        {
            return Ok(Outcome::Done);
        }
        self.cancel_next(port, timer)
    }

    #[inline(never)]
    fn cancel_next(&self, port: Option<&Port>, timer: u64) -> Result<Outcome, Error> {
        let handle = Handle::unpack(timer);
        if let Some(port) = port
            // SAFETY: the port is this thread's.
            && unsafe { port.shard().cancel_plain::<false>(port, handle) }
        {
            return Ok(Outcome::Done);
        }
        self.cancel_slowly(timer)
    }

    #[cold]
    #[inline(never)]
    fn cancel_slowly(&self, timer: u64) -> Result<Outcome, Error> {
        self.alive()?;
        let (shard, handle) = self.find(timer)?;
        let port = self.port(shard)?;
        // SAFETY: the port is this thread's.
        unsafe { shard.cancel(&port, handle, false) }
    }

    /// Cancels, then waits until the callback is not running and drop has run.
    ///
    /// # Errors
    /// As `cancel`; with `Stopped` a callback that was running is over too. `WouldDeadlock` in the timer's own callback, on the thread that would have to
    /// finish it, and where the wait would close a circle: the timer will not run again then either.
    pub fn cancel_wait(&self, timer: u64) -> Result<Outcome, Error> {
        self.alive()?;
        let (shard, handle) = self.find(timer)?;
        let port = self.port(shard)?;
        let token = thread::current_token();
        let from = || match self.turning() {
            0 => None,
            index => Some(&self.shards[index as usize - 1]),
        };
        // SAFETY: the port is this thread's.
        let outcome = unsafe { shard.cancel(&port, handle, true) };
        if outcome == Err(Error::Stopped) {
            shard.outlast(handle, token, from(), &self.shards);
        }
        let outcome = outcome?;
        let own = shard.running.load(Ordering::Relaxed) == timer && port.is_owner();
        if own || is_dropping(timer) {
            return Err(Error::WouldDeadlock);
        }
        if outcome != Outcome::Done {
            shard.await_end(handle, token, from(), &self.shards)?;
        }
        Ok(outcome)
    }

    /// Cancels many; answers how many of them were found armed.
    ///
    /// # Errors
    /// As `cancel`, if one was refused and none was cancelled; handles that none can be are passed over.
    pub fn cancel_batch(&self, timers: &[u64]) -> Result<usize, Error> {
        self.alive()?;
        self.running()?;
        let (mut done, mut refused) = (0, None);
        for &timer in timers {
            match self.cancel(timer) {
                Ok(Outcome::Done) => done += 1,
                Ok(_) | Err(Error::Invalid) => {}
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if done == 0 => Err(error),
            _ => Ok(done),
        }
    }

    /// Moves a timer's deadline to `delay_ns` from now. `Done`, `Running` (a one-shot whose callback is
    /// running elsewhere; unchanged) or `NotFound`.
    ///
    /// # Errors
    /// `Invalid`, `Full` (armed again in its own callback), `NoMemory`, `Stopped`, `Busy`, `Forked`.
    #[inline(always)]
    pub fn reset_after(&self, timer: u64, delay_ns: u64) -> Result<Outcome, Error> {
        self.reset::<false>(timer, delay_ns)
    }

    /// Moves a timer's deadline. As `reset_after`.
    ///
    /// # Errors
    /// As `reset_after`.
    #[inline(always)]
    pub fn reset_at(&self, timer: u64, deadline_ns: u64) -> Result<Outcome, Error> {
        self.reset::<true>(timer, deadline_ns)
    }

    #[inline(always)]
    fn reset<const AT: bool>(&self, timer: u64, ns: u64) -> Result<Outcome, Error> {
        let handle = Handle::unpack(timer);
        let to = To::of::<AT>(ns);
        let port = self.first_door(handle.shard);
        if let Some(port) = port
            && port.is_exclusive()
            // SAFETY: the port is this thread's, which owns the shard exclusively.
            && unsafe { port.shard().reset_plain::<true>(port, &self.clock, handle, to) }
        {
            return Ok(Outcome::Done);
        }
        self.reset_next::<AT>(port, timer, ns)
    }

    #[inline(never)]
    fn reset_next<const AT: bool>(
        &self,
        port: Option<&Port>,
        timer: u64,
        ns: u64,
    ) -> Result<Outcome, Error> {
        let handle = Handle::unpack(timer);
        let to = To::of::<AT>(ns);
        if let Some(port) = port
            // SAFETY: the port is this thread's.
            && unsafe { port.shard().reset_plain::<false>(port, &self.clock, handle, to) }
        {
            return Ok(Outcome::Done);
        }
        self.reset_slowly(timer, to)
    }

    #[inline(never)]
    fn reset_slowly(&self, timer: u64, to: To) -> Result<Outcome, Error> {
        self.alive()?;
        let (shard, handle) = self.find(timer)?;
        let port = self.port(shard)?;
        // SAFETY: the port is this thread's.
        unsafe { shard.reset(&port, &self.clock, handle, to) }
    }

    /// How long a timer still has; 0 when due, [`NEVER`] for a deadline that does not come.
    ///
    /// # Errors
    /// `Invalid`, `Stopped`, `Forked`.
    pub fn remaining(&self, timer: u64) -> Result<(Outcome, u64), Error> {
        self.alive()?;
        let (shard, handle) = self.find(timer)?;
        self.running()?;
        Ok(shard.remaining(&self.clock, handle))
    }

    /// The shard part of a handle; the rest is not looked at.
    pub fn shard_of(timer: u64) -> u32 {
        Handle::unpack(timer).shard
    }

    // ------------------------------------------------------------------ clock

    /// How many shards there are.
    pub fn shard_count(&self) -> u32 {
        self.shards.len() as u32
    }

    /// The engine's clock.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Moves a manual clock on; it stops at [`NEVER`].
    ///
    /// # Errors
    /// `Unsupported` on any other clock, `Forked`.
    pub fn advance(&self, by_ns: u64) -> Result<(), Error> {
        self.alive()?;
        self.clock.advance(by_ns)?;
        // Full: partner of the one in `Alarm::rest`: either this sees what is armed, or the owner the new time.
        barrier::full();
        for shard in &self.shards {
            if shard.alarm.armed() <= shard.ticks.reached(self.clock.now()) {
                shard.alarm.set_descriptor(&self.clock);
            }
        }
        Ok(())
    }

    /// A lower bound of the next instant at which the shard wants a poll; [`NEVER`]: none.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported`, `Stopped`, `Forked`.
    pub fn next(&self, shard: u32) -> Result<u64, Error> {
        self.alive()?;
        self.driven()?;
        let shard = self.shard(shard)?;
        self.running()?;
        let armed = shard.alarm.armed();
        Ok(if armed == NEVER_TICK || shard.is_empty() {
            NEVER
        } else if armed == crate::alarm::AWAKE {
            self.clock.now()
        } else {
            shard.ticks.instant(armed)
        })
    }

    /// A descriptor that is readable when the shard wants a poll.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported`, `Stopped`, `Forked`, `System`.
    pub fn fd(&self, shard: u32) -> Result<i32, Error> {
        self.alive()?;
        self.driven()?;
        let shard = self.shard(shard)?;
        self.running()?;
        shard.alarm.descriptor(&self.clock).map_err(crate::sys::errno::system)
    }

    // ----------------------------------------------------------------- queues

    /// A new queue.
    ///
    /// # Errors
    /// `NoMemory`, `Stopped`, `Forked`.
    pub fn queue_new(&self) -> Result<*const QueueInner, Error> {
        self.alive()?;
        self.running()?;
        let queue = QueueInner::new(self.weak(), self.shards.len()).and_then(boxed);
        let queue = OwnedQueue(Box::into_raw(queue.ok_or(Error::NoMemory)?));
        let mut queues = self.lock_queues();
        queues.try_reserve(1).map_err(|_| Error::NoMemory)?;
        let raw = queue.0.cast_const();
        queues.push(queue);
        Ok(raw)
    }

    fn lock_queues(&self) -> std::sync::MutexGuard<'_, Vec<OwnedQueue>> {
        self.queues.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The engine behind a queue.
    ///
    /// # Safety
    /// `queue` is a queue that has not been freed, nor has its engine.
    unsafe fn of_queue<'a>(
        queue: *const QueueInner,
    ) -> Result<(&'a QueueInner, Shared<Engine>), Error> {
        // SAFETY: the caller's promise.
        let queue = unsafe { queue.as_ref() }.ok_or(Error::Invalid)?;
        let engine = queue.engine().upgrade().ok_or(Error::Stopped)?;
        engine.alive()?;
        Ok((queue, engine))
    }

    /// Takes at most `capacity` expiries, oldest first within a shard; answers how many.
    ///
    /// # Errors
    /// `Invalid`, `Stopped`, `NoMemory`, `Forked`.
    ///
    /// # Safety
    /// `queue` is a queue that has not been freed; `out` has room for `capacity` events.
    pub unsafe fn queue_poll(
        queue: *const QueueInner,
        out: *mut Event,
        capacity: usize,
    ) -> Result<usize, Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let (queue, engine) = Engine::of_queue(queue)?;
            queue.take(&engine, out, capacity)
        }
    }

    /// A descriptor that is readable while events wait.
    ///
    /// # Errors
    /// `Invalid`, `Stopped`, `Forked`, `System`.
    ///
    /// # Safety
    /// `queue` is a queue that has not been freed.
    pub unsafe fn queue_fd(queue: *const QueueInner) -> Result<i32, Error> {
        // SAFETY: the caller's promise.
        let (queue, engine) = unsafe { Engine::of_queue(queue)? };
        engine.running()?;
        queue.descriptor().map_err(crate::sys::errno::system)
    }

    /// Cancels the timers that would have been delivered to the queue, and frees it.
    ///
    /// # Errors
    /// `Invalid`, `Forked`; `Busy` while another thread owns a shard exclusively (nothing is changed).
    ///
    /// # Safety
    /// `queue` is a queue that has not been freed, and no other thread uses it any more.
    pub unsafe fn queue_free(queue: *const QueueInner) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let (inner, engine) = unsafe { Engine::of_queue(queue)? };
        engine.close_queue(inner)?;
        if engine.is_stopping() {
            // Stop may not have come to its timers yet: it goes with the service.
            return Ok(());
        }
        let mut queues = engine.lock_queues();
        let freed = queues
            .iter()
            .position(|other| std::ptr::eq(other.0, queue))
            .map(|index| queues.swap_remove(index));
        drop(queues);
        drop(freed);
        Ok(())
    }

    fn close_queue(&self, queue: &QueueInner) -> Result<(), Error> {
        let _closing = Closing::begin(self)?;
        // All that can be refused comes before the queue is closed.
        for shard in &self.shards {
            self.port(shard)?;
        }
        if !queue.close() {
            return Err(Error::Invalid);
        }
        self.settle_all(true);
        for shard in &self.shards {
            let port = self.port(shard)?;
            for slot in 1..shard.slab.end() {
                // SAFETY: the port is this thread's.
                unsafe { shard.cancel_if_of(&port, slot, queue) };
            }
        }
        // No timer names the queue any more; whoever ended one of them may still be at it.
        self.settle_all(false);
        Ok(())
    }

    /// Waits until no other thread is inside a gate that it entered before.
    fn settle_all(&self, starts_only: bool) {
        barrier::heavy();
        for shard in &self.shards {
            for port in shard.ports() {
                port.own.busy.settle(starts_only);
            }
        }
    }

    /// Is a queue being freed? Asked after a gate has been closed.
    pub(crate) fn is_closing(&self) -> bool {
        // Relaxed: between the gate's bit and this is the heavy fence of `Gate::close`, and with the one in
        // `Closing::begin` either this sees the closing or that the bit.
        self.closing.load(Ordering::Relaxed) > 0
    }
}

/// A queue that has not been freed; freed by drop.
struct OwnedQueue(*mut QueueInner);

// SAFETY: a queue is used and freed by any thread.
unsafe impl Send for OwnedQueue {}
// SAFETY: as above.
unsafe impl Sync for OwnedQueue {}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        // SAFETY: made by `queue_new` as a box; whoever takes it off the list sees to it that nobody uses it.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// While a queue is freed no thread can become the exclusive owner of a shard.
struct Closing<'a>(&'a Engine);

impl<'a> Closing<'a> {
    fn begin(engine: &'a Engine) -> Result<Closing<'a>, Error> {
        // Relaxed: see the fence.
        engine.closing.fetch_add(1, Ordering::Relaxed);
        // SeqCst: partner of the heavy fence in `Gate::close`; see `is_closing`.
        fence(Ordering::SeqCst);
        let closing = Closing(engine);
        let mine = |shard: &Shard| engine.port(shard).is_ok_and(|port| port.is_exclusive());
        let strange = engine.shards.iter().any(|shard| shard.gate.is(EXCLUSIVE) && !mine(shard));
        if strange && engine.running().is_ok() { Err(Error::Busy) } else { Ok(closing) }
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // Relaxed: what was done meanwhile was done inside the gates, and is seen through them.
        self.0.closing.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Nobody else is here: whoever stopped it has seen its threads end.
        self.lock_queues().clear();
    }
}

/// A refused spec's drop.
fn refuse(spec: &Spec) {
    if let Some(drop) = spec.drop {
        // SAFETY: the caller of `arm` says that drop may be called with ctx, and no timer came to be.
        unsafe { drop_host(drop, spec.ctx) };
    }
}
