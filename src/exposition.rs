//! The numbers as text for Prometheus: text exposition format 0.0.4.
//!
//! Names follow its conventions: the prefix of the library, base units (seconds, bytes), `_total` for
//! counters and for nothing else, a label instead of a name for each variant of the same thing. The
//! histograms' bounds are one nanosecond below powers of four, where the counts are exact; their sums
//! are right to within 1.6 %.

use crate::engine::Engine;
use crate::histogram::Histogram;
use crate::shard::Shard;
use crate::status::Error;
use crate::types::{Details, Stats};
use std::fmt::{self, Display, Formatter, Write};

/// The bounds of the histograms: 1 us to 17 s.
const POWERS: [u32; 13] = [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34];

/// All that is told of one shard.
pub(crate) struct Told<'a> {
    pub(crate) stats: Stats,
    pub(crate) details: Details,
    shard: &'a Shard,
}

impl Engine {
    /// What there is to tell of each shard.
    pub(crate) fn told(&self) -> Result<Vec<Told<'_>>, Error> {
        self.alive()?;
        let mut all = Vec::new();
        all.try_reserve_exact(self.shards().len()).map_err(|_| Error::NoMemory)?;
        for shard in self.shards() {
            let (stats, details) = (self.stats(shard.index)?, self.details(shard.index)?);
            all.push(Told { stats, details, shard });
        }
        Ok(all)
    }

    /// Writes the numbers of every shard for Prometheus.
    ///
    /// # Errors
    /// `NoMemory`, `Forked`.
    pub fn prometheus(&self, text: &mut impl Write) -> Result<(), Error> {
        // Whoever takes the text decides what becomes of it.
        let _ = expose(&self.told()?, text);
        Ok(())
    }
}

/// One number of a metric.
#[derive(Clone, Copy)]
enum Value {
    Plain(u64),
    /// Nanoseconds, which are told as seconds.
    Nanos(u64),
}

use Value::{Nanos, Plain};

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Plain(value) => write!(f, "{value}"),
            Nanos(ns) => write!(f, "{}", Seconds(ns.into())),
        }
    }
}

/// Nanoseconds as seconds, exactly.
struct Seconds(u128);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A metric with one number a shard: name, kind, help, and where it stands.
struct Simple(&'static str, &'static str, &'static str, fn(&Told<'_>) -> Value);

/// What a label says of a number, and where that stands.
type Which = (&'static str, fn(&Told<'_>) -> u64);

