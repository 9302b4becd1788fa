//! The C ABI's two shortest starts: one function and its context, after a delay or at a deadline.
//!
//! Ground rules: any thread; as `operations`, of which this is a part. The first function is small enough to be part of
//! the export that calls it.

use crate::doors::ANY;
use crate::engine::Engine;
use crate::port::Port;
use crate::record::pointer_of;
use crate::reset::To;
use crate::status::Error;
use crate::types::{Callback, Spec, TIMER_ABSOLUTE};
use std::ffi::c_void;

impl Engine {
    /// As `arm`, for a one-shot on any shard that calls `callback`: at the deadline `ns` if `AT`, otherwise
    /// after `ns`.
    ///
    /// # Errors
    /// As `arm`.
    ///
    /// # Safety
    /// As `arm`.
    #[inline(always)]
    pub unsafe fn arm_one<const AT: bool>(
        &self,
        ns: u64,
        callback: Callback,
        ctx: *mut c_void,
        out: *mut u64,
    ) -> Result<(), Error> {
        let port = self.first_door(ANY);
        if let Some(port) = port
            && port.is_exclusive()
        {
            let (to, callback) = (To::of::<AT>(ns), pointer_of(Some(callback)));
            // SAFETY: the port is this thread's, which owns the shard exclusively; the rest is the
            // caller's promise.
            let done = unsafe {
                port.shard().arm_plain::<true>(port, &self.clock, to, callback, ctx, out)
            };
            if done {
                return Ok(());
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.arm_one_next::<AT>(port, ns, callback, ctx, out) }
    }

    #[inline(never)]
    unsafe fn arm_one_next<const AT: bool>(
        &self,
        port: Option<&Port>,
        ns: u64,
        callback: Callback,
        ctx: *mut c_void,
        out: *mut u64,
    ) -> Result<(), Error> {
        let (to, pointer) = (To::of::<AT>(ns), pointer_of(Some(callback)));
        if let Some(port) = port
            // SAFETY: the port is this thread's; the rest is the caller's promise.
            && unsafe {
                port.shard().arm_plain::<false>(port, &self.clock, to, pointer, ctx, out)
            }
        {
            return Ok(());
        }
        let flags = if AT { TIMER_ABSOLUTE } else { 0 };
        let callback = Some(callback);
        let spec = Spec { delay_ns: ns, flags, callback, ctx, ..Spec::default() };
        // SAFETY: the caller's promise.
        unsafe { if port.is_some() { self.arm_slowly(&spec, out) } else { self.arm(&spec, out) } }
    }
}
