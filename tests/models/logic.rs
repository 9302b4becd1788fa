//! Changes of logic: a guarded step left out, or done in the wrong order.
//!
//! A row's `text` must be found once in its file. It is an expression, or whole statements (then it ends with `;`
//! or `}`) of which nothing after them uses a binding; `instead` stands on one line.

/// What `what` says is done to the code.
pub(crate) struct Change {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
    pub(crate) instead: &'static str,
}

pub(crate) const CHANGES: &[Change] = &[
    Change {
        name: "sleeps_without_a_look",
        what: "the owner arms its alarm and sleeps without a look at the inboxes",
        file: "src/alarm.rs",
        text: "!anything()",
        instead: "true",
    },
    Change {
        name: "rests_without_a_look",
        what: "a host's turn ends without a look at the inboxes",
        file: "src/alarm.rs",
        text: "if anything() {
            self.armed.store(AWAKE, Ordering::Relaxed);
            return false;
        }",
        instead: "",
    },
    Change {
        name: "wake_skipped",
        what: "whoever rings does not wake the owner",
        file: "src/alarm.rs",
        text: "self.armed.swap(AWAKE, Ordering::Relaxed) != AWAKE",
        instead: "false",
    },
    Change {
        name: "notice_skipped",
        what: "whoever hands over does not look at the alarm",
        file: "src/alarm.rs",
        text: "tick < self.armed.load(Ordering::Relaxed)",
        instead: "false",
    },
    Change {
        name: "sleeps_on_a_new_word",
        what: "the owner reads the futex word after the last look, not before",
        file: "src/alarm.rs",
        text: "self.bell.wait(seen, None)",
        instead: "self.bell.wait(self.bell.load(), None)",
    },
    Change {
        name: "shard_fd_set_once",
        what: "the shard's descriptor is set without a second look at what is armed",
        file: "src/alarm.rs",
        text: "self.armed.load(Ordering::Relaxed) == armed && (fired || !reached)",
        instead: "true",
    },
    Change {
        name: "settle_skipped",
        what: "whoever closes the gate waits for nobody",
        file: "src/gate.rs",
        text: "if !busy {
                return;
            }",
        instead: "return;",
    },
    Change {
        name: "gate_ignored",
        what: "an operation goes in whatever the gate says",
        file: "src/gate.rs",
        text: "bits == 0",
        instead: "true",
    },
    Change {
        name: "start_while_collecting",
        what: "a start goes in while credits are collected",
        file: "src/gate.rs",
        text: "bits & COLLECTING == 0 || work != Work::Start",
        instead: "true",
    },
    Change {
        name: "enters_unseen",
        what: "an operation goes in without saying so in its port",
        file: "src/gate.rs",
        text: "self.0.store(work as u32, Ordering::Relaxed);",
        instead: "",
    },
    Change {
        name: "cancel_ignores_generation",
        what: "a cancel takes the slot's timer, whose ever it is",
        file: "src/cancel.rs",
        text: "word.generation() != handle.generation",
        instead: "false",
    },
    Change {
        name: "counts_before_it_has_won",
        what: "a cancel counts the end before its exchange",
        file: "src/cancel.rs",
        text: "self.swap(port, record, word, next)?;
        self.before_end(port);
        port.own.counters.cancelled.add(1);",
        instead: "self.before_end(port); port.own.counters.cancelled.add(1); self.swap(port, record, word, next)?;",
    },
    Change {
        name: "slot_free_before_its_drop",
        what: "a cancelled slot is free before the host's drop has run",
        file: "src/cancel.rs",
        text: "if drop.is_some() { word.with(Phase::Ending, Offset::NONE) } else { free }",
        instead: "free",
    },
    Change {
        name: "drop_waiters_not_woken",
        what: "after a drop nobody is woken",
        file: "src/cancel.rs",
        text: "if word.phase() == Phase::EndingAwaited {
            shard.epoch.bump_and_wake_all();
        }",
        instead: "",
    },
    Change {
        name: "reset_ignores_generation",
        what: "a reset that is overtaken moves the slot's next timer",
        file: "src/reset.rs",
        text: "if word.generation() != handle.generation {
                return Ok(Outcome::NotFound);
            }",
        instead: "",
    },
    Change {
        name: "reset_earlier_sends_nothing",
        what: "a reset to an earlier instant sends no reminder",
        file: "src/reset.rs",
        text: "known && !queued && before.is_some_and(|before| due.tick >= before.tick)",
        instead: "true",
    },
    Change {
        name: "tag_stays",
        what: "the stack's tag does not change",
        file: "src/tagged.rs",
        text: "((head >> 32).wrapping_add(1) << 32) | u64::from(index)",
        instead: "(head >> 32 << 32) | u64::from(index)",
    },
    Change {
        name: "block_reused_early",
        what: "a block is used again one entry too early",
        file: "src/inbox.rs",
        text: "taken > producer.oldest_end",
        instead: "taken >= producer.oldest_end",
    },
    Change {
        name: "pushes_before_it_writes",
        what: "the count of entries moves before the entry is written",
        file: "src/inbox.rs",
        text: "block.entries[producer.used].store(entry, Ordering::Relaxed);
            producer.used += 1;
            let pushed = self.pushed.load(Ordering::Relaxed) + 1;
            // Release: pairs with the Acquire in `take`; hands over the entry and all before it.
            self.pushed.store(pushed, Ordering::Release);",
        instead: "let pushed = self.pushed.load(Ordering::Relaxed) + 1; self.pushed.store(pushed, Ordering::Release); block.entries[producer.used].store(entry, Ordering::Relaxed); producer.used += 1;",
    },
    Change {
        name: "hands_over_before_it_publishes",
        what: "the owner is told of a timer before its word is published",
        file: "src/arm.rs",
        text: "self.slab.at(slot).publish(word);
        if port.is_owner() {
            self.alarm.notice(tick, clock);
            // SAFETY: the port's thread owns the shard.
            unsafe { self.tidy_if_stirred() };
        } else {
            // SAFETY: the caller has claimed the port and reserved room.
            unsafe { self.hand_over(port, clock, slot, word.generation(), tick) };
        }",
        instead: "unsafe { self.hand_over(port, clock, slot, word.generation(), tick) }; self.slab.at(slot).publish(word);",
    },
    Change {
        name: "serves_old_reminders",
        what: "the owner serves a reminder that is not the newest",
        file: "src/fire.rs",
        text: "!is_newest(record, slot, reminder)",
        instead: "false",
    },
    Change {
        name: "waiters_not_woken",
        what: "after a callback nobody is woken",
        file: "src/fire.rs",
        text: "if matches!(word.phase(), Phase::Awaited | Phase::EndingAwaited) {
            shard.epoch.bump_and_wake_all();
        }",
        instead: "",
    },
    Change {
        name: "drop_before_the_end",
        what: "drop runs while the word still says that the callback does",
        file: "src/fire.rs",
        text: "if self.swap(record, word, ending).is_err() {
                return false;
            }",
        instead: "",
    },
    Change {
        name: "exclusive_stores_queued_words",
        what: "an exclusive owner stores over a word that takers move",
        file: "src/fire.rs",
        text: "port.is_exclusive() && seen.phase() != Phase::Queued",
        instead: "port.is_exclusive()",
    },
    Change {
        name: "deliver_recheck_skipped",
        what: "a delivery does not look again whether its timer is armed",
        file: "src/queue/deliver.rs",
        text: "if record.word() != word {
            return None;
        }",
        instead: "",
    },
    Change {
        name: "queue_fd_shown_once",
        what: "the queue's descriptor is set without a second look",
        file: "src/queue.rs",
        text: "(self.waiting.load(Ordering::Relaxed) > 0) == some",
        instead: "true",
    },
    Change {
        name: "queue_closed_without_settling",
        what: "a queue is closed while starts with it are under way",
        file: "src/queues.rs",
        text: "self.settle_all(true);",
        instead: "",
    },
    Change {
        name: "queue_freed_without_settling",
        what: "a queue is freed while others are still at it",
        file: "src/queues.rs",
        text: "self.settle_all(false);",
        instead: "",
    },
    Change {
        name: "exclusive_while_a_queue_closes",
        what: "a shard is taken exclusively while a queue is freed",
        file: "src/attach.rs",
        text: "exclusive && before != Some(true) && self.is_closing()",
        instead: "false",
    },
    Change {
        name: "exclusive_without_settling",
        what: "an exclusive owner does not wait for those inside",
        file: "src/attach.rs",
        text: "other.own.busy.settle(false);",
        instead: "",
    },
    Change {
        name: "polls_past_a_stop",
        what: "a poll does not look whether the service has been stopped",
        file: "src/attach.rs",
        text: "if shard.gate.is(STOPPED) {
            return Err(Error::Stopped);
        }",
        instead: "",
    },
    Change {
        name: "collects_without_settling",
        what: "credits are collected from a port that is at work",
        file: "src/capacity.rs",
        text: "other.own.busy.settle(true);",
        instead: "",
    },
    Change {
        name: "counts_starts_before_ends",
        what: "whether no timer lives is asked of starts first",
        file: "src/capacity.rs",
        text: "let ends = self.ends(false);
        self.starts() == ends",
        instead: "let starts = self.starts(); starts == self.ends(false)",
    },
    Change {
        name: "stop_without_settling",
        what: "stop does not wait for those inside",
        file: "src/worker.rs",
        text: "port.own.busy.settle(false);",
        instead: "",
    },
    Change {
        name: "stop_without_the_turn",
        what: "stop does not wait for a poll",
        file: "src/worker.rs",
        text: "while shard.turner.load(Ordering::Acquire) != 0 {
                yield_now();
            }",
        instead: "",
    },
    Change {
        name: "sleeps_past_a_stop",
        what: "the owner sleeps without a look whether it is to stop",
        file: "src/worker.rs",
        text: "shard.anything_waits() || shard.gate.is(STOPPED)",
        instead: "shard.anything_waits()",
    },
    Change {
        name: "circle_not_followed",
        what: "a wait looks at the next shard alone, not along the chain",
        file: "src/wait.rs",
        text: "match shard.waits_for.load(Ordering::Relaxed) {
                0 => return Ok(waits),
                next => awaited = Handle::unpack(next),
            }",
        instead: "return Ok(waits);",
    },
    Change {
        name: "drop_not_followed",
        what: "a wait does not look whether a shard's turn is in a drop",
        file: "src/wait.rs",
        text: "self.is_ending(handle) && self.running.load(Ordering::Relaxed) == handle.pack()",
        instead: "false",
    },
    Change {
        name: "stop_in_drop_wakes_nobody",
        what: "who stops the service in a drop does not wake those who wait for it",
        file: "src/worker.rs",
        text: "self.shards().iter().for_each(|shard| shard.epoch.bump_and_wake_all());",
        instead: "",
    },
    Change {
        name: "note_reused_at_once",
        what: "a note is used again while the owner may rely on it",
        file: "src/extra.rs",
        text: "self.retired_notes.push(index, &self.notes.at(index).link);",
        instead: "self.free_notes.push(index, &self.notes.at(index).link);",
    },
    Change {
        name: "port_keeps_its_credits",
        what: "a thread that ends takes its credits with it",
        file: "src/port.rs",
        text: "self.free_credits(self.own.credits.take_all());",
        instead: "",
    },
];
