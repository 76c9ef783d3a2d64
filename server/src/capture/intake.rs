//! The steps that all paths share: a body is received within the limits, its project is
//! looked up, and its events are appended to the log. `events` and `v1` call them in the
//! order receive, decode, decide, append.
//!
//! What belongs here: limits, permits, deadlines, looking up the project, and the durable
//! append. What does not: what a body means, and the answer (`events`, `v1`).
//!
//! A temporary refusal is 503, never 429: browser libraries drop events on any 4xx. Only a
//! limit that the operator chose refuses with 429 (ING-66).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout_at;
use tracing::Instrument as _;
use weir_capture::{
    self as capture, CaptureError, CapturePath, CaptureRequest, CookielessKey, Decision, Payload,
};
use weir_ingest::batch::{self, Batch, EncodedBatch, size_of_accepted};
use weir_ingest::log::AppendError;
use weir_model::imports::ImportSource;
use weir_model::outcomes::DropReason;
use weir_model::traffic::UnknownKey;
use weir_model::{OrganizationId, ProjectId, Timestamp, traces};
use weir_service::limits::Admission;
use weir_service::projects::ProjectRules;
use weir_store::traffic::TrafficCounters;

use super::{CookielessKeys, history};

use crate::app::App;
use crate::http::body::{self, BodyFault, Collected};
use crate::http::error::{ApiError, ApiResult};
use crate::http::peer::ClientAddress;
use crate::limits::{Exhausted, HeldBytes};
use crate::tokens::{TokenCache, Verdict};

/// Bodies of at least this size that are not plain JSON may take long to decompress, to a
/// thousand times their size.
const HEAVY_COMPRESSED: usize = 1 << 10;

/// Bytes of events that are encoded together. Of a large request, at most one part is
/// decoded at a time, even if its events are small.
const PART: usize = 4 << 20;
/// Most bytes that processing a part takes: its events, and their encoding before and
/// after compression.
const WORKING: usize = 3 * PART;
/// Largest ratio of a text to its body when it is compressed with gzip. Other formats
/// have no such bound.
const GZIP_RATIO: usize = 1_032;
/// Bytes that an event takes in memory in addition to its texts, twice: decoded, and
/// encoded for the log. They are most of the memory of tiny events.
const EVENT_BYTES: usize = 512;

/// A request whose body was read, and the permits and budgets that it holds.
pub(super) struct Received {
    /// Everything but the body.
    pub(super) parts: Parts,
    /// The body as sent. The decoder takes it.
    pub(super) body: Bytes,
    /// When the request arrived.
    pub(super) received_at: Timestamp,
    /// When processing it must end.
    deadline: tokio::time::Instant,
    /// Its bytes in the budgets.
    pub(super) room: IntakeBytes,
    tokens: TokenCache,
    traffic: Arc<TrafficCounters>,
    cookieless_keys: Arc<CookielessKeys>,
    app: App,
    _permit: OwnedSemaphorePermit,
}

/// The bytes that a request holds of the budgets, for its body and the data made of it.
pub(super) struct IntakeBytes {
    /// The body as sent; `None` once it is decoded.
    body: Option<HeldBytes>,
    made: HeldBytes,
    bytes: usize,
    /// The part of `bytes` that is kept until the answer, without the events.
    kept: usize,
}

impl IntakeBytes {
    /// Takes bytes for the text of this body, before its length is known.
    pub(super) fn hold_text_of(&mut self, body: &[u8], coding: ContentCoding) -> ApiResult<()> {
        self.hold_more(match coding {
            _ if is_plain(body) => body.len(),
            ContentCoding::Gzip if body.len() < HEAVY_COMPRESSED => body.len() * GZIP_RATIO,
            ContentCoding::Gzip | ContentCoding::Any => capture::BODY_LIMIT,
        })
    }

    /// Called when the body is decompressed: replaces the estimate with the length of its
    /// text.
    pub(super) fn is_decompressed(&mut self, payload: &Payload) -> ApiResult<()> {
        self.body = None;
        self.hold(payload.text().len())
    }

    /// Takes bytes for deciding on this many events of a text.
    pub(super) fn hold_events(&mut self, text: usize, events: usize) -> ApiResult<()> {
        let all = text.saturating_mul(2).saturating_add(events.saturating_mul(EVENT_BYTES));
        self.hold_more(all.min(WORKING))
    }

