//! Right arguments in the wrong place: on a thread that does not own the shard, and inside a callback.

use super::timers::ON_TIMER;
use super::*;
use crate::world::spec;
use std::ffi::c_void;
use std::ptr::null;

/// What any thread may call at any time, though a shard is another's alone, and what that answers; inside
/// a callback it is `SW_OK`.
type Anywhere = fn(*mut sw_service, *mut sw_queue, &mut Out) -> sw_status;
const ANYWHERE: [(&str, sw_status, Anywhere); 16] = [
    ("sw_shard_count", SW_OK, |raw, _, _| unsafe { holds(sw_shard_count(raw) > 0) }),
    ("sw_clock_now", SW_OK, |raw, _, _| unsafe { holds(sw_clock_now(raw) < HOUR) }),
    ("sw_clock_advance", SW_OK, |raw, _, _| unsafe { sw_clock_advance(raw, 0) }),
    ("sw_shard_next", SW_OK, |raw, _, out| unsafe { sw_shard_next(raw, 0, &mut out.number) }),
    ("sw_shard_fd", SW_OK, |raw, _, out| unsafe { sw_shard_fd(raw, 0, &mut out.fd) }),
    ("sw_shard_visit", SW_OK, |raw, _, _| shards::visit(raw, 0, [true; 3], 1)),
    ("sw_queue_new", SW_OK, |raw, _, out| unsafe { sw_queue_new(raw, &mut out.queue) }),
    ("sw_queue_poll", SW_OK, |_, queue, out| unsafe {
        sw_queue_poll(queue, &mut out.event, 1, &mut out.count)
    }),
    ("sw_queue_fd", SW_OK, |_, queue, out| unsafe { sw_queue_fd(queue, &mut out.fd) }),
    ("sw_stats_read", SW_OK, |raw, _, out| unsafe { sw_stats_read(raw, 0, &mut out.stats) }),
    ("sw_details_read", SW_OK, |raw, _, _| unsafe {
        sw_details_read(raw, 0, &mut services::details(size_of::<sw_details>()))
    }),
    ("sw_stats_prometheus", SW_OK, |raw, _, out| unsafe {
        sw_stats_prometheus(raw, out.text.as_mut_ptr().cast(), 64, &mut out.count)
    }),
    ("sw_stats_report", SW_OK, |raw, _, out| unsafe {
        sw_stats_report(raw, out.text.as_mut_ptr().cast(), 64, &mut out.count)
    }),
    ("sw_service_trim", SW_OK, |raw, _, _| unsafe { sw_service_trim(raw) }),
    // Neither service has a limit for slow callbacks.
    ("sw_service_on_stuck", SW_INVALID, |raw, _, _| unsafe {
        unsafe extern "C-unwind" fn stuck(_: *mut c_void, _: u32, _: sw_timer, _: u64) {}
        sw_service_on_stuck(raw, Some(stuck), null_mut())
    }),
    ("sw_timer_remaining", SW_NOT_FOUND, |raw, _, out| unsafe {
        sw_timer_remaining(raw, RANDOM, &mut out.number)
    }),
];

/// From a thread that does not own the shard, which is another's alone.
pub fn elsewhere() -> Vec<Row> {
    let mut rows = vec![
        row("sw_timer_start", "wrong thread", SW_BUSY, |w, out| unsafe {
            sw_timer_start(w.taken.raw(), 1, CALL, null_mut(), &mut out.timer)
        }),
        row("sw_timer_start_at", "wrong thread", SW_BUSY, |w, out| unsafe {
            sw_timer_start_at(w.taken.raw(), 1, CALL, null_mut(), &mut out.timer)
        }),
        row("sw_timer_start_every", "wrong thread", SW_BUSY, |w, out| unsafe {
            sw_timer_start_every(w.taken.raw(), 1, CALL, null_mut(), &mut out.timer)
        }),
        row("sw_timer_start_spec", "wrong thread", SW_BUSY, |w, out| unsafe {
            sw_timer_start_spec(w.taken.raw(), &spec(), &mut out.timer)
        })
        .drops(1),
        row("sw_timer_cancel_batch", "wrong thread", SW_BUSY, |w, out| unsafe {
            sw_timer_cancel_batch(w.taken.raw(), &w.of_taken, 1, &mut out.count)
        }),
        row("sw_shard_attach", "wrong thread", SW_BUSY, |w, _| w.taken.attach(0, SW_ATTACH_SHARED)),
        row("sw_shard_detach", "wrong thread", SW_BUSY, |w, _| w.taken.detach(0)),
        row("sw_shard_poll", "wrong thread", SW_BUSY, |w, out| unsafe {
            sw_shard_poll(w.taken.raw(), 0, 0, &mut out.count)
        }),
    ];
    for (function, want, call) in ANYWHERE {
        rows.push(row(function, "wrong thread", want, move |w, out| {
            call(w.taken.raw(), w.taken_queue.raw(), out)
        }));
    }
    // These end a service, so each has its own.
    fn from_another(end: fn(*mut sw_service) -> sw_status) -> sw_status {
        let svc = Setup::manual(MS).start();
        let door = svc.door();
        assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
        let ended = std::thread::spawn(move || end(door.raw())).join().unwrap();
        holds(ended == SW_OK && svc.try_start(1, Log::counting()) == Err(SW_STOPPED))
    }
    rows.push(row("sw_service_stop", "wrong thread", SW_OK, |_, _| {
        from_another(|raw| unsafe { sw_service_stop(raw, None, null_mut(), null_mut()) })
    }));
    rows.push(row("sw_service_free", "wrong thread", SW_OK, |_, out| {
        let mut config = std::mem::MaybeUninit::<sw_config>::uninit();
        let door = unsafe {
            sw_config_init(config.as_mut_ptr());
            let mut config = config.assume_init();
            (config.mode, config.shards) = (SW_MODE_DRIVEN as u32, 1);
            assert_eq!(sw_service_start(&config, &mut out.service), SW_OK);
            assert_eq!(sw_shard_attach(out.service, 0, SW_ATTACH_EXCLUSIVE), SW_OK);
            Ptr(out.service.cast())
        };
        std::thread::spawn(move || unsafe { sw_service_free({ door }.0.cast()) }).join().unwrap()
    }));
    rows.push(row("sw_queue_free", "wrong thread", SW_BUSY, |w, _| w.taken_queue.free()));
    for (function, on_timer) in ON_TIMER {
        if function != "sw_timer_remaining" {
            let call = move |w: &World, out: &mut Out| on_timer(w.taken.raw(), w.of_taken, out);
            rows.push(Row {
                call: Box::new(call),
                ..row(function, "wrong thread", SW_BUSY, |_, _| SW_OK)
            });
        }
    }
    rows
}

