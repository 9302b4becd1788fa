//! A timer as the contract has it.

use super::instant::NEVER;
use super::ops::{Body, Mode};

/// Where a timer is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Armed,
    /// Its event waits in its queue, or may: a poll that ended at its budget may not have come to it.
    Waits {
        surely: bool,
    },
    Running(Run),
    Ended,
    Refused,
}

/// What its callback, which is running, has done to the timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The next deadline, if there is one already.
    pub next: Option<u64>,
    /// The next deadline is one that a reset has set.
    pub reset: bool,
    /// Cancelled: it will not run again.
    pub doomed: bool,
}

/// How far its drop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropState {
    /// There is none, or it is not to run.
    None,
    Owed,
    Running,
    Done,
}

#[derive(Clone)]
pub struct Timer {
    pub handle: u64,
    pub shard: usize,
    pub period_ns: u64,
    pub mode: Mode,
    pub slack_ns: u64,
    pub queue: Option<usize>,
    pub has_drop: bool,
    pub body: Body,
    pub state: State,
    pub drop: DropState,
    /// What it is armed for: of a periodic timer the next point of its grid that has not been served.
    pub deadline_ns: u64,
    /// The first tick on which it may come, and the last.
    pub first: u64,
    pub last: u64,
    /// Its deadline had come when it was armed: it comes at the next turn, in no promised place.
    pub late: bool,
    /// When it was armed, among all others.
    pub order: u64,
    /// Within a tick it comes in the order of arming: started ahead of time, never reset, no slack.
    pub in_order: bool,
    /// The poll in which it was started, or armed by its own callback: it cannot come in that one.
    pub not_in: u64,
    /// The poll in which it was reset: it may come in that one or not.
    pub moved_in: u64,
    /// Of a periodic timer whose event waits: up to where its grid has been looked at, surely and
    /// at most.
    pub looked_ns: (u64, u64),
}

/// The length of a tick, and what follows from it.
#[derive(Clone, Copy)]
pub struct Ticks(pub u64);

impl Ticks {
    fn ceil(self, ns: u64) -> u64 {
        ns.div_ceil(self.0)
    }

    /// The tick that a clock has reached.
    pub fn reached(self, now_ns: u64) -> u64 {
        // The last tick ends after the clock does.
        if now_ns == NEVER { self.ceil(NEVER) } else { now_ns / self.0 }
    }

    pub fn instant(self, tick: u64) -> u64 {
        tick.saturating_mul(self.0)
    }

    /// The last instant up to which a turn that begins now looks at a grid.
    pub fn looks_to(self, now_ns: u64) -> u64 {
        self.instant(self.reached(now_ns)).min(now_ns)
    }
}

impl Timer {
    pub fn is_periodic(&self) -> bool {
        self.period_ns != 0
    }

    pub fn is_live(&self) -> bool {
        match self.state {
            State::Armed | State::Waits { .. } => true,
            State::Running(run) => !run.doomed && (self.is_periodic() || run.next.is_some()),
            State::Ended | State::Refused => false,
        }
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waits { .. })
    }

    pub fn is_armed(&self) -> bool {
        self.state == State::Armed
    }

    /// Arms it by a call at `now_ns`.
    pub fn arm(&mut self, ticks: Ticks, deadline_ns: u64, now_ns: u64) {
        self.arm_grid(ticks, deadline_ns);
        self.late = deadline_ns <= now_ns && deadline_ns != NEVER;
        if self.late {
            self.first = self.first.min(ticks.reached(now_ns));
            self.last = self.first.max(self.end_of_slack(ticks));
        }
    }

    /// Arms it for the next point of its grid.
    pub fn arm_grid(&mut self, ticks: Ticks, deadline_ns: u64) {
        self.state = State::Armed;
        self.deadline_ns = deadline_ns;
        self.first = ticks.ceil(deadline_ns);
        self.last = self.first.max(self.end_of_slack(ticks));
        self.late = false;
    }

    /// The last tick within its deadline and slack.
    fn end_of_slack(&self, ticks: Ticks) -> u64 {
        self.deadline_ns.saturating_add(self.slack_ns) / ticks.0
    }

    /// May it come in a turn that begins now?
    pub fn may_come(&self, ticks: Ticks, now_ns: u64) -> bool {
        self.deadline_ns != NEVER
            && self.deadline_ns <= now_ns
            && self.first <= ticks.reached(now_ns)
    }

    /// Must it come in a turn that begins now, if the budget is enough?
    pub fn must_come(&self, ticks: Ticks, now_ns: u64) -> bool {
        self.may_come(ticks, now_ns) && self.last <= ticks.reached(now_ns)
    }

    /// Which point of the grid is served by a turn that looks to `looks_to`, and how many before it
    /// are missed.
    pub fn serves(&self, looks_to: u64) -> (u64, u64) {
        if !self.is_periodic() || self.mode != Mode::Grid {
            return (self.deadline_ns, 0);
        }
        self.latest(looks_to)
    }

    /// The latest point of the grid up to `looks_to`, but not before the next one.
    pub fn latest(&self, looks_to: u64) -> (u64, u64) {
        let missed = looks_to.saturating_sub(self.deadline_ns) / self.period_ns;
        (self.deadline_ns + missed * self.period_ns, missed)
    }
}
