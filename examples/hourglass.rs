//! An hourglass: a timer that arms itself again, with a new interval each time, goes on after a
//! failure, and stops when it is told to, from outside or in its own callback.
//!
//! ```text
//! cargo run --example hourglass
//! ```

use shardwheel::{Error, Outcome, Service, Timer};
use std::thread;
use std::time::Duration;

/// Starts a glass that tells itself to stop at its turn number `last`, if there is one.
fn glass(service: &Service, name: &'static str, last: Option<u32>) -> Result<Timer, Error> {
    let timers = service.timers();
    let mut turns = 0;
    service.timer().delay(Duration::from_millis(30)).start(move |expiry| {
        turns += 1;
        let interval = Duration::from_millis(30 + u64::from(turns % 7) * 10);
        // Inside its own callback a reset arms the timer again. Done first, it holds whatever
        // follows.
        if let Err(error) = timers.reset(expiry.timer, interval) {
            eprintln!("{name} will not turn again: {error}");
        }
        println!("{name}: turn {turns}, {:?} late, the next in {interval:?}", expiry.late());
        if turns == 3 {
            panic!("sand got wet; the fourth turn comes all the same");
        }
        if last == Some(turns) {
            // This turn is running; there will be no other.
            assert_eq!(timers.cancel(expiry.timer), Ok(Outcome::Running));
            println!("{name}: no more");
        }
    })
}

fn main() -> Result<(), Error> {
    let service = Service::builder().shards(1).build()?;
    let ours = glass(&service, "ours", None)?;
    let its_own = glass(&service, "its own", Some(5))?;
    // A while, and then until that glass has stopped itself.
    thread::sleep(Duration::from_millis(500));
    while service.remaining(its_own)?.is_some() {
        thread::sleep(Duration::from_millis(50));
    }

    // Afterwards it is not running, it will not run again, and its closure has been dropped.
    let outcome = service.cancel_wait(ours)?;
    println!("ours stopped: {outcome:?}; its own had stopped: {:?}", service.cancel(its_own)?);
    println!("turns that failed: {}", service.panics());
    Ok(())
}
