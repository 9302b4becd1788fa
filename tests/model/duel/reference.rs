//! The reference: what the contract says of a service, in the plainest way. Timers in a list, looked
//! through from end to end; no wheel, no records, no threads.
//!
//! Ground rules: the player tells the reference of each call *before* it makes it, and learns
//! what the call must answer (of a start: afterwards, with the handle); the callbacks and
//! drops that the call makes are told as they come. Where the contract leaves something open (which
//! timers a budget reaches, where slack puts a timer, the order of what was armed too late), the
//! reference accepts all that it allows, and no more.

use super::instant::NEVER;
use super::ops::{Mode, Setup};
use super::polls::Poll;
use super::timer::{DropState, Run, State, Ticks, Timer};
use shardwheel::capi::sw_status::{self, *};

/// A timer: its place in `Reference::timers`, and one less than its ctx.
pub type Id = usize;

/// What `sw_stats_read` has to say of a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub pending: u64,
    pub high_water: u64,
    pub started: u64,
    pub fired: u64,
    pub ended_by_fire: u64,
    pub cancelled: u64,
    pub returned: u64,
    pub rejected: u64,
    pub missed: u64,
}

pub struct Reference {
    pub setup: Setup,
    pub ticks: Ticks,
    pub now_ns: u64,
    pub timers: Vec<Timer>,
    pub counts: Vec<Counts>,
    /// Whether each queue is open.
    pub queues: Vec<bool>,
    /// Where this thread's timers go that name no shard; known from the first.
    pub home: Option<usize>,
    /// The shards that this thread is attached to, the last one last.
    pub attached: Vec<usize>,
    pub poll: Option<Poll>,
    pub polls: u64,
    pub stopped: bool,
    order: u64,
}

impl Reference {
    pub fn new(setup: Setup) -> Reference {
        Reference {
            setup,
            ticks: Ticks(setup.tick_ns),
            now_ns: 0,
            timers: Vec::new(),
            counts: vec![Counts::default(); setup.shards as usize],
            queues: Vec::new(),
            home: None,
            attached: Vec::new(),
            poll: None,
            polls: 0,
            stopped: false,
            order: 0,
        }
    }

    /// The poll that is going on, or 0.
    fn in_poll(&self) -> u64 {
        self.poll.as_ref().map_or(0, |poll| poll.number)
    }

