//! Order time-outs: 100,000 orders are placed, most are paid in time, and each of the rest is
//! closed exactly once.
//!
//! ```text
//! cargo run --release --example orders
//! ```
//!
//! An order belongs to two who may come at the same moment: its payer, and its time-out. The
//! answer of `cancel` says who was first, so that nothing else has to be agreed between them.

use shardwheel::{Error, Expiry, Outcome, Service, Timer};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const ORDERS: usize = 100_000;
const PAYERS: usize = 2;

/// How often each order was closed. `Relaxed`: read when the service has been stopped, which
/// waits for the callbacks.
static CLOSED: [AtomicU32; ORDERS] = [const { AtomicU32::new(0) }; ORDERS];

/// Nobody has paid: runs on a wheel's thread, or, if the payment was first, never.
fn close(order: u64, _: &Expiry) {
    CLOSED[order as usize].fetch_add(1, Relaxed);
}

/// Pays every order of its share but each tenth; answers which payments were in time.
fn pay(service: &Service, timeouts: &[Timer], share: usize) -> Result<Vec<usize>, Error> {
    let mut paid = Vec::new();
    for order in (share..ORDERS).step_by(PAYERS).filter(|order| order % 10 != 0) {
        if service.cancel(timeouts[order])? == Outcome::Done {
            paid.push(order);
        }
    }
    Ok(paid)
}

/// What each payer answers, each on a thread of its own.
fn in_parallel<T: Send>(payer: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let payer = &payer;
    thread::scope(|scope| {
        let payers: Vec<_> = (0..PAYERS).map(|share| scope.spawn(move || payer(share))).collect();
        payers.into_iter().map(|payer| payer.join().expect("no payer panics")).collect()
    })
}

fn main() -> Result<(), Error> {
    let service = Service::new()?;
    let mut timeouts = Vec::with_capacity(ORDERS);
    for order in 0..ORDERS {
        // Some are in such a hurry that their payment may be too late.
        let wait = if order % 10 == 1 { order / 1000 } else { 500 };
        let wait = Duration::from_millis(wait as u64);
        timeouts.push(service.after_fn(wait, close, order as u64)?);
    }

    let mut paid = vec![0; ORDERS];
    for share in in_parallel(|share| pay(&service, &timeouts, share)) {
        share?.into_iter().for_each(|order| paid[order] += 1);
    }

    while service.stats()?.pending > 0 {
        thread::sleep(Duration::from_millis(10));
    }
    service.stop()?;

    let closed: Vec<u32> = CLOSED.iter().map(|count| count.load(Relaxed)).collect();
    let wrong = paid.iter().zip(&closed).filter(|(paid, closed)| *paid + *closed != 1).count();
    let (paid, closed) = (paid.iter().sum::<u32>(), closed.iter().sum::<u32>());
    println!("{ORDERS} orders: {paid} paid, {closed} closed, {wrong} wrong");
    std::process::exit(i32::from(wrong > 0));
}
