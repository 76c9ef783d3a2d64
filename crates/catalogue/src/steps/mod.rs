//! The steps in Rust: one module each, with its entry.
//!
//! What belongs here: the effect on an event. What does not: reading events and configs
//! (`event`, `config`), and lists of facts (`bots`, `user_agents`).

pub(crate) mod bot_filter;
pub(crate) mod currency;
pub(crate) mod downsampling;
pub(crate) mod drop_events;
pub(crate) mod event_filter;
pub(crate) mod filter_out;
pub(crate) mod hash_properties;
pub(crate) mod ip_anonymisation;
pub(crate) mod location;
pub(crate) mod property_filter;
pub(crate) mod property_flattener;
pub(crate) mod redaction;
pub(crate) mod remove_null_properties;
pub(crate) mod schema_enforcer;
pub(crate) mod timestamp_parts;
pub(crate) mod url_masking;
pub(crate) mod url_normalisation;
pub(crate) mod user_agent;

#[cfg(test)]
mod any;

use crate::event::Object;

/// The properties that contain person properties.
const OF_PERSON: [&str; 2] = ["$set", "$set_once"];

/// Calls `each` with the properties of the event, then with `$set` and `$set_once` among
/// them.
fn with_person(properties: &mut Object<'_>, mut each: impl FnMut(&mut Object<'_>)) {
    each(properties);
    for name in OF_PERSON {
        if let Some(person) = properties.child(name) {
            each(person);
        }
    }
}
