//! R. Configuration and arguments.

use crate::g_cancel::unknown;
use crate::kit::*;
use crate::support::*;
use std::ffi::CStr;

/// What a service was asked for is what it is; what was left alone has its default.
#[test]
fn agrona_02() {
    let s = Setup::manual(16 * MS).shards(8).max_timers(3).start();
    assert_eq!((s.shard_count(), s.now()), (8, 0));
    let log = Log::new();
    s.timer().delay(1).shard(7).log(log).start();
    s.advance(16 * MS - 1);
    assert_eq!(s.poll_shard(7), 0);
    s.advance(1);
    assert_eq!(s.poll_shard(7), 1);
    let mut config = std::mem::MaybeUninit::<sw_config>::zeroed();
    // SAFETY: writable, and all of it is written.
    let config = unsafe {
        sw_config_init(config.as_mut_ptr());
        config.assume_init()
    };
    assert_eq!(config.size, size_of::<sw_config>());
    assert_eq!((config.mode, config.clock, config.pinning), (0, 0, 0));
    assert_eq!((config.shards, config.tick_ns, config.max_timers), (0, 0, 0));
    assert!(config.thread_name.is_null() && config.on_slow_callback.is_none());
}

/// The tick is the one asked for, 0 picks the default, and the version says what the package says.
#[test]
fn wahern_01() {
    for (asked, tick) in [(1000, 1000), (0, MS), (HOUR, HOUR)] {
        let s = Setup::manual(asked).start();
        s.start(1, Log::new());
        assert_eq!((s.run(tick - 1), s.run(1)), (0, 1), "tick {asked}");
    }
    for wrong in [1, 999, HOUR + 1, u64::MAX] {
        assert_eq!(Setup::manual(wrong).try_start().err(), Some(SW_INVALID), "tick {wrong}");
    }
    // SAFETY: static text.
    let version = unsafe { CStr::from_ptr(sw_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

/// Ticks that do not divide a millisecond: delays of whole milliseconds come, none early.
#[test]
fn tt_01() {
    for tick in [100 * US, 300 * US, 7 * US, 1_000_003] {
        let s = Setup::threaded(1).tick(tick).start();
        for delay in [MS, 10 * MS] {
            let took = measure(s.door(), delay);
            assert!((delay..delay + SEC).contains(&took), "tick {tick}: {took}");
        }
    }
}

/// A period of 0 is refused, and so are flags for periodic timers without one; a reset does not
/// change a period, so it cannot bring one of 0 in.
#[test]
fn tokio_57() {
    let s = Setup::manual(MS).start();
    let mut timer = 7;
    // SAFETY: the service and the log are alive.
    let status = unsafe {
        sw_timer_start_every(s.raw(), 0, Some(Log::callback), Log::new().ctx(), &mut timer)
    };
    assert_eq!((status, timer), (SW_INVALID, 7));
    for flags in [SW_TIMER_FIXED_DELAY, SW_TIMER_BURST, SW_TIMER_ABSOLUTE | SW_TIMER_BURST] {
        let log = Log::new();
        let refused = s.timer().delay(MS).flags(flags).log(log).try_start();
        assert_eq!((refused, log.dropped()), (Err(SW_INVALID), 1));
    }
    let both = SW_TIMER_FIXED_DELAY | SW_TIMER_BURST;
    let refused = s.timer().period(MS).flags(both).log(Log::new()).try_start();
    assert_eq!(refused, Err(SW_INVALID));
    assert_eq!((s.pending(), s.run(DAY)), (0, 0));
    let log = Log::new();
    let ticker = s.start_every(10 * MS, log);
    assert_eq!(s.reset(ticker, 0), SW_OK);
    assert_eq!((s.poll(), s.poll(), s.run(10 * MS)), (1, 0, 1));
}

/// Every call on a handle of zeros has an answer and does no harm.
#[test]
fn go_14() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    s.start(MS, log);
    let none = SW_TIMER_NONE;
    assert!(unknown(s.reset(none, MS)) && unknown(s.reset_at(none, MS)));
    assert!(unknown(s.cancel(none)) && unknown(s.cancel_wait(none)));
    assert!(unknown(s.remaining(none).unwrap_err()));
    assert!(matches!(s.cancel_batch(&[none]), Ok(0) | Err(SW_INVALID)));
    assert_eq!((s.run(MS), log.count()), (1, 1));
}
