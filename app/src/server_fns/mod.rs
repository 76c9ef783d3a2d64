//! Server functions: what pages ask the server for. Each one enters, calls a
//! service, and maps the answer to what the page shows; rules are elsewhere.
//!
//! They are mounted under `/_fn` and are public: each one finds out by itself
//! who is calling.

pub(crate) mod account;
pub(crate) mod events;
pub(crate) mod identity;
pub(crate) mod keys;
pub(crate) mod organizations;
pub(crate) mod projects;
pub(crate) mod setup;
