//! Other people's loops: the adapters of `include/shardwheel`, each in the scenario of
//! `ffi-tests/loops` and in its example.

#![cfg(all(feature = "capi", not(loom)))]

#[path = "support/cc.rs"]
mod cc;

use cc::{Ended, Language};
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// Runs `ffi-tests/loops/<file>`, which counts the loop's turns, and `examples/<file>`, each in its
/// language. `header` comes with the Debian package `package`.
fn loops(languages: [Language; 2], file: &str, header: &str, package: &str, libraries: &[&str]) {
    let run = |language: Language, directory: &str| {
        let source = cc::root().join(directory).join(file);
        let name = format!("{directory}_{file}").replace(['/', '.'], "_");
        let program = cc::program_of(language, &[&source], &name, true, libraries);
        cc::run_well(&program, &[], LIMIT).stdout
    };
    let [ours, theirs] = languages;
    if ours.available() && cc::has_header(ours, header, package) {
        let told = run(ours, "ffi-tests/loops");
        assert!(told.ends_with("done\n"), "{told}");
        assert_eq!(run(theirs, "examples"), "beat 1\nbeat 2\nbeat 3\nthe session is idle\n");
    }
}

#[test]
fn libuv() {
    let languages = [Language::C99, Language::C11];
    loops(languages, "uv.c", "uv.h", "libuv1-dev", &["-luv"]);
}

#[test]
fn libevent() {
    let languages = [Language::C99, Language::C11];
    loops(languages, "event.c", "event2/event.h", "libevent-dev", &["-levent_core"]);
}

#[test]
fn boost_asio() {
    let languages = [Language::Cpp11, Language::Cpp17];
    loops(languages, "asio.cpp", "boost/asio/io_context.hpp", "libboost-dev", &[]);
}

/// Builds and runs a program of io_uring; `None`: skipped. A kernel may refuse io_uring, whatever is
/// installed.
fn io_uring(source: &Path, name: &str, arguments: &[&str]) -> Option<Ended> {
    if !Language::C11.available() || !cc::has_header(Language::C11, "liburing.h", "liburing-dev") {
        return None;
    }
    let program = cc::program_of(Language::C11, &[source], name, true, &["-luring"]);
    let ended = cc::run(&program, arguments, LIMIT);
    if ended.status.code() == Some(77) {
        eprintln!("SKIPPED: io_uring: {}", ended.stderr);
        return None;
    }
    assert!(ended.status.success(), "{ended:?}");
    Some(ended)
}

/// Seven deadlines in all, each of which comes down two levels.
#[test]
fn io_uring_in_both_ways() {
    let source = cc::root().join("examples/io_uring.c");
    for way in ["timeout", "fd"] {
        let Some(ended) = io_uring(&source, &format!("examples_io_uring_{way}"), &[way]) else {
            return;
        };
        let told = ended.stdout.strip_prefix("beat 1\nbeat 2\nbeat 3\nthe session is idle\n");
        let turns = told.and_then(|told| told.strip_suffix(" turns\n")?.parse::<u64>().ok());
        assert!(turns.is_some_and(|turns| turns <= 7 * 3), "{ended:?}");
    }
}

/// The page's code as it stands there, in `ffi-tests/loops/page.c`.
#[test]
fn the_page_on_io_uring() {
    let read = |file: &str| std::fs::read_to_string(cc::root().join(file)).expect(file);
    let page = read("examples/io_uring.md");
    let code = page.split("```c\n").skip(1).map(|rest| rest.split_once("```").expect("an end").0);
    let mut program = read("ffi-tests/loops/page.c");
    let mut blocks = 0;
    for block in code {
        blocks += 1;
        let place = format!("/* PAGE {blocks} */");
        assert!(program.contains(&place), "{place}: a block of the page is not looked at");
        program = program.replace(&place, block);
    }
    assert_eq!(blocks, 2);
    let source = cc::scratch().join("io_uring_page.c");
    std::fs::write(&source, program).expect("written");
    let Some(ended) = io_uring(&source, "io_uring_page", &[]) else { return };
    let numbers = ended.stdout.split(' ').filter_map(|word| word.parse().ok());
    let turns: Vec<u64> = numbers.collect();
    assert!(turns.len() == 2 && turns.iter().all(|&turns| turns <= 3), "{ended:?}");
}

/// The headers for C may be included from C++ too.
#[test]
fn the_headers_stand_alone() {
    let both = [Language::C99, Language::C11, Language::Cpp11, Language::Cpp17];
    let headers = [
        ("uv.h", "uv.h", "libuv1-dev", &both[..]),
        ("event.h", "event2/event.h", "libevent-dev", &both[..]),
        ("asio.hpp", "boost/asio/io_context.hpp", "libboost-dev", &both[2..]),
    ];
    for (ours, theirs, package, languages) in headers {
        for &language in languages {
            if language.available() && cc::has_header(language, theirs, package) {
                let source = cc::scratch().join(format!("alone_{ours}_{language:?}"));
                // Twice: the include guard. Whoever includes libuv asks for POSIX.
                let include = format!("#include \"shardwheel/{ours}\"\n");
                let posix = "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n";
                let text = format!("{posix}{include}{include}extern int alone;\n");
                std::fs::write(&source, text).expect("written");
                cc::check(language, &source);
            }
        }
    }
}
