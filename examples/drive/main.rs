//! drive: holds millions of timers through the C ABI, the way a busy server does, and checks each
//! one of them.
//!
//! ```text
//! cargo run --release --example drive                     # 5 million timers, about ten seconds
//! cargo run --release --example drive -- --timers 10M --profile game
//! cargo run --release --example drive -- --trace server.trace --speed 10
//! ```
//!
//! How a run goes: producers *fill* the wheels up to `--timers`; then they start, push out and
//! cancel at a steady pace for `--seconds` while due timers fire; then they end, and what is due
//! has half a second to *settle*; then *stop* hands back the rest. With `--soak` it runs for half an
//! hour, and is also judged by whether memory and lateness stay what they were (soak.rs). The verdict is drawn from a
//! ledger of the example's own (ledger.rs): exit code 1 if any timer was early, lost, or fired
//! twice, if the library's counters differ from the ledger, or if a soak drifts; 2 if the run could not be made.

mod clock;
mod fire;
mod lateness;
mod ledger;
mod live;
mod options;
mod producer;
mod profile;
mod report;
mod service;
mod soak;
mod trace;
mod units;
mod verdict;
mod witness;

use clock::{MS, SECOND};
use fire::{Desk, Mailbox, on_unfired};
use ledger::Ledger;
use live::Live;
use options::Options;
use producer::Producer;
use report::{Counts, Outcome};
use service::Service;
use soak::{Drift, Soak};
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::thread;
use std::time::Duration;
use trace::Trace;
use verdict::Verdict;
use witness::Witness;

/// Room in a shard if nothing is asked; a larger run asks for more.
const USUAL_ROOM: u64 = 1 << 24;
const MOST_ROOM: u64 = 1 << 28;
/// Due timers of which none fires for so long are lost.
const STUCK_AFTER: u64 = 3 * SECOND;

fn main() -> ExitCode {
    let options = Options::read();
    match drive(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(reason) => {
            eprintln!("drive: {reason}");
            ExitCode::from(2)
        }
    }
}

/// What the middle of a run tells the report.
struct Middle {
    fill_ns: u64,
    steady_ns: u64,
    lag_ns: Option<u64>,
    /// Events that the producers came to, of a profile.
    events: Option<u64>,
    steady: Counts,
    drift: Option<Drift>,
}

/// Who produces what.
struct Plan {
    producers: usize,
    /// Standing timers, and events a second, of all producers.
    timers: u64,
    rate: u64,
    seconds: f64,
}

fn drive(options: &Options) -> Result<bool, String> {
    let trace = options.trace.as_ref().map(|path| load(path, options.speed)).transpose()?;
    let room = (options.timers + options.timers / 4).clamp(USUAL_ROOM, MOST_ROOM);
    let service = Service::start(options.shards, options.tick, room)
        .map_err(|status| format!("the service does not start: {}", service::text(status)))?;
    let plan = plan(options, trace.is_some(), service.shards());
    let entries = match &trace {
        Some(trace) => trace.starts as usize,
        None => {
            let producers = plan.producers as u64;
            let each =
                (plan.timers.div_ceil(producers) + plan.rate / producers / 4) as usize + 1024;
            if options.soak { each.max(2 * soak::STORM) } else { each }
        }
    };
    let stormers = usize::from(options.soak);
    let ledger = Ledger::new(plan.producers + stormers, entries, service.shards());
    let (desk, boxes) = Desk::open(service, ledger, options.sabotage);
    let mut live =
        Live::new(desk, options.json, options.soak && options.seconds.is_none_or(|s| s > 60.0));
    let mut witness = Witness::call(service.shards());
    let middle = match &trace {
        Some(trace) => replay(trace, &plan, desk, boxes, &mut live),
        None => imitate(options, &plan, desk, boxes, &mut live, &mut witness),
    };
    settle(desk, trace.is_some());
    let overslept = witness.hear();
    let last = service.stats(None);
    let stopping = clock::now();
    service.stop(Some(on_unfired)).map_err(|status| format!("stop: {}", service::text(status)))?;
    let stop_ns = clock::now() - stopping;
    live.close();
    let outcome = Outcome {
        options,
        desk,
        load: match &options.trace {
            Some(path) => format!("{} at speed {}", path.display(), options.speed),
            None => options.profile.text().to_string(),
        },
        producers: plan.producers,
        fill_ns: middle.fill_ns,
        steady_ns: middle.steady_ns,
        stop_ns,
        lag_ns: middle.lag_ns,
        events: middle.events.map(|done| (done, plan.rate)),
        held: live.held.unwrap_or((last.pending, last.pending)),
        steady: middle.steady,
        last,
        lateness: std::mem::take(&mut live.lateness),
        filling: live.filling,
        overslept,
        drift: middle.drift,
        verdict: Verdict::of(desk),
    };
    if options.json {
        println!("{:#}", outcome.json());
    } else {
        outcome.print();
    }
    service.free().map_err(|status| format!("free: {}", service::text(status)))?;
    Ok(outcome.ok())
}

fn load(path: &std::path::Path, speed: f64) -> Result<Trace, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Trace::parse(&text, speed).map_err(|reason| format!("{}: {reason}", path.display()))
}

