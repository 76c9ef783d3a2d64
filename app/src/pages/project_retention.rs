//! How long a project keeps its events. A change is shown before it is made, because a shorter
//! time removes events.

use leptos::prelude::*;
use serde_json::json;
use weir_model::projects::{RETENTION_DAYS_MAX, removes_more};

use crate::error::UiError;
use crate::server_fns::projects::{ProjectView, SetEventRetention, retention_days};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::TypedConfirm;
use crate::ui::field::TextLine;
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::counted;
use crate::ui::query::in_query;
use crate::ui::sections::Section;

pub(super) const LABEL: &str = "Days to keep events";
/// The field for the name of the project. The page has another one.
const NAME: &str = "retention_name";

/// The days in the address, if a change is to be shown.
pub(super) fn requested_days() -> Option<String> {
    (in_query("look") == "retention").then(|| in_query("days"))
}

/// The section of the project's settings.
pub(super) fn section(project: &ProjectView, requested: Option<String>) -> AnyView {
    let wanted = requested.as_deref().map(retention_days).transpose();
    let present = shown(project.event_retention_days);
    let changing = match project.may_change_retention {
        true => changing(project, requested.unwrap_or(present), wanted),
        false => view! {
            <TextLine result=FormResult::sample(None) name="days" label=LABEL value=present kind="number"
                hint="Empty: events are kept for ever."
                disabled="Administrators and owners of the organization can change this." />
        }
        .into_any(),
    };
    view! {
        <Section id="retention" title="Event retention">
            {changing}
            <ul class="hint">
                <li>"The age of an event counts from its own time, which its sender chooses."</li>
                <li>
                    "Events are removed in files, each when its newest event is old enough. "
                    "So an event can stay much longer, for months in a project with few events, for years after an import of unsorted events. "
                    "The newest events are in no file yet and stay."
                </li>
                <li>
                    "Events stay until active exports, backfills and enabled plugins have read them. "
                    "Paused exports and disabled plugins are not waited for: they miss events that are removed."
                </li>
            </ul>
        </Section>
    }
    .into_any()
}

fn changing(
    project: &ProjectView,
    days: String,
    wanted: Result<Option<Option<i64>>, UiError>,
) -> AnyView {
    let (wanted, failure) = match wanted {
        Ok(wanted) => (wanted, None),
        Err(failure) => (None, Some(failure)),
    };
    let hint = format!("1 to {RETENTION_DAYS_MAX}. Leave it empty to keep events for ever.");
    view! {
        <form method="get" action=format!("/projects/{}/settings#retention", project.id)>
            <input type="hidden" name="look" value="retention" />
            <TextLine result=FormResult::sample(failure) name="days" label=LABEL value=days
                kind="number" hint=hint />
            <div class="submit">
                <button type="submit" class="button" data-busy="Previewing change...">
                    "Preview change"
                </button>
            </div>
        </form>
        {wanted.map(|days| previewed(project, days))}
    }
    .into_any()
}

/// What a change to these days means, and the form that makes it.
fn previewed(project: &ProjectView, days: Option<i64>) -> AnyView {
    if days == project.event_retention_days {
        return view! { <p id="retention-preview">"No change."</p> }.into_any();
    }
    let set = form_action::<SetEventRetention>();
    let result = form_result(set);
    let call = ApiCall {
        method: "PATCH",
        path: format!("/api/projects/{}/", project.id),
        scope: "project:write",
        body: Some(json!({"event_retention_days": days})),
    };
    let kept = match days {
        Some(days) => format!("for {}", counted(days.unsigned_abs(), "day", "days")),
        None => "for ever".to_owned(),
    };
    let removes = removes_more(project.event_retention_days, days);
    let (meaning, confirm) = match days.filter(|_| removes) {
        Some(days) => {
            let age = counted(days.unsigned_abs(), "day", "days");
            let warning = format!(
                "From now on, Weir removes events older than {age}. This cannot be undone."
            );
            let meaning = view! {
                <Alert kind="warning" autofocus=!result.failed()><p>{warning}</p></Alert>
            };
            let confirm = view! {
                <FormFailure result=result fields=&[NAME] />
                <TypedConfirm result=result name=NAME name_to_type=project.name.clone()
                    label="Name of the project" verb=format!("Keep events {kept}")
                    busy="Saving retention..." />
            };
            (meaning.into_any(), confirm.into_any())
        }
        None => {
            let meaning = format!("Events will be kept {kept}. Removed events do not come back.");
            let confirm = view! {
                <FormFailure result=result />
                <Submit result=result label="Keep events longer" busy="Saving retention..." />
            };
            (view! { <p>{meaning}</p> }.into_any(), confirm.into_any())
        }
    };
    let (id, days) = (project.id.to_string(), shown(days));
    view! {
        <div id="retention-preview">
            {meaning}
            <ActionForm action=set>
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="days" value=days />
                <ReturnAddress part="retention" />
                {confirm}
            </ActionForm>
            <ApiRequest call=call of="change the retention" />
        </div>
    }
    .into_any()
}

/// The days as a field shows them.
fn shown(days: Option<i64>) -> String {
    days.map(|days| days.to_string()).unwrap_or_default()
}
