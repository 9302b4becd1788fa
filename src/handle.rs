//! A timer's handle: 64 bits that say shard, slot and generation.
//!
//! ```text
//! 63      56 55                    27 26                  0
//! |  shard  |          slot          |     generation      |
//! ```
//!
//! Slot 0 and the last slot are never used, so neither 0 nor all ones is a handle. The generation
//! of a slot changes each time its timer ends, and a slot whose generations are used up is retired
//! for good: a stale handle never comes to mean another timer.

pub(crate) const SLOT_BITS: u32 = 29;
pub(crate) const GENERATION_BITS: u32 = 27;
/// One more than the largest slot that is ever used.
pub(crate) const SLOT_END: u32 = (1 << SLOT_BITS) - 1;
pub(crate) const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;

/// A handle taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) shard: u32,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Handle {
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.shard) << (SLOT_BITS + GENERATION_BITS)
            | u64::from(self.slot) << GENERATION_BITS
            | u64::from(self.generation)
    }

    #[inline]
    pub(crate) fn unpack(bits: u64) -> Handle {
        Handle {
            shard: (bits >> (SLOT_BITS + GENERATION_BITS)) as u32,
            slot: (bits >> GENERATION_BITS) as u32 & ((1 << SLOT_BITS) - 1),
            generation: bits as u32 & GENERATION_MASK,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn packs_and_unpacks() {
        for shard in [0, 1, 255] {
            for slot in [1, 12_345, SLOT_END - 1] {
                for generation in [0, 1, GENERATION_MASK] {
                    let handle = Handle { shard, slot, generation };
                    assert_eq!(Handle::unpack(handle.pack()), handle);
                    assert!(handle.pack() != 0 && handle.pack() != u64::MAX);
                }
            }
        }
    }
}
