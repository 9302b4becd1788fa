//! The short way from a thread and a shard to the thread's port there.
//!
//! Ground rules: an engine keeps a small table of doors, each for one thread and one shard (or for
//! whatever shard the thread's timers go to). A thread puts in and takes out its own doors alone, so what
//! it finds under its own key it has put there itself, and to find one takes no call and no lock. A door
//! says in addition that no more needs to be asked than the gate:
//! - The table lies in memory that the kernel empties in a forked child, so there nobody finds one.
//! - Nobody has a door where `barrier::light` is a fence of its own, so who comes through one needs none.
//!
//! Who finds no door goes the long way, through the thread-locals (`threads`): at first, after the end of its
//! thread-locals, in a child, or where other threads have taken all its places in the table.

use crate::port::Port;
use crate::sync::Ordering;
use crate::sys::{barrier, fork, thread};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

/// The shard that a thread's timers go to when it does not say, as the number of a door.
pub(crate) const ANY: u32 = 256;
const CODE_BITS: u32 = 9;
const DOORS: usize = 512;
/// Places at which a door may be: one cache line.
const WAYS: usize = 4;

struct Door {
    /// The thread's pointer and the shard; 0: the place is free.
    key: AtomicUsize,
    port: AtomicPtr<Port>,
}

/// See the head of this file.
pub(crate) struct Doors {
    table: NonNull<[Door; DOORS]>,
    /// May there be doors?
    useful: bool,
}

// SAFETY: the table is atomics, and ports are shared.
unsafe impl Send for Doors {}
// SAFETY: as above.
unsafe impl Sync for Doors {}

impl Doors {
    /// No doors yet. `None`: no memory.
    pub(crate) fn new() -> std::io::Result<Doors> {
        let (table, watched) = fork::watched_pages(size_of::<[Door; DOORS]>())?;
        Ok(Doors { table: table.cast(), useful: watched && barrier::light_is_free() })
    }

    #[inline(always)]
    fn key(code: u32) -> usize {
        thread::pointer() << CODE_BITS | code as usize
    }

    #[inline(always)]
    fn place(&self, key: usize, way: usize) -> &Door {
        // Fibonacci hashing (Knuth): pointers differ in bits that may be anywhere.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - DOORS.ilog2());
        // SAFETY: mapped as long as `self`, zeroed, and both are atomics.
        unsafe { &(*self.table.as_ptr())[hash ^ way] }
    }

    /// The calling thread's port behind a door, if that is where it is looked for first.
    #[inline(always)]
    pub(crate) fn find_first(&self, code: u32) -> Option<&Port> {
        self.behind(Doors::key(code), 0)
    }

    /// The calling thread's port behind a door.
    pub(crate) fn find(&self, code: u32) -> Option<&Port> {
        let key = Doors::key(code);
        (0..WAYS).find_map(|way| self.behind(key, way))
    }

    #[inline(always)]
    fn behind(&self, key: usize, way: usize) -> Option<&Port> {
        let door = self.place(key, way);
        // Relaxed: a thread finds its own key only where it has stored it itself.
        if door.key.load(Ordering::Relaxed) != key {
            return None;
        }
        let port = door.port.load(Ordering::Relaxed);
        // SAFETY: stored with the key, by `open`, whose caller vouches for it.
        unsafe {
            std::hint::assert_unchecked(!port.is_null());
            Some(&*port)
        }
    }

    /// Makes a door for the calling thread, if there is a place and no fence is needed.
    ///
    /// # Safety
    /// The port is this thread's and lives until the door is closed, or the thread ends without passing
    /// it again.
    pub(crate) unsafe fn open(&self, code: u32, port: &Port) {
        let key = Doors::key(code);
        if !self.useful || self.find(code).is_some() {
            return;
        }
        for way in 0..WAYS {
            let door = self.place(key, way);
            // Acquire: pairs with the Release in `close`: the last thread's port is stored over.
            let free = door.key.compare_exchange(0, key, Ordering::Acquire, Ordering::Relaxed);
            if free.is_ok() {
                door.port.store(std::ptr::from_ref(port).cast_mut(), Ordering::Relaxed);
                return;
            }
        }
    }

    /// Takes the calling thread's door away, if it has one.
    pub(crate) fn close(&self, code: u32) {
        let key = Doors::key(code);
        for way in 0..WAYS {
            let door = self.place(key, way);
            if door.key.load(Ordering::Relaxed) == key {
                // Release: pairs with the Acquire in `open`.
                door.key.store(0, Ordering::Release);
            }
        }
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size; nobody else is here.
        unsafe { fork::unmap_pages(self.table.cast(), size_of::<[Door; DOORS]>()) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_thread_finds_its_own() {
        barrier::init();
        let doors = Doors::new().unwrap();
        if !doors.useful {
            return println!("SKIPPED: this kernel cannot have doors");
        }
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let ports: Vec<Port> = (0..20).map(|_| Port::new(std::ptr::null())).collect();
                    for _ in 0..100 {
                        for (code, port) in ports.iter().enumerate() {
                            // SAFETY: closed below, before the port goes.
                            unsafe { doors.open(code as u32, port) };
                        }
                        for (code, port) in ports.iter().enumerate() {
                            let found = doors.find(code as u32);
                            assert!(found.is_none_or(|found| std::ptr::eq(found, port)));
                            doors.close(code as u32);
                            assert!(doors.find(code as u32).is_none());
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_door_is_there_until_it_is_closed() {
        barrier::init();
        let (doors, port) = (Doors::new().unwrap(), Port::new(std::ptr::null()));
        // SAFETY: the port outlives the table.
        unsafe { doors.open(ANY, &port) };
        assert_eq!(doors.find(ANY).is_some(), doors.useful);
        assert!(doors.find(0).is_none());
        doors.close(ANY);
        assert!(doors.find(ANY).is_none());
    }
}
