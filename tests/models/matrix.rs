//! All models, with all mutants.

use crate::copy;
use crate::logic::CHANGES;
use crate::mutants::{LOGIC, Mutant, named};
use crate::run::{Limits, Ran, Verdict, models, on_all, run, run_with};
use crate::spared;
use crate::table::{Explored, Killer, Table};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// How far all models are run on the code as it is, to see what they come to.
const SURVEY: Limits = Limits { bound: Some(1), most: Some(200), seconds: Some(60) };
/// How far a mutant is looked for, and whether only where `LIKELY` says: most are found at once.
const SEARCH: [(Limits, bool); 5] = [
    (Limits { bound: Some(1), most: Some(500), seconds: Some(60) }, true),
    (Limits { bound: Some(2), most: Some(5_000), seconds: Some(60) }, true),
    (Limits { bound: Some(3), most: Some(30_000), seconds: Some(60) }, true),
    (Limits { bound: Some(1), most: Some(500), seconds: Some(60) }, false),
    (Limits { bound: Some(2), most: Some(2_000), seconds: Some(60) }, false),
];

/// Where to look first for mutants of a file: models with this in their name.
const LIKELY: &[(&str, &[&str])] = &[
    ("alarm", &["handover::", "descriptors::"]),
    ("arena", &["arena"]),
    ("arm", &["handover::", "fire::"]),
    ("attach", &["life::", "queue_free"]),
    ("cancel", &["fire::", "inside::", "life::"]),
    ("capacity", &["capacity::", "clear_", "port_"]),
    ("clock", &["advance"]),
    ("engine", &["advance"]),
    ("operations", &["advance", "circle"]),
    ("sys/barrier", &["stop_vs_plain"]),
    ("sys/futex", &["wait_word", "inside::"]),
    ("extra", &["note"]),
    ("fire", &["fire::", "inside::", "queue_"]),
    ("gate", &["life::", "capacity::", "queue_free"]),
    ("inbox", &["inbox", "reset_earlier"]),
    ("inbox/purge", &["inbox"]),
    ("lane", &["lane"]),
    ("port", &["capacity::", "port_", "clear_", "handed_on"]),
    ("queue", &["queue"]),
    ("queues", &["queue_"]),
    ("shared", &["references"]),
    ("record", &["fire::", "inside::", "life::"]),
    ("reset", &["reset", "remaining"]),
    ("shard", &["capacity::", "life::", "poll_", "handover::", "port_"]),
    ("tagged", &["tagged", "depot", "magazine"]),
    ("turn", &["stop_"]),
    ("wait", &["inside::"]),
    ("trim", &["trim"]),
    ("visit", &["visit"]),
    ("worker", &["stop", "life::", "reports_"]),
];

pub(crate) struct Matrix {
    program: PathBuf,
    models: Vec<String>,
}

/// A mutant at hand.
struct Candidate {
    mutant: Mutant,
    switch: String,
    /// The models that come to it, the likely ones first, then the shortest.
    models: Vec<String>,
}

impl Matrix {
    /// The models with the copy of the code that can be made wrong.
    pub(crate) fn of_copy() -> Matrix {
        Matrix::of(copy::build_copy())
    }

    /// The models with the code as it is.
    pub(crate) fn of_original() -> Matrix {
        Matrix::of(copy::build_original())
    }

    fn of(program: PathBuf) -> Matrix {
        let models = models(&program);
        assert!(models.len() > 40, "{models:?}");
        Matrix { program, models }
    }

    /// All models, those first of which the table says that they take long.
    fn longest_first(&self) -> Vec<String> {
        let table = Table::read();
        let mut models = self.models.clone();
        let interleavings =
            |model: &String| table.models.get(model).map_or(0, |ran| ran.interleavings);
        models.sort_by_key(|model| Reverse(interleavings(model)));
        models
    }

    /// Runs all models on the code as it is.
    fn explore(&self, limits: Limits) -> BTreeMap<String, Ran> {
        let work = |model: String| {
            let ran = run(&self.program, &model, None, limits);
            assert_eq!(ran.verdict, Verdict::Passed, "{model}");
            println!(
                "{model}: bound {}, {} interleavings, {} s",
                ran.bound, ran.interleavings, ran.seconds
            );
            (model, ran)
        };
        on_all(self.longest_first(), work).into_iter().collect()
    }

