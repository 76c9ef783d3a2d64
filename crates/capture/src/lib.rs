//! Capture without I/O: from the bytes of a request to one decision per event.
//!
//! ```text
//! CaptureRequest -decode-> Payload -shape-> Batch { token, events } -decide-> Decision
//! ```
//!
//! What belongs here: everything that depends only on the request, the time of receipt
//! and the project. This code does not wait, read a clock or keep state; it uses
//! randomness only for an event without an identity. What does not: HTTP and finding the
//! project of a key (the server), the log, persons and groups (`weir-ingest`).
//!
//! Errors ([`CaptureError`]) refuse a whole request. A fault of one event never does: it
//! results in a [`Decision::Drop`] or in a warning on an accepted event (ING-9).

mod cookieless;
mod decide;
mod decode;
mod decompress;
mod elements;
mod error;
mod form;
mod identity;
mod lz64;
mod properties;
mod shape;
mod time;
pub mod v1;

pub use cookieless::{CookielessKey, is_cookieless_id};
pub use decide::{
    AcceptedEvent, Context, Decision, DroppedEvent, EVENT_LIMIT, decide, drop_over_limit,
    drop_recording, with_properties,
};
pub use decode::{BODY_LIMIT, CapturePath, CaptureRequest, Payload, decode};
pub use error::CaptureError;
pub use shape::{Batch, EventIter, Events, RawEvent, is_project_key, shape};

#[cfg(test)]
#[path = "../../json/src/tests/any_json.rs"]
mod any_json;
#[cfg(test)]
mod tests;
