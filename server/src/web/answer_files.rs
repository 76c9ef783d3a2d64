//! Answers in rows as files: CSV and Parquet, for the links of the pages that ask. The address
//! of a file is `/_answers`, the project and the name of the page, with the fields of the page.
//!
//! What belongs here: how the columns and values of an answer are written. What does not:
//! which question the fields of a page mean (`weir_app::row_questions`), and what an answer may
//! have (QRY-43, QRY-55): a file has all of its rows, which are in memory before it is sent.

use std::collections::HashSet;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use futures::stream;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, header};
use serde_json::value::RawValue;
use uuid::Uuid;
use weir_app::error::UiError;
use weir_app::local_path;
use weir_app::row_questions::explore::{self, Exploration, ExploreFields, file_columns};
use weir_app::row_questions::sql;
use weir_export::parquet_file;
use weir_export::rows::{Cell, Column, Kind};
use weir_model::errors::FieldError;
use weir_model::{ProjectId, Timestamp};
use weir_questions::Query;
use weir_questions::query::EVENTS_LIMIT_MAX;
use weir_service::Error as ServiceError;
use weir_service::questions::{Answered, Asking};

use super::csv::{cell, file_word, line};
use super::{Web, functions, visit};
use crate::dispatcher::RoutePattern;
use crate::http::error::{ApiError, ApiResult};
use crate::http::sending;
use crate::limits::Exhausted;

/// The last line of a CSV file that does not have all rows.
const INCOMPLETE: &str =
    "This file is incomplete: an answer has at most 50,000 rows and about 8 MiB.";

/// A page whose answer is a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Explore,
    Sql,
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Parquet,
}

/// Answers with the answer to the question of a page.
pub(super) async fn download(
    State(web): State<Web>,
    Path((project, file)): Path<(String, String)>,
    request: Request,
) -> Response {
    let (parts, _body) = request.into_parts();
    let mut response = match open(&web, &project, &file, &parts).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    };
    response.extensions_mut().insert(RoutePattern("/_answers/{project}/{file}"));
    response
}

async fn open(web: &Web, project: &str, file: &str, parts: &Parts) -> ApiResult<Response> {
    let visit = visit::of(web, parts).await?;
    let Some(ctx) = visit.ctx else {
        let requested = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let sign_in = format!("/login?next={}", local_path::encode(requested));
        return Ok(Redirect::to(&sign_in).into_response());
    };
    let (page, format) = wanted(file).ok_or(ApiError::UnknownPath)?;
    let permit = web.streams.enter(ctx.user()).map_err(|Exhausted| ApiError::Busy)?;
    let services = &web.app.services;
    let project = services.projects.enter(&ctx, project).await?;
    let name = services.projects.get(&project).await?.brief.name;
    let query = parts.uri.query().unwrap_or_default();
    let found = match page.question(query) {
        Ok(question) => services.questions.ask(&project, question, Asking::default()).await,
        Err(fault) => Err(fault.into()),
    };
    let names = page.columns(query);
    let answered = match found {
        // The page shows the fault at its field. It does not ask again, which takes long after a
        // timeout.
        Err(ServiceError::Invalid(fault)) if visit::wants_page(&parts.headers) => {
            let error = UiError::Field(page.at_field(query, fault));
            let address = page.address(project.project, query);
            let address = functions::failed(&address, page.function(), &error);
            return Ok(Redirect::to(&address).into_response());
        }
        found => found?,
    };
    let written = tokio::task::spawn_blocking(move || format.write(&answered, names)).await;
    let written = written.unwrap_or_else(|error| Err(error.to_string()));
    let Written { chunks, is_cut } = written.map_err(ServiceError::Internal)?;
    let chunks = stream::iter(chunks.into_iter().map(Ok));
    let mut response = sending::body(chunks, permit, web.app.limits.sending).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    let name = format!("{}-{}", page.word(), file_word(&name));
    let ending = if is_cut { "-incomplete" } else { "" };
    let name = format!("{}{ending}.{}", name.trim_end_matches('-'), format.word());
    if let Ok(disposition) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The page and the format of a name such as `sql.csv`.
fn wanted(file: &str) -> Option<(Page, Format)> {
    let (page, format) = file.split_once('.')?;
    let page = [Page::Explore, Page::Sql].into_iter().find(|known| known.word() == page)?;
    let format = [Format::Csv, Format::Parquet].into_iter().find(|known| known.word() == format)?;
    Some((page, format))
}

impl Page {
    fn word(self) -> &'static str {
        match self {
            Self::Explore => "events",
            Self::Sql => "sql",
        }
    }

    /// The question of the fields in this query.
    fn question(self, query: &str) -> Result<Query, FieldError> {
        let value = |name: &str| value(query, name);
        match self {
            Self::Explore => {
                let fields = ExploreFields::read(value);
                let found = Exploration::new(&fields, EVENTS_LIMIT_MAX, 0)?;
                Ok(Query::Events(found.query))
            }
            Self::Sql => sql::query(&value(sql::TEXT), &value(sql::FILTERS)),
        }
    }

    /// The fault of the question at its field of the page.
    fn at_field(self, query: &str, fault: FieldError) -> FieldError {
        match self {
            Self::Explore => {
                let fields = ExploreFields::read(|name| value(query, name));
                match Exploration::new(&fields, EVENTS_LIMIT_MAX, 0) {
                    Ok(found) => found.at_field(fault),
                    Err(fault) => fault,
                }
            }
            Self::Sql => sql::at_field(fault),
        }
    }

    /// The path of the server function of the page.
    fn function(self) -> &'static str {
        match self {
            Self::Explore => explore::FUNCTION,
            Self::Sql => sql::FUNCTION,
        }
    }

    /// The names of the columns, if those of the answer are expressions.
    fn columns(self, query: &str) -> Option<Vec<String>> {
        match self {
            Self::Explore => Some(file_columns(&ExploreFields::read(|name| value(query, name)))),
            Self::Sql => None,
        }
    }

    /// The address of the page with these fields.
    fn address(self, project: ProjectId, query: &str) -> String {
        let path = match self {
            Self::Explore => "events/explore",
            Self::Sql => "sql",
        };
        let mut fields = form_urlencoded::Serializer::new(String::new());
        fields.extend_pairs(form_urlencoded::parse(query.as_bytes()));
        format!("/projects/{project}/{path}?{}", fields.finish())
    }
}

