//! The books: what can be read at any time, compared after each operation; and the end of a case, where
//! everything that comes must have come.

use super::game::Game;
use super::instant::NEVER;
use super::play::Picked;
use super::reference::{Counts, Id};
use shardwheel::capi::sw_status::*;
use shardwheel::capi::*;

// SAFETY of every call: the service is alive, outputs are locals.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Game {
    /// What can be read at any time, against the reference.
    pub fn books(&self) {
        self.check(self.reference.borrow().all_dropped());
        for shard in 0..self.shards() {
            self.books_of(shard);
        }
        let mut stats = empty_stats();
        let got = unsafe { sw_stats_read(self.service, SW_SHARD_ANY, &mut stats) };
        self.answers("stats", got, &[SW_OK]);
        let ended = stats.ended_by_fire + stats.cancelled + stats.returned;
        if stats.started != ended + stats.pending {
            self.wrong(format!("F1: {stats:?}"));
        }
        if unsafe { sw_clock_now(self.service) } != self.reference.borrow().now_ns {
            self.wrong("the clock".into());
        }
    }

    fn books_of(&self, shard: u32) {
        let reference = self.reference.borrow();
        let mut stats = empty_stats();
        let got = unsafe { sw_stats_read(self.service, shard, &mut stats) };
        self.answers("stats", got, &[SW_OK]);
        let counts = Counts {
            pending: stats.pending,
            high_water: stats.high_water,
            started: stats.started,
            fired: stats.fired,
            ended_by_fire: stats.ended_by_fire,
            cancelled: stats.cancelled,
            returned: stats.returned,
            rejected: stats.rejected,
            missed: stats.missed,
        };
        let index = shard as usize;
        let expected = reference.counts[index];
        if counts != expected {
            self.wrong(format!("F1: shard {shard}: {counts:?}, not {expected:?}"));
        }
        if reference.stopped {
            return;
        }
        let (least, most) = reference.overdue(index);
        if !(least..=most).contains(&stats.overdue_ns) {
            self.wrong(format!("F7: overdue {}, not {least} to {most}", stats.overdue_ns));
        }
        let mut next = 0;
        let got = unsafe { sw_shard_next(self.service, shard, &mut next) };
        self.answers("next", got, &[SW_OK]);
        if next > reference.next_at_most(index) || (counts.pending == 0 && next != NEVER) {
            self.wrong(format!("Q1: next is {next}, at most {}", reference.next_at_most(index)));
        }
        if reference.poll.is_none()
            && let Some(fd) = self.fds.borrow()[index]
            && reference.wants_poll(index)
            && !readable(fd)
        {
            self.wrong("Q2: a timer is due and the descriptor is not readable".into());
        }
    }

    /// Everything that comes, comes; the rest is handed back.
    pub fn end(&self) {
        if self.is_over() {
            return;
        }
        self.left.set(0);
        if !self.stopped() {
            self.note(|| "the end".into());
            let live: Vec<Id> = self.reference.borrow().live().collect();
            for id in live {
                if self.reference.borrow().timers[id].is_periodic() {
                    let handle = self.reference.borrow().timers[id].handle;
                    self.cancel(Picked::Timer(id, handle), false);
                }
            }
            (0..self.shards()).for_each(|shard| self.run_down(shard));
            // What is due in the very last tick asks for an instant that no clock comes to but this one.
            self.advance(NEVER);
            (0..self.shards()).for_each(|shard| self.poll(shard, 0));
            self.check(self.reference.borrow().all_came());
            let queues = self.queues.borrow().len();
            (0..queues).for_each(|queue| self.take(queue, 10_000));
        }
        if self.is_over() {
            return;
        }
        self.books();
        self.stop(false);
        self.books();
    }

    fn run_down(&self, shard: u32) {
        // Each arming has at most a wake-up for each of eleven levels.
        let most = 12 * (self.reference.borrow().armings() + 8);
        let mut steps = 0;
        while !self.is_over() && self.step_to_next(shard) {
            steps += 1;
            if steps > most {
                self.wrong(format!("Q1: more than {most} wake-ups"));
            }
        }
    }
}

fn empty_stats() -> sw_stats {
    // SAFETY: plain numbers.
    let mut stats: sw_stats = unsafe { std::mem::zeroed() };
    stats.size = size_of::<sw_stats>();
    stats
}

/// Whether a descriptor is readable now.
pub fn readable(fd: i32) -> bool {
    let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which is a local.
    unsafe { libc::poll(&mut entry, 1, 0) == 1 && entry.revents & libc::POLLIN != 0 }
}
