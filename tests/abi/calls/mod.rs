//! Sequences of calls that a host could make which is correct in what memory it hands over and when it
//! frees what, and in nothing else: any number for any number, handles of other services, gone
//! services and no service, NULL where that is refused, calls after stop, from a thread that owns nothing,
//! and from inside callbacks of driven and threaded services.
//!
//! What is looked at: nothing crashes or hangs; each answer is one that the header names for the call;
//! a refused call writes no output; at the end F1 holds in every service and every ctx was dropped
//! exactly once, or given to a taker.
//!
//! Ground rules: bytes say what happens, eight for each call. The main thread makes the calls, or has the
//! stranger make one and waits for it; callbacks make calls too, on their own service alone, and none that
//! frees anything, because a host that frees under another thread's calls is wrong.

mod call;
mod operate;
mod pool;

use pool::Pool;
use shardwheel::capi::*;

pub const WIDTH: usize = 8;
/// Calls that one case makes at most, those inside callbacks included.
const MOST: usize = 600;

/// Plays what the bytes say; an error says what was wrong.
pub fn play(bytes: &[u8]) -> Result<(), String> {
    let pool = Box::new(Pool::new(MOST));
    for code in bytes.chunks_exact(WIDTH).take(200) {
        let code: [u8; WIDTH] = std::array::from_fn(|at| code[at]);
        if code[0] >= 224 {
            pool::on_the_stranger(&pool, code);
        } else {
            pool.make(code, None);
        }
    }
    pool.end();
    pool.verdict()
}

/// The statuses that the header names for each call; `SW_OK` aside.
pub fn may_answer(function: &str) -> &'static [sw_status] {
    const START: &[sw_status] = &[SW_INVALID, SW_FULL, SW_BUSY, SW_STOPPED];
    match function {
        "start" => START,
        "cancel" => &[SW_RUNNING, SW_NOT_FOUND, SW_INVALID, SW_BUSY, SW_STOPPED],
        "cancel_wait" => {
            &[SW_RUNNING, SW_NOT_FOUND, SW_INVALID, SW_BUSY, SW_STOPPED, SW_WOULD_DEADLOCK]
        }
        "reset" => &[SW_RUNNING, SW_NOT_FOUND, SW_FULL, SW_INVALID, SW_BUSY, SW_STOPPED],
        "remaining" => &[SW_RUNNING, SW_NOT_FOUND, SW_INVALID, SW_STOPPED],
        "cancel_batch" => &[SW_INVALID, SW_BUSY, SW_STOPPED],
        "attach" => &[SW_INVALID, SW_BUSY, SW_UNSUPPORTED, SW_STOPPED],
        "detach" => &[SW_INVALID, SW_BUSY, SW_UNSUPPORTED],
        "poll" => &[SW_INVALID, SW_BUSY, SW_UNSUPPORTED, SW_STOPPED],
        "next" | "fd" => &[SW_INVALID, SW_UNSUPPORTED, SW_STOPPED],
        "queue_new" | "queue_poll" | "queue_fd" => &[SW_INVALID, SW_STOPPED],
        "queue_free" => &[SW_INVALID, SW_BUSY],
        "stats" | "details" | "prometheus" | "report" | "visit" | "trim" => &[SW_INVALID],
        "on_stuck" => &[SW_INVALID, SW_BUSY, SW_STOPPED],
        "advance" => &[SW_INVALID, SW_UNSUPPORTED],
        "stop" => &[SW_INVALID, SW_WOULD_DEADLOCK],
        "free" => &[SW_WOULD_DEADLOCK],
        "service_start" => &[SW_INVALID],
        _ => unreachable!("{function}"),
    }
}
