//! Services, queues and counters.

use super::*;
use crate::world::NONE;
use std::ffi::c_void;
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
    const STUCK: &str = "sw_service_on_stuck";
    unsafe extern "C-unwind" fn stuck(_: *mut c_void, _: u32, _: sw_timer, _: u64) {}
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
        row("sw_service_trim", "null service", SW_INVALID, |_, _| unsafe { sw_service_trim(NONE) }),
        row("sw_service_trim", "stopped", SW_OK, |w, _| unsafe {
            sw_service_trim(w.stopped.raw())
        }),
        row(STUCK, "null service", SW_INVALID, |_, _| unsafe {
            sw_service_on_stuck(NONE, Some(stuck), null_mut())
        }),
        row(STUCK, "null hook", SW_INVALID, |w, _| unsafe {
            sw_service_on_stuck(w.plain.raw(), None, null_mut())
        }),
        row(STUCK, "no limit", SW_INVALID, |w, _| unsafe {
            sw_service_on_stuck(w.plain.raw(), Some(stuck), null_mut())
        }),
        row(STUCK, "stopped", SW_STOPPED, |_, _| unsafe {
            let svc = Setup::manual(MS).with(|config| config.slow_callback_ns = SEC).start();
            assert_eq!(svc.stop(), SW_OK);
            sw_service_on_stuck(svc.raw(), Some(stuck), null_mut())
        }),
        row(STUCK, "a second hook", SW_BUSY, |_, _| unsafe {
            let svc = Setup::manual(MS).with(|config| config.slow_callback_ns = SEC).start();
            assert_eq!(sw_service_on_stuck(svc.raw(), Some(stuck), null_mut()), SW_OK);
            sw_service_on_stuck(svc.raw(), Some(stuck), null_mut())
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

/// Reads counters or details into a struct that says another size, with something behind it.
fn sized<T>(
    w: &World,
    size: usize,
    more: u64,
    read: unsafe extern "C" fn(*mut sw_service, u32, *mut T) -> sw_status,
) -> sw_status {
    // SAFETY: plain numbers, of which the first is the size.
    let mut later: Later<T> = unsafe { std::mem::zeroed() };
    later.1[1] = more;
    let at = &raw mut later.0;
    unsafe {
        at.cast::<usize>().write(size);
        let status = read(w.plain.raw(), 0, at);
        let bytes = std::slice::from_raw_parts(at.cast::<u64>().add(1), size_of::<T>() / 8 - 1);
        if bytes.iter().all(|&word| word == 0) { status } else { SW_SYSTEM }
    }
}

pub fn details(size: usize) -> sw_details {
    // SAFETY: plain numbers.
    let mut details: sw_details = unsafe { std::mem::zeroed() };
    details.size = size;
    details
}

pub fn numbers() -> Vec<Row> {
    const READ: &str = "sw_stats_read";
    const DETAILS: &str = "sw_details_read";
    const FULL: usize = size_of::<sw_stats>();
    const WHOLE: usize = size_of::<sw_details>();
    let mut rows = vec![
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
        row(READ, "zero size", SW_INVALID, |w, _| sized(w, 0, 0, sw_stats_read)),
        row(READ, "small size", SW_INVALID, |w, _| sized(w, 8, 0, sw_stats_read)),
        row(READ, "garbage size", SW_INVALID, |w, _| sized(w, usize::MAX, 0, sw_stats_read)),
        row(READ, "larger size", SW_INVALID, |w, _| sized(w, FULL + 16, 1, sw_stats_read)),
        row(READ, "stopped", SW_OK, |w, out| unsafe {
            sw_stats_read(w.stopped.raw(), 0, &mut out.stats)
        }),
        row(DETAILS, "null service", SW_INVALID, |_, _| unsafe {
            sw_details_read(NONE, 0, &mut details(WHOLE))
        }),
        row(DETAILS, "shard past the end", SW_INVALID, |w, _| unsafe {
            sw_details_read(w.plain.raw(), 2, &mut details(WHOLE))
        }),
        row(DETAILS, "all ones shard", SW_OK, |w, _| unsafe {
            sw_details_read(w.plain.raw(), u32::MAX, &mut details(WHOLE))
        }),
        row(DETAILS, "null details", SW_INVALID, |w, _| unsafe {
            sw_details_read(w.plain.raw(), 0, null_mut())
        }),
        row(DETAILS, "zero size", SW_INVALID, |w, _| sized(w, 0, 0, sw_details_read)),
        row(DETAILS, "small size", SW_INVALID, |w, _| sized(w, 8, 0, sw_details_read)),
        row(DETAILS, "garbage size", SW_INVALID, |w, _| sized(w, usize::MAX, 0, sw_details_read)),
        row(DETAILS, "larger size", SW_INVALID, |w, _| sized(w, WHOLE + 16, 1, sw_details_read)),
        row(DETAILS, "stopped", SW_OK, |w, _| unsafe {
            sw_details_read(w.stopped.raw(), 0, &mut details(WHOLE))
        }),
    ];
    type Text = unsafe extern "C" fn(
        *mut sw_service,
        *mut std::ffi::c_char,
        usize,
        *mut usize,
    ) -> sw_status;
    let texts: [(&str, Text); 2] =
        [("sw_stats_prometheus", sw_stats_prometheus), ("sw_stats_report", sw_stats_report)];
    type Arguments = fn(&World, &mut Out) -> (*mut sw_service, bool, usize, bool);
    let kinds: [(&str, sw_status, Arguments); 5] = [
        ("null service", SW_INVALID, |_, _| (NONE, true, 64, true)),
        ("null buffer", SW_INVALID, |w, _| (w.plain.raw(), false, 64, true)),
        ("zero capacity", SW_OK, |w, _| (w.plain.raw(), false, 0, true)),
        ("null needed", SW_OK, |w, _| (w.plain.raw(), true, 64, false)),
        ("stopped", SW_OK, |w, _| (w.stopped.raw(), true, 64, true)),
    ];
    for (function, text) in texts {
        for (kind, want, arguments) in kinds {
            let call = move |w: &World, out: &mut Out| {
                let (raw, buffer, capacity, needed) = arguments(w, out);
                let to = if buffer { out.text.as_mut_ptr().cast() } else { null_mut() };
                let needed = if needed { &raw mut out.count } else { null_mut() };
                unsafe { text(raw, to, capacity, needed) }
            };
            rows.push(Row { call: Box::new(call), ..row(function, kind, want, |_, _| SW_OK) });
        }
    }
    rows
}
