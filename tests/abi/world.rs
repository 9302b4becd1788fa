//! What bad arguments are tried on: services in every state, timers and queues of each, and outputs whose
//! every byte is watched.

use crate::support::*;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

pub static CALLS: AtomicU64 = AtomicU64::new(0);
pub static DROPS: AtomicU64 = AtomicU64::new(0);

pub unsafe extern "C-unwind" fn call(_: *mut c_void, _: *const sw_expiry) {
    CALLS.fetch_add(1, Ordering::SeqCst);
}

pub unsafe extern "C-unwind" fn drop_ctx(_: *mut c_void) {
    DROPS.fetch_add(1, Ordering::SeqCst);
}

/// A spec with nothing wrong, whose drop is counted.
pub fn spec() -> sw_timer_spec {
    let mut spec = MaybeUninit::<sw_timer_spec>::uninit();
    // SAFETY: init fills it in.
    let mut spec = unsafe {
        sw_timer_spec_init(spec.as_mut_ptr());
        spec.assume_init()
    };
    spec.delay_ns = HOUR;
    spec.callback = Some(call);
    spec.drop = Some(drop_ctx);
    spec
}

/// Outputs of every kind.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Out {
    pub timer: sw_timer,
    pub timers: [sw_timer; 4],
    pub number: u64,
    pub count: usize,
    pub fd: i32,
    pub padding: i32,
    pub queue: *mut sw_queue,
    pub service: *mut sw_service,
    pub event: sw_event,
    pub stats: sw_stats,
    pub text: [u8; 64],
}

impl Out {
    /// All of it the same byte, but for the size of the statistics.
    pub fn new() -> Out {
        // SAFETY: numbers and pointers, which nobody follows.
        let mut out: Out = unsafe {
            let mut out = MaybeUninit::<Out>::uninit();
            out.as_mut_ptr().write_bytes(0x5a, 1);
            out.assume_init()
        };
        out.stats.size = size_of::<sw_stats>();
        out
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: written as bytes as a whole, and no field leaves a gap that a copy may lose.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Out>()) }
    }
}

/// The counters above are the process's, so there is one world at a time.
static ONE: Mutex<()> = Mutex::new(());

/// See the module. All driven services are on the manual clock.
pub struct World {
    /// Two shards with room for eight each, of which one is taken.
    pub plain: Svc,
    pub live: sw_timer,
    /// Has fired.
    pub stale: sw_timer,
    pub queue: Queue,
    pub other: Svc,
    pub foreign: sw_timer,
    pub foreign_queue: Queue,
    /// With a thread of its own.
    pub threaded: Svc,
    pub stopped: Svc,
    pub stopped_queue: Queue,
    pub of_stopped: sw_timer,
    /// Its one shard is attached exclusively by another thread.
    pub taken: Svc,
    pub of_taken: sw_timer,
    pub taken_queue: Queue,
    owner: Option<(Sender<()>, JoinHandle<()>)>,
    _one: MutexGuard<'static, ()>,
}

impl World {
    pub fn new() -> World {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let log = Log::counting();
        let plain = Setup::manual(MS).shards(2).max_timers(8).start();
        let stale = plain.timer().shard(0).log(log).start();
        plain.poll();
        let live = plain.timer().shard(0).delay(HOUR).log(log).start();
        let other = Setup::manual(MS).start();
        // A slot of a number that `plain` has not come to.
        let foreign =
            other.start_batch(&vec![other.timer().delay(HOUR).log(log).spec(); 200]).unwrap()[199];
        let threaded = Setup::threaded(1).start();
        let stopped = Setup::manual(MS).start();
        let stopped_queue = stopped.queue();
        let of_stopped = stopped.start(HOUR, log);
        assert_eq!(stopped.stop(), SW_OK);
        let taken = Setup::manual(MS).start();
        let of_taken = taken.start(HOUR, log);
        let taken_queue = taken.queue();
        taken.timer().delay(HOUR).queue(taken_queue).log(log).start();
        let (over, until) = channel();
        let (ready, attached) = channel();
        let door = taken.door();
        let thread = std::thread::spawn(move || {
            ready.send(door.attach(0, SW_ATTACH_EXCLUSIVE)).unwrap();
            let _ = until.recv();
            assert_eq!(door.detach(0), SW_OK);
        });
        assert_eq!(attached.recv(), Ok(SW_OK));
        World {
            live,
            stale,
            queue: plain.queue(),
            plain,
            foreign,
            foreign_queue: other.queue(),
            other,
            threaded,
            stopped,
            stopped_queue,
            of_stopped,
            taken,
            of_taken,
            taken_queue,
            owner: Some((over, thread)),
            _one: one,
        }
    }

    /// All that a refused call must leave as it is.
    pub fn seen(&self) -> String {
        let mut seen = String::new();
        for svc in [&self.plain, &self.other, &self.threaded, &self.stopped, &self.taken] {
            for shard in 0..svc.shard_count() {
                let stats = svc.stats_of(shard);
                let stats = sw_stats { memory_bytes: 0, wakeups: 0, rejected: 0, ..stats };
                seen += &format!("{stats:?} {:?}\n", svc.next_of(shard));
            }
        }
        let left = [
            self.plain.remaining(self.live),
            self.plain.remaining(self.stale),
            self.other.remaining(self.foreign),
            self.taken.remaining(self.of_taken),
        ];
        let clocks = [self.plain.now(), self.other.now(), self.stopped.now(), self.taken.now()];
        let runs = CALLS.load(Ordering::SeqCst);
        seen + &format!("{left:?} {clocks:?} {runs}")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.owner.take() {
            drop(over);
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok());
        }
    }
}

/// No service, no queue.
pub const NONE: *mut sw_service = null_mut();
