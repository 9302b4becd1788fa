//! S1: the service's threads.

use crate::support::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A field of `/proc/self/task/<tid>/status`.
fn status_field(tid: i32, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line[field.len()..].trim_start_matches(':').trim().to_string()
}

/// The CPUs that a thread may run on.
fn cpus_of(tid: i32) -> Vec<u32> {
    let mut cpus = Vec::new();
    for range in status_field(tid, "Cpus_allowed_list").split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u32>().unwrap()..=last.parse().unwrap());
    }
    cpus
}

/// Restricts this process, every thread of it, to one CPU.
fn restrict_to(cpu: u32) {
    for (thread, _) in tasks() {
        // SAFETY: a zeroed set is an empty one; it is as large as said.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu as usize, &mut set);
            assert_eq!(libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set), 0);
        }
    }
}

/// The thread of this name.
fn named(name: &str) -> i32 {
    within(Duration::from_secs(5), name, || task_named(name).is_some());
    task_named(name).unwrap()
}

/// Threads of this process whose name begins so.
fn count_named(prefix: &str) -> usize {
    tasks().iter().filter(|(_, name)| name.starts_with(prefix)).count()
}

/// None is left (one that has been joined may stay listed for a moment).
fn none_named(prefix: &str) {
    within(Duration::from_secs(2), "threads are left behind", || count_named(prefix) == 0);
}

#[test]
fn s1_one_thread_for_each_shard_with_its_name() {
    let svc = Setup::threaded(3).name("s1names").start();
    for shard in 0..3 {
        named(&format!("s1names-{shard}"));
    }
    assert_eq!(count_named("s1names"), 3);
    // Callbacks run there.
    for shard in 0..3 {
        let (told, hear) = std::sync::mpsc::channel();
        svc.timer().shard(shard).run(move |_| told.send(tid()).unwrap()).start();
        assert_eq!(hear.recv().unwrap(), named(&format!("s1names-{shard}")));
    }
    assert_eq!(svc.stop(), SW_OK);
    none_named("s1names");
}

#[test]
fn s1_names_by_default_and_cut() {
    alone("threads::s1_names_by_default_and_cut", || {
        let svc = Setup::threaded(2).start();
        named("wheel-0");
        named("wheel-1");
        drop(svc);
        let _svc = Setup::threaded(11).pin_none().name("thirteenchars").start();
        // 15 bytes and no more.
        named("thirteenchars-0");
        named("thirteenchars-9");
        named("thirteenchars-1");
        let _long = Setup::threaded(1).name("far-too-long-a-prefix").start();
        named("far-too-long-a-");
    });
}

#[test]
fn s1_pinned_automatically_to_the_allowed_cpus_in_turn() {
    alone("threads::s1_pinned_automatically_to_the_allowed_cpus_in_turn", || {
        let allowed = cpus_of(tid());
        let svc = Setup::threaded(2 * allowed.len() as u32 + 1).name("auto").start();
        for shard in 0..svc.shard_count() as usize {
            let cpus = cpus_of(named(&format!("auto-{shard}")));
            assert_eq!(cpus, [allowed[shard % allowed.len()]], "shard {shard}");
        }
        assert_eq!(cpus_of(tid()), allowed, "the caller's own affinity is untouched");
        drop(svc);
        // Only CPUs in the process's mask.
        let last = *allowed.last().unwrap();
        restrict_to(last);
        let svc = Setup::threaded(3).name("auto").start();
        for shard in 0..3 {
            assert_eq!(cpus_of(named(&format!("auto-{shard}"))), [last]);
        }
        drop(svc);
        // No number given: one shard for each CPU that the process may use.
        assert_eq!(Setup::threaded(0).start().shard_count(), 1);
    });
}

#[test]
fn s1_no_number_of_shards_means_one_for_each_cpu() {
    let cpus = cpus_of(tid()).len() as u32;
    assert_eq!(Setup::threaded(0).start().shard_count(), cpus.min(256));
    assert_eq!(Setup::driven().shards(0).start().shard_count(), cpus.min(256));
    assert_eq!(Setup::threaded(5).start().shard_count(), 5);
}

#[test]
fn s1_pinned_as_listed() {
    let allowed = cpus_of(tid());
    let list: Vec<u32> = allowed.iter().rev().copied().collect();
    let svc = Setup::threaded(4).pin_list(&list).name("listed").start();
    for shard in 0..4 {
        let cpus = cpus_of(named(&format!("listed-{shard}")));
        assert_eq!(cpus, [list[shard % list.len()]], "shard {shard}");
    }
    drop(svc);
    let svc = Setup::threaded(2).pin_list(&allowed[..1]).name("listed").start();
    for shard in 0..2 {
        assert_eq!(cpus_of(named(&format!("listed-{shard}"))), [allowed[0]]);
    }
    drop(svc);
}

