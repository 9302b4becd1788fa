//! Three kinds of server. Each holds standing timers, one for each connection, channel or actor,
//! and drives them by events: requests, calls, hits. At the start the standing timers are as old as
//! they would be in a server that has run for long, so that some come due all the time, and each
//! one that fires is replaced.

use crate::clock::{self, MS, SECOND};
use crate::ledger::Plan;
use crate::options::ProfileName;
use crate::producer::{BATCH, Dice, Producer, Todo};

/// A producer does what is due once in this long, then sleeps.
const BEAT: u64 = MS;
/// After a pause (the machine was busy) at most this many beats are made up for.
const MOST_BEATS: u64 = 8;
/// And at most so many fired timers are replaced in one beat.
const MOST_REPLACED: u32 = 4096;
/// Nothing that is started while filling is due sooner.
const HEAD_START: u64 = 300 * MS;

/// What a server does with its timers.
pub trait Profile {
    /// A standing timer, new.
    fn standing(&self, dice: &mut Dice, slot: u32) -> (Plan, u64);
    /// One event.
    fn event(&mut self, hands: &mut Producer);
    /// What was planned by an event has come.
    fn planned(&mut self, hands: &mut Producer, todo: Todo);
}

/// Events a second if nothing else is asked for.
pub fn usual_rate(name: ProfileName) -> u64 {
    match name {
        ProfileName::Proxy => 200_000,
        ProfileName::Rpc => 300_000,
        ProfileName::Game => 200_000,
    }
}

pub fn profile(name: ProfileName, standing: u32, rate: u64) -> Box<dyn Profile> {
    match name {
        ProfileName::Proxy => Box::new(Proxy),
        ProfileName::Rpc => Box::new(Rpc),
        ProfileName::Game => Box::new(Game::new(standing, rate)),
    }
}

/// Starts all standing timers.
pub fn fill(profile: &dyn Profile, hands: &mut Producer) {
    for first in (0..hands.standing).step_by(BATCH as usize) {
        let slots = first..hands.standing.min(first + BATCH);
        hands.start_batch(slots, |dice, slot| match profile.standing(dice, slot) {
            (plan @ Plan::Every(period), _) => (plan, HEAD_START + dice.between(0, period)),
            (plan, delay) => (plan, dice.between(HEAD_START.min(delay), delay)),
        });
        replace(profile, hands, BATCH);
    }
}

/// Starts anew what has fired, at most so many at a time.
fn replace(profile: &dyn Profile, hands: &mut Producer, most: u32) {
    for _ in 0..most {
        let Some(slot) = hands.fired() else { return };
        if slot < hands.standing {
            let (plan, delay_ns) = profile.standing(&mut hands.dice, slot);
            hands.start(slot, plan, delay_ns);
        } else {
            hands.release(slot);
        }
    }
}

/// Events at an even pace until `end`. Answers how many there were.
pub fn run(profile: &mut dyn Profile, hands: &mut Producer, rate: f64, end: u64) -> u64 {
    let begin = clock::now();
    let (mut beat, mut owed, mut done) = (begin, 0.0, 0);
    while beat < end {
        replace(profile, hands, MOST_REPLACED);
        while let Some(todos) = hands.todo() {
            todos.into_iter().for_each(|todo| profile.planned(hands, todo));
        }
        let beats = (clock::now() - beat) / BEAT + 1;
        owed += rate * BEAT as f64 / SECOND as f64 * beats.min(MOST_BEATS) as f64;
        while owed >= 1.0 {
            profile.event(hands);
            owed -= 1.0;
            done += 1;
        }
        beat += beats * BEAT;
        clock::sleep_until(beat);
    }
    done
}

/// An HTTP proxy: each connection has an idle time-out, which each request pushes out, and again
/// its answer; each request has a time-out, which the answer cancels within milliseconds. One
/// upstream in 200 hangs, so that the time-out fires; one answer in 20 closes the connection.
struct Proxy;

impl Proxy {
    fn idle(dice: &mut Dice) -> u64 {
        dice.between(30 * SECOND, 60 * SECOND)
    }
}

impl Profile for Proxy {
    fn standing(&self, dice: &mut Dice, _: u32) -> (Plan, u64) {
        (Plan::Once, Proxy::idle(dice))
    }

