//! What the calls are made on: services, queues, handles and contexts, and the host's functions.
//!
//! Ground rules: the lists are behind locks, which no thread holds while it calls the library. A context lives
//! until the case is over, so that a call too late is counted and touches nothing that is gone.

use super::WIDTH;
use shardwheel::capi::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// A timer's context.
pub struct Ctx {
    pool: *const Pool,
    pub service: usize,
    /// What its callback does.
    body: [u8; WIDTH],
    pub drops: AtomicU32,
    /// It has a drop, which the library owes.
    pub owed: bool,
    /// Its one event was taken, and it with it.
    pub taken: AtomicU32,
    pub one_shot: bool,
}

/// A service and what is known of it.
#[derive(Clone, Copy)]
pub struct Service {
    pub raw: *mut sw_service,
}

#[derive(Clone, Copy)]
pub struct Queue {
    pub raw: *mut sw_queue,
    pub service: usize,
}

/// See the module.
pub struct Pool {
    pub services: Mutex<Vec<Option<Service>>>,
    pub queues: Mutex<Vec<Queue>>,
    /// With the service that each is of.
    pub handles: Mutex<Vec<(usize, sw_timer)>>,
    #[expect(clippy::vec_box, reason = "the library holds their addresses")]
    ctxs: Mutex<Vec<Box<Ctx>>>,
    wrong: Mutex<Option<String>>,
    left: AtomicUsize,
}

// SAFETY: the pointers are the library's, which may be called from any thread.
unsafe impl Sync for Pool {}
// SAFETY: as above.
unsafe impl Send for Pool {}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Ctx {
    pub fn new(pool: &Pool, service: usize, body: [u8; WIDTH], owed: bool, one_shot: bool) -> Ctx {
        let zero = || AtomicU32::new(0);
        let pool = std::ptr::from_ref(pool);
        Ctx { pool, service, body, drops: zero(), owed, taken: zero(), one_shot }
    }
}

impl Pool {
    pub fn new(most: usize) -> Pool {
        Pool {
            services: Mutex::default(),
            queues: Mutex::default(),
            handles: Mutex::default(),
            ctxs: Mutex::default(),
            wrong: Mutex::default(),
            left: AtomicUsize::new(most),
        }
    }

    /// May one more call be made?
    pub fn spend(&self) -> bool {
        let spend = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend).is_ok()
    }

    pub fn wrong(&self, what: String) {
        lock(&self.wrong).get_or_insert(what);
    }

    /// Keeps a context until the case is over.
    pub fn ctx(&self, ctx: Ctx) -> *mut c_void {
        let ctx = Box::new(ctx);
        let raw = std::ptr::from_ref(&*ctx).cast_mut().cast();
        lock(&self.ctxs).push(ctx);
        raw
    }

    /// The context was read by nobody: there is no drop that could be owed.
    pub fn unread(&self, ctx: *mut c_void) {
        if let Some(ctx) = lock(&self.ctxs).iter_mut().find(|other| same(other, ctx)) {
            ctx.owed = false;
        }
    }

    /// Frees every service.
    pub fn end(&self) {
        self.left.store(0, Ordering::SeqCst);
        let services = std::mem::take(&mut *lock(&self.services));
        for Service { raw } in services.into_iter().flatten() {
            self.close(raw);
        }
    }

    /// Stops a service, looks at its books and frees it.
    pub fn close(&self, raw: *mut sw_service) {
        // SAFETY: numbers; the service is alive, and this is its last use.
        unsafe {
            let stopped = sw_service_stop(raw, Some(unfired), null_mut(), null_mut());
            let mut stats: sw_stats = std::mem::zeroed();
            stats.size = size_of::<sw_stats>();
            let read = sw_stats_read(raw, SW_SHARD_ANY, &mut stats);
            if (stopped, read) != (SW_OK, SW_OK) {
                self.wrong(format!("at the end stop answers {stopped:?}, stats {read:?}"));
            }
            let ended = stats.ended_by_fire + stats.cancelled + stats.returned;
            if stats.started != ended || stats.pending != 0 {
                self.wrong(format!("F1: {stats:?}"));
            }
            let freed = sw_service_free(raw);
            if freed != SW_OK {
                self.wrong(format!("at the end free answers {freed:?}"));
            }
        }
    }

    pub fn verdict(&self) -> Result<(), String> {
        for (nth, ctx) in lock(&self.ctxs).iter().enumerate() {
            let drops = ctx.drops.load(Ordering::SeqCst);
            let due = u32::from(ctx.owed && ctx.taken.load(Ordering::SeqCst) == 0);
            if drops != due {
                self.wrong(format!("F9: ctx {nth} of {} was dropped {drops} times", ctx.service));
            }
        }
        lock(&self.wrong).take().map_or(Ok(()), Err)
    }
}

