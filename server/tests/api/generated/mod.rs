//! What holds for all operations, tested for each one that the API document has:
//! an operation that no test can call fails them.

mod bodies;
mod conformance;
mod credentials;
mod fixtures;
mod ids;
mod levels;
mod lists;
mod methods;
pub(crate) mod operations;
