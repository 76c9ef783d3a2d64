//! A batch as the consumers read it: the texts of all events in one allocation.
//!
//! Events are views into it ([`EventView`]), so that reading a record makes no copy of
//! each text, and a consumer copies a text only when it changes it.
//!
//! What belongs here: the decoded form for consumers. What does not: the encoding
//! (`batch`), and which consumer an event belongs to (`log`).

use serde::Deserialize;
use uuid::Uuid;
use weir_capture::{AcceptedEvent, DroppedEvent};
use weir_model::outcomes::{DropReason, Warning};

use crate::batch::{Batch, size_of_dropped};

/// The events of one request for one project, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedBatch {
    /// When the request was received, in microseconds since 1970 UTC.
    pub(crate) received_at: i64,
    /// Whether the request had `historical_migration`.
    pub(crate) historical: bool,
    /// Events that are not stored, with the reason.
    pub(crate) dropped: Vec<DroppedEvent>,
    /// How many more events were dropped, by reason.
    pub(crate) further_drops: Vec<(DropReason, u64)>,
    /// The network that the request came from.
    pub(crate) network: Option<u64>,
    /// Name, distinct id, properties and elements chain of one event after another.
    texts: String,
    events: Vec<Entry>,
}

/// The fixed part of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    uuid: Uuid,
    timestamp: i64,
    /// Where its texts begin.
    begin: u32,
    /// Where its name, distinct id, properties and elements chain end.
    ends: [u32; 4],
    warnings: Vec<Warning>,
}

/// An event whose texts are elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventView<'a> {
    pub(crate) uuid: Uuid,
    pub(crate) event: &'a str,
    pub(crate) distinct_id: &'a str,
    /// Event time in microseconds.
    pub(crate) timestamp: i64,
    pub(crate) properties: &'a str,
    pub(crate) elements_chain: &'a str,
    pub(crate) warnings: &'a [Warning],
}

/// The encoded form of [`Batch`], with texts that stay in the encoded bytes.
#[derive(Deserialize)]
pub(crate) struct EncodedForm<'a> {
    received_at: i64,
    historical: bool,
    #[serde(borrow)]
    accepted: Vec<EncodedEvent<'a>>,
    dropped: Vec<DroppedEvent>,
    further_drops: Vec<(DropReason, u64)>,
}

/// The encoded form of [`AcceptedEvent`].
#[derive(Deserialize)]
struct EncodedEvent<'a> {
    uuid: Uuid,
    event: &'a str,
    distinct_id: &'a str,
    timestamp: i64,
    properties: &'a str,
    elements_chain: &'a str,
    warnings: Vec<Warning>,
}

impl<'a> From<&'a AcceptedEvent> for EventView<'a> {
    fn from(event: &'a AcceptedEvent) -> Self {
        Self {
            uuid: event.uuid,
            event: &event.event,
            distinct_id: &event.distinct_id,
            timestamp: event.timestamp,
            properties: &event.properties,
            elements_chain: &event.elements_chain,
            warnings: &event.warnings,
        }
    }
}

impl EventView<'_> {
    /// A copy with its own texts.
    pub(crate) fn to_accepted(self) -> AcceptedEvent {
        AcceptedEvent {
            uuid: self.uuid,
            event: self.event.to_owned(),
            distinct_id: self.distinct_id.to_owned(),
            timestamp: self.timestamp,
            properties: self.properties.to_owned(),
            elements_chain: self.elements_chain.to_owned(),
            warnings: self.warnings.to_vec(),
        }
    }

    fn texts(&self) -> [&str; 4] {
        [self.event, self.distinct_id, self.properties, self.elements_chain]
    }
}

