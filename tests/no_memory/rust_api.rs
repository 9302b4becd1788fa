//! The same for the Rust API: its closures, batches, queues, lists and texts. Each call that wants memory
//! answers `NoMemory`, and the closures of what was refused are dropped.

use crate::{call, refuse, relent};
use shardwheel::{Error, Expiry, Service};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// What the closures did: each holds one of these.
#[derive(Clone, Default)]
struct Seen {
    runs: Arc<AtomicU64>,
    /// One reference for each closure that lives.
    alive: Arc<()>,
}

impl Seen {
    fn count(&self) {
        self.runs.fetch_add(1, SeqCst);
    }
}

#[track_caller]
fn answers<T>(answer: Result<T, Error>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(error) => {
            assert_eq!(error, Error::NoMemory);
            None
        }
    }
}

/// Everything that asks for memory; answers how many allocations there were and how many were refused.
fn run(nth: u64, last: u64) -> (u64, u64) {
    relent();
    let service = Service::builder().driven().manual_clock().shards(1).build().unwrap();
    let shard = service.shard(0).unwrap();
    let seen = Seen::default();
    // On a thread that has nothing of its own here yet.
    let work = || {
        let (mut one_shots, mut periodic, mut tokens) = (0, Vec::new(), 0);
        refuse(nth, last);
        for _ in 0..100 {
            let mine = seen.clone();
            let count = move |_: &Expiry| mine.count();
            one_shots += u64::from(answers(call(|| service.after(SECOND, count))).is_some());
            let mine = seen.clone();
            let count = move |_: &Expiry| mine.count();
            periodic.extend(answers(call(|| service.every(1_000 * SECOND, count))));
        }
        let batch = call(|| {
            let mut batch = service.batch();
            for _ in 0..50 {
                let mine = seen.clone();
                let count = move |_: &Expiry| mine.count();
                batch.add_once(service.timer().delay(SECOND), count);
                batch.add_fn(service.timer().delay(1_000 * SECOND), |_, _| {}, 7);
            }
            batch.start()
        });
        one_shots += answers(batch).map_or(0, |timers| timers.len() as u64 / 2);
        let queue = answers(call(|| service.queue()));
        for token in queue.iter().flat_map(|_| 0..50) {
            let queue = queue.as_ref().unwrap();
            tokens += u64::from(answers(call(|| queue.after(SECOND, token))).is_some());
        }
        answers(call(|| service.prometheus()));
        answers(call(|| service.report()));
        answers(call(|| service.trim()));
        let live = service.stats().unwrap().pending;
        assert_eq!(call(|| shard.visit().count()) as u64, live, "a visit needs none");
        service.advance(SECOND).unwrap();
        answers(call(|| shard.poll()));
        let (mut events, mut taken) = (Vec::new(), 0);
        if let Some(queue) = &queue {
            taken += answers(call(|| queue.poll(&mut events))).unwrap_or(0) as u64;
        }
        let allocations = relent();
        shard.poll().unwrap();
        shard.poll().unwrap();
        if let Some(queue) = &queue {
            while tokens > taken {
                taken += queue.poll(&mut events).unwrap() as u64;
            }
        }
        (allocations, one_shots, periodic)
    };
    let (allocations, one_shots, periodic) =
        std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    assert_eq!(seen.runs.load(SeqCst), one_shots, "each that was accepted has run once");
    for timer in periodic {
        service.cancel(timer).unwrap();
    }
    service.stop().unwrap();
    assert_eq!(Arc::strong_count(&seen.alive), 1, "each closure has been dropped");
    allocations
}

/// Builds services with closures of each kind.
fn build(nth: u64, last: u64) -> (u64, u64) {
    relent();
    let seen = Seen::default();
    refuse(nth, last);
    for driven in [true, false] {
        let [begin, end, slow, stuck] = [seen.clone(), seen.clone(), seen.clone(), seen.clone()];
        let service = call(|| {
            let builder = Service::builder().shards(2).unpinned();
            let builder = if driven { builder.driven() } else { builder };
            builder
                .on_thread_start(move |_| begin.count())
                .on_thread_stop(move |_| end.count())
                .slow_callback(SECOND, move |_| slow.count())
                .stuck_callback(move |_| stuck.count())
                .build()
        });
        if let Some(service) = answers(service) {
            service.stop().unwrap();
        }
    }
    let made = relent();
    assert_eq!(Arc::strong_count(&seen.alive), 1, "each closure has been dropped");
    made
}

/// Each allocation of the scenario is refused once; then all from each on.
pub fn for_every() {
    for forever in [false, true] {
        let mut nth = 0;
        while build(nth, if forever { u64::MAX } else { nth }).1 > 0 {
            nth += 1;
        }
        assert!(nth > 10, "a service takes memory: {nth}");
        println!("Rust, services, forever {forever}: {nth} allocations, each refused");
    }
    for forever in [false, true] {
        let mut nth = 0;
        loop {
            let (made, refused) = run(nth, if forever { u64::MAX } else { nth });
            if refused == 0 {
                assert!(made > 250, "a scenario that needs memory: {made}");
                break;
            }
            nth += 1;
        }
        println!("Rust, forever {forever}: {nth} allocations, each refused");
    }
}
