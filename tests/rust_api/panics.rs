//! Rule F6: a panic is caught and counted, the shard goes on, and so does a periodic timer.

use crate::*;
use shardwheel::{Expiry, Outcome};
use std::panic::{self, AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Once;

/// What the tests panic with; the hook is told to keep quiet about it.
struct Planned;

/// Something whose drop panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Planned);
    }
}

fn quiet() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<Planned>() && !info.payload().is::<Bomb>() {
                before(info);
            }
        }));
    });
}

#[test]
fn a_one_shot_that_panics_has_fired() {
    quiet();
    let (service, _) = manual();
    let (dropped, after) = (Count::default(), Count::default());
    let (guard, add) = (dropped.guard(), after.clone());
    let timer = service
        .after(ms(1), move |_| {
            let _guard = guard;
            panic_any(Planned);
        })
        .unwrap();
    service.after(ms(1), move |_| add.add()).unwrap();
    assert_eq!(step(&service, ms(1)), 2);
    assert_eq!((dropped.get(), after.get(), service.panics()), (1, 1, 1));
    assert_eq!(service.cancel(timer), Ok(Outcome::NotFound));
    balanced(&service);
}

#[test]
fn a_periodic_timer_goes_on() {
    quiet();
    let (service, _) = manual();
    let calls = Count::default();
    let add = calls.clone();
    let timer = service
        .every(ms(1), move |_| {
            add.add();
            if add.get() % 2 == 1 {
                panic_any(Planned);
            }
        })
        .unwrap();
    for _ in 0..10 {
        assert_eq!(step(&service, ms(1)), 1);
    }
    assert_eq!((calls.get(), service.panics()), (10, 5));
    assert_eq!(service.cancel(timer), Ok(Outcome::Done));
}

#[test]
fn a_one_shot_that_armed_itself_first_goes_on() {
    quiet();
    let (service, _) = manual();
    let timers = service.timers();
    service
        .timer()
        .delay(ms(1))
        .start(move |expiry| {
            timers.reset(expiry.timer, ms(1)).unwrap();
            panic_any(Planned);
        })
        .unwrap();
    for _ in 0..5 {
        assert_eq!(step(&service, ms(1)), 1);
    }
    assert_eq!(service.panics(), 5);
}

#[test]
fn plain_functions_too_and_each_service_counts_its_own() {
    quiet();
    fn fail(_: u64, _: &Expiry) {
        panic_any(Planned);
    }
    let (service, other) = (threaded(2), threaded(1));
    for shard in 0..2 {
        service.timer().shard(shard).start_fn(fail, 0).unwrap();
    }
    service.timer().period(ms(1)).start_fn(fail, 0).unwrap();
    let done = Count::default();
    let add = done.clone();
    other.after(ms(1), move |_| add.add()).unwrap();
    eventually("they fail again and again", || service.panics() >= 5 && done.get() == 1);
    assert_eq!(other.panics(), 0);

    // A service that is polled inside a callback of another one.
    let (inner, shard) = manual();
    inner.after_fn(Duration::ZERO, fail, 0).unwrap();
    let add = done.clone();
    other
        .after(Duration::ZERO, move |_| {
            shard.poll().unwrap();
            add.add();
            panic_any(Planned);
        })
        .unwrap();
    eventually("both fail", || other.panics() == 1);
    assert_eq!((inner.panics(), done.get()), (1, 2));
}

#[test]
fn what_a_panic_carries_may_panic_as_well() {
    quiet();
    let (service, _) = manual();
    service.after(ms(1), |_| panic_any(Bomb)).unwrap();
    service.every(ms(1), |_| panic_any(Bomb)).unwrap();
    assert_eq!(step(&service, ms(1)), 2);
    assert_eq!(step(&service, ms(1)), 1);
    assert_eq!(service.panics(), 3);
}

