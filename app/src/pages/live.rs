//! Live view: everything that reaches a project, as it arrives, stored or not, with the
//! reasons.

use futures::future::try_join;
use leptos::prelude::*;

use super::project_in_path;
use crate::error::UiError;
use crate::live::{LiveList, MAX_ROWS, Row, address};
use crate::server_fns::events::list_live_rows;
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::alert::Alert;
use crate::ui::page::{PageHead, page};

/// Number of rows in the first page load.
const FIRST: u16 = 100;

#[component]
pub(crate) fn Live() -> impl IntoView {
    page("Live", project_in_path, load, draw)
}

/// Project, rows, and whether the open row is missing.
type Loaded = (ProjectView, Vec<Row>, bool);

async fn load(project: i64) -> Result<Loaded, UiError> {
    // The list follows later changes of the address without new data.
    let (_, open) = untrack(address::read);
    let (of, mut rows) = try_join(get_project(project), list_live_rows(project, FIRST)).await?;
    let mut is_gone = false;
    if let Some(key) = open.filter(|key| !has(&rows, key)) {
        // The linked row can have moved beyond the first rows.
        let more = list_live_rows(project, MAX_ROWS).await?;
        match more.into_iter().find(|row| row.key == key) {
            Some(row) => rows.push(row),
            None => is_gone = true,
        }
    }
    Ok((of, rows, is_gone))
}

fn draw(project: i64, (of, rows, is_gone): Loaded) -> AnyView {
    let (filter, open) = address::read();
    view! {
        <PageHead title="Live" within=of.name>
            <a class="button" href=format!("/projects/{project}/health/events")>
                "All dropped and altered events"
            </a>
            <a class="button" href=format!("/projects/{project}/health")>"All reasons, counted"</a>
        </PageHead>
        {is_gone.then(too_old)}
        <LiveList project=project host=of.host key=of.key rows=rows filter=filter open=open />
        <p class="hint keys needs-scripts">
            <kbd>"Space"</kbd> " pauses, " <kbd>"/"</kbd> " filters, " <kbd>"u"</kbd>
            " switches between UTC and your time zone."
        </p>
    }
    .into_any()
}

fn has(rows: &[Row], key: &str) -> bool {
    rows.iter().any(|row| row.key == key)
}

fn too_old() -> impl IntoView {
    view! {
        <Alert kind="note">
            <p>{format!("The event of this address is not among the latest {MAX_ROWS} rows.")}</p>
        </Alert>
    }
}
