//! The copy of the source in which the changes of logic are, and its build.

use crate::logic::{CHANGES, Change};
use crate::source::{read, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    // Where the README's command builds, when CI says so: what both depend on is built once.
    if target.ends_with("loom") { target } else { target.join("loom") }
}

/// The files that have changes of logic in them, with these.
pub(crate) fn changed_files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for change in CHANGES {
        let text = files.entry(change.file.to_string()).or_insert_with(|| read(change.file));
        *text = put_in(change, text);
    }
    files
}

/// Puts a change in behind its switch; the lines stay where they are.
fn put_in(change: &Change, text: &str) -> String {
    let Change { name, file, text: old, instead, .. } = change;
    let found = text.matches(old).count();
    assert_eq!(found, 1, "{name}: this is {found} times in {file}:\n{old}");
    assert!(!instead.contains('\n'), "{name}: more than one line");
    let ask = format!("crate::sync::mutant::mutated(\"{name}\")");
    let new = if old.ends_with([';', '}']) {
        format!("if {ask} {{ {instead} }} else {{ {old} }}")
    } else {
        format!("(if {ask} {{ {instead} }} else {{ {old} }})")
    };
    text.replacen(old, &new, 1)
}

/// Makes the copy and builds its models; answers the program.
pub(crate) fn build_copy() -> PathBuf {
    let place = target().join("mutants");
    fs::create_dir_all(&place).unwrap();
    copy_tree(&root().join("src"), &place.join("src"), &changed_files());
    for name in ["Cargo.lock", "README.md", "cbindgen.toml"] {
        write(&place.join(name), &read(name));
    }
    // Cargo tells packages apart by name and version, not by place.
    let manifest =
        read("Cargo.toml").replacen("\nversion = \"", "\nversion = \"0.0.0-mutants-of-", 1);
    // So that no other manifest is looked for above.
    let workspace = if manifest.contains("[workspace]") { "" } else { "\n[workspace]\n" };
    write(&place.join("Cargo.toml"), &(manifest + workspace));
    for name in ["examples", "tests", "benches", "include"] {
        if root().join(name).exists() && !place.join(name).exists() {
            std::os::unix::fs::symlink(root().join(name), place.join(name)).unwrap();
        }
    }
    build_in(&place)
}

/// Builds the models of the code as it is; answers the program.
pub(crate) fn build_original() -> PathBuf {
    build_in(&root())
}

fn build_in(place: &Path) -> PathBuf {
    let built = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["test", "--profile", "models", "--lib", "--no-run", "--message-format=json"])
        .current_dir(place)
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(built.status.success(), "{} does not build", place.display());
    let messages = String::from_utf8(built.stdout).unwrap();
    let (_, program) = messages.rsplit_once("\"executable\":\"").expect("a program");
    PathBuf::from(program.split('"').next().unwrap())
}

fn copy_tree(from: &Path, to: &Path, changed: &BTreeMap<String, String>) {
    fs::create_dir_all(to).unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy_tree(&path, &to.join(&name), changed);
        } else {
            let known = path.strip_prefix(root()).unwrap().to_str().unwrap();
            let text = changed.get(known).cloned().unwrap_or_else(|| read(known));
            write(&to.join(&name), &text);
        }
        names.push(name);
    }
    for entry in fs::read_dir(to).unwrap().map(Result::unwrap) {
        if !names.contains(&entry.file_name()) && entry.path().is_file() {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Writes what is new, so that nothing else is built again.
fn write(place: &Path, text: &str) {
    if fs::read_to_string(place).is_ok_and(|old| old == text) {
        return;
    }
    fs::write(place, text).unwrap();
}
