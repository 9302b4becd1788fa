//! S4: bad arguments are `SW_INVALID`; nothing is changed, nothing crashes.
#![allow(clippy::undocumented_unsafe_blocks)] // Live services, locals, and NULL where it is the point.

use crate::support::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// A struct with more bytes behind it, as a later release might have.
#[repr(C)]
#[derive(Clone, Copy)]
struct Larger<T> {
    known: T,
    more: [u64; 4],
}

const CALL: sw_callback = Some(Log::callback);

#[test]
fn s4_null_service_and_queue() {
    let log = Log::new();
    let svc = Setup::manual(MS).start();
    let spec = svc.timer().log(log).spec();
    let (none, ctx) = (null_mut(), log.ctx());
    let (mut timer, mut number, mut count, mut fd) = (7, 7, 7, 7);
    unsafe {
        assert_eq!(sw_service_stop(none, None, null_mut(), &mut number), SW_INVALID);
        assert_eq!(sw_service_free(none), SW_OK);
        sw_shard_count(none);
        sw_clock_now(none);
        assert_eq!(sw_clock_advance(none, 1), SW_INVALID);
        assert_eq!(sw_timer_start(none, 0, CALL, ctx, &mut timer), SW_INVALID);
        assert_eq!(sw_timer_start_at(none, 0, CALL, ctx, &mut timer), SW_INVALID);
        assert_eq!(sw_timer_start_every(none, MS, CALL, ctx, &mut timer), SW_INVALID);
        assert_eq!(sw_timer_start_spec(none, &spec, &mut timer), SW_INVALID);
        assert_eq!(sw_timer_start_batch(none, &spec, 1, &mut timer), SW_INVALID);
        assert_eq!(sw_timer_cancel(none, 1), SW_INVALID);
        assert_eq!(sw_timer_cancel_wait(none, 1), SW_INVALID);
        assert_eq!(sw_timer_cancel_batch(none, &timer, 1, &mut count), SW_INVALID);
        assert_eq!(sw_timer_reset(none, 1, 1), SW_INVALID);
        assert_eq!(sw_timer_reset_at(none, 1, 1), SW_INVALID);
        assert_eq!(sw_timer_remaining(none, 1, &mut number), SW_INVALID);
        assert_eq!(sw_shard_attach(none, 0, 0), SW_INVALID);
        assert_eq!(sw_shard_detach(none, 0), SW_INVALID);
        assert_eq!(sw_shard_poll(none, 0, 0, &mut count), SW_INVALID);
        assert_eq!(sw_shard_next(none, 0, &mut number), SW_INVALID);
        assert_eq!(sw_shard_fd(none, 0, &mut fd), SW_INVALID);
        let mut queue = null_mut();
        assert_eq!(sw_queue_new(none, &mut queue), SW_INVALID);
        assert!(queue.is_null());
        let mut stats = svc.stats();
        assert_eq!(sw_stats_read(none, 0, &mut stats), SW_INVALID);
        let mut text = [7i8; 8];
        let to = text.as_mut_ptr().cast();
        assert_eq!(sw_stats_prometheus(none, to, 8, &mut count), SW_INVALID);
        // The queue's own calls.
        let none = null_mut();
        let mut event: sw_event = std::mem::zeroed();
        assert_eq!(sw_queue_poll(none, &mut event, 1, &mut count), SW_INVALID);
        assert_eq!(sw_queue_fd(none, &mut fd), SW_INVALID);
        assert_eq!(sw_queue_free(none), SW_INVALID);
    }
    assert_eq!((timer, number, count, fd), (7, 7, 7, 7), "outputs are untouched");
}

#[test]
fn s4_null_outputs() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let timer = svc.start(HOUR, log);
    let queue = svc.queue();
    unsafe {
        assert_eq!(sw_service_start(null(), null_mut()), SW_INVALID);
        assert_eq!(sw_timer_remaining(svc.raw(), timer, null_mut()), SW_INVALID);
        assert_eq!(sw_shard_next(svc.raw(), 0, null_mut()), SW_INVALID);
        assert_eq!(sw_shard_fd(svc.raw(), 0, null_mut()), SW_INVALID);
        assert_eq!(sw_queue_new(svc.raw(), null_mut()), SW_INVALID);
        assert_eq!(sw_queue_fd(queue.raw(), null_mut()), SW_INVALID);
        assert_eq!(sw_stats_read(svc.raw(), 0, null_mut()), SW_INVALID);
        let mut event: sw_event = std::mem::zeroed();
        let mut taken = 7;
        assert_eq!(sw_queue_poll(queue.raw(), &mut event, 1, null_mut()), SW_INVALID);
        assert_eq!(sw_queue_poll(queue.raw(), null_mut(), 1, &mut taken), SW_INVALID);
        let mut needed = 7;
        assert_eq!(sw_stats_prometheus(svc.raw(), null_mut(), 100, &mut needed), SW_INVALID);
        assert_eq!((taken, needed), (7, 7));
        // Nothing to fill in: nothing happens.
        sw_config_init(null_mut());
        sw_timer_spec_init(null_mut());
    }
    assert_eq!(svc.remaining(timer), Ok(HOUR));
}

