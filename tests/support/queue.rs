//! A queue of expiries. Not freed on its own: `free` does, or the service's end.

use super::watch::Ptr;
use super::*;

#[derive(Clone, Copy)]
pub struct Queue(*mut sw_queue);
// SAFETY: the C ABI allows a queue to be polled from any thread.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    pub(super) fn new(raw: *mut sw_queue) -> Queue {
        assert!(!raw.is_null());
        Queue(raw)
    }

    pub fn raw(self) -> *mut sw_queue {
        self.0
    }

    /// Takes up to `capacity` events.
    #[track_caller]
    pub fn poll(self, capacity: usize) -> Vec<(sw_expiry, Ptr)> {
        self.try_poll(capacity).expect("queue_poll")
    }

    pub fn try_poll(self, capacity: usize) -> Result<Vec<(sw_expiry, Ptr)>, sw_status> {
        let mut events = Vec::<sw_event>::with_capacity(capacity);
        let mut taken = 0;
        // SAFETY: the queue is alive as long as its service, the buffer holds `capacity`.
        let status = unsafe { sw_queue_poll(self.0, events.as_mut_ptr(), capacity, &mut taken) };
        if status != SW_OK {
            return Err(status);
        }
        assert!(taken <= capacity);
        // SAFETY: so many were written.
        unsafe { events.set_len(taken) };
        let mut found = Vec::new();
        for event in events {
            assert!(event.expiry.now_ns >= event.expiry.deadline_ns, "T1: an early event");
            found.push((event.expiry, Ptr(event.ctx)));
        }
        Ok(found)
    }

    #[track_caller]
    pub fn fd(self) -> i32 {
        let mut fd = -1;
        // SAFETY: the queue is alive as long as its service.
        assert_eq!(unsafe { sw_queue_fd(self.0, &mut fd) }, SW_OK);
        fd
    }

    #[track_caller]
    pub fn readable(self) -> bool {
        readable(self.fd())
    }

    pub fn free(self) -> sw_status {
        // SAFETY: the test does not use the queue afterwards.
        unsafe { sw_queue_free(self.0) }
    }
}
