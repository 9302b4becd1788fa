//! What is printed: a table, or JSON.

use crate::compare::Row;
use crate::machine::Machine;
use crate::workload::{Case, Metric};
use serde_json::{Value, json};

/// The middle one, the least and the most.
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Spread {
        figures.sort_unstable_by(f64::total_cmp);
        let middle = figures.len() / 2;
        let median = match figures.len() % 2 {
            1 => figures[middle],
            _ => (figures[middle - 1] + figures[middle]) / 2.0,
        };
        Spread { median, least: figures[0], most: figures[figures.len() - 1] }
    }
}

/// The figures of one row: a spread for each metric.
pub fn spreads(row: &Row) -> Option<Vec<Spread>> {
    let rounds = row.rounds.as_ref().filter(|rounds| !rounds.is_empty())?;
    let of = |nth: usize| Spread::of(rounds.iter().map(|figures| figures[nth]).collect());
    Some((0..row.case.workload.metrics().len()).map(of).collect())
}

/// How many times better the first row of the case is; `first` and `this` are medians.
fn ratio(case: Case, first: f64, this: f64) -> f64 {
    if case.workload.more_is_better() { first / this } else { this / first }
}

/// The median of each case's first row.
fn first_of(rows: &[Row], case: Case) -> Option<f64> {
    let row = rows.iter().find(|row| row.case == case)?;
    Some(spreads(row)?[0].median)
}

pub fn print_table(rows: &[Row], machine: &Machine) {
    println!("{}\n", machine.line());
    let mut last = None;
    for row in rows {
        let metrics = row.case.workload.metrics();
        if last != Some(row.case) {
            let line = format!("{}: {}", row.case.name(), row.case.workload.about());
            println!("{}{line}", if last.is_some() { "\n" } else { "" });
            let heads: String =
                metrics.iter().map(|metric| format!("{:>13}", metric.name)).collect();
            println!("  {:30}{heads}{:>22}{:>8}", "", "least to most", "ratio");
            last = Some(row.case);
        }
        let Some(found) = spreads(row) else {
            println!("  {:30}{:>13}", row.name, "not installed");
            continue;
        };
        let figure = |(metric, spread): (&Metric, &Spread)| {
            format!("{:>13.*}", metric.digits, spread.median)
        };
        let figures: String = metrics.iter().zip(&found).map(figure).collect();
        let (digits, Spread { median, least, most }) = (metrics[0].digits, &found[0]);
        let spread = format!("{least:.digits$} to {most:.digits$}");
        let times = first_of(rows, row.case).map(|first| ratio(row.case, first, *median));
        println!("  {:30}{figures}{spread:>22}{:>8.2}", row.name, times.unwrap_or(f64::NAN));
    }
}

pub fn json(rows: &[Row], machine: &Machine) -> Value {
    let row = |row: &Row| {
        let found = spreads(row);
        let figures = found.as_ref().map(|found| {
            let metrics = row.case.workload.metrics().iter().zip(found);
            let all = metrics.map(|(metric, Spread { median, least, most })| {
                json!({ "metric": metric.name, "median": median, "least": least, "most": most })
            });
            all.collect::<Vec<_>>()
        });
        let times = found
            .and_then(|found| Some(ratio(row.case, first_of(rows, row.case)?, found[0].median)));
        json!({
            "workload": row.case.workload.name(),
            "timers": row.case.timers,
            "threads": row.case.threads,
            "contender": row.name,
            "installed": row.rounds.is_some(),
            "rounds": row.rounds,
            "figures": figures,
            "ratio": times,
        })
    };
    json!({ "machine": machine.json(), "rows": rows.iter().map(row).collect::<Vec<_>>() })
}