impl LoggedBatch {
    /// The same batch as a request makes it.
    pub(crate) fn of(batch: &Batch) -> Self {
        let mut logged = Self {
            received_at: batch.received_at,
            historical: batch.historical,
            dropped: batch.dropped.clone(),
            further_drops: batch.further_drops.clone(),
            network: batch.network,
            texts: String::new(),
            events: Vec::new(),
        };
        logged.fill(batch.accepted.iter().map(EventView::from));
        logged
    }

    pub(crate) fn decoded(encoded: EncodedForm<'_>) -> Self {
        let EncodedForm { received_at, historical, accepted, dropped, further_drops } = encoded;
        let (texts, events) = (String::new(), Vec::new());
        let mut logged =
            Self { received_at, historical, dropped, further_drops, network: None, texts, events };
        logged.fill(accepted.iter().map(|event| EventView {
            uuid: event.uuid,
            event: event.event,
            distinct_id: event.distinct_id,
            timestamp: event.timestamp,
            properties: event.properties,
            elements_chain: event.elements_chain,
            warnings: &event.warnings,
        }));
        logged
    }

    fn fill<'a>(&mut self, events: impl ExactSizeIterator<Item = EventView<'a>> + Clone) {
        let bytes = events.clone().map(|event| event.texts().map(str::len).iter().sum::<usize>());
        self.texts.reserve_exact(bytes.sum());
        self.events.reserve_exact(events.len());
        // A batch is far smaller than 4 GiB.
        let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        for event in events {
            let begin = number(self.texts.len());
            let ends = event.texts().map(|text| {
                self.texts.push_str(text);
                number(self.texts.len())
            });
            self.events.push(Entry {
                uuid: event.uuid,
                timestamp: event.timestamp,
                begin,
                ends,
                warnings: event.warnings.to_vec(),
            });
        }
    }

    /// The number of accepted events.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The accepted event with this index.
    pub(crate) fn event(&self, index: usize) -> Option<EventView<'_>> {
        self.events.get(index).map(|entry| self.view(entry))
    }

    /// The accepted events, in order.
    pub(crate) fn events(&self) -> impl ExactSizeIterator<Item = EventView<'_>> {
        self.events.iter().map(|entry| self.view(entry))
    }

    fn view<'a>(&'a self, entry: &'a Entry) -> EventView<'a> {
        let [event, distinct_id, properties, elements_chain] = entry.ends;
        let text =
            |begin: u32, end: u32| self.texts.get(begin as usize..end as usize).unwrap_or_default();
        EventView {
            uuid: entry.uuid,
            event: text(entry.begin, event),
            distinct_id: text(event, distinct_id),
            timestamp: entry.timestamp,
            properties: text(distinct_id, properties),
            elements_chain: text(properties, elements_chain),
            warnings: &entry.warnings,
        }
    }

    /// Bytes of memory that the batch takes, roughly.
    pub(crate) fn memory(&self) -> usize {
        let dropped = self.dropped.iter().map(size_of_dropped);
        Self::memory_of(self.len(), self.texts.len()) + dropped.sum::<usize>()
    }

    /// Bytes of memory that a batch takes with this number of events and bytes of texts,
    /// roughly.
    pub(crate) fn memory_of(events: usize, texts: usize) -> usize {
        size_of::<Self>() + events * size_of::<Entry>() + texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::batch;

    #[test]
    fn events_are_those_of_the_batch() {
        let mut sent = batch("ädä", 3);
        sent.accepted[1].warnings.push(Warning::ALL[0]);
        sent.accepted[1].elements_chain = "a:nth-child=\"1\"".to_owned();
        sent.accepted[2].properties = "{}".to_owned();
        let logged = LoggedBatch::of(&sent);
        let events: Vec<AcceptedEvent> = logged.events().map(EventView::to_accepted).collect();
        assert_eq!(events, sent.accepted);
        assert_eq!(logged.event(1).map(EventView::to_accepted).as_ref(), sent.accepted.get(1));
        assert_eq!((logged.len(), logged.event(3)), (3, None));
        assert!(logged.memory() > logged.texts.len());
    }
}
