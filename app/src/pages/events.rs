//! Events: everything that reached a project, stored or not, with the reasons. The filter is
//! in the address and applied by the server. While the range ends now, new events appear as
//! they arrive.
//!
//! What belongs here: the address, the data, the chart. What does not: the filter form and
//! the choice of columns (`toolbar`), the list and the panel (`live`).

mod toolbar;

use futures::future::try_join4;
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use weir_model::live::{EventsFilter, PROPERTY_COLUMN, property_columns};

use super::health::{RANGES, USUAL, received};
use super::{columns_menu, project_in_path};
use crate::error::UiError;
use crate::live::{Columns, EventList, ListSettings, Nothing, address_of, selected_in_address};
use crate::server_fns::events::{
    Counted, EventCounts, EventView, EventsPage, count_events, get_event, list_events,
};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::alert::Alert;
use crate::ui::chart::{Bars, Series};
use crate::ui::download::DownloadCsv;
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;
use crate::ui::status::Tone;
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Events";
/// Number of rows in the first page load.
const FIRST: u16 = 100;
/// The range without a beginning: its name in the address.
const ALL: &str = "all";
/// Ranges whose times of day are unique.
const WITHIN_A_DAY: [&str; 3] = ["1h", "6h", "24h"];

/// The values of the address, except for the selected row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Selection {
    project: i64,
    filter: EventsFilter,
    columns: Columns,
    /// The properties that have a column.
    properties: Vec<String>,
    /// Cursor of the previous page.
    before: String,
    is_paused: bool,
}

impl Selection {
    fn read() -> Self {
        let mut filter = EventsFilter::default();
        for name in ["event", "outcome", "property", "value", "person", "from", "to"] {
            filter.set(name, in_query(name));
        }
        let range = in_query("range");
        if range != ALL {
            let known = RANGES.into_iter().find(|(name, _)| *name == range);
            filter.range = known.map_or(USUAL, |(name, _)| name).to_owned();
        }
        let properties = use_query_map().with(|query| query.get_all(PROPERTY_COLUMN));
        Self {
            project: project_in_path(),
            filter,
            columns: Columns::named(&columns_menu::in_address()),
            properties: property_columns(properties.unwrap_or_default()),
            before: in_query("before"),
            is_paused: in_query("paused") == "1",
        }
    }

    /// Names and values of the address. The usual values are omitted.
    fn pairs(&self) -> Vec<(&'static str, &str)> {
        let mut pairs = self.filter.pairs();
        pairs.retain(|(name, value)| *name != "range" || *value != USUAL);
        if self.filter.range.is_empty() {
            pairs.push(("range", ALL));
        }
        pairs.extend(
            self.columns.in_query().into_iter().map(|name| (columns_menu::PARAMETER, name)),
        );
        pairs.extend(self.properties.iter().map(|name| (PROPERTY_COLUMN, name.as_str())));
        if !self.before.is_empty() {
            pairs.push(("before", &self.before));
        }
        if self.is_paused {
            pairs.push(("paused", "1"));
        }
        pairs
    }

    /// The address without the values of these names, and with another range.
    fn address(&self, without: &[&str], range: Option<&str>) -> String {
        let mut pairs = self.pairs();
        pairs.retain(|(name, _)| !without.contains(name));
        if let Some(range) = range {
            pairs.retain(|(name, _)| *name != "range");
            pairs.extend((range != USUAL).then_some(("range", range)));
        }
        address_of(self.project, &pairs)
    }

    /// Whether the list has all events of the range.
    fn is_whole(&self) -> bool {
        let EventsFilter { event, outcome, property, person, .. } = &self.filter;
        [event, outcome, property, person].into_iter().all(String::is_empty)
    }

    /// Whether the range ends now.
    fn is_live(&self) -> bool {
        self.before.is_empty() && self.filter.to.is_empty()
    }

    /// The address with the whole filter, without what pages assume.
    fn whole_filter(&self) -> String {
        address_of(self.project, &self.filter.pairs())
    }

