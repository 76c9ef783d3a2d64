//! The activity log of an organization as a CSV file, with the filter of the page that it
//! is downloaded from.
//!
//! It is written while the log is read, a range of entries at a time, so that a long log
//! takes no memory.

use std::io;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use futures::stream;
use http::uri::PathAndQuery;
use http::{HeaderValue, header};
use serde_json::Value;
use weir_app::local_path;
use weir_model::activity::{Activity, ActivityFilter, ActivityQuery};
use weir_service::OrgCtx;
use weir_service::activity::ActivityLog;

use super::{Web, visit};
use crate::dispatcher::RoutePattern;
use crate::http::error::{ApiError, ApiResult};
use crate::http::sending;
use crate::limits::Exhausted;

/// Most ranges of the log that one file covers, of five hundred entries each.
const BATCHES: usize = 200;
/// The header line.
const HEAD: [&str; 14] = [
    "id",
    "time",
    "name",
    "address",
    "via",
    "action",
    "kind",
    "item_id",
    "item",
    "project",
    "field",
    "before",
    "after",
    "request_id",
];

/// Answers with the file.
pub(super) async fn download(State(web): State<Web>, request: Request) -> Response {
    let mut response = match open(&web, request).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    };
    response.extensions_mut().insert(RoutePattern("/_export/activity.csv"));
    response
}

async fn open(web: &Web, request: Request) -> ApiResult<Response> {
    let (parts, _body) = request.into_parts();
    let visit = visit::of(web, &parts).await?;
    let Some(ctx) = visit.ctx else {
        let asked = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let sign_in = format!("/login?next={}", local_path::encode(asked));
        return Ok(Redirect::to(&sign_in).into_response());
    };
    let (organization, filter) = asked(parts.uri.query().unwrap_or_default());
    let services = &web.app.services;
    let org = services.organizations.enter(&ctx, &organization).await?;
    let place = web.streams.enter(ctx.user()).map_err(|Exhausted| ApiError::Busy)?;
    let walk = Walk {
        log: services.activity.clone(),
        org,
        query: filter.query(),
        before: None,
        left: BATCHES,
        begun: false,
    };
    let lines = stream::unfold(walk, |mut walk| async move {
        let lines = walk.next().await?;
        Some((lines, walk))
    });
    let mut response = sending::body(lines, place, web.app.limits.sending).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    let file = HeaderValue::from_static("attachment; filename=\"activity.csv\"");
    headers.insert(header::CONTENT_DISPOSITION, file);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The organization and the filter of a query.
fn asked(query: &str) -> (String, ActivityFilter) {
    let mut organization = String::new();
    let mut filter = ActivityFilter::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let field = match &*name {
            "organization" => &mut organization,
            "actor" => &mut filter.actor,
            "kind" => &mut filter.kind,
            "action" => &mut filter.action,
            "item" => &mut filter.item,
            "from" => &mut filter.from,
            "to" => &mut filter.to,
            "entry" => &mut filter.entry,
            _ => continue,
        };
        *field = value.into_owned();
    }
    (organization, filter)
}

/// One file that is being written.
struct Walk {
    log: ActivityLog,
    org: OrgCtx,
    query: ActivityQuery,
    /// The end of the next range; `None` at first.
    before: Option<i64>,
    /// Ranges that it may still read.
    left: usize,
    begun: bool,
}

impl Walk {
    /// The lines of the next range.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        let mut text = String::new();
        if !self.begun {
            self.begun = true;
            line(&mut text, HEAD);
        }
        while self.left > 0 {
            self.left -= 1;
            let batch = match self.log.batch(&self.org, &self.query, self.before).await {
                Ok(batch) => batch,
                Err(error) => {
                    tracing::error!(%error, "a file of the activity log was cut short");
                    self.left = 0;
                    return Some(Err(io::Error::other("the log cannot be read")));
                }
            };
            for entry in &batch.entries {
                lines(&mut text, entry);
            }
            match batch.next {
                Some(number) => self.before = Some(number),
                None => self.left = 0,
            }
            if !text.is_empty() {
                break;
            }
        }
        (!text.is_empty()).then(|| Ok(Bytes::from(text)))
    }
}

/// The lines of an entry: one for each changed field, and at least one.
fn lines(text: &mut String, entry: &Activity) {
    let (name, address) = match &entry.user {
        Some(user) => (user.first_name.as_str(), user.email.as_str()),
        None if entry.is_system => ("Weir", ""),
        None => ("", ""),
    };
    let via = match &entry.personal_api_key {
        Some(key) => format!("key {}", key.label),
        None if entry.is_system => String::new(),
        None => "web app".to_owned(),
    };
    let id = entry.id.to_string();
    let time = entry.created_at.to_string();
    let project = entry.team_id.map(|project| project.to_string()).unwrap_or_default();
    let mut write = |field: &str, before: &str, after: &str| {
        line(
            text,
            [
                &id,
                &time,
                name,
                address,
                &via,
                entry.activity.text(),
                entry.scope.text(),
                &entry.item_id,
                entry.detail.name.as_deref().unwrap_or_default(),
                &project,
                field,
                before,
                after,
                &entry.request_id,
            ],
        );
    };
    if entry.detail.changes.is_empty() {
        write("", "", "");
    }
    for change in &entry.detail.changes {
        write(&change.field, &value(&change.before), &value(&change.after));
    }
}

/// A value as a cell shows it.
fn value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn line(text: &mut String, cells: [&str; 14]) {
    for (at, content) in cells.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        cell(text, content);
    }
    text.push_str("\r\n");
}

/// A cell in quotation marks. Spreadsheets evaluate some beginnings as formulas, and
/// names are input. Such contents get an apostrophe before them.
fn cell(text: &mut String, content: &str) {
    text.push('"');
    if content.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        text.push('\'');
    }
    for c in content.chars() {
        if c == '"' {
            text.push('"');
        }
        text.push(c);
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::{asked, cell};

    #[test]
    fn cells_are_no_formulas() {
        for (content, expected) in [
            ("", "\"\""),
            ("a \"b\", c\nd", "\"a \"\"b\"\", c\nd\""),
            ("=1+1", "\"'=1+1\""),
            ("+49 30", "\"'+49 30\""),
            ("-2", "\"'-2\""),
            ("@cmd", "\"'@cmd\""),
            ("\t=1", "\"'\t=1\""),
            ("a=1", "\"a=1\""),
        ] {
            let mut text = String::new();
            cell(&mut text, content);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn the_query_is_that_of_the_page() {
        let (organization, filter) = asked("organization=o&kind=Team&from=2026-08-21&x=1&limit=5");
        assert_eq!((organization.as_str(), filter.kind.as_str()), ("o", "Team"));
        assert_eq!((filter.from.as_str(), filter.to.as_str()), ("2026-08-21", ""));
    }
}
