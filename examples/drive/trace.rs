//! Traces: timer operations of a real server, replayed at their own pace or faster.
//!
//! One operation a line, times in microseconds, `t` from the first line:
//!
//! ```text
//! # comment
//! t  S id delay [period]    start
//! t  R id delay             push out or pull in, relative to t
//! t  C id                   cancel; it may have fired before, which is no error
//! ```

use crate::clock;
use crate::ledger::Plan;
use crate::producer::Producer;
use std::collections::HashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Start(Plan, u64),
    Reset(u64),
    Cancel,
}

#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Nanoseconds from the beginning, speed applied; delays likewise.
    pub at_ns: u64,
    pub slot: u32,
    pub what: What,
}

#[derive(Debug)]
pub struct Trace {
    pub operations: Vec<Operation>,
    /// How many timers are started: one slot for each.
    pub starts: u32,
}

impl Trace {
    /// Reads a trace, `speed` times faster. An error names the line.
    pub fn parse(text: &str, speed: f64) -> Result<Trace, String> {
        let mut trace = Trace { operations: Vec::new(), starts: 0 };
        let mut slots = HashMap::new();
        let lines = text.lines().enumerate();
        for (i, line) in lines.filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#')) {
            let operation = trace
                .operation(line, speed, &mut slots)
                .ok_or_else(|| format!("line {}: not an operation: '{line}'", i + 1))?;
            trace.operations.push(operation);
        }
        if trace.operations.is_empty() {
            return Err("no operation in it".into());
        }
        Ok(trace)
    }

    fn operation<'a>(
        &mut self,
        line: &'a str,
        speed: f64,
        slots: &mut HashMap<&'a str, u32>,
    ) -> Option<Operation> {
        let mut words = line.split_ascii_whitespace();
        let mut time = |word: &str| {
            let us: u64 = word.parse().ok()?;
            Some((us as f64 * 1000.0 / speed) as u64)
        };
        let at_ns = time(words.next()?)?;
        let kind = words.next()?;
        let id = words.next()?;
        let times: Vec<u64> = words.map(&mut time).collect::<Option<_>>()?;
        let what = match (kind, &times[..]) {
            ("S", [delay]) | ("S", [delay, 0]) => What::Start(Plan::Once, *delay),
            ("S", [delay, period]) => What::Start(Plan::Every(*period), *delay),
            ("R", [delay]) => What::Reset(*delay),
            ("C", []) => What::Cancel,
            _ => return None,
        };
        if kind == "S" {
            slots.insert(id, self.starts);
            self.starts += 1;
        }
        Some(Operation { at_ns, slot: *slots.get(id)?, what })
    }

    pub fn length_ns(&self) -> u64 {
        self.operations.last().map_or(0, |last| last.at_ns)
    }
}

/// Replays up to `cut_ns`. Answers how far it lagged behind the trace at worst.
pub fn replay(trace: &Trace, hands: &mut Producer, cut_ns: u64) -> u64 {
    let begin = clock::now();
    let mut lag = 0;
    for operation in trace.operations.iter().take_while(|o| o.at_ns <= cut_ns) {
        let at = begin + operation.at_ns;
        clock::sleep_until(at);
        lag = lag.max(clock::now() - at);
        match operation.what {
            What::Start(plan, delay_ns) => {
                hands.start(operation.slot, plan, delay_ns);
            }
            What::Reset(delay_ns) => hands.push_out(operation.slot, delay_ns),
            What::Cancel => {
                hands.cancel(operation.slot);
            }
        }
    }
    lag
}
