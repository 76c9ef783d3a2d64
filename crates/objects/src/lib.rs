//! Object storages: how requests are sent to them, and the bucket of an operator.
//!
//! ```text
//! object_store (names, signatures, retries) -> Connector -> weir-egress
//! ```
//!
//! What belongs here: requests and the meaning of answers. What does not: which objects
//! there must be (`weir-store`), and the settings of destinations (`weir-export`).
//!
//! Invariant: an answer is read up to a bound, and an object in parts. No error has text
//! of a server or a secret.

mod bucket;
mod connector;
mod location;

pub use bucket::{Bucket, Error, Result};
pub use connector::{Answered, Connector};
pub use location::{Access, BucketLocation, Secret};
