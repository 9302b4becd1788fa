//! Wake-ups: many shards, each with its own earliest timer, on the CPUs that there are.

use shardwheel::{Service, Stats};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn process_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` can be written.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What happened in a second.
struct Second {
    fired: f64,
    wakeups: f64,
    cpu_ms: f64,
}

/// `rate` timers a second with delays of 1 to 100 ms, shard after shard.
fn run(
    shards: u32,
    rate: u64,
    slack: Duration,
    time: Duration,
) -> Result<Second, shardwheel::Error> {
    let service = Service::builder().shards(shards).build()?;
    let timers = service.timers();
    let (mut random, mut started) = (1u64, 0u64);
    let mut go_on = |until: Duration, began: Instant| {
        while began.elapsed() < until {
            let due =
                (began.elapsed().as_micros() as u64 * rate / 1_000_000).saturating_sub(started);
            for _ in 0..due {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let delay =
                    Duration::from_nanos(1_000_000 + (random >> 32) * 99_000_000 / (1 << 32));
                let shard = (started % u64::from(shards)) as u32;
                timers.timer().shard(shard).delay(delay).slack(slack).start_fn(|_, _| {}, 0)?;
                started += 1;
            }
            sleep(Duration::from_millis(1));
        }
        Ok::<(), shardwheel::Error>(())
    };
    let began = Instant::now();
    let settled = Duration::from_millis(300);
    go_on(settled, began)?;
    let look = || Ok::<(Stats, Duration), shardwheel::Error>((timers.stats()?, process_cpu()));
    let (before, cpu) = look()?;
    go_on(settled + time, began)?;
    let (after, cpu_after) = look()?;
    let each = |count: u64| count as f64 / time.as_secs_f64();
    Ok(Second {
        fired: each(after.fired - before.fired),
        wakeups: each(after.wakeups - before.wakeups),
        cpu_ms: (cpu_after - cpu).as_secs_f64() * 1e3 / time.as_secs_f64(),
    })
}

/// Prints a table.
pub fn measure(seconds: u64) {
    println!(
        "{:>10}{:>8}{:>8}{:>10}{:>12}{:>14}{:>12}",
        "timers/s", "slack", "shards", "fired/s", "wake-ups/s", "for each timer", "CPU ms/s"
    );
    for (rate, slack_ms) in [(100, 0), (1_000, 0), (10_000, 0), (10_000, 10)] {
        for shards in [1, 2, 4, 16] {
            let found =
                run(shards, rate, Duration::from_millis(slack_ms), Duration::from_secs(seconds));
            let Second { fired, wakeups, cpu_ms } = found.expect("the service runs");
            println!(
                "{rate:>10}{slack_ms:>5} ms{shards:>8}{fired:>10.0}{wakeups:>12.0}{:>14.2}{cpu_ms:>12.1}",
                wakeups / fired
            );
        }
    }
}
