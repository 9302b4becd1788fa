//! The checked-in C header: it is what the sources give, it stands alone in C and C++, and it
//! keeps its contract.
//!
//! `SHARDWHEEL_BLESS=1 cargo test --test header` writes it anew, and what `ffi-tests` compares the
//! installed package with: the exported names, the layouts and the ABI.

#![cfg(all(feature = "capi", not(loom)))]

#[path = "support/cc.rs"]
mod cc;

use cc::Language;
use shardwheel::capi::*;
use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;
use std::time::Duration;

/// The files with items for the header, in its order.
const TOPICS: [&str; 8] =
    ["types", "status", "service", "timer", "batch", "shard", "queue", "stats"];

fn generated() -> String {
    let root = cc::root();
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for topic in TOPICS {
        builder = builder.with_src(root.join(format!("src/capi/{topic}.rs")));
    }
    let mut header = Vec::new();
    builder.generate().expect("src/capi is understood").write(&mut header);
    String::from_utf8(header).expect("UTF-8")
}

/// A file of ours must be what it is generated to be.
fn assert_fresh(path: &str, generated: &str) {
    let path = cc::root().join(path);
    if std::env::var("SHARDWHEEL_BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, generated).expect("written");
    }
    let found = std::fs::read_to_string(&path).expect("the file");
    assert!(
        found == generated,
        "{} is stale: SHARDWHEEL_BLESS=1 cargo test --test header",
        path.display()
    );
}

#[test]
fn is_fresh() {
    assert_fresh("include/shardwheel.h", &generated());
}

#[test]
fn the_list_of_exports_is_fresh() {
    assert_fresh("ffi-tests/package/symbols", &(cc::declared().join("\n") + "\n"));
}

#[test]
fn the_abi_is_the_one_that_was_written_down() {
    if !Language::C11.available() || !cc::available("abidw", "--version") {
        cc::skip("no abidw");
        return;
    }
    let script = cc::root().join("ffi-tests/package/abi.sh");
    let arguments = [&cc::root().join("include"), &cc::scratch().join("abi")];
    cc::succeed(Command::new("sh").arg(script).arg("cc").args(arguments));
}

#[test]
fn is_plain_ascii() {
    assert!(generated().is_ascii());
}

#[test]
fn stands_alone_in_c_and_cpp() {
    for language in Language::ALL {
        if language.available() {
            let source = cc::scratch().join(format!("alone_{language:?}.c"));
            // Twice: the include guard.
            let text = "#include \"shardwheel.h\"\n#include \"shardwheel.h\"\nextern int alone;\n";
            std::fs::write(&source, text).expect("written");
            cc::check(language, &source);
        }
    }
}

#[test]
fn keeps_its_contract() {
    for language in Language::ALL {
        if language.available() {
            cc::check(language, &cc::root().join("ffi-tests/contract.c"));
        }
    }
}

#[test]
fn every_function_is_in_the_contract() {
    let contract = cc::root().join("ffi-tests/contract.c");
    let contract = std::fs::read_to_string(contract).expect("the contract");
    let declared = cc::declared();
    assert_eq!(declared.len(), 39, "{declared:?}");
    for function in declared {
        assert!(contract.contains(&format!("= {function};")), "{function}");
    }
}

/// Sizes and offsets of the structs as Rust has them.
macro_rules! layout {
    ($($name:ident { $($field:ident)* })*) => {
        vec![$((
            stringify!($name),
            size_of::<$name>(),
            vec![$((stringify!($field), offset_of!($name, $field))),*],
        )),*]
    };
}

/// Name, size, and each field with its offset.
type Layout = (&'static str, usize, Vec<(&'static str, usize)>);

fn layouts() -> Vec<Layout> {
    layout! {
        sw_config {
            size mode clock shards pinning cpus cpu_count tick_ns max_timers slow_callback_ns
            thread_name hook_arg on_thread_start on_thread_stop on_slow_callback
        }
        sw_timer_spec {
            size delay_ns period_ns slack_ns flags shard callback ctx drop queue
        }
        sw_expiry { timer deadline_ns now_ns missed }
        sw_event { expiry ctx }
        sw_pending { timer deadline_ns period_ns ctx }
        sw_stats {
            size pending high_water started fired ended_by_fire cancelled returned rejected missed
            wakeups slow_callbacks memory_bytes overdue_ns
            lateness_p50_ns lateness_p99_ns lateness_p999_ns lateness_max_ns
            callback_p50_ns callback_p99_ns callback_p999_ns callback_max_ns
        }
        sw_details {
            size reminders_live reminders_dead buckets_occupied bucket_longest turns
            turn_p50_ns turn_p99_ns turn_p999_ns turn_max_ns inbox_depth
            wakeups_deadline wakeups_earlier wakeups_pressure
            slots_allocated slots_cached slots_retired callback_running_ns
        }
    }
}

/// The fields that the header gives each struct: its name, and theirs.
fn declared_fields() -> Vec<(String, Vec<String>)> {
    let header = generated();
    let bodies = header.split("typedef struct ").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once(" {")?;
        (!name.contains(';')).then(|| (name.to_string(), rest.split_once("\n}").expect("an end").0))
    });
    let fields = |body: &str| {
        let code = body.split("/*").map(|part| part.rsplit("*/").next().expect("a part"));
        let code = code.collect::<String>();
        let statements = code.split(';').map(str::trim).filter(|field| !field.is_empty());
        statements
            .map(|field| match field.split_once("(*") {
                Some((_, function)) => function.split(')').next().expect("a name"),
                None => {
                    let declarator = field.rsplit([' ', '*']).next().expect("a name");
                    declarator.split('[').next().expect("a name")
                }
            })
            .map(str::to_string)
            .collect()
    };
    bodies.map(|(name, body)| (name, fields(body))).collect()
}

#[test]
fn every_field_is_in_the_layouts() {
    let mut declared = declared_fields();
    let mut listed: Vec<_> = layouts()
        .into_iter()
        .map(|(name, _, fields)| {
            (name.to_string(), fields.iter().map(|(field, _)| field.to_string()).collect())
        })
        .collect();
    declared.sort();
    listed.sort();
    assert_eq!(declared, listed);
}

#[test]
fn c_and_rust_agree_on_every_layout() {
    let mut source = String::from("#include \"shardwheel.h\"\n#include <stdio.h>\n\n");
    let mut expected = String::new();
    source.push_str("int main(void)\n{\n");
    let mut print = |what: String, expression: String, value: usize| {
        writeln!(source, "    printf(\"{what} %zu\\n\", {expression});").unwrap();
        writeln!(expected, "{what} {value}").unwrap();
    };
    for (name, size, fields) in layouts() {
        print(name.to_string(), format!("sizeof({name})"), size);
        for (field, offset) in fields {
            print(format!("{name}.{field}"), format!("offsetof({name}, {field})"), offset);
        }
    }
    print("sw_status".into(), "sizeof(sw_status)".into(), size_of::<sw_status>());
    source.push_str("    return 0;\n}\n");
    assert_fresh("ffi-tests/package/layouts", &expected);
    for language in [Language::C99, Language::Cpp11] {
        if language.available() {
            let path = cc::scratch().join(format!("layout_{language:?}.c"));
            std::fs::write(&path, &source).expect("written");
            let program = cc::program(language, &path, &format!("layout_{language:?}"), false);
            let printed = cc::run_well(&program, &[], Duration::from_secs(60)).stdout;
            assert_eq!(printed, expected, "{language:?}");
        }
    }
}
