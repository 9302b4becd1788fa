//! Big arrays that begin as zeros.
//!
//! Ground rules: whether there is memory is the caller's question to ask (`None`), never a reason
//! to abort. Nothing is written at birth, so pages that are never used are never given out by the
//! system: an array may be sized for the worst case. Elements are aligned to a cache line (64
//! bytes) as a whole, not each.
//!
//! The alignment is made by hand, with up to 64 bytes to spare in front: the allocator, asked for
//! an alignment beyond its own, would fetch the memory and then write the zeros itself.
//!
//! In a model every element is made by `Default`, since a loom atomic is not made of bytes.

use std::ops::{Deref, DerefMut};

/// A type whose bytes may all be zero, and then mean the same as its `Default`.
///
/// # Safety
/// All-zero bytes are a valid value, and dropping a value does nothing.
pub(crate) unsafe trait Zeroed: Default {}

macro_rules! zeroed {
    ($($t:ty),*) => { $(
        // SAFETY: an integer, or an atomic one, of value 0.
        unsafe impl Zeroed for $t {}
    )* };
}
zeroed!(u8, u16, u32, u64, usize, i32);
zeroed!(crate::sync::AtomicU16, crate::sync::AtomicU32, crate::sync::AtomicU64);
zeroed!(crate::sync::AtomicI32, crate::sync::AtomicUsize);

/// An owned array that began as zeros; a slice to its users.
#[derive(Debug)]
pub(crate) struct ZeroedSlice<T: Zeroed> {
    #[cfg(not(loom))]
    inner: raw::Array<T>,
    #[cfg(loom)]
    inner: Box<[T]>,
}

impl<T: Zeroed> ZeroedSlice<T> {
    /// `None`: the memory is not there, or `len` elements are more than an address can span.
    pub(crate) fn new(len: usize) -> Option<Self> {
        #[cfg(not(loom))]
        let inner = raw::Array::new(len)?;
        #[cfg(loom)]
        let inner = (0..len).map(|_| T::default()).collect();
        Some(ZeroedSlice { inner })
    }
}

impl<T: Zeroed> Deref for ZeroedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.inner
    }
}

impl<T: Zeroed> DerefMut for ZeroedSlice<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.inner
    }
}

#[cfg(not(loom))]
mod raw {
    use super::Zeroed;
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};
    use std::ptr::NonNull;

    const LINE: usize = 64;
    /// What every allocator gives without a detour.
    const NATURAL: usize = 16;

    #[derive(Debug)]
    pub(super) struct Array<T: Zeroed> {
        start: NonNull<T>,
        len: usize,
        block: NonNull<u8>,
        layout: Layout,
        owns: PhantomData<T>,
    }

    // SAFETY: the array owns its elements, as a Box would.
    unsafe impl<T: Zeroed + Send> Send for Array<T> {}
    // SAFETY: as above.
    unsafe impl<T: Zeroed + Sync> Sync for Array<T> {}

    impl<T: Zeroed> Array<T> {
        pub(super) fn new(len: usize) -> Option<Self> {
            const { assert!(align_of::<T>() <= LINE && !std::mem::needs_drop::<T>()) };
            let bytes = size_of::<T>().checked_mul(len)?.checked_add(LINE)?;
            let layout = Layout::from_size_align(bytes, NATURAL).ok()?;
            // SAFETY: `layout` is LINE bytes long at least.
            let block = NonNull::new(unsafe { alloc_zeroed(layout) })?;
            let ahead = block.as_ptr().align_offset(LINE);
            debug_assert!(ahead < LINE);
            // SAFETY: less than LINE ahead, within the block, which has that much to spare.
            let start = unsafe { block.add(ahead) }.cast();
            Some(Array { start, len, block, layout, owns: PhantomData })
        }
    }

    impl<T: Zeroed> Deref for Array<T> {
        type Target = [T];

        #[inline]
        fn deref(&self) -> &[T] {
            // SAFETY: `len` elements lie there, aligned, and began as zeros, which `Zeroed` makes
            // valid values; the borrow of `self` keeps them.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }

    impl<T: Zeroed> DerefMut for Array<T> {
        #[inline]
        fn deref_mut(&mut self) -> &mut [T] {
            // SAFETY: as in `deref`, and the borrow is exclusive.
            unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
        }
    }

    impl<T: Zeroed> Drop for Array<T> {
        fn drop(&mut self) {
            // SAFETY: from `new`, with this layout, freed once; the elements need no drop.
            unsafe { dealloc(self.block.as_ptr(), self.layout) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn begins_as_zeros_on_a_line() {
        for len in [0, 1, 63, 1000, 1 << 20] {
            let mut array = ZeroedSlice::<u64>::new(len).unwrap();
            assert_eq!(array.len(), len);
            assert_eq!(array.as_ptr().addr() % 64, 0);
            assert!(array.iter().all(|&x| x == 0));
            if let Some(last) = array.last_mut() {
                *last = 1;
            }
        }
    }

    #[test]
    fn too_much_is_refused() {
        assert!(ZeroedSlice::<u64>::new(usize::MAX).is_none());
        assert!(ZeroedSlice::<u64>::new(usize::MAX / 8).is_none());
        assert!(ZeroedSlice::<u64>::new(1 << 57).is_none());
    }

    #[test]
    fn what_is_not_used_is_not_fetched() {
        let array = ZeroedSlice::<u64>::new(1 << 24).unwrap();
        assert_eq!(array[1 << 23], 0);
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let from = array.as_ptr().addr().next_multiple_of(page);
        let bytes = (1 << 27) - 2 * page;
        let mut there = vec![0u8; bytes.div_ceil(page)];
        let to = there.as_mut_ptr();
        // SAFETY: whole pages of the array, and one byte to write to for each.
        let refused = unsafe { libc::mincore(std::ptr::without_provenance_mut(from), bytes, to) };
        assert_eq!(refused, 0);
        let fetched = there.iter().filter(|&&byte| byte & 1 == 1).count();
        assert!(fetched < there.len() / 2, "{fetched} pages of zeros were written");
    }
}