#[test]
fn s4_null_inputs() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let (raw, ctx) = (svc.raw(), log.ctx());
    let mut timer = 7;
    unsafe {
        assert_eq!(sw_timer_start(raw, 0, None, ctx, &mut timer), SW_INVALID);
        assert_eq!(sw_timer_start_at(raw, 0, None, ctx, &mut timer), SW_INVALID);
        assert_eq!(sw_timer_start_every(raw, MS, None, ctx, &mut timer), SW_INVALID);
        assert_eq!(sw_timer_start_spec(raw, null(), &mut timer), SW_INVALID);
        assert_eq!(sw_timer_start_batch(raw, null(), 1, &mut timer), SW_INVALID);
        let mut count = 7;
        assert_eq!(sw_timer_cancel_batch(raw, null(), 1, &mut count), SW_INVALID);
        assert_eq!((timer, count), (7, 7));
    }
    // Neither callback nor queue.
    assert_eq!(svc.timer().with(|spec| spec.callback = None).try_start(), Err(SW_INVALID));
    assert_eq!(svc.stats().started, 0);
}

#[test]
fn s4_what_may_be_null() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let raw = svc.raw();
    // With no drop and no context either.
    let spec = svc.timer().delay(HOUR).log(log).with(|spec| spec.drop = None).spec();
    unsafe extern "C-unwind" fn nothing(ctx: *mut c_void, _: *const sw_expiry) {
        assert!(ctx.is_null());
    }
    let timer = svc.start(HOUR, log);
    unsafe {
        assert_eq!(sw_timer_start(raw, 0, CALL, log.ctx(), null_mut()), SW_OK);
        assert_eq!(sw_timer_start_at(raw, 0, CALL, log.ctx(), null_mut()), SW_OK);
        assert_eq!(sw_timer_start_every(raw, HOUR, CALL, log.ctx(), null_mut()), SW_OK);
        assert_eq!(sw_timer_start_spec(raw, &spec, null_mut()), SW_OK);
        assert_eq!(sw_timer_start_batch(raw, [spec, spec].as_ptr(), 2, null_mut()), SW_OK);
        assert_eq!(sw_timer_start(raw, 0, Some(nothing), null_mut(), null_mut()), SW_OK);
        assert_eq!(sw_timer_cancel_batch(raw, &timer, 1, null_mut()), SW_OK);
        assert_eq!(sw_shard_poll(raw, 0, 0, null_mut()), SW_OK);
        let mut text = vec![0u8; 1 << 16];
        let to = text.as_mut_ptr().cast();
        assert_eq!(sw_stats_prometheus(raw, to, text.len(), null_mut()), SW_OK);
        assert_eq!(sw_service_stop(raw, None, null_mut(), null_mut()), SW_OK);
        // Every hook, the whole configuration.
        let mut service = null_mut();
        assert_eq!(sw_service_start(null(), &mut service), SW_OK);
        assert_eq!(sw_service_free(service), SW_OK);
    }
    assert_eq!(log.count(), 2);
}

#[test]
fn s4_the_size_of_a_config() {
    let full = size_of::<sw_config>();
    for size in [0, 1, 8, full - 1, full / 2] {
        let setup = Setup::manual(MS).with(|config| config.size = size);
        assert_eq!(setup.try_start().err(), Some(SW_INVALID), "{size}");
    }
    let mut known: sw_config = unsafe { std::mem::zeroed() };
    unsafe { sw_config_init(&mut known) };
    assert_eq!(known.size, full);
    known.mode = SW_MODE_DRIVEN as u32;
    let mut larger = Larger { known, more: [0; 4] };
    let mut service = null_mut();
    for more in 1..=4 {
        larger.known.size = full + 8 * more;
        larger.more[more - 1] = 0;
        let status = unsafe { sw_service_start(&larger.known, &mut service) };
        assert_eq!(status, SW_OK, "{more} words more, all zero");
        assert_eq!(unsafe { sw_service_free(service) }, SW_OK);
        service = null_mut();
        larger.more[more - 1] = 1 << 40;
        let status = unsafe { sw_service_start(&larger.known, &mut service) };
        assert_eq!(status, SW_INVALID, "{more} words more, not all zero");
        assert!(service.is_null());
        larger.more[more - 1] = 0;
    }
}