    /// All mutants that there are.
    fn candidates(&self) -> Vec<Candidate> {
        let ran = self.explore(SURVEY);
        let mut shortest: Vec<(&String, &Ran)> = ran.iter().collect();
        shortest.sort_by_key(|(_, ran)| ran.interleavings);
        let switches: BTreeSet<String> =
            ran.values().flat_map(|ran| ran.sites.iter().cloned()).collect();
        let orders = named(&switches).into_iter().map(|(mutant, switch)| {
            let models = shortest.iter().filter(|(_, ran)| ran.sites.contains(&switch));
            let models = models.map(|(model, _)| (*model).clone()).collect();
            Candidate { mutant, switch, models }
        });
        let changes = CHANGES.iter().map(|change| Candidate {
            mutant: Mutant {
                file: change.file.to_string(),
                function: change.name.to_string(),
                what: change.what.to_string(),
                way: LOGIC.to_string(),
            },
            switch: change.name.to_string(),
            models: shortest.iter().map(|(model, _)| (*model).clone()).collect(),
        });
        orders.chain(changes).collect()
    }

    /// The mutant must be found by the model that the table names, and no other must be in the table.
    pub(crate) fn check(&self) {
        let (candidates, table) = (self.candidates(), Table::read());
        let there: BTreeSet<&Mutant> =
            candidates.iter().map(|candidate| &candidate.mutant).collect();
        let mut wrong: Vec<String> = table
            .mutants
            .keys()
            .filter(|mutant| !there.contains(mutant))
            .map(|mutant| format!("in the table, but not in the code: {mutant}"))
            .collect();
        let work = |candidate: &Candidate| match table.mutants.get(&candidate.mutant) {
            None => Some(format!("not in the table: {}", candidate.mutant)),
            Some(None) if spared::reason(&candidate.mutant).is_some() => None,
            Some(None) => Some(format!("neither found nor spared: {}", candidate.mutant)),
            Some(Some(killer)) if self.finds(killer, candidate) => None,
            Some(Some(killer)) => {
                Some(format!("{} does not find {}", killer.model, candidate.mutant))
            }
        };
        wrong.extend(on_all(candidates.iter().collect(), work).into_iter().flatten());
        println!("{} mutants, of which {} wrong", candidates.len(), wrong.len());
        assert!(wrong.is_empty(), "see `write_the_mutants`:\n{}", wrong.join("\n"));
    }

    /// Finds a model for each mutant, that of the table first, and writes them down.
    pub(crate) fn write_mutants(&self) {
        let mut table = Table::read();
        let candidates = self.candidates();
        let known = std::mem::take(&mut table.mutants);
        // For a look at one file.
        let only = std::env::var("SHARDWHEEL_FILE").unwrap_or_default();
        let (mut left, others): (Vec<&Candidate>, Vec<&Candidate>) =
            candidates.iter().partition(|candidate| candidate.mutant.file.contains(&only));
        for candidate in others {
            let killer = known.get(&candidate.mutant).cloned().flatten();
            table.mutants.insert(candidate.mutant.clone(), killer);
        }
        let recorded = |candidate: &&Candidate| {
            let killer = known.get(&candidate.mutant).cloned().flatten()?;
            self.finds(&killer, candidate).then_some(killer)
        };
        self.sieve(&mut left, &mut table, &recorded);
        for (limits, likely) in SEARCH {
            let look = |candidate: &&Candidate| self.search(candidate, limits, likely);
            self.sieve(&mut left, &mut table, &look);
        }
        let unknown = left.iter().filter(|one| spared::reason(&one.mutant).is_none());
        let unknown = unknown.map(|one| format!("found by nobody: {}", one.mutant));
        let vain = table
            .mutants
            .iter()
            .filter(|(mutant, killer)| killer.is_some() && spared::reason(mutant).is_some());
        let vain = vain.map(|(mutant, _)| format!("spared in vain: {mutant}"));
        let odd: Vec<String> = unknown.chain(vain).collect();
        assert!(odd.is_empty(), "{}", odd.join("\n"));
    }

    /// Takes those out of `left` for which `look` finds a model, and writes all down.
    fn sieve(
        &self,
        left: &mut Vec<&Candidate>,
        table: &mut Table,
        look: &(dyn Fn(&&Candidate) -> Option<Killer> + Sync),
    ) {
        let found = on_all(left.clone(), |candidate| look(&candidate));
        let mut found = found.into_iter();
        left.retain(|candidate| {
            let killer = found.next().expect("one for each");
            let open = killer.is_none();
            table.mutants.insert(candidate.mutant.clone(), killer);
            open
        });
        table.write();
        println!("{} mutants are left", left.len());
    }

