//! Gaps: what no peer's suite looks at. Handles, arguments, clocks, processes. (Races: `gaps_races.rs`.)

use crate::g_cancel::unknown;
use crate::kit::*;
use crate::support::*;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

/// One slot over and over: a handle never comes back, and old ones stay stale.
fn generations(rounds: u64) {
    let s = Setup::manual(MS).max_timers(1).start();
    let log = Log::counting();
    let mut kept = Vec::new();
    for round in 0..rounds {
        let timer = s.start(HOUR, log);
        if round < 1000 || round % (rounds / 500) == 0 {
            for &old in &kept {
                assert_ne!(old, timer, "C7: in round {round}");
                assert_eq!(s.cancel(old), SW_NOT_FOUND);
            }
            assert_eq!(s.cancel_batch(&kept), Ok(0));
            assert_eq!(s.remaining(timer), Ok(HOUR), "the live one is untouched");
            kept.push(timer);
        }
        assert_eq!(s.cancel(timer), SW_OK);
        if round % 100 == 0 {
            assert_eq!(s.poll(), 0);
        }
    }
    assert!(s.stats().memory_bytes < 16 << 20, "C3: in bounded memory");
    assert_eq!((s.pending(), s.run(DAY), log.count()), (0, 0, 0));
}

/// A slot used 200,000 times.
#[test]
fn gap_01() {
    generations(200_000);
}

/// A slot used more often than it has generations (2^27): it is retired, not wrapped.
#[test]
#[ignore = "long: run with --ignored in release"]
fn gap_01_full() {
    generations((1 << 28) + (1 << 26));
}

/// Handles and shards that cannot be: refused or not found, no memory touched.
#[test]
fn gap_02() {
    for s in [Setup::manual(MS).shards(2).start(), Setup::threaded(2).start()] {
        let log = Log::new();
        let timer = s.start(HOUR, log);
        let shards =
            (0..64).map(|bit| timer | 1 << bit).chain((0..64).map(|bit| timer & !(1 << bit)));
        let wild = [0, u64::MAX, u64::MAX - 1, 1, 1 << 63, u64::MAX << 32, u64::MAX >> 32];
        for handle in wild.into_iter().chain(shards).filter(|&handle| handle != timer) {
            assert!(unknown(s.cancel(handle)), "{handle:#x}");
            assert!(unknown(s.cancel_wait(handle)), "{handle:#x}");
            assert!(unknown(s.reset(handle, 0)), "{handle:#x}");
            assert!(unknown(s.reset_at(handle, 0)), "{handle:#x}");
            assert!(unknown(s.remaining(handle).unwrap_err()), "{handle:#x}");
        }
        for shard in [2, 3, 255, 256, u32::MAX - 1] {
            let refused = Log::new();
            assert_eq!(s.timer().shard(shard).log(refused).try_start(), Err(SW_INVALID));
            assert_eq!(refused.dropped(), 1);
            for status in [
                s.try_poll(shard, 0).unwrap_err(),
                s.next_of(shard).unwrap_err(),
                s.fd_of(shard).unwrap_err(),
                s.attach(shard, SW_ATTACH_SHARED),
                s.detach(shard),
            ] {
                assert!(
                    [SW_INVALID, SW_UNSUPPORTED].contains(&status),
                    "shard {shard}: {status:?}"
                );
            }
        }
        assert_eq!((s.cancel(timer), s.pending(), log.count()), (SW_OK, 0, 0));
    }
}

/// A handle of one service given to another, alive or gone: it never reaches a timer there.
#[test]
fn gap_03() {
    let one = Setup::manual(MS).start();
    let two = Setup::manual(MS).start();
    let log = Log::counting();
    let foreign: Vec<_> = (0..1000).map(|_| one.start(HOUR, log)).collect();
    let own: Vec<_> = (0..1000).map(|_| two.start(HOUR, log)).collect();
    let gone = Setup::manual(MS).start();
    let stale: Vec<_> = (0..1000).map(|_| gone.start(HOUR, log)).collect();
    drop(gone);
    for &handle in foreign.iter().chain(&stale) {
        assert!(unknown(two.cancel(handle)) && unknown(two.reset(handle, 0)));
        assert!(unknown(two.remaining(handle).unwrap_err()));
    }
    assert_eq!((two.pending(), two.poll()), (1000, 0));
    assert_eq!(two.cancel_batch(&own), Ok(1000));
    assert_eq!(one.cancel_batch(&foreign), Ok(1000));
}

