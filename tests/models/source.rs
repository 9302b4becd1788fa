//! The source as text: where an operation stands, and what it says.

use std::fs;
use std::path::{Path, PathBuf};

/// Scenarios among the sources, which are no part of the library.
pub(crate) const TESTS: &[&str] = &["src/models/", "src/scenarios/"];

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// All Rust files below a directory, named from the root.
pub(crate) fn files(below: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![root().join(below)];
    while let Some(place) = left.pop() {
        if place.is_dir() {
            left.extend(fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()));
        } else if place.extension().is_some_and(|extension| extension == "rs") {
            found.push(relative(&place));
        }
    }
    found.sort();
    found
}

fn relative(place: &Path) -> String {
    place.strip_prefix(root()).unwrap().to_str().unwrap().to_string()
}

/// A line without its comment.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or("").trim()
}

/// The function around a line (counted from 0).
pub(crate) fn function(lines: &[&str], line: usize) -> String {
    lines[..=line]
        .iter()
        .rev()
        .find_map(|line| {
            let line = code(line);
            let at = line.strip_prefix("fn ").or_else(|| Some(line.split_once(" fn ")?.1))?;
            Some(at.split(['(', '<']).next()?.to_string())
        })
        .unwrap_or_default()
}

/// The statement, or as much of it as tells, with an operation on this line (counted from 0).
pub(crate) fn statement(lines: &[&str], line: usize) -> String {
    let first = (0..=line).rev().find(|&at| !code(lines[at]).starts_with('.')).unwrap_or(line);
    let mut text = String::new();
    let mut open = 0i32;
    for (at, some) in lines.iter().enumerate().skip(first) {
        let some = code(some);
        if some.is_empty() {
            continue;
        }
        let glue =
            if text.is_empty() || some.starts_with('.') || text.ends_with('(') { "" } else { " " };
        text = text + glue + some;
        open += some.matches('(').count() as i32 - some.matches(')').count() as i32;
        if at >= line && open <= 0 {
            break;
        }
    }
    text.replace(", )", ")").replace(" )", ")")
}

/// Each line of the library that says an order stronger than Relaxed, or a fence: file, function, line.
pub(crate) fn strong_orders() -> Vec<(String, String, String)> {
    const STRONG: [&str; 9] = [
        "Ordering::Acquire",
        "Ordering::Release",
        "Ordering::AcqRel",
        "Ordering::SeqCst",
        "barrier::full()",
        "barrier::light()",
        "barrier::heavy()",
        " fence(",
        "::fence(",
    ];
    let mut found = Vec::new();
    for file in files("src") {
        if TESTS.iter().any(|tests| file.starts_with(tests)) || file.starts_with("src/sync") {
            continue;
        }
        let text = read(&file);
        let lines: Vec<&str> = text
            .lines()
            .take_while(|line| {
                !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test")
            })
            .collect();
        for (at, line) in lines.iter().enumerate() {
            let line = code(line);
            if STRONG.iter().any(|strong| line.contains(strong)) && !line.contains("fn ") {
                found.push((file.clone(), function(&lines, at), line.to_string()));
            }
        }
    }
    found
}
