//! Questions about the events of a project: trends, funnels, retention, paths, stickiness,
//! lifecycle, the web overview, lists of events and HogQL.
//!
//! What belongs here: the shapes of questions and results as API clients know them, ranges
//! and buckets of time, formulas, and how an answer is computed from the sorted events of a
//! person. What does not: reading events, resolving merged persons, and running a query
//! (its engine), permissions (`weir-service`), and the query of an export (`weir-query`).
//!
//! Nothing here reads a clock or the store. Without the features `zones` and `matching` the
//! crate also builds for the browser: then the computation of ranges and buckets, and
//! whether values satisfy filters, are missing.

mod choices;
pub mod evaluate;
pub mod formula;
pub mod query;
pub mod results;
pub mod time;

pub use formula::Formula;
pub use query::Query;
