//! Settings of a dashboard: name, description, range, and its deletion.

use futures::future::try_join;
use leptos::prelude::*;
use serde_json::json;
use weir_model::dashboards::{DESCRIPTION_MAX, NAME_MAX};

use super::api_path;
use crate::edits::TICKED;
use crate::error::UiError;
use crate::pages::{in_path, project_in_path};
use crate::questions::RANGES;
use crate::server_fns::dashboards::{DashboardView, HideDashboard, UpdateDashboard, get_dashboard};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::{Choice, Field, Select, TextArea, ticked};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::{Section, SubNav, Tab};

const TITLE: &str = "Dashboard settings";

#[component]
pub(crate) fn DashboardSettings() -> impl IntoView {
    page(TITLE, read, load, draw)
}

/// The project and the dashboard in the address.
pub(super) fn read() -> (i64, String) {
    (project_in_path(), in_path("dashboard"))
}

async fn load(
    (project, dashboard): (i64, String),
) -> Result<(ProjectView, DashboardView), UiError> {
    try_join(get_project(project), get_dashboard(project, dashboard)).await
}

fn draw((project, dashboard): (i64, String), (of, found): (ProjectView, DashboardView)) -> AnyView {
    let general = general(project, dashboard.clone(), found);
    view! {
        <PageHead title=TITLE within=of.name />
        {tabs(project, &dashboard)}
        <Section id="general" title="General">
            <div data-dirty-guard="">{general}</div>
        </Section>
        {ending(project, dashboard)}
    }
    .into_any()
}

/// Links between the pages of a dashboard.
pub(in crate::pages) fn tabs(project: i64, dashboard: &str) -> AnyView {
    let root = format!("/projects/{project}/dashboards/{dashboard}");
    let tab = |path: &str, label: &str| Tab::new(format!("{root}{path}"), label);
    let tabs = vec![
        tab("", "Tiles"),
        tab("/sharing", "Sharing"),
        tab("/subscriptions", "Subscriptions"),
        tab("/settings", "Settings"),
    ];
    view! { <SubNav label="Dashboard" tabs=tabs /> }.into_any()
}

/// The label of a range that begins at this date.
pub(super) fn range_label(from: &str) -> String {
    let known = RANGES.iter().find(|(date, _)| *date == from);
    known.map_or_else(|| format!("since {from}"), |(_, label)| (*label).to_owned())
}

fn general(project: i64, dashboard: String, found: DashboardView) -> AnyView {
    let update = form_action::<UpdateDashboard>();
    let result = form_result(update);
    let DashboardView { name, description, pinned, range, has_end, filters, .. } = found;
    let pin = ticked(result, "pinned", pinned);
    let shows = [
        ("name", name.clone()),
        ("description", description.clone()),
        ("range", range.clone()),
        ("pinned", if pinned { TICKED.to_owned() } else { String::new() }),
    ];
    let shows = shows.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let mut choices = vec![Choice::new("", "Range of each insight")];
    choices.extend(RANGES.iter().map(|(from, label)| Choice::new(*from, *label)));
    if !range.is_empty() && !RANGES.iter().any(|(from, _)| *from == range) {
        choices.push(Choice::new(range.clone(), range_label(&range)));
    }
    let hint = match has_end {
        true => {
            "It also has an end, which was set through the API. Another choice removes the end."
        }
        false => {
            "For all tiles, also of share links. Members can choose another one on the page of the dashboard."
        }
    };
    let mut body =
        json!({ "name": "{name}", "description": "{description}", "pinned": "{pinned}" });
    if filters == 0 {
        // A request replaces all filters, and the form has the range alone.
        body["filters"] = json!({ "date_from": "{range:optional}" });
    }
    let call = ApiCall::new("PATCH", api_path(project, &dashboard), "dashboard:write").with(body);
    view! {
        <ActionForm action=update>
            <FormFailure result=result fields=&["name", "description", "range"] />
            <input type="hidden" name="project" value=project.to_string() />
            <input type="hidden" name="dashboard" value=dashboard />
            <ShownValues result=result values=shows />
            <ReturnAddress />
            <Field result=result name="name" label="Name" max=NAME_MAX value=name />
            <TextArea result=result name="description" label="Description" rows=2 max=DESCRIPTION_MAX value=description />
            <Select result=result name="range" label="Range" choices=choices value=range hint=hint />
            <label class="choice">
                <input type="checkbox" name="pinned" value="true" checked=pin />
                <span>
                    "Pin the dashboard"
                    <span class="hint">"Marks it for all members."</span>
                </span>
            </label>
            <Submit result=result label="Save settings" busy="Saving settings..." saved="Saved" />
            <ApiRequest call=call />
        </ActionForm>
    }
    .into_any()
}

/// Deletes the dashboard. The notice can undo it.
fn ending(project: i64, dashboard: String) -> AnyView {
    let action = form_action::<HideDashboard>();
    let result = form_result(action);
    let call = ApiCall::new("PATCH", api_path(project, &dashboard), "dashboard:write")
        .with(json!({ "deleted": true }));
    view! {
        <Section id="ending" title="Delete dashboard" hint="Its insights stay. Its share links stop working.">
            <FormFailure result=result />
            <ActionForm action=action>
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="dashboard" value=dashboard />
                <ReturnAddress />
                <button type="submit" class="button" data-busy="Deleting dashboard...">
                    "Delete dashboard"
                </button>
                <ApiRequest call=call of="delete" />
            </ActionForm>
        </Section>
    }
    .into_any()
}
