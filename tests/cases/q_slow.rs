//! Q. Slow callbacks, starvation. (A callback that fails is the Rust API's matter: see the table
//! at the end of `main.rs`.)

use crate::kit::*;
use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One callback runs past another timer's deadline, and nothing else happens: the other fires
/// right after it.
#[test]
fn mowgli_01() {
    let s = Setup::manual(MS).start();
    let (door, log) = (s.door(), Log::new());
    s.timer().delay(10 * MS).run(move |_| door.advance(50 * MS)).start();
    s.start(30 * MS, log);
    assert_eq!((s.poll(), s.run(10 * MS), log.count()), (0, 1, 0));
    assert!(s.next() <= s.now(), "the next wake-up is found anew after the callbacks");
    assert_eq!((s.poll(), log.count()), (1, 1));
}

/// The same on a running service.
#[test]
fn mowgli_01_real() {
    let s = Setup::threaded(1).start();
    let log = Log::new();
    s.timer().delay(10 * MS).run(|_| sleep_ms(100)).start();
    s.start(30 * MS, log);
    eventually("the other fires", || log.count() == 1);
    assert!(log.last().now - log.last().deadline < SEC);
}

/// Two producers that start and cancel without end do not keep due timers from their delivery.
#[test]
fn netty_18() {
    let s = Setup::threaded(1).start();
    let (door, end) = (s.door(), Arc::new(AtomicBool::new(false)));
    let producers: Vec<_> = (0..2)
        .map(|_| {
            let end = end.clone();
            std::thread::spawn(move || {
                let log = Log::counting();
                while !end.load(Ordering::SeqCst) {
                    let timers: Vec<_> =
                        (0..1000).filter_map(|nth| door.try_start(HOUR + nth, log).ok()).collect();
                    assert_eq!(door.cancel_batch(&timers), Ok(timers.len()));
                }
            })
        })
        .collect();
    for _ in 0..50 {
        assert!(measure(s.door(), 10 * MS) < 2 * SEC);
    }
    end.store(true, Ordering::SeqCst);
    for producer in producers {
        producer.join().unwrap();
    }
    assert_eq!(s.pending(), 0);
}

/// Thousands of short timers, and between them start and cancel of 5 s over and over: cancelled
/// timers do not slow down what comes later.
fn long_adjust(pairs: u64) {
    let s = Setup::threaded(1).start();
    let (short, long) = (Log::counting(), Log::counting());
    let begin = mono();
    for nth in 0..5000 {
        s.start(nth % 50 * MS, short);
    }
    let mut firsts = 0;
    for nth in 0..pairs {
        let timer = s.start(5 * SEC, long);
        assert_eq!(s.cancel(timer), SW_OK);
        if nth % 200 == 0 {
            s.start(nth % 20 * MS, short);
            firsts += 1;
        }
    }
    eventually("all short ones fire", || short.count() == 5000 + firsts);
    assert!(mono() - begin < 30 * SEC);
    assert_eq!((long.count(), s.stats().cancelled), (0, pairs));
}

/// Start and cancel beside short timers.
#[test]
fn go_21() {
    long_adjust(200_000);
}

/// The same at the peer's size.
#[test]
#[ignore = "long: run with --ignored in release"]
fn go_21_full() {
    long_adjust(1_000_000);
}

/// Timers that are due faster than they can be served: the storm goes on in slices, and what is
/// cancelled before its turn never runs. (Ours, beside the peer's bounded intake.)
#[test]
fn netty_18_storm() {
    let s = Setup::threaded(1).start();
    let runs = Arc::new(AtomicU64::new(0));
    let go = hold_up(s.door());
    let timers: Vec<_> = (0..2000)
        .map(|_| {
            let runs = runs.clone();
            let call = move |_: &sw_expiry| {
                runs.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(std::time::Duration::from_micros(200));
            };
            s.timer().run(call).start()
        })
        .collect();
    go.open();
    eventually("the storm begins", || runs.load(Ordering::SeqCst) > 10);
    let won = s.cancel_batch(&timers).unwrap() as u64;
    assert!(won > 0, "F8: 2000 callbacks of 200 µs cannot be over yet");
    eventually("none is live", || s.pending() == 0);
    eventually("the last one is over", || s.stats().fired == 2001 - won);
    assert_eq!(runs.load(Ordering::SeqCst), 2000 - won);
}
