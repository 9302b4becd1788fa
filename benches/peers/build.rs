//! Compiles a shim for each C library that this machine has. One that it has not is left out,
//! and its rows say so; to look again, touch this file.

use std::env::var;
use std::fs;
use std::path::Path;

/// A C library: its name, a header of it, and what it is linked as. libev exports some names of
/// libevent's, so it comes behind it.
const LIBRARIES: [(&str, &str, &[&str]); 3] = [
    ("libevent", "event2/thread.h", &["event_core", "event_pthreads"]),
    ("libev", "ev.h", &["ev"]),
    ("libuv", "uv.h", &["uv"]),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shims");
    let out = var("OUT_DIR").expect("cargo sets it");
    for (name, header, links) in LIBRARIES {
        println!("cargo::rustc-check-cfg=cfg(have_{name})");
        let probe = Path::new(&out).join(format!("{name}-probe.c"));
        let text = format!("#include <{header}>\nint probe_{name};\n");
        fs::write(&probe, text).expect("the output directory can be written");
        let quiet = || {
            let mut build = cc::Build::new();
            build.cargo_warnings(false).warnings(false);
            build
        };
        if quiet().cargo_metadata(false).file(&probe).try_compile(&format!("{name}-probe")).is_err()
        {
            continue;
        }
        quiet().file(format!("shims/{name}.c")).opt_level(3).compile(&format!("peer-{name}"));
        for link in links {
            println!("cargo::rustc-link-lib={link}");
        }
        println!("cargo::rustc-cfg=have_{name}");
    }
}
