//! What 64 threads and 64 shards would do, simulated; and what many shards cost in wake-ups, measured.
//!
//! `cargo run --release -p shardwheel-peers --bin scale`. The method is told in `benches/README.md`.

mod lines;
mod model;
mod wakes;

use clap::{Parser, Subcommand};
use model::{Costs, Pattern};

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Simulates N producers on N shards
    Model(Costs),
    /// Measures wake-ups a second by the number of shards
    Wakes {
        /// Seconds for each line
        #[arg(long, default_value_t = 3)]
        seconds: u64,
    },
}

fn main() {
    match Options::parse().what {
        What::Wakes { seconds } => wakes::measure(seconds),
        What::Model(costs) => {
            println!("{costs:?}\n");
            for pattern in Pattern::ALL {
                println!("{}", pattern.about());
                println!(
                    "{:>6}{:>12}{:>12}{:>12}  time at lines of others",
                    "N", "M pairs/s", "each", "taken in"
                );
                for producers in [1, 2, 4, 8, 16, 32, 64] {
                    let found = model::simulate(pattern, producers, &costs);
                    let pairs = found.pairs_per_second / 1e6;
                    let waits: Vec<_> = found.waits.iter().map(|w| w.to_string()).collect();
                    let each = pairs / producers as f64;
                    let taken = found.taken_in * 100.0;
                    println!(
                        "{producers:>6}{pairs:>12.1}{each:>12.2}{taken:>10.0} %  {}",
                        waits.join(", ")
                    );
                }
                println!();
            }
        }
    }
}
