//! The Rust API, as a program without unsafe code uses it.
//!
//! What the engine promises is tested rule by rule in `contract`; here it is that the closures,
//! handles and guards of the Rust API keep to it, and that each item of the API does what its docs
//! say.
#![cfg(not(loom))]
#![deny(unsafe_code)]

mod driven;
mod drops;
mod inside;
mod lives;
mod panics;
mod queues;
mod starts;
mod stories;

use shardwheel::{Service, Shard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn hour() -> Duration {
    Duration::from_secs(3_600)
}

/// One driven shard on a manual clock, ticks of 1 ms.
fn manual() -> (Service, Shard) {
    let service = Service::builder().shards(1).driven().manual_clock().build().unwrap();
    let shard = service.shard(0).unwrap();
    (service, shard)
}

/// Moves the clock on and polls.
fn step(service: &Service, by: Duration) -> usize {
    service.advance(by).unwrap();
    service.shards().map(|shard| shard.poll().unwrap()).sum()
}

fn threaded(shards: u32) -> Service {
    Service::builder().shards(shards).unpinned().build().unwrap()
}

/// A count that closures share.
#[derive(Debug, Clone, Default)]
struct Count(Arc<AtomicU64>);

impl Count {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn guard(&self) -> Dropped {
        Dropped(self.clone())
    }
}

/// Counts its drop.
#[derive(Debug)]
struct Dropped(Count);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// Waits for what must come.
#[track_caller]
fn eventually(what: &str, cond: impl Fn() -> bool) {
    let begin = Instant::now();
    while !cond() {
        assert!(begin.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// Every timer ended in one of three ways.
#[track_caller]
fn balanced(service: &shardwheel::Timers) {
    let stats = service.stats().unwrap();
    let ended = stats.ended_by_fire + stats.cancelled + stats.returned;
    assert_eq!(stats.started, ended + stats.pending, "{stats:?}");
}
