//! What is done to the code, under a name that outlives a change of line numbers.

use crate::source::{function, read, statement};
use std::collections::{BTreeMap, BTreeSet};

/// A mutant: where it is, what stands there, and what is done to it. A change of logic has its name for
/// a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mutant {
    pub(crate) file: String,
    pub(crate) function: String,
    pub(crate) what: String,
    pub(crate) way: String,
}

pub(crate) const LOGIC: &str = "logic";

impl Mutant {
    pub(crate) fn is_at(&self, file: &str, function: &str, line: &str) -> bool {
        self.file == file
            && self.function == function
            && squeeze(&self.what).contains(squeeze(line).trim_end_matches(','))
    }
}

impl std::fmt::Display for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} `{}` {}", self.file, self.function, self.what, self.way)
    }
}

fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Names for the switches that models have printed: `file:line:column:way`.
pub(crate) fn named(switches: &BTreeSet<String>) -> BTreeMap<Mutant, String> {
    let mut places: BTreeMap<Mutant, Vec<(u32, u32, &String)>> = BTreeMap::new();
    for switch in switches {
        let parts: Vec<&str> = switch.split(':').collect();
        let [file, line, column, way] = parts[..] else { panic!("{switch}") };
        let text = read(file);
        let lines: Vec<&str> = text.lines().collect();
        let (line, column): (u32, u32) = (line.parse().unwrap(), column.parse().unwrap());
        let at = line as usize - 1;
        let mutant = Mutant {
            file: file.to_string(),
            function: function(&lines, at),
            what: statement(&lines, at),
            way: way.to_string(),
        };
        places.entry(mutant).or_default().push((line, column, switch));
    }
    let mut named = BTreeMap::new();
    for (mutant, mut places) in places {
        places.sort();
        for (n, (_, _, switch)) in places.into_iter().enumerate() {
            let mut mutant = mutant.clone();
            if n > 0 {
                mutant.what += &format!(" ({})", n + 1);
            }
            named.insert(mutant, switch.clone());
        }
    }
    named
}
