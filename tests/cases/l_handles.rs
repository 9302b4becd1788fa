//! L. Handles, identity, reuse, reclamation, introspection.

use crate::g_cancel::unknown;
use crate::kit::*;
use crate::support::*;
use std::sync::Arc;

/// A stale handle, of a timer cancelled or fired, does not reach the timer that sits in its slot
/// now.
#[test]
fn tokio_35() {
    let s = Setup::manual(MS).max_timers(1).start();
    let log = Log::new();
    for fire in [false, true] {
        let mut stale = Vec::new();
        for _ in 0..1000 {
            let timer = s.start(MS, log);
            if fire {
                assert_eq!(s.run(MS), 1);
            } else {
                assert_eq!(s.cancel(timer), SW_OK);
                s.poll();
            }
            stale.push(timer);
        }
        let live = s.start(MS, log);
        for &timer in &stale {
            assert_ne!(timer, live);
            assert_eq!((s.cancel(timer), s.reset(timer, 0)), (SW_NOT_FOUND, SW_NOT_FOUND));
            assert_eq!(s.remaining(timer), Err(SW_NOT_FOUND));
        }
        assert_eq!(s.cancel_batch(&stale), Ok(0));
        assert_eq!((s.remaining(live), s.run(MS)), (Ok(MS), 1));
        assert_eq!(log.last().timer, live);
    }
}

/// Two of four timers have fired and their slots serve others: the handles that are left still
/// name their own timers.
#[test]
fn tokio_33() {
    let s = Setup::manual(MS).max_timers(4).start();
    let log = Log::new();
    let timers = [10, 20, 30, 40].map(|at| s.start(at * MS, log));
    assert_eq!((s.run(10 * MS), s.run(10 * MS)), (1, 1));
    let new = [s.start(100 * MS, log), s.start(200 * MS, log)];
    assert_eq!(s.cancel(timers[2]), SW_OK);
    assert_eq!(s.reset_at(timers[3], 50 * MS), SW_OK);
    assert_eq!((s.cancel(timers[0]), s.cancel(timers[1])), (SW_NOT_FOUND, SW_NOT_FOUND));
    drive(s.door());
    assert_eq!(log.timers(), [timers[0], timers[1], timers[3], new[0], new[1]]);
    assert_eq!(log.deadlines(), [10, 20, 50, 120, 220].map(|at| at * MS));
}

/// A timer that is dropped without firing lets go of its context at once; another's is untouched.
#[test]
fn folly_21() {
    let s = Setup::manual(MS).start();
    let contexts = [Arc::new(1), Arc::new(2)];
    let timers = contexts.each_ref().map(|context| {
        let mut held = Some(context.clone());
        s.timer().delay(HOUR).run(|_| ()).ended(move || drop(held.take())).start()
    });
    assert_eq!(contexts.each_ref().map(Arc::strong_count), [2, 2]);
    assert_eq!(s.cancel(timers[0]), SW_OK);
    assert_eq!(contexts.each_ref().map(Arc::strong_count), [1, 2]);
    assert_eq!(s.stop(), SW_OK);
    assert_eq!(contexts.each_ref().map(Arc::strong_count), [1, 1]);
}

/// All pending timers cleared at one go: none is live, and no handle has a deadline any more.
#[test]
fn agrona_15() {
    let s = Setup::manual(MS).start();
    let log = Log::new();
    let timers = [s.start(15 * MS, log), s.start(HOUR, log)];
    assert_eq!(s.cancel_batch(&timers), Ok(2));
    assert_eq!((s.pending(), s.next()), (0, SW_NEVER));
    assert_eq!(timers.map(|timer| s.remaining(timer)), [Err(SW_NOT_FOUND); 2]);
    assert_eq!((s.run(DAY), log.count()), (0, 0));
}

/// A handle that names no timer yet has nothing left and cannot be moved or cancelled.
#[test]
fn uv_03() {
    let s = Setup::manual(MS).start();
    let fresh = SW_TIMER_NONE;
    assert!(unknown(s.remaining(fresh).unwrap_err()));
    assert!(unknown(s.cancel(fresh)) && unknown(s.reset(fresh, MS)));
    assert_eq!((s.pending(), s.next()), (0, SW_NEVER));
    let mut spec = s.timer().spec();
    assert_eq!((spec.delay_ns, spec.period_ns, spec.slack_ns, spec.flags), (0, 0, 0, 0));
    assert!(spec.callback.is_none() && spec.drop.is_none() && spec.queue.is_null());
    assert_eq!((spec.shard, s.start_spec(&spec)), (SW_SHARD_ANY, Err(SW_INVALID)));
    spec.callback = Some(Log::callback);
    spec.ctx = Log::new().ctx();
    assert!(s.start_spec(&spec).is_ok());
}

/// A far one-shot on a service that ends soon: it never runs, its context is let go.
#[test]
fn evt_13() {
    let log = Log::new();
    let s = Setup::threaded(1).start();
    s.timer().delay(10 * SEC).log(log).start();
    sleep_ms(75);
    drop(s);
    assert_eq!((log.count(), log.dropped()), (0, 1));
}
