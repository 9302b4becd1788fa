//! The C ABI as C and C++ programs see it: the checked-in header, the real shared library, and the
//! programs of `ffi-tests`.

#![cfg(all(feature = "capi", not(loom)))]

#[path = "support/cc.rs"]
mod cc;

use cc::Language;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Nothing here takes long; only a machine that is very busy does.
const LIMIT: Duration = Duration::from_secs(120);

/// Builds `ffi-tests/<file>` with the shared library; `None`: no compiler, skipped.
fn built(language: Language, file: &str) -> Option<PathBuf> {
    let source = cc::root().join("ffi-tests").join(file);
    let name = format!("{}_{language:?}", file.replace(['.', '/'], "_"));
    language.available().then(|| cc::program(language, &source, &name, true))
}

fn runs_well(language: Language, file: &str) {
    if let Some(program) = built(language, file) {
        cc::run_well(&program, &[], LIMIT);
    }
}

#[test]
fn driven_services_work_from_c() {
    runs_well(Language::C99, "smoke.c");
}

#[test]
fn host_loops_and_queues_work_from_c() {
    runs_well(Language::C99, "loops.c");
}

#[test]
fn threaded_services_work_from_c() {
    runs_well(Language::C99, "threaded.c");
}

#[test]
fn both_work_from_cpp() {
    runs_well(Language::Cpp11, "smoke.cpp");
}

#[test]
fn the_cpp_layer_works() {
    for file in ["time", "timers", "restart", "numbers", "lifetime"] {
        runs_well(Language::Cpp17, &format!("cpp/{file}.cpp"));
    }
}

/// S4, F9.
#[test]
fn bad_arguments_are_refused_and_drop() {
    runs_well(Language::C11, "refusals.c");
}

/// S5.
#[test]
fn a_forked_child_is_refused_at_once() {
    runs_well(Language::C99, "fork.c");
}

/// S6.
#[test]
fn a_process_ends_with_timers_pending() {
    if let Some(program) = built(Language::C99, "exit_pending.c") {
        let ended = cc::run_well(&program, &[], LIMIT);
        assert!(ended.took < Duration::from_secs(10), "{ended:?}");
    }
}

#[test]
fn a_service_may_be_a_static_object() {
    if let Some(program) = built(Language::Cpp11, "statics.cpp") {
        for _ in 0..20 {
            assert!(cc::run_well(&program, &[], LIMIT).stdout.ends_with("well\n"));
        }
    }
}

/// F6.
#[test]
fn an_exception_that_reaches_the_library_terminates() {
    let Some(program) = built(Language::Cpp11, "throwing.cpp") else { return };
    for thrower in [
        "threaded",
        "driven",
        "drop-at-refusal",
        "drop-at-cancel",
        "drop-after-fire",
        "unfired",
        "start-hook",
        "stop-hook",
        "slow-hook",
        "stuck-hook",
    ] {
        let ended = cc::run(&program, &[thrower], LIMIT);
        assert_eq!(ended.status.code(), Some(42), "{thrower}: {ended:?}");
    }
}

/// F6: the C++ layer lets a host handle it, and says why it ends a process.
#[test]
fn the_cpp_layer_handles_exceptions_or_terminates_by_name() {
    let Some(program) = built(Language::Cpp17, "cpp/failing.cpp") else { return };
    cc::run_well(&program, &["handled"], LIMIT);
    for (failure, words) in [
        ("driven", "what():  a member"),
        ("threaded", "what():  a member"),
        ("handler", "what():  a member"),
        ("exclusive", "attached exclusively by another thread"),
        ("service", "destroyed inside one of its own callbacks"),
    ] {
        let ended = cc::run(&program, &[failure], LIMIT);
        assert_eq!(ended.status.signal(), Some(6), "{failure}: {ended:?}");
        assert!(ended.stderr.contains(words), "{failure}: {ended:?}");
    }
}

#[test]
fn exports_exactly_what_the_header_declares() {
    if !cc::available("nm", "--version") {
        cc::skip("no nm");
        return;
    }
    let library = cc::library().join("libshardwheel.so");
    let symbols = cc::succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let mut exported: Vec<&str> = symbols
        .lines()
        .map(|line| line.split_whitespace().last().expect("address, kind, name"))
        .collect();
    exported.sort_unstable();
    assert_eq!(exported, cc::declared());
}

#[test]
fn the_soname_is_that_of_this_release() {
    if !cc::available("readelf", "--version") {
        cc::skip("no readelf");
        return;
    }
    let library = cc::library().join("libshardwheel.so");
    let dynamic = cc::succeed(Command::new("readelf").arg("-d").arg(library));
    let line = dynamic.lines().find(|line| line.contains("SONAME"));
    assert!(line.is_some_and(|line| line.ends_with("[libshardwheel.so.0]")), "{dynamic}");
}

/// The programs above call every function that the header declares.
#[test]
fn every_function_is_called() {
    let programs = ["smoke.c", "loops.c", "threaded.c", "refusals.c"];
    let text: String = programs
        .iter()
        .map(|file| std::fs::read_to_string(cc::root().join("ffi-tests").join(file)).expect(file))
        .chain(std::fs::read_to_string(cc::root().join("ffi-tests/driven.h")))
        .collect();
    for function in cc::declared() {
        assert!(text.contains(&format!("{function}(")), "{function} is not called");
    }
}

/// S5: all that take a service or a queue are tried in a forked child.
#[test]
fn every_function_is_called_in_a_forked_child() {
    let text = std::fs::read_to_string(cc::root().join("ffi-tests/fork.c")).expect("fork.c");
    let without = ["sw_status_text", "sw_version", "sw_timer_shard"];
    for function in cc::declared().iter().filter(|name| !without.contains(&name.as_str())) {
        assert!(text.contains(&format!("{function}(")), "{function} is not called");
    }
}
