//! `--soak`: does it stay what it was? A long run of a profile, with a storm every ten seconds, watched
//! in thirds: resident memory and lateness of the last third against the first.
//!
//! A storm: one more producer starts 20,000 timers for one instant, and in the milliseconds around
//! that instant pushes a third of them out and cancels another third, so that resets and cancels meet
//! the firing. The ledger accounts for them as for any other.
//!
//! Memory is the middle value of a third's samples, one each second, as the system counts it for the whole
//! process. It has drifted if the last third has more than 2 % and 8 MiB over the first.
//! Lateness has drifted if the last third's median or 99th percentile is above the first's by more than one
//! tick and a quarter, once what the machine itself got worse is taken off: threads that only sleep tell how
//! much. A thread that has work to do is delayed more than one that only sleeps, where others want the CPU
//! too: so if the shards' threads had to wait notably longer in the last third, for each second of
//! CPU that they got, the machine got busier, and lateness is not judged; the report says so.

use crate::clock::{self, MS, SECOND};
use crate::fire::{Desk, Mailbox};
use crate::lateness;
use crate::ledger::Plan;
use crate::options::Sabotage;
use crate::producer::Producer;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Timers of one storm.
pub const STORM: usize = 20_000;
const STORM_EVERY: u64 = 10 * SECOND;
const AHEAD: u64 = 300 * MS;

/// Storms until `end`: the producer's own thread.
pub fn storms(desk: &'static Desk, index: usize, mailbox: Mailbox, begin: u64, end: u64) {
    let mut hands = Producer::new(desk, index, mailbox, 0, true);
    let every = STORM_EVERY.min((end - begin) / 4);
    let mut next = begin + every / 2;
    while next + AHEAD < end {
        clock::sleep_until(next);
        storm(&mut hands);
        next += every;
    }
}

fn storm(hands: &mut Producer) {
    let due = clock::now() + AHEAD;
    let slots: Vec<u32> = (0..STORM)
        .map_while(|_| hands.start_passing(Plan::Once, due.saturating_sub(clock::now())))
        .collect();
    clock::sleep_until(due.saturating_sub(MS));
    for (nth, &slot) in slots.iter().enumerate() {
        match nth % 3 {
            0 => hands.push_out(slot, 50 * MS),
            1 if hands.cancel(slot) => hands.release(slot),
            _ => {}
        }
    }
    clock::sleep_until(due + 200 * MS);
    while let Some(slot) = hands.fired() {
        hands.release(slot);
    }
}

/// What is noted of one third of the run.
struct Third {
    /// Resident, and by the library's count.
    memory: Vec<(u64, u64)>,
    late: Histogram<u64>,
    overslept: Histogram<u64>,
    shards: Cpu,
}

/// What threads got of the CPU, and how long they waited for it.
#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    got_ns: u64,
    waited_ns: u64,
}

impl Cpu {
    /// Of the shards' threads so far, as the system counts it; zeros where it does not.
    fn of_shards() -> Cpu {
        let mut all = Cpu::default();
        for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
            if !read("comm").starts_with("drive-") {
                continue;
            }
            let stat = read("schedstat");
            let mut numbers = stat.split_whitespace().map(|word| word.parse().unwrap_or(0));
            all.got_ns += numbers.next().unwrap_or(0);
            all.waited_ns += numbers.next().unwrap_or(0);
        }
        all
    }

    fn since(self, before: Cpu) -> Cpu {
        Cpu {
            got_ns: self.got_ns.saturating_sub(before.got_ns),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
        }
    }

    /// Seconds of waiting for each second of work.
    fn wait(self) -> f64 {
        self.waited_ns as f64 / self.got_ns.max(1) as f64
    }
}

impl Third {
    fn new() -> Third {
        Third {
            memory: Vec::new(),
            late: lateness::empty(),
            overslept: lateness::empty(),
            shards: Cpu::default(),
        }
    }

    fn resident(&self) -> u64 {
        middle(self.memory.iter().map(|pair| pair.0).collect())
    }

    fn counted(&self) -> u64 {
        middle(self.memory.iter().map(|pair| pair.1).collect())
    }
}

/// Watches the run; the thread that shows it calls `look`.
pub struct Soak {
    begin: u64,
    end: u64,
    sampled: u64,
    thirds: Vec<Third>,
    tick: u64,
    leak: Option<Vec<u8>>,
    /// What the shards' threads had got and waited as it began.
    cpu: Cpu,
    sabotaged: bool,
}

impl Soak {
    /// The first tenth, at most a minute, is left out: the working set is reached in it.
    pub fn new(begin: u64, end: u64, tick: u64, sabotage: Option<Sabotage>) -> Soak {
        let warm = ((end - begin) / 10).min(60 * SECOND);
        let leak = (sabotage == Some(Sabotage::Leak)).then(Vec::new);
        Soak {
            begin: begin + warm,
            end,
            sampled: 0,
            thirds: Vec::new(),
            tick,
            leak,
            cpu: Cpu::default(),
            sabotaged: sabotage.is_some(),
        }
    }

