//! The README's C and C++ examples and the recipes of `include/README.md`, compiled and run as they stand
//! there, and its table of the C API.
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
    std::fs::write(&source, block("c")).expect("written");
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

/// The recipes of the guide, whole programs, and what they print.
#[test]
fn the_recipes_compile_and_run() {
    let guide = std::fs::read_to_string(cc::root().join("include/README.md")).expect("the guide");
    let recipes = guide.split("\n```c").skip(1).filter_map(|rest| {
        let (language, rest) = match rest.strip_prefix('\n') {
            Some(rest) => (cc::Language::C99, rest),
            None => (cc::Language::Cpp17, rest.strip_prefix("pp\n")?),
        };
        Some((language, rest.split_once("```").expect("an end").0))
    });
    let prints = [
        "the session is idle\n",
        "request 3 timed out\nrequest 1 timed out\n",
        "6 beats in an hour\n",
        "order 4711 is closed\n",
    ];
    let recipes: Vec<_> = recipes.collect();
    assert_eq!(recipes.len(), prints.len());
    for (number, ((language, text), prints)) in recipes.into_iter().zip(prints).enumerate() {
        if language.available() {
            let source = cc::scratch().join(format!("recipe_{number}.c"));
            std::fs::write(&source, text).expect("written");
            let program = cc::program(language, &source, &format!("recipe_{number}"), true);
            assert_eq!(cc::run_well(&program, &[], Duration::from_secs(60)).stdout, prints);
        }
    }
}

#[test]
fn the_table_has_every_function() {
    let guide = std::fs::read_to_string(cc::root().join("include/README.md")).expect("the guide");
    for function in cc::declared() {
        assert!(guide.contains(&format!("`{function}`")), "{function} is not in include/README.md");
    }
}
