//! The program that is counted.
//!
//! Each operation is done once to warm up, and then once inside of `counted`, where the counting
//! begins and ends. "exclusive" and "shared" are the owner's, which has attached so; "foreign" are
//! those of another thread, on a shard that its owner has attached to shared.

use crate::bench::{ANYWHERE, Bench, Operation, Work};
use shardwheel::capi::{SW_ATTACH_EXCLUSIVE, SW_ATTACH_SHARED};
use std::hint::black_box;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Timers that are live all the time.
const LIVE: usize = 20_000;

/// Callgrind counts from here to the return.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn counted(work: &mut &mut dyn FnMut()) {
    work();
    // So that the call above is not the last thing done here, which would be a jump.
    black_box(work);
}

fn perform(bench: &mut Bench, work: Work, count: bool) {
    if count {
        let mut job = || work(bench);
        counted(&mut (&mut job as &mut dyn FnMut()));
    } else {
        work(bench);
    }
}

/// Another thread, which does what it is sent.
struct Foreign {
    jobs: Sender<(Bench, Work, bool)>,
    done: Receiver<Bench>,
}

impl Foreign {
    fn new() -> Foreign {
        let ((jobs, to_do), (report, done)) = (channel::<(Bench, Work, bool)>(), channel());
        thread::spawn(move || {
            for (mut bench, work, count) in to_do {
                perform(&mut bench, work, count);
                let _ = report.send(bench);
            }
        });
        Foreign { jobs, done }
    }

    fn perform(&self, bench: Bench, work: Work, count: bool) -> Bench {
        self.jobs.send((bench, work, count)).expect("the thread runs");
        self.done.recv().expect("the thread runs")
    }
}

/// The counted operations, in the order of the counting.
pub fn names() -> Vec<String> {
    let of = |who: &str| {
        let who = who.to_string();
        ANYWHERE.iter().map(move |operation| format!("{}, {who}", operation.name))
    };
    let owner = |how: &str| of(how).chain([format!("fire, {how}")]).collect::<Vec<_>>();
    let foreign = of("foreign").chain(["take in and fire, foreign".to_string()]);
    owner("exclusive").into_iter().chain(owner("shared")).chain(foreign).collect()
}

/// Does all of it.
pub fn run() {
    for how in [SW_ATTACH_EXCLUSIVE, SW_ATTACH_SHARED] {
        let mut bench = Bench::driven(how, LIVE);
        for Operation { before, work, after, .. } in &ANYWHERE {
            for count in [false, true] {
                before(&mut bench);
                perform(&mut bench, *work, count);
                after(&mut bench);
                bench.turn();
            }
        }
        for count in [false, true] {
            bench.start_at();
            bench.pass();
            perform(&mut bench, Bench::fire, count);
        }
    }
    let (mut bench, other) = (Bench::driven(SW_ATTACH_SHARED, LIVE), Foreign::new());
    for Operation { before, work, after, .. } in &ANYWHERE {
        for count in [false, true] {
            bench = other.perform(bench, *before, false);
            bench.turn();
            bench = other.perform(bench, *work, count);
            bench = other.perform(bench, *after, false);
            bench.turn();
        }
    }
    for count in [false, true] {
        bench = other.perform(bench, Bench::start_at, false);
        bench.pass();
        perform(&mut bench, Bench::fire, count);
    }
}
