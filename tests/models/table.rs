//! `src/models/TABLE.md`, written and read back.

use crate::logic::CHANGES;
use crate::mutants::Mutant;
use crate::source::{files, read, root};
use crate::spared;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

const FILE: &str = "src/models/TABLE.md";

/// What is known of models and mutants.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) models: BTreeMap<String, Explored>,
    pub(crate) mutants: BTreeMap<Mutant, Option<Killer>>,
}

/// How a model was run.
#[derive(Debug, Clone)]
pub(crate) struct Explored {
    pub(crate) bound: String,
    pub(crate) interleavings: u64,
    pub(crate) seconds: String,
}

/// A model, and the number of preemptions that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Killer {
    pub(crate) model: String,
    pub(crate) bound: u32,
}

const HEAD: &str = "\
# The models, and what they find

Written by `cargo test --test models -- --ignored write_the`, from a run; `mutants_die` checks it. How to read it: `mod.rs` beside it,
and `tests/models`.

";

const MODELS: &str = "\
## Models

Each ran to the end at the bound given here: the number of preemptions, or none. Seconds are of one processor. \"Finds\" counts
the mutants below for which the model is the one named; it may find more.

| model | what must hold | bound | interleavings | seconds | finds |
|---|---|---|---|---|---|
";

const MUTANTS: &str = "
## Mutants

What was done to the code, and the model that fails then, with so many preemptions.

- `acquire`, `release`: that half of the order is left out; `failure`: the order of a failed exchange is Relaxed
- `torn`: a read-modify-write is a load and a store; `dropped`: a fence is left out
- `logic`: a change of `tests/models/logic.rs`

| file | function | what | way | found by | bound |
|---|---|---|---|---|---|
";

const SPARED: &str = "
## Not found by any model

| file | function | what | way | why |
|---|---|---|---|---|
";

const UNREACHED: &str = "
## Not reached by any model

| file | function | why |
|---|---|---|
";

impl Table {
    /// Mutants for which neither a model nor a reason is known.
    pub(crate) fn open(&self) -> Vec<String> {
        let open = self.mutants.iter().filter(|(mutant, killer)| {
            killer.is_none() && spared::reason(mutant).is_none_or(str::is_empty)
        });
        open.map(|(mutant, _)| mutant.to_string()).collect()
    }

    /// Changes of logic that are not in the table.
    pub(crate) fn missing_changes(&self) -> Vec<&'static str> {
        let names = CHANGES.iter().map(|change| change.name);
        names.filter(|name| !self.mutants.keys().any(|mutant| mutant.function == *name)).collect()
    }

    /// Models that find something and are not, or no more, in the source, or were not run.
    pub(crate) fn unknown_models(&self) -> Vec<String> {
        let docs = docs();
        let killers = self.mutants.values().flatten().map(|killer| &killer.model);
        let known = |model: &&String| docs.contains_key(*model) && self.models.contains_key(*model);
        killers.filter(|model| !known(model)).cloned().collect()
    }

    pub(crate) fn read() -> Table {
        let mut table = Table::default();
        let text = fs::read_to_string(root().join(FILE)).unwrap_or_default();
        for line in text.lines() {
            let Some(cells) = cells(line) else { continue };
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            match cells[..] {
                [file, function, what, way, model, bound] if file.ends_with(".rs") => {
                    let Ok(bound) = bound.parse() else { continue };
                    let killer = Killer { model: model.to_string(), bound };
                    table.mutants.insert(mutant(file, function, what, way), Some(killer));
                }
                [file, function, what, way, _] if file.ends_with(".rs") => {
                    table.mutants.insert(mutant(file, function, what, way), None);
                }
                [model, _, bound, interleavings, seconds, _] => {
                    let Ok(interleavings) = interleavings.parse() else { continue };
                    let (bound, seconds) = (bound.to_string(), seconds.to_string());
                    let explored = Explored { bound, interleavings, seconds };
                    table.models.insert(model.to_string(), explored);
                }
                _ => {}
            }
        }
        table
    }

    pub(crate) fn write(&self) {
        let mut text = HEAD.to_string() + MODELS;
        let doc = docs();
        for (model, Explored { bound, interleavings, seconds }) in &self.models {
            let finds = self.mutants.values().flatten().filter(|killer| killer.model == *model);
            let what = doc.get(model).map_or("", String::as_str);
            let finds = finds.count();
            row(
                &mut text,
                &[model, what, bound, &interleavings.to_string(), seconds, &finds.to_string()],
            );
        }
        text += MUTANTS;
        for (mutant, killer) in &self.mutants {
            let Some(Killer { model, bound }) = killer else { continue };
            let Mutant { file, function, what, way } = mutant;
            row(&mut text, &[file, function, &format!("`{what}`"), way, model, &bound.to_string()]);
        }
        text += SPARED;
        for (mutant, killer) in &self.mutants {
            if killer.is_none() {
                let Mutant { file, function, what, way } = mutant;
                let why = spared::reason(mutant)
                    .unwrap_or("open: not found so far, not decided whether it must be");
                row(&mut text, &[file, function, &format!("`{what}`"), way, why]);
            }
        }
        text += UNREACHED;
        for (file, function, why) in spared::UNREACHED {
            row(&mut text, &[file, function, why]);
        }
        fs::write(root().join(FILE), text).unwrap();
    }
}

fn mutant(file: &str, function: &str, what: &str, way: &str) -> Mutant {
    let what = what.trim_matches('`').to_string();
    Mutant { file: file.to_string(), function: function.to_string(), what, way: way.to_string() }
}

fn row(text: &mut String, cells: &[&str]) {
    for cell in cells {
        write!(text, "| {} ", cell.replace('|', "\\|")).unwrap();
    }
    *text += "|\n";
}

fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.strip_prefix("| ")?.strip_suffix(" |")?.replace("\\|", "\u{1}");
    Some(line.split(" | ").map(|cell| cell.trim().replace('\u{1}', "|")).collect())
}

/// What each model says that it shows: the first sentences of its doc.
fn docs() -> BTreeMap<String, String> {
    let mut docs = BTreeMap::new();
    for file in files("src") {
        let text = read(&file);
        let mut doc = String::new();
        for line in text.lines() {
            let line = line.trim();
            if let Some(more) = line.strip_prefix("///") {
                doc = (doc + more).trim().to_string();
            } else if let Some(rest) = line.strip_prefix("fn ") {
                let name = rest.split('(').next().unwrap_or_default();
                docs.insert(format!("{}::{name}", module(&file)), std::mem::take(&mut doc));
            } else if !line.starts_with("#[") {
                doc.clear();
            }
        }
    }
    docs
}

/// The path of a file's models: those of `src/models` are its own, others have a module for them.
fn module(file: &str) -> String {
    let path = file.trim_start_matches("src/").trim_end_matches(".rs").replace('/', "::");
    if path.starts_with("models::") { path } else { path + "::models" }
}
