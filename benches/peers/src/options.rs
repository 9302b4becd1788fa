//! The command line.

use crate::workload::{Case, Workload};
use clap::Parser;
use std::path::PathBuf;

/// shardwheel beside other timer libraries, on the same work.
#[derive(Debug, Parser)]
#[command(name = "peers")]
pub struct Options {
    /// Only these workloads, for example W1,W3jump
    #[arg(long, value_delimiter = ',', value_parser = workload)]
    only: Vec<Workload>,

    /// Rounds of each measurement [default: 5; 2 for W5; 3 for W6 and W7, of which a round takes 10 s]
    #[arg(long)]
    pub rounds: Option<usize>,

    /// Shorter measurements, two rounds: to see that all is well, not for figures
    #[arg(long)]
    pub quick: bool,

    /// Only shardwheel
    #[arg(long)]
    pub alone: bool,

    /// Another build of shardwheel, in rows of its own: NAME=PATH of a shared library
    #[arg(long, value_parser = library)]
    pub library: Vec<(String, PathBuf)>,

    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,

    /// Measure how W1b, W2 and W3 depend on the number of timers and W4 on that of threads, and draw it:
    /// costs.svg and threads.svg in this directory
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "only")]
    pub curves: Option<PathBuf>,

    /// Write JSON to this file as well
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

fn workload(text: &str) -> Result<Workload, String> {
    Workload::find(text).ok_or_else(|| {
        let names: Vec<_> = Workload::ALL.iter().map(|workload| workload.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

fn library(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("NAME=PATH")?;
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    if path.exists() { Ok((name.to_string(), path)) } else { Err("no such file".to_string()) }
}

impl Options {
    pub fn cases(&self) -> Vec<Case> {
        if self.curves.is_some() {
            return Case::on_curves();
        }
        let all = Workload::ALL.to_vec();
        let asked = if self.only.is_empty() { &all } else { &self.only };
        asked.iter().flat_map(|workload| workload.cases()).collect()
    }
}
