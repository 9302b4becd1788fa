//! The service against the reference, on what libFuzzer makes up: see `tests/model`.

#![no_main]

#[path = "../../tests/model/duel/mod.rs"]
mod duel;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(story) = duel::play(bytes) {
        panic!("{story}");
    }
});
