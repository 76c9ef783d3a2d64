//! Stored samples of dropped and altered events of a project, filtered by reason and
//! time, with pagination.

use futures::future::try_join;
use leptos::prelude::*;
use weir_model::outcomes::Meaning;

use super::reasons::{details, outcome_label};
use crate::live::badge;
use crate::pages::project_in_path;
use crate::server_fns::projects::{ProjectView, get_project};
use crate::server_fns::warnings::{AffectedPage, AffectedView, list_affected};
use crate::ui::alert::Alert;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, NoMatch};
use crate::ui::field::MomentField;
use crate::ui::form::FormResult;
use crate::ui::number::grouped;
use crate::ui::page::{PageHead, page};
use crate::ui::prose::prose;
use crate::ui::query::{FilterForm, in_query, with_query};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Dropped and altered events";

#[component]
pub(crate) fn AffectedEvents() -> impl IntoView {
    page(
        TITLE,
        || (project_in_path(), ["code", "from", "to", "behind"].map(in_query)),
        |(id, [code, from, to, behind])| {
            try_join(get_project(id), list_affected(id, code, from, to, behind))
        },
        |(_, asked), (project, found)| draw(asked, project, found),
    )
}

fn draw(asked: [String; 4], project: ProjectView, found: AffectedPage) -> AnyView {
    let is_filtered = asked.iter().any(|value| !value.is_empty());
    let [code, from, to, _] = asked;
    let file = (!found.events.is_empty()).then(|| view! { <DownloadCsv /> });
    let form = filter(&found.codes, code, from, to);
    let counted = format!("/projects/{}/health#reasons", project.id);
    view! {
        <PageHead title=TITLE within=project.name>
            <a class="button" href=counted>"Drop reasons"</a>
            {file}
        </PageHead>
        <ProjectZone zone=project.timezone />
        <p class="lead">
            "Newest first. They are kept for 30 days. Of more than 100,000 in the project, the oldest are removed earlier."
        </p>
        {form}
        {(found.unreadable > 0).then(|| view! { <Alert kind="warning">{unreadable(found.unreadable)}</Alert> })}
        {list(found, is_filtered)}
    }
    .into_any()
}

fn filter(codes: &[String], code: String, from: String, to: String) -> AnyView {
    let none = FormResult::sample(None);
    // The filter keeps the code of the address, even if no event has it.
    let unknown = (!code.is_empty() && !codes.contains(&code)).then(|| code.clone());
    let options = codes
        .iter()
        .cloned()
        .chain(unknown)
        .map(|one| {
            let label =
                Meaning::of(&one).map_or_else(|| one.clone(), |found| found.sentence.to_owned());
            let selected = one == code;
            view! { <option value=one selected=selected>{label}</option> }
        })
        .collect_view();
    view! {
        <FilterForm label="Dropped and altered events">
            <div class="field">
                <label for="code">"Reason"</label>
                <select id="code" name="code">
                    <option value="">"All reasons"</option>
                    {options}
                </select>
            </div>
            <MomentField result=none name="from" label="Received from" value=from />
            <MomentField result=none name="to" label="Received before" value=to />
        </FilterForm>
    }
    .into_any()
}

fn unreadable(events: u64) -> String {
    format!(
        "The records of {} events are damaged, so these events are missing here or on a page nearby.",
        grouped(events)
    )
}

fn list(found: AffectedPage, is_filtered: bool) -> AnyView {
    let AffectedPage { events, older, .. } = found;
    if events.is_empty() && !is_filtered {
        return view! {
            <Empty title="No event was dropped or altered">
                <p>"Dropped and altered events are listed here with the reason."</p>
            </Empty>
        }
        .into_any();
    }
    if events.is_empty() {
        let clear = with_query(&[("code", None), ("from", None), ("to", None), ("behind", None)]);
        return view! { <NoMatch filter="with this reason, received then" clear=clear /> }
            .into_any();
    }
    let older = older.map(|behind| {
        let href = with_query(&[("behind", Some(behind.as_str()))]);
        view! {
            <nav class="pager" aria-label="Pages of events">
                <div class="pager-ways"><a class="button" rel="next" href=href>"Older"</a></div>
            </nav>
        }
    });
    let entries = events.into_iter().map(entry).collect_view();
    view! {
        <ol class="timeline affected">{entries}</ol>
        {older}
    }
    .into_any()
}

fn entry(affected: AffectedView) -> AnyView {
    let AffectedView { codes, event } = affected;
    let label = codes.first().and_then(|code| outcome_label(code));
    let name = event.event.clone().filter(|name| !name.trim().is_empty());
    let name = name.unwrap_or_else(|| "No name".to_owned());
    let why = codes.first().and_then(|code| Meaning::of(code));
    let why = why.map(|found| prose(found.sentence));
    let whom = event.distinct_id.clone().unwrap_or_default();
    let at = event.received_at.clone();
    let reasons = codes
        .into_iter()
        .map(|code| {
            let sentence = Meaning::of(&code).map_or("", |found| found.sentence);
            view! { <p>{prose(sentence)} " "<code>{code}</code></p> }
        })
        .collect_view();
    view! {
        <li>
            <details>
                <summary>
                    {label.map(badge)}
                    <span class="timeline-event">{name}</span>
                    " "
                    <span class="timeline-why">{why}</span>
                    <span class="timeline-id mono faint">{whom}</span>
                    <Time iso=at />
                </summary>
                {reasons}
                {details(event, label)}
            </details>
        </li>
    }
    .into_any()
}
