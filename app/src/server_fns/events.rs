//! Events that reached a project.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::live::EventsFilter;

#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;
use crate::live::Row;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventsPage {
    /// The rows, newest first.
    pub(crate) rows: Vec<Row>,
    /// Cursor of older rows.
    pub(crate) older: Option<String>,
    /// Whether the search ended before the page was full, because it took too long.
    pub(crate) is_early: bool,
    /// Names of properties that many of the rows have.
    pub(crate) frequent: Vec<String>,
}

/// Events over time. Lists have one value for each step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventCounts {
    /// Start time of each step.
    pub(crate) times: Vec<String>,
    /// End time of the last step.
    pub(crate) end: String,
    /// Number of stored events. `None`: too few events of the step could be searched.
    pub(crate) accepted: Vec<Option<u64>>,
    /// Number of dropped events.
    pub(crate) dropped: Vec<Option<u64>>,
    /// Number of refused requests.
    pub(crate) rejected: Vec<Option<u64>>,
    pub(crate) counted: Counted,
    /// Whether the times of the filter cannot be read.
    pub(crate) has_invalid_times: bool,
}

/// Which events of the range are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Counted {
    /// All.
    All,
    /// Those that match the filter.
    Matching,
    /// Those that match and were received since this time. Searching older ones takes too
    /// long.
    MatchingSince(String),
}

/// An event or a refused request with all its facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventView {
    /// The row of the list.
    pub(crate) row: Row,
    /// Properties with their values as texts. Empty if the payload is truncated.
    pub(crate) properties: Vec<(String, String)>,
    /// The payload as JSON for reading. Empty for a refused request.
    pub(crate) raw: String,
    /// The beginning of the key of a refused request.
    pub(crate) project_key: Option<String>,
    /// Effects on its person and groups, in words.
    pub(crate) effects: Vec<String>,
    /// A command that sends the same event again. Only for a complete payload.
    pub(crate) command: Option<String>,
}

/// Lists events and refused requests of a project that match a filter, newest first.
#[server(prefix = "/_fn", endpoint = "list_events")]
pub(crate) async fn list_events(
    project: i64,
    #[server(default)] filter: EventsFilter,
    // Cursor of the previous page.
    #[server(default)] before: String,
    limit: u16,
    // The properties whose values the rows have.
    #[server(default)] properties: Vec<String>,
) -> Result<EventsPage, UiError> {
    use weir_model::live::{LiveRow, RowCursor, property_columns};
    use weir_service::events::{frequent_properties, property_values};

    let (services, project) = enter_project(project).await?;
    let limit = usize::from(limit.clamp(1, 1000));
    let filter = filter.rows(project.org.ctx.now);
    let cursor = before.parse().unwrap_or(RowCursor::NEWEST);
    let page = services.events.rows(&project, &filter, cursor, limit).await.map_err(ui_error)?;
    let names = property_columns(properties);
    let frequent = frequent_properties(&page.rows);
    let row = |row: LiveRow| {
        let properties = property_values(&row, &names);
        Row { properties, ..Row::from(row) }
    };
    Ok(EventsPage {
        rows: page.rows.into_iter().map(row).collect(),
        frequent,
        older: page.next.map(|cursor| cursor.to_string()),
        is_early: page.is_early,
    })
}

/// Counts the events of a project over the time range of a filter. Names, properties and
/// distinct ids of the filter count as far as matching events are found in time; outcomes do
/// not.
#[server(prefix = "/_fn", endpoint = "count_events")]
pub(crate) async fn count_events(
    project: i64,
    #[server(default)] filter: EventsFilter,
) -> Result<EventCounts, UiError> {
    use weir_model::Timestamp;
    use weir_model::traffic::Counts;
    use weir_service::events::CountSteps;

    let (services, project) = enter_project(project).await?;
    let now = project.org.ctx.now;
    let window = window(&filter, now);
    let report = services.traffic.report(&project, window, false).await.map_err(ui_error)?;
    let times: Vec<Timestamp> = report.steps.iter().map(|(at, _)| *at).collect();
    let end = times.last().map(|at| at.plus_seconds(report.step_seconds));
    let of = |value: fn(&Counts) -> u64| {
        report.steps.iter().map(|(_, counts)| Some(value(counts))).collect::<Vec<Option<u64>>>()
    };
    let all = EventCounts {
        times: times.iter().map(ToString::to_string).collect(),
        end: end.map(|end| end.to_string()).unwrap_or_default(),
        accepted: of(|counts| counts.accepted),
        dropped: of(|counts| counts.dropped),
        rejected: of(|counts| counts.rejected),
        counted: Counted::All,
        has_invalid_times: filter.has_invalid_times(),
    };
    let Some(begin) = times.first().copied().filter(|_| filter.searches()) else { return Ok(all) };
    let steps = CountSteps { begin, seconds: report.step_seconds, count: times.len() };
    let found = services.events.count_rows(&project, &filter.rows(now), steps).await;
    let found = found.map_err(ui_error)?;
    let Some((from, counted)) = complete_from(&times, found.since) else { return Ok(all) };
    let known = |counts: Vec<u64>| {
        let counts = counts.into_iter().enumerate();
        counts.map(|(at, count)| (at >= from).then_some(count)).collect::<Vec<Option<u64>>>()
    };
    Ok(EventCounts {
        accepted: known(found.accepted),
        dropped: known(found.dropped),
        // No refused request has a name, a property or a distinct id.
        rejected: known(vec![0; times.len()]),
        counted,
        ..all
    })
}

