//! `cargo bench --bench peers`: shardwheel beside other libraries. See `benches/README.md`.

mod launch;

fn main() -> std::process::ExitCode {
    launch::launch(&["run", "--release"])
}
