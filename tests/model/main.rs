//! Model-based testing: one language of operations, played on a real service and on a plain reference at
//! once, with every answer, callback, drop and counter compared. `duel` has it all; here are the cases.
//!
//! The fuzz target `fuzz/fuzz_targets/model.rs` plays the same language; its corpus is replayed here.

#![cfg(all(feature = "capi", not(loom)))]

mod duel;

use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes of an operation: mostly small, which are the plain forms of operands.
fn code() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![3 => any::<u8>(), 1 => 0..4_u8], duel::WIDTH)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_service_does_what_the_reference_says(codes in vec(code(), 2..60)) {
        duel::play(&codes.concat()).map_err(TestCaseError::fail)?;
    }
}

/// What the fuzz target has found worth keeping.
#[test]
fn the_corpus() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = here.ancestors().map(|dir| dir.join("fuzz/corpus/model")).find(|dir| dir.is_dir());
    let mut played = 0;
    for file in corpus.expect("a corpus").read_dir().expect("readable") {
        let path = file.expect("readable").path();
        if let Err(story) = duel::play(&std::fs::read(&path).expect("readable")) {
            panic!("{}\n{story}", path.display());
        }
        played += 1;
    }
    assert!(played > 10, "{played}");
}