/// The first step whose counts are complete, and what that means for the chart. `None`: no
/// step is.
#[cfg(feature = "ssr")]
fn complete_from(
    times: &[weir_model::Timestamp],
    since: Option<weir_model::Timestamp>,
) -> Option<(usize, Counted)> {
    let Some(since) = since else { return Some((0, Counted::Matching)) };
    let from = times.iter().position(|at| *at >= since)?;
    let counted = match from {
        0 => Counted::Matching,
        _ => Counted::MatchingSince(times.get(from)?.to_string()),
    };
    Some((from, counted))
}

/// The window of the counts for the times of a filter.
#[cfg(feature = "ssr")]
fn window(filter: &EventsFilter, now: weir_model::Timestamp) -> weir_service::traffic::Window {
    use weir_service::traffic::{Range, Window};

    /// Counts are kept for 30 days.
    const KEPT_SECONDS: i64 = 30 * 86_400;

    match (filter.times(now), Range::from_text(&filter.range)) {
        ((Some(from), Some(to)), _) => Window::Between(from, to),
        ((_, None), Some(range)) if filter.from.is_empty() => Window::Last(range),
        ((Some(from), None), _) => Window::Between(from, now),
        ((None, Some(to)), _) => {
            let to = to.min(now);
            Window::Between(to.plus_seconds(-KEPT_SECONDS), to)
        }
        ((None, None), _) => Window::Last(Range::Month),
    }
}

/// Returns an event or a refused request by the key of its row. `None`: it is not kept.
#[server(prefix = "/_fn", endpoint = "get_event")]
pub(crate) async fn get_event(project: i64, key: String) -> Result<Option<EventView>, UiError> {
    use weir_model::live::Outcome;

    use crate::context::anyone;
    use crate::ui::json;

    let (services, project) = enter_project(project).await?;
    let Some(found) = services.events.row(&project, &key).await.map_err(ui_error)? else {
        return Ok(None);
    };
    let brief = services.projects.get(&project).await.map_err(ui_error)?.brief;
    let (_, visit) = anyone()?;
    let (payload, effects) = (found.payload.clone(), found.effects.clone());
    let project_key = found.project_key.clone();
    let row = Row::from(found);
    Ok(Some(EventView {
        properties: properties(&payload, row.outcome == Outcome::Dropped),
        raw: json::pretty(&payload),
        project_key,
        effects,
        command: command(&row, &payload, &visit.origin, &brief.api_token),
        row,
    }))
}

/// The properties of an event with their values as texts, in the order of their names.
#[cfg(feature = "ssr")]
fn properties(payload: &str, is_whole_event: bool) -> Vec<(String, String)> {
    use serde_json::{Map, Value};

    let parsed: Option<Map<String, Value>> = serde_json::from_str(payload).ok();
    let object = match parsed {
        // A dropped event is kept as it was sent: with its properties within.
        Some(mut event) if is_whole_event => match event.remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => event,
        },
        Some(properties) => properties,
        None => return Vec::new(),
    };
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let mut all: Vec<(String, String)> =
        object.into_iter().map(|(name, value)| (name, text(value))).collect();
    all.sort();
    all
}