    /// Runs all models at their own bounds, or at that of the environment.
    pub(crate) fn hold(&self) {
        let bound = std::env::var("LOOM_MAX_PREEMPTIONS").ok().and_then(|bound| bound.parse().ok());
        self.explore(Limits { bound, most: None, seconds: None });
    }

    /// Runs each model at its own bound, or at the largest below at which it ends in time, and writes down how far they
    /// went.
    pub(crate) fn write_models(&self) {
        let mut table = Table::read();
        let seconds = std::env::var("SHARDWHEEL_SECONDS").map_or(60, |text| text.parse().unwrap());
        let bounds = [(None, Some(seconds)), (Some(2), Some(seconds)), (Some(1), None)];
        let work = |model: String| {
            for (bound, seconds) in bounds {
                let ran = run(&self.program, &model, None, Limits { bound, most: None, seconds });
                println!("{model}: bound {}, {} interleavings", ran.bound, ran.interleavings);
                match ran.verdict {
                    Verdict::Passed => return (model, ran),
                    Verdict::Failed(told) => panic!("{model}: {told}"),
                    Verdict::Unclear(_) => {}
                }
            }
            panic!("{model} does not end");
        };
        let ran = on_all(self.longest_first(), work);
        let explored = |ran: Ran| Explored {
            bound: ran.bound,
            interleavings: ran.interleavings,
            seconds: format!("{:.1}", ran.seconds),
        };
        table.models = ran.into_iter().map(|(model, ran)| (model, explored(ran))).collect();
        table.write();
    }

    /// Lets a model fail, and again from the checkpoint that this leaves.
    pub(crate) fn replay(&self) {
        let file = std::env::temp_dir().join(format!("shardwheel-{}.json", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let fail = || {
            let limits = Limits { bound: Some(2), most: None, seconds: None };
            let ran = run_with(
                &self.program,
                "models::slots::tagged_stack_aba",
                Some("tag_stays"),
                limits,
                Some(&file),
            );
            assert!(matches!(ran.verdict, Verdict::Failed(_)), "{ran:?}");
            ran.interleavings
        };
        let (first, again) = (fail(), fail());
        std::fs::remove_file(&file).unwrap();
        assert!(first > 1 && again == 1, "{first}, {again}");
    }

    /// Puts a mutant to each model that comes to it.
    fn search(&self, candidate: &Candidate, limits: Limits, only_likely: bool) -> Option<Killer> {
        let spared = std::env::var_os("SHARDWHEEL_SPARED").is_none();
        if spared && spared::reason(&candidate.mutant).is_some() {
            return None;
        }
        let file = &candidate.mutant.file;
        let likely = LIKELY.iter().find(|(name, _)| *file == format!("src/{name}.rs"));
        let likely = likely.map_or(&[] as &[&str], |(_, parts)| parts);
        let likely = |model: &String| likely.iter().any(|part| model.contains(part));
        let mut models: Vec<&String> = candidate.models.iter().collect();
        models.sort_by_key(|model| !likely(model));
        if only_likely {
            models.retain(|model| likely(model));
        }
        for model in models {
            match run(&self.program, model, Some(&candidate.switch), limits).verdict {
                Verdict::Passed => {}
                Verdict::Failed(told) => {
                    let verdict = run(&self.program, model, None, limits).verdict;
                    assert_eq!(verdict, Verdict::Passed, "{model}, with nothing changed");
                    println!("{}: {model}, {told}", candidate.mutant);
                    let bound = limits.bound.expect("a bound");
                    return Some(Killer { model: model.clone(), bound });
                }
                Verdict::Unclear(told) => {
                    println!("{}: {model} is unclear, {told}", candidate.mutant);
                }
            }
        }
        println!("{}: not found at {:?}", candidate.mutant, limits.bound);
        None
    }

    fn finds(&self, killer: &Killer, candidate: &Candidate) -> bool {
        let limits = Limits { bound: Some(killer.bound), most: Some(20_000), seconds: Some(60) };
        let ran = run(&self.program, &killer.model, Some(&candidate.switch), limits);
        matches!(ran.verdict, Verdict::Failed(_))
    }
}
