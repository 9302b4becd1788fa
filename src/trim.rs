//! Memory goes back to the system after a peak.
//!
//! Two parts. What belongs to nobody, free slots and what goes with them, the calling thread collects,
//! and gives back each page that holds nothing else; they can be used again at any time, and a stale
//! handle that looks there finds a slot without a timer. What belongs to the shard's owner,
//! reminders, the owner gives back itself at the end of a turn, after it has dropped the dead ones: a
//! service's own thread at once, a host's at its next poll.
//!
//! Ground rules: no thread waits for another. While free slots are being collected a start that finds none
//! takes fresh ones. Slots that threads have at hand stay there, at most two magazines each.

use crate::arena::Arena;
use crate::engine::Engine;
use crate::extra::Extras;
use crate::returned::Free;
use crate::slab::Slab;
use crate::status::Error;
use crate::sync::{AtomicU32, Ordering};
use crate::sys::memory::Zeroed;
use crate::tagged::TaggedStack;
use crate::tally::Woken;

impl Engine {
    /// Gives back memory that timers have left behind.
    ///
    /// # Errors
    /// `NoMemory`: not even enough to look for it (what could be given back has been); `Forked`.
    pub fn trim(&self) -> Result<(), Error> {
        self.alive()?;
        for shard in self.shards() {
            // Relaxed, here and in `tidy`: nothing comes with it.
            shard.trim_wanted.store(true, Ordering::Relaxed);
            shard.alarm.ring(Woken::Other, self.clock());
        }
        self.shards().iter().try_for_each(|shard| shard.slab.trim().ok_or(Error::NoMemory))
    }
}

impl Slab {
    /// `None`: no memory.
    fn trim(&self) -> Option<()> {
        let mut held = Vec::new();
        let found = self.collect_free(&mut held);
        // Whatever happened, the magazines go back.
        let free = found.map(|mut free| {
            self.give_back(&mut free);
            free
        });
        for index in held {
            self.put_back(index, free.as_ref());
        }
        free?;
        trim_stack(&self.magazines, &self.empty, |magazine| &magazine.link)?;
        self.extras.trim()
    }
}

impl Extras {
    fn trim(&self) -> Option<()> {
        trim_stack(&self.extras, &self.free_extras, |extra| &extra.link)?;
        trim_stack(&self.notes, &self.free_notes, |note| &note.link)
    }
}

/// Gives back the memory of the elements that lie on a stack of free ones.
fn trim_stack<T: Zeroed>(
    arena: &Arena<T>,
    stack: &TaggedStack,
    link: impl Fn(&T) -> &AtomicU32,
) -> Option<()> {
    let mut free = Free::new(arena.used())?;
    let mut all = Vec::new();
    while all.try_reserve(1).is_ok() {
        let Some(index) = stack.pop(|index| link(arena.at(index))) else { break };
        all.push(index);
        free.insert(index);
    }
    arena.give_back(&mut free, |_| 0);
    for index in all.into_iter().filter(|&index| free.contains(index)) {
        stack.push(index, link(arena.at(index)));
    }
    Some(())
}
