//! An hourglass: a timer that arms itself again, with a new interval each time, goes on after a
//! failure, and is stopped from outside.
//!
//! ```text
//! cargo run --example hourglass
//! ```

use shardwheel::{Error, Service};
use std::thread;
use std::time::Duration;

fn main() -> Result<(), Error> {
    let service = Service::builder().shards(1).build()?;
    let timers = service.timers();
    let mut interval = Duration::from_millis(200);
    let mut turns = 0;

    let glass = service.timer().delay(interval).start(move |expiry| {
        turns += 1;
        interval = interval * 4 / 5;
        // Inside its own callback a reset arms the timer again. Done first, it holds whatever
        // follows.
        if let Err(error) = timers.reset(expiry.timer, interval) {
            eprintln!("it will not turn again: {error}");
        }
        println!("turn {turns}, {:?} late, the next in {interval:?}", expiry.late());
        if turns == 3 {
            panic!("the sand got wet; the fourth turn comes all the same");
        }
    })?;

    thread::sleep(Duration::from_secs(1));
    // Afterwards it is not running, and the closure has been dropped.
    let outcome = service.cancel_wait(glass)?;
    println!("stopped: {outcome:?}; turns that failed: {}", service.panics());
    Ok(())
}