/// A CPU that is not there is an error at the start, not a thread that is not pinned.
#[test]
fn gap_09() {
    for cpu in [1023, 4096, u32::MAX] {
        let refused = Setup::threaded(1).pin_list(&[cpu]).try_start().err();
        assert!([Some(SW_SYSTEM), Some(SW_INVALID)].contains(&refused), "CPU {cpu}: {refused:?}");
        let refused = Setup::threaded(2).pin_list(&[0, cpu]).try_start().err();
        assert!([Some(SW_SYSTEM), Some(SW_INVALID)].contains(&refused), "CPU {cpu}: {refused:?}");
    }
    let s = Setup::threaded(3).start();
    for shard in 0..3 {
        let log = Log::new();
        s.timer().shard(shard).delay(MS).log(log).start();
        eventually("more shards than CPUs, and all of them work", || log.count() == 1);
    }
}

/// What the child of a fork finds of its parent's services; `Err` names the first surprise.
fn in_child(door: Door, timer: sw_timer, queue: Queue) -> Result<(), &'static str> {
    let log = Log::new();
    let check = |ok: bool, what: &'static str| if ok { Ok(()) } else { Err(what) };
    check(door.try_start(0, log) == Err(SW_FORKED), "start")?;
    check(door.timer().log(log).try_start() == Err(SW_FORKED), "start_spec")?;
    check(door.start_batch(&[door.timer().log(log).spec()]) == Err(SW_FORKED), "start_batch")?;
    check(log.dropped() == 2, "the drops of what was refused")?;
    check(door.cancel(timer) == SW_FORKED, "cancel")?;
    check(door.cancel_wait(timer) == SW_FORKED, "cancel_wait")?;
    check(door.cancel_batch(&[timer]) == Err(SW_FORKED), "cancel_batch")?;
    check(door.reset(timer, 0) == SW_FORKED, "reset")?;
    check(door.reset_at(timer, 0) == SW_FORKED, "reset_at")?;
    check(door.remaining(timer) == Err(SW_FORKED), "remaining")?;
    check(door.stop() == SW_FORKED, "stop")?;
    check(door.try_queue().err() == Some(SW_FORKED), "queue_new")?;
    check(queue.try_poll(1).err() == Some(SW_FORKED), "queue_poll")?;
    // SAFETY: refused, so nothing is freed.
    check(unsafe { sw_service_free(door.raw()) } == SW_FORKED, "free")?;
    let own = Setup::threaded(1).start();
    let fired = Log::new();
    own.start(MS, fired);
    eventually("the child's own service works", || fired.count() == 1);
    check(own.stop() == SW_OK, "the child's own stop")
}

/// A child process after a fork: every call on its parent's services is refused at once, its own
/// service works, and the parent goes on as if nothing had been.
#[test]
fn gap_10() {
    alone("gaps::gap_10", || {
        let (threaded, driven) = (Setup::threaded(2).start(), Setup::driven().start());
        let log = Log::new();
        for s in [&threaded, &driven] {
            let queue = s.queue();
            let timer = s.start(200 * MS, log);
            // SAFETY: the child uses the C library's heap, which a fork keeps in order, and ends
            // by `_exit`.
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child == 0 {
                let door = s.door();
                let body = AssertUnwindSafe(|| in_child(door, timer, queue));
                let found = catch_unwind(body);
                let code = match found {
                    Ok(Ok(())) => 0,
                    Ok(Err(what)) => {
                        eprintln!("in the child: {what}");
                        1
                    }
                    Err(_) => 2,
                };
                // SAFETY: ends the child without the parent's cleanups.
                unsafe { libc::_exit(code) };
            }
            let mut status = 0;
            // SAFETY: waits for the child above.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
        }
        eventually("the parent's timers fire", || {
            driven.poll();
            log.count() == 2
        });
    });
}

