//! A timer in the making, and closures as callbacks.

use super::watch::{Watch, keep};
use super::*;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

type Call = Box<dyn FnMut(&sw_expiry) + Send>;
type Ended = Box<dyn FnMut() + Send>;

/// The context of a closure timer.
struct Closure {
    call: Mutex<Option<Call>>,
    ended: Mutex<Option<Ended>>,
    running: AtomicBool,
    dropped: AtomicU32,
    watch: &'static Watch,
}

/// A `sw_timer_spec` being filled in.
pub struct Timer {
    spec: sw_timer_spec,
    door: Door,
    call: Option<Call>,
    ended: Option<Ended>,
}

impl Timer {
    pub(super) fn new(door: Door) -> Timer {
        let mut spec = std::mem::MaybeUninit::<sw_timer_spec>::uninit();
        // SAFETY: `spec` is writable; init fills in all of it.
        let spec = unsafe {
            sw_timer_spec_init(spec.as_mut_ptr());
            spec.assume_init()
        };
        Timer { spec, door, call: None, ended: None }
    }

    pub fn delay(mut self, delay_ns: u64) -> Timer {
        self.spec.delay_ns = delay_ns;
        self
    }

    /// At an instant on the service's clock.
    pub fn at(mut self, deadline_ns: u64) -> Timer {
        self.spec.delay_ns = deadline_ns;
        self.spec.flags |= SW_TIMER_ABSOLUTE;
        self
    }

    pub fn period(mut self, period_ns: u64) -> Timer {
        self.spec.period_ns = period_ns;
        self
    }

    pub fn slack(mut self, slack_ns: u64) -> Timer {
        self.spec.slack_ns = slack_ns;
        self
    }

    /// Adds `SW_TIMER_*` bits.
    pub fn flags(mut self, flags: u32) -> Timer {
        self.spec.flags |= flags;
        self
    }

    pub fn shard(mut self, shard: u32) -> Timer {
        self.spec.shard = shard;
        self
    }

    pub fn queue(mut self, queue: Queue) -> Timer {
        self.spec.queue = queue.raw();
        self
    }

    /// Callback, context and drop are the log's. With a queue the callback is left out.
    pub fn log(mut self, log: Log) -> Timer {
        self.spec.callback = Some(Log::callback);
        self.spec.ctx = log.ctx();
        self.spec.drop = Some(Log::drop);
        self
    }

    /// The callback is a closure. It may panic: the test then fails as its service ends.
    pub fn run(mut self, call: impl FnMut(&sw_expiry) + Send + 'static) -> Timer {
        self.call = Some(Box::new(call));
        self
    }

    /// Runs in the timer's drop.
    pub fn ended(mut self, ended: impl FnMut() + Send + 'static) -> Timer {
        self.ended = Some(Box::new(ended));
        self
    }

    /// Anything else.
    pub fn with(mut self, edit: impl FnOnce(&mut sw_timer_spec)) -> Timer {
        edit(&mut self.spec);
        self
    }

    /// The finished spec. Its context lives until the process ends; a closure's drop is from
    /// now on expected to run exactly once.
    pub fn spec(mut self) -> sw_timer_spec {
        if self.call.is_some() || self.ended.is_some() {
            let closure = keep(Closure {
                call: Mutex::new(self.call.take()),
                ended: Mutex::new(self.ended.take()),
                running: AtomicBool::new(false),
                dropped: AtomicU32::new(0),
                watch: self.door.watch(),
            });
            closure.watch.expect_drop(&closure.dropped);
            self.spec.callback = Some(closure_callback);
            self.spec.ctx = std::ptr::from_ref(closure).cast_mut().cast();
            self.spec.drop = Some(closure_drop);
        }
        if !self.spec.queue.is_null() {
            self.spec.callback = None;
        }
        self.spec
    }

    /// Starts it; anything but `SW_OK` fails the test.
    #[track_caller]
    pub fn start(self) -> sw_timer {
        match self.try_start() {
            Ok(timer) => timer,
            Err(status) => panic!("sw_timer_start_spec: {status:?}"),
        }
    }

    pub fn try_start(self) -> Result<sw_timer, sw_status> {
        let door = self.door;
        door.start_spec(&self.spec())
    }
}

unsafe extern "C-unwind" fn closure_callback(ctx: *mut c_void, expiry: *const sw_expiry) {
    // SAFETY: the context is a kept closure; the library gives a readable expiry.
    let (closure, expiry) = unsafe { (&*ctx.cast_const().cast::<Closure>(), &*expiry) };
    let watch = closure.watch;
    if closure.running.swap(true, Ordering::SeqCst) {
        return watch.fault("F2: a timer's callback overlaps itself".into());
    }
    if closure.dropped.load(Ordering::SeqCst) != 0 {
        watch.fault("F9: a callback after its drop".into());
    }
    if expiry.now_ns < expiry.deadline_ns {
        watch.fault(format!("T1: early by {}", expiry.deadline_ns - expiry.now_ns));
    }
    let mut call = closure.call.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(call) = call.as_mut() {
        guard(watch, || call(expiry));
    }
    closure.running.store(false, Ordering::SeqCst);
}

unsafe extern "C-unwind" fn closure_drop(ctx: *mut c_void) {
    // SAFETY: the context is a kept closure.
    let closure = unsafe { &*ctx.cast_const().cast::<Closure>() };
    if closure.running.load(Ordering::SeqCst) {
        closure.watch.fault("F9: a drop while the callback runs".into());
    }
    if closure.dropped.fetch_add(1, Ordering::SeqCst) == 0 {
        let mut ended = closure.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(ended) = ended.as_mut() {
            guard(closure.watch, ended);
        }
    }
}

/// Runs a test's closure below C frames: a failed assertion becomes a fault of the service.
pub(super) fn guard(watch: &Watch, call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        watch.fault(text.unwrap_or_else(|| "a panic".into()));
    }
}
