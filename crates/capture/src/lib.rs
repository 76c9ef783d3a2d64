//! The pure front half of capture: from the bytes of a request to one decision
//! per event.
//!
//! ```text
//! CaptureRequest -decode-> Payload -shape-> Batch { token, events } -decide-> Decision
//! ```
//!
//! What belongs here: everything that follows from the request, the time of
//! receipt and the project alone. Nothing here waits, reads a clock or keeps
//! state; randomness enters only where an event without identity needs one.
//! What does not: HTTP, looking up the key, the log, persons and groups.
//!
//! Errors ([`CaptureError`]) refuse a whole request. A fault of one event never
//! does: it ends as a [`Decision::Drop`] or as a warning on an accepted event (ING-9).

mod decide;
mod decode;
mod elements;
mod error;
mod form;
mod identity;
pub mod json;
mod lz64;
mod properties;
mod shape;
mod time;
mod unpack;
pub mod v1;

pub use decide::{
    AcceptedEvent, Context, Decision, DroppedEvent, EVENT_LIMIT, decide, drop_recording,
    with_properties,
};
pub use decode::{BODY_LIMIT, CapturePath, CaptureRequest, Payload, decode};
pub use error::CaptureError;
pub use shape::{Batch, EventIter, Events, RawEvent, is_project_key, shape};

#[cfg(test)]
mod tests;
