//! The numbers as text for people: what one looks at first when timers are late.

use crate::engine::Engine;
use crate::status::Error;
use crate::types::{Details, SHARD_ANY, Stats};
use std::fmt::{self, Display, Formatter, Write};

impl Engine {
    /// Writes the numbers of the service, then those of each shard, for people to read.
    ///
    /// # Errors
    /// `NoMemory`, `Forked`.
    pub fn report(&self, text: &mut impl Write) -> Result<(), Error> {
        let all = self.told()?;
        let (stats, details) = (self.stats(SHARD_ANY)?, self.details(SHARD_ANY)?);
        // Whoever takes the text decides what becomes of it.
        let _ = (|| {
            writeln!(text, "shardwheel {}", env!("CARGO_PKG_VERSION"))?;
            section(text, "all shards", &stats, &details)?;
            for (index, told) in all.iter().enumerate().filter(|_| all.len() > 1) {
                section(text, format_args!("shard {index}"), &told.stats, &told.details)?;
            }
            Ok::<(), fmt::Error>(())
        })();
        Ok(())
    }
}

fn section(text: &mut impl Write, title: impl Display, s: &Stats, d: &Details) -> fmt::Result {
    let Stats { pending, high_water, started, cancelled, ended_by_fire, returned, .. } = *s;
    let Stats { fired, missed, rejected, slow_callbacks, wakeups, .. } = *s;
    writeln!(text, "\n{title}")?;
    writeln!(text, "  timers     {pending} pending, {high_water} at most")?;
    writeln!(
        text,
        "             {started} started = {ended_by_fire} fired + {cancelled} cancelled + {returned} returned + pending"
    )?;
    writeln!(text, "             {rejected} refused for want of room")?;
    writeln!(text, "  expiries   {fired} delivered, {missed} periods missed")?;
    write!(text, "  lateness   ")?;
    points(text, [s.lateness_p50_ns, s.lateness_p99_ns, s.lateness_p999_ns, s.lateness_max_ns])?;
    writeln!(text, "  overdue    {}", Time(s.overdue_ns))?;
    write!(text, "  callbacks  ")?;
    points(text, [s.callback_p50_ns, s.callback_p99_ns, s.callback_p999_ns, s.callback_max_ns])?;
    writeln!(
        text,
        "             {slow_callbacks} slow; the one at work now since {}",
        Time(d.callback_running_ns)
    )?;
    write!(text, "  turns      ")?;
    points(text, [d.turn_p50_ns, d.turn_p99_ns, d.turn_p999_ns, d.turn_max_ns])?;
    writeln!(
        text,
        "             {} turns, {wakeups} wake-ups: {} due, {} earlier, {} pressure",
        d.turns, d.wakeups_deadline, d.wakeups_earlier, d.wakeups_pressure
    )?;
    writeln!(
        text,
        "  wheel      {} reminders live, {} dead, {} in the longest bucket, {} in inboxes",
        d.reminders_live, d.reminders_dead, d.bucket_longest, d.inbox_depth
    )?;
    write!(text, "             buckets by level:")?;
    for occupied in d.buckets_occupied {
        write!(text, " {occupied}")?;
    }
    writeln!(
        text,
        "\n  memory     {}; slots: {} allocated, {} cached, {} retired",
        Bytes(s.memory_bytes),
        d.slots_allocated,
        d.slots_cached,
        d.slots_retired
    )
}

fn points(text: &mut impl Write, [p50, p99, p999, max]: [u64; 4]) -> fmt::Result {
    let [p50, p99, p999, max] = [Time(p50), Time(p99), Time(p999), Time(max)];
    writeln!(text, "{p50} p50, {p99} p99, {p999} p99.9, {max} at most")
}

/// Nanoseconds in a unit that fits.
struct Time(u64);

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
    }
}

/// Bytes in a unit that fits.
struct Bytes(u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)])
    }
}

fn scaled(f: &mut Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let &(unit, one) = units.iter().rev().find(|&&(_, one)| value >= one).unwrap_or(&units[0]);
    if one == 1 {
        write!(f, "{value} {unit}")
    } else {
        write!(f, "{:.1} {unit}", value as f64 / one as f64)
    }
}

/// A text that grows as long as there is memory.
#[derive(Default)]
pub(crate) struct Growing {
    text: String,
    cut: bool,
}

impl Write for Growing {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.cut || self.text.try_reserve(part.len()).is_err() {
            self.cut = true;
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

impl Growing {
    pub(crate) fn whole(self) -> Result<String, Error> {
        if self.cut { Err(Error::NoMemory) } else { Ok(self.text) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::stats::numbered;

    #[test]
    fn each_number_stands_in_its_place() {
        let (stats, details) = numbered();
        let mut text = String::new();
        section(&mut text, "all", &stats, &details).unwrap();
        let expected = [
            "all",
            "  timers     101 pending, 102 at most",
            "             103 started = 105 fired + 106 cancelled + 107 returned + pending",
            "             108 refused for want of room",
            "  expiries   104 delivered, 109 periods missed",
            "  lateness   113 ns p50, 114 ns p99, 115 ns p99.9, 116 ns at most",
            "  overdue    112 ns",
            "  callbacks  117 ns p50, 118 ns p99, 119 ns p99.9, 120 ns at most",
            "             110 slow; the one at work now since 146 ns",
            "  turns      136 ns p50, 137 ns p99, 138 ns p99.9, 139 ns at most",
            "             135 turns, 10000 wake-ups: 141 due, 142 earlier, 143 pressure",
            "  wheel      121 reminders live, 122 dead, 134 in the longest bucket, 140 in inboxes",
            "             buckets by level: 123 124 125 126 127 128 129 130 131 132 133",
            "  memory     111 B; slots: 20000 allocated, 144 cached, 145 retired",
        ];
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn units_fit() {
        assert_eq!(Time(0).to_string(), "0 ns");
        assert_eq!(Time(1_500).to_string(), "1.5 us");
        assert_eq!(Time(3_600_000_000_000).to_string(), "3600.0 s");
        assert_eq!(Bytes(5 << 20).to_string(), "5.0 MiB");
    }
}
