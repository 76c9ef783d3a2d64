//! Exploring events: those that match, how many there are over time, and the question as SQL
//! and for the API.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::errors::FieldError;
#[cfg(feature = "ssr")]
use weir_service::{ProjectCtx, Services};

#[cfg(feature = "ssr")]
use super::{asking, rows};
#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;
use crate::row_questions::explore::ExploreFields;
#[cfg(feature = "ssr")]
use crate::row_questions::explore::{Exploration, LEADING};

/// Events of a page. Files have all of them.
pub(crate) const PAGE_SIZE: u32 = 50;
/// The most intervals that the chart shows.
#[cfg(feature = "ssr")]
const INTERVALS_MAX: usize = 800;

/// What the page shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExploreView {
    /// The events, or the fault of the question at its field.
    pub(crate) answer: Result<ExploredView, FieldError>,
    /// Names of events and of their properties, for suggestions.
    pub(crate) events: Vec<String>,
    pub(crate) properties: Vec<String>,
}

/// Events that match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExploredView {
    /// How many match.
    pub(crate) total: u64,
    /// `None`: there are none, or too many intervals.
    pub(crate) chart: Option<ChartView>,
    /// The events of the page.
    pub(crate) rows: Vec<ExploredEvent>,
    /// The question as SQL, and what `{filters}` stands for in it, as JSON.
    pub(crate) sql: String,
    pub(crate) filters: String,
    /// The question as JSON.
    pub(crate) query: String,
}

/// The numbers of events over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChartView {
    /// The beginning of each interval.
    pub(crate) times: Vec<String>,
    pub(crate) counts: Vec<u64>,
}

/// An event of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExploredEvent {
    pub(crate) uuid: String,
    /// Its time.
    pub(crate) at: String,
    pub(crate) event: String,
    pub(crate) distinct_id: String,
    /// The id of its person.
    pub(crate) person: Option<String>,
    /// Type and key of its groups.
    pub(crate) groups: Vec<(String, String)>,
    /// The values of the columns that were chosen.
    pub(crate) values: Vec<Option<String>>,
}

/// Finds and counts events.
#[server(prefix = "/_fn", endpoint = "explore_events")]
pub(crate) async fn explore_events(
    project: i64,
    #[server(default)] fields: ExploreFields,
    #[server(default)] offset: u32,
) -> Result<ExploreView, UiError> {
    let (services, project) = enter_project(project).await?;
    let names = super::insights::question_names(&services, &project).await?;
    let answer = match Exploration::new(&fields, PAGE_SIZE, offset) {
        Ok(exploration) => {
            let found = explored(&services, &project, &exploration).await?;
            found.map_err(|fault| exploration.at_field(fault))
        }
        Err(fault) => Err(fault),
    };
    Ok(ExploreView { answer, events: names.events, properties: names.properties })
}

#[cfg(feature = "ssr")]
async fn explored(
    services: &Services,
    project: &ProjectCtx,
    exploration: &Exploration,
) -> Result<Result<ExploredView, FieldError>, UiError> {
    use serde_json::json;
    use weir_questions::Query;

    let question = Query::Events(exploration.query.clone());
    let query = serde_json::to_value(&question).map_err(|error| asking::unreadable(&error))?;
    let found = match rows::ask(services, project, question, usize::MAX).await? {
        Ok(found) => found,
        Err(fault) => return Ok(Err(fault)),
    };
    let counts = Query::Events(exploration.counts());
    let counts: Vec<(String, u64)> = match rows::answer(services, project, counts).await? {
        Ok(answered) => serde_json::from_str(answered.answer.results.get())
            .map_err(|error| asking::unreadable(&error))?,
        Err(fault) => return Ok(Err(fault)),
    };
    let filters = match &query["properties"] {
        serde_json::Value::Null => String::new(),
        properties => json!({ "properties": properties }).to_string(),
    };
    Ok(Ok(ExploredView {
        total: counts.iter().map(|(_, count)| count).sum(),
        chart: chart(services, project, exploration, &counts).await?,
        rows: found.rows.into_iter().map(event).collect(),
        sql: found.hogql,
        filters,
        query: query.to_string(),
    }))
}