#[test]
fn s1_not_pinned_when_not_asked() {
    let svc = Setup::threaded(2).pin_none().name("unpinned").start();
    for shard in 0..2 {
        assert_eq!(cpus_of(named(&format!("unpinned-{shard}"))), cpus_of(tid()));
    }
    drop(svc);
}

#[test]
fn s1_a_pin_that_the_system_refuses_is_an_error() {
    // A CPU far beyond those there are, alone and behind a good one.
    let good = cpus_of(tid())[0];
    for bad in [1_000, 1_023] {
        for list in [vec![bad], vec![good, bad]] {
            let started = Setup::threaded(2).pin_list(&list).name("refused").try_start();
            // What errno says is looked at before anything else can change it.
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap();
            assert_eq!(started.err(), Some(SW_SYSTEM), "{list:?}");
            assert_eq!(errno, libc::EINVAL, "{list:?}");
            none_named("refused");
        }
    }
    // Numbers that no system has.
    for bad in [1_024, 5_000, 1 << 20, u32::MAX] {
        let started = Setup::threaded(2).pin_list(&[good, bad]).name("refused").try_start();
        assert!(matches!(started.err(), Some(SW_SYSTEM | SW_INVALID)), "{bad}");
        none_named("refused");
    }
    // One shard does not come to the bad entry.
    drop(Setup::threaded(1).pin_list(&[good, 1_000]).start());
}

#[test]
fn s1_all_signals_are_blocked() {
    let svc = Setup::threaded(2).name("signals").start();
    // All but those that cannot be blocked: 9, 19, and the C library's own 32, 33.
    let cannot: u64 = (1 << 8) | (1 << 18) | (1 << 31) | (1 << 32);
    for shard in 0..2 {
        let mask = status_field(named(&format!("signals-{shard}")), "SigBlk");
        let mask = u64::from_str_radix(&mask, 16).unwrap();
        assert_eq!(mask | cannot, u64::MAX, "not blocked: {:x}", !mask & !cannot);
    }
    drop(svc);
}

#[test]
fn s1_hooks_run_on_the_thread_once_it_is_pinned_and_named() {
    type Seen = Arc<Mutex<Vec<(u32, i32, String, Vec<u32>)>>>;
    let (started, stopped) = (Seen::default(), Arc::new(Mutex::new(Vec::new())));
    let (start, stop) = (started.clone(), stopped.clone());
    let allowed = cpus_of(tid());
    let svc = Setup::threaded(2)
        .name("hooked")
        .pin_list(&allowed[..1])
        .on_thread_start(move |shard| {
            let name = status_field(tid(), "Name");
            start.lock().unwrap().push((shard, tid(), name, cpus_of(tid())));
        })
        .on_thread_stop(move |shard| stop.lock().unwrap().push((shard, tid())))
        .start();
    eventually("both began", || started.lock().unwrap().len() == 2);
    for (shard, thread, name, cpus) in started.lock().unwrap().iter() {
        assert_eq!(*name, format!("hooked-{shard}"));
        assert_eq!(*thread, named(name));
        assert_eq!(*cpus, allowed[..1]);
    }
    assert!(stopped.lock().unwrap().is_empty());
    assert_eq!(svc.stop(), SW_OK);
    let mut begun: Vec<_> = started.lock().unwrap().iter().map(|seen| (seen.0, seen.1)).collect();
    let mut ended = stopped.lock().unwrap().clone();
    begun.sort_unstable();
    ended.sort_unstable();
    assert_eq!(begun, ended, "once each, on the same threads");
    assert_eq!((ended[0].0, ended[1].0), (0, 1));
}

#[test]
fn s1_a_start_hook_runs_before_any_callback_of_its_shard() {
    let begun = Arc::new(AtomicU64::new(0));
    let hook = begun.clone();
    let svc = Setup::threaded(1)
        .on_thread_start(move |_| {
            std::thread::sleep(Duration::from_millis(30));
            hook.store(1, Ordering::SeqCst);
        })
        .start();
    let log = Log::new();
    let call = move |expiry: &sw_expiry| {
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        // SAFETY: the log is a log, the expiry is one.
        unsafe { Log::callback(log.ctx(), expiry) };
    };
    svc.timer().run(call).start();
    eventually("it fires", || log.count() == 1);
}

#[test]
fn s1_a_driven_service_has_no_threads() {
    alone("threads::s1_a_driven_service_has_no_threads", || {
        let before = tasks().len();
        let hooked = Arc::new(AtomicU64::new(0));
        let hook = hooked.clone();
        let svc = Setup::driven()
            .shards(4)
            .on_thread_start(move |_| {
                hook.fetch_add(1, Ordering::SeqCst);
            })
            .start();
        let log = Log::new();
        svc.timer().shard(2).log(log).start();
        assert_eq!(svc.poll_shard(2), 1);
        assert_eq!(log.last().thread, std::thread::current().id());
        assert_eq!(tasks().len(), before);
        drop(svc);
        assert_eq!(hooked.load(Ordering::SeqCst), 0);
    });
}