    /// Takes bytes for data that is kept until the answer.
    pub(super) fn keep(&mut self, bytes: usize) -> ApiResult<()> {
        self.kept = self.kept.saturating_add(bytes);
        self.hold_more(bytes)
    }

    fn hold_more(&mut self, bytes: usize) -> ApiResult<()> {
        self.hold(self.bytes.saturating_add(bytes))
    }

    fn hold(&mut self, bytes: usize) -> ApiResult<()> {
        self.bytes = bytes;
        self.made.shrink_to(bytes);
        self.made.grow_to(bytes).map_err(|_| not_accepted("too many bytes in flight"))
    }
}

/// The compressions that a body may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCoding {
    /// Those of the older paths.
    Gzip,
    /// All supported ones.
    Any,
}

impl Received {
    /// Finds the payload in the formats of the older paths and decompresses it.
    pub(super) fn decode(&mut self, path: CapturePath) -> ApiResult<Payload> {
        let body = std::mem::take(&mut self.body);
        self.room.hold_text_of(&body, ContentCoding::Gzip)?;
        let payload = capture::decode(CaptureRequest {
            path,
            query: self.parts.uri.query(),
            content_type: text(&self.parts.headers, header::CONTENT_TYPE.as_str()),
            content_encoding: text(&self.parts.headers, header::CONTENT_ENCODING.as_str()),
            body,
        })?;
        self.room.is_decompressed(&payload)?;
        Ok(payload)
    }

    /// Where and how long this body is processed.
    pub(super) fn load(&self, app: &App) -> Load {
        let [network, ..] = ClientAddress::networks(&self.parts.extensions);
        Load { is_heavy: is_heavy(app, &self.body), network, deadline: self.deadline }
    }

    /// The project with a key, if it can be looked up and there is one.
    pub(super) async fn verdict(&self, key: &str) -> Verdict {
        self.tokens.find(key).await
    }

    /// The project with a key. The sender of an unknown key is recorded.
    pub(super) async fn project(&self, key: &str) -> ApiResult<ProjectRules> {
        match self.verdict(key).await {
            Verdict::Project(rules) => Ok(rules),
            Verdict::Unknown => {
                self.traffic.unknown_key(UnknownKey {
                    mask: history::beginning(key),
                    caller: self.sender().map(|address| address.to_string()).unwrap_or_default(),
                    count: 1,
                    first_at: self.received_at,
                    last_at: self.received_at,
                });
                Err(ApiError::UnknownProjectKey)
            }
            Verdict::Undecided => Err(not_accepted("the project key could not be looked up")),
        }
    }

    /// Whether these events of a project are within the limits of its organization (ING-66):
    /// the reason with which they are dropped if they are not.
    pub(super) fn admit(
        &self,
        rules: &ProjectRules,
        events: usize,
    ) -> ApiResult<Option<DropReason>> {
        let events = events as u64;
        let admission = self.app.services.limits.limiter().admit(rules.organization, events);
        self.app.metrics.count_admission(admission, events);
        match admission {
            Admission::Take | Admission::Warn(_) => Ok(None),
            Admission::Drop(limit) => Ok(limit.drop_reason()),
            Admission::Reject(over) => Err(ApiError::OverLimit { project: rules.id, over, events }),
        }
    }

    /// The address of the sender.
    fn sender(&self) -> Option<IpAddr> {
        self.parts.extensions.get::<ClientAddress>().map(|client| client.0)
    }

    /// An empty batch for the events of this request.
    pub(super) fn batch(&self, historical: bool) -> Batch {
        let network = self.sender().map(batch::network);
        Batch { network, ..Batch::new(self.received_at.micros(), historical) }
    }

    /// The client address to store with the events of this request, if the project keeps
    /// addresses.
    pub(super) fn client_address(&self, rules: &ProjectRules) -> Option<String> {
        self.sender().filter(|_| !rules.anonymize_ips).map(|address| address.to_string())
    }

    /// The key of the sender as a visitor without cookies.
    pub(super) fn cookieless_key(&self, project: ProjectId) -> CookielessKey {
        let Some(address) = self.sender() else { return CookielessKey::Missing };
        let (keys, received_at) = (Arc::clone(&self.cookieless_keys), self.received_at);
        // It refers to the bytes of the headers, which have a limit.
        let user_agent = self.parts.headers.get(header::USER_AGENT).cloned();
        CookielessKey::of_visitor(move || {
            let user_agent = user_agent.as_ref().map_or(&[][..], HeaderValue::as_bytes);
            keys.key(project, address, user_agent, received_at)
        })
    }
}

