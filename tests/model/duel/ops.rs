//! The language: what a case says, and how bytes say it.
//!
//! Ground rules: every string of bytes is a case. A case is its setup and then operations, each
//! [`WIDTH`] bytes long, so that taking an operation out leaves the others as they are and a byte that
//! goes to zero makes its operation a simpler one: that is what shrinking and fuzzing live on. An
//! operation that starts timers may take some of the operations behind it as the *body* of these
//! timers: what their callback does, or their drop.

use super::instant::{Instant, Span};
use std::fmt;
use std::rc::Rc;

/// Bytes of an operation, and of the setup.
pub const WIDTH: usize = 8;
pub type Code = [u8; WIDTH];

/// Operations that a case may have.
pub const LONGEST: usize = 200;

#[derive(Debug, Clone)]
pub struct Case {
    pub setup: Setup,
    pub ops: Vec<Op>,
}

/// A service, driven, on the manual clock.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub shards: u32,
    pub tick_ns: u64,
    pub max_timers: u64,
    /// Where the clock is moved to before anything else.
    pub origin: Instant,
}

/// Which timer: one of those that are live, counted from the newest, or any.
#[derive(Debug, Clone, Copy)]
pub enum Pick {
    Live(usize),
    Any(usize),
    /// The one whose callback or drop this is.
    Own,
    /// A number that was never a handle.
    Invented(u64),
}

#[derive(Debug, Clone)]
pub enum Op {
    Start(Start),
    /// So many of these, each due this much later than the one before and on the next shard.
    StartBatch(Start, usize, Span),
    Cancel(Pick),
    CancelWait(Pick),
    CancelBatch(Pick, usize),
    Reset(Pick, Instant),
    Remaining(Pick),
    Advance(Instant),
    Poll {
        shard: u32,
        budget: usize,
    },
    PollAll,
    /// To the instant that the shard asks for, and polls it there.
    Step {
        shard: u32,
    },
    Take {
        queue: usize,
        capacity: usize,
    },
    QueueNew,
    QueueFree {
        queue: usize,
    },
    Attach {
        shard: u32,
        exclusive: bool,
    },
    Detach {
        shard: u32,
    },
    /// Asks for the shard's descriptor, which is looked at after each operation from then on.
    Fd {
        shard: u32,
    },
    Stop,
}

/// How the next deadline of a periodic timer is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Grid,
    FixedDelay,
    Burst,
    /// Both flags: refused.
    Both,
}

#[derive(Clone)]
pub struct Start {
    /// `sw_timer_start`, `_start_at` or `_start_every`, where that can say it.
    pub plain: bool,
    pub at: Instant,
    /// `None`: any.
    pub shard: Option<u32>,
    pub period: Option<Span>,
    pub mode: Mode,
    pub slack: Option<Span>,
    pub queue: Option<usize>,
    pub drop: bool,
    pub body: Body,
}

/// What a timer does when it runs.
#[derive(Clone)]
pub struct Body {
    pub ops: Rc<[Op]>,
    pub in_callback: bool,
    pub in_drop: bool,
}

impl Case {
    pub fn decode(bytes: &[u8]) -> Case {
        let mut codes = bytes.chunks(WIDTH).map(|chunk| {
            let mut code = [0; WIDTH];
            code[..chunk.len()].copy_from_slice(chunk);
            code
        });
        let setup = Setup::decode(codes.next().unwrap_or_default());
        let codes: Vec<Code> = codes.take(LONGEST).collect();
        let mut rest = codes.as_slice();
        let mut ops = Vec::new();
        while !rest.is_empty() {
            ops.extend(Op::decode(&mut rest, 0));
        }
        Case { setup, ops }
    }
}

impl Setup {
    fn decode(code: Code) -> Setup {
        const TICKS: [u64; 8] = [
            1_000_000,
            1_000,
            1_000_003,
            7_777,
            1 << 20,
            999_999_937,
            3_600_000_000_000,
            (1 << 32) + 12_345,
        ];
        const MOST: [u64; 8] = [1 << 24, 1, 2, 3, 7, 64, 65, 1 << 28];
        Setup {
            shards: 1 + u32::from(code[0] % 3),
            tick_ns: TICKS[usize::from(code[1] % 8)],
            max_timers: MOST[usize::from(code[2] % 8)],
            origin: Instant::decode(code[3], code[4], code[5]),
        }
    }
}