/// A metric with several numbers a shard: name, kind, help, the label that tells them apart, and what it says
/// where.
struct Labelled(&'static str, &'static str, &'static str, &'static str, &'static [Which]);

/// A metric with a histogram for each shard: name, help, and where it stands.
struct Measured(&'static str, &'static str, for<'a> fn(&'a Told<'_>) -> &'a Histogram);

const SIMPLE: [Simple; 19] = [
    Simple("timers_pending", "gauge", "Timers that are live now.", |t| Plain(t.stats.pending)),
    Simple("timers_high_water", "gauge", "Most timers live at once.", |t| {
        Plain(t.stats.high_water)
    }),
    Simple("timers_started_total", "counter", "Timers accepted.", |t| Plain(t.stats.started)),
    Simple("fired_total", "counter", "Callbacks run, or events taken.", |t| Plain(t.stats.fired)),
    Simple("timers_ended_by_fire_total", "counter", "Timers that ended by firing.", |t| {
        Plain(t.stats.ended_by_fire)
    }),
    Simple("timers_cancelled_total", "counter", "Timers that ended by a cancel.", |t| {
        Plain(t.stats.cancelled)
    }),
    Simple("timers_returned_total", "counter", "Timers handed back by stop.", |t| {
        Plain(t.stats.returned)
    }),
    Simple("timers_rejected_total", "counter", "Starts refused because the shard was full.", |t| {
        Plain(t.stats.rejected)
    }),
    Simple("periods_missed_total", "counter", "Periods that went by unserved.", |t| {
        Plain(t.stats.missed)
    }),
    Simple("slow_callbacks_total", "counter", "Callbacks over the configured limit.", |t| {
        Plain(t.stats.slow_callbacks)
    }),
    Simple("turns_total", "counter", "Turns of the shard's owner.", |t| Plain(t.details.turns)),
    Simple("memory_bytes", "gauge", "Memory held for timers and wheels.", |t| {
        Plain(t.stats.memory_bytes)
    }),
    Simple("overdue_seconds", "gauge", "How far the most overdue timer is behind.", |t| {
        Nanos(t.stats.overdue_ns)
    }),
    Simple("lateness_max_seconds", "gauge", "Lateness of the latest expiry ever.", |t| {
        Nanos(t.stats.lateness_max_ns)
    }),
    Simple("callback_max_seconds", "gauge", "Longest callback ever that was timed.", |t| {
        Nanos(t.stats.callback_max_ns)
    }),
    Simple("turn_max_seconds", "gauge", "Longest turn ever that was timed.", |t| {
        Nanos(t.details.turn_max_ns)
    }),
    Simple("callback_running_seconds", "gauge", "How long the running callback has run.", |t| {
        Nanos(t.details.callback_running_ns)
    }),
    Simple("inbox_entries", "gauge", "Starts and resets that wait for the shard's owner.", |t| {
        Plain(t.details.inbox_depth)
    }),
    Simple("bucket_longest", "gauge", "Reminders in the longest bucket.", |t| {
        Plain(t.details.bucket_longest)
    }),
];

const LABELLED: [Labelled; 4] = [
    Labelled(
        "wakeups_total",
        "counter",
        "Times that the shard's own thread woke, by reason.",
        "reason",
        &[
            ("deadline", |t| t.details.wakeups_deadline),
            ("earlier", |t| t.details.wakeups_earlier),
            ("pressure", |t| t.details.wakeups_pressure),
            ("other", |t| {
                let d = &t.details;
                let known = d.wakeups_deadline + d.wakeups_earlier + d.wakeups_pressure;
                t.stats.wakeups.saturating_sub(known)
            }),
        ],
    ),
    Labelled(
        "reminders",
        "gauge",
        "Entries of the wheel: of live timers, and what cancels and resets left behind.",
        "state",
        &[("live", |t| t.details.reminders_live), ("dead", |t| t.details.reminders_dead)],
    ),
    Labelled(
        "slots",
        "gauge",
        "Memory for timers: in use, free, and used up for good.",
        "state",
        &[
            ("used", |t| {
                let d = &t.details;
                d.slots_allocated.saturating_sub(d.slots_cached + d.slots_retired)
            }),
            ("cached", |t| t.details.slots_cached),
            ("retired", |t| t.details.slots_retired),
        ],
    ),
    Labelled(
        "buckets_occupied",
        "gauge",
        "Buckets of the wheel that hold something, by level.",
        "level",
        &[
            ("0", |t| t.details.buckets_occupied[0]),
            ("1", |t| t.details.buckets_occupied[1]),
            ("2", |t| t.details.buckets_occupied[2]),
            ("3", |t| t.details.buckets_occupied[3]),
            ("4", |t| t.details.buckets_occupied[4]),
            ("5", |t| t.details.buckets_occupied[5]),
            ("6", |t| t.details.buckets_occupied[6]),
            ("7", |t| t.details.buckets_occupied[7]),
            ("8", |t| t.details.buckets_occupied[8]),
            ("9", |t| t.details.buckets_occupied[9]),
            ("10", |t| t.details.buckets_occupied[10]),
        ],
    ),
];

const MEASURED: [Measured; 3] = [
    Measured("lateness_seconds", "From deadline to delivery.", |t| &t.shard.tally.lateness),
    Measured(
        "callback_seconds",
        "Duration of callbacks; one in 64 is timed and counts for all, unless slow ones are reported.",
        |t| &t.shard.tally.callback_time,
    ),
    Measured("turn_seconds", "Duration of the owner's turns.", |t| &t.shard.tally.turn_time),
];

fn expose(all: &[Told<'_>], text: &mut impl Write) -> fmt::Result {
    for Simple(name, kind, help, value) in &SIMPLE {
        head(text, name, kind, help)?;
        for told in all {
            let (shard, value) = (told.shard.index, value(told));
            writeln!(text, "shardwheel_{name}{{shard=\"{shard}\"}} {value}")?;
        }
    }
    for Labelled(name, kind, help, label, values) in &LABELLED {
        head(text, name, kind, help)?;
        for told in all {
            for (which, value) in *values {
                let (shard, value) = (told.shard.index, value(told));
                writeln!(
                    text,
                    "shardwheel_{name}{{shard=\"{shard}\",{label}=\"{which}\"}} {value}"
                )?;
            }
        }
    }
    for Measured(name, help, histogram) in &MEASURED {
        head(text, name, "histogram", help)?;
        for told in all {
            expose_histogram(text, name, told.shard.index, histogram(told))?;
        }
    }
    Ok(())
}

fn head(text: &mut impl Write, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP shardwheel_{name} {help}")?;
    writeln!(text, "# TYPE shardwheel_{name} {kind}")
}

fn expose_histogram(
    text: &mut impl Write,
    name: &str,
    shard: u32,
    histogram: &Histogram,
) -> fmt::Result {
    let (below, count, sum) = histogram.cumulated(POWERS);
    for (power, below) in POWERS.into_iter().zip(below) {
        let bound = Seconds((1 << power) - 1);
        writeln!(text, "shardwheel_{name}_bucket{{shard=\"{shard}\",le=\"{bound}\"}} {below}")?;
    }
    writeln!(text, "shardwheel_{name}_bucket{{shard=\"{shard}\",le=\"+Inf\"}} {count}")?;
    writeln!(text, "shardwheel_{name}_sum{{shard=\"{shard}\"}} {}", Seconds(sum))?;
    writeln!(text, "shardwheel_{name}_count{{shard=\"{shard}\"}} {count}")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Service;
    use crate::config::{Config, Mode};
    use crate::stats::numbered;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    /// In no hurry: it waits with each part for ten more firings.
    struct Slow(Arc<AtomicU64>, usize);

    impl Slow {
        fn wait(&mut self) {
            let (began, seen) = (Instant::now(), self.0.load(SeqCst));
            while self.1 > 0 && self.0.load(SeqCst) < seen + 10 {
                assert!(began.elapsed() < Duration::from_secs(30), "the shard stands still");
                std::thread::yield_now();
            }
            self.1 = self.1.saturating_sub(1);
        }
    }

    impl Write for Slow {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            self.wait();
            Ok(())
        }
    }

    #[test]
    fn a_shard_goes_on_in_the_middle_of_a_read() {
        let service = Service::builder().shards(1).unpinned().build().unwrap();
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        service.every(Duration::from_millis(1), move |_| _ = counted.fetch_add(1, SeqCst)).unwrap();
        service.engine.prometheus(&mut Slow(count.clone(), 5)).unwrap();
        service.engine.report(&mut Slow(count.clone(), 5)).unwrap();
        let mut slow = Slow(count.clone(), 5);
        service.engine.visit(0, &mut 0, 10, &mut |_| slow.wait()).unwrap();
        assert!(count.load(SeqCst) >= 110);
    }

    #[test]
    fn counters_and_only_they_are_called_total() {
        let simple = SIMPLE.iter().map(|metric| (metric.0, metric.1));
        for (name, kind) in simple.chain(LABELLED.iter().map(|metric| (metric.0, metric.1))) {
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        }
    }

    /// Each number at its own name. Percentiles are Prometheus's to take, from the histograms.
    #[test]
    fn each_number_is_told() {
        let config = Config { mode: Mode::Driven, shards: 1, ..Config::default() };
        let engine = Engine::start(config).unwrap();
        let (s, d) = numbered();
        let told = Told { stats: s, details: d, shard: engine.shard(0).unwrap() };
        let mut text = String::new();
        expose(&[told], &mut text).unwrap();
        let known = d.wakeups_deadline + d.wakeups_earlier + d.wakeups_pressure;
        let plain = [
            ("timers_pending", "", s.pending),
            ("timers_high_water", "", s.high_water),
            ("timers_started_total", "", s.started),
            ("fired_total", "", s.fired),
            ("timers_ended_by_fire_total", "", s.ended_by_fire),
            ("timers_cancelled_total", "", s.cancelled),
            ("timers_returned_total", "", s.returned),
            ("timers_rejected_total", "", s.rejected),
            ("periods_missed_total", "", s.missed),
            ("slow_callbacks_total", "", s.slow_callbacks),
            ("memory_bytes", "", s.memory_bytes),
            ("turns_total", "", d.turns),
            ("inbox_entries", "", d.inbox_depth),
            ("bucket_longest", "", d.bucket_longest),
            ("wakeups_total", ",reason=\"deadline\"", d.wakeups_deadline),
            ("wakeups_total", ",reason=\"earlier\"", d.wakeups_earlier),
            ("wakeups_total", ",reason=\"pressure\"", d.wakeups_pressure),
            ("wakeups_total", ",reason=\"other\"", s.wakeups - known),
            ("reminders", ",state=\"live\"", d.reminders_live),
            ("reminders", ",state=\"dead\"", d.reminders_dead),
            ("slots", ",state=\"used\"", d.slots_allocated - d.slots_cached - d.slots_retired),
            ("slots", ",state=\"cached\"", d.slots_cached),
            ("slots", ",state=\"retired\"", d.slots_retired),
        ];
        let mut expected: Vec<String> = plain
            .iter()
            .map(|(name, label, value)| format!("{name}{{shard=\"0\"{label}}} {value}"))
            .collect();
        for (level, value) in d.buckets_occupied.iter().enumerate() {
            expected.push(format!("buckets_occupied{{shard=\"0\",level=\"{level}\"}} {value}"));
        }
        for (name, ns) in [
            ("overdue", s.overdue_ns),
            ("lateness_max", s.lateness_max_ns),
            ("callback_max", s.callback_max_ns),
            ("turn_max", d.turn_max_ns),
            ("callback_running", d.callback_running_ns),
        ] {
            expected.push(format!("{name}_seconds{{shard=\"0\"}} 0.000000{ns}"));
        }
        for line in &expected {
            assert!(text.contains(&format!("\nshardwheel_{line}\n")), "{line} is not in\n{text}");
        }
        let told =
            text.lines().filter(|line| !line.starts_with('#') && !line.contains("_seconds_"));
        assert_eq!(told.count(), expected.len(), "a number that is not looked at\n{text}");
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(Seconds(0).to_string(), "0.000000000");
        assert_eq!(Seconds(1_023).to_string(), "0.000001023");
        assert_eq!(Nanos(u64::MAX).to_string(), "18446744073.709551615");
        assert_eq!(Plain(u64::MAX).to_string(), "18446744073709551615");
    }
}
