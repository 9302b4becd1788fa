//! Bad arguments, S4: every exported function with each kind of bad argument that its parameters allow. It
//! answers what the header says and changes nothing: no output, no counter, no timer, no clock.
//!
//! `header` reads off the header which functions there are and what each must have been tried with, so
//! that one that is new fails here until its rows are in `rows`. `calls` makes up sequences of calls, for
//! the fuzz target `fuzz/fuzz_targets/abi.rs`; some are played here.

#![cfg(all(feature = "capi", not(loom)))]
// Services that live, locals, and NULL where it is the point.
#![allow(clippy::undocumented_unsafe_blocks)]

mod calls;
#[path = "../support/cc.rs"]
mod cc;
mod header;
mod rows;
#[path = "../support/mod.rs"]
mod support;
mod world;

use rows::{Place, Row, rows};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use world::{CALLS, DROPS, Out, World};

#[test]
fn every_function_has_its_rows() {
    let tried: BTreeSet<_> = rows().iter().map(|row| (row.function, row.kind)).collect();
    let mut missing = Vec::new();
    let prototypes = header::prototypes();
    for prototype in &prototypes {
        for kind in prototype.kinds() {
            if !tried.contains(&(&prototype.name, &kind)) {
                missing.push(format!("{}: {kind}", prototype.name));
            }
        }
    }
    assert!(missing.is_empty(), "not tried, add to tests/abi/rows.rs:\n{}", missing.join("\n"));
    let known = |name: &str| prototypes.iter().any(|prototype| prototype.name == name);
    let gone: Vec<_> = tried.iter().filter(|(function, _)| !known(function)).collect();
    assert!(gone.is_empty(), "no such function any more: {gone:?}");
}

/// Runs one row.
fn check(world: &World, row: &Row) {
    let Row { function, kind, want, drops, call, .. } = row;
    let (before, dropped) = (world.seen(), DROPS.load(Ordering::SeqCst));
    let mut out = Out::new();
    let untouched = Out::new();
    let got = call(world, &mut out);
    assert!(want.contains(&got), "{function}, {kind}: {got:?}, not {want:?}");
    let dropped = DROPS.load(Ordering::SeqCst) - dropped;
    assert_eq!(dropped, *drops, "{function}, {kind}: drops");
    if row.changes {
        return;
    }
    assert_eq!(world.seen(), before, "{function}, {kind}: something has changed");
    assert_eq!(out.bytes(), untouched.bytes(), "{function}, {kind}: an output was written");
}

#[test]
fn each_is_refused_and_changes_nothing() {
    let world = World::new();
    let rows = rows();
    for row in rows.iter().filter(|row| row.place == Place::Outside) {
        check(&world, row);
    }
    assert_eq!(CALLS.load(Ordering::SeqCst), 0, "no callback ran");
}

/// The same from inside a callback, with the rows that are about that.
#[test]
fn inside_a_callback_too() {
    let world = World::new();
    let address = std::ptr::from_ref(&world).expose_provenance();
    let timer = world.plain.timer().shard(0).run(move |_| {
        // SAFETY: the poll below runs this, on this thread, while the world is there.
        let world = unsafe { &*std::ptr::with_exposed_provenance::<World>(address) };
        for row in rows().iter().filter(|row| row.place == Place::Inside) {
            check(world, row);
        }
    });
    timer.start();
    assert_eq!(world.plain.poll(), 1);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..Default::default()
    })]

    /// Any calls in any order.
    #[test]
    fn calls_of_any_kind(codes in proptest::collection::vec(proptest::prelude::any::<[u8; 8]>(), 2..80)) {
        // The first makes a service.
        let codes = [[[0; 8]].as_slice(), &codes].concat();
        calls::play(codes.as_flattened()).map_err(proptest::prelude::TestCaseError::fail)?;
    }
}

#[test]
fn sequences_have_every_function() {
    let calls = cc::root().join("tests/abi/calls");
    let read = |file| std::fs::read_to_string(calls.join(file)).expect(file);
    let text = read("call.rs") + &read("operate.rs") + &read("pool.rs");
    // These two take no service and answer constants.
    let without = ["sw_status_text", "sw_version"];
    for function in cc::declared().iter().filter(|name| !without.contains(&name.as_str())) {
        assert!(text.contains(&format!("{function}(")), "{function} is not called");
    }
}

/// What the fuzz target has found worth keeping.
#[test]
fn the_corpus() {
    let mut played = 0;
    for file in cc::root().join("fuzz/corpus/abi").read_dir().expect("a corpus") {
        let path = file.expect("readable").path();
        if let Err(what) = calls::play(&std::fs::read(&path).expect("readable")) {
            panic!("{}: {what}", path.display());
        }
        played += 1;
    }
    assert!(played > 10, "{played}");
}
