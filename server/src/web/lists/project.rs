//! The lists of a project: events, insights, dashboards, event definitions with their
//! properties, persons, groups, imports, transformations, the log of a config, keys. For
//! staff, unknown project keys.

use weir_app::filters;
use weir_model::dashboards::DashboardBrief;
use weir_model::definitions::EventOrder;
use weir_model::groups::{Group, GroupCursor, GroupQuery};
use weir_model::imports::ImportSource;
use weir_model::insights::Insight;
use weir_model::live::{LiveRow, OutcomeLabel, RowCursor};
use weir_model::pagination::Page;
use weir_model::persons::{PersonQuery, PersonRef};
use weir_model::plugin_configs::PluginLogEntry;
use weir_model::traffic::UnknownKey;
use weir_model::warnings::{AffectedCursor, AffectedQuery};
use weir_model::{PersonId, Timestamp};
use weir_service::Error as ServiceError;
use weir_service::definitions::{EventName, SampledProperty};
use weir_service::error::NOT_FOUND;
use weir_service::persons::display_name;
use weir_service::plugin_configs::Stage;
use weir_service::projects::KeyTraffic;
use weir_service::scan::SCAN_TIME;
use weir_service::traffic::Range;
use weir_store::warnings::Affected;

use super::{Asked, Project};
use crate::web::csv::{Column, CsvList, by_cursor, by_offset, one_page, optional};
use crate::web::live;

/// The maximum number of thousands of events of one file. The page says so.
const THOUSANDS_OF_EVENTS: usize = 10;
/// The maximum number of events of one read. An event can have 16 KiB of payload.
const EVENTS_PER_READ: usize = 50;
/// The maximum number of persons or groups of one read. They can have a megabyte each, and
/// the store reads so many together.
const PERSONS_PER_READ: u64 = 32;

const EVENTS: &[Column<LiveRow>] = &[
    ("received", |it| it.received_at.to_string()),
    ("event_time", |it| optional(it.timestamp.as_ref())),
    ("outcome", |it| OutcomeLabel::of(it.outcome, !it.reasons.is_empty()).word().to_owned()),
    ("reasons", |it| it.reasons.join(" ")),
    ("detail", |it| optional(it.detail.as_ref())),
    ("event", |it| optional(it.event.as_ref())),
    ("distinct_id", |it| optional(it.distinct_id.as_ref())),
    ("url_or_screen", |it| optional(it.place.as_ref())),
    ("library", |it| optional(it.library.as_ref())),
    ("size", |it| it.size.to_string()),
    ("id", |it| it.key.clone()),
    ("payload", |it| it.payload.clone()),
];

/// A dropped or altered event and its position.
type AffectedRow = (AffectedCursor, Affected);

const AFFECTED: &[Column<AffectedRow>] = &[
    ("received", |(at, _)| at.received_at.to_string()),
    ("outcome", |(_, it)| if it.is_stored { "altered" } else { "dropped" }.to_owned()),
    ("reasons", |(_, it)| it.codes.join(" ")),
    ("detail", |(_, it)| optional(it.detail.as_ref())),
    ("event", |(_, it)| optional(it.event.as_ref())),
    ("distinct_id", |(_, it)| optional(it.distinct_id.as_ref())),
    ("uuid", |(_, it)| optional(it.uuid.as_ref())),
    ("payload", |(_, it)| it.payload.clone()),
];

const INSIGHTS: &[Column<Insight>] = &[
    ("short_id", |it| it.short_id.clone()),
    ("name", |it| optional(it.name.as_ref().or(it.derived_name.as_ref()))),
    ("description", |it| optional(it.description.as_ref())),
    ("tags", |it| it.tags.join("; ")),
    ("question", |it| it.query.to_string()),
    ("created", |it| it.created_at.to_string()),
    ("created_by", |it| optional(it.created_by.as_ref().map(|user| &user.email))),
    ("changed", |it| it.last_modified_at.to_string()),
    ("changed_by", |it| optional(it.last_modified_by.as_ref().map(|user| &user.email))),
];

const DASHBOARDS: &[Column<DashboardBrief>] = &[
    ("id", |it| it.id.to_string()),
    ("name", |it| it.name.clone()),
    ("description", |it| it.description.clone()),
    ("pinned", |it| it.pinned.to_string()),
    ("tags", |it| it.tags.join("; ")),
    ("filters", |it| it.filters.to_string()),
    ("shared", |it| it.is_shared.to_string()),
    ("created", |it| it.created_at.to_string()),
    ("created_by", |it| optional(it.created_by.as_ref().map(|user| &user.email))),
];

