//! The way of a body through the service, the same for all paths: read within
//! the limits, worked on where that holds nobody up, its events appended.
//!
//! What belongs here: limits, shares, deadlines, the look-up of the project, and
//! the durable append. What does not: what a body means, and what is answered.
//!
//! A refusal for the time being is 503, never 429: browser libraries drop events
//! on any 4xx.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, header};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout_at;
use weir_capture::{self as capture, CaptureError, CapturePath, CaptureRequest, Payload};
use weir_ingest::batch::{Batch, Sealed};
use weir_ingest::log::AppendError;
use weir_model::imports::ImportSource;
use weir_model::outcomes::DropReason;
use weir_model::traffic::UnknownKey;
use weir_model::{ProjectId, Timestamp};
use weir_service::projects::ProjectRules;

use super::account::Account;
use super::history;

use crate::app::App;
use crate::http::body::{self, BodyFault, Collected};
use crate::http::error::{ApiError, ApiResult};
use crate::http::peer::ClientAddress;
use crate::limits::HeldBytes;
use crate::tokens::Verdict;

/// Bodies of at least this size that are not plain JSON may take long to unpack:
/// a thousand times what they look like.
const HEAVY_PACKED: usize = 1 << 10;

/// A request whose body was read, and what it holds of the shares.
pub(super) struct Received {
    /// Everything but the body.
    pub(super) parts: Parts,
    /// The body as sent; to be taken out by whoever decodes it.
    pub(super) body: Bytes,
    /// When the request arrived.
    pub(super) received_at: Timestamp,
    /// Its room in the budget of bytes.
    pub(super) room: Room,
    _share: OwnedSemaphorePermit,
}

/// Room in the budget of bytes for a body and what is made of it.
pub(super) struct Room {
    bytes: usize,
    held: HeldBytes,
}

impl Room {
    /// Takes room for an unpacked text and for the events that are made of it.
    pub(super) fn hold_events_of(&mut self, payload: &Payload) -> ApiResult<()> {
        self.hold_more(payload.text().len().saturating_mul(2))
    }

    /// Takes room for this many bytes besides.
    pub(super) fn hold_more(&mut self, bytes: usize) -> ApiResult<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.held.grow_to(self.bytes).map_err(|_| not_accepted("too many bytes in flight"))
    }
}

impl Received {
    /// Finds the payload in the shapes of the older paths and unpacks it.
    pub(super) fn decode(&mut self, path: CapturePath) -> ApiResult<Payload> {
        let body = std::mem::take(&mut self.body);
        let payload = capture::decode(CaptureRequest {
            path,
            query: self.parts.uri.query(),
            content_type: text(&self.parts.headers, header::CONTENT_TYPE.as_str()),
            content_encoding: text(&self.parts.headers, header::CONTENT_ENCODING.as_str()),
            body,
        })?;
        self.room.hold_events_of(&payload)?;
        Ok(payload)
    }

    /// Who sent the request, and when.
    pub(super) fn sender(&self) -> Sender {
        let client = self.parts.extensions.get::<ClientAddress>();
        Sender { address: client.map(|client| client.0), at: self.received_at }
    }

    /// The address that goes with the events of this request, if the project
    /// keeps any.
    pub(super) fn client_address(&self, rules: &ProjectRules) -> Option<String> {
        let client = self.parts.extensions.get::<ClientAddress>();
        client.filter(|_| !rules.anonymize_ips).map(|client| client.0.to_string())
    }
}

/// Who sent a request, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    address: Option<IpAddr>,
    at: Timestamp,
}

/// What working on a body came to.
pub(super) struct Worked<T> {
    /// What to answer with, once the events are kept.
    pub(super) answer: T,
    /// What is to be kept, if anything.
    pub(super) events: Option<Events>,
}

/// The events of a request after the decisions, ready for the log.
pub(super) struct Events {
    project: ProjectId,
    /// The key that they came with.
    token: String,
    sealed: Sealed,
    accepted: u64,
    dropped: Vec<(DropReason, u64)>,
    /// What is told of them as a part of an import.
    import: Option<ImportSource>,
}

impl Events {
    /// The events of a request that came with a key.
    pub(super) fn of(project: ProjectId, key: &str, batch: Batch) -> Self {
        let import = history::source(key, &batch);
        let mut dropped = batch.dropped_further.clone();
        dropped.extend(batch.dropped.iter().map(|event| (event.reason, 1)));
        let accepted = batch.accepted.len() as u64;
        let token = key.to_owned();
        Self { project, token, accepted, dropped, import, sealed: batch.seal() }
    }
}

/// Reads the body of a request, works on it, and waits until the events that
/// came of it are on stable storage.
pub(super) async fn take<T: Send + 'static>(
    app: &App,
    request: Request,
    work: impl for<'a> FnOnce(&'a App, &'a mut Received) -> BoxFuture<'a, ApiResult<Worked<T>>>
    + Send
    + 'static,
) -> ApiResult<T> {
    take_noting(app, request, work, &mut Account::default()).await
}

