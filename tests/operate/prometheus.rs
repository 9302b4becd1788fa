//! The text for Prometheus, judged by its own promtool; and the text for people.

use crate::support::*;
use std::io::Write;
use std::process::{Command, Stdio};

type Print =
    unsafe extern "C" fn(*mut sw_service, *mut std::ffi::c_char, usize, *mut usize) -> sw_status;

fn text(svc: &Svc, print: Print) -> String {
    let mut needed = 0;
    // SAFETY: the buffer is as large as said, or none.
    unsafe {
        assert_eq!(print(svc.raw(), std::ptr::null_mut(), 0, &mut needed), SW_OK);
        let mut buffer = vec![0u8; needed + 1_000];
        assert_eq!(print(svc.raw(), buffer.as_mut_ptr().cast(), buffer.len(), &mut needed), SW_OK);
        buffer.truncate(needed);
        String::from_utf8(buffer).unwrap()
    }
}

fn busy_service() -> Svc {
    let svc = Setup::manual(MS).shards(2).start();
    let log = Log::counting();
    for nth in 0..1_000 {
        let timer = svc.timer().shard(nth % 2).delay(u64::from(nth) * MS).log(log).start();
        if nth % 3 == 0 {
            assert_eq!(svc.cancel(timer), SW_OK);
        }
    }
    for _ in 0..60 {
        svc.advance(10 * MS);
        svc.poll_shard(0);
        svc.poll_shard(1);
    }
    svc
}

#[test]
fn promtool_finds_nothing_to_complain_of() {
    let svc = busy_service();
    let text = text(&svc, sw_stats_prometheus);
    let promtool = std::env::var("PROMTOOL").unwrap_or_else(|_| "promtool".into());
    let child = Command::new(&promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        let required = std::env::var("SHARDWHEEL_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "{promtool} is missing");
        return println!("SKIPPED: {promtool} is missing");
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}

#[test]
fn the_text_says_what_the_structs_say() {
    let svc = busy_service();
    let text = text(&svc, sw_stats_prometheus);
    let stats = svc.stats_of(1);
    let number = |name: &str| -> f64 {
        let start = format!("shardwheel_{name} ");
        let line = text.lines().find(|line| line.starts_with(&start));
        line.unwrap_or_else(|| panic!("{name} in {text}"))[start.len()..].parse().unwrap()
    };
    for (name, value) in [
        ("timers_pending", stats.pending),
        ("timers_started_total", stats.started),
        ("timers_cancelled_total", stats.cancelled),
        ("fired_total", stats.fired),
    ] {
        assert_eq!(number(&format!("{name}{{shard=\"1\"}}")), value as f64, "{name}");
    }
    let late = |what: &str| number(&format!("lateness_seconds_{what}"));
    assert_eq!(late("count{shard=\"1\"}"), stats.fired as f64);
    assert_eq!(late("bucket{shard=\"1\",le=\"+Inf\"}"), stats.fired as f64);
    let (mut last, mut buckets) = (0.0, 0);
    for line in text.lines().filter(|line| line.contains("lateness_seconds_bucket{shard=\"1\"")) {
        let count: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(count >= last, "cumulative: {line}");
        (last, buckets) = (count, buckets + 1);
    }
    assert_eq!(buckets, 14);
    // At most 9 ms late each; 2^24 ns are more than that.
    assert_eq!(late("bucket{shard=\"1\",le=\"0.016777215\"}"), stats.fired as f64);
    assert!(late("bucket{shard=\"1\",le=\"0.001048575\"}") < stats.fired as f64);
    assert!(late("sum{shard=\"1\"}") < stats.fired as f64 * 0.009);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split('{').next().unwrap();
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let typed = |name: &str| text.contains(&format!("\n# TYPE {name} "));
        let first = text.starts_with(&format!("# HELP {name} "));
        assert!(first || typed(name) || base.is_some_and(typed), "{line} has no type");
    }
}

#[test]
fn people_read_the_same() {
    let svc = busy_service();
    let report = text(&svc, sw_stats_report);
    let stats = svc.stats();
    assert!(report.contains(&format!("{} pending, {} at most", stats.pending, stats.high_water)));
    assert!(report.contains(&format!("{} started", stats.started)), "{report}");
    assert!(report.contains("\nall shards\n") && report.contains("\nshard 1\n"), "{report}");
    assert!(report.lines().all(|line| line.len() < 110), "{report}");
}

#[test]
fn rust_has_both_texts() {
    let service = shardwheel::Service::builder().driven().manual_clock().shards(1).build().unwrap();
    service.after_fn(std::time::Duration::from_secs(1), |_, _| {}, 7).unwrap();
    let text = service.prometheus().unwrap();
    assert!(text.contains("\nshardwheel_timers_pending{shard=\"0\"} 1\n"), "{text}");
    let report = service.report().unwrap();
    assert!(report.contains("1 pending") && !report.contains("\nshard 0\n"), "{report}");
    assert_eq!(service.shard(0).unwrap().details().unwrap().inbox_depth, 1);
    assert_eq!(service.details().unwrap().slots_retired, 0);
}