#[test]
fn s4_the_size_of_a_spec() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let full = size_of::<sw_timer_spec>();
    for size in [0, 1, 8, full - 1, full / 2] {
        let timer = svc.timer().log(log).with(|spec| spec.size = size);
        assert_eq!(timer.try_start(), Err(SW_INVALID), "{size}");
        let spec = svc.timer().log(log).with(|spec| spec.size = size).spec();
        assert_eq!(svc.start_batch(&[spec]), Err(SW_INVALID), "{size}");
    }
    let known = svc.timer().delay(MS).log(log).spec();
    assert_eq!(known.size, full);
    let mut larger = Larger { known, more: [0; 4] };
    larger.known.size = size_of_val(&larger);
    let mut timer = 0;
    let status = unsafe { sw_timer_start_spec(svc.raw(), &larger.known, &mut timer) };
    assert_eq!(status, SW_OK);
    larger.more[3] = 1;
    let status = unsafe { sw_timer_start_spec(svc.raw(), &larger.known, &mut timer) };
    assert_eq!(status, SW_INVALID);
    assert_eq!(svc.stats().started, 1);
}

#[test]
fn s4_in_a_batch_the_size_is_the_stride() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let known = svc.timer().delay(MS).log(log).spec();
    let mut batch = [Larger { known, more: [0; 4] }; 3];
    for (nth, one) in batch.iter_mut().enumerate() {
        one.known.size = size_of_val(one);
        one.known.delay_ns = (nth as u64 + 1) * MS;
    }
    let mut timers = [0; 3];
    let first = &raw const batch[0].known;
    let start = |timers: &mut [sw_timer; 3]| unsafe {
        sw_timer_start_batch(svc.raw(), first, 3, timers.as_mut_ptr())
    };
    assert_eq!(start(&mut timers), SW_OK);
    for (timer, left) in timers.iter().zip([MS, 2 * MS, 3 * MS]) {
        assert_eq!(svc.remaining(*timer), Ok(left));
    }
    svc.run(3 * MS);
    assert_eq!(log.count(), 3);
    // One that says another size; one that says something unknown.
    let whole = svc.timer().delay(MS).log(log).spec();
    let mut mixed = [whole; 3];
    mixed[1].size += 8;
    assert_eq!(svc.start_batch(&mixed), Err(SW_INVALID));
    mixed[1].size = 0;
    assert_eq!(svc.start_batch(&mixed), Err(SW_INVALID));
    assert_eq!(svc.stats().started, 3);
    assert_eq!(svc.pending(), 0);
}

#[test]
fn s4_the_size_of_stats() {
    let svc = Setup::manual(MS).start();
    let full = size_of::<sw_stats>();
    let mut stats = svc.stats();
    for size in [0, 1, 8, full - 1] {
        stats.size = size;
        stats.started = 77;
        assert_eq!(unsafe { sw_stats_read(svc.raw(), 0, &mut stats) }, SW_INVALID);
        assert_eq!(stats.started, 77);
    }
    let mut larger = Larger { known: svc.stats(), more: [0; 4] };
    larger.known.size = size_of_val(&larger);
    larger.known.started = 77;
    assert_eq!(unsafe { sw_stats_read(svc.raw(), 0, &mut larger.known) }, SW_OK);
    assert_eq!(larger.known.started, 0);
}

#[test]
fn s4_configurations_out_of_range() {
    type Edit = fn(&mut sw_config);
    let bad: [(&str, Edit); 16] = [
        ("mode", |config| config.mode = 2),
        ("mode", |config| config.mode = u32::MAX),
        ("clock", |config| config.clock = 3),
        ("clock", |config| config.clock = u32::MAX),
        ("pinning", |config| config.pinning = 3),
        ("pinning", |config| config.pinning = u32::MAX),
        ("shards", |config| config.shards = 257),
        ("shards", |config| config.shards = u32::MAX),
        ("tick", |config| config.tick_ns = 1),
        ("tick", |config| config.tick_ns = US - 1),
        ("tick", |config| config.tick_ns = HOUR + 1),
        ("tick", |config| config.tick_ns = u64::MAX),
        ("max_timers", |config| config.max_timers = (1 << 28) + 1),
        ("no list", |config| config.pinning = SW_PIN_LIST as u32),
        ("empty list", |config| {
            config.pinning = SW_PIN_LIST as u32;
            config.cpus = &0;
        }),
        ("null list", |config| {
            config.pinning = SW_PIN_LIST as u32;
            config.cpu_count = 1;
        }),
    ];
    for (what, edit) in bad {
        for setup in [Setup::driven(), Setup::threaded(1)] {
            assert_eq!(setup.with(edit).try_start().err(), Some(SW_INVALID), "{what}");
        }
    }
    // The manual clock is for driven mode.
    let threaded = Setup::threaded(1).with(|config| config.clock = SW_CLOCK_MANUAL as u32);
    assert!(matches!(threaded.try_start().err(), Some(SW_INVALID | SW_UNSUPPORTED)));
    // The bounds themselves are in range.
    for tick in [0, US, HOUR] {
        drop(Setup::manual(tick).start());
    }
    drop(Setup::driven().shards(256).start());
}