/// The value of a field in a query. Empty if it is missing.
fn value(query: &str, name: &str) -> String {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

impl Format {
    fn word(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// The file of an answer, with these names of the columns instead of its own. An error is
    /// for the log.
    fn write(self, answered: &Answered, names: Option<Vec<String>>) -> Result<Written, String> {
        let Some(info) = &answered.rows else { return Err("an answer has no rows".to_owned()) };
        let rows: Vec<Vec<&RawValue>> = serde_json::from_str(answered.answer.results.get())
            .map_err(|error| error.to_string())?;
        // SQL says how many rows an answer has, and events are those that match.
        let is_limited = names.is_none() && rows.len() as u64 >= u64::from(info.limit);
        let is_cut = answered.answer.has_more == Some(true) && !is_limited;
        let names = names.as_ref().unwrap_or(&info.columns);
        let chunks = match self {
            Self::Csv => csv(names, &rows, is_cut).map_err(|error| error.to_string()),
            Self::Parquet => {
                let columns = columns(names, info.column_types(), &rows);
                let kinds: Vec<Kind> = columns.iter().map(|column| column.kind).collect();
                let cells = rows.iter().map(|row| {
                    let cells = row.iter().zip(&kinds);
                    cells
                        .map(|(value, kind)| typed(value.get(), *kind).unwrap_or(Cell::Null))
                        .collect()
                });
                parquet_file(&columns, cells).map_err(|error| error.to_string())
            }
        };
        Ok(Written { chunks: chunks?, is_cut })
    }
}

/// A file.
struct Written {
    chunks: Vec<Bytes>,
    /// Whether it does not have all rows that it should have.
    is_cut: bool,
}

/// A CSV file. Texts, lists and objects are in quotation marks, and null is empty.
fn csv(
    columns: &[String],
    rows: &[Vec<&RawValue>],
    is_cut: bool,
) -> Result<Vec<Bytes>, serde_json::Error> {
    /// Bytes of the parts that are sent.
    const PART: usize = 64 << 10;
    let (mut chunks, mut text) = (Vec::new(), line(columns));
    for row in rows {
        for (at, value) in row.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            let json = value.get();
            match json.as_bytes().first() {
                Some(b'n') => {}
                Some(b'"') => cell(&mut text, &serde_json::from_str::<String>(json)?),
                Some(b'[' | b'{') => cell(&mut text, json),
                // True, false, or a number, which spreadsheets do not evaluate.
                _ => text.push_str(json),
            }
        }
        text.push_str("\r\n");
        if text.len() >= PART {
            chunks.push(Bytes::from(std::mem::take(&mut text)));
        }
    }
    if is_cut {
        text.push_str(&line(&[INCOMPLETE]));
    }
    chunks.push(Bytes::from(text));
    Ok(chunks)
}

/// The columns of a file of Parquet. A name that came before gets a number, and a column with a
/// value that does not have its type is text.
fn columns<'a>(
    names: &[String],
    types: impl Iterator<Item = &'a str>,
    rows: &[Vec<&RawValue>],
) -> Vec<Column> {
    let mut taken = HashSet::new();
    let columns = names.iter().zip(types).enumerate().map(|(at, (name, of_column))| {
        let mut unique = name.clone();
        let mut number = 2;
        while !taken.insert(unique.clone()) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        let kind = kind_of(of_column);
        let fits = |row: &Vec<&RawValue>| {
            row.get(at).is_none_or(|value| typed(value.get(), kind).is_some())
        };
        let kind = if rows.iter().all(fits) { kind } else { Kind::Text };
        Column { name: unique, kind }
    });
    columns.collect()
}

