//! N producers, N shards, each on a core of its own: which lines move, and what that leaves of the
//! throughput.
//!
//! Each operation is the accesses to lines that the engine makes, in its order, and some time of its
//! own. Cores take turns by their clocks, one operation at a time. A producer keeps `LIVE` timers in
//! a ring; a pair ends the oldest and starts a new one.

use crate::lines::{Core, Line, USES, Use, Wait};
use clap::Args;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What things cost, in nanoseconds.
#[derive(Args, Debug, Clone)]
pub struct Costs {
    /// A start's own time
    #[arg(long, default_value_t = 30.0)]
    start: f64,
    /// A cancel's own time
    #[arg(long, default_value_t = 20.0)]
    cancel: f64,
    /// The owner's time for an entry that it takes in
    #[arg(long, default_value_t = 20.0)]
    take_in: f64,
    /// A line's way from one core to another
    #[arg(long, default_value_t = 120.0)]
    transfer: f64,
    /// The part of a transfer that is not hidden where lines are fetched ahead
    #[arg(long, default_value_t = 0.15)]
    ahead: f64,
    /// Entries carry the tick, so that the owner does not read the record
    #[arg(long)]
    tick_in_entry: bool,
    /// A start that takes credits adds up the counters of all threads, even if its own have not risen
    #[arg(long)]
    often_high_water: bool,
    /// Simulated time for each line of the table, in milliseconds
    #[arg(long, default_value_t = 4.0)]
    time: f64,
}

impl Costs {
    /// Entries of a line.
    fn entries(&self) -> usize {
        if self.tick_in_entry { 4 } else { 8 }
    }
}

/// Who uses which shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    Home,
    Spread,
    Handed,
    OneShard,
}

impl Pattern {
    pub const ALL: [Pattern; 4] =
        [Pattern::Home, Pattern::Spread, Pattern::Handed, Pattern::OneShard];

    pub fn about(self) -> &'static str {
        match self {
            Pattern::Home => "home: each thread's timers are on its own shard (SW_SHARD_ANY)",
            Pattern::Spread => "spread: each timer is on a shard chosen at random",
            Pattern::Handed => {
                "handed: as spread, half of the threads start timers, the other half cancel them"
            }
            Pattern::OneShard => "one: all threads use one shard",
        }
    }
}

/// Timers of each producer.
const LIVE: usize = 2_000;
/// As in the engine: slots of a magazine, starts for each batch of credits, entries that wake an owner.
const MAGAZINE: usize = 62;
const CREDITS: u32 = 64;
const PRESSURE: usize = 1_024;
/// Entries that an owner takes in between two looks of this model.
const GULP: usize = 16;
/// A thread that has nothing to cancel, or too many live timers, looks again after this time.
const IDLE: f64 = 100.0;
/// A sleeping owner looks at its inboxes ten times in a tick.
const TICK: f64 = 1e6;

/// What one producer keeps for one shard.
struct Port {
    own: Line,
    pushed: Line,
    entries: Vec<Line>,
    /// Slots of entries that the owner has not taken in.
    waiting: VecDeque<usize>,
    count: usize,
    free: Vec<usize>,
    credits: u32,
}

struct Shard {
    alarm: Line,
    heads: Line,
    magazines: Vec<Vec<usize>>,
    pool: Line,
    high_water: Line,
    records: Vec<Line>,
    /// The port that the owner has come to in its turn; `None` while it sleeps.
    turn: Option<usize>,
}

struct World<'a> {
    costs: &'a Costs,
    shards: Vec<Shard>,
    /// By shard, then by producer.
    ports: Vec<Vec<Port>>,
    random: u64,
    /// Entries that owners have taken in.
    taken: u64,
}

pub struct Found {
    pub pairs_per_second: f64,
    /// The part of the entries that the owners took in meanwhile. Below 1 they cannot keep up, and what
    /// they leave would have to be purged, which the model does not do.
    pub taken_in: f64,
    /// The dearest first.
    pub waits: Vec<Wait>,
}

