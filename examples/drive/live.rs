//! What is seen while it runs: a bar while the timers are started, then a row for each shard.
//! On a terminal the rows stay in place; elsewhere they are printed as lines, less often.

use crate::clock::{self, MS, SECOND};
use crate::fire::Desk;
use crate::lateness;
use crate::units;
use hdrhistogram::Histogram;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use shardwheel::capi::sw_stats;
use std::io::IsTerminal;

/// Where to show it.
enum Screen {
    Nowhere,
    /// Plain lines on standard output.
    Lines,
    /// Rows that stay in place: the heading, then one for each shard.
    Rows(MultiProgress, Vec<ProgressBar>),
}

pub struct Live {
    desk: &'static Desk,
    screen: Screen,
    /// It takes so long that lines come seldom.
    long: bool,
    began: u64,
    /// When the next rows are due, and when the last ones were read.
    next: u64,
    last: u64,
    before: Vec<sw_stats>,
    /// Lateness of each shard since there are rows.
    pub lateness: Vec<Histogram<u64>>,
    /// Lateness of all shards before that.
    pub filling: Histogram<u64>,
    /// Fewest and most timers that were seen pending.
    pub held: Option<(u64, u64)>,
}

fn heading() -> String {
    let rates = format!("{:>11} {:>11} {:>11}", "starts/s", "cancels/s", "fired/s");
    let late = format!("{:>9} {:>9} {:>9}", "late p50", "p99", "max");
    format!("{:>7} {:>5} {:>12} {rates} {late}", "time", "shard", "pending")
}

impl Live {
    pub fn new(desk: &'static Desk, json: bool, long: bool) -> Live {
        let on_terminal =
            if json { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        let rows_on = |target| Screen::Rows(MultiProgress::with_draw_target(target), vec![]);
        let screen = match (on_terminal, json) {
            (true, true) => rows_on(ProgressDrawTarget::stderr()),
            (true, false) => rows_on(ProgressDrawTarget::stdout()),
            (false, true) => Screen::Nowhere,
            (false, false) => Screen::Lines,
        };
        let shards = desk.pages.len();
        Live {
            desk,
            screen,
            long,
            began: 0,
            next: 0,
            last: 0,
            before: Vec::new(),
            lateness: (0..shards).map(|_| lateness::empty()).collect(),
            filling: lateness::empty(),
            held: None,
        }
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        match &self.screen {
            Screen::Nowhere => {}
            Screen::Lines => println!("{text}"),
            Screen::Rows(all, _) => {
                let _ = all.println(text);
            }
        }
    }

    /// Shows how far the filling is, until `filled` says that it is over.
    pub fn fill(&self, timers: u64, filled: impl Fn() -> bool) {
        let style = "{msg} [{bar:40}] {human_pos} of {human_len}";
        let bar = ProgressBar::hidden();
        let bar = if let Screen::Rows(all, _) = &self.screen { all.add(bar) } else { bar };
        bar.set_style(ProgressStyle::with_template(style).expect("a good template"));
        bar.set_message("starting timers");
        bar.set_length(timers);
        while !filled() {
            bar.set_position(self.desk.ledger.total(|tally| &tally.started).min(timers));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        bar.finish_and_clear();
    }

    /// Lateness of all shards since there are rows, as of the last row.
    pub fn so_far(&self) -> Histogram<u64> {
        let mut all = lateness::empty();
        self.lateness.iter().for_each(|shard| all.add(shard).expect("the same bounds"));
        all
    }

    fn every(&self) -> u64 {
        match self.screen {
            Screen::Lines if self.long => 30 * SECOND,
            Screen::Lines => SECOND,
            _ => 500 * MS,
        }
    }

    fn read(&self) -> Vec<sw_stats> {
        (0..self.desk.pages.len()).map(|shard| self.desk.service.stats(Some(shard))).collect()
    }

    /// From now on there are rows.
    pub fn begin(&mut self) {
        self.began = clock::now();
        self.last = self.began;
        self.next = self.began + self.every();
        self.before = self.read();
        self.desk.pages.iter().for_each(|page| drop(page.lateness.take(&mut self.filling)));
        self.say(&heading());
        if let Screen::Rows(all, rows) = &mut self.screen {
            let row = || {
                ProgressBar::hidden()
                    .with_style(ProgressStyle::with_template("{msg}").expect("a good template"))
            };
            rows.extend(self.before.iter().map(|_| all.add(row())));
        }
    }

    /// Shows new rows if it is time.
    pub fn look(&mut self) {
        if clock::now() >= self.next {
            self.next += self.every();
            self.show();
        }
    }

    fn show(&mut self) {
        let now = clock::now();
        let stats = self.read();
        let seconds = (now - self.last).max(1) as f64 / SECOND as f64;
        let rate = |now: u64, before: u64| units::count(((now - before) as f64 / seconds) as u64);
        for (shard, stats) in stats.iter().enumerate() {
            let before = &self.before[shard];
            let late = self.desk.pages[shard].lateness.take(&mut self.lateness[shard]);
            let quantile = |q| match late.is_empty() {
                true => "-".to_string(),
                false => units::time(late.value_at_quantile(q)),
            };
            let row = format!(
                "{:>5.1} s {:>5} {:>12} {:>11} {:>11} {:>11} {:>9} {:>9} {:>9}",
                (now - self.began) as f64 / SECOND as f64,
                shard,
                units::count(stats.pending),
                rate(stats.started, before.started),
                rate(stats.cancelled, before.cancelled),
                rate(stats.fired, before.fired),
                quantile(0.5),
                quantile(0.99),
                quantile(1.0),
            );
            match &self.screen {
                Screen::Nowhere => {}
                Screen::Lines => println!("{row}"),
                Screen::Rows(_, rows) => rows[shard].set_message(row),
            }
        }
        let pending = stats.iter().map(|stats| stats.pending).sum();
        let (least, most) = self.held.unwrap_or((pending, pending));
        self.held = Some((least.min(pending), most.max(pending)));
        self.last = now;
        self.before = stats;
    }

    /// The last rows, unless the ones before are still fresh; they stay as they are.
    pub fn end(&mut self) {
        if clock::now() - self.last > 200 * MS {
            self.show();
        }
        if let Screen::Rows(_, rows) = &self.screen {
            rows.iter().for_each(|row| row.abandon());
        }
    }

    /// Collects what came after the last rows.
    pub fn close(&mut self) {
        for (page, sum) in self.desk.pages.iter().zip(&mut self.lateness) {
            page.lateness.take(sum);
        }
    }
}