    /// What the list says when it is empty.
    fn nothing(&self, has_events: bool) -> Nothing {
        let rest = ["event", "outcome", "property", "value", "person", "before"];
        let times = ["from", "to", "before"];
        if !self.before.is_empty() {
            Nothing::Older(self.address(&["before"], None))
        } else if !self.is_whole() {
            Nothing::Matches(self.address(&rest, None))
        } else if has_events {
            Nothing::InRange(self.address(&times, Some(ALL)))
        } else {
            Nothing::Yet
        }
    }
}

#[component]
pub(crate) fn Events() -> impl IntoView {
    page(TITLE, Selection::read, load, draw)
}

type Loaded = (ProjectView, EventsPage, EventCounts, Option<EventView>);

async fn load(selection: Selection) -> Result<Loaded, UiError> {
    let Selection { project, filter, properties, before, .. } = selection;
    // The list follows later changes of the selected row without new data.
    let selected = untrack(selected_in_address);
    let opened = async move {
        match selected {
            Some(key) => get_event(project, key).await,
            None => Ok(None),
        }
    };
    let counts = count_events(project, filter.clone());
    let rows = list_events(project, filter, before, FIRST, properties);
    try_join4(get_project(project), rows, counts, opened).await
}

fn draw(selection: Selection, (project, found, counts, opened): Loaded) -> AnyView {
    let id = selection.project;
    let has_dates = !WITHIN_A_DAY.contains(&selection.filter.range.as_str())
        || !selection.filter.from.is_empty()
        || !selection.filter.to.is_empty();
    let older = found.older.map(|cursor| {
        let mut pairs = selection.pairs();
        pairs.retain(|(name, _)| *name != "before");
        pairs.push(("before", &cursor));
        address_of(id, &pairs)
    });
    let settings = ListSettings {
        project: id,
        page: selection.address(&[], None),
        filter: selection.filter.clone(),
        columns: selection.columns,
        properties: selection.properties.clone(),
        is_live: selection.is_live(),
        is_paused: selection.is_paused,
        has_dates,
        older,
        is_early: found.is_early,
        nothing: selection.nothing(project.has_events),
    };
    let selected = untrack(selected_in_address);
    let whole_filter = selection.whole_filter();
    let latest = (!selection.before.is_empty()).then(|| {
        let href = selection.address(&["before"], None);
        view! { <p><a class="button" href=href>"Latest events"</a></p> }
    });
    view! {
        <PageHead title=TITLE within=project.name>
            <a class="button" href=format!("/projects/{id}/events/explore")>"Explore events"</a>
            <a class="button" href=format!("/projects/{id}/health/events")>
                "Dropped and altered events"
            </a>
            <a class="button" href=format!("/projects/{id}/health#reasons")>"Drop reasons"</a>
            <DownloadCsv page=whole_filter />
        </PageHead>
        <ProjectZone zone=project.timezone />
        {toolbar::filter_form(&selection)}
        {counts.has_invalid_times.then(unreadable)}
        {toolbar::ranges_and_columns(&selection, found.frequent)}
        {chart(counts, &selection)}
        {latest}
        <EventList settings=settings rows=found.rows selected=selected opened=opened />
        {toolbar::hints(&selection)}
    }
    .into_any()
}

fn unreadable() -> AnyView {
    view! {
        <Alert kind="note">
            <p>"The times of the address cannot be read: From must be before To. They are ignored."</p>
        </Alert>
    }
    .into_any()
}

