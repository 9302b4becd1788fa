//! What can be asked for on the command line.

use crate::units::{parse_count, parse_duration};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Far more than any machine of today holds or does in a second.
const MOST: u64 = 200_000_000;

/// Holds millions of timers the way a busy server does and checks each one of them: exit code 1
/// if any timer was early, lost, or fired twice.
#[derive(Debug, Parser)]
#[command(name = "drive")]
pub struct Options {
    /// Timers to hold at once (5000000, 250k, 10M)
    #[arg(long, default_value = "5M", value_parser = parse_count)]
    pub timers: u64,
    /// Shards, each with its own pinned thread [default: one for each CPU]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub shards: u32,
    /// How long to run, once all timers are held; of a trace, where to cut it off [default: 10,
    /// and the whole trace]
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Threads that start, push out and cancel [default: one for each shard, at most 8]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub producers: usize,
    /// Whose behaviour to imitate
    #[arg(long, value_enum, default_value_t = ProfileName::Proxy)]
    pub profile: ProfileName,
    /// Events a second over all producers (requests, calls, hits) [default: the profile's own,
    /// at most a twentieth of --timers]
    #[arg(long, value_parser = parse_count)]
    pub rate: Option<u64>,
    /// Granularity of the wheels (1ms, 500us)
    #[arg(long, default_value = "1ms", value_parser = parse_duration)]
    pub tick: u64,
    /// Run for half an hour (or --seconds), with a storm every ten seconds, and compare memory and
    /// lateness of the last third with the first: exit code 1 if they drift
    #[arg(long, conflicts_with = "trace")]
    pub soak: bool,
    /// One JSON object on standard output in place of the report
    #[arg(long)]
    pub json: bool,
    /// Replay a recorded trace of timer operations in place of a profile
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Replay the trace this many times faster: instants and delays alike
    #[arg(long, default_value_t = 1.0, requires = "trace")]
    pub speed: f64,
    /// Falsify the ledger once, to see that the verdict can fail
    #[arg(long, value_enum, hide = true)]
    pub sabotage: Option<Sabotage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileName {
    /// Idle time-outs pushed out by each request; request time-outs cancelled within milliseconds
    Proxy,
    /// Calls with tight time-outs, 99 % cancelled, the rest retried with backoff
    Rpc,
    /// Cooldowns and buffs that nearly all fire, and periodic ticks
    Game,
}

impl ProfileName {
    pub fn text(self) -> &'static str {
        match self {
            ProfileName::Proxy => "proxy",
            ProfileName::Rpc => "rpc",
            ProfileName::Game => "game",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sabotage {
    Early,
    Lost,
    Double,
    /// Of a soak: memory grows.
    Leak,
    /// Of a soak: lateness grows.
    Drift,
}

impl Options {
    /// Reads the command line and refuses what makes no sense.
    pub fn read() -> Options {
        let options = Options::parse();
        let refusal = match &options {
            o if !(1..=MOST).contains(&o.timers) => "--timers must be 1 to 200M",
            o if o.rate.is_some_and(|rate| rate > MOST) => "--rate must be at most 200M",
            o if !(o.speed.is_finite() && o.speed > 0.0) => "--speed must be above 0",
            o if o.seconds.is_some_and(|s| !(s.is_finite() && s > 0.0)) => {
                "--seconds must be above 0"
            }
            o if o.producers > 64 => "--producers must be at most 64",
            _ => return options,
        };
        eprintln!("drive: {refusal}");
        std::process::exit(2);
    }
}