/// An event name, and the number of events of the project that are not counted by name.
type DefinitionRow = (EventName, u64);

const DEFINITIONS: &[Column<DefinitionRow>] = &[
    ("name", |(it, _)| it.name.clone()),
    ("events_30d", |(it, _)| it.events.to_string()),
    ("events_30d_complete", |(_, others)| (*others == 0).to_string()),
    ("first_seen", |(it, _)| it.first_at.to_string()),
    ("last_seen", |(it, _)| it.last_at.to_string()),
];

/// A property of an event name, and the number of events that were read.
type PropertyRow = (SampledProperty, u64);

const PROPERTIES: &[Column<PropertyRow>] = &[
    ("property", |(it, _)| it.name.clone()),
    ("types", |(it, _)| it.kinds.iter().map(|kind| kind.text()).collect::<Vec<_>>().join("; ")),
    ("sample", |(it, _)| it.sample.clone()),
    ("found_in", |(it, _)| it.events.to_string()),
    ("events_read", |(_, read)| read.to_string()),
];

const UNKNOWN_KEYS: &[Column<UnknownKey>] = &[
    ("key", |it| it.mask.clone()),
    ("sender", |it| it.caller.clone()),
    ("requests", |it| it.count.to_string()),
    ("first_seen", |it| it.first_at.to_string()),
    ("last_seen", |it| it.last_at.to_string()),
];

const PERSONS: &[Column<PersonRef>] = &[
    ("id", |it| it.id.to_string()),
    ("name", display_name),
    ("distinct_ids", |it| it.distinct_ids.join("; ")),
    ("identified", |it| it.is_identified.to_string()),
    ("first_seen", |it| it.created_at.to_string()),
    ("properties", |it| it.properties.clone()),
];

/// The type of a group, and the group.
type GroupRow = (String, Group);

const GROUPS: &[Column<GroupRow>] = &[
    ("type", |(group_type, _)| group_type.clone()),
    ("key", |(_, it)| it.key.clone()),
    ("first_seen", |(_, it)| it.created_at.to_string()),
    ("properties", |(_, it)| it.properties.clone()),
];

const IMPORTS: &[Column<ImportSource>] = &[
    ("day", ImportSource::day_text),
    ("key", |it| it.key.clone()),
    ("library", |it| it.library.clone()),
    ("historical_migration", |it| it.historical.to_string()),
    ("sent", |it| it.counts.sent().to_string()),
    ("accepted", |it| it.counts.accepted.to_string()),
    ("dropped", |it| it.counts.dropped.to_string()),
    ("events_per_minute", |it| it.counts.rate().to_string()),
    ("events_of_fullest_minute", |it| it.counts.peak.to_string()),
    ("oldest", |it| event_time(it, it.counts.oldest)),
    ("newest", |it| event_time(it, it.counts.newest)),
    ("out_of_order", |it| it.counts.out_of_order.to_string()),
    ("future_timestamps", |it| it.counts.future.to_string()),
    ("missing_distinct_ids", |it| it.counts.missing_ids.to_string()),
    ("first_request", |it| Timestamp::from_micros(it.counts.first_at).to_string()),
    ("last_request", |it| Timestamp::from_micros(it.counts.last_at).to_string()),
    ("reasons", |it| {
        let reasons = it.counts.reasons.iter();
        reasons.map(|(code, times)| format!("{code}: {times}")).collect::<Vec<_>>().join("; ")
    }),
];

fn event_time(source: &ImportSource, micros: i64) -> String {
    let time = || Timestamp::from_micros(micros).to_string();
    if source.counts.has_times() { time() } else { String::new() }
}

const TRANSFORMATIONS: &[Column<Stage>] = &[
    ("id", |it| it.config.id.to_string()),
    ("name", |it| optional(it.config.fields.name.as_ref().or(it.plugin.fields.name.as_ref()))),
    ("plugin", |it| optional(it.plugin.fields.name.as_ref())),
    ("enabled", |it| it.config.fields.enabled.to_string()),
    ("succeeded_24h", |it| it.numbers.succeeded.to_string()),
    ("failed_24h", |it| it.numbers.failed.to_string()),
    ("dropped_24h", |it| it.numbers.dropped.to_string()),
    ("last_error", |it| optional(it.config.fields.error.as_ref().map(|it| it.message()).as_ref())),
    ("created", |it| it.config.created_at.to_string()),
    ("changed", |it| it.config.updated_at.to_string()),
];

