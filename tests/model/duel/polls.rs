//! The reference's part about polls and queues: what may come now, what must, and in which order.

use super::instant::NEVER;
use super::ops::Mode;
use super::reference::{Id, Reference};
use super::timer::{State, Timer};

/// A poll that is going on.
pub struct Poll {
    pub shard: usize,
    pub number: u64,
    /// The clock as it began.
    pub now_ns: u64,
    pub budget: usize,
    /// Callbacks so far.
    pub calls: usize,
    /// Timers with a queue whose event this poll brings unless the budget ends before.
    expected: Vec<Id>,
    /// Deliveries to queues that it must have made, and may have made.
    pub deliveries_at_least: usize,
    pub deliveries_at_most: usize,
}

/// One expiry, as a callback or a taker was told of it.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    pub handle: u64,
    pub deadline_ns: u64,
    pub now_ns: u64,
    pub missed: u64,
}

impl Reference {
    pub fn poll_begins(&mut self, shard: usize, budget: usize) {
        let (ticks, now_ns) = (self.ticks, self.now_ns);
        self.polls += 1;
        let looks_to = ticks.looks_to(now_ns);
        let mut poll = Poll {
            shard,
            number: self.polls,
            now_ns,
            budget,
            calls: 0,
            expected: Vec::new(),
            deliveries_at_least: 0,
            deliveries_at_most: 0,
        };
        for (id, timer) in self.timers.iter_mut().enumerate() {
            if timer.shard != shard || timer.queue.is_none() || !timer.is_live() {
                continue;
            }
            if timer.is_waiting() {
                timer.looked_ns.1 = looks_to;
                poll.deliveries_at_most +=
                    usize::from(timer.state != State::Waits { surely: true });
            } else if timer.may_come(ticks, now_ns) {
                timer.looked_ns = (0, looks_to);
                if timer.must_come(ticks, now_ns) {
                    poll.expected.push(id);
                }
                timer.state = State::Waits { surely: false };
                poll.deliveries_at_most += 1;
            }
        }
        self.poll = Some(poll);
    }

    /// A timer with a queue was moved while a poll goes on: perhaps it is delivered in that one.
    pub fn may_wait(&mut self, id: Id) {
        let ticks = self.ticks;
        let Some(poll) = &mut self.poll else { return };
        let timer = &mut self.timers[id];
        if timer.shard == poll.shard && timer.may_come(ticks, poll.now_ns) {
            poll.expected.retain(|&other| other != id);
            timer.looked_ns = (0, ticks.looks_to(poll.now_ns));
            timer.state = State::Waits { surely: false };
        }
    }

    /// A callback begins: may it, and is it told the truth?
    pub fn fires(&mut self, id: Id, told: Told) -> Result<(), String> {
        let Some(poll) = &self.poll else { return Err("a callback outside a poll".into()) };
        let Some(timer) = self.timers.get(id) else { return Err(format!("no timer {id}")) };
        let number = poll.number;
        let wrong = |what: &str| {
            Err(format!("timer {id}, {:?}, in poll {number}, told {told:?}: {what}", timer.state))
        };
        if timer.shard != poll.shard || timer.queue.is_some() || !timer.is_armed() {
            return wrong("F1: it is not to be called");
        }
        if self.timers.iter().any(|other| matches!(other.state, State::Running(_))) {
            return wrong("F2: another one runs");
        }
        if timer.handle != told.handle || poll.now_ns != told.now_ns {
            return wrong("another handle or clock");
        }
        if !timer.may_come(self.ticks, poll.now_ns) {
            return wrong("T1: early");
        }
        if timer.not_in == number {
            return wrong("F4: armed in this very turn");
        }
        let (served_ns, missed) = timer.serves(self.ticks.looks_to(poll.now_ns));
        if (served_ns, missed) != (told.deadline_ns, told.missed) {
            return wrong(&format!("F5: not {served_ns} with {missed} missed"));
        }
        let expected = |other: &&Timer| {
            other.shard == poll.shard
                && other.queue.is_none()
                && other.is_armed()
                && ![other.not_in, other.moved_in].contains(&number)
                && other.must_come(self.ticks, poll.now_ns)
        };
        if let Some(other) =
            self.timers.iter().filter(expected).find(|other| goes_before(other, timer))
        {
            return wrong(&format!("T6: before {:x}", other.handle));
        }
        if poll.budget != 0 && poll.calls == poll.budget {
            return wrong("more than the budget");
        }
        if let Some(poll) = &mut self.poll {
            poll.calls += 1;
        }
        self.runs(id, served_ns, missed);
        Ok(())
    }

