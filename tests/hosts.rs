//! Hosts of several kinds, as whole programs: `ffi-tests/hosts`. Each keeps accounts and checks
//! them against the library's; what they print is checked here again, one side against the other.

#![cfg(all(feature = "capi", not(loom)))]

#[path = "support/cc.rs"]
mod cc;

use cc::{Ended, Language};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(180);

/// A host of these sources in `ffi-tests/hosts`, built once.
fn host(language: Language, name: &str, sources: &[&str]) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let build = || {
        let directory = cc::root().join("ffi-tests/hosts");
        let sources: Vec<PathBuf> = sources.iter().map(|file| directory.join(file)).collect();
        let sources: Vec<_> = sources.iter().map(PathBuf::as_path).collect();
        cc::program_of(language, &sources, &format!("host_{name}"), true, &[])
    };
    built.entry(name.to_string()).or_insert_with(build).clone()
}

/// What a host prints: a name and a number in each line.
struct Accounts(HashMap<String, u64>, Ended);

impl Accounts {
    fn of(ended: Ended) -> Accounts {
        let line = |line: &str| {
            let (name, number) = line.split_once(' ')?;
            Some((name.to_string(), number.parse().ok()?))
        };
        let numbers = ended.stdout.lines().map(line).collect::<Option<_>>();
        Accounts(numbers.unwrap_or_else(|| panic!("{ended:?}")), ended)
    }

    fn get(&self, name: &str) -> u64 {
        *self.0.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.1))
    }

    fn sum(&self, names: &[&str]) -> u64 {
        names.iter().map(|name| self.get(name)).sum()
    }

    fn equal(&self, left: &str, right: &[&str]) {
        assert_eq!(self.get(left), self.sum(right), "{left}, {right:?}: {}", self.1.stdout);
    }

    fn some(&self, names: &[&str]) {
        for name in names {
            assert!(self.get(name) > 0, "{name}: {}", self.1.stdout);
        }
    }

    fn none(&self, names: &[&str]) {
        assert_eq!(self.sum(names), 0, "{names:?}: {}", self.1.stdout);
    }
}

/// The proxy against its load; a connection more than the limit of descriptors allows is left out, and
/// that is said. Answers how many there were, and how many of them at a time.
fn proxy(connections: &str, timeout_ms: &str) -> [u64; 2] {
    let proxy = host(Language::C11, "proxy", &["proxy/proxy.c", "proxy/session.c"]);
    let sources = ["proxy/load.c", "proxy/client.c", "proxy/origin.c"];
    let load = host(Language::C11, "load", &sources);
    let proxy = proxy.to_str().expect("a path in UTF-8");
    let told = Accounts::of(cc::run_well(&load, &[proxy, connections, timeout_ms], LIMIT));
    let [connected, wanted, limit] =
        ["clients", "wanted", "descriptors"].map(|name| told.get(name));
    if connected < wanted {
        let said =
            format!("{connected} connections, not {wanted}: {limit} descriptors are the limit\n");
        let _ = std::io::stderr().write_all(said.as_bytes());
    }

    // Every time-out that fired was heard of by one client, and by those alone that were to, but
    // for clients that do not read, or are gone: them the proxy could not tell.
    let kinds = ["request", "connect", "idle", "keep-alive"];
    for kind in kinds {
        let [heard, unsaid] = [format!("heard.{kind}"), format!("proxy.{kind}.unsaid")];
        told.equal(&format!("proxy.{kind}.fired"), &[&heard, &unsaid]);
    }
    told.none(&["wrong", "proxy.early", "proxy.stray", "proxy.failed"]);
    told.equal("proxy.accepted", &["clients"]);
    told.equal("proxy.shut-down", &["stopped"]);
    told.equal("left", &["proxy.gone", "proxy.request.unsaid"]);
    // On a machine that is far too slow more clients are timed out, and even that adds up.
    let unsaid = kinds.map(|kind| told.get(&format!("proxy.{kind}.unsaid"))).iter().sum::<u64>();
    if told.get("excused") + unsaid == 0 {
        told.equal("heard.connect", &["clients.hole"]);
        told.equal("heard.idle", &["clients.stall"]);
        told.equal("heard.keep-alive", &["clients.quiet"]);
        let leave = ["busy", "drip", "bulk", "leaves-asking", "leaves-reading", "resets"];
        told.equal("left", &leave.map(|kind| format!("clients.{kind}")).each_ref().map(|s| &**s));
        let rest = told.sum(&["heard.request", "stopped"]);
        assert_eq!(rest, told.sum(&["clients.silent", "clients.slow", "clients.rest"]));
        told.some(&["proxy.withdrawn"]);
    }
    // And there was something to be seen.
    told.some(&["proxy.idle.pushed", "proxy.idle.fired", "proxy.held"]);
    [connected, told.get("most-open")]
}

