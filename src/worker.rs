//! A service's life: its threads, and how it stops.
//!
//! Ground rules: one thread a shard, pinned, named, with all signals blocked; it owns its shard from
//! beginning to end. Stop closes the gate of every shard, ends the threads (or waits for the polls of
//! hosts to end), lets every operation that is inside finish, and then is alone: what is still
//! armed it hands back.

use crate::cancel::is_in_drop_of;
use crate::config::{ClockKind, Config, Pinning};
use crate::engine::Engine;
use crate::gate::STOPPED;
use crate::queue::QueueInner;
use crate::record::drop_of;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::{AtomicBool, AtomicU32, Ordering, leaves_out_upkeep, yield_now};
use crate::sys::call::{drop_host, thread_hook};
use crate::sys::futex::WaitWord;
use crate::sys::memory::boxed;
use crate::sys::thread::{JoinHandle, current_token, spawn};
use crate::sys::{affinity, errno};
use crate::tally::Woken;
use crate::turn::Turning;
use crate::word::Phase;
use std::ffi::c_void;
use std::io;
use std::sync::Mutex;

const RUNNING: u32 = 0;
const STOPPING: u32 = 1;
const OVER: u32 = 2;

/// Where a service stands in its life.
pub(crate) struct Lifecycle {
    state: AtomicU32,
    /// The thread that stops it.
    stopper: AtomicU32,
    /// A thread wants it stopped, and waits for that, inside the drop of a timer that it cancelled.
    stopped_in_drop: AtomicBool,
    over: WaitWord,
    workers: Mutex<Vec<JoinHandle>>,
    pub(crate) reports: Reports,
}

/// What the service's threads say when they begin.
pub(crate) struct Reports {
    count: AtomicU32,
    /// The last error, as the system numbers it, or 0.
    refused: AtomicU32,
    changed: WaitWord,
}

impl Reports {
    fn new() -> Reports {
        let (count, refused) = (AtomicU32::new(0), AtomicU32::new(0));
        Reports { count, refused, changed: WaitWord::new() }
    }

