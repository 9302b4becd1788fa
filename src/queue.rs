//! STUB, to be replaced.
/// A queue.
#[derive(Debug)]
pub struct QueueInner {
    _x: u8,
}
