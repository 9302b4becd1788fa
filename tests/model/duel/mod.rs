//! A real service and a plain reference, side by side, playing the same case.
//!
//! - `ops`, `instant`: the language, and how bytes say it.
//! - `timer`, `reference`, `polls`: the reference.
//! - `game`, `play`, `starts`, `books`: the service beside it, through the C ABI.

mod books;
mod game;
mod instant;
mod ops;
mod play;
mod polls;
mod reference;
mod starts;
mod timer;

#[allow(unused_imports)] // The fuzz target needs it not.
pub use ops::WIDTH;

/// Plays what the bytes say. An error tells the whole story, and at its end what was wrong.
pub fn play(bytes: &[u8]) -> Result<(), String> {
    let case = ops::Case::decode(bytes);
    game::Game::play(&case, false).map_err(|fault| match game::Game::play(&case, true) {
        Ok(()) => format!("{fault}, but not a second time: {case:#?}"),
        Err(story) => story,
    })
}
