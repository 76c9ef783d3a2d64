//! Live view: everything that reaches a project, as it arrives, stored or not, with the
//! reasons.

use leptos::prelude::*;

use super::{in_query, project_in_path};
use crate::live::{Filter, LiveList, MAX_ROWS, Row};
use crate::server_fns::events::list_live_rows;
use crate::server_fns::projects::get_project;
use crate::ui::alert::Alert;
use crate::ui::page::{PageHead, page};

/// Number of rows in the first page load.
const FIRST: u16 = 100;

#[component]
pub(crate) fn Live() -> impl IntoView {
    let project = project_in_path();
    let asked = |name| Some(in_query(name)).filter(|value| !value.trim().is_empty());
    let filter = Filter { outcome: asked("outcome"), text: asked("q") };
    let open = asked("row");
    page("Live", async move {
        let of = get_project(project).await?;
        let mut rows = list_live_rows(project, FIRST).await?;
        let mut gone = None;
        if let Some(key) = open.as_deref().filter(|key| !has(&rows, key)) {
            // The linked row can have moved beyond the first rows.
            let more = list_live_rows(project, MAX_ROWS).await?;
            match more.into_iter().find(|row| row.key == key) {
                Some(row) => rows.push(row),
                None => gone = Some(too_old()),
            }
        }
        Ok(view! {
            <PageHead title="Live" within=of.name>
                <a class="button" href=format!("/projects/{project}/health/events")>
                    "All dropped and altered events"
                </a>
                <a class="button" href=format!("/projects/{project}/health")>"All reasons, counted"</a>
            </PageHead>
            {gone}
            <LiveList project=project host=of.host key=of.key rows=rows filter=filter open=open />
            <p class="hint keys needs-scripts">
                <kbd>"Space"</kbd> " pauses, " <kbd>"/"</kbd> " filters, " <kbd>"u"</kbd>
                " switches between UTC and your time zone."
            </p>
        }
        .into_any())
    })
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
