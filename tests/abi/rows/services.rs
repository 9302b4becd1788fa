//! Services, queues and counters.

use super::*;
use crate::world::NONE;
use std::ptr::null;

fn config(size: usize, more: u64, out: &mut Out) -> sw_status {
    let mut config = std::mem::MaybeUninit::<sw_config>::uninit();
    let config = unsafe {
        sw_config_init(config.as_mut_ptr());
        config.assume_init()
    };
    let mut later = Later(config, [0, more]);
    later.0.size = size;
    later.0.mode = SW_MODE_DRIVEN as u32;
    unsafe { sw_service_start(&later.0, &mut out.service) }
}

pub fn services() -> Vec<Row> {
    const START: &str = "sw_service_start";
    const STOP: &str = "sw_service_stop";
    vec![
        row(START, "null config", SW_OK, |_, out| unsafe {
            let status = sw_service_start(null(), &mut out.service);
            if status == SW_OK { sw_service_free(out.service) } else { status }
        }),
        row(START, "null service", SW_INVALID, |_, _| unsafe {
            sw_service_start(null(), null_mut())
        }),
        row(START, "zero size", SW_INVALID, |_, out| config(0, 0, out)),
        row(START, "small size", SW_INVALID, |_, out| config(size_of::<sw_config>() - 1, 0, out)),
        row(START, "garbage size", SW_INVALID, |_, out| config(usize::MAX, 0, out)),
        row(START, "larger size", SW_INVALID, |_, out| {
            config(size_of::<Later<sw_config>>(), 1, out)
        }),
        row(STOP, "null service", SW_INVALID, |_, out| unsafe {
            sw_service_stop(NONE, None, null_mut(), &mut out.number)
        }),
        row(STOP, "null unfired", SW_OK, |_, _| {
            let svc = Setup::manual(MS).start();
            svc.stop()
        }),
        row(STOP, "null returned", SW_OK, |_, _| Setup::manual(MS).start().stop()),
        row(STOP, "stopped", SW_OK, |w, out| unsafe {
            let status = sw_service_stop(w.stopped.raw(), None, null_mut(), &mut out.number);
            if out.number == 0 { status } else { SW_SYSTEM }
        }),
        row("sw_service_free", "null service", SW_OK, |_, _| unsafe { sw_service_free(NONE) }),
        row("sw_service_free", "stopped", SW_OK, |_, _| {
            let svc = Setup::manual(MS).start();
            svc.stop()
        }),
        row("sw_shard_count", "null service", SW_OK, |_, _| unsafe {
            holds(sw_shard_count(NONE) == 0)
        }),
        row("sw_shard_count", "stopped", SW_OK, |w, _| holds(w.stopped.shard_count() == 1)),
        row("sw_clock_now", "null service", SW_OK, |_, _| unsafe {
            holds(sw_clock_now(NONE) == 0)
        }),
        row("sw_clock_now", "stopped", SW_OK, |w, _| holds(w.stopped.now() == 0)),
        row("sw_clock_advance", "null service", SW_INVALID, |_, _| unsafe {
            sw_clock_advance(NONE, 1)
        }),
        row("sw_clock_advance", "zero by_ns", SW_OK, |w, _| unsafe {
            sw_clock_advance(w.plain.raw(), 0)
        }),
        row("sw_clock_advance", "all ones by_ns", SW_OK, |_, _| {
            let svc = Setup::manual(MS).start();
            svc.advance(5);
            svc.advance(u64::MAX);
            holds(svc.now() == SW_NEVER)
        }),
        row("sw_clock_advance", "stopped", SW_OK, |_, _| {
            let svc = Setup::manual(MS).start();
            let stopped = svc.stop();
            svc.advance(1);
            stopped
        }),
        row("sw_clock_advance", "real clock", SW_UNSUPPORTED, |w, _| unsafe {
            sw_clock_advance(w.threaded.raw(), HOUR)
        }),
    ]
}

