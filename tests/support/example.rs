//! The examples in Rust, as programs to be run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// A built example: `examples/NAME.rs` or what is in `examples/NAME`. `cargo test` builds it beside
/// the tests; a run of one test alone does not, so it is built here if it is missing or older than
/// its sources.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    let path = profile.join("examples").join(name);
    let own = in_package("examples").join(name);
    let sources = [in_package("src"), own.with_extension("rs"), own];
    if newest(&path) < sources.iter().filter_map(|path| newest(path)).max() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--example", name, "--profile"]);
        build.arg(match profile.file_name().expect("PROFILE") {
            name if name == "debug" => "dev".as_ref(),
            name => name,
        });
        build.arg("--manifest-path").arg(in_package("Cargo.toml"));
        build.arg("--target-dir").arg(profile.parent().expect("target"));
        assert!(build.status().expect("cargo runs").success(), "the example builds");
    }
    path
}

/// When a file, or the newest file in a directory, was written; `None` if there is none.
fn newest(path: &Path) -> Option<SystemTime> {
    match std::fs::read_dir(path) {
        Ok(files) => files.flatten().filter_map(|file| newest(&file.path())).max(),
        Err(_) => path.metadata().and_then(|file| file.modified()).ok(),
    }
}

pub fn in_package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
