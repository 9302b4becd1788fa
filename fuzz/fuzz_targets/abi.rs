//! The C ABI called with whatever libFuzzer makes up: see `tests/abi/calls`.

#![no_main]

#[path = "../../tests/abi/calls/mod.rs"]
mod calls;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(what) = calls::play(bytes) {
        panic!("{what}");
    }
});
