//! The checked-in table and how two of them are compared.

use std::path::Path;

/// Counts for each operation, and what compiled them.
pub struct Table {
    pub compiler: String,
    pub counts: Vec<(String, f64)>,
}

const HEAD: &str = "\
# Instructions for each operation, by callgrind, with 20,000 timers pending.
# Made by: cargo bench --bench counts -- --bless
";

impl Table {
    pub fn read(path: &Path) -> Table {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let compiler = lines.next().unwrap_or("no compiler").to_string();
        let count = |line: &str| {
            let (name, count) = line.rsplit_once(' ').expect("a name and a count");
            (name.trim().to_string(), count.parse().expect("a count"))
        };
        Table { compiler, counts: lines.map(count).collect() }
    }

    pub fn text(&self) -> String {
        let line = |(name, count): &(String, f64)| format!("{name:32} {count:8.1}\n");
        let lines: String = self.counts.iter().map(line).collect();
        format!("{HEAD}{}\n{lines}", self.compiler)
    }
}

/// Says what has moved; answers whether nothing did by more than `tolerance` percent.
pub fn compare(old: &Table, new: &Table, tolerance: f64) -> bool {
    let names =
        |table: &Table| table.counts.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if names(old) != names(new) {
        println!("the table names other operations: write it anew with --bless");
        return false;
    }
    let mut good = true;
    for ((name, old), (_, new)) in old.counts.iter().zip(&new.counts) {
        let moved = (new - old) / old * 100.0;
        let verdict = match moved {
            moved if moved > tolerance => "DEARER",
            moved if moved < -tolerance => "CHEAPER",
            _ => "",
        };
        good &= verdict.is_empty();
        println!("{name:32} {old:8.1} -> {new:8.1} {moved:+7.1} % {verdict}");
    }
    if !good {
        println!(
            "moved by more than {tolerance} %: say why, and write the table anew with --bless"
        );
    }
    good
}
