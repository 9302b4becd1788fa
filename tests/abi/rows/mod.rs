//! The table: a row for each function and kind of bad argument.

mod places;
mod services;
mod shards;
mod starts;
mod timers;

use crate::support::*;
use crate::world::{Out, World, call};
use std::ffi::CStr;
use std::ptr::null_mut;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Outside,
    /// In a callback of the plain service's shard 0.
    Inside,
}

pub struct Row {
    pub function: &'static str,
    pub kind: &'static str,
    pub want: Vec<sw_status>,
    /// Drops of specs that the call runs.
    pub drops: u64,
    pub place: Place,
    /// It is accepted, or moves something that is not looked at.
    pub changes: bool,
    pub call: Try,
}

impl Row {
    fn drops(mut self, drops: u64) -> Row {
        self.drops = drops;
        self
    }

    fn inside(mut self) -> Row {
        self.place = Place::Inside;
        self
    }
}

/// Makes the call.
type Try = Box<dyn Fn(&World, &mut Out) -> sw_status>;

fn row(
    function: &'static str,
    kind: &'static str,
    want: sw_status,
    call: impl Fn(&World, &mut Out) -> sw_status + 'static,
) -> Row {
    Row {
        function,
        kind,
        want: vec![want],
        drops: 0,
        place: Place::Outside,
        changes: want == SW_OK,
        call: Box::new(call),
    }
}

const CALL: sw_callback = Some(call);

/// The random number that is nobody's handle.
const RANDOM: sw_timer = 0x0000_7531_2345_6789;

/// A status for calls that have none: what must be true of them is.
fn holds(truth: bool) -> sw_status {
    if truth { SW_OK } else { SW_SYSTEM }
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(texts());
    rows.extend(services::services());
    rows.extend(starts::starts());
    rows.extend(starts::specs());
    rows.extend(starts::batches());
    rows.extend(timers::handles());
    rows.extend(shards::shards());
    rows.extend(services::queues());
    rows.extend(services::numbers());
    rows.extend(places::elsewhere());
    rows.extend(places::inside());
    rows
}

fn texts() -> Vec<Row> {
    fn text(status: i32) -> sw_status {
        holds(!unsafe { CStr::from_ptr(sw_status_text(status)) }.is_empty())
    }
    vec![
        row("sw_status_text", "zero status", SW_OK, |_, _| text(0)),
        row("sw_status_text", "all ones status", SW_OK, |_, _| text(-1)),
        row("sw_status_text", "no status", SW_OK, |_, _| text(i32::MIN)),
        row("sw_timer_shard", "zero timer", SW_OK, |_, _| holds(sw_timer_shard(0) == 0)),
        row("sw_timer_shard", "all ones timer", SW_OK, |_, _| {
            holds(sw_timer_shard(u64::MAX) == 255)
        }),
        row("sw_config_init", "null config", SW_OK, |_, _| {
            unsafe { sw_config_init(null_mut()) };
            SW_OK
        }),
        row("sw_timer_spec_init", "null spec", SW_OK, |_, _| {
            unsafe { sw_timer_spec_init(null_mut()) };
            SW_OK
        }),
    ]
}

/// A struct of a later release, and what it says its size is.
#[repr(C)]
struct Later<T>(T, [u64; 2]);
