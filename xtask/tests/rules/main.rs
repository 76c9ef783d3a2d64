//! Rules for the workspace as a whole, checked from what cargo knows about it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod architecture;
mod citations;
mod dependencies;
mod support;
mod words;
