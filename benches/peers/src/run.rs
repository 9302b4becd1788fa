//! One measurement: a workload of one size with one contender, in this process.

use crate::contender::c::{Locked, Peer};
use crate::contender::delay_queue::Delays;
use crate::contender::hash_wheel::HashWheel;
use crate::contender::shardwheel::{Api, By, Driven, Threaded, Wheels};
use crate::contender::tokio::{self, Sleeps, Workers};
use crate::contender::{Clock, Service, Timers};
use crate::measure::Each;
use crate::workload::{Case, Contender, Workload};
use crate::{late, rest, single, threads};
use shardwheel::capi::{SW_ATTACH_EXCLUSIVE, SW_ATTACH_SHARED};
use std::time::Duration;

const MS: u64 = 1_000_000;
/// Ticks of shardwheel in W6.
const FINE_TICK: u64 = 20_000;
/// Shards of shardwheel where it has threads.
const SHARDS: u32 = 2;

/// The figures of the workload's metrics, in their order.
pub fn run(case: Case, contender: Contender, api: Api, time: Duration) -> Vec<f64> {
    match case.workload {
        Workload::W4 | Workload::W4b => together(case, contender, api, time),
        Workload::W6 => lateness(case, contender, api, false),
        Workload::W6fine => lateness(case, contender, api, true),
        Workload::W7 => at_rest(case, contender, api),
        Workload::W3 | Workload::W3jump => alone(case, contender, api, Clock::Manual, time),
        _ => alone(case, contender, api, Clock::Real, time),
    }
}

/// One thread's workload.
fn alone(case: Case, contender: Contender, api: Api, clock: Clock, time: Duration) -> Vec<f64> {
    let driven = |how| move |slots| Driven::new(api, how, clock, slots);
    match contender {
        Contender::Exclusive => with(case, driven(SW_ATTACH_EXCLUSIVE), time),
        Contender::Shared => with(case, driven(SW_ATTACH_SHARED), time),
        Contender::Tokio => with(case, |slots| Sleeps::new(tokio::runtime(clock), slots), time),
        Contender::DelayQueue => with(case, |slots| Delays::new(clock, slots), time),
        Contender::HashWheel => with(case, |_| HashWheel::new(clock), time),
        Contender::C(library) if case.workload == Workload::W5 => {
            with(case, |slots| Peer::new(library, slots), time)
        }
        Contender::C(library) => Peer::new(library, case.timers + 1).inside(|peer| {
            let mut peer = Some(peer);
            with(case, |_| peer.take().expect("made once"), time)
        }),
        Contender::StartAt | Contender::Start => {
            let wheels = Box::leak(Box::new(threaded(api, By::Deadline)));
            with(case, |slots| wheels.local(slots), time)
        }
    }
}

fn with<T: Timers>(case: Case, mut make: impl FnMut(usize) -> T, time: Duration) -> Vec<f64> {
    let live = case.timers;
    let Each { wall_ns, cpu_ns } = match case.workload {
        Workload::W1 => single::w1(make(live + 1), live, time),
        Workload::W1b => single::w1b(make(live), live, time),
        Workload::W2 => single::w2(make(live), live, time),
        Workload::W3 => single::w3(make(live), live, single::STEP),
        Workload::W3jump => single::w3(make(live), live, single::JUMP),
        _ => return vec![rest::w5(live, make)],
    };
    vec![wall_ns, cpu_ns]
}

fn threaded(api: Api, by: By) -> Threaded {
    Threaded { wheels: Wheels::threaded(api, SHARDS, MS), by }
}

/// Several threads' workload.
fn together(case: Case, contender: Contender, api: Api, time: Duration) -> Vec<f64> {
    let ring = case.workload == Workload::W4b;
    let (live, threads) = (case.timers, case.threads);
    let found = match contender {
        Contender::StartAt => threads::run(&threaded(api, By::Deadline), live, threads, ring, time),
        Contender::Start => threads::run(&threaded(api, By::Delay), live, threads, ring, time),
        Contender::Tokio => threads::run(&Workers::new(), live, threads, ring, time),
        Contender::C(library) => threads::run(&Locked::new(library), live, threads, ring, time),
        _ => unreachable!("not for several threads"),
    };
    vec![found.pairs_per_second / 1e6, found.cpu_ns]
}

fn lateness(case: Case, contender: Contender, api: Api, fine: bool) -> Vec<f64> {
    late::measure(case.timers, |timing| match contender {
        Contender::Start => {
            let tick_ns = if fine { FINE_TICK } else { MS };
            late::on_wheels(Wheels::threaded(api, 1, tick_ns), timing);
        }
        Contender::Tokio => late::on_tokio(timing),
        Contender::C(library) => late::on_peer(library, fine, timing),
        _ => unreachable!("has no loop of its own"),
    })
}

fn at_rest(case: Case, contender: Contender, api: Api) -> Vec<f64> {
    let live = case.timers;
    match contender {
        Contender::Tokio => {
            let runtime = tokio::runtime(Clock::Real);
            let forever = || runtime.block_on(std::future::pending::<()>());
            rest::w7(Sleeps::new(runtime, live), live, || {
                std::thread::spawn(forever);
            })
        }
        Contender::C(library) => {
            let peer = Peer::new(library, live);
            let running = peer.running();
            rest::w7(peer, live, || {
                std::thread::spawn(move || running.for_ever());
            })
        }
        _ => {
            let threaded = threaded(api, By::Delay);
            let local = threaded.local(live);
            rest::w7(local, live, || {})
        }
    }
}
