//! Millions of timeouts on pinned timing wheels.
//!
//! A [`Service`] is a number of shards, each a timing wheel with a thread of its own. Timers are
//! started, pushed out and cancelled from any thread, without a lock; what most of them do, being
//! cancelled before they come due, costs next to nothing. The same service has a C ABI
//! (`include/shardwheel.h`, feature `capi`); both are thin layers over one engine.
//!
//! ```
//! use shardwheel::{Expiry, Outcome, Service};
//! use std::time::Duration;
//!
//! let service = Service::new()?;
//!
//! // An order is to be paid within ten minutes.
//! let timeout = service.after(Duration::from_secs(600), |_| println!("order 4711 is closed"))?;
//! // The customer asks for more time, and then pays.
//! service.reset(timeout, Duration::from_secs(900))?;
//! assert_eq!(service.cancel(timeout)?, Outcome::Done);
//! // All is over: the handle will never mean another timer.
//! assert_eq!(service.cancel(timeout)?, Outcome::NotFound);
//!
//! // A plain function and a number: nothing is allocated.
//! fn closed(order: u64, expiry: &Expiry) {
//!     println!("order {order} is closed, {:?} late", expiry.late());
//! }
//! service.after_fn(Duration::from_secs(600), closed, 4712)?;
//!
//! // Once a second, on a grid that does not drift.
//! service.every(Duration::from_secs(1), |expiry| println!("tick, {} missed", expiry.missed))?;
//!
//! // The end hands back what has not fired.
//! assert_eq!(service.stop()?, 2);
//! # Ok::<(), shardwheel::Error>(())
//! ```
//!
//! # What there is
//!
//! | | |
//! |---|---|
//! | [`Service`] | owns the shards; ends when it is dropped. [`Builder`] says what it is to be |
//! | [`Timers`] | the way in, to be cloned: every call on a service, for threads and callbacks |
//! | [`Timer`] | a timer's handle, a number of 64 bits that is `Copy` |
//! | [`TimerBuilder`] | a timer with period, slack, shard, queue |
//! | [`Batch`] | many timers, all or none |
//! | [`Expiry`] | what a callback is told |
//! | [`Queue`] | expiries that wait to be taken, instead of calling back |
//! | [`Shard`], [`Attached`] | wheels that the host's own threads drive; counters |
//! | [`Time`] | an instant on a service's clock |
//!
//! # What holds
//!
//! - A timer is never early, and on a shard that is not overloaded at most one tick late (and its
//!   slack, and what the system takes to wake a thread).
//! - It ends in exactly one of three ways: it fires, it is cancelled, or the end of the service
//!   hands it back. Its closure is dropped exactly once, when it has ended.
//! - The callbacks of one shard never overlap. Everything is allowed inside them, but to wait for
//!   themselves: [`Error::WouldDeadlock`].
//! - A panic in a callback is caught and counted ([`Timers::panics`]); the shard goes on, and so
//!   does a periodic timer.
//! - Whatever races with whatever, one compare-and-swap on the timer decides, and the
//!   [`Outcome`] says what was decided.
//! - A cancelled timer's memory is there for the next one at once, however far its deadline was.
//!
//! # A timer that arms itself again
//!
//! Inside its own callback a one-shot can be reset, to a new interval each time:
//!
//! ```
//! use shardwheel::Service;
//! use std::time::Duration;
//!
//! let service = Service::builder().shards(1).driven().manual_clock().build()?;
//! let (timers, mut interval) = (service.timers(), Duration::from_millis(1));
//! service.timer().delay(interval).start(move |expiry| {
//!     interval *= 2;
//!     // First, so that it goes on even if what follows panics.
//!     let _ = timers.reset(expiry.timer, interval);
//!     println!("and again in {interval:?}");
//! })?;
//! for _ in 0..3 {
//!     service.advance(service.shard(0)?.next()?.expect("it is armed") - service.now())?;
//!     assert_eq!(service.shard(0)?.poll()?, 1);
//! }
//! # Ok::<(), shardwheel::Error>(())
//! ```
//!
//! # What an operation costs
//!
//! | operation | what it does |
//! |---|---|
//! | start | reads the clock, fills a record of 32 bytes, writes an entry of its thread's own inbox |
//! | start of a closure | the same, a second record of the rarer fields, and the closure's box |
//! | cancel | one compare-and-swap on the record; the owner is not told |
//! | reset to later | one compare-and-swap on the record; the owner is not told |
//! | reset to earlier | the same and an entry; the owner is woken if it would be late |
//! | expiry | reads reminders in a row, two compare-and-swaps on the record |
//!
//! # Map of the source
//!
//! A timer is a *record* in its shard's *slab*; one 64-bit *word* of the record decides everything
//! that threads can race about. The wheel holds *reminders*: look at this slot at this tick. Each
//! thread has a *port* to each shard that it uses, with all that it would otherwise share: an
//! inbox to the owner, free slots, counters. Each file begins with its ground rules.
//!
//! | to see | read |
//! |---|---|
//! | the short way of most calls | `operations`, `one_shot`, `doors`, `plain` |
//! | where a start goes | `arm`, `arm_batch`, `port`, `capacity`, `slab`, `record`, `inbox`, `alarm` |
//! | where a cancel goes | `handle`, `word`, `record`, `cancel`, `slab` |
//! | where a reset goes | `reset`, `word`, `ticks` |
//! | how a timer fires | `turn`, `fresh`, `wheel`, `alive`, `core`, `fire`, `grid` |
//! | who sleeps, and who wakes whom | `alarm`, `worker`, `wait` |
//! | how a thread is kept out, and how it stops | `gate`, `attach`, `worker` |
//! | queues | `queues`, `queue`, `lane`, `order` |
//! | how memory comes back after a peak | `trim`, `returned`, `arena` |
//! | what is counted, measured and told | `tally`, `histogram`, `stats`, `exposition`, `report`, `stuck`, `visit` |
//! | what both APIs are thin layers over | `engine`, `operations`, `types`, `config`, `status` |
//! | this API | `service`, `timers`, `timer`, `closure`, `host`, `batch`, `events`, `driven` |
//! | the C ABI | `capi` |
//! | the operating system | `sys` |

