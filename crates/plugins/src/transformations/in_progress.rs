//! An event while it passes through steps.

use weir_capture::AcceptedEvent;
use weir_ingest::transform::{Changed, Invalid, TransformInput, Transformed};
use weir_model::PluginConfigId;

use crate::allowance::Sender;
use crate::shape;

/// An event, with the changes of the steps so far.
#[derive(Debug)]
pub(crate) struct EventInProgress {
    given: TransformInput,
    now: Transformed,
    /// Whether a step was skipped for it.
    lacks_a_step: bool,
}

impl EventInProgress {
    /// The event as it was sent.
    pub(crate) fn new(given: TransformInput) -> Self {
        Self { given, now: Transformed::Unchanged, lacks_a_step: false }
    }

    /// The current event. `None`: it was dropped.
    pub(crate) fn event(&self) -> Option<&AcceptedEvent> {
        match &self.now {
            Transformed::Unchanged => Some(self.given.event()),
            Transformed::Changed(changed) => Some(changed.event()),
            Transformed::Dropped { .. } | Transformed::Unavailable { .. } => None,
        }
    }

    /// Who sent it.
    pub(crate) fn sender(&self) -> Sender {
        Sender::of(self.given.network(), &self.given.event().distinct_id)
    }

    /// The time of receipt, in microseconds.
    pub(crate) fn received_at(&self) -> i64 {
        self.given.received_at()
    }

    /// Replaces the event by the result of a step.
    pub(crate) fn change(&mut self, text: &str) -> Result<(), Invalid> {
        let Some(event) = self.event() else { return Ok(()) };
        self.now = Transformed::Changed(Box::new(Changed::read(&self.given, event, text)?));
        Ok(())
    }

    /// Replaces only the properties.
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

    /// Drops the event for a step.
    pub(crate) fn drop_by(&mut self, config: PluginConfigId, name: &str) {
        self.now = Transformed::Dropped { config, name: name.to_owned() };
    }

    /// Records that a step could not run. If the step must run, the event is not stored.
    pub(crate) fn omit(&mut self, config: PluginConfigId, name: &str, must_run: bool) {
        if must_run {
            self.now = Transformed::Unavailable { config, name: name.to_owned() };
        } else {
            self.lacks_a_step = true;
        }
    }

    /// The final result.
    pub(crate) fn end(self) -> Transformed {
        if !self.lacks_a_step {
            return self.now;
        }
        let event = match self.now {
            Transformed::Unchanged => Some(self.given.event().clone()),
            Transformed::Changed(changed) => Some(changed.into_event()),
            gone => return gone,
        };
        let without = |event| Transformed::Changed(Box::new(Changed::without_a_step(event)));
        event.map_or(Transformed::Unchanged, without)
    }
}
