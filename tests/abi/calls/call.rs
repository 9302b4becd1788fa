//! One call: which one, with which arguments, and whether its answer is one that can be.

use super::pool::{Ctx, Pool, Queue, Service, ctx_of, lock, on_drop, on_expiry};
use super::{WIDTH, may_answer};
use shardwheel::capi::*;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;

/// Inside the callback of this timer, of this service.
type Inside = Option<(usize, sw_timer)>;

pub const MANY: usize = 12;

// SAFETY of every call: a service or queue that is alive or null, locals, and counts that fit them.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Pool {
    /// Makes the call that a code says.
    pub fn make(&self, code: [u8; WIDTH], inside: Inside) {
        if !self.spend() {
            return;
        }
        let [kind, a, b, c, d, ..] = code;
        let shard = [0, 1, 2, 3, SW_SHARD_ANY, u32::MAX - 1][usize::from(b % 6)];
        if inside.is_none() {
            match kind % 28 {
                0 => return self.service_start(code),
                1 if b < 40 => return self.free(a),
                2 => return self.queue_new(a),
                3 if b < 128 => return self.queue_free(a),
                4 => return self.queue_poll(a, b),
                5 => return self.queue_fd(a, b),
                _ => {}
            }
        }
        let (index, raw) = self.service(a, inside);
        let timer = self.timer(c, d, inside);
        match kind % 28 {
            0..=11 => self.start(index, raw, code, shard, inside),
            12 => self.batch(index, raw, code, inside),
            13 | 14 => self.answers("cancel", unsafe { sw_timer_cancel(raw, timer) }),
            15 => self.answers("cancel_wait", unsafe { sw_timer_cancel_wait(raw, timer) }),
            16 | 17 => self.answers("reset", unsafe { sw_timer_reset(raw, timer, span(b)) }),
            18 => self.answers("reset", unsafe { sw_timer_reset_at(raw, timer, span(b)) }),
            19 => {
                let mut left = 7;
                let got = unsafe { sw_timer_remaining(raw, timer, or_null(&mut left, b)) };
                self.wrote("remaining", got, left != 7);
            }
            20 => self.cancel_batch(raw, c, b),
            21 => {
                let how = [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE, 2, u32::MAX];
                let how = how[usize::from(c % 4)];
                self.answers("attach", unsafe { sw_shard_attach(raw, shard, how) });
            }
            22 => self.answers("detach", unsafe { sw_shard_detach(raw, shard) }),
            23 | 24 => {
                let (mut fired, budget) = (usize::MAX - 7, [0, 1, 5, 64][usize::from(c % 4)]);
                let got = unsafe { sw_shard_poll(raw, shard, budget, or_null(&mut fired, d)) };
                self.wrote("poll", got, fired != usize::MAX - 7);
            }
            25 => {
                self.reads(raw, shard, c);
                self.operates(index, raw, shard, code);
            }
            26 => {
                let got = unsafe { sw_clock_advance(raw, span(b) >> (d % 64)) };
                self.answers("advance", got);
            }
            _ => self.stop(raw, b, inside),
        }
    }

    pub fn answers(&self, function: &str, got: sw_status) {
        if got != SW_OK && !may_answer(function).contains(&got) {
            self.wrong(format!("{function} answers {got:?}"));
        }
    }

    /// An answer, and whether an output was written.
    pub fn wrote(&self, function: &str, got: sw_status, wrote: bool) {
        self.answers(function, got);
        if got != SW_OK && wrote {
            self.wrong(format!("{function} answers {got:?} and has written"));
        }
    }

    /// A service; inside a callback its own. Sometimes none.
    fn service(&self, pick: u8, inside: Inside) -> (usize, *mut sw_service) {
        let services = lock(&self.services);
        let index = match inside {
            Some((own, _)) => own,
            None if pick >= 250 => return (0, null_mut()),
            None => match usize::from(pick).checked_rem(services.len()) {
                Some(index) => index,
                None => return (0, null_mut()),
            },
        };
        (index, services.get(index).copied().flatten().map_or(null_mut(), |service| service.raw))
    }

    /// A handle: one that was given out, one beside it, the caller's own, or any number.
    fn timer(&self, pick: u8, spoil: u8, inside: Inside) -> sw_timer {
        let handles = lock(&self.handles);
        let known = usize::from(pick).checked_rem(handles.len());
        let known = known.map(|back| handles[handles.len() - 1 - back].1);
        match (spoil, inside) {
            (0..150, Some((_, own))) if pick < 128 => own,
            (0..200, _) => known.unwrap_or(0),
            (200..230, _) => known.unwrap_or(1) ^ 1 << (pick % 64),
            (230..240, _) => 0,
            (240..250, _) => u64::MAX,
            _ => u64::from(pick) << (spoil % 8 * 7) | 1 << 27,
        }
    }

    fn queue(&self, pick: u8) -> Option<Queue> {
        let queues = lock(&self.queues);
        usize::from(pick).checked_rem(queues.len()).map(|at| queues[at])
    }

    fn service_start(&self, code: [u8; WIDTH]) {
        let [_, a, b, c, d, e, f, _] = code;
        if lock(&self.services).len() >= 4 {
            return;
        }
        let mut config = std::mem::MaybeUninit::<sw_config>::uninit();
        let mut config = unsafe {
            sw_config_init(config.as_mut_ptr());
            config.assume_init()
        };
        // Mostly good; one in four with threads.
        config.mode = if a < 192 { SW_MODE_DRIVEN as u32 } else { u32::from(a % 3) };
        config.clock = if a < 160 { SW_CLOCK_MANUAL as u32 } else { u32::from(b % 4) };
        config.shards = if b < 240 { 1 + u32::from(b % 3) } else { 300 };
        config.pinning = if c < 200 { SW_PIN_NONE as u32 } else { u32::from(c % 5) };
        config.tick_ns = [0, 1_000, 1_000_000, 7_777, 999, u64::MAX][usize::from(d % 6)];
        config.max_timers = [0, 1, 2, 7, 64, u64::MAX][usize::from(e % 6)];
        // With 1 ns every callback is stuck.
        config.slow_callback_ns = [0, 1, 1_000_000][usize::from(f % 3)];
        config.size = if e < 250 { config.size } else { config.size - 1 };
        let mut raw = null_mut();
        let got = unsafe { sw_service_start(&config, &mut raw) };
        self.wrote("service_start", got, !raw.is_null());
        if got == SW_OK {
            lock(&self.services).push(Some(Service { raw }));
        }
    }

    fn free(&self, pick: u8) {
        let mut services = lock(&self.services);
        let Some(index) = usize::from(pick).checked_rem(services.len()) else { return };
        let Some(service) = services[index].take() else { return };
        drop(services);
        lock(&self.queues).retain(|queue| queue.service != index);
        self.close(service.raw);
    }

    fn stop(&self, raw: *mut sw_service, b: u8, inside: Inside) {
        // Outside it ends the case's fun, so it comes rarely.
        if inside.is_none() && b >= 20 {
            return;
        }
        let mut returned = u64::MAX - 7;
        let got = unsafe { sw_service_stop(raw, None, null_mut(), &mut returned) };
        self.wrote("stop", got, returned != u64::MAX - 7);
        if inside.is_some() && got == SW_OK {
            self.wrong("stop inside a callback answers SW_OK".into());
        }
        if inside.is_some() && b & 1 == 0 {
            let got = unsafe { sw_service_free(raw) };
            if got != SW_WOULD_DEADLOCK {
                self.wrong(format!("free inside a callback answers {got:?}"));
            }
        }
    }

    fn spec(&self, index: usize, code: [u8; WIDTH], shard: u32, inside: Inside) -> sw_timer_spec {
        let [kind, a, b, c, d, e, f, g] = code;
        let mut spec = std::mem::MaybeUninit::<sw_timer_spec>::uninit();
        let mut spec = unsafe {
            sw_timer_spec_init(spec.as_mut_ptr());
            spec.assume_init()
        };
        spec.delay_ns = span(c);
        // Never so small that a jump of the clock makes a burst endless.
        spec.period_ns = if f & 1 == 0 { 0 } else { span(d).max(1 << 58) };
        spec.slack_ns = if f & 2 == 0 { 0 } else { span(e) };
        spec.flags = if f < 128 { u32::from(f >> 2 & 7) } else { u32::from(f) };
        spec.shard = shard;
        spec.callback = Some(on_expiry);
        spec.drop = if f & 64 != 0 { Some(on_drop) } else { None };
        // A body that starts the like of itself goes on as long as calls are left.
        let body = [g, a, b, e, d, c, f, kind];
        let (owed, one_shot) = (spec.drop.is_some(), spec.period_ns == 0);
        spec.ctx = self.ctx(Ctx::new(self, index, body, owed, one_shot));
        if inside.is_none()
            && a % 4 == 3
            && let Some(queue) = self.queue(b)
        {
            spec.queue = queue.raw;
            spec.callback = if g < 128 { None } else { spec.callback };
        }
        if e >= 252 {
            spec.callback = None;
        }
        spec
    }

    fn start(
        &self,
        index: usize,
        raw: *mut sw_service,
        code: [u8; WIDTH],
        shard: u32,
        inside: Inside,
    ) {
        let mut spec = self.spec(index, code, shard, inside);
        let bad_size = code[5] == 251;
        let mut timer = 0;
        let call = if code[5] == 250 { None } else { Some(on_expiry as _) };
        let got = unsafe {
            match code[0] % 28 {
                6 => {
                    self.unread(spec.ctx);
                    sw_timer_start(raw, spec.delay_ns, call, spec.ctx, &mut timer)
                }
                7 => {
                    self.unread(spec.ctx);
                    sw_timer_start_at(raw, spec.delay_ns, call, spec.ctx, &mut timer)
                }
                8 => {
                    self.unread(spec.ctx);
                    sw_timer_start_every(raw, spec.period_ns, call, spec.ctx, &mut timer)
                }
                _ => {
                    if bad_size {
                        spec.size = [0, 8, usize::MAX][usize::from(code[7] % 3)];
                        self.unread(spec.ctx);
                    }
                    sw_timer_start_spec(raw, &spec, &mut timer)
                }
            }
        };
        self.wrote("start", got, timer != 0);
        if got == SW_OK {
            self.keep(index, timer);
        }
    }

    fn keep(&self, service: usize, timer: sw_timer) {
        let mut handles = lock(&self.handles);
        if timer == 0 || handles.contains(&(service, timer)) {
            self.wrong(format!("C7: {timer:x} is no new handle"));
        }
        handles.push((service, timer));
    }

    fn batch(&self, index: usize, raw: *mut sw_service, code: [u8; WIDTH], inside: Inside) {
        let count = usize::from(code[4] % 5);
        let mut specs: Vec<sw_timer_spec> = (0..count)
            .map(|nth| {
                let mut code = code;
                code[3] = code[3].wrapping_add(nth as u8);
                self.spec(index, code, SW_SHARD_ANY, inside)
            })
            .collect();
        let mut timers = vec![0; count];
        if code[5] == 251 && count > 1 {
            specs[1].size = 0;
            self.unread(specs[1].ctx);
        }
        let at = if count == 0 && code[5] & 1 == 0 { null() } else { specs.as_ptr() };
        let got = unsafe {
            match code[7] % 2 {
                0 => sw_timer_start_batch(raw, at, count, timers.as_mut_ptr()),
                _ => sw_timer_start_spread(raw, at, count, span(code[6]), timers.as_mut_ptr()),
            }
        };
        self.wrote("start", got, timers.iter().any(|&timer| timer != 0));
        if got == SW_OK {
            timers.into_iter().for_each(|timer| self.keep(index, timer));
        }
    }

    fn cancel_batch(&self, raw: *mut sw_service, c: u8, b: u8) {
        let timers: Vec<sw_timer> = (0..c % 6)
            .map(|nth| self.timer(c.wrapping_add(nth), b.wrapping_mul(nth), None))
            .collect();
        let mut cancelled = usize::MAX - 7;
        let at = if timers.is_empty() { null() } else { timers.as_ptr() };
        let got =
            unsafe { sw_timer_cancel_batch(raw, at, timers.len(), or_null(&mut cancelled, b)) };
        self.wrote("cancel_batch", got, cancelled != usize::MAX - 7);
    }

    fn queue_new(&self, pick: u8) {
        let (service, raw) = self.service(pick, None);
        let mut queue = null_mut();
        let got = unsafe { sw_queue_new(raw, &mut queue) };
        self.wrote("queue_new", got, !queue.is_null());
        if got == SW_OK {
            lock(&self.queues).push(Queue { raw: queue, service });
        }
    }

    fn queue_free(&self, pick: u8) {
        let Some(queue) = self.queue(pick) else {
            return self.answers("queue_free", unsafe { sw_queue_free(null_mut()) });
        };
        lock(&self.queues).retain(|other| other.raw != queue.raw);
        let got = unsafe { sw_queue_free(queue.raw) };
        self.answers("queue_free", got);
        if got == SW_BUSY {
            lock(&self.queues).push(queue);
        }
    }

    fn queue_poll(&self, pick: u8, capacity: u8) {
        let queue = self.queue(pick).map_or(null_mut(), |queue| queue.raw);
        let mut events = Vec::<sw_event>::with_capacity(MANY);
        let capacity = usize::from(capacity) % (MANY + 1);
        let mut taken = usize::MAX - 7;
        let got = unsafe { sw_queue_poll(queue, events.as_mut_ptr(), capacity, &mut taken) };
        self.wrote("queue_poll", got, taken != usize::MAX - 7);
        if got != SW_OK {
            return;
        }
        if taken > capacity {
            return self.wrong(format!("{taken} events of {capacity}"));
        }
        unsafe { events.set_len(taken) };
        for event in events {
            // Of a one-shot the context is ours.
            let ctx = ctx_of(event.ctx);
            if ctx.one_shot {
                ctx.taken.store(1, Ordering::SeqCst);
            }
        }
    }

    fn queue_fd(&self, pick: u8, b: u8) {
        let queue = self.queue(pick).map_or(null_mut(), |queue| queue.raw);
        let mut fd = -7;
        let got = unsafe { sw_queue_fd(queue, or_null(&mut fd, b)) };
        self.wrote("queue_fd", got, fd != -7);
    }
}

/// An output, or none.
pub fn or_null<T>(out: &mut T, pick: u8) -> *mut T {
    if pick >= 248 { null_mut() } else { out }
}

/// A time: nothing, little, a lot, never.
pub fn span(pick: u8) -> u64 {
    match pick {
        0..64 => u64::from(pick) * 1_000,
        64..128 => u64::from(pick) << (pick % 56),
        128..192 => 1 << (pick % 64),
        _ => u64::MAX - u64::from(255 - pick),
    }
}