impl Pick {
    fn decode(byte: u8) -> Pick {
        match byte {
            0..192 => Pick::Live(byte.into()),
            192..240 => Pick::Any((byte - 192).into()),
            240..250 => Pick::Own,
            _ => Pick::Invented(
                [1, u64::MAX, 1 << 63, 1 << 27, 77 << 20, 3 << 56][usize::from(byte - 250)],
            ),
        }
    }
}

impl Op {
    /// Takes one operation, and its bodies, off the front of `codes`, which is not empty.
    fn decode(codes: &mut &[Code], depth: u32) -> Option<Op> {
        let (&code, rest) = codes.split_first()?;
        *codes = rest;
        let [kind, a, b, c, d, ..] = code;
        let shard = u32::from(a % 4);
        Some(match kind % 32 {
            0..=8 => Op::Start(Start::decode(code, codes, depth)),
            9 => {
                let gap = Span::decode(code[7] >> 4);
                let count = usize::from(code[7] % 6);
                Op::StartBatch(Start::decode(code, codes, depth), count, gap)
            }
            10 | 11 => Op::Cancel(Pick::decode(a)),
            12 => Op::CancelWait(Pick::decode(a)),
            13 => Op::CancelBatch(Pick::decode(a), usize::from(b % 8)),
            14..=16 => Op::Reset(Pick::decode(a), Instant::decode(b, c, d)),
            17 => Op::Remaining(Pick::decode(a)),
            18 => Op::Advance(Instant::decode([0, 15, 1, 11][usize::from(b % 4)], c % 16, d)),
            19 => Op::Advance(Instant::decode([5, 3, 6, 2][usize::from(b % 4)], c, d)),
            20 => Op::Advance(Instant::decode(b, c, d)),
            21 | 22 => Op::PollAll,
            23 => Op::Poll { shard, budget: usize::from(b) },
            24 => Op::Step { shard },
            25 | 26 => Op::Take { queue: a.into(), capacity: 1 + usize::from(b % 16) },
            27 => Op::QueueNew,
            28 if b < 128 => Op::Attach { shard, exclusive: c % 2 == 1 },
            28 => Op::Detach { shard },
            29 => Op::Fd { shard },
            30 => Op::QueueFree { queue: a.into() },
            _ if b == 0 => Op::Stop,
            _ => Op::PollAll,
        })
    }
}

impl Start {
    /// A start's code: kind, where and how, the instant, what is added, periods and slacks, the body.
    fn decode(code: Code, codes: &mut &[Code], depth: u32) -> Start {
        let [_, how, b, c, d, extras, spans, tail] = code;
        let count = if depth < 3 { usize::from(tail % 4) } else { 0 };
        let mut body = Vec::new();
        while body.len() < count && !codes.is_empty() {
            body.extend(Op::decode(codes, depth + 1));
        }
        let modes = [Mode::Grid, Mode::FixedDelay, Mode::Burst, Mode::Both];
        Start {
            plain: how < 128,
            at: Instant::decode(b, c, d),
            shard: (how % 8).checked_sub(1).map(u32::from).filter(|&shard| shard < 4),
            period: (extras & 1 != 0).then(|| Span::decode(spans & 15)),
            mode: if extras & 2 == 0 { Mode::Grid } else { modes[usize::from(extras >> 6)] },
            slack: (extras & 4 != 0).then(|| Span::decode(spans >> 4)),
            queue: (extras & 8 != 0).then_some(usize::from(tail >> 2) % 4),
            drop: extras & 16 != 0,
            body: Body {
                ops: body.into(),
                in_callback: extras & 32 == 0 || extras & 64 == 0,
                in_drop: extras & 32 != 0,
            },
        }
    }
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", if self.plain { "plain " } else { "" }, self.at)?;
        if let Some(shard) = self.shard {
            write!(f, " on {shard}")?;
        }
        if let Some(period) = self.period {
            write!(f, " every {period:?}")?;
        }
        if self.mode != Mode::Grid {
            write!(f, " {:?}", self.mode)?;
        }
        if let Some(slack) = self.slack {
            write!(f, " slack {slack:?}")?;
        }
        if let Some(queue) = self.queue {
            write!(f, " queue {queue}")?;
        }
        if self.drop {
            write!(f, " drop")?;
        }
        if !self.body.ops.is_empty() {
            let Body { ops, in_callback, in_drop } = &self.body;
            write!(f, " callback:{in_callback} drop:{in_drop} does {ops:?}")?;
        }
        Ok(())
    }
}
