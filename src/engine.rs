//! STUB bodies: the lead replaces them. Signatures are those that the C ABI and the Rust API build on.
#![allow(missing_docs, unused_variables, clippy::missing_safety_doc)]
use crate::config::Config;
use crate::queue::QueueInner;
use crate::status::{Error, Outcome};
use crate::types::{Event, Spec, Stats};
use std::ffi::c_void;
use std::sync::Arc;

#[derive(Debug)]
pub struct Engine {}

impl Engine {
    /// Invalid, Unsupported, NoMemory, System.
    pub fn start(config: Config) -> Result<Arc<Engine>, Error> {
        todo!()
    }
    /// Ranges are checked here. On refusal, whatever the reason, `spec.drop(ctx)` has run.
    /// `out` may be null; it is written before the callback can run, and only on success.
    pub unsafe fn arm(&self, spec: &Spec, out: *mut u64) -> Result<(), Error> {
        todo!()
    }
    /// All or nothing; on refusal each spec's drop has run.
    pub unsafe fn arm_batch(&self, specs: &[Spec], out: *mut u64) -> Result<(), Error> {
        todo!()
    }
    pub fn cancel(&self, timer: u64) -> Result<Outcome, Error> {
        todo!()
    }
    pub fn cancel_wait(&self, timer: u64) -> Result<Outcome, Error> {
        todo!()
    }
    /// How many of the timers were found and cancelled (their cancel alone would have been `Done`).
    pub fn cancel_batch(&self, timers: &[u64]) -> Result<usize, Error> {
        todo!()
    }
    pub fn reset_after(&self, timer: u64, delay_ns: u64) -> Result<Outcome, Error> {
        todo!()
    }
    pub fn reset_at(&self, timer: u64, deadline_ns: u64) -> Result<Outcome, Error> {
        todo!()
    }
    pub fn remaining(&self, timer: u64) -> Result<(Outcome, u64), Error> {
        todo!()
    }
    /// `unfired(timer, ctx, deadline_ns)` for each timer that had not fired, before its drop.
    pub fn stop(&self, unfired: &mut dyn FnMut(u64, *mut c_void, u64)) -> Result<u64, Error> {
        todo!()
    }
    /// Frees all queues that are left. After `stop`.
    pub fn shard_count(&self) -> u32 {
        todo!()
    }
    pub fn now(&self) -> u64 {
        todo!()
    }
    pub fn advance(&self, by_ns: u64) -> Result<(), Error> {
        todo!()
    }
    pub fn attach(&self, shard: u32, exclusive: bool) -> Result<(), Error> {
        todo!()
    }
    pub fn detach(&self, shard: u32) -> Result<(), Error> {
        todo!()
    }
    /// At most `budget` expiries (0: all); answers how many were delivered.
    pub fn poll(&self, shard: u32, budget: usize) -> Result<usize, Error> {
        todo!()
    }
    pub fn next(&self, shard: u32) -> Result<u64, Error> {
        todo!()
    }
    pub fn fd(&self, shard: u32) -> Result<i32, Error> {
        todo!()
    }
    pub fn stats(&self, shard: u32) -> Result<Stats, Error> {
        todo!()
    }
    pub fn queue_new(self: &Arc<Self>) -> Result<*const QueueInner, Error> {
        todo!()
    }
    /// Writes up to `capacity` events, answers how many.
    pub unsafe fn queue_poll(
        queue: *const QueueInner,
        out: *mut Event,
        capacity: usize,
    ) -> Result<usize, Error> {
        todo!()
    }
    pub unsafe fn queue_fd(queue: *const QueueInner) -> Result<i32, Error> {
        todo!()
    }
    pub unsafe fn queue_free(queue: *const QueueInner) -> Result<(), Error> {
        todo!()
    }
    /// Shard part of a handle (no check of the rest).
    pub fn shard_of(timer: u64) -> u32 {
        todo!()
    }
}
