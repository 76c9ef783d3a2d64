//! Finished spans that wait to be sent.
//!
//! What belongs here: the bound on their memory. What does not: what a span contains
//! (`recorder`), sending (`exporter`).

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use weir_model::Timestamp;

/// Bytes that waiting spans may take.
const WAITING: usize = 2 << 20;
/// Most spans that are sent together.
pub(super) const BATCH: usize = 512;
/// Bytes of a span besides its texts.
const SPAN: usize = mem::size_of::<Finished>();
/// Bytes of an attribute besides its text.
const ATTRIBUTE: usize = mem::size_of::<(&'static str, Value)>();

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Flag(bool),
}

/// The role of a span between two services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Internal,
    Server,
}

/// What a span says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) name: Cow<'static, str>,
    pub(super) kind: Kind,
    pub(super) is_failed: bool,
    pub(super) attributes: Vec<(&'static str, Value)>,
}

/// Where a span is in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) trace: u128,
    pub(super) span: u64,
    /// The span that this one is in, which may be one of another service.
    pub(super) parent: Option<u64>,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) place: Place,
    pub(super) began: Timestamp,
    pub(super) took: Duration,
    pub(super) content: Content,
}

impl Finished {
    fn bytes(&self) -> usize {
        let Content { name, attributes, .. } = &self.content;
        let texts = attributes.iter().map(|(_, value)| match value {
            Value::Text(text) => text.len(),
            Value::Whole(_) | Value::Flag(_) => 0,
        });
        SPAN + name.len() + attributes.len() * ATTRIBUTE + texts.sum::<usize>()
    }
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<Finished>,
    bytes: usize,
    /// Spans that found no room since the last batch was taken.
    lost: u64,
}

/// The spans that wait. Adding one never waits for the sender.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

/// Spans that are sent together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) spans: Vec<Finished>,
    /// Spans that were lost since the batch before.
    pub(super) lost: u64,
}

impl Queue {
    /// Adds a span, or counts it as lost if there is no room.
    pub(super) fn push(&self, span: Finished) {
        let bytes = span.bytes();
        let mut waiting = self.waiting.lock();
        if waiting.bytes + bytes > WAITING {
            waiting.lost += 1;
            return;
        }
        waiting.bytes += bytes;
        waiting.spans.push_back(span);
        let is_filled = waiting.spans.len() >= BATCH;
        drop(waiting);
        if is_filled {
            self.filled.notify_one();
        }
    }

    /// Takes the oldest spans, at most [`BATCH`].
    pub(super) fn take(&self) -> Batch {
        let mut waiting = self.waiting.lock();
        let count = waiting.spans.len().min(BATCH);
        let spans: Vec<_> = waiting.spans.drain(..count).collect();
        waiting.bytes -= spans.iter().map(Finished::bytes).sum::<usize>();
        Batch { spans, lost: mem::take(&mut waiting.lost) }
    }

    /// Returns when a whole batch waits.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: usize) -> Finished {
        let attributes = vec![("a", Value::Text("x".repeat(text)))];
        Finished {
            place: Place { trace: 1, span: 2, parent: None },
            began: Timestamp::from_micros(0),
            took: Duration::ZERO,
            content: Content {
                name: Cow::Borrowed("work"),
                kind: Kind::Internal,
                is_failed: false,
                attributes,
            },
        }
    }

    #[test]
    fn spans_without_room_are_lost_and_counted() {
        let queue = Queue::default();
        queue.push(span(WAITING / 2));
        queue.push(span(WAITING / 2));
        queue.push(span(1));
        queue.push(span(WAITING));
        let Batch { spans, lost } = queue.take();
        assert_eq!((spans.len(), lost), (2, 2));
        assert_eq!(queue.waiting.lock().bytes, 0);
        queue.push(span(WAITING / 2));
        let Batch { spans, lost } = queue.take();
        assert_eq!((spans.len(), lost), (1, 0));
    }

    #[tokio::test]
    async fn many_spans_are_taken_in_batches() {
        let queue = Queue::default();
        for _ in 0..=BATCH {
            queue.push(span(0));
        }
        queue.filled().await;
        let sizes: Vec<_> = (0..3).map(|_| queue.take().spans.len()).collect();
        assert_eq!(sizes, [BATCH, 1, 0]);
    }
}
