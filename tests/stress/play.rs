//! The callback, the drop, and what the callbacks do.

use crate::cell::{Ask, Cell, When, in_call, rng_of};
use crate::support::*;
use crate::work;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// What a timer's callback does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Script {
    /// Nothing.
    Quiet,
    /// Takes its time.
    Slow,
    /// Arms itself again a few times.
    Rearm,
    /// Cancels itself, and tries to arm itself again.
    Suicide,
    /// Starts timers.
    Parent,
    /// Cancels, resets and waits for timers of others.
    Meddle,
}

impl Script {
    pub const ALL: [Script; 6] = [
        Script::Quiet,
        Script::Slow,
        Script::Rearm,
        Script::Suicide,
        Script::Parent,
        Script::Meddle,
    ];
}

/// The callback of every cell.
///
/// # Safety
/// `ctx` is a cell that lives for ever, `expiry` is readable.
pub unsafe extern "C-unwind" fn fire(ctx: *mut c_void, expiry: *const sw_expiry) {
    // SAFETY: by contract of this function.
    let (cell, expiry) = unsafe { (&*ctx.cast_const().cast::<Cell>(), &*expiry) };
    let book = cell.book;
    let shard = sw_timer_shard(expiry.timer) as usize;
    let expect = |right: bool, what: &str| {
        book.expect(right, || format!("callback: {what}: {expiry:?} {cell:?}"));
    };
    expect(!in_call(), "inside a call that starts, cancels or moves timers");
    expect(!book.inside[shard].swap(true, SeqCst), "the shard is in another callback");
    let entered = cell.entered.fetch_add(1, SeqCst) + 1;
    expect(cell.exited.load(SeqCst) + 1 == entered, "it overlaps itself");
    expect(entered <= cell.limit.load(SeqCst), "it had ended");
    expect(cell.ask.queue.is_none(), "it is a queue's");
    expect(cell.dropped.load(SeqCst) == 0, "it has been dropped");
    expect(cell.returned.load(SeqCst) == 0, "it has been handed back");
    expect(!book.stopped.load(SeqCst), "the service has been stopped");
    cell.told(expiry);
    if catch_unwind(AssertUnwindSafe(|| play(cell))).is_err() {
        expect(false, "a panic");
    }
    cell.exited.fetch_add(1, SeqCst);
    book.inside[shard].store(false, SeqCst);
}

/// The drop of every cell.
///
/// # Safety
/// `ctx` is a cell that lives for ever.
pub unsafe extern "C-unwind" fn drop(ctx: *mut c_void) {
    // SAFETY: by contract of this function.
    let cell = unsafe { &*ctx.cast_const().cast::<Cell>() };
    let right = cell.dropped.fetch_add(1, SeqCst) == 0
        && (cell.ask.queue.is_some() || cell.entered.load(SeqCst) == cell.exited.load(SeqCst));
    cell.book.expect(right, || format!("dropped twice, or while it runs {cell:?}"));
}

fn play(cell: &'static Cell) {
    let mut rng = rng_of(cell);
    match cell.ask.script {
        Script::Quiet => {}
        Script::Slow => {
            let begin = Instant::now();
            let long = Duration::from_micros(rng.below(60));
            while begin.elapsed() < long {
                std::hint::spin_loop();
            }
        }
        Script::Rearm => {
            if cell.rearms.load(SeqCst) < 3 && !rng.one_in(4) {
                cell.reset(When::After(rng.below(2 * MS)), Some(cell));
                if rng.one_in(4) {
                    // Moves what has just been armed.
                    cell.reset(When::At(cell.book.door.now()), Some(cell));
                }
                if rng.one_in(8) {
                    cell.cancel(false, Some(cell));
                }
            }
        }
        Script::Suicide => {
            if cell.ask.period == 0 || rng.one_in(4) {
                cell.cancel(rng.one_in(3), Some(cell));
                let answer = cell.reset(When::After(0), Some(cell));
                // Unless the cancel was refused, and the reset was not.
                let right = answer != SW_OK || cell.book.refuses();
                cell.book.expect(right, || format!("armed after its cancel {cell:?}"));
            }
        }
        Script::Parent => {
            for _ in 0..rng.below(3) {
                let book = cell.book.friend(&mut rng);
                let ask = Ask {
                    shard: work::some_shard(book, &mut rng),
                    seed: rng.next(),
                    script: rng.pick(&[Script::Quiet, Script::Rearm]),
                    ..Ask::after(rng.pick(&[0, 1, 300 * US, 2 * MS, HOUR]))
                };
                if let Ok(child) = Cell::start(book, ask)
                    && rng.one_in(2)
                {
                    work::share(child, &mut rng, Some(cell));
                }
            }
        }
        Script::Meddle => {
            let book = cell.book.friend(&mut rng);
            if let Some(other) = book.any_shared(&mut rng) {
                // Nobody sees a circle that leads through two services.
                let wait = book.friends.get().is_none() && rng.one_in(2);
                if rng.one_in(4) {
                    other.cancel(wait, Some(cell));
                } else if rng.one_in(3) {
                    other.remaining();
                } else {
                    let delay = rng.pick(&[0, MS, HOUR]);
                    other.reset(When::After(delay), Some(cell));
                }
            }
        }
    }
}
