//! Starts, and batches.

use super::*;
use crate::world::{NONE, spec};
use std::ptr::null;

/// A start that is accepted, and undone: its handle must be one.
fn undone(w: &World, status: sw_status, timer: sw_timer) -> sw_status {
    if status == SW_OK { w.plain.cancel(timer) } else { status }
}

pub fn starts() -> Vec<Row> {
    const START: &str = "sw_timer_start";
    const AT: &str = "sw_timer_start_at";
    const EVERY: &str = "sw_timer_start_every";
    // With nowhere for the handle a start is accepted; the timer goes with a service of its own.
    fn unseen(start: fn(*mut sw_service) -> sw_status) -> sw_status {
        let svc = Setup::manual(MS).start();
        let status = start(svc.raw());
        if svc.pending() == 1 { status } else { SW_SYSTEM }
    }
    vec![
        row(START, "null service", SW_INVALID, |_, out| unsafe {
            sw_timer_start(NONE, 1, CALL, null_mut(), &mut out.timer)
        }),
        row(START, "zero delay_ns", SW_OK, |w, out| unsafe {
            let status = sw_timer_start(w.plain.raw(), 0, CALL, null_mut(), &mut out.timer);
            undone(w, status, out.timer)
        }),
        row(START, "all ones delay_ns", SW_OK, |w, out| unsafe {
            let status = sw_timer_start(w.plain.raw(), u64::MAX, CALL, null_mut(), &mut out.timer);
            undone(w, status, out.timer)
        }),
        row(START, "null callback", SW_INVALID, |w, out| unsafe {
            sw_timer_start(w.plain.raw(), 1, None, null_mut(), &mut out.timer)
        }),
        row(START, "null timer", SW_OK, |_, _| {
            unseen(|raw| unsafe { sw_timer_start(raw, HOUR, CALL, null_mut(), null_mut()) })
        }),
        row(START, "stopped", SW_STOPPED, |w, out| unsafe {
            sw_timer_start(w.stopped.raw(), 1, CALL, null_mut(), &mut out.timer)
        }),
        row(AT, "null service", SW_INVALID, |_, out| unsafe {
            sw_timer_start_at(NONE, 1, CALL, null_mut(), &mut out.timer)
        }),
        row(AT, "zero deadline_ns", SW_OK, |w, out| unsafe {
            let status = sw_timer_start_at(w.plain.raw(), 0, CALL, null_mut(), &mut out.timer);
            undone(w, status, out.timer)
        }),
        row(AT, "all ones deadline_ns", SW_OK, |w, out| unsafe {
            let raw = w.plain.raw();
            let status = sw_timer_start_at(raw, u64::MAX, CALL, null_mut(), &mut out.timer);
            undone(w, status, out.timer)
        }),
        row(AT, "null callback", SW_INVALID, |w, out| unsafe {
            sw_timer_start_at(w.plain.raw(), 1, None, null_mut(), &mut out.timer)
        }),
        row(AT, "null timer", SW_OK, |_, _| {
            unseen(|raw| unsafe { sw_timer_start_at(raw, HOUR, CALL, null_mut(), null_mut()) })
        }),
        row(AT, "stopped", SW_STOPPED, |w, out| unsafe {
            sw_timer_start_at(w.stopped.raw(), 1, CALL, null_mut(), &mut out.timer)
        }),
        row(EVERY, "null service", SW_INVALID, |_, out| unsafe {
            sw_timer_start_every(NONE, 1, CALL, null_mut(), &mut out.timer)
        }),
        row(EVERY, "zero period_ns", SW_INVALID, |w, out| unsafe {
            sw_timer_start_every(w.plain.raw(), 0, CALL, null_mut(), &mut out.timer)
        }),
        row(EVERY, "all ones period_ns", SW_OK, |w, out| unsafe {
            let raw = w.plain.raw();
            let status = sw_timer_start_every(raw, u64::MAX, CALL, null_mut(), &mut out.timer);
            undone(w, status, out.timer)
        }),
        row(EVERY, "null callback", SW_INVALID, |w, out| unsafe {
            sw_timer_start_every(w.plain.raw(), 1, None, null_mut(), &mut out.timer)
        }),
        row(EVERY, "null timer", SW_OK, |_, _| {
            unseen(|raw| unsafe { sw_timer_start_every(raw, HOUR, CALL, null_mut(), null_mut()) })
        }),
        row(EVERY, "stopped", SW_STOPPED, |w, out| unsafe {
            sw_timer_start_every(w.stopped.raw(), 1, CALL, null_mut(), &mut out.timer)
        }),
    ]
}

