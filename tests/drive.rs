//! The main example, run as its users run it: a small load of each kind must end with a good
//! verdict, and a falsified ledger with a bad one.
#![cfg(all(feature = "capi", not(loom)))]

#[path = "support/example.rs"]
mod example;

use example::in_package;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

fn drive(arguments: &[&str]) -> Output {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    Command::new(BUILT.get_or_init(|| example::built("drive")))
        .args(arguments)
        .output()
        .expect("the example runs")
}

/// Runs with `--json`; answers the exit code and the report.
fn report(arguments: &[&str]) -> (i32, Value) {
    let output = drive(&[arguments, &["--json"]].concat());
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("not one JSON object ({error}): {output:?}"));
    (output.status.code().expect("it was not killed"), report)
}

fn number(report: &Value, at: &str) -> u64 {
    let value = report.pointer(at).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no number at {at} in {report:#}"))
}

fn good(arguments: &[&str]) -> Value {
    let (code, report) = report(arguments);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["verdict"]["ok"], true, "{report:#}");
    assert_eq!(number(&report, "/books/started/ledger"), number(&report, "/books/started/library"));
    assert!(number(&report, "/books/callbacks_run/ledger") > 0, "{report:#}");
    let late = number(&report, "/lateness/count") + number(&report, "/lateness_filling/count");
    assert_eq!(late, number(&report, "/books/callbacks_run/ledger"), "{report:#}");
    report
}

fn profile(name: &str) -> Value {
    let report = good(&["--timers", "20000", "--seconds", "2", "--profile", name]);
    assert!(number(&report, "/books/cancelled/ledger") > 0, "{report:#}");
    assert!(number(&report, "/steady/pushed_out/count") > 0, "{report:#}");
    assert!(number(&report, "/held/least") > 18_000, "{report:#}");
    report
}

#[test]
fn a_proxy_is_served() {
    profile("proxy");
}

#[test]
fn rpc_calls_are_served_and_retried() {
    let report = profile("rpc");
    assert!(number(&report, "/rearmed") > 0, "{report:#}");
}

#[test]
fn a_game_is_served_and_ticks() {
    let report = profile("game");
    let ended = number(&report, "/books/ended_by_firing/ledger");
    assert!(number(&report, "/books/callbacks_run/ledger") > ended, "{report:#}");
}

#[test]
fn odd_numbers_of_threads_are_served() {
    let odd = ["--timers", "10007", "--seconds", "1", "--shards", "3", "--producers", "2"];
    let report = good(&[&odd[..], &["--tick", "250us"]].concat());
    assert_eq!(report["lateness_by_shard"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_trace_is_replayed() {
    let trace = in_package("examples/drive/sample.trace");
    let trace = trace.to_str().expect("a path in UTF-8");
    for speed in ["1", "4"] {
        let report = good(&["--trace", trace, "--speed", speed]);
        assert_eq!(number(&report, "/books/started/ledger"), 22);
        // The session, and nothing else, outlives the trace.
        assert_eq!(number(&report, "/books/handed_back_by_stop/ledger"), 1, "{report:#}");
    }
}

#[test]
fn a_bad_trace_is_refused_by_line() {
    let output = drive(&["--trace", in_package("Cargo.toml").to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("line 1"), "{text}");
}

#[test]
fn the_report_is_readable() {
    let output = drive(&["--timers", "5000", "--seconds", "1.2"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in ["pending", "Lateness of", "Summary", "Books", "Verdict: OK"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

const FALSIFIED: [&str; 5] = ["--timers", "20000", "--seconds", "2", "--sabotage"];

/// The verdict can fail, and says why: this fault once, and no other.
fn falsified(kind: &str, field: &str) {
    let (code, report) = report(&[&FALSIFIED[..], &[kind]].concat());
    assert_eq!(code, 1, "{report:#}");
    assert_eq!(report["verdict"]["ok"], false, "{report:#}");
    for fault in ["early", "lost", "twice"] {
        let expected = u64::from(fault == field);
        assert_eq!(number(&report, &format!("/verdict/{fault}")), expected, "{report:#}");
    }
}

#[test]
fn an_early_timer_fails_the_run() {
    falsified("early", "early");
}

#[test]
fn a_lost_timer_fails_the_run() {
    falsified("lost", "lost");
}

#[test]
fn a_timer_that_fires_twice_fails_the_run() {
    falsified("double", "twice");
}

#[test]
fn a_failed_run_says_so_in_words() {
    let output = drive(&[&FALSIFIED[..], &["double"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("Verdict: FAILED"), "{text}");
    assert!(text.contains("0 early, 0 lost, 1 fired twice"), "{text}");
}

fn soak(more: &[&str]) -> (i32, Value) {
    report(&[&["--soak", "--timers", "20000", "--rate", "5000", "--seconds", "4"], more].concat())
}

#[test]
fn a_soak_is_judged_in_thirds() {
    let (code, report) = soak(&[]);
    assert_eq!(report["soak"]["thirds"].as_array().map(Vec::len), Some(3), "{report:#}");
    // Three storms of 20,000 beside the load.
    assert!(number(&report, "/books/started/library") > 80_000, "{report:#}");
    for line in report["books"].as_object().unwrap().values() {
        assert_eq!(line["ledger"], line["library"], "{report:#}");
    }
    // In thirds of two seconds a busy machine's lateness may well differ; memory may not.
    let complaints = report["soak"]["complaints"].as_array().unwrap();
    let of_memory = |said: &&Value| !said.as_str().unwrap().contains("lateness");
    assert_eq!(complaints.iter().find(of_memory), None, "{report:#}");
    assert_eq!(code == 0, complaints.is_empty(), "{report:#}");
}

#[test]
fn a_soak_that_drifts_fails() {
    for (what, complaint) in [("leak", "memory grew"), ("drift", "lateness at quantile")] {
        let (code, report) = soak(&["--sabotage", what]);
        assert_eq!(code, 1, "{report:#}");
        let said = report["soak"]["complaints"].to_string();
        assert!(said.contains(complaint), "{said}");
    }
}