/// In scenarios shuttle stands in for loom.
#[cfg(shuttle)]
extern crate shuttle as loom;

mod alarm;
mod alive;
mod arena;
mod arm;
mod arm_batch;
mod attach;
mod batch;
mod builder;
mod cancel;
mod capacity;
#[cfg(feature = "capi")]
pub mod capi;
mod clock;
mod closure;
mod config;
mod core;
mod doors;
mod driven;
mod engine;
mod events;
mod exposition;
mod extra;
mod fire;
mod fresh;
mod gate;
mod grid;
mod handle;
mod histogram;
mod host;
mod inbox;
mod lane;
#[cfg(all(loom, test, not(shuttle)))]
mod models;
#[cfg(feature = "capi")]
mod one_shot;
mod operations;
mod order;
mod plain;
mod port;
mod queue;
mod queues;
mod record;
mod report;
mod reset;
mod returned;
#[cfg(all(shuttle, test))]
mod scenarios;
mod service;
mod shard;
mod shared;
mod slab;
mod stats;
mod status;
mod stuck;
mod sync;
mod sys;
mod tagged;
mod tally;
mod threads;
mod ticks;
mod time;
mod timer;
mod timers;
mod trim;
mod turn;
mod types;
mod visit;
mod wait;
mod wheel;
mod word;
mod worker;

pub use batch::Batch;
pub use builder::Builder;
pub use driven::{Attached, Pending, Shard};
pub use events::{Event, Queue};
pub use host::SlowCallback;
pub use service::{Service, Unfired};
pub use status::{Error, Outcome};
pub use time::Time;
pub use timer::{Expiry, Timer, TimerBuilder};
pub use timers::Timers;
pub use types::{Details, Stats};

/// The README's Rust, compiled and run with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
