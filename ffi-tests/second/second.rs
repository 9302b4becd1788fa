//! Another library that is written in Rust: enough of the standard library to have its unwinder,
//! its allocator's names and its thread-locals.

use std::panic::catch_unwind;
use std::thread;

/// Adds what threads answer, of which one panics.
#[unsafe(no_mangle)]
pub extern "C" fn second_sum(count: u32) -> u32 {
    std::panic::set_hook(Box::new(|_| {}));
    let threads: Vec<_> = (0..count)
        .map(|i| thread::spawn(move || if i == 3 { panic!("three") } else { i }))
        .collect();
    let sum = threads.into_iter().map(|thread| thread.join().unwrap_or(100)).sum();
    catch_unwind(|| if sum > 1000 { panic!("too much") } else { sum }).unwrap_or(0)
}
