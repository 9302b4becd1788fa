//! The only calls to the operating system.
