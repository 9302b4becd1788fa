//! Everything at once, in random order, with exact books: whatever the threads do to each other,
//! each timer ends in exactly one way, is dropped exactly once, and the service's own numbers
//! agree with ours.
//!
//! A [`cell::Cell`] is one timer with all that happened to it; a [`book::Book`] is a service with
//! its cells. What can be known at once is checked at once (in the callback, after the answer of
//! a call); the rest when the service has been stopped and its threads have been joined.
//!
//! `SHARDWHEEL_STRESS=n` does n times as much, `SHARDWHEEL_SEED=n` repeats the choices of a run
//! (not the interleaving). A run that hangs ends itself and says so.

#[path = "../support/mod.rs"]
mod support;

mod book;
mod cell;
mod driven;
mod judge;
mod play;
mod points;
mod queues;
mod run;
mod services;
mod short_threads;
mod stale;
mod stopping;
mod threaded;
mod work;