    /// Answers whether it came to the end of what is due.
    pub fn poll_ends(&mut self, fired: usize) -> Result<bool, String> {
        let Some(poll) = self.poll.take() else { return Err("no poll".into()) };
        if poll.budget != 0 && fired > poll.budget {
            return Err(format!("{fired} fired, more than the budget"));
        }
        let whole = poll.budget == 0 || fired < poll.budget;
        let mut at_least = poll.deliveries_at_least;
        let looks_to = self.ticks.looks_to(poll.now_ns);
        for (id, timer) in self.timers.iter_mut().enumerate() {
            if timer.shard != poll.shard || !timer.is_live() {
                continue;
            }
            let left_alone = ![timer.not_in, timer.moved_in].contains(&poll.number);
            let owed = left_alone && timer.must_come(self.ticks, poll.now_ns);
            if timer.queue.is_none() {
                if whole && owed {
                    return Err(format!("F1: timer {id} was due and did not come"));
                }
            } else if timer.is_waiting() && whole && owed {
                timer.state = State::Waits { surely: true };
                timer.looked_ns.0 = looks_to;
                at_least += usize::from(poll.expected.contains(&id));
            }
        }
        let delivered = fired.checked_sub(poll.calls);
        let may = at_least..=poll.deliveries_at_most;
        if !delivered.is_some_and(|delivered| may.contains(&delivered)) {
            return Err(format!("{fired} fired, {} called, and in queues {may:?}", poll.calls));
        }
        Ok(whole)
    }

    /// Events were taken from a queue by one call: are those of a shard in the order of their deadlines, and those
    /// of one deadline in the order in which they came?
    pub fn taken_together(&self, events: &[(Id, Told)]) -> Result<(), String> {
        for (nth, &(id, told)) in events.iter().enumerate() {
            for &(before, told_before) in &events[..nth] {
                let pair = (self.timers.get(before), self.timers.get(id));
                let (Some(one), Some(other)) = pair else { continue };
                let once = !one.is_periodic() && !other.is_periodic();
                let same = told_before.deadline_ns == told.deadline_ns;
                if one.shard == other.shard
                    && (told_before.deadline_ns > told.deadline_ns
                        || same && once && goes_before(other, one))
                {
                    return Err(format!("Q3: timer {id}, told {told:?}, comes after {before}"));
                }
            }
        }
        Ok(())
    }

    /// An event was taken from a queue, with others by one call.
    pub fn taken(
        &mut self,
        queue: usize,
        (id, told): (Id, Told),
        together: &[(Id, Told)],
    ) -> Result<(), String> {
        let Some(timer) = self.timers.get(id) else { return Err(format!("no timer {id}")) };
        let wrong =
            |what: &str| Err(format!("timer {id}, {:?}, told {told:?}: {what}", timer.state));
        if !timer.is_waiting() || timer.queue != Some(queue) || timer.handle != told.handle {
            return wrong("Q3: its event does not wait here");
        }
        let (least, most, missed) = event(timer, told.deadline_ns);
        if !(least..=most).contains(&told.deadline_ns) || missed != Some(told.missed) {
            return wrong(&format!("Q3: {least} to {most}, {missed:?} missed"));
        }
        if told.now_ns < told.deadline_ns || told.now_ns > self.now_ns {
            return wrong("T1: the clock");
        }
        let is_taken =
            |other: &Timer| together.iter().any(|&(id, _)| std::ptr::eq(&self.timers[id], other));
        // What is left comes later.
        let earlier = |other: &&Timer| {
            other.shard == timer.shard
                && !is_taken(other)
                && other.queue == Some(queue)
                && other.state == State::Waits { surely: true }
                && !other.is_periodic()
                && !timer.is_periodic()
                && goes_before(other, timer)
        };
        if let Some(other) = self.timers.iter().find(earlier) {
            return wrong(&format!("Q3: before {:x}", other.handle));
        }
        let surely = timer.state == State::Waits { surely: true };
        self.takes(id, told, surely);
        Ok(())
    }

