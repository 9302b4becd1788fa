//! The queues of an engine: made, taken from, and freed while other threads start and deliver.
//!
//! Ground rules: any thread. To free a queue all starts and deliveries that may name it are waited for, at the gates,
//! and its timers cancelled; while that goes on no thread becomes the exclusive owner of a shard.

use crate::engine::Engine;
use crate::gate::EXCLUSIVE;
use crate::queue::{Kept, QueueInner};
use crate::shard::Shard;
use crate::shared::Shared;
use crate::status::Error;
use crate::sync::{Ordering, fence};
use crate::sys::{barrier, memory::boxed};

impl Engine {
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

    pub(crate) fn lock_queues(&self) -> std::sync::MutexGuard<'_, Vec<OwnedQueue>> {
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

    /// Takes at most `capacity` expiries, those of a shard oldest deadline first; answers how many.
    ///
    /// # Errors
    /// `Invalid`, `Stopped`, `NoMemory`, `Forked`.
    ///
    /// # Safety
    /// `queue` is a queue that has not been freed; `out` has room for `capacity` events.
    pub unsafe fn queue_poll<T: Kept>(
        queue: *const QueueInner,
        out: *mut T,
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
    /// `Invalid`, `Forked`; `Busy` while another thread exclusively owns a shard that has timers of the queue
    /// (nothing is changed).
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
        let _closing = Closing::begin(self, queue)?;
        // All that can be refused comes before the queue is closed.
        for shard in self.shards_to_clear(queue) {
            self.port(shard)?;
        }
        if !queue.close() {
            return Err(Error::Invalid);
        }
        self.settle_all(true);
        for shard in self.shards_to_clear(queue) {
            let port = self.port(shard)?;
            for slot in 1..shard.slab.end() {
                // SAFETY: the port is this thread's.
                unsafe { shard.cancel_if_of(&port, slot, queue) };
                self.alive()?;
            }
        }
        // No timer names the queue any more; whoever ended one of them may still be at it.
        self.settle_all(false);
        Ok(())
    }

    /// Does another thread own the shard exclusively?
    fn is_anothers(&self, shard: &Shard) -> bool {
        shard.gate.is(EXCLUSIVE) && !self.port(shard).is_ok_and(|port| port.is_exclusive())
    }

    /// The shards that may hold timers of a queue that is being freed. One that has some and seems to be another's is one
    /// that a thread is about to take, and will not.
    fn shards_to_clear(&self, queue: &QueueInner) -> impl Iterator<Item = &Shard> {
        let stopped = self.running().is_err();
        let concerned =
            move |shard: &&Shard| stopped || !self.is_anothers(shard) || shard.has_timers_of(queue);
        self.shards.iter().filter(concerned)
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
pub(crate) struct OwnedQueue(*mut QueueInner);

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
    fn begin(engine: &'a Engine, queue: &QueueInner) -> Result<Closing<'a>, Error> {
        // Relaxed: see the fence.
        engine.closing.fetch_add(1, Ordering::Relaxed);
        // SeqCst: partner of the heavy fence in `Gate::close`; see `is_closing`.
        fence(Ordering::SeqCst);
        let closing = Closing(engine);
        let refused = |shard: &Shard| engine.is_anothers(shard) && shard.has_timers_of(queue);
        let busy = engine.running().is_ok() && engine.shards.iter().any(refused);
        if busy { Err(Error::Busy) } else { Ok(closing) }
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // Relaxed: what was done meanwhile was done inside the gates, and is seen through them.
        self.0.closing.fetch_sub(1, Ordering::Relaxed);
    }
}