#[test]
fn s4_shards_flags_and_ways_out_of_range() {
    let svc = Setup::manual(MS).shards(2).start();
    let log = Log::new();
    for shard in [2, 3, 255, 256, u32::MAX - 1] {
        assert_eq!(svc.timer().shard(shard).log(log).try_start(), Err(SW_INVALID));
        assert_eq!(svc.try_poll(shard, 0), Err(SW_INVALID));
        assert_eq!(svc.next_of(shard), Err(SW_INVALID));
        assert_eq!(svc.fd_of(shard), Err(SW_INVALID));
        assert_eq!(svc.attach(shard, SW_ATTACH_SHARED), SW_INVALID);
        assert_eq!(svc.detach(shard), SW_INVALID);
        let mut stats = svc.stats();
        assert_eq!(unsafe { sw_stats_read(svc.raw(), shard, &mut stats) }, SW_INVALID);
    }
    assert_eq!(svc.try_poll(SW_SHARD_ANY, 0), Err(SW_INVALID));
    assert_eq!(svc.attach(SW_SHARD_ANY, SW_ATTACH_SHARED), SW_INVALID);
    for how in [2, 3, u32::MAX] {
        assert_eq!(svc.attach(0, how), SW_INVALID);
    }
    assert_eq!(svc.detach(0), SW_INVALID, "a refused attach attached");
    for bit in 3..32 {
        let timer = svc.timer().period(MS).flags(1 << bit).log(log);
        assert_eq!(timer.try_start(), Err(SW_INVALID), "flag {bit}");
    }
    assert_eq!(svc.stats().started, 0);
}

#[test]
fn s4_not_in_this_mode() {
    let threaded = Setup::threaded(1).start();
    assert_eq!(threaded.try_poll(0, 0), Err(SW_UNSUPPORTED));
    assert_eq!(threaded.attach(0, SW_ATTACH_SHARED), SW_UNSUPPORTED);
    for svc in [threaded, Setup::driven().start()] {
        let before = svc.now();
        let status = unsafe { sw_clock_advance(svc.raw(), HOUR) };
        assert!(status == SW_UNSUPPORTED || status == SW_INVALID, "{status:?}");
        assert!(svc.now() < before + HOUR);
    }
}

#[test]
fn s4_prometheus_stays_within_its_capacity() {
    let svc = Setup::manual(MS).start();
    let mut needed = 0;
    let mut whole = vec![b'x'; 1 << 16];
    let status = unsafe {
        sw_stats_prometheus(svc.raw(), whole.as_mut_ptr().cast(), whole.len(), &mut needed)
    };
    assert_eq!(status, SW_OK);
    assert_eq!(whole[needed], 0, "needed is the length without the final NUL");
    assert!(!whole[..needed].contains(&0));
    for capacity in [1, 10, 100, needed, needed + 1] {
        let mut part = vec![b'x'; needed + 100];
        let mut again = 0;
        let status = unsafe {
            sw_stats_prometheus(svc.raw(), part.as_mut_ptr().cast(), capacity, &mut again)
        };
        assert!(part[capacity..].iter().all(|&byte| byte == b'x'), "{capacity}");
        if status == SW_OK {
            assert!(part[..capacity].contains(&0));
            assert_eq!(again, needed);
        }
    }
}

#[test]
fn s4_texts_and_version() {
    use std::ffi::CStr;
    for status in -12..6 {
        let text = sw_status_text(status);
        assert!(!text.is_null());
        assert!(!unsafe { CStr::from_ptr(text) }.to_bytes().is_empty());
    }
    let version = unsafe { CStr::from_ptr(sw_version()) }.to_str().unwrap();
    assert_eq!(version.split('.').filter(|part| part.parse::<u32>().is_ok()).count(), 3);
}
