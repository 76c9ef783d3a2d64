//! Answers in rows, as pages show them: the first rows, with values of bounded length.

use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_model::errors::FieldError;
#[cfg(feature = "ssr")]
use weir_questions::Query;
#[cfg(feature = "ssr")]
use weir_service::questions::Answered;
#[cfg(feature = "ssr")]
use weir_service::{Error, ProjectCtx, Services};

#[cfg(feature = "ssr")]
use crate::context::ui_error;
#[cfg(feature = "ssr")]
use crate::error::UiError;
#[cfg(feature = "ssr")]
use crate::server_fns::asking::unreadable;

/// The most rows that a page shows. Files have all of them.
#[cfg(feature = "ssr")]
const ROWS_MAX: usize = 200;
/// Longest value that a page shows, in characters.
#[cfg(feature = "ssr")]
const VALUE_MAX: usize = 400;

/// An answer in rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowsView {
    /// Name and type of each column.
    pub(crate) columns: Vec<(String, String)>,
    /// The first rows, each with a value for every column. `None`: null.
    pub(crate) rows: Vec<Vec<Option<String>>>,
    /// Number of rows of the answer.
    pub(crate) count: u64,
    /// Whether more rows follow those of the answer.
    pub(crate) has_more: bool,
    /// How long the answer took, in milliseconds.
    pub(crate) took: u64,
    /// The question as SQL.
    pub(crate) hogql: String,
}

/// Asks a question, for a page that shows rows of at most so many bytes. One that cannot be
/// answered as it is ends with its fault.
#[cfg(feature = "ssr")]
pub(super) async fn ask(
    services: &Services,
    project: &ProjectCtx,
    query: Query,
    bytes_max: usize,
) -> Result<Result<RowsView, FieldError>, UiError> {
    let began = std::time::Instant::now();
    match answer(services, project, query).await? {
        Ok(answered) => {
            let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            view(answered, took, bytes_max).map(Ok).map_err(|error| unreadable(&error))
        }
        Err(fault) => Ok(Err(fault)),
    }
}

/// The same, without a form for pages.
#[cfg(feature = "ssr")]
pub(super) async fn answer(
    services: &Services,
    project: &ProjectCtx,
    query: Query,
) -> Result<Result<Answered, FieldError>, UiError> {
    use weir_service::questions::Asking;

    match services.questions.ask(project, query, Asking::default()).await {
        Ok(answered) => Ok(Ok(answered)),
        // The page shows it at a field of its form.
        Err(Error::Invalid(fault)) => Ok(Err(fault)),
        Err(error) => Err(ui_error(error)),
    }
}

#[cfg(feature = "ssr")]
fn view(answered: Answered, took: u64, bytes_max: usize) -> Result<RowsView, serde_json::Error> {
    use serde_json::value::RawValue;

    /// Bytes of a cell beside its text, roughly.
    const CELL: usize = 40;

    let Answered { answer, rows: info, .. } = answered;
    let rows: Vec<Vec<&RawValue>> = serde_json::from_str(answer.results.get())?;
    let (mut shown, mut left) = (Vec::new(), bytes_max);
    for row in rows.iter().take(ROWS_MAX) {
        let values: Vec<Option<String>> = row.iter().map(|value| text(value.get())).collect();
        let bytes: usize =
            values.iter().map(|value| value.as_ref().map_or(0, String::len) + CELL).sum();
        if bytes > left && !shown.is_empty() {
            break;
        }
        left = left.saturating_sub(bytes);
        shown.push(values);
    }
    let columns = info.as_ref().map(|info| {
        let types = info.column_types().map(str::to_owned);
        info.columns.iter().cloned().zip(types).collect()
    });
    Ok(RowsView {
        columns: columns.unwrap_or_default(),
        rows: shown,
        count: rows.len() as u64,
        has_more: answer.has_more == Some(true),
        took,
        hogql: info.and_then(|info| info.hogql).unwrap_or_default(),
    })
}

/// A value for readers, cut if it is long. `None`: null.
#[cfg(feature = "ssr")]
fn text(json: &str) -> Option<String> {
    if json == "null" {
        return None;
    }
    let text = serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned());
    let cut = text.char_indices().nth(VALUE_MAX).map(|(end, _)| format!("{}…", &text[..end]));
    Some(cut.unwrap_or(text))
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::{VALUE_MAX, text};

    #[test]
    fn values_are_short_texts() {
        for (json, expected) in [
            ("null", None),
            ("\"\"", Some("")),
            ("\"null\"", Some("null")),
            ("-0.5", Some("-0.5")),
            ("true", Some("true")),
            (r#"["a",1]"#, Some(r#"["a",1]"#)),
        ] {
            assert_eq!(text(json).as_deref(), expected, "{json}");
        }
        let long = text(&format!("\"{}\"", "ü".repeat(VALUE_MAX + 1))).unwrap();
        assert_eq!(long, format!("{}…", "ü".repeat(VALUE_MAX)));
    }
}