/// A command that sends the same event again. `None` for a truncated payload and for a
/// refused request.
#[cfg(feature = "ssr")]
fn command(row: &Row, payload: &str, host: &str, key: &str) -> Option<String> {
    let is_whole = payload.len() as u64 >= row.size && payload.trim_end().ends_with('}');
    if !is_whole || row.may_be_cut() {
        return None;
    }
    let event = if row.is_dropped() {
        payload.to_owned()
    } else {
        let json = |text: &Option<String>| {
            serde_json::to_string(text.as_deref().unwrap_or_default()).unwrap_or_default()
        };
        format!(
            r#"{{"event":{},"distinct_id":{},"properties":{payload}}}"#,
            json(&row.event),
            json(&row.distinct_id),
        )
    };
    // Quoted, so that the shell reads the body as one word.
    let body = format!(r#"{{"api_key":"{key}","batch":[{event}]}}"#).replace('\'', r"'\''");
    Some(format!(
        "curl -sS '{host}/batch/' \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"
    ))
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use weir_model::live::Outcome;

    use weir_model::Timestamp;
    use weir_service::traffic::{Range, Window};

    use super::{Counted, EventsFilter, Row, command, complete_from, properties, window};

    fn row() -> Row {
        Row {
            key: "1".to_owned(),
            received_at: String::new(),
            outcome: Outcome::Accepted,
            reasons: Vec::new(),
            detail: None,
            event: Some("it's \"on\"".to_owned()),
            distinct_id: Some("ada".to_owned()),
            timestamp: None,
            url_or_screen: None,
            library: None,
            size: 2,
            person: None,
            properties: Vec::new(),
        }
    }

    #[test]
    fn counts_are_of_the_times_of_the_filter() {
        let now = Timestamp::from_micros(1_780_000_000_000_000);
        let ago = |days: i64| now.plus_seconds(-days * 86_400);
        let window = |range: &str, from: Option<Timestamp>, to: Option<Timestamp>| {
            let text = |time: Option<Timestamp>| time.map(|t| t.to_string()).unwrap_or_default();
            let range = range.to_owned();
            let filter =
                EventsFilter { range, from: text(from), to: text(to), ..EventsFilter::default() };
            window(&filter, now)
        };
        assert_eq!(window("all", None, None), Window::Last(Range::Month));
        assert_eq!(window("24h", None, None), Window::Last(Range::Day));
        assert_eq!(window("24h", Some(ago(2)), None), Window::Between(ago(2), now));
        assert_eq!(window("all", Some(ago(3)), Some(ago(2))), Window::Between(ago(3), ago(2)));
        assert_eq!(window("24h", None, Some(ago(2))), Window::Between(ago(3), ago(2)));
        assert_eq!(window("all", None, Some(ago(2))), Window::Between(ago(32), ago(2)));
        assert_eq!(window("all", None, Some(ago(-1))), Window::Between(ago(30), now));
    }

    #[test]
    fn steps_that_were_not_searched_are_not_counted() {
        let begin = Timestamp::from_micros(1_780_000_000_000_000);
        let times = [0, 60, 120].map(|seconds| begin.plus_seconds(seconds));
        let from = |seconds: i64| complete_from(&times, Some(begin.plus_seconds(seconds)));
        assert_eq!(complete_from(&times, None), Some((0, Counted::Matching)));
        assert_eq!(from(-5), Some((0, Counted::Matching)));
        assert_eq!(from(61), Some((2, Counted::MatchingSince(times[2].to_string()))));
        assert_eq!(from(121), None);
    }

    #[test]
    fn a_body_is_one_word_of_the_command() {
        let text = command(&row(), "{}", "http://h", "phc_k").unwrap();
        let expected = r#"-d '{"api_key":"phc_k","batch":[{"event":"it'\''s \"on\"","distinct_id":"ada","properties":{}}]}'"#;
        assert!(text.ends_with(expected), "{text}");
        assert_eq!(command(&Row { size: 3, ..row() }, "{}", "http://h", "phc_k"), None);
    }

    #[test]
    fn properties_are_texts_in_order() {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let expected = [("a", "x"), ("b", "[1]")].map(owned);
        assert_eq!(properties(r#"{"b":[1],"a":"x"}"#, false), expected);
        assert_eq!(properties(r#"{"event":"e","properties":{"b":[1],"a":"x"}}"#, true), expected);
        assert_eq!(properties(r#"{"event":"e"}"#, true), [owned(("event", "e"))]);
        assert!(properties(r#"{"a":"cut of"#, false).is_empty());
    }
}
