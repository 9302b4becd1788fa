//! The calls of those who run a service: numbers, texts, who is pending, memory back.

use super::WIDTH;
use super::call::{MANY, or_null, span};
use super::pool::{Pool, ctx_of, on_stuck};
use shardwheel::capi::*;
use std::ptr::null_mut;

// SAFETY of every call: as in `call`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Pool {
    pub fn reads(&self, raw: *mut sw_service, shard: u32, c: u8) {
        let (mut next, mut fd, mut needed) = (7, -7, usize::MAX - 7);
        let got = unsafe { sw_shard_next(raw, shard, or_null(&mut next, c)) };
        self.wrote("next", got, next != 7);
        let got = unsafe { sw_shard_fd(raw, shard, or_null(&mut fd, c)) };
        self.wrote("fd", got, fd != -7);
        let mut stats: sw_stats = unsafe { std::mem::zeroed() };
        stats.size = if c % 8 == 7 { usize::from(c) } else { size_of::<sw_stats>() };
        stats.memory_bytes = 7;
        let got = unsafe { sw_stats_read(raw, shard, or_null(&mut stats, c)) };
        self.wrote("stats", got, stats.memory_bytes != 7);
        let mut text = [0_u8; 64];
        let capacity = usize::from(c % 65);
        let got =
            unsafe { sw_stats_prometheus(raw, text.as_mut_ptr().cast(), capacity, &mut needed) };
        self.wrote("prometheus", got, needed != usize::MAX - 7);
        if text[capacity..].iter().any(|&byte| byte != 0) {
            self.wrong("prometheus writes past its capacity".into());
        }
        let got = unsafe { sw_stats_report(raw, text.as_mut_ptr().cast(), capacity, &mut needed) };
        self.answers("report", got);
        if text[capacity..].iter().any(|&byte| byte != 0) {
            self.wrong("report writes past its capacity".into());
        }
        let mut details: sw_details = unsafe { std::mem::zeroed() };
        details.size = if c % 8 == 7 { usize::from(c) } else { size_of::<sw_details>() };
        details.turns = u64::MAX - 7;
        let got = unsafe { sw_details_read(raw, shard, or_null(&mut details, c)) };
        self.wrote("details", got, details.turns != u64::MAX - 7);
        let _: (u32, u64) = unsafe { (sw_shard_count(raw), sw_clock_now(raw)) };
        let _: u32 = sw_timer_shard(u64::from(c) << 50);
    }

    pub fn operates(&self, index: usize, raw: *mut sw_service, shard: u32, code: [u8; WIDTH]) {
        let [_, _, _, c, d, e, f, _] = code;
        let mut pending = Vec::<sw_pending>::with_capacity(MANY);
        let capacity = usize::from(d) % (MANY + 1);
        let (begin, mut visited) = (if e < 128 { u64::from(e) } else { span(e) }, usize::MAX - 7);
        let mut place = begin;
        let at = or_null(&mut place, c);
        let got =
            unsafe { sw_shard_visit(raw, shard, at, pending.as_mut_ptr(), capacity, &mut visited) };
        self.wrote("visit", got, place != begin || visited != usize::MAX - 7);
        if got == SW_OK && visited > capacity {
            self.wrong(format!("{visited} visited of {capacity}"));
        } else if got == SW_OK {
            unsafe { pending.set_len(visited) };
            if pending.iter().any(|pending| ctx_of(pending.ctx).service != index) {
                self.wrong("a visit tells of another service's timer".into());
            }
        }
        if f < 64 {
            self.answers("trim", unsafe { sw_service_trim(raw) });
        }
        if f >= 192 {
            let hook = if f < 250 { Some(on_stuck as _) } else { None };
            self.answers("on_stuck", unsafe { sw_service_on_stuck(raw, hook, null_mut()) });
        }
    }
}