    /// How often anything was armed, about.
    pub fn armings(&self) -> u64 {
        self.order
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// The shard that a timer goes to which names this one. `Ok(None)`: the thread's home, not known
    /// yet.
    pub fn route(&self, shard: Option<u32>) -> Result<Option<usize>, sw_status> {
        match (shard, &self.poll, self.attached.last()) {
            (Some(shard), ..) if shard >= self.setup.shards => Err(SW_INVALID),
            (Some(shard), ..) => Ok(Some(shard as usize)),
            (None, Some(poll), _) => Ok(Some(poll.shard)),
            (None, None, Some(&shard)) => Ok(Some(shard)),
            (None, None, None) => Ok(self.home),
        }
    }

    pub fn room(&self, shard: usize) -> u64 {
        self.setup.max_timers - self.counts[shard].pending
    }

    /// A timer has been accepted. `timer` has all but what arming it decides.
    pub fn started(&mut self, id: Id, handle: u64, shard: usize, deadline_ns: u64) {
        let (ticks, now_ns) = (self.ticks, self.now_ns);
        let (order, not_in) = (self.next_order(), self.in_poll());
        let timer = &mut self.timers[id];
        timer.arm(ticks, deadline_ns, now_ns);
        (timer.handle, timer.shard, timer.order, timer.not_in) = (handle, shard, order, not_in);
        timer.in_order = !timer.late && !timer.is_periodic() && timer.slack_ns == 0;
        let counts = &mut self.counts[shard];
        counts.started += 1;
        counts.pending += 1;
        counts.high_water = counts.high_water.max(counts.pending);
    }

    /// Ends a timer that lives; its drop is owed.
    fn end_live(&mut self, id: Id) {
        let timer = &mut self.timers[id];
        timer.state = State::Ended;
        if timer.has_drop {
            timer.drop = DropState::Owed;
        }
        self.counts[timer.shard].pending -= 1;
    }

    /// A cancel; with `wait` one that waits.
    pub fn cancel(&mut self, id: Id, wait: bool) -> sw_status {
        if self.stopped {
            return SW_STOPPED;
        }
        let timer = &mut self.timers[id];
        let counts = &mut self.counts[timer.shard];
        match timer.state {
            State::Armed | State::Waits { .. } => {
                counts.cancelled += 1;
                self.end_live(id);
                SW_OK
            }
            // A timer runs on one thread alone, and here there is no other.
            State::Running(run) => {
                let lived = timer.is_live();
                timer.state = State::Running(Run { doomed: true, next: None, ..run });
                if lived {
                    counts.cancelled += 1;
                    counts.pending -= 1;
                }
                match () {
                    () if wait => SW_WOULD_DEADLOCK,
                    () if !timer.is_periodic() => SW_RUNNING,
                    () if run.doomed => SW_NOT_FOUND,
                    () => SW_OK,
                }
            }
            State::Ended if wait && timer.drop == DropState::Running => SW_WOULD_DEADLOCK,
            State::Ended | State::Refused => SW_NOT_FOUND,
        }
    }

    pub fn reset(&mut self, id: Id, deadline_ns: u64) -> sw_status {
        if self.stopped {
            return SW_STOPPED;
        }
        let (ticks, now_ns) = (self.ticks, self.now_ns);
        let (order, poll) = (self.next_order(), self.in_poll());
        let timer = &mut self.timers[id];
        let counts = &mut self.counts[timer.shard];
        match timer.state {
            State::Armed | State::Waits { .. } => {
                timer.arm(ticks, deadline_ns, now_ns);
                (timer.order, timer.in_order, timer.moved_in) = (order, false, poll);
                if timer.queue.is_some()
                    && let Some(poll) = &mut self.poll
                    && poll.shard == timer.shard
                {
                    poll.deliveries_at_most += 1;
                    self.may_wait(id);
                }
                SW_OK
            }
            State::Running(run) if run.doomed => SW_NOT_FOUND,
            State::Running(run) => {
                if !timer.is_periodic() && run.next.is_none() {
                    if counts.pending == self.setup.max_timers {
                        counts.rejected += 1;
                        return SW_FULL;
                    }
                    counts.pending += 1;
                    counts.high_water = counts.high_water.max(counts.pending);
                    counts.ended_by_fire -= 1;
                }
                // What arming decides is kept until the callback is over.
                timer.arm(ticks, deadline_ns, now_ns);
                timer.state =
                    State::Running(Run { next: Some(deadline_ns), reset: true, doomed: false });
                (timer.order, timer.in_order, timer.not_in) = (order, false, poll);
                SW_OK
            }
            State::Ended | State::Refused => SW_NOT_FOUND,
        }
    }

    pub fn remaining(&self, id: Id) -> Result<u64, sw_status> {
        if self.stopped {
            return Err(SW_STOPPED);
        }
        let left = |deadline_ns: u64| match deadline_ns {
            NEVER => NEVER,
            _ => deadline_ns.saturating_sub(self.now_ns),
        };
        let timer = &self.timers[id];
        match timer.state {
            State::Armed => Ok(left(timer.deadline_ns)),
            State::Waits { .. } => Ok(0),
            State::Running(run) => run.next.map(left).ok_or(SW_RUNNING),
            State::Ended | State::Refused => Err(SW_NOT_FOUND),
        }
    }

    /// The callback of a timer begins; the poll has checked that it may.
    pub fn runs(&mut self, id: Id, served_ns: u64, missed: u64) {
        let timer = &mut self.timers[id];
        let counts = &mut self.counts[timer.shard];
        counts.fired += 1;
        counts.missed = counts.missed.wrapping_add(missed);
        let next = (timer.is_periodic() && timer.mode != Mode::FixedDelay)
            .then(|| served_ns.saturating_add(timer.period_ns));
        timer.state = State::Running(Run { next, reset: false, doomed: false });
        if !timer.is_periodic() {
            counts.pending -= 1;
            counts.ended_by_fire += 1;
        }
    }

    /// The callback is over.
    pub fn ran(&mut self, id: Id) {
        let (ticks, now_ns) = (self.ticks, self.now_ns);
        let order = self.next_order();
        let timer = &mut self.timers[id];
        let State::Running(run) = timer.state else { unreachable!("it runs") };
        match run {
            Run { reset: true, doomed: false, .. } => timer.state = State::Armed,
            Run { next: Some(next), doomed: false, .. } => {
                timer.arm_grid(ticks, next);
                timer.order = order;
            }
            Run { doomed: false, .. } if timer.is_periodic() => {
                timer.arm(ticks, now_ns.saturating_add(timer.period_ns), now_ns);
                timer.order = order;
            }
            _ => {
                timer.state = State::Ended;
                if timer.has_drop {
                    timer.drop = DropState::Owed;
                }
            }
        }
    }

    /// A drop begins.
    pub fn drops(&mut self, id: Id) -> Result<(), String> {
        let Some(timer) = self.timers.get_mut(id) else { return Err(format!("no timer {id}")) };
        if timer.drop != DropState::Owed {
            return Err(format!("F9: the drop of timer {id}, which is {:?}", timer.drop));
        }
        timer.drop = DropState::Running;
        Ok(())
    }

    pub fn dropped(&mut self, id: Id) {
        self.timers[id].drop = DropState::Done;
    }

    /// Each drop that is owed must have run when a call returns.
    pub fn all_dropped(&self) -> Result<(), String> {
        match self.timers.iter().position(|timer| timer.drop == DropState::Owed) {
            Some(id) => Err(format!("F9: the drop of timer {id} has not run")),
            None => Ok(()),
        }
    }

    /// A queue is freed: its timers are cancelled. Answers which.
    pub fn frees_queue(&mut self, queue: usize) {
        self.queues[queue] = false;
        if self.stopped {
            return;
        }
        for id in 0..self.timers.len() {
            let timer = &self.timers[id];
            if timer.queue == Some(queue) && timer.is_live() {
                self.counts[timer.shard].cancelled += 1;
                self.end_live(id);
            }
        }
    }

    /// Stop hands this one back.
    pub fn returns(&mut self, handle: u64, ctx: usize, deadline_ns: u64) -> Result<(), String> {
        let id = ctx.wrapping_sub(1);
        let Some(timer) = self.timers.get(id) else { return Err(format!("no timer {id}")) };
        if !timer.is_live() || timer.handle != handle {
            return Err(format!("F1: stop hands back timer {id}, which is {:?}", timer.state));
        }
        // Of a grid whose event waits, the next point is told.
        if timer.deadline_ns != deadline_ns && !(timer.is_waiting() && timer.is_periodic()) {
            return Err(format!("stop says {deadline_ns}, not {}", timer.deadline_ns));
        }
        self.counts[timer.shard].returned += 1;
        self.end_live(id);
        Ok(())
    }

    pub fn live(&self) -> impl Iterator<Item = Id> + '_ {
        (0..self.timers.len()).rev().filter(|&id| self.timers[id].is_live())
    }

