//! Files to download from the web app.
//!
//! What belongs here: who may download a file, and its form. What does not: its contents,
//! which services return.

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use weir_model::Timestamp;
use weir_model::imports::ImportSource;
use weir_service::Error as ServiceError;

use super::{Web, visit};
use crate::dispatcher::RoutePattern;
use crate::http::error::ApiResult;

/// The columns of the report on imports.
const COLUMNS: &str = "day,key,library,historical_migration,sent,accepted,dropped,\
     events_per_minute,events_of_fullest_minute,oldest,newest,out_of_order,future_timestamps,\
     missing_distinct_ids,first_request,last_request,reasons";

/// The import statistics by day and source, as CSV.
pub(super) async fn imports(
    State(web): State<Web>,
    Path(project): Path<String>,
    request: Request,
) -> Response {
    let mut response = match report(&web, &project, request).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    };
    response.extensions_mut().insert(RoutePattern("/_files/{project}/imports.csv"));
    response
}

async fn report(web: &Web, project: &str, request: Request) -> ApiResult<Response> {
    let (parts, _body) = request.into_parts();
    let visit = visit::of(web, &parts).await?;
    let ctx = visit.ctx.ok_or(ServiceError::NotAuthenticated)?;
    let project = web.app.services.projects.enter(&ctx, project).await?;
    let sources = web.app.services.imports.sources(&project).await?;
    let mut text = format!("{COLUMNS}\r\n");
    for source in &sources {
        text.push_str(&line(source));
        text.push_str("\r\n");
    }
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8")),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment; filename=\"imports.csv\""),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, text).into_response())
}

fn line(source: &ImportSource) -> String {
    let counts = &source.counts;
    let time = |micros: i64| Timestamp::from_micros(micros).to_string();
    let event_time = |micros: i64| if counts.has_times() { time(micros) } else { String::new() };
    let reasons: Vec<String> =
        counts.reasons.iter().map(|(code, times)| format!("{code}: {times}")).collect();
    let cells = [
        source.day_text(),
        source.key.clone(),
        source.library.clone(),
        source.historical.to_string(),
        counts.sent().to_string(),
        counts.accepted.to_string(),
        counts.dropped.to_string(),
        counts.rate().to_string(),
        counts.peak.to_string(),
        event_time(counts.oldest),
        event_time(counts.newest),
        counts.out_of_order.to_string(),
        counts.future.to_string(),
        counts.missing_ids.to_string(),
        time(counts.first_at),
        time(counts.last_at),
        reasons.join("; "),
    ];
    cells.map(|text| cell(&text)).join(",")
}

/// A cell: quoted, and never evaluated as a formula by a spreadsheet.
fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn cells_are_texts_whatever_is_in_them() {
        assert_eq!(cell("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(cell("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(cell(""), "\"\"");
    }
}
