//! Questions in SQL: their answers, and saving them as insights.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::errors::FieldError;
#[cfg(feature = "ssr")]
use weir_model::insights::Insight;

use super::rows::RowsView;
#[cfg(feature = "ssr")]
use crate::context::{enter_project, redirect_with_notice, ui_error};
use crate::error::UiError;
#[cfg(feature = "ssr")]
use crate::row_questions::sql;

/// The most bytes of the rows that the page shows.
#[cfg(feature = "ssr")]
const BYTES_MAX: usize = 100_000;

/// A question in SQL, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SqlView {
    /// The saved insight of the address.
    pub(crate) saved: Option<SavedSql>,
    /// The text, and what `{filters}` stands for: those of the address, or else of the insight.
    pub(crate) text: String,
    pub(crate) filters: String,
    /// The answer, or the fault of the question at its field. `None`: there is no text.
    pub(crate) answer: Option<Result<RowsView, FieldError>>,
    /// The tables that a question can read.
    pub(crate) tables: Vec<TableView>,
}

/// A saved question in SQL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedSql {
    pub(crate) short_id: String,
    pub(crate) name: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableView {
    pub(crate) name: String,
    /// Name and type of each column.
    pub(crate) columns: Vec<(String, String)>,
}

/// Answers a question in SQL: that of these fields, or of a saved insight if they are empty.
#[server(prefix = "/_fn", endpoint = "get_sql")]
pub(crate) async fn get_sql(
    project: i64,
    // Short id of a saved insight.
    #[server(default)] insight: String,
    #[server(default)] query: String,
    #[server(default)] filters: String,
) -> Result<SqlView, UiError> {
    use weir_service::questions::sql_tables;

    let (services, project) = enter_project(project).await?;
    let saved = match insight.as_str() {
        "" => None,
        short_id => Some(services.insights.get(&project, short_id).await.map_err(ui_error)?),
    };
    let fields = saved.as_ref().map(saved_fields).transpose()?;
    let (text, filters) = match fields {
        Some(fields) if query.is_empty() => fields,
        _ => (query.replace("\r\n", "\n"), filters),
    };
    let answer = match sql::query(&text, &filters) {
        _ if text.trim().is_empty() => None,
        Err(fault) => Some(Err(fault)),
        Ok(question) => {
            let answer = super::rows::ask(&services, &project, question, BYTES_MAX).await?;
            Some(answer.map_err(sql::at_field))
        }
    };
    let tables = sql_tables().into_iter().map(|table| TableView {
        name: table.name.to_owned(),
        columns: table
            .columns
            .into_iter()
            .map(|column| (column.name.to_owned(), column.kind.to_owned()))
            .collect(),
    });
    Ok(SqlView {
        saved: saved.map(|saved| SavedSql {
            name: super::insights::name_of(&saved),
            short_id: saved.short_id,
        }),
        text,
        filters,
        answer,
        tables: tables.collect(),
    })
}

/// The text and the filters of a saved question, if the page can show it.
#[cfg(feature = "ssr")]
fn saved_fields(saved: &Insight) -> Result<(String, String), UiError> {
    sql::fields(&saved.query).ok_or_else(|| {
        let detail = "This insight is no question in SQL, or it has values beside its text.";
        ui_error(FieldError::body("invalid_input", detail).into())
    })
}

/// Saves a question in SQL under a name: as a new insight, or as the question of the one with
/// this short id.
#[server(prefix = "/_fn", endpoint = "save_sql")]
pub(crate) async fn save_sql(
    project: i64,
    #[server(default)] insight: String,
    name: String,
    #[server(default)] query: String,
    #[server(default)] filters: String,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::insights::{InsightInput, InsightPatch};
    use weir_service::Error;

    let (services, ctx) = enter_project(project).await?;
    let question = sql::query(&query, &filters).map_err(|fault| ui_error(fault.into()))?;
    let question = serde_json::to_value(&question)
        .map_err(|error| ui_error(Error::Internal(error.to_string())))?;
    let patch = InsightPatch { name: Patch::Set(name), ..InsightPatch::default() };
    let insights = &services.insights;
    let saved = match insight.as_str() {
        "" => insights.create(&ctx, InsightInput { query: question, rest: patch }).await,
        short_id => {
            // The page shows no question of another kind, so it replaces none.
            saved_fields(&insights.get(&ctx, short_id).await.map_err(ui_error)?)?;
            let patch = InsightPatch { query: Patch::Set(question), ..patch };
            insights.update(&ctx, short_id, patch).await
        }
    };
    let saved = saved.map_err(ui_error)?;
    let path = format!("/projects/{project}/sql?insight={}", saved.short_id);
    redirect_with_notice(&path, &format!("Saved {}.", super::insights::name_of(&saved)));
    Ok(())
}
