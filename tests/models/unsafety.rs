//! Unsafe code stays in the modules that need it. (That each block has its reason is clippy's
//! `undocumented_unsafe_blocks`.)

use crate::source::{TESTS, files, read};
use std::collections::BTreeSet;

/// The modules that may contain unsafe code, and what for. The wheel is not among them.
const MODULES: &[(&str, &str)] = &[
    ("src/arena.rs", "segments by raw pointer; nothing is freed while the arena lives"),
    ("src/arm.rs", "the caller's port and inbox; the host's out pointer"),
    ("src/arm_batch.rs", "the host's functions; the caller's port"),
    ("src/attach.rs", "the owner's wheel, during a poll"),
    ("src/batch.rs", "the host's functions go along to another thread; the engine's calls"),
    ("src/builder.rs", "a hook with what it is called with"),
    (
        "src/cancel.rs",
        "slots that a won exchange has made this thread's; the frames of running drops",
    ),
    ("src/capi/batch.rs", "the host's pointers"),
    ("src/capi/mod.rs", "the exports: no_mangle and the host's pointers"),
    ("src/capi/queue.rs", "the host's pointers"),
    ("src/capi/service.rs", "the host's pointers"),
    ("src/capi/shard.rs", "the host's pointers"),
    ("src/capi/sized.rs", "structs of the host that say their own size"),
    ("src/capi/stats.rs", "the host's pointers"),
    ("src/capi/status.rs", "the host's pointers"),
    ("src/capi/timer.rs", "the host's pointers"),
    ("src/capi/types.rs", "the host's function types; the structs that know their size"),
    ("src/closure.rs", "closures behind a plain pointer"),
    ("src/config.rs", "the host's hooks, which any thread calls"),
    ("src/core.rs", "records of slots that were handed out"),
    ("src/doors.rs", "a thread's ports by raw pointer; pages that a fork wipes"),
    ("src/driven.rs", "a descriptor that is lent"),
    ("src/events.rs", "queues that the safe API keeps alive"),
    ("src/extra.rs", "zeroed memory is a value"),
    ("src/fire.rs", "the owner's wheel; the host's callbacks"),
    ("src/histogram.rs", "counters in memory of their own"),
    ("src/host.rs", "hooks behind a plain pointer"),
    ("src/inbox/purge.rs", "the same chain, with the consumer kept out"),
    ("src/inbox/tests.rs", "the tests' own inboxes"),
    ("src/inbox.rs", "a chain of blocks by raw pointer; the producer's and the consumer's cells"),
    ("src/lane.rs", "arrays by raw pointer"),
    ("src/one_shot.rs", "the host's function; the caller's port"),
    ("src/operations.rs", "the host's functions; the caller's port"),
    ("src/plain.rs", "the caller's port; the owner's wheel; slots that are this thread's"),
    ("src/port.rs", "the slots cell of the claiming thread"),
    ("src/queue/deliver.rs", "queues that timers name; the owner's lane and wheel"),
    ("src/queue.rs", "queues that timers name; the host's event array"),
    ("src/queues.rs", "the host's queues"),
    ("src/record.rs", "function pointers in atomics; zeroed memory is a value"),
    ("src/reset.rs", "the caller's port; the owner's wheel"),
    ("src/shard.rs", "the owner's cell; ports by raw pointer"),
    ("src/shared.rs", "counted references by raw pointer"),
    ("src/slab.rs", "magazines' cells; zeroed memory is a value"),
    ("src/stuck.rs", "the host's hook, which another thread calls"),
    ("src/sync.rs", "the marker of freed memory"),
    ("src/sync/model.rs", "models alone: state beside loom's atomics"),
    ("src/sys/affinity.rs", "system calls"),
    ("src/sys/barrier.rs", "system calls"),
    ("src/sys/call.rs", "calls of the host's functions; its unwinding"),
    ("src/sys/clock.rs", "system calls"),
    ("src/sys/errno.rs", "errno"),
    ("src/sys/eventfd.rs", "system calls"),
    ("src/sys/fork.rs", "system calls; a page that a fork wipes"),
    ("src/sys/futex.rs", "system calls"),
    ("src/sys/memory.rs", "zeroed memory from the allocator"),
    ("src/sys/prefetch.rs", "the prefetch instruction"),
    ("src/sys/random.rs", "system calls"),
    ("src/sys/thread.rs", "system calls; a thread with its own attributes"),
    ("src/sys/timerfd.rs", "system calls"),
    ("src/threads.rs", "a thread's ports by raw pointer"),
    ("src/timer.rs", "handles are numbers; the engine's calls"),
    ("src/turn.rs", "the owner's wheel"),
    ("src/types.rs", "the host's function types"),
    ("src/worker.rs", "the owner's wheel; the host's hooks"),
];

#[test]
fn unsafe_code_is_in_these_modules_alone() {
    let found: BTreeSet<String> = files("src")
        .into_iter()
        .filter(|file| {
            !TESTS.iter().any(|tests| file.starts_with(tests)) && uses_unsafe(&read(file))
        })
        .collect();
    let listed: BTreeSet<String> = MODULES.iter().map(|(file, _)| file.to_string()).collect();
    assert!(MODULES.iter().all(|(_, why)| !why.is_empty()));
    let (new, gone) = (found.difference(&listed), listed.difference(&found));
    let odd: Vec<&String> = new.chain(gone).collect();
    assert!(
        odd.is_empty(),
        "unsafe code in a module that is not listed, or none in one that is: {odd:?}"
    );
}

fn uses_unsafe(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.split("//").next().unwrap_or("");
        line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
    })
}
