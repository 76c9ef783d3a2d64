//! The live stream: every row of a project as it arrives, as server-sent events.
//!
//! Nothing depends on it: a page that falls behind, or comes back, fills the gap
//! from the store. The page is told when to.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use weir_model::live::LiveRow;
use weir_service::Error as ServiceError;

use super::{Web, visit};
use crate::app::Stopping;
use crate::front::RoutePattern;
use crate::http::error::{ApiError, ApiResult};

/// Comments keep proxies from closing an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A stream ends after this time, and the page opens another: whoever may no
/// longer see the project is noticed then.
const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Rows of a project from now on.
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
    let project = web.app.services.projects.enter(&ctx, project).await?;
    let permit = web.streams.clone().try_acquire_owned().map_err(|_| ApiError::Busy)?;
    let watch = Watch {
        rows: web.app.ingest.live().watch(project.project),
        stopping: web.app.stopping.clone(),
        end: Instant::now() + LIFETIME,
        state: Phase::Greeting,
        _permit: permit,
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
    rows: Receiver<std::sync::Arc<LiveRow>>,
    stopping: Stopping,
    end: Instant,
    state: Phase,
    /// Given back when the stream ends.
    _permit: OwnedSemaphorePermit,
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
                // The page fills from the store after this: nothing is missed.
                Some(Event::default().event("hello").data("{}"))
            }
            Phase::Watching => tokio::select! {
                () = self.stopping.begun() => None,
                () = tokio::time::sleep_until(self.end) => {
                    self.state = Phase::Ended;
                    Some(Event::default().event("again").data("{}"))
                }
                received = self.rows.recv() => match received {
                    Ok(row) => row_event(&row),
                    Err(RecvError::Lagged(_)) => Some(Event::default().event("behind").data("{}")),
                    Err(RecvError::Closed) => None,
                },
            },
            Phase::Ended => None,
        }
    }
}

fn row_event(row: &LiveRow) -> Option<Event> {
    let text = serde_json::to_string(row).ok()?;
    Some(Event::default().event("row").id(&row.key).data(text))
}