/// The events of a request after the decisions, encoded for the log.
pub(super) struct Events {
    pub(super) project: ProjectId,
    organization: OrganizationId,
    /// The project key of the request.
    token: String,
    parts: Vec<EncodedBatch>,
    accepted: u64,
    dropped: BTreeMap<DropReason, u64>,
    /// Statistics of the events as parts of an import.
    imports: Vec<ImportSource>,
}

/// Collects the events of a request and encodes them in parts. Of a large request, at
/// most one part is in memory unencoded.
pub(super) struct Gathering<'a> {
    events: Events,
    /// The part that is being collected.
    batch: Batch,
    /// Bytes of its events.
    bytes: usize,
    room: &'a mut IntakeBytes,
}

impl<'a> Gathering<'a> {
    /// Begins with an empty batch.
    pub(super) fn begin(
        room: &'a mut IntakeBytes,
        rules: &ProjectRules,
        key: &str,
        batch: Batch,
    ) -> Gathering<'a> {
        let events = Events {
            project: rules.id,
            organization: rules.organization,
            token: key.to_owned(),
            parts: Vec::new(),
            accepted: 0,
            dropped: BTreeMap::new(),
            imports: Vec::new(),
        };
        Self { events, batch, bytes: 0, room }
    }

    /// Adds an event and the decision on it.
    pub(super) fn take(&mut self, decision: Decision) -> ApiResult<()> {
        match decision {
            Decision::Accept(event) => {
                self.events.accepted += 1;
                self.bytes += size_of_accepted(&event);
                self.batch.accepted.push(event);
            }
            Decision::Drop(event) => {
                *self.events.dropped.entry(event.reason).or_default() += 1;
                let (listed, sample) = (self.batch.dropped.len(), event.sample.len());
                self.batch.push_dropped(event);
                if self.batch.dropped.len() > listed {
                    self.bytes += EVENT_BYTES + sample;
                }
            }
        }
        if self.bytes < PART {
            return Ok(());
        }
        let Batch { received_at, historical, network, .. } = self.batch;
        let next = Batch { network, ..Batch::new(received_at, historical) };
        let whole = std::mem::replace(&mut self.batch, next);
        self.bytes = 0;
        let part = self.events.encode(whole).without_decoded();
        self.room.hold_more(part.memory())?;
        self.events.parts.push(part);
        Ok(())
    }

    /// Returns the events. From here on only their bytes are held in the budget.
    pub(super) fn end(mut self) -> ApiResult<Events> {
        let last = self.events.encode(self.batch);
        let is_only = self.events.parts.is_empty();
        self.events.parts.push(if is_only { last } else { last.without_decoded() });
        let memory: usize = self.events.parts.iter().map(EncodedBatch::memory).sum();
        self.room.hold(self.room.kept + memory)?;
        Ok(self.events)
    }
}

impl Events {
    fn encode(&mut self, batch: Batch) -> EncodedBatch {
        self.imports.extend(history::source(&self.token, &batch));
        batch.into_encoded()
    }
}

/// Reads the body of a request within the limits.
pub(super) async fn receive(app: &App, request: Request) -> ApiResult<Received> {
    let deadline = tokio::time::Instant::now() + app.limits.capture_time;
    let received_at = app.services.clock.now();
    let (parts, unread) = request.into_parts();
    let limits = &app.limits.capture_body;
    let reading = body::collect(&parts, unread, limits, &app.permits.capture_bytes);
    let Collected { bytes, held } = timeout_at(deadline, reading)
        .await
        .map_err(|_elapsed| ApiError::TooSlow)?
        .map_err(refused_body)?;
    let permit = permit(app)?;
    let made = HeldBytes::none(Arc::clone(&app.permits.decoding_bytes));
    let room = IntakeBytes { body: Some(held), made, bytes: 0, kept: 0 };
    let (tokens, traffic) = (app.tokens.clone(), Arc::clone(&app.traffic));
    let cookieless_keys = Arc::clone(&app.cookieless_keys);
    Ok(Received {
        parts,
        body: bytes,
        received_at,
        deadline,
        room,
        tokens,
        traffic,
        cookieless_keys,
        app: app.clone(),
        _permit: permit,
    })
}

/// Where and how long a body is processed.
pub(super) struct Load {
    is_heavy: bool,
    network: IpAddr,
    deadline: tokio::time::Instant,
}

