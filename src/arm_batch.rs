//! Starting many timers at once: all of them, or none. Any thread.
//!
//! Each timer is prepared on its own, as `arm` does. Once that has succeeded for all, the gates of all their shards
//! are passed, and then they are published in their order. The clock is read once, and their delays count
//! from there.

use crate::arm::{Prepared, check};
use crate::engine::Engine;
use crate::gate::Work;
use crate::operations::refuse;
use crate::shard::Shard;
use crate::status::Error;
use crate::threads::PortRef;
use crate::types::{SHARD_ANY, Spec};

/// Where a timer goes, and most often the next one too.
struct Way<'a> {
    /// The shard as it was asked for.
    code: u32,
    shard: &'a Shard,
    port: PortRef<'a>,
}

impl Engine {
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

    fn way(&self, code: u32) -> Result<Way<'_>, Error> {
        let shard = self.route(code)?;
        Ok(Way { code, shard, port: self.port(shard)? })
    }

    unsafe fn prepare_all(
        &self,
        specs: &[Spec],
        prepared: &mut Vec<(u32, Prepared)>,
    ) -> Result<(), Error> {
        for spec in specs {
            check(spec)?;
            self.check_queue(spec)?;
            if spec.shard != SHARD_ANY {
                self.shard(spec.shard)?;
            }
        }
        let Some(first) = specs.first() else { return Ok(()) };
        let mut way = self.way(first.shard)?;
        let now_ns = self.clock.now();
        for spec in specs {
            if way.code != spec.shard {
                way = self.way(spec.shard)?;
            }
            // More room than the ones before it can have taken in this shard's inbox.
            let ahead = prepared.len() + 1;
            let Way { shard, port, .. } = &way;
            // SAFETY: the port is this thread's; the rest is the caller's promise.
            let one = unsafe { shard.prepare_one(port, &self.clock, now_ns, spec, ahead)? };
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
        let Some(&(first, _)) = prepared.first() else { return Ok(()) };
        let mut way = self.way(first)?;
        for (place, &(index, one)) in prepared.iter().enumerate() {
            if way.code != index {
                way = self.way(index)?;
            }
            let out = if out.is_null() { out } else { out.wrapping_add(place) };
            // SAFETY: the port is this thread's and inside the gate; `out` has room for each.
            unsafe { way.shard.publish(&way.port, &self.clock, one, out) };
        }
        Ok(())
    }
}
