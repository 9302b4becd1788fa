//! Big arrays that begin as zeros.
//!
//! Ground rules: whether there is memory is the caller's question to ask (`None`), never a reason
//! to abort. Nothing is written at birth, so pages that are never used are never given out by the
//! system: an array may be sized for the worst case. An array begins on a cache line (64 bytes).
//!
//! The alignment is made by hand, with up to 64 bytes to spare in front: the allocator, asked for
//! an alignment beyond its own, would fetch the memory and then write the zeros itself. The word
//! before the array says where its block begins.
//!
//! In a model every element is made by `Default`, since a loom atomic is not made of bytes.

use std::ptr::NonNull;

/// A box, if there is memory for it.
pub(crate) fn boxed<T>(value: T) -> Option<Box<T>> {
    if size_of::<T>() == 0 {
        // Takes no memory.
        return Some(Box::new(value));
    }
    let layout = std::alloc::Layout::new::<T>();
    // SAFETY: the layout is not of size zero.
    let place = NonNull::new(unsafe { std::alloc::alloc(layout) })?.cast::<T>();
    // SAFETY: fresh memory of the value's layout, from the allocator that a box gives it back to.
    unsafe {
        place.write(value);
        Some(Box::from_raw(place.as_ptr()))
    }
}

/// A boxed slice, if there is memory for it.
pub(crate) fn boxed_slice<T>(elements: impl ExactSizeIterator<Item = T>) -> Option<Box<[T]>> {
    let mut all = Vec::new();
    all.try_reserve_exact(elements.len()).ok()?;
    all.extend(elements);
    Some(all.into_boxed_slice())
}

/// A type whose bytes may all be zero, and then mean the same as its `Default`.
///
/// # Safety
/// All-zero bytes are a valid value, and dropping a value does nothing.
pub(crate) unsafe trait Zeroed: Default {}

#[cfg(not(loom))]
const LINE: usize = 64;

#[cfg(not(loom))]
fn layout<T>(len: usize) -> Option<std::alloc::Layout> {
    const { assert!(align_of::<T>() <= LINE && !std::mem::needs_drop::<T>()) };
    let bytes = size_of::<T>().checked_mul(len)?.checked_add(LINE)?;
    std::alloc::Layout::from_size_align(bytes, align_of::<u128>()).ok()
}

/// An array of zeros. `None`: the memory is not there, or is more than an address can span.
#[cfg(not(loom))]
pub(crate) fn allocate<T: Zeroed>(len: usize) -> Option<NonNull<T>> {
    let layout = layout::<T>(len)?;
    // SAFETY: the layout is a line long at least.
    let block = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
    // Blocks are aligned to 16, so between 16 and 64 bytes lie before the next line.
    let ahead = LINE - block.addr().get() % LINE;
    // SAFETY: at most a line ahead, within the block, which has that much to spare.
    let start = unsafe { block.add(ahead) };
    // SAFETY: the word before `start` is in the block, aligned, and no part of the array.
    unsafe { start.cast::<*mut u8>().sub(1).write(block.as_ptr()) };
    ask_for_huge_pages(start.addr().get(), layout.size() - ahead);
    Some(start.cast())
}

/// Asks the system for huge pages where the array is large, as records are looked up at random. Where it
/// has none to give all goes on with small ones.
#[cfg(not(loom))]
fn ask_for_huge_pages(address: usize, bytes: usize) {
    const HUGE: usize = 1 << 21;
    let first = address.next_multiple_of(HUGE);
    let end = (address + bytes) / HUGE * HUGE;
    if end > first {
        // SAFETY: whole pages within fresh memory of ours; advice that changes no content.
        unsafe {
            let at = std::ptr::without_provenance_mut(first);
            libc::madvise(at, end - first, libc::MADV_HUGEPAGE);
        }
    }
}

/// Gives an array back.
///
/// # Safety
/// `array` came from `allocate` with this length, and nobody uses it any more.
#[cfg(not(loom))]
pub(crate) unsafe fn release<T: Zeroed>(array: NonNull<T>, len: usize) {
    let layout = layout::<T>(len).expect("the layout it was allocated with");
    // SAFETY: `allocate` has written the beginning of the block there, and used this layout.
    unsafe {
        let block = array.cast::<*mut u8>().sub(1).read();
        std::alloc::dealloc(block, layout);
    }
}

/// What is given back is a multiple of this long, and begins at one; a system with larger pages refuses
/// those that are not.
pub(crate) const PAGE: usize = 4096;

/// Gives pages in the midst of an array back to the system. They stay where they are, and read as zeros, or
/// as what they were if the system would not have them.
///
/// # Safety
/// The pages lie within one array, and nobody minds their content.
#[cfg(not(loom))]
pub(crate) unsafe fn discard(pages: *mut [u8]) {
    // SAFETY: the caller's promise. A refusal changes nothing.
    unsafe { libc::madvise(pages.cast(), pages.len(), libc::MADV_DONTNEED) };
}

/// In a model memory stays what it is.
///
/// # Safety
/// None.
#[cfg(loom)]
pub(crate) unsafe fn discard(_: *mut [u8]) {}

/// An array of defaults.
#[cfg(loom)]
pub(crate) fn allocate<T: Zeroed>(len: usize) -> Option<NonNull<T>> {
    let elements: Box<[T]> = (0..len).map(|_| T::default()).collect();
    Some(NonNull::from(Box::leak(elements)).cast())
}

/// Gives an array back.
///
/// # Safety
/// `array` came from `allocate` with this length, and nobody uses it any more.
#[cfg(loom)]
pub(crate) unsafe fn release<T: Zeroed>(array: NonNull<T>, len: usize) {
    let slice = std::ptr::slice_from_raw_parts_mut(array.as_ptr(), len);
    // SAFETY: the caller gives what `allocate` gave, with the same length.
    drop(unsafe { Box::from_raw(slice) });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // SAFETY: an integer.
    unsafe impl Zeroed for u16 {}

    #[test]
    fn begins_as_zeros_on_a_line() {
        for len in [1, 7, 100_000] {
            let array = allocate::<u16>(len).unwrap();
            assert_eq!(array.addr().get() % LINE, 0);
            // SAFETY: `len` elements, zeroed.
            let slice = unsafe { std::slice::from_raw_parts(array.as_ptr(), len) };
            assert!(slice.iter().all(|&element| element == 0));
            // SAFETY: from `allocate`, not used any more.
            unsafe { release(array, len) };
        }
    }

    #[test]
    fn too_much_is_none() {
        assert!(allocate::<u16>(usize::MAX / 2).is_none());
        assert!(allocate::<u16>(usize::MAX / 4).is_none());
    }
}
