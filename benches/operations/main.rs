//! Criterion benches of the hot operations: `cargo bench --bench operations`.
//!
//! By the owner of a driven shard, attached exclusively and shared, and by a thread of a threaded
//! service; warm (1,024 live timers) and with a million. Cancels and resets are of live timers chosen
//! at random. One iteration is `TIMES` operations; the throughput is in operations.

mod bench;

use bench::{ANYWHERE, Bench, Operation, TIMES};
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, measurement::WallTime};
use shardwheel::capi::{SW_ATTACH_EXCLUSIVE, SW_ATTACH_SHARED};
use std::time::{Duration, Instant};

fn timed(bench: &mut Bench, work: bench::Work) -> Duration {
    let began = Instant::now();
    work(bench);
    began.elapsed()
}

/// What any thread may do.
fn anywhere(group: &mut BenchmarkGroup<'_, WallTime>, bench: &mut Bench, live: &str) {
    for Operation { name, before, work, after } in &ANYWHERE {
        group.bench_function(BenchmarkId::new(*name, live), |bencher| {
            bencher.iter_custom(|iterations| {
                let mut sum = Duration::ZERO;
                for _ in 0..iterations {
                    before(bench);
                    bench.turn();
                    sum += timed(bench, *work);
                    after(bench);
                    bench.turn();
                }
                sum
            });
        });
    }
}

fn fire(group: &mut BenchmarkGroup<'_, WallTime>, bench: &mut Bench, live: &str) {
    group.bench_function(BenchmarkId::new("fire", live), |bencher| {
        bencher.iter_custom(|iterations| {
            let mut sum = Duration::ZERO;
            for _ in 0..iterations {
                bench.start_at();
                bench.pass();
                sum += timed(bench, Bench::fire);
            }
            sum
        });
    });
}

/// A million due in one tick.
fn storm(group: &mut BenchmarkGroup<'_, WallTime>, how: u32) {
    const STORM: usize = 1_000_000;
    let bench = &mut Bench::driven(how, TIMES);
    group.throughput(Throughput::Elements(STORM as u64)).sample_size(10);
    group.bench_function(BenchmarkId::new("fire", "storm of 1M"), |bencher| {
        bencher.iter_custom(|iterations| {
            let mut sum = Duration::ZERO;
            for _ in 0..iterations {
                bench.gather_storm(STORM);
                let began = Instant::now();
                assert_eq!(bench.turn(), STORM);
                sum += began.elapsed();
            }
            sum
        });
    });
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let driven = [("exclusive", SW_ATTACH_EXCLUSIVE), ("shared", SW_ATTACH_SHARED)];
    for (live, text) in [(TIMES, "warm"), (1_000_000, "1M")] {
        for (name, how) in driven {
            let mut group = criterion.benchmark_group(name);
            group.throughput(Throughput::Elements(TIMES as u64));
            let bench = &mut Bench::driven(how, live);
            anywhere(&mut group, bench, text);
            fire(&mut group, bench, text);
        }
        let mut group = criterion.benchmark_group("threaded");
        group.throughput(Throughput::Elements(TIMES as u64));
        anywhere(&mut group, &mut Bench::threaded(live), text);
    }
    for (name, how) in driven {
        storm(&mut criterion.benchmark_group(name), how);
    }
    criterion.final_summary();
}
