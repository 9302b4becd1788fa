//! What is not in the table, or is in it without a killer, and why.

use crate::mutants::Mutant;

/// Functions whose orders no model comes to. An empty name: the whole file.
pub(crate) const UNREACHED: &[(&str, &str, &str)] = &[
    (
        "src/tally.rs",
        "",
        "callbacks that are timed: by the system's clock, which a model must not depend on; `tests/operate`",
    ),
    (
        "src/doors.rs",
        "",
        "the table is the kernel's memory, which models go without; `doors::tests` and `tests/contract/warm.rs`",
    ),
    ("src/sys/fork.rs", "", "a fork is not modelled; the words are the process's own"),
    ("src/sys/barrier.rs", "", "its fences are mutants of their callers, each for itself"),
    (
        "src/stats.rs",
        "overdue_ns",
        "for the statistics; without the fence they may count a timer that is just being started",
    ),
];

/// loom never lets a load take its value after a later store of the same thread, nor see a store that comes later in
/// its own run. So it cannot tell whether a load stays before the store that allows others to write over what was read.
const READ_BEFORE_OVERWRITTEN: &str =
    "keeps reads before the word that allows to write over them, which loom does by itself";
/// In a model `light` is a full fence, which acquires, too.
const FENCED: &str = "the fences of `enter` and of a poll, full ones in a model, do it there; on a machine `light` is none";
/// The same for what a thread writes before it.
const FENCED_BEFORE: &str = "in a model a full fence stands before it, of the gate or of the hand-over; on a machine the gate's is none";
const SAME_GENERATION: &str = "not needed by today's callers: what they read for a word of the same generation they have seen with the first look; kept for those to come";
const FAIR: &str = "only spreads the work";
const ONE_WRITER: &str = "one thread at a time writes it";

const HANDED_OVER: &str =
    "`pushed` hands it over, too: nothing is looked at before an entry that was pushed later";

/// Mutants that no model finds: file, function, a part of what stands there, way, and why that is right.
const SPARED: &[(&str, &str, &str, &str, &str)] = &[
    ("src/queues.rs", "begin", "closing", "torn", TWO_FREES),
    (
        "src/queues.rs",
        "queue_closed_without_settling",
        "",
        "logic",
        "by contract no other thread starts timers with a queue while it is freed",
    ),
    ("src/queues.rs", "drop", "closing", "torn", TWO_FREES),
    ("src/engine.rs", "next_home", "", "torn", FAIR),
    (
        "src/extra.rs",
        "note_reused_at_once",
        "",
        "logic",
        "whoever moves a timer away from a note tells the owner, which looks again; kept so that it need not rely on that",
    ),
    ("src/gate.rs", "is_at", "", "acquire", FENCED),
    ("src/inbox.rs", "lengthen", "taken", "acquire", READ_BEFORE_OVERWRITTEN),
    ("src/inbox.rs", "lengthen", "blocks", "torn", ONE_WRITER),
    ("src/inbox.rs", "lengthen", "first", "release", HANDED_OVER),
    ("src/inbox.rs", "lengthen", "next", "release", HANDED_OVER),
    ("src/inbox.rs", "take", "first", "acquire", HANDED_OVER),
    ("src/inbox.rs", "take", "next", "acquire", HANDED_OVER),
    ("src/inbox.rs", "take", "taken", "release", READ_BEFORE_OVERWRITTEN),
    ("src/inbox/purge.rs", "purge", "pushed", "release", "the flag `taking` hands it over, too"),
    ("src/lane.rs", "reserve", "top", "acquire", READ_BEFORE_OVERWRITTEN),
    ("src/lane.rs", "sweep", "top", "failure", READ_BEFORE_OVERWRITTEN),
    ("src/lane.rs", "take", "compare_exchange", "release", READ_BEFORE_OVERWRITTEN),
    ("src/port.rs", "add", "", "release", FENCED_BEFORE),
    ("src/port.rs", "claim", "", "acquire", FENCED),
    (
        "src/port.rs",
        "port_keeps_its_credits",
        "",
        "logic",
        "found by whoever collects, then, which takes longer; none is lost",
    ),
    ("src/queue.rs", "close", "", "torn", "a queue is freed once: its host says so"),
    ("src/queue.rs", "descriptor", "", "dropped", "the fence in `show` does it, too"),
    ("src/queue.rs", "take", "turn", "torn", FAIR),
    ("src/capacity.rs", "free_to_pool", "", "torn", ONE_WRITER),
    ("src/record.rs", "swap", "", "failure", SAME_GENERATION),
    (
        "src/turn.rs",
        "drop",
        "turner",
        "release",
        "the full fence of `rest` stands before it, on a machine, too; so a turn need not end with one",
    ),
    ("src/worker.rs", "hand_back", "returned", "torn", ONE_WRITER),
];

const TWO_FREES: &str = "when two queues are freed at once: miscounted, one may wait for an exclusive owner instead of being refused";

pub(crate) fn unreached(file: &str, function: &str) -> Option<&'static str> {
    UNREACHED
        .iter()
        .find(|(place, name, _)| *place == file && (name.is_empty() || *name == function))
        .map(|(.., why)| *why)
}

pub(crate) fn reason(mutant: &Mutant) -> Option<&'static str> {
    SPARED
        .iter()
        .find(|(file, function, part, way, _)| {
            mutant.file == *file
                && mutant.function == *function
                && mutant.what.contains(part)
                && mutant.way == *way
        })
        .map(|(.., why)| *why)
}