/// A Rust panic that reaches the C ABI ends the process loudly; it never goes on into C frames.
/// (The Rust API catches its closures' panics before that.)
#[test]
fn gap_11() {
    const MARK: &str = "SHARDWHEEL_TEST_PANICS";
    unsafe extern "C-unwind" fn panics(_ctx: *mut std::ffi::c_void, _expiry: *const sw_expiry) {
        panic!("out of a callback");
    }
    if let Some(mode) = std::env::var_os(MARK) {
        let s =
            if mode == "driven" { Setup::manual(MS).start() } else { Setup::threaded(1).start() };
        s.timer().with(|spec| spec.callback = Some(panics)).start();
        let crossed = catch_unwind(AssertUnwindSafe(|| {
            let _ = s.try_poll(0, 0);
            sleep_ms(2000);
        }));
        println!("still here, unwound: {}", crossed.is_err());
        return;
    }
    for mode in ["driven", "threaded"] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["gaps::gap_11", "--exact", "--test-threads=1", "--nocapture"])
            .env(MARK, mode)
            .output()
            .unwrap();
        let (text, signal) = (String::from_utf8_lossy(&output.stdout), output.status.signal());
        assert_eq!(signal, Some(libc::SIGABRT), "{mode}: {text}");
        assert!(!text.contains("still here"), "{mode}: {text}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("out of a callback"));
    }
}

/// The two real clocks go on as the system's do: what a suspended machine does to each is then the
/// system's to say. (Nothing here can suspend a machine.)
#[test]
fn gap_13() {
    for (clock, read) in [
        (SW_CLOCK_MONOTONIC as u32, mono as fn() -> u64),
        (SW_CLOCK_BOOTTIME as u32, boot as fn() -> u64),
    ] {
        let s = Setup::threaded(1).with(|config| config.clock = clock).start();
        let pair = || {
            let before = read();
            let now = s.now();
            (now, before, read())
        };
        let first = pair();
        assert!(measure(s.door(), 100 * MS) >= 100 * MS);
        let second = pair();
        let went = second.0 - first.0;
        assert!((second.1 - first.2..=second.2 - first.1 + MS).contains(&went), "{went}");
    }
}

/// Bytes of a struct with room behind it, as a program built with a newer header has it.
#[repr(C)]
struct Newer<T> {
    known: T,
    more: [u8; 32],
}

/// A size of today is accepted, 0 and a smaller one are refused, a larger one is accepted as long
/// as what it adds is zero.
#[test]
fn gap_14() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let base = s.timer().delay(MS).log(log).spec();
    let start = |size: usize, more: u8| {
        let mut spec = Newer { known: base, more: [0; 32] };
        spec.known.size = size;
        spec.more[31] = more;
        s.start_spec(&spec.known)
    };
    let today = size_of::<sw_timer_spec>();
    assert!(start(today, 0).is_ok());
    assert!(start(today, 1).is_ok(), "what is behind the size is not looked at");
    assert!(start(today + 32, 0).is_ok());
    assert_eq!(start(today + 32, 1), Err(SW_INVALID));
    for size in [0, 1, 8, today - 8, today - 1] {
        assert_eq!(start(size, 0), Err(SW_INVALID), "size {size}");
    }
    assert_eq!(s.run(MS), 3);
    let today = size_of::<sw_config>();
    for (size, more, good) in [
        (today, 0, true),
        (today + 32, 0, true),
        (today + 32, 1, false),
        (0, 0, false),
        (today - 1, 0, false),
        (8, 0, false),
    ] {
        let mut config = std::mem::MaybeUninit::<Newer<sw_config>>::zeroed();
        // SAFETY: zeros are a value of every field, and init writes all of `known`.
        let mut config = unsafe {
            sw_config_init(config.as_mut_ptr().cast());
            config.assume_init()
        };
        config.known.size = size;
        config.known.shards = 1;
        config.known.mode = SW_MODE_DRIVEN as u32;
        config.more[0] = more;
        let mut service = std::ptr::null_mut();
        // SAFETY: as many bytes as `size` says are there.
        let status = unsafe { sw_service_start(&raw const config.known, &mut service) };
        assert_eq!(status, if good { SW_OK } else { SW_INVALID }, "size {size}, more {more}");
        // SAFETY: started above, or null.
        assert_eq!(unsafe { sw_service_free(service) }, SW_OK);
    }
    let today = size_of::<sw_stats>();
    for (size, good) in [(today, true), (today + 32, true), (0, false), (today - 8, false)] {
        // SAFETY: plain numbers.
        let mut stats: Newer<sw_stats> = unsafe { std::mem::zeroed() };
        stats.known.size = size;
        // SAFETY: as many bytes as `size` says are there.
        let status = unsafe { sw_stats_read(s.raw(), SW_SHARD_ANY, &raw mut stats.known) };
        assert_eq!(status, if good { SW_OK } else { SW_INVALID }, "size {size}");
        assert_eq!(stats.known.started, if good { 3 } else { 0 });
    }
}