    fn of_shard(&self, shard: usize) -> impl Iterator<Item = &Timer> + '_ {
        self.timers.iter().filter(move |timer| timer.shard == shard && timer.is_live())
    }

    /// At the end of time nothing is armed but what never comes.
    pub fn all_came(&self) -> Result<(), String> {
        // But for what its slack may put off beyond that.
        let left = |timer: &Timer| timer.is_armed() && timer.must_come(self.ticks, NEVER);
        match self.timers.iter().position(left) {
            Some(id) => Err(format!("F1: timer {id} has not come by the end of time")),
            None => Ok(()),
        }
    }

    /// The range in which `sw_stats.overdue_ns` must be.
    pub fn overdue(&self, shard: usize) -> (u64, u64) {
        let behind = |timer: &Timer| self.now_ns - timer.deadline_ns;
        let armed = |timer: &&Timer| timer.is_armed() && timer.must_come(self.ticks, self.now_ns);
        let may = |timer: &&Timer| {
            (timer.is_armed() || timer.state == State::Waits { surely: false })
                && timer.may_come(self.ticks, self.now_ns)
        };
        let least = self.of_shard(shard).filter(armed).map(behind).max();
        let most = self.of_shard(shard).filter(may).map(behind).max();
        (least.unwrap_or(0), most.unwrap_or(0))
    }

    /// The latest answer that `sw_shard_next` may give.
    pub fn next_at_most(&self, shard: usize) -> u64 {
        let wanted = self
            .of_shard(shard)
            .filter(|timer| timer.is_armed() && timer.deadline_ns != NEVER)
            .map(|timer| self.ticks.instant(timer.last))
            .min();
        wanted.map_or(NEVER, |instant| instant.max(self.now_ns))
    }

    /// Is anything to be delivered on this shard now, surely?
    pub fn wants_poll(&self, shard: usize) -> bool {
        self.of_shard(shard)
            .any(|timer| timer.is_armed() && timer.must_come(self.ticks, self.now_ns))
    }

    /// May anything be delivered on this shard now?
    pub fn may_want_poll(&self, shard: usize) -> bool {
        self.of_shard(shard).any(|timer| {
            (timer.is_armed() || timer.is_periodic()) && timer.may_come(self.ticks, self.now_ns)
        })
    }
}