/// The type of the cells of a column, by the name of its type (QRY-55).
fn kind_of(name: &str) -> Kind {
    match name {
        "Int64" => Kind::Integer,
        "Float64" => Kind::Float,
        "Bool" => Kind::Boolean,
        "UUID" => Kind::Uuid,
        name if name.starts_with("DateTime64") => Kind::Timestamp,
        _ => Kind::Text,
    }
}

/// A value of an answer as a cell of this type. `None`: it has another type.
fn typed(json: &str, kind: Kind) -> Option<Cell> {
    if json == "null" {
        return Some(Cell::Null);
    }
    let text = || serde_json::from_str::<String>(json).ok();
    match kind {
        Kind::Integer => json.parse().ok().map(Cell::Integer),
        Kind::Float => serde_json::from_str(json).ok().map(Cell::Float),
        Kind::Boolean => json.parse().ok().map(Cell::Boolean),
        Kind::Timestamp => Timestamp::parse(&text()?).map(|time| Cell::Timestamp(time.micros())),
        Kind::Uuid => Uuid::try_parse(&text()?).ok().map(Cell::Uuid),
        Kind::Text | Kind::Json => Some(Cell::Text(text().unwrap_or_else(|| json.to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(json: &str) -> Vec<Vec<&RawValue>> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn values_of_csv_files_are_no_formulas_and_null_is_empty() {
        let rows = rows(r#"[["=1", -2, null, true], ["a \"b\"", 0.5, [1,"x"], ""]]"#);
        let names = ["name", "n", "list", "flag"].map(str::to_owned);
        let written = |is_cut| {
            let chunks = csv(&names, &rows, is_cut).unwrap();
            String::from_utf8(chunks.concat()).unwrap()
        };
        let expected = "\"name\",\"n\",\"list\",\"flag\"\r\n\"'=1\",-2,,true\r\n\
                        \"a \"\"b\"\"\",0.5,\"[1,\"\"x\"\"]\",\"\"\r\n";
        assert_eq!(written(false), expected);
        assert_eq!(written(true), format!("{expected}\"{INCOMPLETE}\"\r\n"));
    }

    #[test]
    fn columns_of_parquet_files_have_the_types_of_their_values() {
        let types = ["Int64", "Float64", "DateTime64(6, 'UTC')"];
        let names = ["n", "n", "day"].map(str::to_owned);
        let of = |json: &str| -> Vec<(String, Kind)> {
            let columns = columns(&names, types.into_iter(), &rows(json)).into_iter();
            columns.map(|column| (column.name, column.kind)).collect()
        };
        let expected = |day| {
            let names = [("n", Kind::Integer), ("n_2", Kind::Float), ("day", day)];
            names.map(|(name, kind)| (name.to_owned(), kind))
        };
        let time = r#"[[1, 2, "2026-08-21T14:00:00Z"], [null, 0.5, null]]"#;
        assert_eq!(of(time), expected(Kind::Timestamp));
        assert_eq!(of(r#"[[1, 2, "2026-08-21"]]"#), expected(Kind::Text));
        assert_eq!(of("[]"), expected(Kind::Timestamp));
    }

    #[test]
    fn values_are_cells_of_their_type() {
        let max = Cell::Integer(i64::MAX);
        assert_eq!(typed("9223372036854775807", Kind::Integer), Some(max));
        assert_eq!(typed("0.1", Kind::Integer), None);
        assert_eq!(typed("7", Kind::Float), Some(Cell::Float(7.0)));
        assert_eq!(typed("false", Kind::Boolean), Some(Cell::Boolean(false)));
        let micros = Cell::Timestamp(1_787_320_800_000_001);
        assert_eq!(typed("\"2026-08-21T14:00:00.000001Z\"", Kind::Timestamp), Some(micros));
        assert_eq!(typed("\"\"", Kind::Text), Some(Cell::Text(String::new())));
        assert_eq!(typed(r#"{"a":1}"#, Kind::Text), Some(Cell::Text(r#"{"a":1}"#.to_owned())));
        assert_eq!(typed("null", Kind::Uuid), Some(Cell::Null));
    }

    #[test]
    fn files_have_the_names_of_their_pages() {
        assert_eq!(wanted("sql.csv"), Some((Page::Sql, Format::Csv)));
        assert_eq!(wanted("events.csv"), Some((Page::Explore, Format::Csv)));
        assert_eq!(wanted("sql.parquet"), Some((Page::Sql, Format::Parquet)));
        for file in ["sql", "sql.xlsx", "sql.csv.gz", "other.csv", ""] {
            assert_eq!(wanted(file), None, "{file}");
        }
    }
}