fn same(ctx: &Ctx, raw: *mut c_void) -> bool {
    std::ptr::from_ref(ctx).cast_mut().cast() == raw
}

/// The context behind a pointer that the library gives back.
pub fn ctx_of<'a>(raw: *mut c_void) -> &'a Ctx {
    // SAFETY: made by `Pool::ctx`, and there until the case is over.
    unsafe { &*raw.cast_const().cast::<Ctx>() }
}

pub unsafe extern "C-unwind" fn on_expiry(ctx: *mut c_void, expiry: *const sw_expiry) {
    let ctx = ctx_of(ctx);
    // SAFETY: the pool is there as long as its contexts; the library gives a readable expiry.
    let (pool, expiry) = unsafe { (&*ctx.pool, &*expiry) };
    if expiry.now_ns < expiry.deadline_ns {
        pool.wrong(format!("T1: {expiry:?}"));
    }
    if ctx.drops.load(Ordering::SeqCst) != 0 {
        pool.wrong("F9: a callback after its drop".into());
    }
    pool.make(ctx.body, Some((ctx.service, expiry.timer)));
}

pub unsafe extern "C-unwind" fn on_drop(ctx: *mut c_void) {
    ctx_of(ctx).drops.fetch_add(1, Ordering::SeqCst);
}

/// Nothing is known of a timer that may have ended.
pub unsafe extern "C-unwind" fn on_stuck(_: *mut c_void, _: u32, _: sw_timer, _: u64) {}

unsafe extern "C-unwind" fn unfired(_: *mut c_void, _: sw_timer, ctx: *mut c_void, _: u64) {
    let ctx = ctx_of(ctx);
    if ctx.drops.load(Ordering::SeqCst) != 0 {
        // SAFETY: as in `on_expiry`.
        unsafe { &*ctx.pool }.wrong("F9: handed back after its drop".into());
    }
}

/// What the stranger is to do, and whom to tell when it is done.
type Errand = (Box<dyn FnOnce() + Send>, SyncSender<()>);

/// Has another thread make a call, and waits for it. It is one thread for the whole process, and
/// attaches and homes like any other.
pub fn on_the_stranger(pool: &Pool, code: [u8; WIDTH]) {
    static STRANGER: OnceLock<Mutex<Sender<Errand>>> = OnceLock::new();
    let stranger = STRANGER.get_or_init(|| {
        let (send, receive) = channel::<Errand>();
        std::thread::spawn(move || {
            for (errand, done) in receive {
                errand();
                let _ = done.send(());
            }
        });
        Mutex::new(send)
    });
    let address = std::ptr::from_ref(pool).expose_provenance();
    let errand = Box::new(move || {
        // SAFETY: the sender waits below until this is over.
        let pool = unsafe { &*std::ptr::with_exposed_provenance::<Pool>(address) };
        pool.make(code, None);
    });
    let (done, over) = sync_channel(1);
    lock(stranger).send((errand, done)).expect("the stranger lives");
    over.recv().expect("the stranger lives");
}