    /// Takes a sample if it is time. `late` and `overslept` are of the whole run so far.
    pub fn look(&mut self, desk: &Desk, late: &Histogram<u64>, overslept: &Histogram<u64>) {
        let now = clock::now();
        let every = SECOND.min((self.end - self.begin) / 30);
        if now < self.begin || now < self.sampled + every {
            return;
        }
        if self.sampled == 0 {
            self.cpu = Cpu::of_shards();
        }
        self.sampled = now;
        if let Some(leak) = &mut self.leak {
            let grown = leak.len() + (64 << 20) / 30;
            leak.resize(grown, 1);
        }
        let nth = ((now - self.begin) * 3 / (self.end - self.begin)).min(2) as usize;
        while self.thirds.len() <= nth {
            self.thirds.push(Third::new());
        }
        let third = &mut self.thirds[nth];
        third.memory.push((resident(), desk.service.stats(None).memory_bytes));
        (third.late, third.overslept) = (late.clone(), overslept.clone());
        third.shards = Cpu::of_shards();
    }

    /// What came of it.
    pub fn result(mut self) -> Drift {
        // So far each third holds the sum of all before it.
        for nth in (1..self.thirds.len()).rev() {
            let (before, third) = self.thirds.split_at_mut(nth);
            let before = &before[nth - 1];
            third[0].late.subtract(&before.late).expect("a part of it");
            third[0].overslept.subtract(&before.overslept).expect("a part of it");
            third[0].shards = third[0].shards.since(before.shards);
        }
        if let Some(first) = self.thirds.first_mut() {
            first.shards = first.shards.since(self.cpu);
        }
        let (mut complaints, mut notes) = (Vec::new(), Vec::new());
        if let [first, .., last] = &self.thirds[..] {
            let (before, after) = (first.resident(), last.resident());
            if after > before + before / 50 + (8 << 20) {
                complaints.push(format!("memory grew from {before} to {after} bytes"));
            }
            let waits = [first, last].map(|third| third.shards.wait());
            let busier = waits[1] > 1.5 * waits[0] + 0.25 && !self.sabotaged;
            if busier {
                notes.push(format!(
                    "lateness is not judged: the machine got busier, the shards' threads waited {:.2} s \
                     for each second of CPU at first, {:.2} s at last",
                    waits[0], waits[1]
                ));
            }
            for quantile in [0.5, 0.99].into_iter().filter(|_| !busier) {
                let grew = |of: fn(&Third) -> &Histogram<u64>| {
                    let [first, last] = [first, last].map(|t| of(t).value_at_quantile(quantile));
                    (first, last, last.saturating_sub(first))
                };
                let (before, after, late) = grew(|third| &third.late);
                let (.., machine) = grew(|third| &third.overslept);
                if late > self.tick + self.tick / 4 + before / 4 + 2 * machine {
                    complaints.push(format!(
                        "lateness at quantile {quantile} grew from {before} to {after} ns, the machine's by {machine}"
                    ));
                }
            }
        } else {
            complaints.push("the run was too short to be judged".to_string());
        }
        Drift { thirds: self.thirds, complaints, notes }
    }
}

/// First third against last.
pub struct Drift {
    thirds: Vec<Third>,
    pub complaints: Vec<String>,
    /// What was not judged, and why.
    pub notes: Vec<String>,
}

impl Drift {
    /// A line for each third, for people.
    pub fn lines(&self) -> Vec<String> {
        let line = |(nth, third): (usize, &Third)| {
            format!(
                "third {}: resident {}, the library's {}, lateness {}; the machine's {}; {:.2} s waited for each of CPU",
                nth + 1,
                crate::units::bytes(third.resident()),
                crate::units::bytes(third.counted()),
                crate::report::quantiles(&third.late),
                crate::report::quantiles(&third.overslept),
                third.shards.wait(),
            )
        };
        self.thirds.iter().enumerate().map(line).collect()
    }

    pub fn json(&self) -> Value {
        let third = |third: &Third| {
            json!({
                "resident_bytes": third.resident(),
                "library_bytes": third.counted(),
                "samples": third.memory.len(),
                "cpu_ns": third.shards.got_ns,
                "waited_for_cpu_ns": third.shards.waited_ns,
                "lateness": crate::report::lateness_json(&third.late),
                "machine_overslept": crate::report::lateness_json(&third.overslept),
            })
        };
        json!({
            "thirds": self.thirds.iter().map(third).collect::<Vec<_>>(),
            "complaints": self.complaints,
            "notes": self.notes,
        })
    }
}

fn middle(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    // SAFETY: no arguments but a name.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.unwrap_or(0) * page.max(0) as u64
}