/// Events over time. Dragging over the chart fills and sends the filter form
/// (`behaviours::brush`).
fn chart(counts: EventCounts, selection: &Selection) -> AnyView {
    let EventCounts { times, end, accepted, dropped, rejected, counted, .. } = counts;
    let sum = |values: &[Option<u64>]| values.iter().flatten().sum::<u64>();
    let summary = received(sum(&accepted), sum(&dropped), sum(&rejected));
    let all = [
        ("Accepted", Tone::Good, accepted, ["accepted", "altered"]),
        ("Dropped", Tone::Warn, dropped, ["dropped", ""]),
        ("Rejected requests", Tone::Bad, rejected, ["rejected", ""]),
    ];
    let outcome = selection.filter.outcome.as_str();
    let series = all
        .into_iter()
        .filter(|(.., outcomes)| outcome.is_empty() || outcomes.contains(&outcome))
        .map(|(label, tone, values, _)| Series::new(label, tone, values))
        .collect();
    let note = chart_note(counted, &selection.filter);
    view! {
        <section class="events-chart" aria-label="Events over time">
            <h2 class="hidden">"Events over time"</h2>
            <Bars
                id="events-over-time"
                title="Received"
                summary=summary
                times=times
                series=series
                unit="events"
                until=end
            />
            {note}
        </section>
    }
    .into_any()
}

/// Which events the chart counts, if these are not those of the list.
fn chart_note(counted: Counted, filter: &EventsFilter) -> Option<AnyView> {
    let is_stored = ["accepted", "altered"].contains(&filter.outcome.as_str());
    let note = match counted {
        Counted::MatchingSince(since) => view! {
            <p class="hint">
                "The chart counts the matching events that were received since " <Time iso=since />
                ". Searching older ones takes too long."
            </p>
        }
        .into_any(),
        Counted::All if filter.searches() => view! {
            <p class="hint">"The chart counts all events, because a search of them takes too long. The filter applies to the list alone."</p>
        }
        .into_any(),
        Counted::All if is_stored => view! {
            <p class="hint">"The chart counts accepted and altered events together."</p>
        }
        .into_any(),
        Counted::All | Counted::Matching => return None,
    };
    Some(note)
}

#[cfg(test)]
mod tests {
    use super::{ALL, Columns, EventsFilter, Nothing, Selection, USUAL};

    fn selection(change: impl FnOnce(&mut Selection)) -> Selection {
        let mut selection = Selection {
            project: 1,
            filter: EventsFilter { range: USUAL.to_owned(), ..EventsFilter::default() },
            columns: Columns::named(&[]),
            properties: Vec::new(),
            before: String::new(),
            is_paused: false,
        };
        change(&mut selection);
        selection
    }

    #[test]
    fn the_address_has_what_differs_from_the_usual() {
        assert_eq!(selection(|_| {}).address(&[], None), "/projects/1/events");
        let changed = selection(|selection| {
            selection.filter.event = "a b".to_owned();
            selection.filter.range = "7d".to_owned();
            selection.columns = Columns::named(&["size".to_owned(), "time".to_owned()]);
            selection.properties = vec!["plan".to_owned(), "$lib".to_owned()];
            selection.before = "9,,".to_owned();
        });
        let expected = "/projects/1/events?event=a%20b&range=7d&columns=size&columns=time\
                        &properties=plan&properties=%24lib&before=9%2C%2C";
        assert_eq!(changed.address(&[], None), expected);
        assert_eq!(
            changed.address(&["columns", "properties", "before"], Some(ALL)),
            "/projects/1/events?event=a%20b&range=all"
        );
        assert_eq!(changed.whole_filter(), "/projects/1/events?event=a%20b&range=7d");
        let all = selection(|selection| selection.filter.range.clear());
        assert_eq!(all.address(&[], None), "/projects/1/events?range=all");
    }

    #[test]
    fn an_empty_list_says_why() {
        assert_eq!(selection(|_| {}).nothing(false), Nothing::Yet);
        let all = "/projects/1/events?range=all".to_owned();
        assert_eq!(selection(|_| {}).nothing(true), Nothing::InRange(all));
        let filtered = selection(|selection| selection.filter.person = "ada".to_owned());
        assert_eq!(filtered.nothing(true), Nothing::Matches("/projects/1/events".to_owned()));
        let older = selection(|selection| selection.before = "9,,".to_owned());
        assert_eq!(older.nothing(true), Nothing::Older("/projects/1/events".to_owned()));
    }
}
