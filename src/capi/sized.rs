//! Structs that carry their own `size`, so that a program and a library of different releases
//! understand each other.
//!
//! A struct may only grow, at its end. A program that knows less than the library is refused when
//! its struct is smaller than the first release's. One that knows more is understood as long as
//! the bytes that this library does not know are zero: it asks for nothing new.

/// Marks a `repr(C)` struct whose first field is `size: usize`, and which is valid for all bytes.
///
/// # Safety
/// It is as said above.
pub(super) unsafe trait OwnSize: Copy {
    /// The struct's size in the first release.
    const FIRST: usize;
}

/// Largest size that is believed: a number beyond is not a size but garbage, and the bytes it
/// claims must not be read.
const LARGEST: usize = 1 << 16;

/// The size that the struct claims; `None` if the pointer is null or no such struct can be.
///
/// # Safety
/// `at` is null or points to a struct's first field.
pub(super) unsafe fn claimed<T: OwnSize>(at: *const T) -> Option<usize> {
    if at.is_null() {
        return None;
    }
    // SAFETY: `size` is the first field (`OwnSize`); the caller's promise.
    let size = unsafe { at.cast::<usize>().read_unaligned() };
    (T::FIRST..=LARGEST).contains(&size).then_some(size)
}

/// The part of the struct that this library knows.
///
/// # Safety
/// `at` points to `size` bytes, a number that `claimed` gave.
pub(super) unsafe fn known<T: OwnSize>(at: *const T) -> T {
    // SAFETY: the first release's struct is this one, so `size` covers all of `T`; each bit
    // pattern is a `T` (`OwnSize`). An odd stride may have left it unaligned.
    unsafe { at.read_unaligned() }
}

/// Whether the bytes that this library does not know are all zero.
///
/// # Safety
/// `at` points to `size` readable bytes, a number that `claimed` gave.
pub(super) unsafe fn asks_nothing_new<T: OwnSize>(at: *const T, size: usize) -> bool {
    // SAFETY: `size` is at least `T::FIRST`, which is the size of `T`: within the bytes promised.
    let rest = unsafe {
        std::slice::from_raw_parts(at.cast::<u8>().add(size_of::<T>()), size - size_of::<T>())
    };
    rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Two {
        size: usize,
        value: u64,
    }

    // SAFETY: repr(C), `size` first, plain numbers.
    unsafe impl OwnSize for Two {
        const FIRST: usize = size_of::<Two>();
    }

    #[test]
    fn only_sizes_from_the_first_release_to_the_largest_are_believed() {
        let mut two = Two { size: 0, value: 7 };
        for (size, believed) in [
            (0, false),
            (8, false),
            (15, false),
            (16, true),
            (17, true),
            (LARGEST, true),
            (LARGEST + 1, false),
            (usize::MAX, false),
        ] {
            two.size = size;
            // SAFETY: the first field is there.
            let claim = unsafe { claimed(&two) };
            assert_eq!(claim, believed.then_some(size));
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { claimed::<Two>(std::ptr::null()) }, None);
    }

    #[test]
    fn unknown_bytes_must_be_zero() {
        let mut words = [24usize, 7, 0];
        // SAFETY: three words are 24 bytes, which begin with a `Two`.
        unsafe {
            assert_eq!(known(words.as_ptr().cast::<Two>()).value, 7);
            assert!(asks_nothing_new(words.as_ptr().cast::<Two>(), 24));
            words[2] = 1 << 56;
            assert!(!asks_nothing_new(words.as_ptr().cast::<Two>(), 24));
            assert!(asks_nothing_new(words.as_ptr().cast::<Two>(), 23));
            assert!(asks_nothing_new(words.as_ptr().cast::<Two>(), 16));
        }
    }
}
