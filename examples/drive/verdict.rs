//! Was every timer served once, and not early? The ledger answers; the library's own counters are
//! only compared with it.

use crate::fire::Desk;
use shardwheel::capi::sw_stats;
use std::sync::atomic::Ordering::Relaxed;

/// One line of the books: the same thing counted by the ledger and by the library.
#[derive(Debug)]
pub struct Line {
    pub what: &'static str,
    pub ledger: u64,
    pub library: u64,
}

#[derive(Debug)]
pub struct Verdict {
    pub early: u64,
    /// Never heard of again, or handed back by stop long after it was due.
    pub lost: u64,
    pub twice: u64,
    /// Answers of the library that cannot be true.
    pub wrong: u64,
    /// Totals, for the report.
    pub books: Vec<Line>,
    /// Where ledger and library differ, in words.
    pub differences: Vec<String>,
}

impl Verdict {
    /// After stop: nothing moves any more.
    pub fn of(desk: &Desk) -> Verdict {
        let ledger = &desk.ledger;
        let stats: Vec<sw_stats> =
            (0..ledger.shards).map(|shard| desk.service.stats(Some(shard))).collect();
        let shards: Vec<Vec<Line>> =
            stats.iter().enumerate().map(|(shard, stats)| lines(desk, shard, stats)).collect();
        let mut differences = Vec::new();
        for (shard, (lines, stats)) in shards.iter().zip(&stats).enumerate() {
            for Line { what, ledger, library } in lines.iter().filter(|l| l.ledger != l.library) {
                differences
                    .push(format!("shard {shard}: {what}: ledger {ledger}, library {library}"));
            }
            let ended = stats.ended_by_fire + stats.cancelled + stats.returned + stats.pending;
            if stats.started != ended {
                let started = stats.started;
                differences.push(format!("shard {shard}: {started} started, {ended} ended"));
            }
        }
        let sum = |at: usize, side: fn(&Line) -> u64| shards.iter().map(|s| side(&s[at])).sum();
        let books = (0..shards[0].len()).map(|at| Line {
            what: shards[0][at].what,
            ledger: sum(at, |line| line.ledger),
            library: sum(at, |line| line.library),
        });
        Verdict {
            early: ledger.faults.early.load(Relaxed),
            lost: ledger.unheard() + ledger.faults.overdue.load(Relaxed),
            twice: ledger.faults.twice.load(Relaxed),
            wrong: ledger.faults.wrong.load(Relaxed),
            books: books.collect(),
            differences,
        }
    }

    pub fn ok(&self) -> bool {
        self.early + self.lost + self.twice + self.wrong == 0 && self.differences.is_empty()
    }
}

/// What both sides counted on one shard.
fn lines(desk: &Desk, shard: usize, stats: &sw_stats) -> Vec<Line> {
    let page = &desk.pages[shard];
    let line = |what, ledger, library| Line { what, ledger, library };
    let cancelled = desk.ledger.of_shard(shard, |tally| &tally.cancelled);
    let ended = page.ended.load(Relaxed);
    // A cancel that found the callback running, and the callback had armed its timer again: the
    // library may call that an end by firing or a cancel, as it likes.
    let caught = desk.ledger.of_shard(shard, |tally| &tally.caught);
    let as_cancelled = stats.cancelled.saturating_sub(cancelled).min(caught);
    vec![
        line("started", desk.ledger.of_shard(shard, |tally| &tally.started), stats.started),
        line("callbacks run", page.fired.load(Relaxed), stats.fired),
        line("ended by firing", ended + caught - as_cancelled, stats.ended_by_fire),
        line("cancelled", cancelled + as_cancelled, stats.cancelled),
        line("handed back by stop", page.returned.load(Relaxed), stats.returned),
        line("pending", 0, stats.pending),
        line("periods missed", page.missed.load(Relaxed), stats.missed),
    ]
}
