//! An event on its way through steps.

use weir_capture::AcceptedEvent;
use weir_ingest::transform::{Changed, Given, Invalid, Transformed};
use weir_model::PluginConfigId;

use crate::shape;

/// An event, and what the steps so far have made of it.
#[derive(Debug)]
pub(crate) struct Passing {
    given: Given,
    now: Transformed,
}

impl Passing {
    /// As it was sent.
    pub(crate) fn new(given: Given) -> Self {
        Self { given, now: Transformed::Unchanged }
    }

    /// The event as it is now; none: it was dropped.
    pub(crate) fn event(&self) -> Option<&AcceptedEvent> {
        match &self.now {
            Transformed::Unchanged => self.given.event(),
            Transformed::Changed(changed) => Some(changed.event()),
            Transformed::Dropped { .. } => None,
        }
    }

    /// When it was received, microseconds.
    pub(crate) fn received_at(&self) -> i64 {
        self.given.received_at()
    }

    /// Takes over what a step has made of it.
    pub(crate) fn change(&mut self, text: &str) -> Result<(), Invalid> {
        let Some(event) = self.event() else { return Ok(()) };
        self.now = Transformed::Changed(Box::new(Changed::read(&self.given, event, text)?));
        Ok(())
    }

    /// Takes over other properties that a step has given it, and nothing else.
    pub(crate) fn change_properties(&mut self, properties: &str) -> Result<(), Invalid> {
        let Some(event) = self.event() else { return Ok(()) };
        let changed = match Changed::with_properties(&self.given, event, properties)? {
            Some(changed) => changed,
            None => {
                let (name, id) = (&event.event, &event.distinct_id);
                let text = shape::rebuilt(name, id, event.timestamp, properties);
                Changed::read(&self.given, event, &text)?
            }
        };
        self.now = Transformed::Changed(Box::new(changed));
        Ok(())
    }

    /// A step has dropped it.
    pub(crate) fn drop_by(&mut self, config: PluginConfigId, name: &str) {
        self.now = Transformed::Dropped { config, name: name.to_owned() };
    }

    /// What became of it.
    pub(crate) fn end(self) -> Transformed {
        self.now
    }
}
