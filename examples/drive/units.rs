//! Numbers as people write and read them: "10M" timers, a "500us" tick, "1.24 ms" late.

/// "250000", "250_000", "250k", "5M".
pub fn parse_count(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    let (digits, scale) = match plain.char_indices().last() {
        Some((at, 'k' | 'K')) => (&plain[..at], 1_000),
        Some((at, 'm' | 'M')) => (&plain[..at], 1_000_000),
        _ => (&plain[..], 1),
    };
    let count: u64 = digits.parse().map_err(|_| format!("'{text}' is not a number such as 5M"))?;
    count.checked_mul(scale).ok_or_else(|| format!("'{text}' is too large"))
}

/// "1ms", "250us", "1s", "100000ns"; answers nanoseconds.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(format!("'{text}' needs a unit: ns, us, ms or s")),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 => Ok((value * scale) as u64),
        _ => Err(format!("'{text}' is not a duration such as 1ms")),
    }
}

/// 1234567 becomes "1,234,567".
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 shard", "2 shards".
pub fn of(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Nanoseconds with three digits and a unit: "870 ns", "31.4 µs", "1.24 ms", "2.50 s".
pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let decimals = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Bytes in MiB or GiB.
pub fn bytes(value: u64) -> String {
    let mib = value as f64 / (1 << 20) as f64;
    if mib < 1024.0 { format!("{mib:.1} MiB") } else { format!("{:.2} GiB", mib / 1024.0) }
}
