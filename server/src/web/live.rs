//! The live stream: the rows of a project that match a filter, as they arrive, as
//! server-sent events.
//!
//! Delivery is not guaranteed: a page that falls behind or reconnects fills the gap from
//! the store. The stream notifies the page when to do so.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use futures::stream;
use http::Uri;
use serde::Serialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use weir_model::errors::ErrorKind;
use weir_model::live::{EventsFilter, LiveRow, PROPERTY_COLUMN, RowFilter, property_columns};
use weir_model::{ProjectId, Timestamp, UserId};
use weir_service::events::property_values;
use weir_service::{Ctx, Error as ServiceError, Services};

use super::{Web, visit};
use crate::app::{App, Stopping};
use crate::dispatcher::RoutePattern;
use crate::http::error::{ApiError, ApiResult};
use crate::limits::{Exhausted, StreamPermit};

/// Comments keep proxies from closing an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A stream ends after this time, and the page opens a new one.
const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Redirects from the former address of the events page.
pub(super) async fn moved(uri: Uri) -> Response {
    let mut response = Redirect::permanent(&new_address(&uri)).into_response();
    response.extensions_mut().insert(RoutePattern("/projects/{project}/live"));
    response
}

/// The address of the events page with the values of the former one.
fn new_address(uri: &Uri) -> String {
    let project = uri.path().strip_suffix("/live").unwrap_or_default();
    let renamed = |pair: &str| match pair.split_once('=') {
        Some(("q", text)) => format!("event={text}"),
        Some(("row", key)) => format!("selected={key}"),
        _ => pair.to_owned(),
    };
    let query = uri.query().map(|query| query.split('&').map(renamed).collect::<Vec<_>>());
    match query {
        Some(pairs) => format!("{project}/events?{}", pairs.join("&")),
        None => format!("{project}/events"),
    }
}

/// Streams the rows of a project from now on that match the filter in the query.
pub(super) async fn stream(
    State(web): State<Web>,
    Path(project): Path<String>,
    request: Request,
) -> Response {
    let mut response = match open(&web, &project, request).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    };
    response.extensions_mut().insert(RoutePattern("/_live/{project}"));
    response
}

async fn open(web: &Web, project: &str, request: Request) -> ApiResult<Response> {
    let (parts, _body) = request.into_parts();
    let visit = visit::of(web, &parts).await?;
    let ctx = visit.ctx.ok_or(ServiceError::NotAuthenticated)?;
    let project = web.app.services.projects.enter(&ctx, project).await?.project;
    let place = web.streams.enter(ctx.user()).map_err(|Exhausted| ApiError::Busy)?;
    let query = parts.uri.query().unwrap_or_default();
    let watch = Watch {
        filter: filter(query, ctx.now),
        properties: properties(query),
        rows: web.app.ingest.live().watch(project),
        stopping: web.app.stopping.clone(),
        end: Instant::now() + LIFETIME,
        may_watch: MayWatch::begin(&web.app, ctx, project),
        state: Phase::Greeting,
        _slot: place,
    };
    let events = stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((Ok::<Event, Infallible>(event), watch))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

/// The filter of a query. Rows that arrive are within every range that ends now.
fn filter(query: &str, now: Timestamp) -> RowFilter {
    RowFilter { from: None, to: None, ..asked(query).rows(now) }
}

/// The filter of the events page in a query.
pub(super) fn asked(query: &str) -> EventsFilter {
    let mut filter = EventsFilter::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        filter.set(&name, value.into_owned());
    }
    filter
}

/// The properties in a query whose values the rows have.
fn properties(query: &str) -> Vec<String> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let named = pairs.filter(|(name, _)| name == PROPERTY_COLUMN);
    property_columns(named.map(|(_, value)| value.into_owned()))
}

/// One stream.
struct Watch {
    filter: RowFilter,
    /// The properties whose values the rows have.
    properties: Vec<String>,
    rows: Receiver<Arc<LiveRow>>,
    stopping: Stopping,
    end: Instant,
    may_watch: MayWatch,
    state: Phase,
    /// The permit, released when the stream ends.
    _slot: StreamPermit,
}

