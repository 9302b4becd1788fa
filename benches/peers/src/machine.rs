//! Where and when the measurement was made.

use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// What a reader of figures wants to know.
pub struct Machine {
    date: String,
    cpu: String,
    cpus: usize,
    kernel: String,
    rustc: String,
    load: String,
}

fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

fn said_by(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string())
        .unwrap_or_default()
}

impl Machine {
    pub fn look() -> Machine {
        let cpuinfo = file("/proc/cpuinfo");
        let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
        let model = model.and_then(|line| line.split_once(": ")).map_or("?", |(_, model)| model);
        Machine {
            date: said_by("date", "-uI"),
            cpu: model.to_string(),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: file("/proc/sys/kernel/osrelease"),
            rustc: said_by("rustc", "-V"),
            load: file("/proc/loadavg").split(' ').take(1).collect(),
        }
    }

    pub fn line(&self) -> String {
        let Machine { date, cpu, cpus, kernel, rustc, load } = self;
        format!("{date}, {cpus} CPUs {cpu}, Linux {kernel}, {rustc}, load before {load}")
    }

    pub fn json(&self) -> Value {
        json!({
            "date": self.date,
            "cpu": self.cpu,
            "cpus": self.cpus,
            "kernel": self.kernel,
            "rustc": self.rustc,
            "load_before": self.load,
        })
    }
}