impl World<'_> {
    fn below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) as usize % end
    }

    /// The heads of the depot are swapped twice, and a magazine's four lines move.
    fn visit_depot(&mut self, core: &mut Core, shard: usize) {
        let transfer = self.costs.transfer;
        for _ in 0..2 {
            core.write(&mut self.shards[shard].heads, Use::Depot, transfer);
        }
        let lines = transfer * (1.0 + 3.0 * self.costs.ahead);
        core.lost[Use::Depot as usize] += lines;
        core.now += lines;
    }

    fn start(&mut self, core: &mut Core, producer: usize, shard: usize) -> usize {
        let transfer = self.costs.transfer;
        core.now += self.costs.start;
        if self.ports[shard][producer].free.is_empty() {
            match self.shards[shard].magazines.pop() {
                Some(slots) => {
                    self.visit_depot(core, shard);
                    self.ports[shard][producer].free = slots;
                }
                None => {
                    let first = self.shards[shard].records.len();
                    self.shards[shard].records.resize(first + MAGAZINE, Line::new());
                    self.ports[shard][producer].free = (first..first + MAGAZINE).collect();
                }
            }
        }
        let credits = self.ports[shard][producer].credits;
        if credits == 0 {
            core.write(&mut self.shards[shard].pool, Use::Pool, transfer);
            if self.costs.often_high_water {
                for port in &mut self.ports[shard] {
                    core.read(&mut port.own, Use::HighWater, transfer, self.costs.ahead);
                }
                core.write(&mut self.shards[shard].high_water, Use::HighWater, transfer);
            }
        }
        let port = &mut self.ports[shard][producer];
        port.credits = if credits == 0 { CREDITS } else { credits - 1 };
        let slot = port.free.pop().expect("filled above");
        core.write(&mut port.own, Use::HighWater, transfer);
        core.write(&mut self.shards[shard].records[slot], Use::Record, transfer);
        let line = port.count / self.costs.entries() % port.entries.len();
        core.write(&mut port.entries[line], Use::Inbox, transfer);
        core.write(&mut port.pushed, Use::Inbox, transfer);
        port.count += 1;
        port.waiting.push_back(slot);
        core.read(&mut self.shards[shard].alarm, Use::Alarm, transfer, 1.0);
        slot
    }

    fn cancel(&mut self, core: &mut Core, producer: usize, shard: usize, slot: usize) {
        let transfer = self.costs.transfer;
        core.now += self.costs.cancel;
        core.write(&mut self.shards[shard].records[slot], Use::Record, transfer);
        let port = &mut self.ports[shard][producer];
        core.write(&mut port.own, Use::HighWater, transfer);
        if port.free.len() == 2 * MAGAZINE {
            let some = port.free.drain(..MAGAZINE).collect();
            self.shards[shard].magazines.push(some);
            self.visit_depot(core, shard);
        }
        self.ports[shard][producer].free.push(slot);
    }

    /// A step of an owner: it wakes, takes in a few entries of a port, goes on to the next port, or says
    /// when it looks next and sleeps.
    fn step(&mut self, core: &mut Core, shard: usize) {
        let (transfer, ahead) = (self.costs.transfer, self.costs.ahead);
        let Some(at) = self.shards[shard].turn else {
            if self.ports[shard].iter().all(|port| port.waiting.is_empty()) {
                core.now += TICK / 10.0;
            } else {
                core.write(&mut self.shards[shard].alarm, Use::Alarm, transfer);
                self.shards[shard].turn = Some(0);
            }
            return;
        };
        let Some(port) = self.ports[shard].get_mut(at) else {
            core.write(&mut self.shards[shard].alarm, Use::Alarm, transfer);
            self.shards[shard].turn = None;
            let pressed = self.ports[shard].iter().any(|port| port.waiting.len() >= PRESSURE);
            core.now += if pressed { 0.0 } else { TICK / 10.0 };
            return;
        };
        core.read(&mut port.pushed, Use::Inbox, transfer, 1.0);
        let first = port.count - port.waiting.len();
        let gulp = port.waiting.len().min(GULP);
        self.taken += gulp as u64;
        for (nth, slot) in port.waiting.drain(..gulp).enumerate() {
            let line = (first + nth) / self.costs.entries() % port.entries.len();
            core.read(&mut port.entries[line], Use::Inbox, transfer, ahead);
            if !self.costs.tick_in_entry {
                core.read(&mut self.shards[shard].records[slot], Use::Record, transfer, ahead);
            }
            core.now += self.costs.take_in;
        }
        if port.waiting.is_empty() {
            self.shards[shard].turn = Some(at + 1);
        }
    }
}