const LOG: &[Column<PluginLogEntry>] = &[
    ("time", |it| it.timestamp.to_string()),
    ("level", |it| it.kind.text().to_owned()),
    ("source", |it| it.source.text().to_owned()),
    ("message", |it| it.message.clone()),
];

/// A key with its use, and when it stops working.
type KeyRow = (KeyTraffic, Option<Timestamp>);

const KEYS: &[Column<KeyRow>] = &[
    ("key", |(it, _)| it.token.clone()),
    ("events_24h", |(it, _)| it.day().to_string()),
    ("events_7d", |(it, _)| it.week().to_string()),
    ("last_event", |(it, _)| optional(it.last_at.as_ref())),
    ("works_until", |(_, until)| optional(until.as_ref())),
];

pub(super) async fn events(asked: &Asked<'_>, within: Project) -> Result<CsvList, ServiceError> {
    let name = within.name.clone();
    let filter = live::asked(asked.query).rows(asked.ctx.now);
    let after = within.services.events.rows_after(&within.project, &filter).await?;
    let pages = by_cursor(RowCursor::NEWEST, move |cursor| {
        let (Project { services, project, .. }, filter) = (within.clone(), filter.clone());
        async move {
            let (events, limit) = (&services.events, EVENTS_PER_READ);
            let page = events.rows_from(&project, &filter, after, cursor, limit).await?;
            Ok((page.rows, page.next))
        }
    });
    Ok(CsvList::new("events", &name, EVENTS, pages).at_most_thousands(THOUSANDS_OF_EVENTS))
}

pub(super) fn affected(asked: &Asked<'_>, within: Project) -> CsvList {
    let name = within.name.clone();
    let [code, from, to] = ["code", "from", "to"].map(|name| asked.value(name));
    let query = AffectedQuery { limit: EVENTS_PER_READ, ..filters::affected(&code, &from, &to) };
    let pages = by_cursor(None, move |behind| {
        let Project { services, project, .. } = within.clone();
        let query = AffectedQuery { behind, ..query.clone() };
        async move {
            let page = services.events.affected(&project, &query).await?;
            let next = page.found.last().filter(|_| page.more).map(|(cursor, _)| Some(*cursor));
            Ok((page.found, next))
        }
    });
    CsvList::new("dropped-and-altered-events", &name, AFFECTED, pages)
}

pub(super) fn insights(asked: &Asked<'_>, within: Project) -> CsvList {
    let name = within.name.clone();
    let query = filters::insights(&asked.value("q"));
    let pages = by_offset(move |page| {
        let (Project { services, project, .. }, query) = (within.clone(), query.clone());
        async move { services.insights.list(&project, &query, page).await }
    });
    CsvList::new("insights", &name, INSIGHTS, pages)
}

pub(super) fn dashboards(asked: &Asked<'_>, within: Project) -> CsvList {
    let name = within.name.clone();
    let query = filters::dashboards(&asked.value("q"));
    let pages = by_offset(move |page| {
        let (Project { services, project, .. }, query) = (within.clone(), query.clone());
        async move { services.dashboards.list(&project, &query, page).await }
    });
    CsvList::new("dashboards", &name, DASHBOARDS, pages)
}

pub(super) async fn definitions(
    asked: &Asked<'_>,
    within: Project,
) -> Result<CsvList, ServiceError> {
    let (search, order) = (asked.value("q"), EventOrder::named(&asked.value("order")));
    let all = Page { limit: u64::MAX, offset: 0 };
    let Project { services, project, name } = within;
    let found = services.definitions.names(&project, search.trim(), order, all).await?;
    let rows = found.page.results.into_iter().map(|row| (row, found.others)).collect();
    Ok(CsvList::new("event-definitions", &name, DEFINITIONS, one_page(rows)))
}

pub(super) async fn event_properties(
    within: Project,
    event: &str,
) -> Result<CsvList, ServiceError> {
    let found = within.services.definitions.event(&within.project, event).await?;
    let rows = found.properties.into_iter().map(|property| (property, found.read)).collect();
    Ok(CsvList::new("event-properties", &within.name, PROPERTIES, one_page(rows)))
}

