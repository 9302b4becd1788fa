//! The loom models bite: each is seen to fail when the code that it guards is made wrong.
//!
//! Ground rules:
//! - The models themselves are in `src/models`; this drives them from outside, one model a process.
//! - The code is made wrong in two ways. Each operation on an atomic, and each fence, can be weakened from
//!   outside (`src/sync/mutant.rs`); which of them there are is what the models say that they come to.
//!   Changes to the logic are the rows of `logic.rs`. They are put into a copy of the source
//!   below the target directory, behind a switch, so one build serves all mutants.
//! - `src/models/TABLE.md` says which model finds which mutant, and at which bound. It is written by
//!   `write_the_mutants` and `write_the_models`, from a run. A mutant that no model finds needs a reason in `spared.rs`.
//! - `mutants_die` is for every day: each mutant is put to the model that the table names for it, and must be found
//!   again; one that is not in the table fails. So does one that is in the table without a model and without
//!   a reason, in `cargo test` already.
//!
//! `cargo test --test models -- --ignored --nocapture mutants_die` (or `write_the_mutants`, which looks for a model
//! only where the table names none that finds the mutant).

#![cfg(not(loom))]

mod copy;
mod logic;
mod matrix;
mod mutants;
mod run;
mod source;
mod spared;
mod table;
mod unsafety;

use matrix::Matrix;
use table::Table;

/// The rows of `logic.rs` still fit the code.
#[test]
fn each_change_of_logic_has_its_place() {
    copy::changed_files();
}

/// Each mutant of the table is found by a model, or spared with a reason, and each change of logic is there.
#[test]
fn each_mutant_is_found_or_spared() {
    let table = Table::read();
    let open = table.open();
    assert!(open.is_empty(), "neither found nor spared:\n{}", open.join("\n"));
    let missing = table.missing_changes();
    assert!(missing.is_empty(), "not in the table, see `write_the_mutants`: {missing:?}");
    let unknown = table.unknown_models();
    assert!(unknown.is_empty(), "no such models, see `write_the_models`: {unknown:?}");
}

/// Each place with an order stronger than Relaxed, and each fence, is one that models come to, or is listed with
/// the reason why not.
#[test]
fn each_order_is_in_the_table() {
    let table = Table::read();
    let strange = source::strong_orders()
        .into_iter()
        .filter(|(file, function, line)| {
            !table.mutants.keys().any(|mutant| mutant.is_at(file, function, line))
                && spared::unreached(file, function).is_none()
        })
        .map(|(file, function, line)| format!("{file}, {function}: {line}"))
        .collect::<Vec<_>>();
    assert!(
        strange.is_empty(),
        "not in the table, see `write_the_mutants`:\n{}",
        strange.join("\n")
    );
}

/// One model a process, each at its own bound, or all at `LOOM_MAX_PREEMPTIONS`.
#[test]
#[ignore = "builds and runs the models at their own bounds: long"]
fn models_hold() {
    Matrix::of_original().hold();
}

#[test]
#[ignore = "builds and runs the models: minutes"]
fn mutants_die() {
    let matrix = Matrix::of_copy();
    matrix.check();
    matrix.replay();
}

#[test]
#[ignore = "builds and runs the models, and writes src/models/TABLE.md"]
fn write_the_mutants() {
    Matrix::of_copy().write_mutants();
}

#[test]
#[ignore = "as `models_hold`, and writes src/models/TABLE.md"]
fn write_the_models() {
    Matrix::of_original().write_models();
}

#[test]
#[ignore = "writes src/models/TABLE.md anew from what it says and from the models' docs"]
fn write_the_texts() {
    Table::read().write();
}
