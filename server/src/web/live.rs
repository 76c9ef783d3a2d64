//! The live stream: every row of a project as it arrives, as server-sent events.
//!
//! Delivery is not guaranteed: a page that falls behind or reconnects fills the gap from
//! the store. The stream notifies the page when to do so.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use weir_model::ProjectId;
use weir_model::errors::ErrorKind;
use weir_model::live::LiveRow;
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

/// Streams the rows of a project from now on.
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
    let watch = Watch {
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

/// One stream.
struct Watch {
    rows: Receiver<Arc<LiveRow>>,
    stopping: Stopping,
    end: Instant,
    may_watch: MayWatch,
    state: Phase,
    /// The permit, released when the stream ends.
    _slot: StreamPermit,
}

/// Ends when the reader of a stream loses access to the project: signed out, removed, or
/// without a second factor that the organization requires. It is a separate task, because
/// a check within the stream would be interrupted by every row.
struct MayWatch(JoinHandle<()>);

impl MayWatch {
    fn begin(app: &App, ctx: Ctx, project: ProjectId) -> Self {
        let (services, every) = (app.services.clone(), app.limits.stream_check);
        Self(tokio::spawn(async move {
            let mut tick = tokio::time::interval_at(Instant::now() + every, every);
            loop {
                tick.tick().await;
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
            Phase::Watching => tokio::select! {
                // Ending the stream has priority over waiting rows.
                biased;
                () = self.stopping.begun() => None,
                _ = &mut self.may_watch.0 => self.end(),
                () = tokio::time::sleep_until(self.end) => self.end(),
                received = self.rows.recv() => match received {
                    Ok(row) => row_event(&row),
                    Err(RecvError::Lagged(_)) => Some(Event::default().event("behind").data("{}")),
                    Err(RecvError::Closed) => None,
                },
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

fn row_event(row: &LiveRow) -> Option<Event> {
    let text = serde_json::to_string(row).ok()?;
    Some(Event::default().event("row").id(&row.key).data(text))
}
