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
    rows
}
