//! Rules for the whole workspace, checked with the metadata of cargo and the files of the
//! repository.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod architecture;
mod browser;
mod citations;
mod dependencies;
mod features;
mod leptos;
mod names;
mod style;
mod support;
mod waiting;
mod words;
