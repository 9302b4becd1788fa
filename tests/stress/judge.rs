//! What the counts of a cell say: how its timer ended, and whether it came when it should have.

use crate::cell::{Cell, When};
use crate::play::Script;
use crate::support::*;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

/// How a timer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Fired,
    Cancelled,
    Returned,
}

impl Cell {
    /// How it ended, when all is over; `Err` says what does not add up.
    pub fn end(&self, queue_freed: bool) -> Result<End, &'static str> {
        let [ok, running, returned] =
            [&self.ok, &self.running, &self.returned].map(|count| count.load(SeqCst));
        let entered = self.entered.load(SeqCst);
        let taken = self.ask.queue.is_some() && self.ask.period == 0 && entered == 1;
        if self.dropped.load(SeqCst) != u32::from(!taken) {
            return Err("its drop did not run exactly once");
        }
        if ok > 1 || returned > 1 || (ok > 0 || running > 0) && returned > 0 {
            return Err("it ended more than once");
        }
        let cancelled = ok > 0 || running > 0 || self.batched.load(SeqCst) || queue_freed;
        if self.ask.period != 0 {
            return match (returned, cancelled) {
                (1, _) => Ok(End::Returned),
                (_, true) => Ok(End::Cancelled),
                _ => Err("a periodic timer that did not end"),
            };
        }
        let armed = 1 + self.rearms.load(SeqCst);
        match armed.wrapping_sub(entered) {
            0 if ok == 0 && returned == 0 => Ok(End::Fired),
            0 => Err("it fired and ended otherwise too"),
            1 if returned == 1 => Ok(End::Returned),
            // RUNNING takes back an arming that its own callback had made.
            1 if ok == 1 || self.batched.load(SeqCst) || queue_freed => Ok(End::Cancelled),
            1 if running > 0 && armed > 1 => Ok(End::Cancelled),
            1 => Err("it neither fired nor ended otherwise"),
            _ => Err("it fired more often, or less, than it was armed"),
        }
    }

    /// Should it have come before `then`, and has not? Of those of which that is known.
    pub fn is_late(&self, then: u64) -> bool {
        let none = |count: &AtomicU32| count.load(SeqCst) == 0;
        let ask = &self.ask;
        let known = self.accepted.load(SeqCst) && ask.owned && ask.script != Script::Rearm;
        // A tick is a millisecond at most.
        let slack = ask.slack + MS;
        let due = self.high.load(SeqCst).saturating_add(slack);
        if !known || due > then || !none(&self.tries) || !none(&self.dropped) {
            return false;
        }
        if ask.period == 0 {
            return none(&self.entered);
        }
        let last = self.deadline.load(SeqCst);
        let on_grid = ask.flags & SW_TIMER_FIXED_DELAY == 0;
        last < self.low.load(SeqCst) || on_grid && last + ask.period + slack <= then
    }

    /// Checks the last expiry against the last deadline that was asked for.
    pub fn check_deadline(&self) -> Result<(), &'static str> {
        if self.entered.load(SeqCst) == 0 {
            return Ok(());
        }
        let deadline = self.deadline.load(SeqCst);
        if self.ask.period == 0 {
            let plain = self.ask.owned && self.ask.script != Script::Rearm;
            let (low, high) = (self.low.load(SeqCst), self.high.load(SeqCst));
            let vague = self.vague();
            let right = low.saturating_sub(vague)..=high.saturating_add(vague);
            if plain && !right.contains(&deadline) {
                return Err("its deadline is not the one asked for");
            }
            if plain && self.clock.load(SeqCst) < low {
                return Err("early");
            }
        } else if let When::At(first) = self.ask.when
            && self.ask.flags & SW_TIMER_FIXED_DELAY == 0
            && self.resets.load(SeqCst) == 0
        {
            let steps = self.points.load(SeqCst) - 1;
            if deadline != first + steps * self.ask.period {
                return Err("it left its grid");
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let when = match self.ask.when {
            When::After(delay) => format!("after {delay}"),
            When::At(deadline) => format!("at {deadline}"),
        };
        let (period, flags, queue) = (self.ask.period, self.ask.flags, self.ask.queue);
        let queue = queue.map(|(number, _)| number);
        write!(f, "\n    {:x} {when} period {period} flags {flags:x}", self.timer())?;
        write!(f, " slack {} shard {} {:?}", self.ask.slack, self.ask.shard, self.ask.script)?;
        write!(f, " owned {} queue {queue:?};", self.ask.owned)?;
        for (name, count) in [
            ("tries", &self.tries),
            ("resets", &self.resets),
            ("ok", &self.ok),
            ("running", &self.running),
            ("rearms", &self.rearms),
            ("entered", &self.entered),
            ("exited", &self.exited),
            ("limit", &self.limit),
            ("returned", &self.returned),
            ("dropped", &self.dropped),
        ] {
            write!(f, " {name} {}", count.load(SeqCst))?;
        }
        for (name, value) in [
            ("floor", &self.floor),
            ("low", &self.low),
            ("high", &self.high),
            ("deadline", &self.deadline),
            ("clock", &self.clock),
            ("points", &self.points),
        ] {
            write!(f, " {name} {}", value.load(SeqCst))?;
        }
        Ok(())
    }
}
