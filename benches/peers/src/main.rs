//! shardwheel beside other timer libraries: `cargo bench --bench peers` from the top, and see
//! `benches/README.md`.

mod compare;
mod contender;
mod late;
mod machine;
mod measure;
mod options;
mod plot;
mod report;
mod rest;
mod run;
mod single;
mod threads;
mod workload;

use clap::Parser;
use options::Options;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        compare::child(&arguments[1..]);
        return Ok(());
    }
    let options = Options::parse();
    let machine = machine::Machine::look();
    let rows = compare::compare(&options, &options.cases())?;
    let json = report::json(&rows, &machine);
    if let Some(path) = &options.save {
        std::fs::write(path, format!("{json:#}\n"))?;
    }
    if let Some(directory) = &options.curves {
        plot::draw(directory, &rows, &machine)?;
    }
    if options.json {
        println!("{json:#}");
    } else {
        report::print_table(&rows, &machine);
    }
    Ok(())
}
