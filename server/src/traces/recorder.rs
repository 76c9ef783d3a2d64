//! From spans of `tracing` to finished spans in the queue.
//!
//! What belongs here: which spans are recorded, the ids of traces and spans, and reading
//! fields. What does not: waiting and sending.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{self, FilterFn};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};
use uuid::Uuid;
use weir_model::{Timestamp, traces};
use weir_service::Clock;

use super::queue::{Content, Finished, Kind, Place, Queue, Value};
use crate::config::TraceShare;

/// Most attributes of a span. Those of the code are fewer.
const ATTRIBUTES: usize = 16;
/// Longest text of an attribute and longest name, in bytes.
const LONGEST: usize = 256;

/// Records the spans of traces, as a layer of the process's subscriber.
#[derive(Debug)]
pub struct Recorder {
    queue: Arc<Queue>,
    share: TraceShare,
    clock: Clock,
}

impl Recorder {
    pub(super) fn new(queue: Arc<Queue>, share: TraceShare, clock: Clock) -> Self {
        Self { queue, share, clock }
    }

    /// The spans that it must see.
    pub fn filter() -> FilterFn<fn(&Metadata<'_>) -> bool> {
        let is_traced: fn(&Metadata<'_>) -> bool =
            |metadata| metadata.is_span() && metadata.target() == traces::TARGET;
        filter::filter_fn(is_traced).with_max_level_hint(Level::INFO)
    }

    /// The place of a new span that begins a trace; `None` if it is not recorded.
    fn begin(&self, fields: &Beginning) -> Option<Place> {
        let span = new_span_id();
        if let Some(caller) = fields.caller {
            let place = Place { trace: caller.trace, span, parent: Some(caller.span) };
            return caller.is_recorded.then_some(place);
        }
        let trace = fields.trace.unwrap_or_else(|| Uuid::new_v4().as_u128());
        self.share.takes(trace).then_some(Place { trace, span, parent: None })
    }
}

/// A span that is recorded and has not ended.
struct Open {
    place: Place,
    began: Timestamp,
    since: Instant,
    content: Content,
}

impl<S> Layer<S> for Recorder
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let place = match place_of_parent(&span) {
            Some(Place { trace, span: parent, .. }) => {
                Some(Place { trace, span: new_span_id(), parent: Some(parent) })
            }
            None if span.fields().field(TRACE_ID).is_some() => {
                let mut fields = Beginning::default();
                attributes.record(&mut fields);
                self.begin(&fields)
            }
            None => None,
        };
        let Some(place) = place else { return };
        let mut content = Content {
            name: Cow::Borrowed(span.name()),
            kind: Kind::Internal,
            is_failed: false,
            attributes: Vec::new(),
        };
        attributes.record(&mut content);
        let open = Open { place, began: self.clock.now(), since: Instant::now(), content };
        span.extensions_mut().replace(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            values.record(&mut open.content);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let closed = span.extensions_mut().remove::<Open>();
        if let Some(Open { place, began, since, content }) = closed {
            self.queue.push(Finished { place, began, took: since.elapsed(), content });
        }
    }
}

fn place_of_parent<'a, S: LookupSpan<'a>>(span: &SpanRef<'a, S>) -> Option<Place> {
    let parent = span.parent()?;
    let extensions = parent.extensions();
    let open: Option<&Open> = extensions.get();
    open.map(|open| open.place)
}

/// An id of eight bytes that is not zero.
fn new_span_id() -> u64 {
    Uuid::new_v4().as_u64_pair().1
}

/// The field that begins a trace.
const TRACE_ID: &str = "trace.id";
/// The field with the header `traceparent` of a caller that is trusted.
const TRACE_PARENT: &str = "trace.parent";

/// What the first span of a trace knows about the trace.
#[derive(Debug, Default)]
struct Beginning {
    trace: Option<u128>,
    caller: Option<Caller>,
}

/// The span of another service that a request is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Caller {
    trace: u128,
    span: u64,
    is_recorded: bool,
}

impl Caller {
    /// Reads the header `traceparent` of the W3C: version, trace, span and flags, as
    /// hexadecimal digits of fixed lengths. Later versions may have more parts.
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = digits(parts.next()?, 2)?;
        let (trace, span) = (digits(parts.next()?, 32)?, digits(parts.next()?, 16)?);
        let flags = digits(parts.next()?, 2)?;
        let is_known = version == 0 && parts.next().is_none();
        let is_later = (1..0xff).contains(&version);
        if trace == 0 || span == 0 || !(is_known || is_later) {
            return None;
        }
        let span = u64::try_from(span).ok()?;
        Some(Self { trace, span, is_recorded: flags & 1 == 1 })
    }
}

/// The value of this many hexadecimal digits in lower case.
fn digits(text: &str, count: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let fits = text.len() == count && text.bytes().all(is_digit);
    if fits { u128::from_str_radix(text, 16).ok() } else { None }
}

