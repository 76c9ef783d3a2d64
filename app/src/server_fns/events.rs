//! Events that reached a project.

use leptos::prelude::*;

#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;
use crate::live::Row;

/// Lists the latest rows of a project, newest first.
#[server(prefix = "/_fn", endpoint = "list_live_rows")]
pub(crate) async fn list_live_rows(project: i64, limit: u16) -> Result<Vec<Row>, UiError> {
    let (services, project) = enter_project(project).await?;
    let limit = usize::from(limit.clamp(1, 1000));
    let rows = services.events.live_rows(&project, limit).await.map_err(ui_error)?;
    Ok(rows.into_iter().map(Row::from).collect())
}