#[test]
fn a_proxy_times_out_whom_it_must() {
    if Language::C11.available() {
        proxy("3000", "1500");
    }
}

/// Tens of thousands at a time: of two proxies, because the limit of descriptors is one of each process.
#[test]
#[ignore = "opens tens of thousands of connections"]
fn proxies_time_out_tens_of_thousands() {
    if !Language::C11.available() {
        return;
    }
    let each = || proxy("15000", "4000");
    let each = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(each));
        both.map(|one| one.join().expect("right"))
    });
    let [connected, at_a_time] = [0, 1].map(|which| each[0][which] + each[1][which]);
    println!("{connected} connections, {at_a_time} at a time");
}

fn rpc(arguments: &[&str]) -> Option<Accounts> {
    Language::C11.available().then(|| {
        let program = host(Language::C11, "rpc", &["rpc.c"]);
        let told = Accounts::of(cc::run_well(&program, arguments, LIMIT));
        told.none(&["early", "wrong"]);
        told.equal("calls", &["answered", "answered-again", "given-up"]);
        told.equal("timeouts", &["back-offs", "given-up"]);
        told.some(&["answered", "answered-again", "given-up"]);
        told
    })
}

/// With callers that keep up, what fires is known beforehand.
#[test]
fn a_million_calls_are_in_flight() {
    let Some(told) = rpc(&["4", "1000000", "1500000", "2000"]) else { return };
    if told.get("late") == 0 && told.get("calling-ms") < 2000 {
        assert_eq!(told.get("in-flight"), 1_000_000, "{}", told.1.stdout);
        told.equal("timeouts", &["foreseen.timeouts"]);
        told.equal("given-up", &["foreseen.given-up"]);
    }
}

/// With callers that do not keep up, replies and time-outs race.
#[test]
fn late_replies_and_timeouts_race() {
    rpc(&["5", "200000", "400000", "32"]);
}

/// Runs the game; answers its accounts and its event log.
fn game(mode: &str, shards: &str, ticks: &str, seed: &str) -> (Accounts, Vec<u8>) {
    let program = host(Language::Cpp17, "game", &["game.cpp"]);
    let log = cc::scratch().join(format!("game_{mode}_{shards}_{seed}.log"));
    let path = log.to_str().expect("a path in UTF-8");
    let told = Accounts::of(cc::run_well(&program, &[mode, shards, ticks, seed, path], LIMIT));
    told.none(&["early", "late", "stray"]);
    told.equal("started", &["expired", "cancelled", "pending"]);
    told.some(&["expired", "cancelled", "pushed-out", "shortened", "pending"]);
    (told, std::fs::read(&log).expect("the log"))
}

/// The log of a game is the same byte for byte, each time and with any number of shards.
#[test]
fn a_game_is_replayed() {
    if !Language::Cpp17.available() {
        return;
    }
    let (told, first) = game("replay", "1", "200", "7");
    assert!(told.get("expired") > 100_000, "{}", told.1.stdout);
    assert!(first.len() > 1_000_000);
    for shards in ["1", "3", "8"] {
        let (_, log) = game("replay", shards, "200", "7");
        assert!(log == first, "another log with {shards} shards");
    }
    assert!(game("replay", "1", "200", "8").1 != first, "the log does not say what happened");
}

/// On one shard the library's own order is the same each time, without being sorted.
#[test]
fn the_order_of_one_shard_is_replayed() {
    if Language::Cpp17.available() {
        let [first, second] = ["7", "7"].map(|seed| game("raw", "1", "100", seed).1);
        assert!(first == second);
    }
}

#[test]
fn a_game_is_played_live() {
    if Language::Cpp17.available() {
        game("live", "2", "30", "7");
    }
}
