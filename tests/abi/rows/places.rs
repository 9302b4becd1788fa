//! Right arguments in the wrong place: on a thread that does not own the shard, and inside a callback.

use super::timers::ON_TIMER;
use super::*;
use crate::world::spec;
use std::ptr::null;

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
        row("sw_timer_cancel", "inside, stale", SW_NOT_FOUND, |w, _| w.plain.cancel(w.stale))
            .inside(),
        row("sw_timer_cancel_wait", "inside, stale", SW_NOT_FOUND, |w, _| {
            w.plain.cancel_wait(w.stale)
        })
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
