//! What changes events before they are processed.
//!
//! What belongs here: what ingestion asks of whoever knows the transformations of
//! projects, and what of an event they may change. What does not: configs,
//! plugins, scripts.
//!
//! A transformation sees events that are new: repeats were taken out before. It
//! sees them once for every time that their stretch of the log is tried, so what
//! it keeps by itself may be told of an event twice after a failure.
//!
//! The distinct id may become another one. The event then stays in the partition
//! of the one that was sent: a person is written only from the version that it was
//! worked out from (ADR 6), so persons stay right; only the order among events of
//! the new id that were sent with different ones is not kept.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use weir_model::outcomes::{DropReason, Warning};
use weir_model::{PluginConfigId, ProjectId};

use crate::batch::Batch;
use weir_capture::{AcceptedEvent, Context, Decision, RawEvent, decide, json};

/// The property that says whether the event has a person.
const PROFILE: &str = "$process_person_profile";

/// Whoever knows the transformations of projects.
#[async_trait]
pub trait Transform: Send + Sync {
    /// Whether the project has a transformation.
    fn concerns(&self, project: ProjectId) -> bool;

    /// Whether an event of the project may be stored as it was sent when transforming it
    /// is not possible. Otherwise samples of its events that are not stored are withheld:
    /// they have what a transformation takes out.
    async fn may_be_left_out(&self, project: ProjectId) -> bool;

    /// What becomes of events, in the same order and number: another number says that
    /// transforming them is not possible. Calls with the same partition come one after
    /// another.
    async fn transform(
        &self,
        project: ProjectId,
        partition: u16,
        given: Vec<Given>,
    ) -> Vec<Transformed>;
}

/// An event that transformations are asked about. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Given {
    batch: Arc<Batch>,
    index: usize,
}

impl Given {
    /// The event with this index in a batch, if there is one.
    #[must_use]
    pub fn of(batch: &Arc<Batch>, index: usize) -> Option<Self> {
        batch.accepted.get(index).map(|_| Self { batch: Arc::clone(batch), index })
    }

    /// An event of its own: a sample.
    #[must_use]
    pub fn single(event: AcceptedEvent, received_at: i64) -> Self {
        let batch = Batch { accepted: vec![event], ..Batch::new(received_at, false) };
        Self { batch: Arc::new(batch), index: 0 }
    }

    /// The event as it is now; none only for an index that the batch lacks, which
    /// cannot be made.
    #[must_use]
    pub fn event(&self) -> Option<&AcceptedEvent> {
        self.batch.accepted.get(self.index)
    }

    /// When it reached us, microseconds since 1970 UTC.
    #[must_use]
    pub fn received_at(&self) -> i64 {
        self.batch.received_at
    }

    /// The network that it came from, see [`crate::batch::network`].
    #[must_use]
    pub fn network(&self) -> Option<u64> {
        self.batch.network
    }

    /// Whether it came with `historical_migration`.
    #[must_use]
    pub fn is_historical(&self) -> bool {
        self.batch.historical
    }
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transformed {
    /// Nothing.
    Unchanged,
    /// Another one takes its place.
    Changed(Box<Changed>),
    /// It is not stored.
    Dropped {
        /// The config that dropped it.
        config: PluginConfigId,
        /// What it is called.
        name: String,
    },
    /// It is not stored: it must not be without a step that could not be run on it.
    Unavailable {
        /// The config that could not be run.
        config: PluginConfigId,
        /// What it is called.
        name: String,
    },
}

/// Why what a transformation gave is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It is not the text of an object.
    #[error("the result is not an object")]
    NotAnObject,
    /// Capture would refuse it.
    #[error("the result would be refused: {}", .0.sentence())]
    Refused(DropReason),
    /// Its time cannot be read or is out of bounds.
    #[error("the time of the result is not kept: {}", .0.sentence())]
    Time(Warning),
}

/// An event that a transformation made and that may be stored: it has passed the
/// rules of capture, and what a transformation may not change is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed(AcceptedEvent);

impl Changed {
    /// Reads what a transformation made of `given`, which is as in `now` after the
    /// steps before: the JSON text of an object with `event`, `distinct_id`,
    /// `timestamp` and `properties`, and possibly `$set`, `$set_once` and `$unset`.
    /// Without a time, or a chain of elements, those of `now` stay. Texts that are too
    /// long are cut, as capture does. Everything else in it is ignored.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn read(given: &Given, now: &AcceptedEvent, text: &str) -> Result<Self, Invalid> {
        let original = given.event().ok_or(Invalid::NotAnObject)?;
        let mut raw = RawEvent::parse(text).map_err(|_| Invalid::NotAnObject)?;
        let has_time = raw.timestamp.is_some_and(|time| time.get() != "null");
        // Neither is the transformation's to say. With its own uuid none is made of
        // the content, which costs more than all the other rules.
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

    /// The event as it is `now` with other properties, by the rules of
    /// [`Changed::read`], without writing it out and reading it again. `None` where that
    /// has to be done.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn with_properties(
        given: &Given,
        now: &AcceptedEvent,
        properties: &str,
    ) -> Result<Option<Self>, Invalid> {
        let original = given.event().ok_or(Invalid::NotAnObject)?;
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

    /// An event that some step was left out for.
    #[must_use]
    pub fn without_a_step(mut event: AcceptedEvent) -> Self {
        event.warnings.push(Warning::TransformationSkipped);
        Self(event)
    }

    /// The event.
    #[must_use]
    pub fn event(&self) -> &AcceptedEvent {
        &self.0
    }

    /// The event, to be kept.
    #[must_use]
    pub fn into_event(self) -> AcceptedEvent {
        self.0
    }
}

/// Whether the event says that it has no person. What its project or its sender
/// has switched off, no transformation switches on.
fn is_without_person(properties: &str) -> bool {
    // Most events do not say, and a name without escapes stands there as it is.
    if !properties.contains(PROFILE) && !properties.contains('\\') {
        return false;
    }
    let mut is_off = false;
    let mut cursor = json::Cursor::new(properties, json::Limits::NONE);
    let walked = cursor.object(|key, cursor| {
        let value = cursor.value()?;
        if key.text() == PROFILE {
            is_off = value == "false";
        }
        Ok(())
    });
    walked.is_ok() && is_off
}

const fn is_about_time(warning: Warning) -> bool {
    matches!(
        warning,
        Warning::InvalidTimestamp | Warning::FutureTimestamp | Warning::TimestampOutOfRange
    )
}

#[cfg(test)]
mod tests;
