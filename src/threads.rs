//! What a thread keeps of each service that it uses: its ports, its home shard, the shards that it
//! owns, and the turn that it runs.
//!
//! Ground rules: all of it is the thread's own. Most calls do not come here, but find their port through one of
//! the `doors`, which are opened here. When the thread ends, its shards are detached and its ports go back. A
//! call that comes later still, from another thread-local's destructor, borrows a port for as long as it
//! takes.

use crate::arm::Prepared;
use crate::doors::ANY;
use crate::engine::Engine;
use crate::port::Port;
use crate::shard::Shard;
use crate::shared::WeakShared;
use crate::status::Error;
use crate::sys::memory::{boxed, boxed_slice};
use std::cell::{Cell, RefCell, RefMut};
use std::ops::Deref;
use std::ptr;

/// What this thread keeps of one service.
pub(crate) struct PortSet {
    engine_id: u64,
    engine: WeakShared<Engine>,
    ports: Box<[Cell<*const Port>]>,
    /// Where this thread's timers go when it does not say, once it has started one.
    home: Cell<Option<u32>>,
    /// The shards that this thread is attached to, the last one last.
    attached: RefCell<Vec<u32>>,
    /// One more than the shard whose turn this thread runs, or 0.
    turning: Cell<u32>,
    /// Room for the timers of a batch while it is being prepared.
    pub(crate) batch: RefCell<Vec<(u32, Prepared)>>,
}

/// All sets of a thread. They are boxed, so that `LAST` can point at one.
#[expect(clippy::vec_box, reason = "`LAST` points at a set, so it must not move")]
struct Sets(RefCell<Vec<Box<PortSet>>>);

#[cfg(not(loom))]
thread_local! {
    static LAST: Cell<(u64, *const PortSet)> = const { Cell::new((0, ptr::null())) };
    static SETS: Sets = const { Sets(RefCell::new(Vec::new())) };
}
#[cfg(loom)]
loom::thread_local! {
    static LAST: Cell<(u64, *const PortSet)> = Cell::new((0, ptr::null()));
    static SETS: Sets = Sets(RefCell::new(Vec::new()));
}

/// A port for one operation.
pub(crate) enum PortRef<'a> {
    /// The thread's own.
    Kept(&'a Port),
    /// Claimed for this operation.
    Lent(&'a Port, &'a Shard),
}

impl Deref for PortRef<'_> {
    type Target = Port;

    #[inline]
    fn deref(&self) -> &Port {
        match self {
            PortRef::Kept(port) | PortRef::Lent(port, _) => port,
        }
    }
}

impl Drop for PortRef<'_> {
    #[inline]
    fn drop(&mut self) {
        if let PortRef::Lent(port, shard) = self {
            // SAFETY: claimed by `port` for this operation, which is over.
            unsafe { port.give_up(&shard.slab) };
        }
    }
}

impl Engine {
    /// This thread's set, if it has one and is not past its end.
    #[inline]
    pub(crate) fn set(&self) -> Option<&PortSet> {
        let (id, set) = LAST.with(Cell::get);
        if id == self.id() {
            // SAFETY: `LAST` points at a set in `SETS`, which is cleared before the set goes; the
            // reference is used by this thread, within the call.
            return Some(unsafe { &*set });
        }
        self.find_set()
    }

    /// As `set`, for what cannot be done without one.
    pub(crate) fn needed_set(&self) -> Result<&PortSet, Error> {
        let past_its_end = || SETS.try_with(|_| ()).is_err();
        let why = || if past_its_end() { Error::Unsupported } else { Error::NoMemory };
        self.set().ok_or_else(why)
    }

    #[cold]
    fn find_set(&self) -> Option<&PortSet> {
        SETS.try_with(|sets| {
            let mut sets = sets.0.borrow_mut();
            if !sets.iter().any(|set| set.engine_id == self.id()) {
                sets.retain(|set| set.engine.is_alive());
                sets.try_reserve(1).ok()?;
                sets.push(boxed(PortSet {
                    engine_id: self.id(),
                    engine: self.weak(),
                    ports: boxed_slice(self.shards().iter().map(|_| Cell::new(ptr::null())))?,
                    home: Cell::new(None),
                    attached: RefCell::new(Vec::new()),
                    turning: Cell::new(0),
                    batch: RefCell::new(Vec::new()),
                })?);
            }
            let set = sets.iter().find(|set| set.engine_id == self.id())?;
            let set = ptr::from_ref(&**set);
            LAST.with(|last| last.set((self.id(), set)));
            // SAFETY: boxed, and dropped only as the thread ends or after the service is gone.
            Some(unsafe { &*set })
        })
        .ok()
        .flatten()
    }

