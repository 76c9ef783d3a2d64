//! The numbers of a site: visitors, views and sessions, where they come from, and what they
//! see. Each value of a table is a link that adds a filter. The filters are in the address.

mod parts;

use futures::future::try_join;
use leptos::prelude::*;

use self::parts::{card, filters, numbers, ranges};
use super::project_in_path;
use crate::error::UiError;
use crate::server_fns::projects::{ProjectView, get_project};
use crate::server_fns::web::{CARDS, WebSelection, WebView, get_web, tables};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::chart::{NamedLines, Series};
use crate::ui::empty::{Empty, NoMatch, first_event, panel};
use crate::ui::number::{counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::query::{in_query, with_query};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Web";
/// The position of the sessions among the numbers.
const SESSIONS: usize = 2;

/// What the address says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    selection: WebSelection,
}

/// The numbers can fail alone: the range and the filters stay.
type Loaded = (ProjectView, Option<Result<WebView, UiError>>);

#[component]
pub(crate) fn Web() -> impl IntoView {
    page(TITLE, read, load, draw)
}

fn read() -> Inputs {
    Inputs { project: project_in_path(), selection: WebSelection::read(in_query) }
}

async fn load(inputs: Inputs) -> Result<Loaded, UiError> {
    let Inputs { project, selection } = inputs;
    let found = async { Ok(get_web(project, selection).await) };
    let (of, found) = try_join(get_project(project), found).await?;
    let has_events = of.has_events;
    Ok((of, has_events.then_some(found)))
}

fn draw(inputs: Inputs, (of, found): Loaded) -> AnyView {
    let Inputs { project, selection } = inputs;
    let head = view! { <PageHead title=TITLE within=of.name /> };
    let Some(found) = found else {
        return view! {
            {head}
            <Empty title="No event yet">
                <p>"This page shows the visitors of your site. It needs page views: events with the name " <code>"$pageview"</code> ", which PostHog's library for browsers sends without set-up."</p>
                {first_event(project)}
            </Empty>
        }
        .into_any();
    };
    let call = ApiCall::question(project, selection.overview());
    let zone = of.timezone.clone();
    let content = panel(found, |found| answered(project, &selection, found, &zone));
    view! {
        {head}
        <ProjectZone zone=of.timezone />
        {ranges(&selection)}
        {filters(&selection)}
        {content}
        <ApiRequest call=call of="ask for these numbers" />
    }
    .into_any()
}

fn answered(project: i64, selection: &WebSelection, found: WebView, zone: &str) -> AnyView {
    let sessions = found.numbers.get(SESSIONS).and_then(|number| number.value);
    let is_empty = sessions.is_none_or(|sessions| sessions == 0.0);
    let numbers = numbers(project, &found);
    if is_empty {
        return view! {
            {numbers}
            {nothing(project, selection)}
        }
        .into_any();
    }
    let WebView { visitors, tables, computed_at, .. } = found;
    let cards = CARDS.iter().zip(tables).map(|(of, rows)| card(selection, of, rows));
    view! {
        {numbers}
        {chart(selection, visitors, zone)}
        <div class="web-cards">{cards.collect_view()}</div>
        <p class="hint">"Computed at " <Time iso=computed_at /></p>
    }
    .into_any()
}

/// No session counts: because of the filters, or because there is none.
fn nothing(project: i64, selection: &WebSelection) -> AnyView {
    let words: Vec<String> =
        selection.filters().map(|(table, value)| format!("{}: {value}", table.label)).collect();
    if !words.is_empty() {
        let changes: Vec<(&str, Option<&str>)> = tables().map(|table| (table.word, None)).collect();
        return view! { <NoMatch filter=words.join(", ") clear=with_query(&changes) /> }.into_any();
    }
    view! {
        <Empty title="No page view in this range">
            <p>"Choose a longer range, or send page views: events with the name " <code>"$pageview"</code> ". PostHog's library for browsers sends them without set-up."</p>
            <p><a class="button" href=format!("/projects/{project}/start")>"Send events"</a></p>
        </Empty>
    }
    .into_any()
}

/// The visitors of each interval.
fn chart(selection: &WebSelection, visitors: Vec<(String, u64)>, zone: &str) -> AnyView {
    let (names, counts): (Vec<String>, Vec<u64>) = visitors.into_iter().unzip();
    let most = counts.iter().max().copied().unwrap_or(0);
    let step = if selection.has_hours() { "hour" } else { "day" };
    let most = counted(most, "visitor", "visitors");
    let summary = format!("At most {most} in one {step}, in {zone}.");
    let texts = counts.iter().map(|count| grouped(*count)).collect();
    let values = counts.into_iter().map(Some).collect();
    let series = vec![Series::numbered("Visitors".to_owned(), 0, false, values, texts)];
    let title = format!("Visitors per {step}");
    view! {
        // The heading of the chart is one level below this one.
        <h2 class="hidden">"Visitors over time"</h2>
        <NamedLines id="visitors" title=title summary=summary names=names series=series unit="visitors" decimals=0 />
    }
    .into_any()
}
