//! Shards.

use super::*;
use crate::world::NONE;

/// The functions that take a shard.
type OnShard = fn(*mut sw_service, u32, &mut Out) -> sw_status;
const ON_SHARD: [(&str, OnShard); 5] = [
    ("sw_shard_attach", |raw, shard, _| unsafe { sw_shard_attach(raw, shard, SW_ATTACH_SHARED) }),
    ("sw_shard_detach", |raw, shard, _| unsafe { sw_shard_detach(raw, shard) }),
    ("sw_shard_poll", |raw, shard, out| unsafe { sw_shard_poll(raw, shard, 1, &mut out.count) }),
    ("sw_shard_next", |raw, shard, out| unsafe { sw_shard_next(raw, shard, &mut out.number) }),
    ("sw_shard_fd", |raw, shard, out| unsafe { sw_shard_fd(raw, shard, &mut out.fd) }),
];

pub fn shards() -> Vec<Row> {
    let mut rows = Vec::new();
    type Which = fn(&World) -> (*mut sw_service, u32);
    let kinds: [(&str, sw_status, Which); 5] = [
        ("null service", SW_INVALID, |_| (NONE, 0)),
        ("shard past the end", SW_INVALID, |w| (w.plain.raw(), 2)),
        ("all ones shard", SW_INVALID, |w| (w.plain.raw(), u32::MAX)),
        ("threaded service", SW_UNSUPPORTED, |w| (w.threaded.raw(), 0)),
        ("stopped", SW_STOPPED, |w| (w.stopped.raw(), 0)),
    ];
    for (function, on_shard) in ON_SHARD {
        for (kind, want, which) in kinds {
            let call = move |w: &World, out: &mut Out| {
                let (raw, shard) = which(w);
                on_shard(raw, shard, out)
            };
            // Nobody is attached to a stopped service's shard either.
            let detached = function == "sw_shard_detach" && kind == "stopped";
            let want = if detached { vec![SW_INVALID] } else { vec![want] };
            rows.push(Row {
                call: Box::new(call),
                want,
                ..row(function, kind, SW_INVALID, |_, _| SW_OK)
            });
        }
    }
    rows.extend([
        row("sw_shard_attach", "how past the end", SW_INVALID, |w, _| w.plain.attach(0, 2)),
        row("sw_shard_attach", "all ones how", SW_INVALID, |w, _| w.plain.attach(0, u32::MAX)),
        row("sw_shard_detach", "not attached", SW_INVALID, |w, _| w.plain.detach(0)),
        row("sw_shard_poll", "zero budget", SW_OK, |w, out| unsafe {
            sw_shard_poll(w.plain.raw(), 1, 0, &mut out.count)
        }),
        row("sw_shard_poll", "all ones budget", SW_OK, |w, out| unsafe {
            sw_shard_poll(w.plain.raw(), 1, usize::MAX, &mut out.count)
        }),
        row("sw_shard_poll", "null fired", SW_OK, |w, _| unsafe {
            sw_shard_poll(w.plain.raw(), 1, 0, null_mut())
        }),
        row("sw_shard_next", "null deadline_ns", SW_INVALID, |w, _| unsafe {
            sw_shard_next(w.plain.raw(), 0, null_mut())
        }),
        row("sw_shard_fd", "null fd", SW_INVALID, |w, _| unsafe {
            sw_shard_fd(w.plain.raw(), 0, null_mut())
        }),
    ]);
    rows.extend(visits());
    rows
}

/// A visit, whose outputs are watched one by one: what it cannot have written is as it was.
pub fn visit(
    raw: *mut sw_service,
    shard: u32,
    [place, pending, visited]: [bool; 3],
    capacity: usize,
) -> sw_status {
    // SAFETY: plain numbers.
    let mut one: sw_pending = unsafe { std::mem::zeroed() };
    let (mut at, mut count) = (0, 77);
    fn or_null<T>(out: &mut T, there: bool) -> *mut T {
        if there { out } else { null_mut() }
    }
    let (to, into) = (or_null(&mut at, place), or_null(&mut one, pending));
    let status =
        unsafe { sw_shard_visit(raw, shard, to, into, capacity, or_null(&mut count, visited)) };
    let written = at != 0 || one.timer != 0 || count != 77;
    if status != SW_OK && written { SW_SYSTEM } else { status }
}

fn visits() -> Vec<Row> {
    const VISIT: &str = "sw_shard_visit";
    const ALL: [bool; 3] = [true; 3];
    vec![
        row(VISIT, "null service", SW_INVALID, |_, _| visit(NONE, 0, ALL, 1)),
        row(VISIT, "shard past the end", SW_INVALID, |w, _| visit(w.plain.raw(), 2, ALL, 1)),
        row(VISIT, "all ones shard", SW_INVALID, |w, _| visit(w.plain.raw(), u32::MAX, ALL, 1)),
        row(VISIT, "null place", SW_INVALID, |w, _| {
            visit(w.plain.raw(), 0, [false, true, true], 1)
        }),
        row(VISIT, "null pending", SW_INVALID, |w, _| {
            visit(w.plain.raw(), 0, [true, false, true], 1)
        }),
        row(VISIT, "null visited", SW_INVALID, |w, _| {
            visit(w.plain.raw(), 0, [true, true, false], 1)
        }),
        row(VISIT, "zero capacity", SW_INVALID, |w, _| visit(w.plain.raw(), 0, ALL, 0)),
        row(VISIT, "stopped", SW_OK, |w, _| visit(w.stopped.raw(), 0, ALL, 1)),
    ]
}
