//! The short examples, in Rust and in C, run as their users run them.

#![cfg(all(feature = "capi", not(loom)))]

#[path = "support/cc.rs"]
mod cc;
#[path = "support/example.rs"]
mod example;

use cc::{Ended, Language};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn in_rust(name: &str) -> Ended {
    cc::run_well(&example::built(name), &[], LIMIT)
}

/// `None`: no compiler, skipped.
fn in_c(name: &str) -> Option<Ended> {
    let source = example::in_package("examples").join(name).with_extension("c");
    Language::C99.available().then(|| {
        let program = cc::program(Language::C99, &source, &format!("example_{name}"), true);
        cc::run_well(&program, &[], LIMIT)
    })
}

/// The numbers before these words, in a line that has them all.
fn numbers(ended: &Ended, words: &[&str]) -> Vec<u64> {
    let found = words.iter().map(|word| {
        let before = ended.stdout.split_once(word)?.0;
        before.trim_end().rsplit(' ').next()?.parse().ok()
    });
    found.collect::<Option<_>>().unwrap_or_else(|| panic!("not all of {words:?}: {ended:?}"))
}

fn orders_are_right(ended: &Ended) {
    let [paid, closed, wrong] = numbers(ended, &["paid", "closed", "wrong"])[..] else { panic!() };
    assert_eq!((paid + closed, wrong), (100_000, 0), "{ended:?}");
    // One in ten is never paid, and eight in ten are not in a hurry.
    assert!(closed >= 10_000, "{ended:?}");
}

#[test]
fn orders_in_rust() {
    orders_are_right(&in_rust("orders"));
}

#[test]
fn orders_in_c() {
    if let Some(ended) = in_c("orders") {
        orders_are_right(&ended);
    }
}

/// It goes on after the third turn, which fails, and its own glass stops itself after the fifth.
fn hourglass_is_right(ended: &Ended) {
    let text = &ended.stdout;
    for line in ["ours: turn 3, ", "ours: turn 4, ", "its own: turn 5, ", "its own: no more"] {
        assert_eq!(text.lines().filter(|l| l.starts_with(line)).count(), 1, "{line}: {ended:?}");
    }
    assert!(!text.contains("its own: turn 6"), "{ended:?}");
    assert!(text.ends_with("turns that failed: 2\n"), "{ended:?}");
}

#[test]
fn the_hourglass_in_rust() {
    hourglass_is_right(&in_rust("hourglass"));
}

#[test]
fn the_hourglass_in_c() {
    if let Some(ended) = in_c("hourglass") {
        hourglass_is_right(&ended);
    }
}
