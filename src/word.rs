//! The word: 64 bits that decide every race of a timer.
//!
//! ```text
//! 63  61 60              34 33                     0
//! | phase |   generation   |       offset           |
//! ```
//!
//! Because phase, generation and deadline share one word, "push out", "fire", "cancel" and "hand
//! back" are each one compare-and-swap from the value that was seen, and cannot tear. The offset is
//! the due tick counted from the record's origin (see `record`), or one of three codes:
//! [`Offset::NONE`] (nothing armed), [`Offset::NEVER`], and a range that names a `far` note for a
//! tick that does not fit.

use crate::handle::GENERATION_MASK;

const OFFSET_BITS: u32 = 34;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
const PHASE_SHIFT: u32 = 61;
const FAR_BASE: u64 = OFFSET_MASK - FAR_LIMIT - 1;
/// How many far notes can be named.
pub(crate) const FAR_LIMIT: u64 = (1 << 30) - 2;

/// What state the timer in a slot is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// No timer: the slot is free, or on its way to a free list.
    Free = 0,
    /// Armed. A reminder at its tick, or before, is in the wheel or on its way there.
    Pending = 1,
    /// Its callback is running. The offset is its next deadline, or none.
    Running = 2,
    /// Its callback is running and it cannot be armed again.
    Doomed = 3,
    /// As `Doomed`, and somebody sleeps until the callback is over.
    Awaited = 4,
    /// Its event waits in a queue. The offset of a periodic timer is its next deadline.
    Queued = 5,
    /// Cancelled; its drop is running on the thread that cancelled it.
    Ending = 6,
    /// As `Ending`, and somebody sleeps until the drop is over.
    EndingAwaited = 7,
}

impl Phase {
    /// Is the drop running of a timer that was cancelled?
    pub(crate) fn is_ending(self) -> bool {
        matches!(self, Phase::Ending | Phase::EndingAwaited)
    }

    /// Is the callback running?
    #[inline]
    pub(crate) fn is_running(self) -> bool {
        matches!(self, Phase::Running | Phase::Doomed | Phase::Awaited)
    }
}

/// The deadline's part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset(u64);

impl Offset {
    /// Nothing is armed.
    pub(crate) const NONE: Offset = Offset(OFFSET_MASK);
    /// Armed for an instant that does not come.
    pub(crate) const NEVER: Offset = Offset(OFFSET_MASK - 1);

    /// A tick this far from the record's origin, if it fits.
    #[inline]
    pub(crate) fn near(ticks: u64) -> Option<Offset> {
        (ticks < FAR_BASE).then_some(Offset(ticks))
    }

    /// The far note with this index.
    #[inline]
    pub(crate) fn far(note: u32) -> Offset {
        debug_assert!(u64::from(note) < FAR_LIMIT);
        Offset(FAR_BASE + u64::from(note))
    }

    /// The index of the far note that this offset names.
    #[inline]
    pub(crate) fn far_note(self) -> Option<u32> {
        (FAR_BASE..FAR_BASE + FAR_LIMIT).contains(&self.0).then(|| (self.0 - FAR_BASE) as u32)
    }

    /// Is it a tick, and neither a code nor a note's name?
    #[inline]
    pub(crate) fn is_near(self) -> bool {
        self.0 < FAR_BASE
    }

    /// The ticks of a near offset.
    #[inline]
    pub(crate) fn ticks(self) -> u64 {
        self.0
    }
}

/// The whole word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    #[inline]
    pub(crate) fn new(phase: Phase, generation: u32, offset: Offset) -> Word {
        Word(
            u64::from(phase as u8) << PHASE_SHIFT
                | u64::from(generation & GENERATION_MASK) << OFFSET_BITS
                | offset.0,
        )
    }

    /// The word of a free slot, whose next timer has this generation.
    #[inline]
    pub(crate) fn free(generation: u32) -> Word {
        Word::new(Phase::Free, generation, Offset::NONE)
    }

    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Word {
        Word(bits)
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn phase(self) -> Phase {
        match self.0 >> PHASE_SHIFT {
            0 => Phase::Free,
            1 => Phase::Pending,
            2 => Phase::Running,
            3 => Phase::Doomed,
            4 => Phase::Awaited,
            5 => Phase::Queued,
            6 => Phase::Ending,
            _ => Phase::EndingAwaited,
        }
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> OFFSET_BITS) as u32 & GENERATION_MASK
    }

    /// The generation of a free slot's word.
    #[inline(always)]
    pub(crate) fn free_generation(self) -> u32 {
        debug_assert!(self == Word::free(self.generation()));
        (self.0 >> OFFSET_BITS) as u32
    }

    /// The word of a timer that is started in a slot whose word is this.
    #[inline(always)]
    pub(crate) fn begun(self, offset: Offset) -> Word {
        debug_assert!(self == Word::free(self.generation()));
        let first = Word::new(Phase::Pending, 0, Offset(0)).0 - Word::free(0).0;
        Word(self.0 + first + offset.0)
    }

    /// Is a timer armed, or does its event wait?
    #[inline]
    pub(crate) fn waits(self) -> bool {
        matches!(self.phase(), Phase::Pending | Phase::Queued)
    }

    /// Is this generation's timer armed?
    #[inline]
    pub(crate) fn is_pending(self, generation: u32) -> bool {
        self.0 >> OFFSET_BITS == Word::new(Phase::Pending, generation, Offset(0)).0 >> OFFSET_BITS
    }

    /// Is this generation's timer armed, for a near deadline?
    #[inline(always)]
    pub(crate) fn is_pending_near(self, generation: u32) -> bool {
        let first = Word::new(Phase::Pending, generation, Offset(0));
        self.0.wrapping_sub(first.0) < FAR_BASE
    }

    #[inline]
    pub(crate) fn offset(self) -> Offset {
        Offset(self.0 & OFFSET_MASK)
    }

    /// The same timer in another phase, with another deadline.
    #[inline]
    pub(crate) fn with(self, phase: Phase, offset: Offset) -> Word {
        Word::new(phase, self.generation(), offset)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch() {
        let phases = [
            Phase::Free,
            Phase::Pending,
            Phase::Running,
            Phase::Doomed,
            Phase::Awaited,
            Phase::Queued,
            Phase::Ending,
            Phase::EndingAwaited,
        ];
        let offsets = [
            Offset::NONE,
            Offset::NEVER,
            Offset::near(0).unwrap(),
            Offset::near(FAR_BASE - 1).unwrap(),
            Offset::far(0),
            Offset::far((FAR_LIMIT - 1) as u32),
        ];
        for phase in phases {
            for generation in [0, 1, GENERATION_MASK] {
                for offset in offsets {
                    let word = Word::new(phase, generation, offset);
                    assert_eq!(Word::from_bits(word.bits()), word);
                    assert_eq!(word.phase(), phase);
                    assert_eq!(word.generation(), generation);
                    assert_eq!(word.offset(), offset);
                }
            }
        }
        assert!(Offset::near(FAR_BASE).is_none());
        assert_eq!(Offset::far(7).far_note(), Some(7));
        assert_eq!(Offset::NONE.far_note(), None);
        assert_eq!(Offset::NEVER.far_note(), None);
        assert_eq!(Offset::near(FAR_BASE - 1).unwrap().far_note(), None);
    }
}