pub fn inside() -> Vec<Row> {
    let mut rows = refused_inside();
    for (function, want, call) in ANYWHERE {
        rows.push(
            row(function, "inside", want, move |w, out| call(w.plain.raw(), w.queue.raw(), out))
                .inside(),
        );
    }
    rows.extend(starts_inside());
    rows
}

/// Good starts, which are undone, and good resets.
fn starts_inside() -> Vec<Row> {
    let mut rows = Vec::new();
    type Start = fn(*mut sw_service, *mut sw_timer) -> sw_status;
    let starts: [(&str, usize, u64, Start); 6] = [
        ("sw_timer_start", 1, 0, |raw, timers| unsafe {
            sw_timer_start(raw, HOUR, CALL, null_mut(), timers)
        }),
        ("sw_timer_start_at", 1, 0, |raw, timers| unsafe {
            sw_timer_start_at(raw, HOUR, CALL, null_mut(), timers)
        }),
        ("sw_timer_start_every", 1, 0, |raw, timers| unsafe {
            sw_timer_start_every(raw, HOUR, CALL, null_mut(), timers)
        }),
        ("sw_timer_start_spec", 1, 1, |raw, timers| unsafe {
            sw_timer_start_spec(raw, &spec(), timers)
        }),
        ("sw_timer_start_batch", 2, 2, |raw, timers| unsafe {
            sw_timer_start_batch(raw, [spec(), spec()].as_ptr(), 2, timers)
        }),
        ("sw_timer_start_spread", 2, 2, |raw, timers| unsafe {
            sw_timer_start_spread(raw, [spec(), spec()].as_ptr(), 2, SEC, timers)
        }),
    ];
    for (function, count, drops, start) in starts {
        let call = move |w: &World, out: &mut Out| {
            let status = start(w.plain.raw(), out.timers.as_mut_ptr());
            let undone = w.plain.cancel_batch(&out.timers[..count]);
            if undone == Ok(count) { status } else { SW_SYSTEM }
        };
        rows.push(row(function, "inside", SW_OK, call).drops(drops).inside());
    }
    rows.push(
        row("sw_timer_reset", "inside", SW_OK, |w, _| {
            holds((w.plain.reset(w.live, MS), w.plain.reset_at(w.live, HOUR)) == (SW_OK, SW_OK))
        })
        .inside(),
    );
    rows.push(
        row("sw_timer_reset_at", "inside", SW_NOT_FOUND, |w, _| w.plain.reset_at(w.stale, HOUR))
            .inside(),
    );
    rows.push(
        row("sw_timer_cancel_batch", "inside", SW_OK, |w, _| {
            holds(w.plain.cancel_batch(&[w.stale, RANDOM]) == Ok(0))
        })
        .inside(),
    );
    rows.push(row("sw_queue_free", "inside", SW_OK, |w, _| w.plain.queue().free()).inside());
    rows
}

fn refused_inside() -> Vec<Row> {
    vec![
        row("sw_service_stop", "inside", SW_WOULD_DEADLOCK, |w, out| unsafe {
            sw_service_stop(w.plain.raw(), None, null_mut(), &mut out.number)
        })
        .inside(),
        row("sw_service_free", "inside", SW_WOULD_DEADLOCK, |w, _| unsafe {
            sw_service_free(w.plain.raw())
        })
        .inside(),
        row("sw_shard_poll", "inside", SW_BUSY, |w, out| unsafe {
            sw_shard_poll(w.plain.raw(), 0, 0, &mut out.count)
        })
        .inside(),
        row("sw_shard_poll", "inside, another shard", SW_BUSY, |w, out| unsafe {
            sw_shard_poll(w.plain.raw(), 1, 0, &mut out.count)
        })
        .inside(),
        row("sw_shard_attach", "inside", SW_BUSY, |w, _| w.plain.attach(1, SW_ATTACH_SHARED))
            .inside(),
        row("sw_shard_detach", "inside", SW_INVALID, |w, _| w.plain.detach(0)).inside(),
        row("sw_timer_cancel", "inside", SW_NOT_FOUND, |w, _| w.plain.cancel(w.stale)).inside(),
        row("sw_timer_cancel_wait", "inside", SW_NOT_FOUND, |w, _| w.plain.cancel_wait(w.stale))
            .inside(),
        row("sw_timer_start_spec", "inside, null spec", SW_INVALID, |w, out| unsafe {
            sw_timer_start_spec(w.plain.raw(), null(), &mut out.timer)
        })
        .inside(),
        row("sw_timer_start", "inside, null callback", SW_INVALID, |w, out| unsafe {
            sw_timer_start(w.plain.raw(), 1, None, null_mut(), &mut out.timer)
        })
        .inside(),
    ]
}