#[test]
fn a_capture_whose_drop_panics() {
    quiet();
    let (service, _) = manual();
    let hold = || {
        let bomb = Bomb;
        move |_: &Expiry| {
            let _ = &bomb;
        }
    };
    // After the call, at a cancel, on a refusal, at the end.
    service.timer().delay(ms(1)).start(hold()).unwrap();
    step(&service, ms(1));
    assert_eq!(service.panics(), 1);
    let timer = service.after(ms(1), hold()).unwrap();
    assert_eq!(service.cancel(timer), Ok(Outcome::Done));
    assert_eq!(service.panics(), 2);
    let refused = service.timer().shard(7).start(hold());
    assert_eq!(refused, Err(shardwheel::Error::Invalid));
    assert_eq!(service.panics(), 3);
    service.after(hour(), hold()).unwrap();
    service.every(hour(), hold()).unwrap();
    assert_eq!(service.stop(), Ok(2));
    assert_eq!(service.panics(), 5);
    balanced(&service);
}

#[test]
fn hooks_that_panic() {
    quiet();
    let service = Service::builder()
        .shards(2)
        .unpinned()
        .on_thread_start(|_| panic_any(Planned))
        .on_thread_stop(|_| panic_any(Planned))
        .slow_callback(Duration::from_nanos(1), |_| panic_any(Planned))
        .build()
        .unwrap();
    service.after(Duration::ZERO, |_| thread::sleep(ms(1))).unwrap();
    eventually("all three but the end", || service.panics() == 3);
    service.stop().unwrap();
    assert_eq!(service.panics(), 5);
}

#[test]
fn unfired_that_panics_does_so_when_all_is_over() {
    quiet();
    let (service, _) = manual();
    let dropped = Count::default();
    for _ in 0..10 {
        let guard = dropped.guard();
        service.after(hour(), move |_| drop(guard)).unwrap();
    }
    let mut told = 0;
    let caught = catch_unwind(AssertUnwindSafe(|| {
        service.stop_with(|_| {
            told += 1;
            if told == 3 {
                panic_any(Planned);
            }
        })
    }));
    assert!(caught.unwrap_err().is::<Planned>());
    assert_eq!((told, dropped.get()), (3, 10));
    assert_eq!(service.stop(), Ok(0));
    assert_eq!(service.panics(), 0, "it was the caller's own");
}

// Cases learned from peers whose handlers can fail; where they differ, rule F6 decides.

/// Some put a failed handler's timer back; here it has fired, and is not offered again.
#[test]
fn caff_08() {
    quiet();
    let (service, _) = manual();
    let calls = Count::default();
    let add = calls.clone();
    service
        .after(ms(1), move |_| {
            add.add();
            panic_any(Planned);
        })
        .unwrap();
    assert_eq!(step(&service, ms(1)), 1);
    assert_eq!(step(&service, ms(100)), 0);
    assert_eq!((calls.get(), service.panics()), (1, 1));
    balanced(&service);
}

/// Of three that are due together the second fails: the first and the third have run, once each.
#[test]
fn caff_09() {
    quiet();
    let (service, _) = manual();
    let calls = Count::default();
    for nth in 0..3 {
        let add = calls.clone();
        service
            .after(ms(1), move |_| {
                add.add();
                if nth == 1 {
                    panic_any(Planned);
                }
            })
            .unwrap();
    }
    assert_eq!(step(&service, ms(1)), 3);
    assert_eq!((calls.get(), service.panics()), (3, 1));
    balanced(&service);
}

/// The third call of a periodic timer fails: here it is not stopped by that.
#[test]
fn akka_01() {
    quiet();
    let (service, _) = manual();
    let calls = Count::default();
    let add = calls.clone();
    service
        .every(ms(20), move |_| {
            add.add();
            if add.get() == 3 {
                panic_any(Planned);
            }
        })
        .unwrap();
    for _ in 0..6 {
        assert_eq!(step(&service, ms(20)), 1);
    }
    assert_eq!((calls.get(), service.panics()), (6, 1));
}

/// One that always fails keeps being called, on its grid.
#[test]
fn node_06() {
    quiet();
    let (service, _) = manual();
    let calls = Count::default();
    let add = calls.clone();
    service
        .every(ms(1), move |_| {
            add.add();
            panic_any(Planned);
        })
        .unwrap();
    for _ in 0..50 {
        assert_eq!(step(&service, ms(1)), 1);
    }
    assert_eq!((calls.get(), service.panics()), (50, 50));
}
