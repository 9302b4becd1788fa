//! Faults: what the system, the host or its threads do, and what the service makes of it.
//!
//! Elsewhere: callbacks that panic (`tests/rust_api/panics.rs`) and throw (`tests/c_abi.rs`), memory that
//! is not there (`tests/no_memory`), a shard that is blocked (`stuck.rs`, contract F7 and S7), room that is
//! used up and made again and again (cases `netty_09`, `odp_07`), fork, and the end of the process with
//! timers pending (`tests/c_abi.rs`).

use crate::support::*;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What the process has from the allocator. (The resident set would tell of holes between what the test
/// itself keeps, too.)
fn allocated_bytes() -> u64 {
    // SAFETY: no arguments.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

// -------------------------------------------------------------- SIGSTOP

/// The process that is stopped for a second: nothing is lost or invented over the pause.
#[test]
#[ignore = "runs in a process of its own, as a part of the next test"]
fn is_stopped_for_a_second() {
    if std::env::var_os("SHARDWHEEL_STOP_ME").is_none() {
        return;
    }
    let svc = Setup::threaded(2).start();
    let (once, every, all) = (Log::new(), Log::new(), Log::counting());
    let begin = svc.now();
    for nth in 0..3_000u64 {
        svc.timer().shard(nth as u32 % 2).delay(nth * MS).log(once).start();
    }
    let periodic = svc.timer().shard(0).delay(10 * MS).period(10 * MS).log(every).start();
    let burst = svc.timer().delay(10 * MS).period(10 * MS).flags(SW_TIMER_BURST).log(all).start();
    println!("stop me");
    eventually("all have fired", || once.count() == 3_000);
    assert_eq!((svc.cancel(periodic), svc.cancel(burst)), (SW_OK, SW_OK));
    let points = (svc.now() - begin) / (10 * MS);
    let fires = once.fires();
    let gap = fires.windows(2).map(|pair| pair[1].now.saturating_sub(pair[0].now)).max().unwrap();
    assert!(gap > 800 * MS, "it was stopped: {gap}");
    assert!(fires.iter().all(|fire| fire.now >= fire.deadline), "none is early");
    // The grid goes on where it was: each point was served or missed, none twice.
    let served: u64 = every.fires().iter().map(|fire| 1 + fire.missed).sum();
    assert!(served + 1 >= points.min(served + 1) && served <= points + 1, "{served} of {points}");
    let last = every.last();
    assert_eq!(
        served,
        (last.deadline - every.fires()[0].deadline) / (10 * MS) + 1 + every.fires()[0].missed
    );
    assert!(every.missed() > 80, "a second is 100 periods: {}", every.missed());
    assert!(all.count() <= points + 1 && all.missed() == 0, "each one served: {}", all.count());
    println!("well");
}

#[test]
fn a_process_that_is_stopped_for_a_second_goes_on() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["faults::is_stopped_for_a_second", "--exact", "--ignored", "--nocapture"])
        .env("SHARDWHEEL_STOP_ME", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id() as i32;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.ends_with("stop me")));
    std::thread::sleep(Duration::from_millis(700));
    // SAFETY: our own child.
    unsafe {
        libc::kill(pid, libc::SIGSTOP);
        std::thread::sleep(Duration::from_secs(1));
        libc::kill(pid, libc::SIGCONT);
    }
    let well = lines.any(|line| line == "well");
    assert!(child.wait().unwrap().success() && well);
}

// -------------------------------------------------------------- signals

static HANDLED: AtomicU64 = AtomicU64::new(0);
const SIGNALS: [libc::c_int; 4] = [libc::SIGUSR1, libc::SIGTERM, libc::SIGHUP, libc::SIGALRM];

extern "C" fn handle(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

/// In a process whose other threads are wheels: while its first thread blocks the signals, only a wheel could
/// handle them.
fn the_wheels_are_deaf() {
    let svc = Setup::threaded(2).start();
    let log = Log::counting();
    for shard in 0..2 {
        svc.timer().shard(shard).delay(MS).period(MS).log(log).start();
    }
    eventually("both are at work", || (0..2).all(|shard| svc.stats_of(shard).fired > 0));
    // SAFETY: a handler that does nothing but count; signals to this process; plain sets.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        let mut blocked = std::mem::zeroed();
        for signal in SIGNALS {
            libc::sigaction(signal, &action, std::ptr::null_mut());
            libc::sigaddset(&mut blocked, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, std::ptr::null_mut());
        for nth in 0..400 {
            libc::kill(libc::getpid(), SIGNALS[nth % 4]);
            std::thread::sleep(Duration::from_micros(200));
        }
        let fired = log.count();
        eventually("the wheels go on", || log.count() > fired + 10);
        assert_eq!(HANDLED.load(Ordering::SeqCst), 0, "on a wheel's thread");
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &blocked, std::ptr::null_mut());
    }
    assert_eq!(HANDLED.load(Ordering::SeqCst), 4, "one of each was waiting for this thread");
}

#[test]
fn signals_to_the_process_are_not_handled_on_a_wheels_thread() {
    alone("faults::signals_to_the_process_are_not_handled_on_a_wheels_thread", || {
        // SAFETY: the child has this thread alone, and ends without a word to what it shares.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(std::panic::catch_unwind(the_wheels_are_deaf).is_err().into());
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            status
        };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:x}");
    });
}

// -------------------------------------------------------------- limits

fn limit(resource: libc::__rlimit_resource_t, soft: u64) {
    // SAFETY: the limit is readable and writable.
    unsafe {
        let mut limit = std::mem::zeroed::<libc::rlimit>();
        libc::getrlimit(resource, &mut limit);
        limit.rlim_cur = soft.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(resource, &limit), 0);
    }
}

