//! Instructions for each hot operation, counted by valgrind's callgrind, against the checked-in table.
//!
//! `cargo bench --bench counts` compares and fails if a count has moved by more than 3 %, in either
//! direction. `cargo bench --bench counts -- --bless` writes the table anew; the change that made it
//! necessary says why. Counts are those of one compiler: with another one the comparison is skipped.

#[path = "../operations/bench.rs"]
mod bench;
mod counted;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use table::Table;

/// How far a count may move, in percent.
const TOLERANCE: f64 = 3.0;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let asked = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if asked("--counted") {
        counted::run();
        return ExitCode::SUCCESS;
    }
    let compiler = compiler();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/counts/table.txt");
    let old = Table::read(&path);
    if !asked("--bless") && old.compiler != compiler {
        println!("SKIPPED: the table is of {}, this is {compiler}", old.compiler);
        return ExitCode::SUCCESS;
    }
    if !Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
    {
        println!("SKIPPED: valgrind is not installed");
        let required = std::env::var("SHARDWHEEL_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        return ExitCode::from(u8::from(required));
    }
    let new = Table { compiler, counts: count() };
    if asked("--bless") {
        std::fs::write(&path, new.text()).expect("the table can be written");
        print!("{}", new.text());
        return ExitCode::SUCCESS;
    }
    ExitCode::from(u8::from(!table::compare(&old, &new, TOLERANCE)))
}

/// The compiler, and what it compiles for.
fn compiler() -> String {
    let output = Command::new("rustc").arg("-V").output().expect("rustc runs");
    let version = String::from_utf8_lossy(&output.stdout).trim().to_string();
    format!("{version} {}", std::env::consts::ARCH)
}

/// Runs this program under callgrind, which writes a file for each call of `counted`.
fn count() -> Vec<(String, f64)> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("counts");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("cargo's directory for files of tests");
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--zero-before=counted", "--dump-after=counted"])
        .arg(format!("--callgrind-out-file={}", directory.join("out").display()))
        .arg(std::env::current_exe().expect("this program"))
        .arg("--counted")
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the counted program failed");
    let names = counted::names();
    let counted = |(nth, name): (usize, String)| {
        let file = directory.join(format!("out.{}", nth + 1));
        (name, total(&file) as f64 / bench::TIMES as f64)
    };
    names.into_iter().enumerate().map(counted).collect()
}

/// The sum that one of callgrind's files ends with.
fn total(file: &PathBuf) -> u64 {
    let text = std::fs::read_to_string(file).expect("a file for each operation");
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    line.and_then(|number| number.trim().parse().ok()).expect("a sum at the end")
}
