//! One model in one process.

use std::collections::{BTreeSet, VecDeque};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) verdict: Verdict,
    pub(crate) bound: String,
    pub(crate) interleavings: u64,
    pub(crate) seconds: f64,
    /// The switches of all mutants that it came to, if asked.
    pub(crate) sites: BTreeSet<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    /// With the message.
    Failed(String),
    /// Neither: out of time, or loom itself was at fault.
    Unclear(String),
}

/// How far a run goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Preemptions; `None`: the model's own bound.
    pub(crate) bound: Option<u32>,
    /// After this many interleavings, about, the rest is left out.
    pub(crate) most: Option<u64>,
    /// After this many seconds it is given up.
    pub(crate) seconds: Option<u64>,
}

/// The names of all models.
pub(crate) fn models(program: &Path) -> Vec<String> {
    let listed = Command::new(program).arg("--list").output().unwrap();
    String::from_utf8(listed.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|name| name.contains("models::"))
        .map(str::to_string)
        .collect()
}

pub(crate) fn run(program: &Path, model: &str, mutant: Option<&str>, limits: Limits) -> Ran {
    run_with(program, model, mutant, limits, None)
}

/// With a file in which loom keeps the interleaving that it is at.
pub(crate) fn run_with(
    program: &Path,
    model: &str,
    mutant: Option<&str>,
    limits: Limits,
    checkpoint: Option<&Path>,
) -> Ran {
    let mut command = Command::new(program);
    command.args(["--exact", model, "--nocapture", "--include-ignored", "--test-threads=1"]);
    for name in
        ["LOOM_MAX_PREEMPTIONS", "LOOM_MAX_PERMUTATIONS", "LOOM_CHECKPOINT_FILE", "LOOM_LOG"]
    {
        command.env_remove(name);
    }
    if let Some(bound) = limits.bound {
        command.env("LOOM_MAX_PREEMPTIONS", bound.to_string());
    }
    if let Some(most) = limits.most {
        // The count is looked at once in so many.
        command
            .env("LOOM_MAX_PERMUTATIONS", most.to_string())
            .env("LOOM_CHECKPOINT_INTERVAL", "50");
    }
    if let Some(file) = checkpoint {
        command.env("LOOM_CHECKPOINT_FILE", file).env("LOOM_CHECKPOINT_INTERVAL", "1");
    }
    match mutant {
        Some(mutant) => command.env("SHARDWHEEL_MUTANT", mutant).env_remove("SHARDWHEEL_SITES"),
        None => command.env("SHARDWHEEL_SITES", "1").env_remove("SHARDWHEEL_MUTANT"),
    };
    let (status, text) = output_of(command, limits.seconds.map(Duration::from_secs));
    let known = |line: &str, key: &str| Some(line.split_once(key)?.1.to_string());
    let count = text.lines().find_map(|line| known(line, ": bound ")).unwrap_or_default();
    let verdict = match status {
        None => Verdict::Unclear("out of time".to_string()),
        Some(true) => Verdict::Passed,
        Some(false) => judged(&text),
    };
    Ran {
        verdict,
        bound: count.split(',').next().unwrap_or_default().to_string(),
        interleavings: count
            .split_once(", ")
            .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
            .unwrap_or(0),
        seconds: count
            .rsplit_once(", ")
            .and_then(|(_, rest)| rest.trim_end_matches(" s").parse().ok())
            .unwrap_or(0.0),
        sites: text
            .lines()
            .filter_map(|line| known(line, "mutant "))
            .filter(|site| site.starts_with("src/"))
            .collect(),
    }
}

/// Whether it ended well (`None`: not in time), and all that it printed.
fn output_of(mut command: Command, patience: Option<Duration>) -> (Option<bool>, String) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    drop(command);
    let text = std::thread::spawn(move || {
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status.success());
        }
        if patience.is_some_and(|patience| begin.elapsed() > patience) {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    (status, text.join().unwrap())
}

/// What the first panic says.
fn judged(text: &str) -> Verdict {
    if text.contains("overflowed its stack") {
        return Verdict::Unclear("a stack that is too small".to_string());
    }
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at "));
    let place = lines.next().unwrap_or("ended by a signal").to_string();
    let message = lines.next().unwrap_or_default();
    let place = place.split_once("panicked at ").map_or(place.as_str(), |(_, place)| place);
    let place = place.rsplit_once("/src/").map_or(place, |(_, place)| place);
    let told = format!("{message} ({place})");
    // An assertion that loom's own source says to fail sometimes.
    let own = message.contains("[loom internal bug]")
        || place.starts_with("rt/atomic.rs") && message.contains("left != right");
    if own { Verdict::Unclear(told) } else { Verdict::Failed(told) }
}

/// Works all of `tasks` off, on every processor.
pub(crate) fn on_all<T: Send, R: Send>(tasks: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let tasks = Mutex::new(tasks.into_iter().enumerate().collect::<VecDeque<_>>());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                loop {
                    let Some((index, task)) = tasks.lock().unwrap().pop_front() else { return };
                    let result = work(task);
                    results.lock().unwrap().push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
