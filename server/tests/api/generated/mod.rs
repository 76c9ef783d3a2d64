//! Behaviour of all operations, tested for each one in the API document. An operation
//! that no test can call fails them.

mod bodies;
mod conformance;
mod credentials;
mod fixtures;
mod ids;
mod levels;
mod lists;
mod methods;
pub(crate) mod operations;
