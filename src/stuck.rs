//! Callbacks that are stuck: told while they still run.
//!
//! There is no thread that watches. Whoever comes by looks: each of the service's threads, for the other
//! shards, before it sleeps; a thread that polls a driven shard, after its poll; and every thread
//! that reads statistics, which is what a monitor does anyway. A callback that runs longer than the
//! limit for slow ones is told by the first that finds it, once. When it is over it is told as slow,
//! with its whole duration, by its own thread, whether it was told here or not.
//!
//! Ground rules: the looker only reads what the shard's owner wrote of its own; the owner never
//! waits for a looker. So the callback may have ended when the host hears of it, and its context
//! may be gone: the hook gets the timer's handle alone, which never comes to mean another.

use crate::engine::Engine;
use crate::status::Error;
use crate::sync::Ordering;
use crate::sys::call::stuck_hook;
use crate::sys::clock::monotonic_ns;
use std::ffi::c_void;

/// What the host wants called: `arg`, shard, timer, nanoseconds so far.
pub(crate) type OnStuck = unsafe extern "C-unwind" fn(*mut c_void, u32, u64, u64);

/// The hook and its argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StuckHook {
    hook: OnStuck,
    arg: *mut c_void,
}

// SAFETY: whoever sets the hook promises that it may be called with `arg` on any thread.
unsafe impl Send for StuckHook {}
// SAFETY: as above.
unsafe impl Sync for StuckHook {}

impl Engine {
    /// Sets the hook that is told of stuck callbacks.
    ///
    /// # Errors
    /// `Invalid`: no limit for slow callbacks was set. `Busy`: there is one already. `Stopped`, `Forked`.
    ///
    /// # Safety
    /// The hook may be called with `arg` on any thread until the service has been stopped and no call on
    /// it is under way.
    pub unsafe fn on_stuck(
        &self,
        hook: unsafe extern "C-unwind" fn(*mut c_void, u32, u64, u64),
        arg: *mut c_void,
    ) -> Result<(), Error> {
        self.alive()?;
        self.running()?;
        if self.shards().iter().any(|shard| shard.slow_callback_ns == 0) {
            return Err(Error::Invalid);
        }
        self.stuck.set(StuckHook { hook, arg }).map_err(|_| Error::Busy)
    }

    /// Tells the host of every callback that runs for too long now and that it has not been told of.
    /// With no lock held, and not inside a turn.
    pub(crate) fn tell_stuck(&self) {
        let Some(&StuckHook { hook, arg }) = self.stuck.get() else { return };
        for shard in self.shards() {
            // Relaxed: `running_since` says which reading belongs to it.
            let timer = || shard.running.load(Ordering::Relaxed);
            let Some((timer, since_ns)) = shard.tally.running_since(timer) else { continue };
            let elapsed_ns = monotonic_ns().saturating_sub(since_ns);
            if elapsed_ns > shard.slow_callback_ns && shard.tally.name_stuck(since_ns) {
                // SAFETY: the host gave the hook for this.
                unsafe { stuck_hook(hook, arg, shard.index, timer, elapsed_ns) };
                if shard.forked() {
                    return;
                }
            }
        }
    }
}
