//! tokio-util's `DelayQueue`. A slot holds its key.

use super::tokio::{counting, runtime};
use super::{Clock, Timers};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::{EnterGuard, Runtime};
use tokio::time::Instant;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

pub struct Delays {
    runtime: &'static Runtime,
    _inside: EnterGuard<'static>,
    queue: DelayQueue<u32>,
    keys: Vec<Option<Key>>,
    waker: Waker,
    now: Instant,
}

impl Delays {
    pub fn new(clock: Clock, slots: usize) -> Delays {
        let runtime = runtime(clock);
        let inside = runtime.enter();
        let (keys, now) = (vec![None; slots], Instant::now());
        let queue = DelayQueue::new();
        Delays { runtime, _inside: inside, queue, keys, waker: counting(), now }
    }

    /// Takes out what has expired.
    fn expired(&mut self) -> u64 {
        let mut context = Context::from_waker(&self.waker);
        let mut taken = 0;
        while let Poll::Ready(Some(expired)) = self.queue.poll_expired(&mut context) {
            self.keys[expired.into_inner() as usize] = None;
            taken += 1;
        }
        taken
    }
}

impl Timers for Delays {
    const HANDLE: usize = size_of::<Option<Key>>();

    #[inline]
    fn start(&mut self, slot: usize, delay_ns: u64) {
        let deadline = self.now + Duration::from_nanos(delay_ns);
        self.keys[slot] = Some(self.queue.insert_at(slot as u32, deadline));
    }

    #[inline]
    fn cancel(&mut self, slot: usize) {
        if let Some(key) = self.keys[slot].take() {
            self.queue.remove(&key);
        }
    }

    #[inline]
    fn push_out(&mut self, slot: usize, delay_ns: u64) {
        if let Some(key) = &self.keys[slot] {
            self.queue.reset_at(key, self.now + Duration::from_nanos(delay_ns));
        }
    }

    fn turn(&mut self) {
        self.runtime.block_on(tokio::task::yield_now());
        self.expired();
        self.now = Instant::now();
    }

    fn advance(&mut self, by_ns: u64) -> u64 {
        self.runtime.block_on(tokio::time::advance(Duration::from_nanos(by_ns)));
        let taken = self.expired();
        self.now = Instant::now();
        taken
    }
}