/// Ends when the reader of a stream loses access to the project: signed out, removed, or
/// without a second factor that the organization requires. It checks that regularly, and
/// immediately when an identity provider deactivates the user. It is a separate task, because a
/// check within the stream would be interrupted by every row.
struct MayWatch(JoinHandle<()>);

impl MayWatch {
    fn begin(app: &App, ctx: Ctx, project: ProjectId) -> Self {
        let (services, every) = (app.services.clone(), app.limits.stream_check);
        let mut deactivated = services.identity.deactivated_users();
        Self(tokio::spawn(async move {
            let mut tick = tokio::time::interval_at(Instant::now() + every, every);
            loop {
                tokio::select! {
                    _ = tick.tick() => {}
                    () = deactivation_of(&mut deactivated, ctx.user()) => {}
                }
                match still_sees(&services, &ctx, project).await {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::Unavailable => {
                        tracing::warn!(%error, "a live stream could not be authorized");
                    }
                    Err(_) => return,
                }
            }
        }))
    }
}

impl Drop for MayWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits until this user may have been deactivated.
async fn deactivation_of(deactivated: &mut Receiver<UserId>, user: UserId) {
    loop {
        match deactivated.recv().await {
            Ok(other) if other != user => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

async fn still_sees(
    services: &Services,
    ctx: &Ctx,
    project: ProjectId,
) -> Result<(), ServiceError> {
    services.identity.check_session(ctx).await?;
    services.projects.enter(ctx, &project.0.to_string()).await.map(drop)
}

enum Phase {
    Greeting,
    Watching,
    Ended,
}

impl Watch {
    async fn next(&mut self) -> Option<Event> {
        match self.state {
            Phase::Greeting => {
                self.state = Phase::Watching;
                // The page fills the gap from the store after this event, so it misses
                // nothing.
                Some(Event::default().event("hello").data("{}"))
            }
            Phase::Watching => loop {
                tokio::select! {
                    // Ending the stream has priority over waiting rows.
                    biased;
                    () = self.stopping.begun() => break None,
                    _ = &mut self.may_watch.0 => break self.end(),
                    () = tokio::time::sleep_until(self.end) => break self.end(),
                    received = self.rows.recv() => match received {
                        Ok(row) if !self.filter.takes_row(&row) => {}
                        Ok(row) => break row_event(&row, &self.properties),
                        Err(RecvError::Lagged(_)) => {
                            break Some(Event::default().event("behind").data("{}"));
                        }
                        Err(RecvError::Closed) => break None,
                    },
                }
            },
            Phase::Ended => None,
        }
    }

    /// The page opens a new stream and learns there why this one ended.
    fn end(&mut self) -> Option<Event> {
        self.state = Phase::Ended;
        Some(Event::default().event("again").data("{}"))
    }
}

/// A row as the page reads it.
#[derive(Serialize)]
struct SentRow<'a> {
    #[serde(flatten)]
    row: &'a LiveRow,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<Option<String>>,
}

fn row_event(row: &LiveRow, properties: &[String]) -> Option<Event> {
    let sent = SentRow { row, properties: property_values(row, properties) };
    let text = serde_json::to_string(&sent).ok()?;
    Some(Event::default().event("row").id(&row.key).data(text))
}

#[cfg(test)]
mod tests {
    use super::{asked, new_address, properties};

    #[test]
    fn former_addresses_lead_to_the_events_page() {
        for (former, expected) in [
            ("/projects/1/live", "/projects/1/events"),
            ("/projects/1/live?outcome=dropped", "/projects/1/events?outcome=dropped"),
            ("/projects/1/live?q=a%20b&row=k", "/projects/1/events?event=a%20b&selected=k"),
        ] {
            assert_eq!(new_address(&former.parse().unwrap()), expected);
        }
    }

    #[test]
    fn the_filter_is_that_of_the_page() {
        let filter = asked("event=a%20b&range=24h&x=1");
        assert_eq!(filter.pairs(), [("event", "a b"), ("range", "24h")]);
        let chosen = properties("event=a&properties=plan&properties=%24lib&properties=plan");
        assert_eq!(chosen, ["plan", "$lib"]);
    }
}