    fn event(&mut self, hands: &mut Producer) {
        let connection = hands.pick();
        let idle = Proxy::idle(&mut hands.dice);
        hands.push_out(connection, idle);
        let limit = hands.dice.between(SECOND, 5 * SECOND);
        let Some(request) = hands.start_passing(Plan::Once, limit) else { return };
        if !hands.dice.one_in(200) {
            let answer = hands.dice.between(MS, 20 * MS);
            hands.later(answer, request, connection);
        }
    }

    fn planned(&mut self, hands: &mut Producer, todo: Todo) {
        if hands.cancel_planned(todo) {
            hands.release(todo.slot);
        }
        let idle = Proxy::idle(&mut hands.dice);
        if !hands.dice.one_in(20) {
            hands.push_out(todo.owner, idle);
        } else if hands.cancel(todo.owner) {
            hands.start(todo.owner, Plan::Once, idle);
        }
    }
}

/// An RPC client: a time-out of 50 ms to 2 s for each call. 99 % are answered within 40 ms; the
/// others are tried again by the timer's own callback, twice at most, each time with twice the
/// time. Half of those are answered in the end. Each channel has a lease that calls renew.
struct Rpc;

impl Profile for Rpc {
    fn standing(&self, dice: &mut Dice, _: u32) -> (Plan, u64) {
        (Plan::Once, dice.between(20 * SECOND, 60 * SECOND))
    }

    fn event(&mut self, hands: &mut Producer) {
        let channel = hands.pick();
        if hands.dice.one_in(4) {
            let (_, lease) = self.standing(&mut hands.dice, channel);
            hands.push_out(channel, lease);
        }
        let limit = hands.dice.between(50 * MS, 2 * SECOND);
        let plan = Plan::Retry { left: 2, delay_ns: limit };
        let Some(call) = hands.start_passing(plan, limit) else { return };
        if !hands.dice.one_in(100) {
            let answer = hands.dice.between(MS, 40 * MS);
            hands.later(answer, call, channel);
        } else if hands.dice.one_in(2) {
            hands.later(limit + limit / 2, call, channel);
        }
    }

    fn planned(&mut self, hands: &mut Producer, todo: Todo) {
        if hands.cancel_planned(todo) {
            hands.release(todo.slot);
        }
    }
}

/// A game server: cooldowns and buffs of 100 ms to 10 s, nearly all of which fire and come again;
/// one actor in 1,000 is a zone that ticks each 50 or 100 ms; the rest wait for minutes. A hit
/// renews one buff, and one hit in ten dispels another.
struct Game {
    zones: u32,
    cooldowns: u32,
}

impl Game {
    /// As many cooldowns as make about `rate` expiries a second.
    fn new(standing: u32, rate: u64) -> Game {
        let zones = standing.div_ceil(1000);
        let cooldowns = (rate.saturating_mul(5).min(u64::from(standing)) as u32).max(1);
        Game { zones, cooldowns: cooldowns.min(standing - zones) }
    }

    fn cooldown(dice: &mut Dice) -> u64 {
        dice.between(100 * MS, 10 * SECOND)
    }
}

impl Profile for Game {
    fn standing(&self, dice: &mut Dice, slot: u32) -> (Plan, u64) {
        match slot {
            slot if slot < self.zones => {
                (Plan::Every(if slot % 2 == 0 { 50 * MS } else { 100 * MS }), 0)
            }
            slot if slot < self.zones + self.cooldowns => (Plan::Once, Game::cooldown(dice)),
            _ => (Plan::Once, dice.between(60 * SECOND, 600 * SECOND)),
        }
    }

    fn event(&mut self, hands: &mut Producer) {
        let first = u64::from(self.zones);
        let last = first + u64::from(self.cooldowns);
        if first == last {
            return;
        }
        let buff = hands.dice.between(first, last) as u32;
        let delay_ns = Game::cooldown(&mut hands.dice);
        if !hands.dice.one_in(10) {
            hands.push_out(buff, delay_ns);
        } else if hands.cancel(buff) {
            hands.start(buff, Plan::Once, delay_ns);
        }
    }

    fn planned(&mut self, _: &mut Producer, _: Todo) {}
}