/// Starts a spec that has been spoilt.
fn spoilt(w: &World, out: &mut Out, spoil: fn(&World, &mut sw_timer_spec)) -> sw_status {
    let mut spec = spec();
    spoil(w, &mut spec);
    unsafe { sw_timer_start_spec(w.plain.raw(), &spec, &mut out.timer) }
}

pub fn specs() -> Vec<Row> {
    const SPEC: &str = "sw_timer_start_spec";
    const BOTH: u32 = SW_TIMER_BURST | SW_TIMER_FIXED_DELAY;
    vec![
        row(SPEC, "null service", SW_INVALID, |_, out| unsafe {
            sw_timer_start_spec(NONE, &spec(), &mut out.timer)
        })
        .drops(1),
        row(SPEC, "null spec", SW_INVALID, |w, out| unsafe {
            sw_timer_start_spec(w.plain.raw(), null(), &mut out.timer)
        }),
        row(SPEC, "null timer", SW_OK, |_, _| unsafe {
            let svc = Setup::manual(MS).start();
            sw_timer_start_spec(svc.raw(), &spec(), null_mut())
        })
        .drops(1),
        row(SPEC, "stopped", SW_STOPPED, |w, out| unsafe {
            sw_timer_start_spec(w.stopped.raw(), &spec(), &mut out.timer)
        })
        .drops(1),
        row(SPEC, "zero size", SW_INVALID, |w, out| spoilt(w, out, |_, spec| spec.size = 0)),
        row(SPEC, "small size", SW_INVALID, |w, out| spoilt(w, out, |_, spec| spec.size -= 1)),
        row(SPEC, "garbage size", SW_INVALID, |w, out| {
            spoilt(w, out, |_, spec| spec.size = usize::MAX)
        }),
        row(SPEC, "larger size", SW_INVALID, |w, out| unsafe {
            let mut later = Later(spec(), [0, 1]);
            later.0.size = size_of_val(&later);
            sw_timer_start_spec(w.plain.raw(), &later.0, &mut out.timer)
        })
        .drops(1),
        row(SPEC, "no callback, no queue", SW_INVALID, |w, out| {
            spoilt(w, out, |_, spec| spec.callback = None)
        })
        .drops(1),
        row(SPEC, "shard past the end", SW_INVALID, |w, out| {
            spoilt(w, out, |_, spec| spec.shard = 2)
        })
        .drops(1),
        row(SPEC, "unknown flag", SW_INVALID, |w, out| {
            spoilt(w, out, |_, spec| spec.flags = 1 << 31)
        })
        .drops(1),
        row(SPEC, "burst without a period", SW_INVALID, |w, out| {
            spoilt(w, out, |_, spec| spec.flags = SW_TIMER_BURST)
        })
        .drops(1),
        row(SPEC, "both modes", SW_INVALID, |w, out| {
            spoilt(w, out, |_, spec| (spec.flags, spec.period_ns) = (BOTH, MS))
        })
        .drops(1),
        row(SPEC, "foreign queue", SW_INVALID, |w, out| {
            spoilt(w, out, |w, spec| spec.queue = w.foreign_queue.raw())
        })
        .drops(1),
        row(SPEC, "full", SW_FULL, |_, out| unsafe {
            let svc = Setup::manual(MS).max_timers(1).start();
            svc.start(HOUR, Log::counting());
            sw_timer_start_spec(svc.raw(), &spec(), &mut out.timer)
        })
        .drops(1),
    ]
}

/// The functions that start many.
type Many = fn(*mut sw_service, *const sw_timer_spec, usize, *mut sw_timer) -> sw_status;
const MANY: [(&str, Many); 2] = [
    ("sw_timer_start_batch", |raw, specs, count, timers| unsafe {
        sw_timer_start_batch(raw, specs, count, timers)
    }),
    ("sw_timer_start_spread", |raw, specs, count, timers| unsafe {
        sw_timer_start_spread(raw, specs, count, SEC, timers)
    }),
];

/// Ways to spoil the second of three, and how many drops run then.
type Spoil = fn(&mut sw_timer_spec);
const SPOILS: [(&str, u64, Spoil); 5] = [
    ("zero size", 2, |spec| spec.size = 0),
    ("small size", 2, |spec| spec.size -= 1),
    ("garbage size", 2, |spec| spec.size = usize::MAX),
    ("larger size", 2, |spec| spec.size += 8),
    ("a bad one", 3, |spec| spec.shard = 99),
];

