//! What is measured: the workloads, how large, in which units, and who takes part.

use crate::contender::c::{self, Library};

/// One figure of a workload.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub digits: usize,
}

const fn metric(name: &'static str, digits: usize) -> Metric {
    Metric { name, digits }
}

/// The workloads. What each does is told in `benches/README.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    W1,
    W1b,
    W2,
    W3,
    W3jump,
    W4,
    W4b,
    W5,
    W6,
    W6fine,
    W7,
}

use Workload::*;

impl Workload {
    pub const ALL: [Workload; 11] = [W1, W1b, W2, W3, W3jump, W4, W4b, W5, W6, W6fine, W7];

    pub fn name(self) -> &'static str {
        match self {
            W1 => "W1",
            W1b => "W1b",
            W2 => "W2",
            W3 => "W3",
            W3jump => "W3jump",
            W4 => "W4",
            W4b => "W4b",
            W5 => "W5",
            W6 => "W6",
            W6fine => "W6fine",
            W7 => "W7",
        }
    }

    pub fn find(name: &str) -> Option<Workload> {
        Workload::ALL.into_iter().find(|workload| workload.name().eq_ignore_ascii_case(name))
    }

    pub fn about(self) -> &'static str {
        match self {
            W1 => "start a timer and cancel it",
            W1b => "cancel the oldest of a ring, start a new one",
            W2 => "push a random one out to now + 30 s",
            W3 => "fire timers spread over 10 s, 1 ms at a time",
            W3jump => "fire timers spread over 10 s at once",
            W4 => "W1 from plain threads on one service, 2 shards",
            W4b => "W1b from plain threads on one service, 2 shards",
            W5 => "resident bytes of each pending timer",
            W6 => "10,000 timers a second, tick 1 ms: lateness",
            W6fine => "10,000 timers a second, finest tick: lateness",
            W7 => "1 M pending, all due in an hour: CPU over 10 s",
        }
    }

    /// The first one is what contenders are compared by.
    pub fn metrics(self) -> &'static [Metric] {
        const OPERATION: [Metric; 2] = [metric("ns", 1), metric("cpu ns", 1)];
        const PAIRS: [Metric; 2] = [metric("M pairs/s", 1), metric("cpu ns/pair", 1)];
        const BYTES: [Metric; 1] = [metric("bytes", 1)];
        const LATE: [Metric; 5] = [
            metric("p50 us", 0),
            metric("p99 us", 0),
            metric("cpu s", 2),
            metric("early", 0),
            metric("lost", 0),
        ];
        const IDLE: [Metric; 2] = [metric("cpu ms", 3), metric("wake-ups", 0)];
        match self {
            W1 | W1b | W2 | W3 | W3jump => &OPERATION,
            W4 | W4b => &PAIRS,
            W5 => &BYTES,
            W6 | W6fine => &LATE,
            W7 => &IDLE,
        }
    }

    pub fn more_is_better(self) -> bool {
        matches!(self, W4 | W4b)
    }

    /// Sizes: live timers and threads.
    pub fn cases(self) -> Vec<Case> {
        let sizes: &[(usize, usize)] = match self {
            W1b | W3 | W5 => &[(1_000_000, 1), (5_000_000, 1)],
            W4 | W4b => &[(1_000_000, 1), (1_000_000, 2)],
            W6 | W6fine => &[(100_000, 1)],
            W1 | W2 | W3jump | W7 => &[(1_000_000, 1)],
        };
        sizes.iter().map(|&(timers, threads)| Case { workload: self, timers, threads }).collect()
    }

    /// Who takes part, shardwheel first.
    pub fn contenders(self) -> Vec<Contender> {
        use Contender::*;
        use Library::*;
        match self {
            W1 | W1b | W2 => vec![
                Exclusive,
                Shared,
                Tokio,
                DelayQueue,
                HashWheel,
                C(Libev),
                C(Libevent),
                C(Libuv),
            ],
            W3 | W3jump => vec![Exclusive, Shared, Tokio, DelayQueue, HashWheel],
            W4 | W4b => vec![StartAt, Start, Tokio, C(Libevent)],
            W5 => vec![
                Exclusive,
                StartAt,
                Tokio,
                DelayQueue,
                HashWheel,
                C(Libev),
                C(Libevent),
                C(Libuv),
            ],
            W6 => vec![Start, Tokio, C(Libev), C(Libevent), C(Libuv)],
            W6fine => vec![Start, C(Libevent)],
            W7 => vec![Start, Tokio, C(Libev), C(Libevent), C(Libuv)],
        }
    }

    /// Who is drawn in the curves.
    pub fn on_curves(self) -> Vec<Contender> {
        use Contender::*;
        match self {
            W3 => vec![Exclusive, Tokio, HashWheel],
            W4 => vec![StartAt, Start, Tokio, C(Library::Libevent)],
            _ => vec![Exclusive, Tokio, C(Library::Libev)],
        }
    }

    /// Does it sleep most of its time, so that contenders can run beside each other?
    pub fn is_idle(self) -> bool {
        self == W7
    }

    /// Does a round take ten seconds of real time?
    pub fn is_long(self) -> bool {
        matches!(self, W6 | W6fine | W7)
    }
}