impl Load {
    /// Runs the processing of the body: a heavy one on a thread where it blocks no
    /// connections.
    pub(super) async fn run<T: Send + 'static>(
        self,
        app: &App,
        processing: impl Future<Output = ApiResult<T>> + Send + 'static,
    ) -> ApiResult<T> {
        let running = async {
            if !self.is_heavy {
                return processing.await;
            }
            let permit = app.permits.heavy.acquire(self.network).await.map_err(|Exhausted| {
                not_accepted("too many large bodies of one network at a time")
            })?;
            let blocking = move || {
                // Held until the processing ends, even if the sender has disconnected.
                let _guard = permit;
                Handle::current().block_on(processing)
            };
            tokio::task::spawn_blocking(blocking)
                .await
                .map_err(|error| ApiError::Panicked(error.to_string()))?
        };
        timeout_at(self.deadline, running).await.map_err(|_elapsed| too_long())?
    }
}

/// A permit to process a request.
pub(super) fn permit(app: &App) -> ApiResult<OwnedSemaphorePermit> {
    Arc::clone(&app.permits.capture)
        .try_acquire_owned()
        .map_err(|_| not_accepted("too many capture requests at a time"))
}

/// Whether processing a body could block a thread that serves connections.
fn is_heavy(app: &App, body: &[u8]) -> bool {
    body.len() >= if is_plain(body) { app.limits.heavy_body } else { HEAVY_COMPRESSED }
}

/// Whether a body is uncompressed JSON.
fn is_plain(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Waits until the events of a request are on stable storage, and counts them.
pub(super) async fn append(app: &App, events: Events, received: Received) -> ApiResult<()> {
    let deadline = received.deadline;
    timeout_at(deadline, append_all(app, events, received)).await.map_err(|_elapsed| too_long())?
}

async fn append_all(app: &App, events: Events, received: Received) -> ApiResult<()> {
    let Events { project, organization, token, parts, accepted, dropped, imports } = events;
    let began = Instant::now();
    let log = app.ingest.appender().clone();
    let limiter = Arc::clone(app.services.limits.limiter());
    let appending = tokio::spawn(async move {
        let appended = log.append_all(project, parts).await;
        // Here, because a sender that disconnects early must not be able to exceed the limits.
        if appended.is_ok() {
            limiter.count(organization, accepted);
        }
        // Records that wait for the disk are in memory, also after the sender has
        // disconnected.
        drop(received);
        appended
    });
    let span = tracing::info_span!(
        target: traces::TARGET,
        "append to log",
        weir.events = accepted
    );
    // Records that are given up here may still be stored later. Sending them again does
    // no harm (DUR-2).
    let appended = tokio::time::timeout(app.limits.append_time, appending)
        .instrument(span)
        .await
        .map_err(|_elapsed| not_accepted("the append took too long"))?
        .map_err(|error| ApiError::Panicked(error.to_string()))?;
    appended.map_err(|error| match error {
        AppendError::Busy => not_accepted("the ingest log is busy"),
        AppendError::DiskLow => not_accepted("too little free disk space"),
        AppendError::Poisoned => not_accepted("the ingest log has failed"),
        AppendError::Closed => not_accepted("the service is stopping"),
    })?;
    app.metrics.append_seconds.observe(began.elapsed().as_secs_f64());
    app.metrics.events_accepted.inc_by(accepted);
    for import in imports {
        app.traffic.imported(project, import);
    }
    let mut events = accepted;
    for (reason, count) in dropped {
        app.metrics.count_drops(reason, count);
        events += count;
    }
    app.services.projects.count_events(project, &token, events, app.services.clock.now());
    Ok(())
}

/// The text of a header, in any letter case of its name.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn too_long() -> ApiError {
    not_accepted("the request took too long")
}

fn not_accepted(why: &'static str) -> ApiError {
    ApiError::NotAccepted(Cow::Borrowed(why))
}

/// A body fault as an error of this surface.
fn refused_body(fault: BodyFault) -> ApiError {
    match fault {
        BodyFault::TooLarge => CaptureError::PayloadTooLarge { limit: capture::BODY_LIMIT }.into(),
        BodyFault::TooSlow => ApiError::TooSlow,
        BodyFault::Broken => {
            CaptureError::InvalidPayload { detail: "The body broke off.".to_owned() }.into()
        }
        BodyFault::NoRoom => not_accepted("too many bytes in flight"),
    }
}
