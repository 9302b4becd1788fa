//! The README's C and C++ examples, compiled and run as they stand there, and its table of the C API.
//! (With the README's own commands, against the installed package: `ffi-tests/package/readme.sh`.)

#![cfg(all(feature = "capi", not(loom)))]

#[path = "support/cc.rs"]
mod cc;

use std::time::Duration;

/// The one fenced block of this language.
fn block(language: &str) -> String {
    let readme = std::fs::read_to_string(cc::root().join("README.md")).expect("the README");
    let fence = format!("```{language}\n");
    assert_eq!(readme.matches(&fence).count(), 1, "one block of {language}");
    let after = readme.split_once(&fence).expect("a block").1;
    after.split_once("```").expect("an end").0.to_string()
}

#[test]
fn the_c_example_compiles_and_runs() {
    if !cc::Language::C99.available() {
        return;
    }
    let source = cc::scratch().join("readme.c");
    // `usleep` is POSIX, which strict C99 has to be asked for.
    std::fs::write(&source, format!("#define _DEFAULT_SOURCE\n{}", block("c"))).expect("written");
    let program = cc::program(cc::Language::C99, &source, "readme_c", true);
    let ended = cc::run_well(&program, &[], Duration::from_secs(60));
    assert!(ended.stdout.starts_with("request timed out, "), "{}", ended.stdout);
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
}

#[test]
fn the_cpp_example_compiles_and_runs() {
    if !cc::Language::Cpp17.available() {
        return;
    }
    let source = cc::scratch().join("readme.cpp");
    std::fs::write(&source, block("cpp")).expect("written");
    let program = cc::program(cc::Language::Cpp17, &source, "readme_cpp", true);
    let ended = cc::run_well(&program, &[], Duration::from_secs(60));
    assert_eq!(ended.stdout, "idle\n");
}

#[test]
fn the_table_has_every_function() {
    let guide = std::fs::read_to_string(cc::root().join("include/README.md")).expect("the guide");
    for function in cc::declared() {
        assert!(guide.contains(&format!("`{function}`")), "{function} is not in include/README.md");
    }
}
