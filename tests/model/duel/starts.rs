//! Starting timers: what a spec comes to, whether it is to be accepted, and the calls.

use super::game::{Game, ctx_of, on_drop, on_expiry};
use super::instant::Span;
use super::ops::{Mode, Start};
use super::play::delay;
use super::reference::Id;
use super::timer::{DropState, State, Timer};
use shardwheel::capi::sw_status::{self, *};
use shardwheel::capi::*;
use std::ptr::null_mut;

/// A start with its numbers.
struct Asked {
    id: Id,
    shard: Option<u32>,
    deadline_ns: u64,
    absolute: bool,
    period_ns: u64,
    slack_ns: u64,
    mode: Mode,
    queue: *mut sw_queue,
    drop: bool,
}

impl Asked {
    fn is_valid(&self) -> bool {
        match self.mode {
            Mode::Grid => true,
            Mode::FixedDelay | Mode::Burst => self.period_ns != 0,
            Mode::Both => false,
        }
    }

    fn flags(&self) -> u32 {
        let mode = match self.mode {
            Mode::Grid => 0,
            Mode::FixedDelay => SW_TIMER_FIXED_DELAY,
            Mode::Burst => SW_TIMER_BURST,
            Mode::Both => SW_TIMER_FIXED_DELAY | SW_TIMER_BURST,
        };
        mode | if self.absolute { SW_TIMER_ABSOLUTE } else { 0 }
    }

    /// When it is due that was asked for at `now_ns`.
    fn due_ns(&self, now_ns: u64) -> u64 {
        if self.absolute { self.deadline_ns } else { self.deadline_ns.max(now_ns) }
    }

    fn spec(&self, now_ns: u64) -> sw_timer_spec {
        let mut spec = std::mem::MaybeUninit::<sw_timer_spec>::uninit();
        // SAFETY: init fills it in.
        let mut spec = unsafe {
            sw_timer_spec_init(spec.as_mut_ptr());
            spec.assume_init()
        };
        spec.delay_ns =
            if self.absolute { self.deadline_ns } else { delay(self.deadline_ns, now_ns) };
        spec.period_ns = self.period_ns;
        spec.slack_ns = self.slack_ns;
        spec.flags = self.flags();
        spec.shard = self.shard.unwrap_or(SW_SHARD_ANY);
        spec.callback = if self.queue.is_null() { Some(on_expiry) } else { None };
        spec.ctx = ctx_of(self.id);
        spec.drop = if self.drop { Some(on_drop) } else { None };
        spec.queue = self.queue;
        spec
    }
}

