//! Hints that a cache line will be wanted soon.
//!
//! Ground rules: a hint is never wrong. It reads nothing, writes nothing and faults on no address,
//! null and freed ones included, so these are safe functions of a raw pointer.

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
use std::arch::asm;

/// The line will be read soon.
#[inline(always)]
pub(crate) fn prefetch_read<T>(line: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch faults on no address and changes nothing but the caches; SSE is part of
    // x86_64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch faults on no address and changes nothing but the caches.
    unsafe {
        asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = line;
}

/// The line will be written soon: fetch it for ourselves alone, where the processor can.
#[inline(always)]
pub(crate) fn prefetch_write<T>(line: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: faults on no address and changes nothing but the caches. A processor without this
    // instruction takes its code for a no-op.
    unsafe {
        asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch faults on no address and changes nothing but the caches.
    unsafe {
        asm!("prfm pstl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_faults() {
        let here = 7u64;
        for address in [&raw const here, std::ptr::null(), std::ptr::without_provenance(usize::MAX)]
        {
            prefetch_read(address);
            prefetch_write(address);
        }
        assert_eq!(here, 7);
    }
}
