//! The game: one service and its reference side by side, and what the host's functions (callbacks, drops,
//! `unfired`) do in it.
//!
//! Ground rules: one thread. The reference is borrowed for a moment at a time and never while the library
//! is called, because the library calls back. What is wrong is noted as a fault, because a panic must
//! not go through the library; after the first one nothing more is done.

use super::ops::{Body, Case};
use super::polls::Told;
use super::reference::{Id, Reference};
use shardwheel::capi::*;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Operations that one case may perform, those of bodies included.
const MOST: usize = 2_000;

pub struct Game {
    pub service: *mut sw_service,
    pub reference: RefCell<Reference>,
    pub queues: RefCell<Vec<*mut sw_queue>>,
    /// The descriptors that were asked for.
    pub fds: RefCell<Vec<Option<i32>>>,
    fault: RefCell<Option<String>>,
    trace: RefCell<Option<Vec<String>>>,
    /// Operations that may still be performed.
    pub left: Cell<usize>,
    /// Drops do nothing else for now: the call that runs them does so one by one, and the reference all
    /// at once.
    pub quiet: Cell<bool>,
}

thread_local! {
    static GAME: Cell<*const Game> = const { Cell::new(ptr::null()) };
}

/// Runs with the game that is on.
fn with_game(f: impl FnOnce(&Game)) {
    // SAFETY: set by `Game::play` as long as the game is there, on this thread.
    let Some(game) = (unsafe { GAME.get().as_ref() }) else { std::process::abort() };
    if catch_unwind(AssertUnwindSafe(|| f(game))).is_err() {
        game.wrong("a panic inside a function of the host".into());
    }
}

impl Game {
    /// Plays a case to its end; an error says what was wrong. With `tracing` it says what went before.
    pub fn play(case: &Case, tracing: bool) -> Result<(), String> {
        let game = Game {
            service: start(case),
            reference: RefCell::new(Reference::new(case.setup)),
            queues: RefCell::default(),
            fds: RefCell::new(vec![None; case.setup.shards as usize]),
            fault: RefCell::default(),
            trace: RefCell::new(tracing.then(Vec::new)),
            left: Cell::new(MOST),
            quiet: Cell::new(false),
        };
        GAME.set(&raw const game);
        game.all(case);
        // SAFETY: the last use of the service.
        let freed = unsafe { sw_service_free(game.service) };
        GAME.set(ptr::null());
        match game.fault.take() {
            None if freed == SW_OK => Ok(()),
            None => Err(format!("sw_service_free: {freed:?}")),
            Some(fault) => {
                Err(game.trace.take().unwrap_or_default().join("\n  ") + "\nFAULT: " + &fault)
            }
        }
    }

    /// Notes the first thing that is wrong, and ends the game.
    pub fn wrong(&self, what: String) {
        self.note(|| format!("!! {what}"));
        self.fault.borrow_mut().get_or_insert(what);
        self.left.set(0);
    }

    pub fn check(&self, result: Result<(), String>) {
        if let Err(what) = result {
            self.wrong(what);
        }
    }

    pub fn is_over(&self) -> bool {
        self.fault.borrow().is_some()
    }

    pub fn note(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = self.trace.borrow_mut().as_mut() {
            trace.push(line());
        }
    }

    /// What a callback or a drop does.
    fn body(&self, id: Id, wanted: fn(&Body) -> bool) {
        let body = self.reference.borrow().timers[id].body.clone();
        if wanted(&body) && !self.quiet.get() {
            for op in body.ops.iter() {
                self.perform(op, Some(id));
            }
        }
    }
}

fn start(case: &Case) -> *mut sw_service {
    let mut config = std::mem::MaybeUninit::<sw_config>::uninit();
    let mut service = ptr::null_mut();
    // SAFETY: init fills the configuration in; it is alive while the service starts.
    let status = unsafe {
        sw_config_init(config.as_mut_ptr());
        let config = config.assume_init_mut();
        config.mode = SW_MODE_DRIVEN as u32;
        config.clock = SW_CLOCK_MANUAL as u32;
        config.shards = case.setup.shards;
        config.tick_ns = case.setup.tick_ns;
        config.max_timers = case.setup.max_timers;
        sw_service_start(config, &mut service)
    };
    assert_eq!(status, SW_OK, "a driven service starts");
    service
}

fn id_of(ctx: *mut c_void) -> Id {
    ctx.addr().wrapping_sub(1)
}

pub fn ctx_of(id: Id) -> *mut c_void {
    ptr::without_provenance_mut(id + 1)
}

pub fn told(expiry: &sw_expiry) -> Told {
    Told {
        handle: expiry.timer,
        deadline_ns: expiry.deadline_ns,
        now_ns: expiry.now_ns,
        missed: expiry.missed,
    }
}

pub unsafe extern "C-unwind" fn on_expiry(ctx: *mut c_void, expiry: *const sw_expiry) {
    with_game(|game| {
        if game.is_over() {
            return;
        }
        // SAFETY: the library gives an expiry that can be read.
        let told = told(unsafe { &*expiry });
        let id = id_of(ctx);
        game.note(|| format!("<- timer {id} {told:?}"));
        game.check(game.reference.borrow().all_dropped());
        let fires = game.reference.borrow_mut().fires(id, told);
        let may = fires.is_ok();
        game.check(fires);
        if may {
            game.body(id, |body| body.in_callback);
            game.reference.borrow_mut().ran(id);
        }
    });
}

pub unsafe extern "C-unwind" fn on_drop(ctx: *mut c_void) {
    with_game(|game| {
        if game.is_over() {
            return;
        }
        let id = id_of(ctx);
        game.note(|| format!("<- drop {id}"));
        let drops = game.reference.borrow_mut().drops(id);
        let may = drops.is_ok();
        game.check(drops);
        if may {
            game.body(id, |body| body.in_drop);
            game.reference.borrow_mut().dropped(id);
        }
    });
}

pub unsafe extern "C-unwind" fn on_unfired(
    _arg: *mut c_void,
    timer: sw_timer,
    ctx: *mut c_void,
    deadline_ns: u64,
) {
    with_game(|game| {
        if game.is_over() {
            return;
        }
        game.check(game.reference.borrow().all_dropped());
        game.check(game.reference.borrow_mut().returns(timer, ctx.addr(), deadline_ns));
    });
}