    /// What taking an event does.
    fn takes(&mut self, id: Id, told: Told, surely: bool) {
        let (ticks, now_ns) = (self.ticks, self.now_ns);
        let timer = &mut self.timers[id];
        let counts = &mut self.counts[timer.shard];
        counts.fired += 1;
        counts.missed = counts.missed.wrapping_add(told.missed);
        if timer.is_periodic() {
            if timer.mode == Mode::FixedDelay {
                timer.arm(ticks, now_ns.saturating_add(timer.period_ns), now_ns);
            } else {
                timer.arm_grid(ticks, told.deadline_ns.saturating_add(timer.period_ns));
            }
            timer.in_order = false;
        } else {
            timer.state = State::Ended;
            counts.pending -= 1;
            counts.ended_by_fire += 1;
        }
        if let Some(poll) = &mut self.poll
            && poll.shard == self.timers[id].shard
        {
            let timer = &mut self.timers[id];
            timer.moved_in = poll.number;
            let expected = poll.expected.contains(&id);
            poll.deliveries_at_least += usize::from(expected && !surely);
            poll.deliveries_at_most += 1;
            poll.expected.retain(|&other| other != id);
            if timer.is_live() {
                self.may_wait(id);
            }
        }
    }

    /// A queue gave fewer events than were asked for: none waits any more.
    pub fn emptied(&mut self, queue: usize) -> Result<(), String> {
        let polled = self.poll.as_ref().map(|poll| poll.shard);
        for (id, timer) in self.timers.iter_mut().enumerate() {
            if timer.queue != Some(queue) {
                continue;
            }
            match timer.state {
                State::Waits { surely: true } => {
                    return Err(format!("Q3: timer {id}'s event waits and was not taken"));
                }
                State::Waits { surely: false } if polled != Some(timer.shard) => {
                    timer.state = State::Armed;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Does a timer of this shard have so many points to serve, one by one, that a poll without a budget would
    /// take long?
    pub fn has_backlog(&self, shard: usize) -> bool {
        self.timers.iter().any(|timer| {
            timer.shard == shard
                && timer.is_live()
                && timer.mode == Mode::Burst
                && timer.is_periodic()
                && self.now_ns.saturating_sub(timer.deadline_ns) / timer.period_ns > 100
        })
    }
}

/// T6: must the one come before the other, when both are due?
fn goes_before(one: &Timer, other: &Timer) -> bool {
    if one.late || other.late || one.deadline_ns == NEVER {
        return false;
    }
    let same_tick = one.last == other.first;
    one.last < other.first || same_tick && one.in_order && other.in_order && one.order < other.order
}

/// The least and the latest deadline that the event of a timer can have, and the points missed if it is this
/// one.
fn event(timer: &Timer, deadline_ns: u64) -> (u64, u64, Option<u64>) {
    let next = timer.deadline_ns;
    if !timer.is_periodic() || timer.mode == Mode::FixedDelay {
        return (next, next, Some(0));
    }
    // Of a burst the first point is delivered, and the rest is missed while that waits, also what the same poll
    // came to. Slack puts off the look at the next one.
    let exact = timer.slack_ns == 0;
    let least = if exact { timer.latest(timer.looked_ns.0).0 } else { next };
    let most = timer.latest(timer.looked_ns.1).0;
    let distance = deadline_ns.checked_sub(next);
    let missed = distance.filter(|distance| distance % timer.period_ns == 0);
    (least, most, missed.map(|distance| distance / timer.period_ns))
}