impl Visit for Beginning {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            TRACE_ID => self.trace = Uuid::try_parse(value).ok().map(|id| id.as_u128()),
            TRACE_PARENT => self.caller = Caller::read(value),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == TRACE_ID {
            self.record_str(field, &format!("{value:?}"));
        }
    }
}

impl Content {
    fn set(&mut self, name: &'static str, value: Value) {
        let has_room = self.attributes.len() < ATTRIBUTES;
        match self.attributes.iter_mut().find(|(other, _)| *other == name) {
            Some((_, present)) => *present = value,
            None if has_room => self.attributes.push((name, value)),
            None => {}
        }
    }
}

impl Visit for Content {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            TRACE_ID | TRACE_PARENT => {}
            "otel.name" => self.name = Cow::Owned(cut(value)),
            "otel.kind" if value == "server" => self.kind = Kind::Server,
            "otel.kind" => self.kind = Kind::Internal,
            "otel.status_code" => self.is_failed = value == "error",
            name => self.set(name, Value::Text(cut(value))),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), Value::Whole(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), Value::Whole(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), Value::Flag(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// The beginning of a text.
fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests {
    use tracing::field::Empty;
    use tracing::info_span;
    use tracing_subscriber::layer::SubscriberExt as _;
    use weir_model::traces::TARGET;

    use super::*;

    /// The spans that were recorded of some work, in the order in which they ended.
    fn recorded(share: &str, work: impl FnOnce()) -> Vec<Finished> {
        let queue = Arc::new(Queue::default());
        let share = share.parse().unwrap();
        let recorder = Recorder::new(Arc::clone(&queue), share, Clock::default());
        let layer = recorder.with_filter(Recorder::filter());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        queue.take().spans
    }

    #[test]
    fn a_span_belongs_to_the_trace_that_it_is_opened_in() {
        const ID: &str = "0197e3a0-7a1e-7c34-b1d5-2f60a9b1c0de";
        let spans = recorded("1", || {
            let request = info_span!(
                target: TARGET,
                "request",
                trace.id = %ID,
                otel.kind = "server",
                otel.name = Empty,
                count = 3_u64,
                is_new = true
            );
            request.record("otel.name", "GET /a");
            request.in_scope(|| {
                let other = info_span!("other");
                // A span of another target is no part of a trace.
                other.in_scope(|| info_span!(target: TARGET, "store", otel.status_code = "error"));
            });
        });
        let [store, request] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!(request.place.trace, Uuid::parse_str(ID).unwrap().as_u128());
        assert_eq!((request.place.parent, request.content.kind), (None, Kind::Server));
        assert_eq!(request.content.name, "GET /a");
        let attributes = [("count", Value::Whole(3)), ("is_new", Value::Flag(true))];
        assert_eq!(request.content.attributes, attributes);
        assert_eq!(store.place.trace, request.place.trace);
        assert_eq!(store.place.parent, Some(request.place.span));
        assert_eq!((store.content.name.as_ref(), store.content.is_failed), ("store", true));
    }

    #[test]
    fn spans_outside_of_traces_and_of_traces_that_are_not_taken_are_not_recorded() {
        let work = |id: Uuid| {
            move || {
                info_span!(target: TARGET, "store").in_scope(|| {});
                info_span!(target: TARGET, "request", trace.id = %id).in_scope(|| {
                    info_span!(target: TARGET, "store").in_scope(|| {});
                });
            }
        };
        let id = Uuid::from_u128;
        assert!(recorded("0", work(id(0))).is_empty());
        // The end of the id decides.
        assert_eq!(recorded("0.5", work(id(1 << 100))).len(), 2);
        assert!(recorded("0.5", work(id((1 << 56) - 1))).is_empty());
        assert_eq!(recorded("1", work(id((1 << 56) - 1))).len(), 2);
        let without_id = || {
            info_span!(target: TARGET, "commit", trace.id = Empty).in_scope(|| {});
        };
        assert_eq!(recorded("1", without_id).len(), 1);
    }

    #[test]
    fn a_caller_decides_for_its_trace() {
        let work = |parent: &'static str| {
            move || {
                let parent = Some(parent);
                info_span!(target: TARGET, "request", trace.id = Empty, trace.parent = parent)
                    .in_scope(|| {});
            }
        };
        let taken = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let omitted = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
        let spans = recorded("0", work(taken));
        let place = spans[0].place;
        assert_eq!(place.trace, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(place.parent, Some(0xb7ad_6b71_6920_3331));
        assert!(recorded("1", work(omitted)).is_empty());
        for wrong in [
            "",
            "00",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(Caller::read(wrong), None, "{wrong}");
        }
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
        assert_eq!(Caller::read(later), Caller::read(taken));
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        let text = format!("{}ä", "x".repeat(LONGEST - 1));
        let long = recorded("1", || {
            info_span!(target: TARGET, "work", trace.id = Empty, text = text.as_str())
                .in_scope(|| {});
        });
        let attributes = [("text", Value::Text("x".repeat(LONGEST - 1)))];
        assert_eq!(long[0].content.attributes, attributes);
    }
}
