//! `/capture`, `/batch` and the similar paths: events in the older formats (ING-13,
//! ING-17). `/s` accepts the same formats and stores nothing.
//!
//! 200 means that every accepted event is on stable storage.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use weir_capture::{self as capture, CapturePath, Context, Decision};

use super::intake::{self, Events, Gathering, Received};
use super::request_tally::RequestTally;
use super::{Endpoint, accepted};
use crate::app::App;
use crate::http::error::ApiResult;

pub(super) async fn answer(app: &App, path: CapturePath, request: Request) -> ApiResult<Response> {
    let beacon = is_beacon(request.uri().query());
    let mut tally = RequestTally::open(app, &request);
    let stored = store(app, path, request, &mut tally).await;
    tally.close(app, Endpoint::Events(path).pattern(), stored.as_ref().err());
    stored?;
    Ok(if beacon { StatusCode::NO_CONTENT.into_response() } else { accepted() })
}

async fn store(
    app: &App,
    path: CapturePath,
    request: Request,
    tally: &mut RequestTally,
) -> ApiResult<()> {
    let received = intake::receive(app, request).await?;
    tally.body(&received.body);
    let load = received.load(app);
    let (events, received) = load.run(app, decide(path, received)).await?;
    tally.project = Some(events.project);
    intake::append(app, events, received).await
}

/// Decodes a body, decides on its events and encodes them for the log.
async fn decide(path: CapturePath, mut received: Received) -> ApiResult<(Events, Received)> {
    let payload = received.decode(path)?;
    let batch = capture::shape(&payload)?;
    received.room.hold_events(payload.text().len(), batch.events.len())?;
    let rules = received.project(&batch.token).await?;
    let over = match path {
        // Nothing of it is stored anyway.
        CapturePath::Recordings => None,
        _ => received.admit(&rules, batch.events.len())?,
    };
    let address = received.client_address(&rules);
    let context = Context {
        received_at: received.received_at.to_chrono(),
        sent_at: batch.sent_at,
        project: rules.id.0,
        client_address: address.filter(|_| !payload.hides_address()),
        engage: path.is_engage(),
        person_processing_opt_out: rules.person_processing_opt_out,
        cookieless_key: received.cookieless_key(rules.id),
    };
    let nothing = received.batch(batch.historical_migration);
    let mut gathering = Gathering::begin(&mut received.room, &rules, &batch.token, nothing);
    for event in &batch.events {
        gathering.take(match (path, over) {
            (CapturePath::Recordings, _) => Decision::Drop(capture::drop_recording(&event)),
            (_, Some(reason)) => capture::drop_over_limit(&event, reason, &context),
            (_, None) => capture::decide(&event, &context),
        })?;
    }
    let events = gathering.end()?;
    Ok((events, received))
}

fn is_beacon(query: Option<&str>) -> bool {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.into_iter().any(|(name, value)| name == "beacon" && value == "1")
}
