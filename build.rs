//! Gives the shared library its soname, so that a program built against one release runs with the
//! next compatible one. Nothing else is decided here.
//!
//! The package's own crate type is rlib alone (beside others, link-time optimization would be
//! lost); the shared library is made by `cargo rustc --release --crate-type cdylib,staticlib`.
//! Cargo warns of a cdylib's link argument in such a package, so it is given where the library is
//! made, in release builds, and the builds of every day stay quiet.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let elf = var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let release = var("PROFILE").is_ok_and(|profile| profile == "release");
    if elf && release && var("CARGO_FEATURE_CAPI").is_ok() {
        println!("cargo::rustc-link-arg-cdylib=-Wl,-soname,libshardwheel.so.0");
    }
}
