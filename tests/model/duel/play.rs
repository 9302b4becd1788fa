//! The moves: each operation as a call of the C ABI, its answer compared with the reference's, and after
//! each the books of every shard.

use super::books::readable;
use super::game::{Game, on_unfired, told};
use super::instant::{Instant, Moment, NEVER};
use super::ops::{Case, Op, Pick};
use super::reference::Id;
use shardwheel::capi::sw_status::{self, *};
use shardwheel::capi::*;
use std::ptr::null_mut;

/// What a pick comes to.
pub enum Picked {
    Timer(Id, u64),
    Invented(u64),
    Nothing,
}

// SAFETY of every call: the service is alive, outputs are locals, queues are open.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Game {
    pub fn all(&self, case: &Case) {
        self.note(|| format!("{:?}", case.setup));
        self.advance(self.instant(case.setup.origin));
        for op in &case.ops {
            self.perform(op, None);
        }
        self.end();
    }

    pub fn instant(&self, instant: Instant) -> u64 {
        let reference = self.reference.borrow();
        let deadlines: Vec<u64> =
            reference.live().map(|id| reference.timers[id].deadline_ns).collect();
        let (now, tick_ns) = (reference.now_ns, reference.ticks.0);
        instant.resolve(&Moment { now, tick_ns, deadlines: &deadlines })
    }

    fn pick(&self, pick: Pick, own: Option<Id>) -> Picked {
        let reference = self.reference.borrow();
        let of = |id: Id| match reference.timers[id].handle {
            // Its start was refused.
            0 => Picked::Invented(0),
            handle => Picked::Timer(id, handle),
        };
        match pick {
            Pick::Live(at) => {
                let live: Vec<Id> = reference.live().collect();
                live.get(at.checked_rem(live.len()).unwrap_or(0))
                    .map_or(Picked::Nothing, |&id| of(id))
            }
            Pick::Any(at) => match reference.timers.len() {
                0 => Picked::Nothing,
                len => of(len - 1 - at % len),
            },
            Pick::Own => own.map_or(Picked::Nothing, of),
            Pick::Invented(number) => {
                let known = reference.timers.iter().any(|timer| timer.handle == number);
                if known { Picked::Nothing } else { Picked::Invented(number) }
            }
        }
    }

    pub fn answers(&self, what: &str, got: sw_status, may: &[sw_status]) {
        self.note(|| format!("   {what}: {got:?}"));
        if !may.contains(&got) {
            self.wrong(format!("{what} answered {got:?}, not {may:?}"));
        }
    }

    pub fn shards(&self) -> u32 {
        self.reference.borrow().setup.shards
    }

    pub fn stopped(&self) -> bool {
        self.reference.borrow().stopped
    }

    fn in_poll(&self) -> bool {
        self.reference.borrow().poll.is_some()
    }

    /// `expected`, or what a stopped service answers.
    fn unless_stopped(&self, expected: sw_status) -> sw_status {
        if self.stopped() { SW_STOPPED } else { expected }
    }

    fn shard_of(&self, shard: u32) -> Option<usize> {
        (shard < self.reference.borrow().setup.shards).then_some(shard as usize)
    }

    /// Performs an operation; `own`: inside the callback or drop of this timer.
    pub fn perform(&self, op: &Op, own: Option<Id>) {
        let left = self.left.get();
        if left == 0 {
            return;
        }
        self.left.set(left - 1);
        self.note(|| format!("{op:?}"));
        match op {
            Op::Start(start) => self.start(start),
            Op::StartBatch(start, count, gap) => self.start_batch(start, *count, *gap),
            &Op::Cancel(pick) => self.cancel(self.pick(pick, own), false),
            &Op::CancelWait(pick) => self.cancel(self.pick(pick, own), true),
            &Op::CancelBatch(pick, count) => self.cancel_batch(self.pick(pick, own), count),
            &Op::Reset(pick, to) => self.reset(self.pick(pick, own), to),
            &Op::Remaining(pick) => self.remaining(self.pick(pick, own)),
            &Op::Advance(to) => self.advance(self.instant(to)),
            &Op::Poll { shard, budget } => self.poll(shard, budget),
            Op::PollAll => (0..self.shards()).for_each(|shard| self.poll(shard, 0)),
            &Op::Step { shard } => self.step(shard),
            &Op::Take { queue, capacity } => self.take(queue, capacity),
            Op::QueueNew => self.queue_new(),
            &Op::QueueFree { queue } => self.queue_free(queue),
            &Op::Attach { shard, exclusive } => self.attach(shard, exclusive, own.is_some()),
            &Op::Detach { shard } => self.detach(shard, own.is_some()),
            &Op::Fd { shard } => self.fd(shard),
            Op::Stop => self.stop(own.is_some()),
        }
        if !self.is_over() {
            self.books();
        }
    }

    pub fn cancel(&self, picked: Picked, wait: bool) {
        let call = if wait { sw_timer_cancel_wait } else { sw_timer_cancel };
        match picked {
            Picked::Timer(id, handle) => {
                let expected = self.reference.borrow_mut().cancel(id, wait);
                self.answers("cancel", unsafe { call(self.service, handle) }, &[expected]);
            }
            Picked::Invented(number) => self.refuses_handle(unsafe { call(self.service, number) }),
            Picked::Nothing => {}
        }
    }

    fn refuses_handle(&self, got: sw_status) {
        let stopped = self.unless_stopped(SW_NOT_FOUND);
        self.answers("an invented handle", got, &[SW_INVALID, stopped]);
    }

    /// So many timers in a row, the first one twice, and a number that is none.
    fn cancel_batch(&self, picked: Picked, count: usize) {
        let Picked::Timer(first, handle) = picked else { return };
        let mut handles = vec![handle, 1];
        let mut expected = 0;
        {
            let mut reference = self.reference.borrow_mut();
            for id in first..(first + count.max(1)).min(reference.timers.len()) {
                handles.push(reference.timers[id].handle);
                expected += usize::from(reference.cancel(id, false) == SW_OK);
            }
        }
        let mut cancelled = usize::MAX;
        self.quiet.set(true);
        let got = unsafe {
            sw_timer_cancel_batch(self.service, handles.as_ptr(), handles.len(), &mut cancelled)
        };
        self.quiet.set(false);
        self.answers("cancel_batch", got, &[self.unless_stopped(SW_OK)]);
        // In its own callback a periodic timer is cancelled the first time and not found the second, so
        // the one that is there twice counts once in any case.
        if got == SW_OK && cancelled != expected {
            self.wrong(format!("cancel_batch: {cancelled}, not {expected}"));
        }
    }

    fn reset(&self, picked: Picked, to: Instant) {
        let deadline_ns = self.instant(to);
        let now_ns = self.reference.borrow().now_ns;
        let call = |handle| unsafe {
            if to.is_absolute() {
                sw_timer_reset_at(self.service, handle, deadline_ns)
            } else {
                sw_timer_reset(self.service, handle, delay(deadline_ns, now_ns))
            }
        };
        match picked {
            Picked::Timer(id, handle) => {
                let to_ns = if to.is_absolute() { deadline_ns } else { deadline_ns.max(now_ns) };
                let expected = self.reference.borrow_mut().reset(id, to_ns);
                self.answers("reset", call(handle), &[expected]);
            }
            Picked::Invented(number) => self.refuses_handle(call(number)),
            Picked::Nothing => {}
        }
    }

    fn remaining(&self, picked: Picked) {
        let mut left = u64::MAX - 7;
        match picked {
            Picked::Timer(id, handle) => {
                let expected = self.reference.borrow().remaining(id);
                let got = unsafe { sw_timer_remaining(self.service, handle, &mut left) };
                let got = if got == SW_OK { Ok(left) } else { Err(got) };
                if got != expected {
                    self.wrong(format!("remaining of {id}: {got:?}, not {expected:?}"));
                }
            }
            Picked::Invented(number) => {
                self.refuses_handle(unsafe { sw_timer_remaining(self.service, number, &mut left) });
            }
            Picked::Nothing => {}
        }
    }

    pub fn advance(&self, to_ns: u64) {
        let by = to_ns.saturating_sub(self.reference.borrow().now_ns);
        self.reference.borrow_mut().now_ns += by;
        self.answers("advance", unsafe { sw_clock_advance(self.service, by) }, &[SW_OK]);
    }

    /// Polls a shard. Where a burst would never end, with a budget.
    pub fn poll(&self, shard: u32, budget: usize) {
        let mut fired = usize::MAX;
        let known = self.shard_of(shard);
        let refused = match known {
            None => Some(SW_INVALID),
            Some(_) if self.stopped() => Some(SW_STOPPED),
            Some(_) if self.in_poll() => Some(SW_BUSY),
            Some(_) => None,
        };
        if let Some(refused) = refused {
            let got = unsafe { sw_shard_poll(self.service, shard, budget, &mut fired) };
            return self.answers("poll", got, &[refused]);
        }
        let shard_index = shard as usize;
        let backlog = self.reference.borrow().has_backlog(shard_index);
        let budget = if backlog && !(1..=64).contains(&budget) { 64 } else { budget };
        self.reference.borrow_mut().poll_begins(shard_index, budget);
        let got = unsafe { sw_shard_poll(self.service, shard, budget, &mut fired) };
        self.answers("poll", got, &[SW_OK]);
        self.note(|| format!("   fired {fired}"));
        if self.is_over() {
            return;
        }
        self.check(self.reference.borrow().all_dropped());
        let whole = self.reference.borrow_mut().poll_ends(fired);
        // What ran in the poll may have left something to look at; a second look must do.
        let quiet =
            whole == Ok(true) && fired == 0 && !self.reference.borrow().may_want_poll(shard_index);
        self.check(whole.map(drop));
        if quiet
            && let Some(fd) = self.fds.borrow()[shard_index]
            && readable(fd)
        {
            self.wrong(
                "Q2: nothing is due, and the descriptor is readable after a poll of nothing".into(),
            );
        }
    }

    /// Moves on to the instant that the shard asks for and polls it there. Answers whether there
    /// was one.
    pub fn step_to_next(&self, shard: u32) -> bool {
        let mut next = 0;
        let got = unsafe { sw_shard_next(self.service, shard, &mut next) };
        self.answers("next", got, &[SW_OK]);
        if got != SW_OK || next == NEVER {
            return false;
        }
        self.advance(next);
        self.poll(shard, 0);
        true
    }

    fn step(&self, shard: u32) {
        if self.shard_of(shard).is_some() && !self.stopped() && !self.in_poll() {
            self.step_to_next(shard);
        }
    }

    /// One of the open queues.
    pub fn open_queue(&self, queue: usize) -> Option<(usize, *mut sw_queue)> {
        let reference = self.reference.borrow();
        let open: Vec<usize> =
            (0..reference.queues.len()).filter(|&queue| reference.queues[queue]).collect();
        let queue = *open.get(queue.checked_rem(open.len())?)?;
        Some((queue, self.queues.borrow()[queue]))
    }

    pub fn take(&self, queue: usize, capacity: usize) {
        let Some((queue, raw)) = self.open_queue(queue) else { return };
        let mut events = Vec::<sw_event>::with_capacity(capacity);
        let mut taken = 0;
        let got = unsafe { sw_queue_poll(raw, events.as_mut_ptr(), capacity, &mut taken) };
        self.answers("take", got, &[self.unless_stopped(SW_OK)]);
        if got != SW_OK {
            return;
        }
        assert!(taken <= capacity);
        unsafe { events.set_len(taken) };
        let told = |event: &sw_event| (event.ctx.addr().wrapping_sub(1), told(&event.expiry));
        let events: Vec<_> = events.iter().map(told).collect();
        self.check(self.reference.borrow().taken_together(&events));
        for &event in &events {
            self.note(|| format!("   took {}", event.0));
            self.check(self.reference.borrow_mut().taken(queue, event, &events));
        }
        if taken < capacity && !self.is_over() {
            self.check(self.reference.borrow_mut().emptied(queue));
        }
    }

    fn queue_new(&self) {
        let mut queue = null_mut();
        let got = unsafe { sw_queue_new(self.service, &mut queue) };
        self.answers("queue_new", got, &[self.unless_stopped(SW_OK)]);
        if got == SW_OK {
            self.queues.borrow_mut().push(queue);
            self.reference.borrow_mut().queues.push(true);
        }
    }

    fn queue_free(&self, queue: usize) {
        let Some((queue, raw)) = self.open_queue(queue) else { return };
        self.reference.borrow_mut().frees_queue(queue);
        self.quiet.set(true);
        self.answers("queue_free", unsafe { sw_queue_free(raw) }, &[SW_OK]);
        self.quiet.set(false);
    }

    fn attach(&self, shard: u32, exclusive: bool, inside: bool) {
        // In a drop outside a poll it depends on which call runs the drop.
        if inside && !self.in_poll() {
            return;
        }
        let how = if exclusive { SW_ATTACH_EXCLUSIVE } else { SW_ATTACH_SHARED };
        let got = unsafe { sw_shard_attach(self.service, shard, how) };
        let Some(shard) = self.shard_of(shard) else {
            return self.answers("attach", got, &[SW_INVALID]);
        };
        let expected = if self.in_poll() { SW_BUSY } else { SW_OK };
        self.answers("attach", got, &[self.unless_stopped(expected)]);
        if got == SW_OK {
            let attached = &mut self.reference.borrow_mut().attached;
            attached.retain(|&other| other != shard);
            attached.push(shard);
        }
    }

    fn detach(&self, shard: u32, inside: bool) {
        if (inside && !self.in_poll()) || self.stopped() {
            return;
        }
        let got = unsafe { sw_shard_detach(self.service, shard) };
        let attached = &mut self.reference.borrow_mut().attached;
        let expected = match attached.contains(&(shard as usize)) {
            false => SW_INVALID,
            true if inside => SW_BUSY,
            true => SW_OK,
        };
        self.answers("detach", got, &[expected]);
        if got == SW_OK {
            attached.retain(|&other| other != shard as usize);
        }
    }

    fn fd(&self, shard: u32) {
        let mut fd = -1;
        let got = unsafe { sw_shard_fd(self.service, shard, &mut fd) };
        let Some(shard) = self.shard_of(shard) else {
            return self.answers("fd", got, &[SW_INVALID]);
        };
        self.answers("fd", got, &[self.unless_stopped(SW_OK)]);
        if got == SW_OK {
            self.fds.borrow_mut()[shard] = Some(fd);
        }
    }

    pub fn stop(&self, inside: bool) {
        // In a drop that a cancel runs it would be allowed, and end what the cancel is at.
        if inside && !self.in_poll() {
            return;
        }
        let live = self.reference.borrow().live().count() as u64;
        let expected = if inside { SW_WOULD_DEADLOCK } else { SW_OK };
        let owed = if inside || self.stopped() { u64::MAX } else { live };
        if !inside {
            self.reference.borrow_mut().stopped = true;
        }
        let mut returned = u64::MAX;
        let got =
            unsafe { sw_service_stop(self.service, Some(on_unfired), null_mut(), &mut returned) };
        self.answers("stop", got, &[expected]);
        if got == SW_OK && returned != owed && !(owed == u64::MAX && returned == 0) {
            self.wrong(format!("stop handed back {returned} of {owed}"));
        }
    }
}

/// The delay that leads to this deadline, or none.
pub fn delay(deadline_ns: u64, now_ns: u64) -> u64 {
    match deadline_ns {
        NEVER => NEVER,
        _ => deadline_ns.saturating_sub(now_ns),
    }
}