/// The numbers with the intervals in which there are no events.
#[cfg(feature = "ssr")]
async fn chart(
    services: &Services,
    project: &ProjectCtx,
    exploration: &Exploration,
    counts: &[(String, u64)],
) -> Result<Option<ChartView>, UiError> {
    use weir_model::Timestamp;
    use weir_questions::query::DateRange;
    use weir_questions::time::{Calendar, DateText, WeekStart};

    let known: Vec<(i64, u64)> = counts
        .iter()
        .filter_map(|(time, count)| Some((Timestamp::parse(time)?.micros(), *count)))
        .collect();
    let Some((first, _)) = known.first() else { return Ok(None) };
    let of = services.projects.get(project).await.map_err(ui_error)?;
    let week_start = WeekStart::of_project(of.week_start_day);
    let Some(calendar) = Calendar::new(&of.brief.timezone, week_start) else { return Ok(None) };
    let begin = exploration.query.after.or(exploration.from).unwrap_or(DateText::Instant(*first));
    let dates =
        DateRange { date_from: Some(begin), date_to: exploration.before, explicit_date: true };
    let now = project.org.ctx.now;
    // A range that has no intervals, such as one that begins later than it ends, has no chart.
    let buckets = calendar
        .range(&dates, exploration.interval(), now, None)
        .and_then(|range| calendar.buckets(&range))
        .ok()
        .filter(|buckets| buckets.len() <= INTERVALS_MAX);
    let Some(buckets) = buckets else { return Ok(None) };
    let begins = buckets.boundaries().iter().take(buckets.len());
    let (times, counts) = begins
        .map(|begin| {
            let found = known.binary_search_by_key(begin, |(time, _)| *time).ok();
            let count = found.and_then(|at| known.get(at)).map_or(0, |(_, count)| *count);
            (Timestamp::from_micros(*begin).to_string(), count)
        })
        .unzip();
    Ok(Some(ChartView { times, counts }))
}

/// A row of the answer, whose first columns are [`LEADING`].
#[cfg(feature = "ssr")]
fn event(mut row: Vec<Option<String>>) -> ExploredEvent {
    let values = row.split_off(LEADING.len().min(row.len()));
    let mut leading = row.into_iter();
    let mut next = || leading.next().flatten();
    ExploredEvent {
        uuid: next().unwrap_or_default(),
        at: next().unwrap_or_default(),
        event: next().unwrap_or_default(),
        distinct_id: next().unwrap_or_default(),
        person: next(),
        groups: groups(&next().unwrap_or_default()),
        values,
    }
}

/// Type and key of each group in the JSON of an event.
#[cfg(feature = "ssr")]
fn groups(json: &str) -> Vec<(String, String)> {
    let found: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(json).unwrap_or_default();
    let key = |value: serde_json::Value| match value {
        serde_json::Value::String(key) => Some(key),
        serde_json::Value::Number(key) => Some(key.to_string()),
        _ => None,
    };
    found.into_iter().filter_map(|(group_type, value)| Some((group_type, key(value)?))).collect()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::{event, groups};

    #[test]
    fn rows_are_events() {
        let texts = ["u", "t", "paid", "ada", "p", r#"{"company":"acme","n":7,"x":[]}"#, "pro"];
        let row = texts.map(|text| Some(text.to_owned())).into_iter().chain([None]).collect();
        let found = event(row);
        assert_eq!((found.uuid.as_str(), found.person.as_deref()), ("u", Some("p")));
        let expected = [("company", "acme"), ("n", "7")];
        assert_eq!(found.groups, expected.map(|(kind, key)| (kind.to_owned(), key.to_owned())));
        assert_eq!(found.values, [Some("pro".to_owned()), None]);
        assert!(groups("{\"cut").is_empty());
        assert_eq!(event(Vec::new()).uuid, "");
    }
}