/// A workload of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    pub workload: Workload,
    pub timers: usize,
    pub threads: usize,
}

impl Case {
    /// The points of the curves.
    pub fn on_curves() -> Vec<Case> {
        let mut cases = Vec::new();
        for workload in [W1b, W2, W3] {
            for timers in [1_000, 10_000, 100_000, 1_000_000, 10_000_000] {
                cases.push(Case { workload, timers, threads: 1 });
            }
        }
        for threads in [1, 2, 4, 8] {
            cases.push(Case { workload: W4, timers: 1_000_000, threads });
        }
        cases
    }

    pub fn name(&self) -> String {
        let size = match self.timers {
            timers if timers % 1_000_000 == 0 => format!("{} M", timers / 1_000_000),
            timers if timers % 1_000 == 0 => format!("{} k", timers / 1_000),
            timers => timers.to_string(),
        };
        match self.workload {
            W4 | W4b => format!("{} {size} T={}", self.workload.name(), self.threads),
            workload => format!("{} {size}", workload.name()),
        }
    }
}

/// A library, and the way it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// shardwheel: a driven shard, attached exclusively.
    Exclusive,
    /// shardwheel: a driven shard, attached shared.
    Shared,
    /// shardwheel: threaded, started with delays.
    Start,
    /// shardwheel: threaded, started with deadlines.
    StartAt,
    Tokio,
    DelayQueue,
    HashWheel,
    C(Library),
}

impl Contender {
    pub const ALL: [Contender; 10] = [
        Contender::Exclusive,
        Contender::Shared,
        Contender::Start,
        Contender::StartAt,
        Contender::Tokio,
        Contender::DelayQueue,
        Contender::HashWheel,
        Contender::C(Library::Libev),
        Contender::C(Library::Libevent),
        Contender::C(Library::Libuv),
    ];

    /// What a row is called; `library` is the name of the shardwheel that is used.
    pub fn name(self, library: &str) -> String {
        match self {
            Contender::Exclusive => format!("{library} exclusive"),
            Contender::Shared => format!("{library} shared"),
            Contender::Start => format!("{library} start"),
            Contender::StartAt => format!("{library} start_at"),
            Contender::Tokio => "tokio".to_string(),
            Contender::DelayQueue => "tokio-util DelayQueue".to_string(),
            Contender::HashWheel => "hierarchical_hash_wheel_timer".to_string(),
            Contender::C(library) => library.name().to_string(),
        }
    }

    pub fn is_shardwheel(self) -> bool {
        use Contender::*;
        matches!(self, Exclusive | Shared | Start | StartAt)
    }

    pub fn is_installed(self) -> bool {
        match self {
            Contender::C(library) => c::is_installed(library),
            _ => true,
        }
    }
}
