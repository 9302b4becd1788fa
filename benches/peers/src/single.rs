//! W1 to W3: one thread.

use crate::contender::Timers;
use crate::measure::{CHUNK, Each, Random, each, each_in};
use std::time::Duration;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// The delay of a timer that is there or is started in W1, W1b, W4, W4b and W5.
#[inline]
pub fn any_delay(random: &mut Random) -> u64 {
    random.between(MS, 60 * SECOND)
}

/// Starts a timer in each of the slots 0 to `live` - 1.
pub fn fill(timers: &mut impl Timers, live: usize, random: &mut Random) {
    for slot in 0..live {
        timers.start(slot, any_delay(random));
        if (slot as u64).is_multiple_of(CHUNK) {
            timers.turn();
        }
    }
    timers.turn();
}

/// Starts a timer in the slot and cancels it, a chunk of times.
pub fn start_cancel(timers: &mut impl Timers, slot: usize, random: &mut Random) {
    for _ in 0..CHUNK {
        timers.start(slot, any_delay(random));
        timers.cancel(slot);
    }
    timers.turn();
}

/// Cancels the oldest of a ring of timers and starts a new one, a chunk of times.
pub fn go_round(timers: &mut impl Timers, live: usize, oldest: &mut usize, random: &mut Random) {
    for _ in 0..CHUNK {
        timers.cancel(*oldest);
        timers.start(*oldest, any_delay(random));
        *oldest = if *oldest + 1 == live { 0 } else { *oldest + 1 };
    }
    timers.turn();
}

/// W1: with `live` timers pending, start one and cancel it.
pub fn w1(mut timers: impl Timers, live: usize, time: Duration) -> Each {
    let mut random = Random::new(1);
    fill(&mut timers, live, &mut random);
    each_in(time / 10, || start_cancel(&mut timers, live, &mut random));
    each_in(time, || start_cancel(&mut timers, live, &mut random))
}

/// W1b: `live` timers in a ring; cancel the oldest, start a new one. The first round of the ring
/// is not measured.
pub fn w1b(mut timers: impl Timers, live: usize, time: Duration) -> Each {
    let (mut random, mut oldest) = (Random::new(2), 0);
    fill(&mut timers, live, &mut random);
    for _ in 0..(live as u64).div_ceil(CHUNK) {
        go_round(&mut timers, live, &mut oldest, &mut random);
    }
    each_in(time, || go_round(&mut timers, live, &mut oldest, &mut random))
}

/// W2: `live` timers of 30 s; push a random one out to now + 30 s.
pub fn w2(mut timers: impl Timers, live: usize, time: Duration) -> Each {
    let mut random = Random::new(3);
    for slot in 0..live {
        timers.start(slot, 30 * SECOND);
        if (slot as u64).is_multiple_of(CHUNK) {
            timers.turn();
        }
    }
    timers.turn();
    let mut push_out = || {
        for _ in 0..CHUNK {
            timers.push_out(random.below(live as u64) as usize, 30 * SECOND);
        }
        timers.turn();
    };
    each_in(time / 3, &mut push_out);
    each_in(time, &mut push_out)
}

/// W3: `count` timers uniform over 10 s fire, `step_ns` at a time.
pub fn w3(mut timers: impl Timers, count: usize, step_ns: u64) -> Each {
    let mut random = Random::new(4);
    for slot in 0..count {
        timers.start(slot, random.between(MS, 10 * SECOND));
    }
    let mut fired = 0;
    let each = each(count as u64, || {
        let mut by_ns = 0;
        while by_ns < 10 * SECOND + 2 * MS {
            fired += timers.advance(step_ns);
            by_ns += step_ns;
        }
    });
    assert_eq!(fired, count as u64, "not every timer fired once");
    each
}

/// W3's step.
pub const STEP: u64 = MS;
/// W3jump's step.
pub const JUMP: u64 = 11 * SECOND;