fn port() -> Port {
    Port {
        own: Line::new(),
        pushed: Line::new(),
        entries: vec![Line::new(); 1_024],
        waiting: VecDeque::new(),
        count: 0,
        free: Vec::new(),
        credits: 0,
    }
}

fn shard() -> Shard {
    let [alarm, heads, pool, high_water] = std::array::from_fn(|_| Line::new());
    Shard { alarm, heads, magazines: Vec::new(), pool, high_water, records: Vec::new(), turn: None }
}

/// One line of the table.
pub fn simulate(pattern: Pattern, producers: usize, costs: &Costs) -> Found {
    let shards = if pattern == Pattern::OneShard { 1 } else { producers };
    // At home, a shard has but one thread's port.
    let ports = |_| (0..producers).map(|_| port()).collect();
    let mut world = World {
        costs,
        shards: (0..shards).map(|_| shard()).collect(),
        ports: (0..shards).map(ports).collect(),
        random: 1,
        taken: 0,
    };
    let mut cores: Vec<_> = (0..producers + shards).map(Core::new).collect();
    let mut rings = vec![VecDeque::new(); producers];
    // Who is next, by time; times are whole nanoseconds here.
    let mut order: BinaryHeap<_> = (0..cores.len()).map(|core| Reverse((0u64, core))).collect();
    let (warm, end) = (1.0 * TICK, (1.0 + costs.time) * TICK);
    let (mut started, mut pairs, mut lost) = (0u64, 0u64, [0.0; USES.len()]);
    while let Some(Reverse((_, number))) = order.pop() {
        let mut core = std::mem::replace(&mut cores[number], Core::new(number));
        if core.now >= end {
            cores[number] = core;
            continue;
        }
        let before = core.lost;
        if number < producers {
            let handed = pattern == Pattern::Handed && producers > 1;
            let whose = if handed { number ^ 1 } else { number };
            let (starts, cancels) = (!handed || number % 2 == 0, !handed || number % 2 == 1);
            let mut idle = true;
            if cancels && rings[number].len() >= LIVE {
                let (shard, slot) = rings[number].pop_front().expect("it is long");
                world.cancel(&mut core, number, shard, slot);
                idle = false;
            }
            if starts && rings[whose].len() < 2 * LIVE {
                let shard = match pattern {
                    Pattern::Home => number,
                    Pattern::OneShard => 0,
                    Pattern::Spread | Pattern::Handed => world.below(shards),
                };
                let slot = world.start(&mut core, number, shard);
                rings[whose].push_back((shard, slot));
                started += 1;
                idle = false;
            }
            core.now += if idle { IDLE } else { 0.0 };
            if core.now > warm {
                pairs += u64::from(starts && !idle);
                (0..USES.len()).for_each(|nth| lost[nth] += core.lost[nth] - before[nth]);
            }
        } else {
            world.step(&mut core, number - producers);
        }
        order.push(Reverse((core.now as u64, number)));
        cores[number] = core;
    }
    let time = costs.time * TICK * producers as f64;
    let mut waits: Vec<_> =
        USES.iter().zip(lost).map(|(&usage, lost)| Wait { usage, share: lost / time }).collect();
    waits.sort_by(|a, b| b.share.total_cmp(&a.share));
    waits.retain(|wait| wait.share >= 0.005);
    let taken_in = world.taken as f64 / started as f64;
    Found { pairs_per_second: pairs as f64 / (costs.time * 1e-3), taken_in, waits }
}
