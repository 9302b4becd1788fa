//! The comparison: each measurement in a process of its own, contender after contender, round
//! after round.

use crate::contender::shardwheel::Api;
use crate::options::Options;
use crate::run::run;
use crate::workload::{Case, Contender, Workload};
use indicatif::{ProgressBar, ProgressStyle};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The name of the shardwheel that this program is linked with.
pub const LINKED: &str = "shardwheel";

/// One row of the table: a contender in a case.
pub struct Row {
    pub case: Case,
    pub name: String,
    /// The figures of each round, in the order of the workload's metrics. `None`: the library is
    /// not installed.
    pub rounds: Option<Vec<Vec<f64>>>,
}

/// What a child is asked to do.
struct Job {
    case: Case,
    contender: Contender,
    library: Option<PathBuf>,
    row: usize,
}

fn seconds(options: &Options) -> Duration {
    Duration::from_millis(if options.quick { 80 } else { 300 })
}

fn rounds_of(workload: Workload, options: &Options) -> usize {
    match options.rounds {
        Some(rounds) => rounds,
        None if options.quick => 2,
        None if workload.is_long() => 3,
        // Memory hardly differs from run to run.
        None if workload == Workload::W5 => 2,
        None => 5,
    }
}

/// Who takes part in a case: the job of a row, or `None` where the library is not installed.
fn rows_of(case: Case, options: &Options, rows: &mut Vec<Row>) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut add = |contender: Contender, name: String, library: Option<PathBuf>| {
        let installed = contender.is_installed();
        if installed {
            jobs.push(Job { case, contender, library, row: rows.len() });
        }
        rows.push(Row { case, name, rounds: installed.then(Vec::new) });
    };
    let contenders = if options.curves.is_some() {
        case.workload.on_curves()
    } else {
        case.workload.contenders()
    };
    let (own, peers): (Vec<_>, Vec<_>) = contenders.into_iter().partition(|c| c.is_shardwheel());
    for contender in &own {
        add(*contender, contender.name(LINKED), None);
    }
    for (name, path) in &options.library {
        for contender in &own {
            add(*contender, contender.name(name), Some(path.clone()));
        }
    }
    if !options.alone {
        for contender in peers {
            add(contender, contender.name(LINKED), None);
        }
    }
    jobs
}

/// Measures all cases, as the options say.
pub fn compare(options: &Options, cases: &[Case]) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let jobs: Vec<_> = cases.iter().map(|&case| rows_of(case, options, &mut rows)).collect();
    let all = jobs.iter().flatten().map(|job| rounds_of(job.case.workload, options) as u64).sum();
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    let progress = ProgressBar::new(all).with_style(style.expect("a good template"));
    for jobs in jobs {
        let Some(first) = jobs.first() else { continue };
        let workload = first.case.workload;
        for round in 0..rounds_of(workload, options) {
            let mut begun = Vec::new();
            // Another one begins in each round.
            for nth in 0..jobs.len() {
                let job = &jobs[(nth + round) % jobs.len()];
                progress.set_message(format!("{}: {}", job.case.name(), rows[job.row].name));
                begun.push((job, begin(job, options)?));
                if !workload.is_idle() {
                    finish(&mut begun, &mut rows, &progress)?;
                }
            }
            finish(&mut begun, &mut rows, &progress)?;
        }
    }
    progress.finish_and_clear();
    Ok(rows)
}

/// Starts this program anew, for one measurement.
fn begin(job: &Job, options: &Options) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    let contender = Contender::ALL.iter().position(|&one| one == job.contender);
    command
        .arg("--child")
        .arg(job.case.workload.name())
        .arg(job.case.timers.to_string())
        .arg(job.case.threads.to_string())
        .arg(contender.expect("it is one of all").to_string())
        .arg(seconds(options).as_millis().to_string())
        .args(&job.library)
        .stdout(Stdio::piped());
    command.spawn()
}

/// Takes the figures of all that have begun.
fn finish(
    begun: &mut Vec<(&Job, Child)>,
    rows: &mut [Row],
    progress: &ProgressBar,
) -> io::Result<()> {
    for (job, child) in begun.drain(..) {
        let output = child.wait_with_output()?;
        let row = &mut rows[job.row];
        if !output.status.success() {
            let what = format!("{} of {} failed: {}", row.name, job.case.name(), output.status);
            return Err(io::Error::other(what));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let figures = text.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
        row.rounds.get_or_insert_default().push(figures);
        progress.inc(1);
    }
    Ok(())
}

/// What a child does: the measurement that its arguments name. Prints the figures.
pub fn child(arguments: &[String]) {
    let [workload, timers, threads, contender, time, library @ ..] = arguments else {
        panic!("started by this program alone");
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let case = Case {
        workload: Workload::find(workload).expect("a workload"),
        timers: number(timers),
        threads: number(threads),
    };
    let contender = Contender::ALL[number(contender)];
    let api = library.first().map_or_else(Api::linked, |path| Api::load(path.as_ref()));
    let figures = run(case, contender, api, Duration::from_millis(number(time) as u64));
    let figures: Vec<_> = figures.iter().map(f64::to_string).collect();
    println!("{}", figures.join(" "));
    // Without taking down what lives: that can take longer than the measurement.
    std::process::exit(0);
}
