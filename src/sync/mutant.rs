//! The switch that makes the code wrong for one run of a model, to see that the model finds it.
//!
//! `SHARDWHEEL_MUTANT` holds one of these:
//! - `file:line:column:way`, the place of an operation in the source and what to do to it: leave out its
//!   `acquire` or its `release`, make the order of a `failure` Relaxed, let a read-modify-write be
//!   `torn` into a load and a store, or let a fence be `dropped`;
//! - the name of a change to the logic. Those are not in this source: `tests/models` puts them into a
//!   copy of it, where they ask `mutated`.
//!
//! With `SHARDWHEEL_SITES` set each mutant of the first kind is printed when the run first comes to its
//! place. So the list of them is complete, as far as models go, by itself.

use super::model::raw::Ordering;
use std::collections::BTreeSet;
use std::env::var;
use std::panic::Location;
use std::sync::{LazyLock, Mutex};

/// Where the code calls.
pub(crate) type Place = &'static Location<'static>;

static MUTANT: LazyLock<Option<String>> = LazyLock::new(|| var("SHARDWHEEL_MUTANT").ok());
static SITES: LazyLock<Option<Mutex<BTreeSet<String>>>> =
    LazyLock::new(|| var("SHARDWHEEL_SITES").ok().map(|_| Mutex::default()));

/// Is this change to the logic switched on?
#[allow(dead_code, reason = "called in a copy of the source alone")]
pub(crate) fn mutated(name: &str) -> bool {
    MUTANT.as_deref() == Some(name)
}

/// Is the operation here to be changed in this way?
pub(crate) fn is(place: Place, way: &str) -> bool {
    if MUTANT.is_none() && SITES.is_none() {
        return false;
    }
    // `shared` is taken in by a module of the models.
    let file = place.file().replace("models/../", "");
    let mutant = format!("{file}:{}:{}:{way}", place.line(), place.column());
    if MUTANT.as_deref() == Some(&mutant) {
        return true;
    }
    if let Some(sites) = &*SITES
        && file != "src/sync/model.rs"
        && !file.starts_with("src/models/")
        && sites.lock().unwrap().insert(mutant.clone())
    {
        eprintln!("mutant {mutant}");
    }
    false
}

/// The order of an operation here.
pub(crate) fn order(place: Place, order: Ordering) -> Ordering {
    let (acquires, releases) = parts(order);
    let acquires = acquires && !is(place, "acquire");
    let releases = releases && !is(place, "release");
    match (acquires, releases) {
        _ if (acquires, releases) == parts(order) => order,
        (true, true) => Ordering::AcqRel,
        (true, false) => Ordering::Acquire,
        (false, true) => Ordering::Release,
        (false, false) => Ordering::Relaxed,
    }
}

/// The same for a load, or for the failure of an exchange, whose SeqCst does not release, and for a store,
/// whose SeqCst does not acquire.
pub(crate) fn half(place: Place, order: Ordering, way: &str) -> Ordering {
    if order != Ordering::Relaxed && is(place, way) { Ordering::Relaxed } else { order }
}

fn parts(order: Ordering) -> (bool, bool) {
    match order {
        Ordering::Relaxed => (false, false),
        Ordering::Acquire => (true, false),
        Ordering::Release => (false, true),
        _ => (true, true),
    }
}

/// The orders of the load and the store that a torn operation becomes.
pub(crate) fn torn(order: Ordering) -> (Ordering, Ordering) {
    let (acquires, releases) = parts(order);
    (
        if acquires { Ordering::Acquire } else { Ordering::Relaxed },
        if releases { Ordering::Release } else { Ordering::Relaxed },
    )
}
