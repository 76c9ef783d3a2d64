//! The overview page of a project: what arrives, from whom, what fails, and what was changed.
//! Each number leads to its page.

mod lists;

use futures::future::try_join3;
use leptos::prelude::*;

use self::lists::{changes, health, names};
use super::project_in_path;
use crate::error::UiError;
use crate::server_fns::overview::{OverviewView, PeriodView, get_overview};
use crate::server_fns::project_start::{ChecklistView, get_checklist};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::chart::MiniBars;
use crate::ui::empty::{Empty, first_event};
use crate::ui::number::{Count, counted, grouped, percent};
use crate::ui::page::{PageHead, page};
use crate::ui::time::ProjectZone;

const TITLE: &str = "Overview";

#[component]
pub(crate) fn Overview() -> impl IntoView {
    page(TITLE, project_in_path, load, draw)
}

type Loaded = (ProjectView, OverviewView, ChecklistView);

async fn load(id: i64) -> Result<Loaded, UiError> {
    try_join3(get_project(id), get_overview(id), get_checklist(id)).await
}

fn draw(id: i64, (project, found, list): Loaded) -> AnyView {
    let ProjectView { name, timezone, organization, has_events, .. } = project;
    if !has_events && found.month.dropped == 0 {
        return view! {
            <PageHead title=TITLE within=name />
            <Empty title="No event received yet">
                <p>"This page shows how many events arrive, from whom, and what fails."</p>
                {first_event(id)}
            </Empty>
        }
        .into_any();
    }
    let numbers = numbers(id, &timezone, &found);
    let failing = [found.failing_exports, found.failing_transformations, found.failing_others];
    let OverviewView { by_name, changes: changed, .. } = found;
    view! {
        <PageHead title=TITLE within=name />
        <ProjectZone zone=timezone />
        {set_up(id, list)}
        {numbers}
        <div class="card-columns overview-lists">
            {names(id, by_name)}
            <div>
                {health(id, &organization, failing)}
                {changes(&organization, changed)}
            </div>
        </div>
    }
    .into_any()
}

/// The link to the start page, while its checklist has open steps.
fn set_up(project: i64, list: ChecklistView) -> Option<AnyView> {
    let ChecklistView { teammate, read_only_key, export, hidden } = list;
    let done = [teammate, read_only_key, export].into_iter().filter(|done| *done).count();
    (!hidden && done < 3).then(|| {
        view! {
            <p class="overview-start">
                {format!("{done} of 3 set-up steps are done.")} " "
                <a href=format!("/projects/{project}/start")>"Continue the set-up"</a>
            </p>
        }
        .into_any()
    })
}

/// The numbers with their charts.
fn numbers(id: i64, zone: &str, found: &OverviewView) -> AnyView {
    let OverviewView { today, hours, month, active, is_least, .. } = found;
    let events = format!("/projects/{id}/events");
    let by_hour = today.steps.iter().copied().map(Some);
    let still = hours.saturating_sub(today.steps.len());
    let by_hour = by_hour.chain(std::iter::repeat_n(None, still)).collect();
    let by_day = month.steps.iter().copied().map(Some).collect();
    let most = |period: &PeriodView| period.steps.iter().max().copied().unwrap_or(0);
    let of_hours = format!("Stored events by hour, at most {}.", grouped(most(today)));
    let of_days = format!("Stored events by day, at most {}.", grouped(most(month)));
    let all = month.accepted.saturating_add(month.dropped);
    let dropped =
        format!("{} of {} in 30 days", grouped(month.dropped), counted(all, "event", "events"));
    let today_dropped = today.accepted.saturating_add(today.dropped);
    let today_dropped = format!("Today: {}", percent(today.dropped, today_dropped));
    let (is_least, active) = (*is_least, *active);
    let active = view! { {is_least.then_some("at least ")} <Count value=active /> }.into_any();
    view! {
        <div class="overview-numbers">
            {number("Events today", events.clone(),
                view! { <Count value=today.accepted /> }.into_any(),
                view! { <MiniBars values=by_hour summary=of_hours /> }.into_any(),
                format!("By hour, in {zone}"))}
            {number("Events in 30 days", events,
                view! { <Count value=month.accepted /> }.into_any(),
                view! { <MiniBars values=by_day summary=of_days /> }.into_any(),
                "By day of receipt".to_owned())}
            {number("Active persons", format!("/projects/{id}/persons"), active, ().into_any(),
                "With an event in the last 5 minutes".to_owned())}
            {number("Dropped events", format!("/projects/{id}/health?range=30d"),
                percent(month.dropped, all).into_any(),
                view! { <p class="hint">{dropped}</p> }.into_any(),
                today_dropped)}
        </div>
    }
    .into_any()
}

/// A card with a number. The whole card is the link.
fn number(
    label: &'static str,
    href: String,
    value: AnyView,
    chart: AnyView,
    hint: String,
) -> AnyView {
    view! {
        <section class="card overview-number">
            <h2><a href=href>{label}</a></h2>
            <p class="overview-value">{value}</p>
            {chart}
            <p class="hint">{hint}</p>
        </section>
    }
    .into_any()
}
