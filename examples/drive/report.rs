//! The end of a run, for people and for programs.

use crate::clock::{MS, SECOND};
use crate::fire::Desk;
use crate::lateness;
use crate::options::Options;
use crate::soak::Drift;
use crate::units::{bytes, count, of, time};
use crate::verdict::Verdict;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use shardwheel::capi::sw_stats;
use std::sync::atomic::Ordering::Relaxed;

/// What was counted while the run was steady: after the filling, before the settling.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    pub started: u64,
    pub moved: u64,
    pub cancelled: u64,
    pub fired: u64,
}

impl Counts {
    pub fn read(desk: &Desk) -> Counts {
        Counts {
            started: desk.ledger.total(|tally| &tally.started),
            moved: desk.ledger.total(|tally| &tally.moved),
            cancelled: desk.ledger.total(|tally| &tally.cancelled),
            fired: desk.total(|page| &page.fired),
        }
    }

    pub fn since(self, before: Counts) -> Counts {
        Counts {
            started: self.started - before.started,
            moved: self.moved - before.moved,
            cancelled: self.cancelled - before.cancelled,
            fired: self.fired - before.fired,
        }
    }
}

/// All that the report tells.
pub struct Outcome<'a> {
    pub options: &'a Options,
    pub desk: &'a Desk,
    /// "proxy", or the trace's file.
    pub load: String,
    pub producers: usize,
    pub fill_ns: u64,
    pub steady_ns: u64,
    pub stop_ns: u64,
    /// How far a replay fell behind its trace.
    pub lag_ns: Option<u64>,
    /// Of a profile: events done, and asked for in a second.
    pub events: Option<(u64, u64)>,
    pub held: (u64, u64),
    pub steady: Counts,
    /// Of the whole service just before stop.
    pub last: sw_stats,
    pub lateness: Vec<Histogram<u64>>,
    /// Lateness while the timers were first started.
    pub filling: Histogram<u64>,
    /// How late the machine woke threads that only slept.
    pub overslept: Histogram<u64>,
    /// Of a soak.
    pub drift: Option<Drift>,
    pub verdict: Verdict,
}

