//! `cargo bench --bench operations`: criterion benches of the hot operations. See `benches/README.md`.

mod launch;

fn main() -> std::process::ExitCode {
    launch::launch(&["bench", "--bench", "operations"])
}
