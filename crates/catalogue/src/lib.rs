//! The plugins that Weir ships: their names, settings and code (PLG-39).
//!
//! What belongs here: the list, steps in Rust for events before they are stored, and
//! JavaScript that delivers events, needs storage or runs on pages of visitors. What does
//! not: configs of projects (`weir-service`), and running JavaScript (`weir-sandbox`).
//!
//! A step never fails for an event: it leaves unreadable data unchanged.

mod bots;
mod conditions;
mod config;
mod entry;
mod event;
mod locate;
mod schema;
mod sources;
mod steps;
mod urls;
mod user_agents;

#[cfg(test)]
mod pages;
#[cfg(test)]
mod testing;

pub use config::{Config, ConfigError};
pub use entry::{
    Code, Direction, Entry, Item, ItemKind, MAINTAINER, SourceFile, Step, StepDependencies, URL,
};
pub use event::{Flow, NotAnObject, Object, StepEvent};
pub use locate::{Locate, Precision};

/// All plugins that Weir ships, in display order.
pub fn catalogue() -> &'static [&'static Entry] {
    ALL
}

/// The entry with this id.
pub fn find(id: &str) -> Option<&'static Entry> {
    ALL.iter().copied().find(|entry| entry.id == id)
}

/// The entry for the address of a plugin, such as `inline:location`.
pub fn find_url(url: &str) -> Option<&'static Entry> {
    find(url.strip_prefix(URL)?)
}

/// Entries that remove data from events that must not be stored.
const PROTECTING: &[&str] =
    &["hash-properties", "redaction", "url-masking", "ip-anonymisation", "property-filter"];

const ALL: &[&Entry] = &[
    &steps::location::ENTRY,
    &steps::bot_filter::ENTRY,
    &steps::hash_properties::ENTRY,
    &steps::redaction::ENTRY,
    &steps::url_normalisation::ENTRY,
    &steps::url_masking::ENTRY,
    &steps::ip_anonymisation::ENTRY,
    &steps::property_filter::ENTRY,
    &steps::drop_events::ENTRY,
    &steps::event_filter::ENTRY,
    &steps::filter_out::ENTRY,
    &steps::remove_null_properties::ENTRY,
    &steps::downsampling::ENTRY,
    &steps::property_flattener::ENTRY,
    &steps::user_agent::ENTRY,
    &steps::timestamp_parts::ENTRY,
    &steps::currency::ENTRY,
    &steps::schema_enforcer::ENTRY,
    &sources::url_parameters::ENTRY,
    &sources::semver_flattener::ENTRY,
    &sources::taxonomy::ENTRY,
    &sources::first_time_events::ENTRY,
    &sources::webhook::ENTRY,
    &sources::slack_message::ENTRY,
    &sources::notification_bar::ENTRY,
];