fn refused(setup: Setup, errno: i32) {
    let (tasks_before, open) = (tasks().len(), open_descriptors());
    assert_eq!(setup.try_start().err(), Some(SW_SYSTEM));
    let said = std::io::Error::last_os_error().raw_os_error();
    assert_eq!(said, Some(errno), "errno says why");
    assert_eq!(open_descriptors(), open, "no descriptor is left");
    eventually("no thread is left", || tasks().len() == tasks_before);
}

#[test]
fn threads_that_the_system_refuses_are_a_clear_error() {
    alone("faults::threads_that_the_system_refuses_are_a_clear_error", || {
        // The superuser is not bound by the limit.
        // SAFETY: of this process alone, which is made for the test.
        let refused_to_change = unsafe { libc::geteuid() == 0 && libc::setuid(54_321) != 0 };
        assert!(!refused_to_change);
        limit(libc::RLIMIT_NPROC, tasks().len() as u64 + 2);
        for _ in 0..3 {
            refused(Setup::threaded(8).pin_none(), libc::EAGAIN);
        }
        let svc = Setup::threaded(1).start();
        let log = Log::counting();
        svc.start(MS, log);
        eventually("a smaller one works", || log.count() == 1);
    });
}

#[test]
fn descriptors_that_the_system_refuses_are_a_clear_error() {
    alone("faults::descriptors_that_the_system_refuses_are_a_clear_error", || {
        let svc = Setup::driven().start();
        let queue = svc.queue();
        let (open, before) = (open_descriptors(), tasks().len());
        limit(libc::RLIMIT_NOFILE, 3);
        // SAFETY: the queue lives; `fd` is writable.
        let queue_fd = || unsafe {
            let mut fd = 77;
            (sw_queue_fd(queue.raw(), &mut fd), fd)
        };
        assert_eq!(queue_fd(), (SW_SYSTEM, 77));
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EMFILE));
        assert_eq!(svc.fd_of(0), Err(SW_SYSTEM));
        // A service on the boot-time clock sleeps on descriptors.
        let setup = || Setup::threaded(4).with(|config| config.clock = SW_CLOCK_BOOTTIME as u32);
        assert_eq!(setup().try_start().err(), Some(SW_SYSTEM));
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EMFILE));
        limit(libc::RLIMIT_NOFILE, 1_000);
        eventually("no thread is left", || tasks().len() == before);
        assert_eq!(open_descriptors(), open, "none is left open");
        assert_eq!(queue_fd().0, SW_OK);
        assert!(svc.fd_of(0).is_ok());
        setup().start();
    });
}

// -------------------------------------------------------------- comings and goings

/// Short threads that hold slots when they end; memory stays what it was.
fn short_threads(count: u64) {
    let svc = Setup::threaded(1).start();
    let (door, log) = (svc.door(), Log::counting());
    let brief = move || {
        let timers: Vec<_> = (0..70).map(|_| door.start(HOUR, log)).collect();
        timers.iter().for_each(|&timer| assert_eq!(door.cancel(timer), SW_OK));
    };
    let rounds = |count: u64| {
        for _ in 0..count / 4 {
            let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(brief)).collect();
            // A scope alone would not wait until they have given back what they hold.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    };
    rounds(200);
    let (counted, resident) = (svc.stats().memory_bytes, rss_bytes());
    rounds(count);
    let (after, now) = (svc.stats().memory_bytes, rss_bytes());
    assert!(after <= counted + (256 << 10), "{counted} to {after} counted");
    assert!(now <= resident + (16 << 20), "{resident} to {now} resident");
    assert_eq!(svc.pending(), 0);
}

#[test]
fn threads_that_end_with_slots_in_hand() {
    alone("faults::threads_that_end_with_slots_in_hand", || short_threads(2_000));
}

#[test]
#[ignore = "100,000 threads"]
fn a_hundred_thousand_threads_that_end_with_slots_in_hand() {
    let name = "faults::a_hundred_thousand_threads_that_end_with_slots_in_hand";
    alone(name, || short_threads(100_000));
}

/// Services that start and stop with timers in flight: each timer is fired or handed back.
fn cycles(count: u64) {
    let cycle = |nth: u64| {
        let setup = if nth.is_multiple_of(2) { Setup::threaded(1) } else { Setup::driven() };
        let svc = setup.pin_none().start();
        let log = Log::counting();
        for delay in [0, 0, US, 100 * US, MS, HOUR] {
            svc.start(delay, log);
        }
        if !nth.is_multiple_of(2) {
            svc.poll();
        }
        let unfired = svc.stop_into().unwrap();
        assert_eq!(log.count() + unfired.len() as u64, 6);
    };
    (0..200).for_each(cycle);
    let (open, threads, used) = (open_descriptors(), tasks().len(), allocated_bytes());
    (0..count).for_each(cycle);
    // What the test itself keeps of each service until the end is less than half a kilobyte.
    let now = allocated_bytes();
    assert!(now <= used + (1 << 20) + count * 512, "{used} to {now}");
    eventually("no thread is left", || tasks().len() <= threads);
    assert!(open_descriptors() <= open);
}

#[test]
fn services_that_come_and_go() {
    alone("faults::services_that_come_and_go", || cycles(1_000));
}

#[test]
#[ignore = "100,000 services"]
fn a_hundred_thousand_services_that_come_and_go() {
    alone("faults::a_hundred_thousand_services_that_come_and_go", || cycles(100_000));
}