/// The same for events: the request, which went to `route`, is counted however it
/// ends.
pub(super) async fn take_events<T: Send + 'static>(
    app: &App,
    route: &'static str,
    request: Request,
    work: impl for<'a> FnOnce(&'a App, &'a mut Received) -> BoxFuture<'a, ApiResult<Worked<T>>>
    + Send
    + 'static,
) -> ApiResult<T> {
    let at = app.services.clock.now();
    let mut account = Account::open(request.headers());
    let outcome = take_noting(app, request, work, &mut account).await;
    account.close(app, route, at, outcome.as_ref().err());
    outcome
}

async fn take_noting<T: Send + 'static>(
    app: &App,
    request: Request,
    work: impl for<'a> FnOnce(&'a App, &'a mut Received) -> BoxFuture<'a, ApiResult<Worked<T>>>
    + Send
    + 'static,
    account: &mut Account,
) -> ApiResult<T> {
    let deadline = tokio::time::Instant::now() + app.limits.capture_time;
    let mut received = timeout_at(deadline, receive(app, request))
        .await
        .map_err(|_elapsed| ApiError::TooSlow)??;
    account.body(&received.body);
    let working = async {
        let worked = if is_heavy(app, &received.body) {
            let turn = Arc::clone(&app.shares.heavy)
                .acquire_owned()
                .await
                .map_err(|_| not_accepted("the service is stopping"))?;
            let app = app.clone();
            let decoding = move || {
                // Kept to the end, also when the sender has gone meanwhile.
                let _turn = turn;
                let worked = Handle::current().block_on(work(&app, &mut received))?;
                Ok::<_, ApiError>((worked, received))
            };
            // What the request holds lives on until the events are kept.
            tokio::task::spawn_blocking(decoding)
                .await
                .map_err(|error| ApiError::Panicked(error.to_string()))??
        } else {
            (work(app, &mut received).await?, received)
        };
        let (Worked { answer, events }, _received) = worked;
        if let Some(events) = events {
            account.project = Some(events.project);
            append(app, events).await?;
        }
        Ok(answer)
    };
    timeout_at(deadline, working)
        .await
        .map_err(|_elapsed| not_accepted("the request took too long"))?
}

async fn receive(app: &App, request: Request) -> ApiResult<Received> {
    let received_at = app.services.clock.now();
    let (parts, unread) = request.into_parts();
    let limits = &app.limits.capture_body;
    let Collected { bytes, held } =
        body::collect(&parts.headers, unread, limits, &app.shares.capture_bytes)
            .await
            .map_err(refused_body)?;
    let share = share(app)?;
    let room = Room { bytes: bytes.len(), held };
    Ok(Received { parts, body: bytes, received_at, room, _share: share })
}

/// A place among the requests that are worked on.
pub(super) fn share(app: &App) -> ApiResult<OwnedSemaphorePermit> {
    Arc::clone(&app.shares.capture)
        .try_acquire_owned()
        .map_err(|_| not_accepted("too many capture requests at a time"))
}

/// Whether working on a body could hold up a thread that serves connections.
fn is_heavy(app: &App, body: &[u8]) -> bool {
    let plain =
        body.trim_ascii_start().starts_with(b"{") || body.trim_ascii_start().starts_with(b"[");
    body.len() >= if plain { app.limits.heavy_body } else { HEAVY_PACKED }
}

/// The project that has a key. A sender of one that no project has is noted.
pub(super) async fn project(app: &App, key: &str, sender: Sender) -> ApiResult<ProjectRules> {
    match app.tokens.find(key).await {
        Verdict::Known(rules) => Ok(rules),
        Verdict::Unknown => {
            app.traffic.unknown_key(UnknownKey {
                mask: history::beginning(key),
                caller: sender.address.map(|address| address.to_string()).unwrap_or_default(),
                count: 1,
                first_at: sender.at,
                last_at: sender.at,
            });
            Err(ApiError::UnknownProjectKey)
        }
        Verdict::Undecided => Err(not_accepted("the project key could not be looked up")),
    }
}

async fn append(app: &App, events: Events) -> ApiResult<()> {
    let Events { project, token, sealed, accepted, dropped, import } = events;
    let began = Instant::now();
    // What is given up here may be stored later all the same: sending it again
    // does no harm (ingestion 6).
    let appended = tokio::time::timeout(app.limits.append_time, app.ingest.append(project, sealed))
        .await
        .map_err(|_elapsed| not_accepted("the append took too long"))?;
    appended.map_err(|error| match error {
        AppendError::Busy => not_accepted("the ingest log is busy"),
        AppendError::DiskLow => not_accepted("too little free disk space"),
        AppendError::Poisoned => not_accepted("the ingest log has failed"),
        AppendError::Closed => not_accepted("the service is stopping"),
    })?;
    app.metrics.append_seconds.observe(began.elapsed().as_secs_f64());
    app.metrics.events_accepted.inc_by(accepted);
    if let Some(import) = import {
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

/// The text of a header, by any spelling of its name.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn not_accepted(why: &'static str) -> ApiError {
    ApiError::NotAccepted(Cow::Borrowed(why))
}

/// A body fault as an answer of this surface.
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