/// Project keys that no project has. Other users than staff get [`ServiceError::NotFound`].
pub(super) async fn unknown_keys(within: Project) -> Result<CsvList, ServiceError> {
    let Project { services, project, .. } = within;
    // The keys do not depend on the range.
    let found = services.traffic.unknown_senders(&project, Range::Hour).await?;
    let found = found.ok_or(ServiceError::NotFound(NOT_FOUND))?;
    Ok(CsvList::new("unknown-project-keys", "", UNKNOWN_KEYS, one_page(found.keys)))
}

pub(super) fn persons(asked: &Asked<'_>, within: Project) -> CsvList {
    let name = within.name.clone();
    let search = filters::text(&asked.value("q"));
    let pages = by_cursor(None, move |after: Option<PersonId>| {
        let Project { services, project, .. } = within.clone();
        let search = search.clone();
        let query =
            PersonQuery { limit: PERSONS_PER_READ, after, search, ..PersonQuery::default() };
        async move {
            let step = services.persons.list(&project, &query, SCAN_TIME).await?;
            Ok((step.found, step.next.map(|(id, _)| Some(id))))
        }
    });
    CsvList::new("persons", &name, PERSONS, pages)
}

pub(super) fn groups(asked: &Asked<'_>, within: Project, group_type: Option<&str>) -> CsvList {
    let name = within.name.clone();
    let search = filters::text(&asked.value("q"));
    let group_type = group_type.map(str::to_owned);
    let pages = by_cursor(None, move |after: Option<GroupCursor>| {
        let Project { services, project, .. } = within.clone();
        let (search, group_type) = (search.clone(), group_type.clone());
        async move {
            if let Some(wanted) = &group_type
                && !services.groups.types(&project).await?.contains(wanted)
            {
                return Err(ServiceError::NotFound(NOT_FOUND));
            }
            let query =
                GroupQuery { limit: PERSONS_PER_READ, offset: 0, after, group_type, search };
            let step = services.groups.list(&project, &query, SCAN_TIME).await?;
            Ok((step.found, step.next.map(|(cursor, _)| Some(cursor))))
        }
    });
    CsvList::new("groups", &name, GROUPS, pages)
}

pub(super) async fn imports(within: Project) -> Result<CsvList, ServiceError> {
    let found = within.services.imports.sources(&within.project).await?;
    Ok(CsvList::new("imports", &within.name, IMPORTS, one_page(found)))
}

pub(super) async fn transformations(within: Project) -> Result<CsvList, ServiceError> {
    let mut found = within.services.plugin_configs.stages(&within.project).await?;
    found.retain(|stage| stage.transforms && !stage.config.fields.deleted);
    Ok(CsvList::new("transformations", &within.name, TRANSFORMATIONS, one_page(found)))
}

pub(super) fn config_log(within: Project, config: &str) -> CsvList {
    let (name, config) = (within.name.clone(), config.to_owned());
    let pages = by_offset(move |page| {
        let (Project { services, project, .. }, config) = (within.clone(), config.clone());
        async move { services.plugin_configs.logs(&project, &config, page).await }
    });
    CsvList::new("plugin-log", &name, LOG, pages)
}

pub(super) async fn keys(within: Project) -> Result<CsvList, ServiceError> {
    let found = within.services.projects.keys(&within.project).await?;
    let until = std::iter::once(None).chain(found.previous.map(|old| Some(old.until)));
    let rows = found.traffic.into_iter().zip(until).collect();
    Ok(CsvList::new("project-keys", &within.name, KEYS, one_page(rows)))
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;
    use weir_model::live::{LiveRow, Outcome};

    use super::EVENTS;

    #[test]
    fn cells_of_an_event() {
        let row = LiveRow {
            key: "k".to_owned(),
            received_at: Timestamp::EPOCH,
            outcome: Outcome::Accepted,
            reasons: vec!["invalid_timestamp".to_owned()],
            detail: None,
            event: Some("=a".to_owned()),
            distinct_id: Some("ada".to_owned()),
            timestamp: Some(Timestamp::EPOCH),
            place: None,
            library: Some("web".to_owned()),
            size: 2,
            payload: "{}".to_owned(),
            project_key: None,
            person: None,
            effects: Vec::new(),
        };
        let cells: Vec<String> = EVENTS.iter().map(|(_, cell)| cell(&row)).collect();
        let time = "1970-01-01T00:00:00Z";
        let expected = [
            time,
            time,
            "altered",
            "invalid_timestamp",
            "",
            "=a",
            "ada",
            "",
            "web",
            "2",
            "k",
            "{}",
        ];
        assert_eq!(cells, expected);
    }
}