pub fn batches() -> Vec<Row> {
    let mut rows = Vec::new();
    for (function, start) in MANY {
        rows.extend([
            row(function, "null service", SW_INVALID, move |_, out| {
                start(NONE, [spec(), spec()].as_ptr(), 2, out.timers.as_mut_ptr())
            })
            .drops(2),
            row(function, "null specs", SW_INVALID, move |w, out| {
                start(w.plain.raw(), null(), 1, out.timers.as_mut_ptr())
            }),
            row(function, "null timers", SW_OK, move |_, _| {
                let svc = Setup::manual(MS).start();
                start(svc.raw(), [spec(), spec()].as_ptr(), 2, null_mut())
            })
            .drops(2),
            row(function, "zero count", SW_OK, move |w, _| {
                start(w.plain.raw(), null(), 0, null_mut())
            }),
            row(function, "all ones count", SW_INVALID, move |w, out| {
                start(w.plain.raw(), &spec(), usize::MAX, out.timers.as_mut_ptr())
            }),
            // Where there is room for seven.
            row(function, "full", SW_FULL, move |w, _| {
                let one = sw_timer_spec { shard: 0, ..spec() };
                start(w.plain.raw(), [one; 9].as_ptr(), 9, null_mut())
            })
            .drops(9),
            row(function, "stopped", SW_STOPPED, move |w, out| {
                start(w.stopped.raw(), &spec(), 1, out.timers.as_mut_ptr())
            })
            .drops(1),
            row(function, "wrong thread", SW_BUSY, move |w, out| {
                start(w.taken.raw(), [spec(), spec()].as_ptr(), 2, out.timers.as_mut_ptr())
            })
            .drops(2),
        ]);
        for (kind, drops, spoil) in SPOILS {
            let call = move |w: &World, out: &mut Out| {
                let mut specs = [spec(), spec(), spec()];
                spoil(&mut specs[1]);
                start(w.plain.raw(), specs.as_ptr(), 3, out.timers.as_mut_ptr())
            };
            rows.push(row(function, kind, SW_INVALID, call).drops(drops));
        }
    }
    fn spread(spread_ns: u64) -> sw_status {
        let svc = Setup::manual(MS).start();
        let late = sw_timer_spec { delay_ns: 0, flags: SW_TIMER_ABSOLUTE, ..spec() };
        unsafe { sw_timer_start_spread(svc.raw(), [late; 2].as_ptr(), 2, spread_ns, null_mut()) }
    }
    const SPREAD: &str = "sw_timer_start_spread";
    rows.push(row(SPREAD, "zero spread_ns", SW_OK, |_, _| spread(0)).drops(2));
    rows.push(row(SPREAD, "all ones spread_ns", SW_OK, |_, _| spread(u64::MAX)).drops(2));
    rows.extend(cancels());
    rows
}

fn cancels() -> Vec<Row> {
    const CANCEL: &str = "sw_timer_cancel_batch";
    vec![
        row(CANCEL, "null service", SW_INVALID, |w, out| unsafe {
            sw_timer_cancel_batch(NONE, &w.live, 1, &mut out.count)
        }),
        row(CANCEL, "null timers", SW_INVALID, |w, out| unsafe {
            sw_timer_cancel_batch(w.plain.raw(), null(), 1, &mut out.count)
        }),
        row(CANCEL, "null cancelled", SW_OK, |w, _| unsafe {
            sw_timer_cancel_batch(w.plain.raw(), &w.stale, 1, null_mut())
        }),
        row(CANCEL, "zero count", SW_OK, |w, out| unsafe {
            let status = sw_timer_cancel_batch(w.plain.raw(), null(), 0, &mut out.count);
            if out.count == 0 { status } else { SW_SYSTEM }
        }),
        row(CANCEL, "all ones count", SW_INVALID, |w, out| unsafe {
            sw_timer_cancel_batch(w.plain.raw(), &w.live, usize::MAX, &mut out.count)
        }),
        row(CANCEL, "numbers that are no handles", SW_OK, |w, out| unsafe {
            let timers = [0, u64::MAX, RANDOM, w.stale];
            let status = sw_timer_cancel_batch(w.plain.raw(), timers.as_ptr(), 4, &mut out.count);
            if out.count == 0 { status } else { SW_SYSTEM }
        }),
        row(CANCEL, "stopped", SW_STOPPED, |w, out| unsafe {
            sw_timer_cancel_batch(w.stopped.raw(), &w.of_stopped, 1, &mut out.count)
        }),
    ]
}
