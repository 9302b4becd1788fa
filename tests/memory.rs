//! What a pending timer costs, as the operating system sees it and as the service counts it.
//!
//! Each measurement runs in a process of its own: resident memory (from /proc/self/statm) after the
//! timers have been started, less that of a service which has had some timers before.

#[path = "support/mod.rs"]
mod support;

use std::time::Duration;
use support::*;

/// The most that a plain pending timer may cost.
const LIMIT: f64 = 56.0;

/// What has grown by how much for each timer: resident, and by the service's own count.
struct Cost {
    resident: f64,
    counted: f64,
}

/// Starts so many plain timers within `spread` after an hour from now; `turn` lets the shard work.
fn cost(svc: &Svc, count: u64, spread: u64, turn: impl Fn()) -> Cost {
    let log = Log::counting();
    // Without a pattern, and without handles to keep.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut delay = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        HOUR + (random >> 1) % spread
    };
    let warm: Vec<_> = (0..1_000).map(|_| svc.start(delay(), log)).collect();
    turn();
    for timer in warm {
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    turn();
    let before = (rss_bytes(), svc.stats().memory_bytes);
    for nth in 0..count {
        svc.start(delay(), log);
        if nth % 100_000 == 0 {
            turn();
        }
    }
    turn();
    let after = (rss_bytes(), svc.stats().memory_bytes);
    assert_eq!(svc.pending(), count);
    let each = |before: u64, after: u64| (after as f64 - before as f64) / count as f64;
    Cost { resident: each(before.0, after.0), counted: each(before.1, after.1) }
}

/// Measures in a process of its own, where no memory of an earlier measurement is left; prints what
/// it found.
fn measure(test: &str, count: u64, spread: u64, start: impl FnOnce() -> Svc, turn: impl Fn(Door)) {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memory-{test}"));
    let mut text = None;
    alone(test, || {
        let svc = start();
        let door = svc.door();
        let Cost { resident, counted } = cost(&svc, count, spread, || turn(door));
        let found =
            format!("{test}: {count} timers, {resident:.1} bytes each, {counted:.1} counted");
        std::fs::write(&file, &found).unwrap();
        assert!(resident <= LIMIT, "{found}");
        assert!((counted - resident).abs() <= 0.2 * resident, "{found}");
        text = Some(found);
    });
    println!("{}", text.unwrap_or_else(|| std::fs::read_to_string(&file).unwrap()));
}

fn from_another_thread(test: &str, count: u64, spread: u64) {
    let settle = |_: Door| std::thread::sleep(Duration::from_millis(20));
    measure(test, count, spread, || Setup::threaded(1).start(), settle);
}

fn by_an_exclusive_owner(test: &str, count: u64, spread: u64) {
    let start = || {
        let svc = Setup::driven().start();
        assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
        svc
    };
    measure(test, count, spread, start, |door| assert_eq!(door.poll(), 0));
}

#[test]
fn a_million_from_another_thread() {
    from_another_thread("a_million_from_another_thread", 1_000_000, 8 * HOUR);
}

#[test]
fn a_million_from_another_thread_for_one_instant() {
    from_another_thread("a_million_from_another_thread_for_one_instant", 1_000_000, 50 * MS);
}

#[test]
fn a_million_by_an_exclusive_owner() {
    by_an_exclusive_owner("a_million_by_an_exclusive_owner", 1_000_000, 8 * HOUR);
}

#[test]
fn a_million_by_an_exclusive_owner_for_one_instant() {
    by_an_exclusive_owner("a_million_by_an_exclusive_owner_for_one_instant", 1_000_000, 50 * MS);
}

#[test]
#[ignore = "200 MB and half a minute"]
fn five_million_from_another_thread() {
    from_another_thread("five_million_from_another_thread", 5_000_000, 8 * HOUR);
}

#[test]
#[ignore = "200 MB and half a minute"]
fn five_million_by_an_exclusive_owner() {
    by_an_exclusive_owner("five_million_by_an_exclusive_owner", 5_000_000, 8 * HOUR);
}
