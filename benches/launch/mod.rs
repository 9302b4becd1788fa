//! Runs what lies in the package `peers`, which has all that the benches need beside this project's own
//! dependencies, so that nothing else has to be built with it.

use std::process::{Command, ExitCode};

/// `cargo COMMAND --package shardwheel-peers ... -- ARGUMENTS`, where the arguments are this program's.
pub fn launch(command: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(command)
        .args(["--quiet", "--package", "shardwheel-peers", "--"])
        .args(std::env::args_os().skip(1).filter(|argument| argument != "--bench"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    ExitCode::from(status.code().unwrap_or(1) as u8)
}