fn plan(options: &Options, tracing: bool, shards: usize) -> Plan {
    if tracing {
        return Plan {
            producers: 1,
            timers: 0,
            rate: 0,
            seconds: options.seconds.unwrap_or(f64::INFINITY),
        };
    }
    let wanted = if options.producers == 0 { shards.min(8) } else { options.producers };
    let usual = profile::usual_rate(options.profile).min(options.timers / 20).max(1);
    Plan {
        producers: wanted.min(options.timers as usize),
        timers: options.timers,
        rate: options.rate.unwrap_or(usual),
        seconds: options.seconds.unwrap_or(if options.soak { 1_800.0 } else { 10.0 }),
    }
}

/// A profile: fill, then run steadily.
fn imitate(
    options: &Options,
    plan: &Plan,
    desk: &'static Desk,
    mut boxes: Vec<Mailbox>,
    live: &mut Live,
    witness: &mut Witness,
) -> Middle {
    // Home shards are spread evenly over threads, so name the shards only where that is uneven.
    let spread = !plan.producers.is_multiple_of(desk.pages.len());
    let stormer = options.soak.then(|| boxes.pop()).flatten();
    let mut soak = None;
    let began = clock::now();
    let filled = AtomicUsize::new(0);
    let events = AtomicU64::new(0);
    let end = AtomicU64::new(0);
    let steady = Barrier::new(plan.producers + 1);
    let (mut before, mut begin) = (Counts::read(desk), 0);
    thread::scope(|scope| {
        for (index, mailbox) in boxes.into_iter().enumerate() {
            let (filled, end, steady, events) = (&filled, &end, &steady, &events);
            let share = plan.timers / plan.producers as u64;
            let extra = u64::from((index as u64) < plan.timers % plan.producers as u64);
            let standing = (share + extra) as u32;
            let rate = plan.rate as f64 / plan.producers as f64;
            scope.spawn(move || {
                let mut hands = Producer::new(desk, index, mailbox, standing, spread);
                let mut profile = profile::profile(options.profile, standing, rate as u64);
                profile::fill(&*profile, &mut hands);
                filled.fetch_add(1, Release);
                steady.wait();
                let done = profile::run(&mut *profile, &mut hands, rate, end.load(Acquire));
                events.fetch_add(done, Relaxed);
            });
        }
        live.fill(plan.timers, || filled.load(Acquire) == plan.producers);
        begin = clock::now();
        live.say(&format!(
            "{} timers started in {}; now {} seconds of '{}' with {} events a second",
            units::count(plan.timers),
            units::time(begin - began),
            plan.seconds,
            options.profile.text(),
            units::count(plan.rate),
        ));
        before = Counts::read(desk);
        let until = begin + (plan.seconds * SECOND as f64) as u64;
        end.store(until, Release);
        live.begin();
        steady.wait();
        if let Some(mailbox) = stormer {
            scope.spawn(move || soak::storms(desk, plan.producers, mailbox, begin, until));
            soak = Some(Soak::new(begin, until, options.tick, options.sabotage));
        }
        while clock::now() < until {
            thread::sleep(Duration::from_millis(20));
            live.look();
            if let Some(soak) = &mut soak {
                soak.look(desk, &live.so_far(), witness.so_far());
            }
        }
        live.end();
    });
    Middle {
        fill_ns: begin - began,
        steady_ns: clock::now() - begin,
        lag_ns: None,
        events: Some(events.into_inner()),
        steady: Counts::read(desk).since(before),
        drift: soak.map(Soak::result),
    }
}

/// A trace: one thread does what it says.
fn replay(
    trace: &Trace,
    plan: &Plan,
    desk: &'static Desk,
    mut boxes: Vec<Mailbox>,
    live: &mut Live,
) -> Middle {
    let cut_ns = (plan.seconds * SECOND as f64) as u64;
    live.say(&format!(
        "{} operations, {} timers, over {}",
        units::count(trace.operations.len() as u64),
        units::count(u64::from(trace.starts)),
        units::time(trace.length_ns().min(cut_ns)),
    ));
    let before = Counts::read(desk);
    let begin = clock::now();
    live.begin();
    let lag_ns = thread::scope(|scope| {
        let mailbox = boxes.remove(0);
        let player = scope.spawn(move || {
            let mut hands = Producer::new(desk, 0, mailbox, trace.starts, true);
            trace::replay(trace, &mut hands, cut_ns)
        });
        while !player.is_finished() {
            thread::sleep(Duration::from_millis(20));
            live.look();
        }
        live.end();
        player.join().expect("the replay does not panic")
    });
    Middle {
        fill_ns: 0,
        steady_ns: clock::now() - begin,
        lag_ns: Some(lag_ns),
        events: None,
        steady: Counts::read(desk).since(before),
        drift: None,
    }
}

/// Nobody starts anything any more. What was due by now, or soon after the end of a trace, must
/// fire; that is waited for as long as there is any progress.
fn settle(desk: &Desk, tracing: bool) {
    let now = clock::now();
    let soon = if tracing { desk.ledger.last_due_by(now + 5 * SECOND) } else { None };
    let due_by = soon.unwrap_or(now).max(now);
    desk.settled.store(due_by, Relaxed);
    clock::sleep_until(due_by + 500 * MS);
    let (mut open, mut since) = (desk.ledger.overdue(due_by), clock::now());
    while open > 0 && clock::now() < since + STUCK_AFTER {
        thread::sleep(Duration::from_millis(50));
        let still = desk.ledger.overdue(due_by);
        if still < open {
            (open, since) = (still, clock::now());
        }
    }
}
