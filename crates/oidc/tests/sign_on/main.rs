//! Logins against issuers that tests script, and against npm's `oidc-provider`.
//!
//! `hostile` and `valid` are tables: one row for each token, callback or answer.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod cache;
mod github;
mod hostile;
mod issuer;
mod oidc_provider;
mod signers;
mod slow;
mod valid;
