//! `cargo bench --bench peers`: builds and runs the program in `benches/peers`, which has what the
//! other libraries need, so that nothing else of this project has to be built with it.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "shardwheel-peers", "--"])
        .args(std::env::args_os().skip(1).filter(|argument| argument != "--bench"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    ExitCode::from(status.code().unwrap_or(1) as u8)
}