impl Outcome<'_> {
    fn rate(&self, counted: u64) -> u64 {
        (counted as f64 * SECOND as f64 / self.steady_ns.max(1) as f64) as u64
    }

    fn all_lateness(&self) -> Histogram<u64> {
        let mut all = lateness::empty();
        self.lateness.iter().for_each(|shard| all.add(shard).expect("the same bounds"));
        all
    }

    fn faults(&self) -> &crate::ledger::Faults {
        &self.desk.ledger.faults
    }

    /// The verdict on the ledger, and on a soak's drift.
    pub fn ok(&self) -> bool {
        self.verdict.ok() && self.drift.as_ref().is_none_or(|drift| drift.complaints.is_empty())
    }

    pub fn print(&self) {
        let all = self.all_lateness();
        print_histogram(&all);
        self.print_summary(&all);
        self.print_books();
        self.print_verdict();
    }

    fn print_summary(&self, all: &Histogram<u64>) {
        let row = |what: &str, text: String| println!("  {what:<20} {text}");
        let moving = |what: &str, n: u64| {
            row(what, format!("{:>12}   {:>9} a second", count(n), count(self.rate(n))));
        };
        let tick = time(self.options.tick);
        let shards = of(self.desk.pages.len(), "shard");
        let producers = of(self.producers, "producer");
        println!("\nSummary");
        row("load", self.load.clone());
        row("threads", format!("{shards}, {producers}; a tick of {tick}"));
        if self.fill_ns > 0 {
            let n = self.options.timers;
            let each = time(self.fill_ns * self.producers as u64 / n.max(1));
            let took = time(self.fill_ns);
            row("filled", format!("{} timers in {took}, {each} of a producer each", count(n)));
        }
        let (least, most) = self.held;
        let steady = time(self.steady_ns);
        row("held", format!("{} to {} timers for {steady}", count(least), count(most)));
        if let Some(lag) = self.lag_ns {
            row("replay", format!("at most {} behind the trace", time(lag)));
        }
        if let Some((done, asked)) = self.events {
            let of =
                if self.rate(done) < asked / 100 * 95 { "; the machine gave no more" } else { "" };
            let per_second = count(self.rate(done));
            row(
                "events",
                format!("{:>12}   {per_second:>9} a second of {}{of}", count(done), count(asked)),
            );
        }
        moving("started", self.steady.started);
        moving("pushed out", self.steady.moved);
        moving("cancelled", self.steady.cancelled);
        moving("fired", self.steady.fired);
        row("lateness", quantiles(all));
        if !self.filling.is_empty() {
            row("  while filling", quantiles(&self.filling));
        }
        row("  the machine's", format!("{} (threads that only sleep)", quantiles(&self.overslept)));
        let held = bytes(self.last.memory_bytes);
        let each = self.last.memory_bytes as f64 / self.last.high_water.max(1) as f64;
        row("library's memory", format!("{held}, {each:.1} bytes for each timer at its fullest"));
        row(
            "stop",
            format!("{} timers handed back in {}", count(self.returned()), time(self.stop_ns)),
        );
        if self.refused() > 0 {
            row("refused", format!("{} starts (a shard was full)", count(self.refused())));
        }
    }

    fn returned(&self) -> u64 {
        self.desk.total(|page| &page.returned)
    }

    fn refused(&self) -> u64 {
        self.faults().refused.load(Relaxed)
    }

    fn print_books(&self) {
        if let Some(drift) = &self.drift {
            println!("\nDrift");
            drift.lines().iter().for_each(|line| println!("  {line}"));
            drift.complaints.iter().chain(&drift.notes).for_each(|said| println!("  {said}"));
        }
        println!("\nBooks {:>30} {:>13}", "ledger", "library");
        for line in &self.verdict.books {
            println!("  {:<20} {:>13} {:>13}", line.what, count(line.ledger), count(line.library));
        }
        for difference in &self.verdict.differences {
            println!("  they differ: {difference}");
        }
    }

    fn print_verdict(&self) {
        let v = &self.verdict;
        let word = if self.ok() { "OK" } else { "FAILED" };
        let (early, lost, twice) = (count(v.early), count(v.lost), count(v.twice));
        let started = count(self.verdict.books[0].ledger);
        println!(
            "\nVerdict: {word}. Of {started} timers {early} early, {lost} lost, {twice} fired twice."
        );
        if v.wrong > 0 {
            println!("  {} answers of the library cannot be true", count(v.wrong));
        }
    }

    pub fn json(&self) -> Value {
        let v = &self.verdict;
        let (least, most) = self.held;
        let rates = |n: u64| json!({ "count": n, "per_second": self.rate(n) });
        let books: serde_json::Map<String, Value> = v
            .books
            .iter()
            .map(|line| {
                let name = line.what.replace(' ', "_");
                (name, json!({ "ledger": line.ledger, "library": line.library }))
            })
            .collect();
        json!({
            "load": self.load,
            "timers": self.options.timers,
            "shards": self.desk.pages.len(),
            "producers": self.producers,
            "tick_ns": self.options.tick,
            "fill_ns": self.fill_ns,
            "steady_ns": self.steady_ns,
            "stop_ns": self.stop_ns,
            "replay_lag_ns": self.lag_ns,
            "held": { "least": least, "most": most },
            "steady": {
                "started": rates(self.steady.started),
                "pushed_out": rates(self.steady.moved),
                "cancelled": rates(self.steady.cancelled),
                "fired": rates(self.steady.fired),
            },
            "refused": self.refused(),
            "rearmed": self.desk.total(|page| &page.rearmed),
            "memory_bytes": self.last.memory_bytes,
            "high_water": self.last.high_water,
            "wakeups": self.last.wakeups,
            "lateness": lateness_json(&self.all_lateness()),
            "machine_overslept": lateness_json(&self.overslept),
            "events": self.events.map(|(done, asked)| {
                json!({ "count": done, "per_second": self.rate(done), "asked_per_second": asked })
            }),
            "lateness_filling": lateness_json(&self.filling),
            "lateness_by_shard": self.lateness.iter().map(lateness_json).collect::<Vec<_>>(),
            "books": books,
            "soak": self.drift.as_ref().map(Drift::json),
            "verdict": {
                "ok": self.ok(),
                "text": if self.ok() { "OK" } else { "FAILED" },
                "early": v.early,
                "lost": v.lost,
                "twice": v.twice,
                "wrong_answers": v.wrong,
                "differences": v.differences,
            },
        })
    }
}

pub fn quantiles(late: &Histogram<u64>) -> String {
    let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(|q| time(late.value_at_quantile(q)));
    format!("p50 {p50}, p99 {p99}, p99.9 {p999}, max {max}")
}

pub fn lateness_json(late: &Histogram<u64>) -> Value {
    json!({
        "count": late.len(),
        "p50_ns": late.value_at_quantile(0.5),
        "p90_ns": late.value_at_quantile(0.9),
        "p99_ns": late.value_at_quantile(0.99),
        "p999_ns": late.value_at_quantile(0.999),
        "max_ns": late.max(),
    })
}

/// Upper edges of the rows.
const EDGES: [u64; 16] = [
    50_000,
    100_000,
    200_000,
    400_000,
    600_000,
    800_000,
    MS,
    1_200_000,
    1_500_000,
    2 * MS,
    5 * MS,
    10 * MS,
    50 * MS,
    200 * MS,
    SECOND,
    u64::MAX,
];

fn print_histogram(all: &Histogram<u64>) {
    println!("\nLateness of {} callbacks", count(all.len()));
    let mut from = 0;
    for to in EDGES {
        let n = match to {
            u64::MAX => all.count_between(from, all.high()),
            to => all.count_between(from, to - 1),
        };
        let share = n as f64 / all.len().max(1) as f64;
        let bar = "#".repeat((share * 50.0).ceil() as usize);
        let range = match to {
            u64::MAX => format!("beyond {:>8}", time(from)),
            to => format!("up to  {:>8}", time(to)),
        };
        if n > 0 || to <= 2 * MS {
            println!("  {range} {:>12} {:>6.2} %  {bar}", count(n), share * 100.0);
        }
        from = to;
    }
}