pub fn queues() -> Vec<Row> {
    const NEW: &str = "sw_queue_new";
    const POLL: &str = "sw_queue_poll";
    vec![
        row(NEW, "null service", SW_INVALID, |_, out| unsafe {
            sw_queue_new(NONE, &mut out.queue)
        }),
        row(NEW, "null queue", SW_INVALID, |w, _| unsafe {
            sw_queue_new(w.plain.raw(), null_mut())
        }),
        row(NEW, "stopped", SW_STOPPED, |w, out| unsafe {
            sw_queue_new(w.stopped.raw(), &mut out.queue)
        }),
        row(POLL, "null queue", SW_INVALID, |_, out| unsafe {
            sw_queue_poll(null_mut(), &mut out.event, 1, &mut out.count)
        }),
        row(POLL, "null events", SW_INVALID, |w, out| unsafe {
            sw_queue_poll(w.queue.raw(), null_mut(), 1, &mut out.count)
        }),
        row(POLL, "null taken", SW_INVALID, |w, out| unsafe {
            sw_queue_poll(w.queue.raw(), &mut out.event, 1, null_mut())
        }),
        row(POLL, "zero capacity", SW_OK, |w, out| unsafe {
            let status = sw_queue_poll(w.queue.raw(), &mut out.event, 0, &mut out.count);
            if out.count == 0 { status } else { SW_SYSTEM }
        }),
        row(POLL, "stopped", SW_STOPPED, |w, out| unsafe {
            sw_queue_poll(w.stopped_queue.raw(), &mut out.event, 1, &mut out.count)
        }),
        row("sw_queue_fd", "null queue", SW_INVALID, |_, out| unsafe {
            sw_queue_fd(null_mut(), &mut out.fd)
        }),
        row("sw_queue_fd", "null fd", SW_INVALID, |w, _| unsafe {
            sw_queue_fd(w.queue.raw(), null_mut())
        }),
        row("sw_queue_fd", "stopped", SW_STOPPED, |w, out| unsafe {
            sw_queue_fd(w.stopped_queue.raw(), &mut out.fd)
        }),
        row("sw_queue_free", "null queue", SW_INVALID, |_, _| unsafe { sw_queue_free(null_mut()) }),
        row("sw_queue_free", "stopped", SW_OK, |_, _| {
            let svc = Setup::manual(MS).start();
            let queue = svc.queue();
            assert_eq!(svc.stop(), SW_OK);
            queue.free()
        }),
        row("sw_queue_free", "taken shard", SW_BUSY, |w, _| w.taken_queue.free()),
    ]
}

fn stats(w: &World, out: &mut Out, size: usize, more: u64) -> sw_status {
    out.stats.size = size;
    out.more[1] = more;
    let status = unsafe { sw_stats_read(w.plain.raw(), 0, &mut out.stats) };
    out.stats.size = size_of::<sw_stats>();
    out.more[1] = 0;
    status
}

pub fn numbers() -> Vec<Row> {
    const READ: &str = "sw_stats_read";
    const TEXT: &str = "sw_stats_prometheus";
    const FULL: usize = size_of::<sw_stats>();
    vec![
        row(READ, "null service", SW_INVALID, |_, out| unsafe {
            sw_stats_read(NONE, 0, &mut out.stats)
        }),
        row(READ, "shard past the end", SW_INVALID, |w, out| unsafe {
            sw_stats_read(w.plain.raw(), 2, &mut out.stats)
        }),
        row(READ, "all ones shard", SW_OK, |w, out| unsafe {
            sw_stats_read(w.plain.raw(), u32::MAX, &mut out.stats)
        }),
        row(READ, "null stats", SW_INVALID, |w, _| unsafe {
            sw_stats_read(w.plain.raw(), 0, null_mut())
        }),
        row(READ, "zero size", SW_INVALID, |w, out| stats(w, out, 0, 0)),
        row(READ, "small size", SW_INVALID, |w, out| stats(w, out, FULL - 1, 0)),
        row(READ, "garbage size", SW_INVALID, |w, out| stats(w, out, usize::MAX, 0)),
        row(READ, "larger size", SW_INVALID, |w, out| stats(w, out, FULL + 32, 1)),
        row(READ, "stopped", SW_OK, |w, out| unsafe {
            sw_stats_read(w.stopped.raw(), 0, &mut out.stats)
        }),
        row(TEXT, "null service", SW_INVALID, |_, out| unsafe {
            sw_stats_prometheus(NONE, out.text.as_mut_ptr().cast(), 64, &mut out.count)
        }),
        row(TEXT, "null buffer", SW_INVALID, |w, out| unsafe {
            sw_stats_prometheus(w.plain.raw(), null_mut(), 64, &mut out.count)
        }),
        row(TEXT, "zero capacity", SW_OK, |w, out| unsafe {
            sw_stats_prometheus(w.plain.raw(), null_mut(), 0, &mut out.count)
        }),
        row(TEXT, "null needed", SW_OK, |w, out| unsafe {
            sw_stats_prometheus(w.plain.raw(), out.text.as_mut_ptr().cast(), 64, null_mut())
        }),
        row(TEXT, "stopped", SW_OK, |w, out| unsafe {
            sw_stats_prometheus(w.stopped.raw(), null_mut(), 0, &mut out.count)
        }),
    ]
}
