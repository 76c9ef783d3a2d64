//! One event definition: when its name was seen, and the properties of its newest events.

use futures::future::try_join;
use leptos::prelude::*;

use super::event_definitions::{VOLUME, addresses, uncounted, volume};
use super::timeline::segment;
use super::{in_path, project_in_path};
use crate::server_fns::definitions::{
    EventDefinitionView, SampledPropertyView, get_event_definition,
};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::download::DownloadCsv;
use crate::ui::number::{counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;
use crate::ui::table::{Column, Table, TableRow, cell, truncated};
use crate::ui::time::{ProjectZone, Time};

/// An event name with its properties.
#[component]
pub(crate) fn EventDefinition() -> impl IntoView {
    page(
        "Event definition",
        || (project_in_path(), in_path("event")),
        |(project, event)| try_join(get_project(project), get_event_definition(project, event)),
        |_, (project, found)| draw(project, found),
    )
}

fn draw(project: ProjectView, found: EventDefinitionView) -> AnyView {
    let seen = found.seen.clone();
    let (stored, live) = addresses(project.id, &seen.name);
    let events = volume(seen.events, found.others);
    let path = format!("/projects/{}/definitions/{}", project.id, segment(&seen.name));
    let file = (!found.properties.is_empty()).then(|| view! { <DownloadCsv page=path /> });
    view! {
        <PageHead title=seen.name within=project.name>
            <a class="button" href=stored>"Show events"</a>
            <a class="button" href=live>"Watch live"</a>
            {file}
        </PageHead>
        <ProjectZone zone=project.timezone />
        <dl class="facts">
            <dt>{VOLUME}</dt>
            <dd>{events}</dd>
            <dt>"First seen"</dt>
            <dd><Time iso=seen.first_seen /></dd>
            <dt>"Last seen"</dt>
            <dd><Time iso=seen.last_seen /> " (or up to an hour later)"</dd>
        </dl>
        {uncounted(found.others)}
        {properties(found)}
    }
    .into_any()
}

fn properties(found: EventDefinitionView) -> AnyView {
    let EventDefinitionView { read, is_early, is_cut, properties, .. } = found;
    if properties.is_empty() {
        let why = why_empty(read, is_early);
        return view! { <Section id="properties" title="Properties"><p>{why}</p></Section> }
            .into_any();
    }
    let columns = vec![
        Column::text("Property"),
        Column::text("Type"),
        Column::text("Sample"),
        Column::number("Found in"),
    ];
    let rows = properties.into_iter().map(|property| row(property, read)).collect();
    let more = is_cut.then(|| {
        view! { <p class="hint">"These events have further properties, which are not listed."</p> }
    });
    view! {
        <Section id="properties" title="Properties" hint=hint(read)>
            <Table caption="Properties of the event" columns=columns rows=rows />
            {more}
        </Section>
    }
    .into_any()
}

/// Which events the properties are of.
fn hint(read: u64) -> String {
    match read {
        1 => "Of the newest event with this name.".to_owned(),
        _ => format!("Of the newest {} with this name.", counted(read, "event", "events")),
    }
}

fn why_empty(read: u64, is_early: bool) -> &'static str {
    match (read, is_early) {
        (0, true) => {
            "Events with this name are rare: none was found within a second. \"Show events\" searches for them."
        }
        (0, false) => "No event with this name is stored any more.",
        _ => "The newest events with this name have no properties.",
    }
}

fn row(property: SampledPropertyView, read: u64) -> TableRow {
    let SampledPropertyView { name, kinds, sample, events } = property;
    TableRow::new(vec![
        cell(view! { <span class="mono">{truncated(name)}</span> }),
        cell(kinds),
        cell(view! { <span class="mono">{truncated(sample)}</span> }),
        cell(format!("{} of {}", grouped(events), grouped(read))),
    ])
}

#[cfg(test)]
mod tests {
    use super::{hint, why_empty};

    #[test]
    fn the_page_says_which_events_were_read() {
        assert_eq!(hint(1), "Of the newest event with this name.");
        assert_eq!(hint(50), "Of the newest 50 events with this name.");
        assert!(why_empty(0, false).contains("any more"));
        assert!(why_empty(0, true).contains("rare"));
        assert!(why_empty(3, false).contains("no properties"));
    }
}
