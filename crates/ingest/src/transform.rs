//! The interface to the transformations, which change events before they are processed.
//!
//! What belongs here: what ingestion requires of the implementation, and what it may
//! change in an event. What does not: configs, plugins and scripts (`weir-plugins`).
//!
//! A transformation receives new events only: duplicates are removed first. It receives
//! them again when their batch is retried after a failure. State that it keeps may
//! therefore count an event twice.
//!
//! A transformation may change the distinct id. The event stays in the partition of the
//! sent id. Persons stay right, because a person is written only from the version that it
//! was computed from (ADR 6). Only the order among events that get the same new id from
//! different sent ids is not kept.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use weir_model::outcomes::{DropReason, Warning};
use weir_model::{PluginConfigId, ProjectId};

use weir_capture::{AcceptedEvent, Context, CookielessKey, Decision, RawEvent, decide};

/// The property that says whether the event has a person.
const PROFILE: &str = "$process_person_profile";

/// Runs the transformations of projects.
#[async_trait]
pub trait Transform: Send + Sync {
    /// Whether the project has a transformation.
    fn concerns(&self, project: ProjectId) -> bool;

    /// Whether an event of the project may be stored as it was sent when transforming it
    /// is not possible. Otherwise the samples of its events that are not stored are
    /// withheld, because they contain what a transformation removes.
    async fn may_be_omitted(&self, project: ProjectId) -> bool;

    /// The results for events, in the same order and number. Another number means that
    /// transforming was not possible. Calls with the same partition come one after
    /// another.
    async fn transform(
        &self,
        project: ProjectId,
        partition: u16,
        given: Vec<TransformInput>,
    ) -> Vec<Transformed>;
}

/// An event that is passed to transformations. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TransformInput {
    event: Arc<AcceptedEvent>,
    received_at: i64,
    network: Option<u64>,
}

impl TransformInput {
    /// An event that was received at this time, in microseconds since 1970 UTC, from this
    /// network ([`crate::batch::network`]).
    pub(crate) fn new(event: AcceptedEvent, received_at: i64, network: Option<u64>) -> Self {
        Self { event: Arc::new(event), received_at, network }
    }

    /// An event without a batch, such as a sample.
    pub fn single(event: AcceptedEvent, received_at: i64) -> Self {
        Self::new(event, received_at, None)
    }

    /// The present event.
    pub fn event(&self) -> &AcceptedEvent {
        &self.event
    }

    /// When the event was received, in microseconds since 1970 UTC.
    pub fn received_at(&self) -> i64 {
        self.received_at
    }

    /// The network that the event came from, see [`crate::batch::network`].
    pub fn network(&self) -> Option<u64> {
        self.network
    }
}

/// The result of the transformations for one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transformed {
    /// No transformation changed it.
    Unchanged,
    /// The event that is stored instead.
    Changed(Box<Changed>),
    /// A transformation dropped it.
    Dropped {
        /// The config that dropped it.
        config: PluginConfigId,
        /// Name of the config.
        name: String,
    },
    /// It is not stored, because a transformation that is mandatory could not be run.
    Unavailable {
        /// The config that could not be run.
        config: PluginConfigId,
        /// Name of the config.
        name: String,
    },
}

/// Why the result of a transformation is not a valid event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It is not the text of a JSON object.
    #[error("the result is not an object")]
    NotAnObject,
    /// Capture would refuse it.
    #[error("the result would be refused: {}", .0.sentence())]
    Refused(DropReason),
    /// Its time cannot be read or is out of bounds.
    #[error("the time of the result is not kept: {}", .0.sentence())]
    Time(Warning),
}

/// A valid event that a transformation made. It has passed the rules of capture. The
/// fields that a transformation may not change have their original values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed(AcceptedEvent);

impl Changed {
    /// Reads the result of a transformation of `given`. `now` is the event after the
    /// earlier transformations. The text is a JSON object with `event`, `distinct_id`,
    /// `timestamp` and `properties`, and possibly `$set`, `$set_once` and `$unset`.
    /// Without a time, or a chain of elements, those of `now` stay. Texts that are too
    /// long are cut, as capture does. All other members are ignored.
    pub fn read(given: &TransformInput, now: &AcceptedEvent, text: &str) -> Result<Self, Invalid> {
        let original = given.event();
        let mut raw = RawEvent::parse(text).map_err(|_| Invalid::NotAnObject)?;
        let has_time = raw.timestamp.is_some_and(|time| time.get() != "null");
        // A transformation can change neither. Without a uuid, capture would compute one
        // from the content, which costs more than all other rules.
        let uuid = format!("\"{}\"", original.uuid);
        raw.uuid = serde_json::from_str::<&RawValue>(&uuid).ok();
        raw.offset = None;
        let received_at = DateTime::<Utc>::from_timestamp_micros(given.received_at());
        let context = Context {
            received_at: received_at.unwrap_or_default(),
            sent_at: None,
            project: 0,
            client_address: None,
            engage: false,
            person_processing_opt_out: is_without_person(&original.properties),
            cookieless_key: CookielessKey::of_accepted(&original.distinct_id),
        };
        let mut event = match decide(&raw, &context) {
            Decision::Accept(event) => event,
            Decision::Drop(dropped) => return Err(Invalid::Refused(dropped.reason)),
        };
        if !has_time {
            event.timestamp = now.timestamp;
        } else if let Some(warning) = event.warnings.iter().find(|warning| is_about_time(**warning))
        {
            return Err(Invalid::Time(*warning));
        }
        if event.elements_chain.is_empty() {
            event.elements_chain.clone_from(&now.elements_chain);
        }
        event.uuid = original.uuid;
        event.warnings.clone_from(&original.warnings);
        Ok(Self(event))
    }

    /// The event `now` with other properties, by the rules of [`Changed::read`], without
    /// writing it as text and parsing it. `None` if the text form is necessary.
    pub fn with_properties(
        given: &TransformInput,
        now: &AcceptedEvent,
        properties: &str,
    ) -> Result<Option<Self>, Invalid> {
        let original = given.event();
        // Other times may be out of bounds.
        if !(0..=given.received_at()).contains(&now.timestamp) {
            return Ok(None);
        }
        let is_off = is_without_person(&original.properties);
        let made = weir_capture::with_properties(now, properties, is_off);
        let Some(mut event) = made.map_err(Invalid::Refused)? else { return Ok(None) };
        if event.elements_chain.is_empty() {
            event.elements_chain.clone_from(&now.elements_chain);
        }
        Ok(Some(Self(event)))
    }

    /// An event that is stored although a transformation could not be run on it.
    pub fn without_a_step(mut event: AcceptedEvent) -> Self {
        event.warnings.push(Warning::TransformationSkipped);
        Self(event)
    }

    /// The event as it is stored, with its warnings.
    pub fn event(&self) -> &AcceptedEvent {
        &self.0
    }

    /// Returns the event.
    pub fn into_event(self) -> AcceptedEvent {
        self.0
    }
}

/// Whether the event says that it has no person. A transformation cannot give a person to
/// an event whose project or sender has switched persons off.
fn is_without_person(properties: &str) -> bool {
    // Most events do not have the property, and a name without escapes is in the text
    // literally.
    if !properties.contains(PROFILE) && !properties.contains('\\') {
        return false;
    }
    weir_json::member(properties, PROFILE) == Some("false")
}

const fn is_about_time(warning: Warning) -> bool {
    matches!(
        warning,
        Warning::InvalidTimestamp | Warning::FutureTimestamp | Warning::TimestampOutOfRange
    )
}

#[cfg(test)]
mod tests;
