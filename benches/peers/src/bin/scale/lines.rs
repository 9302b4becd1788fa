//! Cache lines, as far as moving between cores goes.
//!
//! A line is held by one core that has written it, or by some that have read it since. Reading or
//! writing a line that others hold takes one transfer, and a line makes one transfer at a time: who
//! comes meanwhile waits. Nothing else of a memory system is modelled: no capacity, no bandwidth, no
//! distance.

use std::fmt;

/// What a line is for; the time that is lost at lines is counted by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Use {
    /// A timer's record.
    Record,
    /// Entries of an inbox, and how many there are.
    Inbox,
    /// A shard's alarm word.
    Alarm,
    /// The heads of a shard's stacks of magazines, and the magazines.
    Depot,
    /// A shard's pool of credits.
    Pool,
    /// Counters of a port, which others add up for the high water mark, and the mark.
    HighWater,
}

pub const USES: [Use; 6] =
    [Use::Record, Use::Inbox, Use::Alarm, Use::Depot, Use::Pool, Use::HighWater];

/// A line's holders, a bit for each core, and until when it is on its way.
#[derive(Clone)]
pub struct Line {
    holders: u128,
    written: bool,
    busy_until: f64,
}

impl Line {
    pub fn new() -> Line {
        Line { holders: 0, written: false, busy_until: 0.0 }
    }
}

/// A core at work: its number, its time, and what it has lost at lines.
pub struct Core {
    bit: u128,
    pub now: f64,
    pub lost: [f64; USES.len()],
}

impl Core {
    pub fn new(number: usize) -> Core {
        Core { bit: 1 << number, now: 0.0, lost: [0.0; USES.len()] }
    }

    /// `share`: how much of the transfer is not hidden behind other work.
    fn transfer(&mut self, line: &mut Line, usage: Use, transfer: f64, share: f64) {
        // Nobody has had it: it comes from memory that nobody else wants.
        if line.holders != 0 {
            let begin = self.now.max(line.busy_until);
            line.busy_until = begin + transfer;
            let lost = (begin - self.now) + transfer * share;
            self.lost[usage as usize] += lost;
            self.now += lost;
        }
    }

    pub fn read(&mut self, line: &mut Line, usage: Use, transfer: f64, share: f64) {
        if line.holders & self.bit == 0 {
            self.transfer(line, usage, transfer, share);
            line.holders |= self.bit;
            line.written = false;
        }
    }

    pub fn write(&mut self, line: &mut Line, usage: Use, transfer: f64) {
        if line.holders != self.bit || !line.written {
            if line.holders != self.bit {
                self.transfer(line, usage, transfer, 1.0);
            }
            line.holders = self.bit;
            line.written = true;
        }
    }
}

/// The part of all producers' time that went by at lines of one use.
pub struct Wait {
    pub usage: Use,
    pub share: f64,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:.0} %", self.usage, self.share * 100.0)
    }
}