    /// This thread's port of a shard.
    #[inline]
    pub(crate) fn port<'a>(&'a self, shard: &'a Shard) -> Result<PortRef<'a>, Error> {
        if let Some(set) = self.set() {
            let port = set.ports[shard.index as usize].get();
            // SAFETY: ports live as long as their shard, which lives as long as `self`.
            if let Some(port) = unsafe { port.as_ref() } {
                return Ok(PortRef::Kept(port));
            }
            let port = shard.claim_port()?;
            set.ports[shard.index as usize].set(port);
            // SAFETY: closed when the set goes, before the port is given up.
            unsafe { self.doors.open(shard.index, port) };
            return Ok(PortRef::Kept(port));
        }
        shard.claim_port().map(|port| PortRef::Lent(port, shard))
    }

    /// This thread's port of the shard with that number, or behind the door `ANY`, if a short way leads
    /// there.
    pub(crate) fn door(&self, code: u32) -> Option<&Port> {
        if cfg!(loom) { self.model_door(code) } else { self.doors.find(code) }
    }

    /// As `door`, if it is where it is looked for first.
    #[inline(always)]
    pub(crate) fn first_door(&self, code: u32) -> Option<&Port> {
        if cfg!(loom) { self.model_door(code) } else { self.doors.find_first(code) }
    }

    /// The same for a model, which has no table.
    fn model_door(&self, code: u32) -> Option<&Port> {
        let set = self.set()?;
        let index = if code == ANY { set.own_shard().or(set.home.get())? } else { code };
        // SAFETY: ports live as long as their shard, which lives as long as `self`.
        unsafe { set.ports.get(index as usize)?.get().as_ref() }
    }

    /// Opens the door to where this thread's timers go when it does not say.
    pub(crate) fn open_any(&self) {
        let Some(set) = self.set() else { return };
        let Some(index) = set.own_shard().or(set.home.get()) else { return };
        // SAFETY: ports live as long as their shard.
        if let Some(port) = unsafe { set.ports[index as usize].get().as_ref() } {
            // SAFETY: closed when another shard takes its place, and when the set goes.
            unsafe { self.doors.open(ANY, port) };
        }
    }
}

impl PortSet {
    /// One more than the shard whose turn this thread runs, or 0.
    #[inline]
    pub(crate) fn turning(&self) -> u32 {
        self.turning.get()
    }

    /// A turn of this thread begins (one more than the shard), or ends (0).
    pub(crate) fn set_turning(&self, engine: &Engine, turning: u32) {
        let before = self.own_shard();
        self.turning.set(turning);
        if self.own_shard() != before {
            engine.doors.close(ANY);
        }
    }

    /// The shards that this thread is attached to, to be changed.
    pub(crate) fn attached(&self, engine: &Engine) -> RefMut<'_, Vec<u32>> {
        engine.doors.close(ANY);
        self.attached.borrow_mut()
    }

    /// The shard that this thread owns: the one whose turn it runs, or the one it attached to
    /// last.
    #[inline]
    pub(crate) fn own_shard(&self) -> Option<u32> {
        match self.turning.get() {
            0 => self.attached.borrow().last().copied(),
            shard => Some(shard - 1),
        }
    }

    /// The home of a thread that owns no shard; the first call draws it.
    #[inline]
    pub(crate) fn home(&self, draw: impl FnOnce() -> u32) -> u32 {
        self.home.get().unwrap_or_else(|| {
            let home = draw();
            self.home.set(Some(home));
            home
        })
    }
}

impl Drop for PortSet {
    fn drop(&mut self) {
        let _ = LAST.try_with(|last| {
            if last.get().0 == self.engine_id {
                last.set((0, ptr::null()));
            }
        });
        let Some(engine) = self.engine.upgrade() else { return };
        engine.doors.close(ANY);
        for (shard, port) in engine.shards().iter().zip(&self.ports) {
            engine.doors.close(shard.index);
            // SAFETY: ports live as long as their shard, which the upgraded reference keeps.
            let Some(port) = (unsafe { port.get().as_ref() }) else { continue };
            if self.attached.borrow().contains(&shard.index) {
                shard.detach(port, engine.clock());
            }
            // SAFETY: this thread claimed it, and has forgotten it now.
            unsafe { port.give_up(&shard.slab) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    #[test]
    fn finding_a_port_is_two_loads() {
        assert!(!std::mem::needs_drop::<std::cell::Cell<(u64, *const super::PortSet)>>());
    }
}

/// Ends what the calling thread keeps, as the end of the thread would: a model's thread is joined before
/// its thread-locals are dropped. With `quietly` its ports are not given back, as if the thread lived on.
#[cfg(all(loom, test))]
pub(crate) fn leave(quietly: bool) {
    let _ = LAST.try_with(|last| last.set((0, ptr::null())));
    #[allow(unused_mut)]
    let mut sets = SETS.with(|sets| std::mem::take(&mut *sets.0.borrow_mut()));
    if quietly {
        sets.iter_mut().for_each(|set| set.engine = WeakShared::to_nothing());
    }
}