// SAFETY of every call: the service is alive, specs and outputs are locals, queues are open.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Game {
    /// Notes a timer that is not started yet.
    fn ask(&self, start: &Start, deadline_ns: u64, shard: Option<u32>) -> Asked {
        let queue = start.queue.and_then(|queue| self.open_queue(queue));
        let mut reference = self.reference.borrow_mut();
        let id = reference.timers.len();
        let span = |span: Option<Span>| span.map_or(0, |span| span.resolve(reference.ticks.0));
        let (period_ns, slack_ns) = (span(start.period), span(start.slack));
        // Where a thread's home is is seen at its first start there; not where that might be full.
        let scarce = (0..reference.counts.len()).any(|shard| reference.room(shard) < 8);
        let unknown = reference.home.is_none() && scarce;
        let shard = if unknown { Some(shard.unwrap_or(0)) } else { shard };
        reference.timers.push(Timer {
            handle: 0,
            shard: 0,
            period_ns,
            mode: start.mode,
            slack_ns,
            queue: queue.map(|(queue, _)| queue),
            has_drop: start.drop,
            body: start.body.clone(),
            state: State::Refused,
            drop: DropState::None,
            deadline_ns,
            first: 0,
            last: 0,
            late: false,
            order: 0,
            in_order: false,
            not_in: 0,
            moved_in: 0,
            looked_ns: (0, 0),
        });
        Asked {
            id,
            shard,
            deadline_ns,
            absolute: start.at.is_absolute(),
            period_ns,
            slack_ns,
            mode: start.mode,
            queue: queue.map_or(null_mut(), |(_, raw)| raw),
            drop: start.drop,
        }
    }

    /// Each of these was started, as `handles` say.
    fn accepted(&self, asked: &[Asked], handles: &[u64], now_ns: u64) {
        let mut reference = self.reference.borrow_mut();
        for (one, &handle) in asked.iter().zip(handles) {
            let shard = sw_timer_shard(handle) as usize;
            let expected = reference.route(one.shard);
            if shard >= reference.counts.len()
                || !matches!(expected, Ok(e) if e.is_none_or(|e| e == shard))
            {
                return self.wrong(format!("S9: on shard {shard}, not {expected:?}"));
            }
            if one.shard.is_none() && reference.poll.is_none() && reference.attached.is_empty() {
                reference.home = Some(shard);
            }
            if handle == 0 || reference.timers.iter().any(|timer| timer.handle == handle) {
                return self.wrong(format!("C7: handle {handle:x} is not new"));
            }
            reference.started(one.id, handle, shard, one.due_ns(now_ns));
        }
    }

    /// What the reference says to these starts, all or none; of a refusal for want of room it counts
    /// the first.
    fn verdict(&self, asked: &[Asked]) -> sw_status {
        let mut reference = self.reference.borrow_mut();
        if reference.stopped {
            return SW_STOPPED;
        }
        let nowhere = |one: &Asked| matches!(reference.route(one.shard), Err(SW_INVALID));
        if asked.iter().any(|one| !one.is_valid() || nowhere(one)) {
            return SW_INVALID;
        }
        // Of two that are to be refused the first one is told.
        let mut wanted = vec![0; reference.counts.len()];
        for one in asked {
            let shard = match reference.route(one.shard) {
                Ok(Some(shard)) => shard,
                Ok(None) => continue,
                Err(refused) => return refused,
            };
            wanted[shard] += 1;
            if wanted[shard] > reference.room(shard) {
                reference.counts[shard].rejected += 1;
                return SW_FULL;
            }
        }
        SW_OK
    }

    /// The answers that are right: of a stopped service also what it says of bad arguments.
    fn judge(&self, what: &str, got: sw_status, expected: sw_status) {
        if expected == SW_STOPPED {
            self.answers(what, got, &[SW_STOPPED, SW_INVALID]);
        } else {
            self.answers(what, got, &[expected]);
        }
    }

    /// A drop is owed while the call lasts, in case that it refuses.
    fn owe(&self, asked: &[Asked], from: DropState, to: DropState) {
        let mut reference = self.reference.borrow_mut();
        for one in asked.iter().filter(|one| one.drop) {
            let drop = &mut reference.timers[one.id].drop;
            if *drop == from {
                *drop = to;
            }
        }
    }

    pub fn start(&self, start: &Start) {
        let asked = self.ask(start, self.instant(start.at), start.shard);
        let now_ns = self.reference.borrow().now_ns;
        let one_shot = asked.period_ns == 0;
        let bare = start.plain
            && asked.mode == Mode::Grid
            && asked.slack_ns == 0
            && asked.queue.is_null()
            && asked.shard.is_none()
            && !asked.drop;
        let mut handle = 0;
        let (service, ctx) = (self.service, ctx_of(asked.id));
        let (mut asked, call) = (asked, Some(on_expiry as _));
        if bare && !one_shot {
            (asked.deadline_ns, asked.absolute) = (now_ns.saturating_add(asked.period_ns), false);
        }
        let asked = [asked];
        let expected = self.verdict(&asked);
        self.quiet_while(|| {
            self.owe(&asked, DropState::None, DropState::Owed);
            let one = &asked[0];
            let got = unsafe {
                match () {
                    () if bare && !one_shot => {
                        sw_timer_start_every(service, one.period_ns, call, ctx, &mut handle)
                    }
                    () if bare && one.absolute => {
                        sw_timer_start_at(service, one.deadline_ns, call, ctx, &mut handle)
                    }
                    () if bare => {
                        let delay_ns = delay(one.deadline_ns, now_ns);
                        sw_timer_start(service, delay_ns, call, ctx, &mut handle)
                    }
                    () => sw_timer_start_spec(service, &one.spec(now_ns), &mut handle),
                }
            };
            self.judge("start", got, expected);
            if got == SW_OK {
                self.owe(&asked, DropState::Owed, DropState::None);
                self.accepted(&asked, &[handle], now_ns);
            } else if handle != 0 {
                self.wrong("a refused start wrote a handle".into());
            }
        });
    }

    pub fn start_batch(&self, start: &Start, count: usize, gap: Span) {
        let first_ns = self.instant(start.at);
        let (now_ns, tick_ns) = {
            let reference = self.reference.borrow();
            (reference.now_ns, reference.ticks.0)
        };
        let asked: Vec<Asked> = (0..count as u64)
            .map(|nth| {
                let later = gap.resolve(tick_ns).saturating_mul(nth);
                let shard = start.shard.map(|shard| (shard + nth as u32) % 4);
                self.ask(start, first_ns.saturating_add(later), shard)
            })
            .collect();
        let specs: Vec<sw_timer_spec> = asked.iter().map(|one| one.spec(now_ns)).collect();
        let mut handles = vec![0; count];
        let expected = self.verdict(&asked);
        self.quiet_while(|| {
            self.owe(&asked, DropState::None, DropState::Owed);
            let got = unsafe {
                sw_timer_start_batch(self.service, specs.as_ptr(), count, handles.as_mut_ptr())
            };
            self.judge("start_batch", got, expected);
            if got == SW_OK {
                self.owe(&asked, DropState::Owed, DropState::None);
                self.accepted(&asked, &handles, now_ns);
            } else if handles.iter().any(|&handle| handle != 0) {
                self.wrong("a refused batch wrote a handle".into());
            }
        });
    }

    fn quiet_while(&self, f: impl FnOnce()) {
        let before = self.quiet.replace(true);
        f();
        self.quiet.set(before);
    }
}
