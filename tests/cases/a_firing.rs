//! A. Basic firing, never early, rounding, precision.

use crate::kit::*;
use crate::support::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A tick of a millisecond never shortens a delay that a finer clock measures.
#[test]
fn uv_11() {
    let s = Setup::threaded(1).start();
    for round in 0..20 {
        // Another phase of the tick each time.
        std::thread::sleep(std::time::Duration::from_micros(137 * round));
        assert!(measure(s.door(), 10 * MS) >= 10 * MS);
    }
}

/// A signal that interrupts the sleeping shard does not shorten a delay.
#[test]
fn go_01() {
    extern "C" fn nothing(_signal: i32) {}
    // SAFETY: a handler that does nothing; no other test of this binary uses the signal.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    // Shard 0 keeps all signals blocked, shard 1 lets this one through.
    let threads = Arc::new([AtomicI32::new(0), AtomicI32::new(0)]);
    let seen = threads.clone();
    let s = Setup::threaded(2)
        .on_thread_start(move |shard| {
            if shard == 1 {
                // SAFETY: a set of one signal, of the calling thread's mask.
                unsafe {
                    let mut set = std::mem::zeroed();
                    libc::sigemptyset(&mut set);
                    libc::sigaddset(&mut set, libc::SIGUSR1);
                    libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
                }
            }
            seen[shard as usize].store(tid(), Ordering::SeqCst);
        })
        .start();
    let began = mono();
    let stamps = Arc::new(Mutex::new(Vec::new()));
    for shard in 0..2 {
        let stamps = stamps.clone();
        let _timer = s
            .timer()
            .delay(100 * MS)
            .shard(shard)
            .run(move |_| stamps.lock().unwrap().push(mono()))
            .start();
    }
    for _ in 0..5 {
        sleep_ms(15);
        for thread in threads.iter() {
            let thread = thread.load(Ordering::SeqCst);
            // SAFETY: a thread of this process that is alive as long as the service.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
        }
    }
    eventually("both fire", || stamps.lock().unwrap().len() == 2);
    for stamp in stamps.lock().unwrap().iter() {
        assert!(stamp - began >= 100 * MS);
    }
}

/// Of a steady stream of starts none fires before its own start plus its delay.
#[test]
fn akka_04() {
    let s = Setup::threaded(1).start();
    let early = Arc::new(AtomicU64::new(0));
    let fired = Arc::new(AtomicU64::new(0));
    for _ in 0..300 {
        let (early, fired) = (early.clone(), fired.clone());
        let stamp = mono();
        let _timer = s
            .timer()
            .delay(20 * MS)
            .run(move |_| {
                if mono() - stamp < 20 * MS {
                    early.fetch_add(1, Ordering::SeqCst);
                }
                fired.fetch_add(1, Ordering::SeqCst);
            })
            .start();
        sleep_ms(5);
    }
    eventually("all 300 fire", || fired.load(Ordering::SeqCst) == 300);
    assert_eq!(early.load(Ordering::SeqCst), 0);
}

/// A deadline one nanosecond past a tick is due at the tick after.
#[test]
fn agrona_06() {
    for tick in [MS, 16_777_216, 1_000, 7_919] {
        let s = Setup::manual(tick).start();
        let log = Log::new();
        s.start(5 * tick + 1, log);
        s.start(6 * tick - 1, log);
        s.start(5 * tick, log);
        assert_eq!(s.run_to(5 * tick - 1), 0);
        assert_eq!(s.run_to(5 * tick), 1);
        assert_eq!(s.run_to(6 * tick - 1), 0);
        assert_eq!(s.run_to(6 * tick), 2);
        assert_eq!(log.deadlines(), [5 * tick, 5 * tick + 1, 6 * tick - 1]);
    }
}

