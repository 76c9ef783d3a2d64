//! An event as steps of the catalogue see it.
//!
//! What belongs here: reading and changing parts of an event, while the rest stays
//! unchanged. What does not: steps (`steps`).

mod object;

use std::borrow::Cow;

pub use object::{NotAnObject, Object};
use weir_model::time::Timestamp;

/// The result of a step for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// The event continues, changed or not.
    Keep,
    /// The event is dropped.
    Drop,
}

/// One event while it passes through steps.
///
/// Values are JSON text that is parsed only when a step reads it, so unchanged values
/// keep every digit.
#[derive(Debug, Clone)]
pub struct StepEvent<'a> {
    name: Cow<'a, str>,
    distinct_id: Cow<'a, str>,
    ip: Option<Cow<'a, str>>,
    timestamp: Timestamp,
    properties: Object<'a>,
    is_changed: bool,
}

impl<'a> StepEvent<'a> {
    /// Creates an event. `properties` is the text of a JSON object, including `$set` and
    /// `$set_once`; `ip` is the address next to the properties, if there is one.
    ///
    /// # Errors
    /// If `properties` is not an object.
    pub fn new(
        name: impl Into<Cow<'a, str>>,
        distinct_id: impl Into<Cow<'a, str>>,
        ip: Option<&'a str>,
        timestamp: Timestamp,
        properties: &'a str,
    ) -> Result<Self, NotAnObject> {
        Ok(Self {
            name: name.into(),
            distinct_id: distinct_id.into(),
            ip: ip.map(Cow::Borrowed),
            timestamp,
            properties: Object::read(Cow::Borrowed(properties))?,
            is_changed: false,
        })
    }

    /// The name of the event.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The distinct id of the user.
    pub fn distinct_id(&self) -> &str {
        &self.distinct_id
    }

    /// The address next to the properties; see also [`StepEvent::address`].
    pub fn ip(&self) -> Option<&str> {
        self.ip.as_deref()
    }

    /// The event time.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// Its properties.
    pub fn properties(&self) -> &Object<'a> {
        &self.properties
    }

    /// Its properties, to change them or to read nested ones.
    pub fn properties_mut(&mut self) -> &mut Object<'a> {
        &mut self.properties
    }

    /// The address of the sender: `$ip`, otherwise the address next to the properties.
    pub fn address(&self) -> Option<Cow<'_, str>> {
        self.properties.text("$ip").or_else(|| self.ip.as_deref().map(Cow::Borrowed))
    }

    /// Sets the distinct id.
    pub fn set_distinct_id(&mut self, distinct_id: String) {
        if self.distinct_id != distinct_id {
            self.distinct_id = Cow::Owned(distinct_id);
            self.is_changed = true;
        }
    }

    /// Sets or removes the address next to the properties.
    pub fn set_ip(&mut self, ip: Option<String>) {
        if self.ip.as_deref() != ip.as_deref() {
            self.ip = ip.map(Cow::Owned);
            self.is_changed = true;
        }
    }

    /// Whether anything was changed. If not, the original text can be passed on.
    pub fn is_changed(&self) -> bool {
        self.is_changed || self.properties.is_changed()
    }

    /// The JSON text of the properties: the original one if nothing changed.
    pub fn properties_text(&self) -> Cow<'_, str> {
        self.properties.to_text()
    }
}
