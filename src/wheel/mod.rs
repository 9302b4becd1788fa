//! The timing wheel.