    /// By each thread, once.
    fn tell(&self, ready: io::Result<()>) {
        if leaves_out_upkeep() {
            return;
        }
        if let Err(error) = ready {
            let code = error.raw_os_error().unwrap_or(libc::ENOMEM);
            self.refused.store(code as u32, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `hear`.
        self.count.fetch_add(1, Ordering::Release);
        self.changed.bump_and_wake_all();
    }

    /// Waits until so many have told; answers an error if one of them did.
    fn hear(&self, begun: u32) -> io::Result<()> {
        loop {
            let seen = self.changed.load();
            // Acquire: pairs with the Release in `tell`.
            if self.count.load(Ordering::Acquire) == begun {
                break;
            }
            self.changed.wait(seen, None);
        }
        match self.refused.load(Ordering::Relaxed) as i32 {
            0 => Ok(()),
            libc::ENOMEM => Err(io::ErrorKind::OutOfMemory.into()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

impl Lifecycle {
    pub(crate) fn new() -> Lifecycle {
        Lifecycle {
            state: AtomicU32::new(RUNNING),
            stopper: AtomicU32::new(0),
            stopped_in_drop: AtomicBool::new(false),
            over: WaitWord::new(),
            workers: Mutex::new(Vec::new()),
            reports: Reports::new(),
        }
    }
}

impl Engine {
    /// Refuses once the service has begun to stop.
    #[inline]
    pub(crate) fn running(&self) -> Result<(), Error> {
        // Relaxed: what it is asked for is decided at the gate.
        if self.lifecycle.state.load(Ordering::Relaxed) == RUNNING {
            Ok(())
        } else {
            Err(Error::Stopped)
        }
    }

    /// Is this one of the service's own threads?
    fn is_worker(&self, token: u32) -> bool {
        let owns = |shard: &Shard| shard.owner.load(Ordering::Relaxed) == token;
        self.driven().is_err() && self.shards().iter().any(owns)
    }

    /// The shard whose turn this thread runs. Found without what the thread keeps of the service, which is gone
    /// where the process ends inside a callback.
    pub(crate) fn turn_of(&self, token: u32) -> Option<&Shard> {
        // Relaxed: is it this thread itself?
        self.shards().iter().find(|shard| shard.turner.load(Ordering::Relaxed) == token)
    }

    /// Would a wait for a drop, by this thread, keep a stop from ending that the drop may wait for? `called`: it is in a
    /// callback.
    pub(crate) fn held_by_stop(&self, token: u32, called: bool) -> bool {
        let life = &self.lifecycle;
        // Relaxed: who sleeps is woken after the first is set, and the second is the thread's own.
        life.stopped_in_drop.load(Ordering::Relaxed)
            && (called || life.stopper.load(Ordering::Relaxed) == token)
    }

    /// Is a stop under way?
    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire: pairs with the Release at the end of `stop`: who finds it over finds all handed back.
        self.lifecycle.state.load(Ordering::Acquire) == STOPPING
    }

    /// Starts one thread a shard. All of them run and are pinned when this answers `Ok`; on an error
    /// none is left.
    pub(crate) fn start_workers(&self, config: &Config, cpus: &[u32]) -> Result<(), Error> {
        let mut begun = 0;
        let started = self.shards().iter().try_for_each(|shard| {
            if config.clock == ClockKind::Boottime {
                shard.alarm.sleep_on_descriptor(self.clock())?;
            }
            let cpu = match &config.pinning {
                Pinning::None => None,
                Pinning::Auto => cpus.get(shard.index as usize % cpus.len().max(1)).copied(),
                Pinning::List(list) => Some(list[shard.index as usize % list.len()]),
            };
            let (weak, index) = (self.weak(), shard.index);
            let engine = weak.upgrade().ok_or(io::ErrorKind::Other)?;
            let body = boxed(move || work(&engine, index, cpu));
            let mut workers = self.lock_workers();
            workers.try_reserve(1).map_err(|_| io::ErrorKind::OutOfMemory)?;
            let body = body.ok_or(io::ErrorKind::OutOfMemory)?;
            workers.push(spawn(&config.thread_name, index, body)?);
            begun += 1;
            Ok(())
        });
        let reported = self.lifecycle.reports.hear(begun);
        let pinned: io::Result<()> = started.and(reported);
        pinned.map_err(|error| {
            let _ = self.stop(&mut |_, _, _| {});
            errno::system(error)
        })
    }

    fn lock_workers(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle>> {
        self.lifecycle.workers.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Ends the service: no callback runs after it returns, its threads are joined, and every timer that
    /// had not fired is handed to `unfired` (timer, ctx, deadline), then dropped. Answers how many
    /// those were. A second call answers 0, once the first is over.
    ///
    /// # Errors
    /// `WouldDeadlock` from the service's own threads, callbacks and `unfired`; `Forked`.
    pub fn stop(&self, unfired: &mut dyn FnMut(u64, *mut c_void, u64)) -> Result<u64, Error> {
        self.alive()?;
        let token = current_token();
        if self.turn_of(token).is_some() || self.is_worker(token) {
            return Err(Error::WouldDeadlock);
        }
        let life = &self.lifecycle;
        if is_in_drop_of(self.shards()) {
            // Callbacks that wait for this drop are waited for here: see `held_by_stop`.
            life.stopped_in_drop.store(true, Ordering::Relaxed);
            self.shards().iter().for_each(|shard| shard.epoch.bump_and_wake_all());
        }
        // Relaxed: one thread stops; the others wait until it is over, or see that they are it.
        match life.state.compare_exchange(RUNNING, STOPPING, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => life.stopper.store(token, Ordering::Relaxed),
            Err(_) => return self.await_stop().map(|()| 0),
        }
        for shard in self.shards() {
            shard.gate.close(STOPPED);
        }
        for shard in self.shards() {
            shard.alarm.ring(Woken::Other, self.clock());
        }
        let workers = std::mem::take(&mut *self.lock_workers());
        for worker in workers {
            worker.join();
        }
        let mut returned = 0;
        for shard in self.shards() {
            for port in shard.ports() {
                port.own.busy.settle(false);
            }
            // Acquire: pairs with the Release at the turn's end.
            while shard.turner.load(Ordering::Acquire) != 0 {
                yield_now();
            }
            returned += shard.hand_back(unfired);
            self.alive()?;
        }
        // Release: pairs with the Acquire in `await_stop` and `is_stopping`.
        life.state.store(OVER, Ordering::Release);
        life.over.bump_and_wake_all();
        Ok(returned)
    }

    fn await_stop(&self) -> Result<(), Error> {
        let life = &self.lifecycle;
        loop {
            let seen = life.over.load();
            // Acquire: pairs with the Release at the end of `stop`.
            if life.state.load(Ordering::Acquire) == OVER {
                return Ok(());
            }
            if life.stopper.load(Ordering::Relaxed) == current_token() {
                return Err(Error::WouldDeadlock);
            }
            life.over.wait(seen, None);
        }
    }
}

impl Shard {
    /// Ends all timers that are left. The service is stopped and all is quiet.
    fn hand_back(&self, unfired: &mut dyn FnMut(u64, *mut c_void, u64)) -> u64 {
        let mut returned = 0;
        for slot in 1..self.slab.end() {
            let record = self.slab.at(slot);
            let word = record.word();
            if !word.waits() {
                continue;
            }
            let due = self.slab.decode(record, word.offset());
            let (free, _) = self.slab.freed(word.generation());
            if record.swap(word, free).is_err() {
                continue;
            }
            self.free_to_pool();
            self.returned.fetch_add(1, Ordering::Relaxed);
            returned += 1;
            let (ctx, mut drop) = (record.ctx(), None);
            if let Some(extra) = self.extra_of(record) {
                drop = drop_of(extra.drop.load(Ordering::Relaxed));
                let queue = extra.queue.load(Ordering::Relaxed).cast::<QueueInner>();
                if word.phase() == Phase::Queued {
                    // SAFETY: a queue outlives the timers that name it.
                    unsafe { (*queue).left() };
                }
            }
            let deadline_ns = due.map_or(crate::types::NEVER, |due| due.deadline_ns);
            unfired(self.handle(slot, word.generation()), ctx, deadline_ns);
            if let Some(drop) = drop.filter(|_| !self.forked()) {
                // SAFETY: the timer has ended here, and only its end runs drop.
                unsafe { drop_host(drop, ctx) };
            }
            if self.forked() {
                break;
            }
        }
        returned
    }
}

/// The life of one shard's thread.
pub(crate) fn work(engine: &Engine, index: u32, cpu: Option<u32>) {
    let shard = &engine.shards()[index as usize];
    let pinned = cpu.map_or(Ok(()), affinity::pin_current_thread);
    let found = engine.set().zip(engine.port(shard).ok());
    let ready = match found {
        Some(_) => pinned,
        None => pinned.and(Err(io::ErrorKind::OutOfMemory.into())),
    };
    let good = ready.is_ok();
    engine.lifecycle.reports.tell(ready);
    let Some((set, port)) = found.filter(|_| good) else { return };
    let token = current_token();
    // Relaxed: only this thread finds its own token there.
    shard.owner.store(token, Ordering::Relaxed);
    port.own.owner.store(true, Ordering::Relaxed);
    set.set_turning(engine, index + 1);
    let turning = Turning::begin(shard, token);
    let hooks = shard.hooks;
    if let Some(hook) = hooks.on_thread_start {
        // SAFETY: the host gave the hook for this.
        unsafe { thread_hook(hook, hooks.arg, index) };
    }
    let goes_on = || !shard.gate.is(STOPPED) && !shard.forked();
    while goes_on() {
        // SAFETY: this thread owns the shard and the port, and runs one turn at a time.
        let next = unsafe {
            shard.turn(&port, engine.clock(), usize::MAX);
            shard.tidy();
            if shard.compacting() { 0 } else { shard.next_look(engine.clock()) }
        };
        if next != 0 {
            engine.tell_stuck();
        }
        if next != 0 && goes_on() {
            let anything = || shard.anything_waits() || shard.gate.is(STOPPED);
            if let Some(woken) = shard.alarm.sleep(next, engine.clock(), anything) {
                shard.tally.woken[woken as usize].add(1);
            }
        }
    }
    if let Some(hook) = hooks.on_thread_stop.filter(|_| !shard.forked()) {
        // SAFETY: as above.
        unsafe { thread_hook(hook, hooks.arg, index) };
    }
    // It stays the shard's owner: what the host runs while the thread ends is on the service's own
    // thread still.
    drop(turning);
    set.set_turning(engine, 0);
    port.own.owner.store(false, Ordering::Relaxed);
}

#[cfg(all(test, loom, not(shuttle)))]
mod models {
    use super::*;
    use crate::models::explore_with_upkeep;
    use std::sync::Arc;

    /// Two threads say how they began: whoever waits for both hears it if one of them could not.
    #[test]
    fn reports_tell_vs_hear() {
        explore_with_upkeep("reports_tell_vs_hear", None, || {
            let reports = Arc::new(Reports::new());
            let tell = |ready: fn() -> io::Result<()>| {
                let reports = reports.clone();
                loom::thread::spawn(move || reports.tell(ready()))
            };
            let threads =
                [tell(|| Ok(())), tell(|| Err(io::Error::from_raw_os_error(libc::EAGAIN)))];
            let heard = reports.hear(2);
            assert_eq!(heard.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }
}