/// Timers a millisecond apart on a 3 ms tick come in batches, none before its tick.
#[test]
fn folly_18() {
    let tick = 3 * MS;
    let s = Setup::threaded(1).tick(tick).start();
    let log = Log::new();
    for _ in 0..60 {
        s.start(10 * MS, log);
        sleep_ms(1);
    }
    eventually("all 60 fire", || log.count() == 60);
    let fires = log.fires();
    let ticks: BTreeSet<u64> = fires.iter().map(|fire| due(fire.deadline, tick)).collect();
    let turns: BTreeSet<u64> = fires.iter().map(|fire| fire.now).collect();
    for fire in &fires {
        assert!(fire.now >= due(fire.deadline, tick), "fired between two ticks: {fire:?}");
    }
    // A start that the machine held up may need a turn of its own.
    assert!(turns.len() <= ticks.len() + 10, "{} turns for {}", turns.len(), ticks.len());
}

/// Ten delays of 100 ms one after the other take a second, not much more.
#[test]
fn go_06() {
    let s = Setup::threaded(1).start();
    let begin = mono();
    for _ in 0..10 {
        assert!(measure(s.door(), 100 * MS) >= 100 * MS);
    }
    let total = mono() - begin;
    assert!((SEC..3 * SEC).contains(&total), "{total}");
}

/// The clocks of several services move as real time does, and do not wrap for ages.
#[test]
fn odp_03() {
    let services = [
        Setup::threaded(1).tick(US).start(),
        Setup::driven().start(),
        Setup::driven().with(|config| config.clock = SW_CLOCK_BOOTTIME as u32).start(),
    ];
    let before = mono();
    let first: Vec<u64> = services.iter().map(|s| s.now()).collect();
    let between = mono();
    sleep_ms(100);
    let later = mono();
    let second: Vec<u64> = services.iter().map(|s| s.now()).collect();
    let after = mono();
    for (first, second) in first.into_iter().zip(second) {
        let went = second - first;
        let (least, most) = (later - between, after - before);
        assert!((least - least / 10..=most + most / 10).contains(&went), "{went}");
        assert!(second < SW_NEVER - 10 * 366 * DAY, "ten more years do not fit");
    }
    let mut last = 0;
    for _ in 0..100_000 {
        let now = services[0].now();
        assert!(now >= last, "T5: backwards");
        last = now;
    }
}

/// An event taken late still names the instant at which it came due.
#[test]
fn go_24() {
    let s = Setup::manual(MS).start();
    let queue = s.queue();
    let timer = s.timer().delay(10 * MS).queue(queue).start();
    assert_eq!(s.run_to(10 * MS), 1);
    s.run_to(500 * MS);
    let events = queue.poll(8);
    assert_eq!(events.len(), 1);
    let expiry = events[0].0;
    assert_eq!((expiry.timer, expiry.deadline_ns), (timer, 10 * MS));
    assert_eq!(expiry.now_ns, 10 * MS, "the turn that found it due, not the poll that took it");
}

/// The same with real time and a shard of its own thread.
#[test]
fn go_24_real() {
    let s = Setup::threaded(1).start();
    let queue = s.queue();
    let begin = s.now();
    let _timer = s.timer().delay(10 * MS).queue(queue).start();
    eventually("the event is there", || queue.readable());
    sleep_ms(400);
    let taken_at = s.now();
    let expiry = queue.poll(8)[0].0;
    assert!(expiry.deadline_ns >= begin + 10 * MS);
    assert!(expiry.now_ns >= expiry.deadline_ns);
    assert!(expiry.now_ns + 300 * MS < taken_at, "the expiry's instant, not the taker's");
}

/// A timer of one tick, started anew on every tick, fires on every tick.
#[test]
fn hwt_02() {
    let s = Setup::manual(MS).start();
    let logs = [Log::new(), Log::new()];
    let mut timer = s.start(MS, logs[0]);
    for round in 1..=1000_u64 {
        assert_eq!(s.run(MS), 1, "on tick {round}");
        let fire = logs[(round as usize + 1) % 2].last();
        assert_eq!((fire.timer, fire.deadline, fire.now), (timer, round * MS, round * MS));
        timer = s.start(MS, logs[round as usize % 2]);
    }
    assert_eq!(logs[0].count() + logs[1].count(), 1000);
}
