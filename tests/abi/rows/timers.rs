//! Handles.

use super::*;
use crate::world::NONE;

/// The functions that take a handle.
pub type OnTimer = fn(*mut sw_service, sw_timer, &mut Out) -> sw_status;
pub const ON_TIMER: [(&str, OnTimer); 5] = [
    ("sw_timer_cancel", |raw, timer, _| unsafe { sw_timer_cancel(raw, timer) }),
    ("sw_timer_cancel_wait", |raw, timer, _| unsafe { sw_timer_cancel_wait(raw, timer) }),
    ("sw_timer_reset", |raw, timer, _| unsafe { sw_timer_reset(raw, timer, 7) }),
    ("sw_timer_reset_at", |raw, timer, _| unsafe { sw_timer_reset_at(raw, timer, 7) }),
    ("sw_timer_remaining", |raw, timer, out| unsafe {
        sw_timer_remaining(raw, timer, &mut out.number)
    }),
];

pub fn handles() -> Vec<Row> {
    let mut rows = Vec::new();
    type Which = fn(&World) -> (*mut sw_service, sw_timer);
    let kinds: [(&str, &[sw_status], Which); 7] = [
        ("null service", &[SW_INVALID], |w| (NONE, w.live)),
        ("zero timer", &[SW_INVALID, SW_NOT_FOUND], |w| (w.plain.raw(), 0)),
        ("all ones timer", &[SW_INVALID, SW_NOT_FOUND], |w| (w.plain.raw(), u64::MAX)),
        ("random timer", &[SW_INVALID, SW_NOT_FOUND], |w| (w.plain.raw(), RANDOM)),
        ("stale timer", &[SW_NOT_FOUND], |w| (w.plain.raw(), w.stale)),
        ("foreign timer", &[SW_INVALID, SW_NOT_FOUND], |w| (w.plain.raw(), w.foreign)),
        ("stopped", &[SW_STOPPED], |w| (w.stopped.raw(), w.of_stopped)),
    ];
    for (function, on_timer) in ON_TIMER {
        for (kind, want, which) in kinds {
            let call = move |w: &World, out: &mut Out| {
                let (raw, timer) = which(w);
                on_timer(raw, timer, out)
            };
            rows.push(Row {
                call: Box::new(call),
                want: want.to_vec(),
                ..row(function, kind, SW_INVALID, |_, _| SW_OK)
            });
        }
    }
    fn moved(w: &World, status: sw_status) -> sw_status {
        if status == SW_OK { w.plain.reset_at(w.live, HOUR) } else { status }
    }
    rows.extend([
        row("sw_timer_reset", "zero delay_ns", SW_OK, |w, _| moved(w, w.plain.reset(w.live, 0))),
        row("sw_timer_reset", "all ones delay_ns", SW_OK, |w, _| {
            moved(w, w.plain.reset(w.live, u64::MAX))
        }),
        row("sw_timer_reset_at", "zero deadline_ns", SW_OK, |w, _| {
            moved(w, w.plain.reset_at(w.live, 0))
        }),
        row("sw_timer_reset_at", "all ones deadline_ns", SW_OK, |w, _| {
            moved(w, w.plain.reset_at(w.live, u64::MAX))
        }),
        row("sw_timer_remaining", "null remaining_ns", SW_INVALID, |w, _| unsafe {
            sw_timer_remaining(w.plain.raw(), w.live, null_mut())
        }),
    ]);
    rows
}
