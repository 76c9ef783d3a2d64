//! Saved insights of a project, and answers to the questions of the form for trends.

#![allow(clippy::too_many_arguments, reason = "the fields of a form")]

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_service::{ProjectCtx, Services};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, go, notice, notice_with_undo, redirect_with_notice, ui_error};
use crate::error::UiError;
use crate::trends::TrendsForm;

/// The most intervals that a page shows, because its chart has a number for each.
#[cfg(feature = "ssr")]
const INTERVALS_MAX: usize = 400;
/// The most names that a field suggests.
#[cfg(feature = "ssr")]
const SUGGESTIONS: u64 = 200;

/// A saved insight of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InsightLine {
    pub(crate) short_id: String,
    pub(crate) name: String,
    /// The kind of its question in words.
    pub(crate) kind: String,
    /// Time of the last change.
    pub(crate) changed_at: String,
    /// Who changed it last. Empty: a former member.
    pub(crate) changed_by: String,
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InsightList {
    /// Number of insights that match the search.
    pub(crate) total: u64,
    pub(crate) insights: Vec<InsightLine>,
}

/// A saved insight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InsightView {
    pub(crate) short_id: String,
    pub(crate) name: String,
    /// Its question in the form. `None`: the form cannot show it.
    pub(crate) form: Option<TrendsForm>,
    /// The question: JSON text.
    pub(crate) query: String,
}

/// Names that the fields of a question suggest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamesView {
    /// Event names, the most frequent first.
    pub(crate) events: Vec<String>,
    /// Names of properties of events.
    pub(crate) properties: Vec<String>,
}

/// The answer to a question of trends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrendsView {
    /// The texts of the intervals, in the zone of the project.
    pub(crate) intervals: Vec<String>,
    /// The series, the largest first: one, or one for each value of the breakdown.
    pub(crate) series: Vec<SeriesView>,
    /// Whether the last series has all further values of the breakdown.
    pub(crate) has_others: bool,
    /// When it was computed.
    pub(crate) computed_at: String,
}

/// A series of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeriesView {
    pub(crate) label: String,
    pub(crate) numbers: NumbersView,
    /// Those of the period before, if it is compared.
    pub(crate) before: Option<NumbersView>,
}

/// The numbers of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumbersView {
    /// One for each interval. Empty if the chart does not draw the series.
    pub(crate) data: Vec<f64>,
    /// The number of the whole range. `None`: it is not known.
    pub(crate) whole: Option<f64>,
}

/// Lists saved insights whose name contains a text.
#[server(prefix = "/_fn", endpoint = "list_insights")]
pub(crate) async fn list_insights(
    project: i64,
    #[server(default)] search: String,
    limit: u32,
    offset: u32,
) -> Result<InsightList, UiError> {
    use weir_model::insights::Insight;
    use weir_model::pagination::Page;

    let (services, project) = enter_project(project).await?;
    let page = Page { limit: limit.clamp(1, 1000).into(), offset: offset.into() };
    let query = crate::filters::insights(&search);
    let found = services.insights.list(&project, &query, page).await.map_err(ui_error)?;
    let line = |insight: Insight| InsightLine {
        name: name_of(&insight),
        kind: kind_of(&insight).to_owned(),
        short_id: insight.short_id,
        changed_at: insight.last_modified_at.to_string(),
        changed_by: insight.last_modified_by.map(|user| user.first_name).unwrap_or_default(),
    };
    Ok(InsightList { total: found.count, insights: found.results.into_iter().map(line).collect() })
}

/// Returns a saved insight.
#[server(prefix = "/_fn", endpoint = "get_insight")]
pub(crate) async fn get_insight(project: i64, insight: String) -> Result<InsightView, UiError> {
    let (services, project) = enter_project(project).await?;
    let found = services.insights.get(&project, &insight).await.map_err(ui_error)?;
    Ok(InsightView {
        name: name_of(&found),
        form: TrendsForm::of_query(&found.query),
        query: found.query.to_string(),
        short_id: found.short_id,
    })
}

/// Lists names of events and of their properties.
#[server(prefix = "/_fn", endpoint = "list_question_names")]
pub(crate) async fn list_question_names(project: i64) -> Result<NamesView, UiError> {
    use weir_model::definitions::{EventOrder, PropertyOwner};
    use weir_model::pagination::Page;

    let (services, project) = enter_project(project).await?;
    let page = || Page { limit: SUGGESTIONS, offset: 0 };
    let (definitions, order) = (&services.definitions, EventOrder::named("-events"));
    let events = definitions.names(&project, "", order, page()).await.map_err(ui_error)?;
    let of_events = Some(PropertyOwner::Event);
    let properties = definitions.properties(&project, of_events, "", page()).await;
    let properties = properties.map_err(ui_error)?.results;
    Ok(NamesView {
        events: events.page.results.into_iter().map(|seen| seen.name).collect(),
        properties: properties.into_iter().map(|seen| seen.name).collect(),
    })
}

/// Answers a question of trends. A fault has the name of a field of the form.
#[server(prefix = "/_fn", endpoint = "answer_trends")]
pub(crate) async fn answer_trends(
    project: i64,
    #[server(default)] event: String,
    #[server(default)] math: String,
    #[server(default)] property: String,
    #[server(default)] interval: String,
    #[server(default)] range: String,
    #[server(default)] breakdown: String,
    #[server(default)] compare: String,
) -> Result<TrendsView, UiError> {
    let (services, project) = enter_project(project).await?;
    let form = form(event, math, property, interval, range, breakdown, compare);
    answer(&services, &project, &form).await.map_err(at_field)
}

/// Saves a question under a name: as a new insight, or as the question of the one with this
/// short id.
#[server(prefix = "/_fn", endpoint = "save_insight")]
pub(crate) async fn save_insight(
    project: i64,
    #[server(default)] insight: String,
    name: String,
    #[server(default)] event: String,
    #[server(default)] math: String,
    #[server(default)] property: String,
    #[server(default)] interval: String,
    #[server(default)] range: String,
    #[server(default)] breakdown: String,
    #[server(default)] compare: String,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::insights::{InsightInput, InsightPatch, NAME_MAX};

    let (services, ctx) = enter_project(project).await?;
    let form = form(event, math, property, interval, range, breakdown, compare);
    let title = form.title().chars().take(NAME_MAX).collect();
    let patch = InsightPatch {
        name: Patch::Set(name),
        derived_name: Patch::Set(title),
        ..InsightPatch::default()
    };
    let insights = &services.insights;
    let saved = match insight.as_str() {
        "" => insights.create(&ctx, InsightInput { query: form.query(), rest: patch }).await,
        short_id => {
            let patch = InsightPatch { query: Patch::Set(form.query()), ..patch };
            insights.update(&ctx, short_id, patch).await
        }
    };
    let saved = saved.map_err(ui_error)?;
    let path = format!("/projects/{project}/insights/{}", saved.short_id);
    redirect_with_notice(&path, &format!("Saved {}.", name_of(&saved)));
    Ok(())
}

/// Hides an insight. It can be restored.
#[server(prefix = "/_fn", endpoint = "hide_insight")]
pub(crate) async fn hide_insight(project: i64, insight: String) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    let name = set_deleted(&services, &ctx, &insight, true).await?;
    let number = project.to_string();
    let fields = [("project", number.as_str()), ("insight", insight.as_str())];
    let restore = <RestoreInsight as server_fn::ServerFn>::PATH;
    notice_with_undo(&format!("Deleted {name}."), restore, &fields);
    go(&format!("/projects/{project}/insights"));
    Ok(())
}

/// Restores a hidden insight.
#[server(prefix = "/_fn", endpoint = "restore_insight")]
pub(crate) async fn restore_insight(project: i64, insight: String) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    let name = set_deleted(&services, &ctx, &insight, false).await?;
    notice(&format!("Restored {name}."));
    Ok(())
}

/// Hides an insight or shows it again, and returns its name.
#[cfg(feature = "ssr")]
async fn set_deleted(
    services: &Services,
    project: &ProjectCtx,
    insight: &str,
    is_deleted: bool,
) -> Result<String, UiError> {
    use weir_model::Patch;
    use weir_model::insights::InsightPatch;

    let patch = InsightPatch { deleted: Patch::Set(is_deleted), ..InsightPatch::default() };
    let changed = services.insights.update(project, insight, patch).await.map_err(ui_error)?;
    Ok(name_of(&changed))
}

/// The form with these values.
#[cfg(feature = "ssr")]
fn form(
    event: String,
    math: String,
    property: String,
    interval: String,
    range: String,
    breakdown: String,
    compare: String,
) -> TrendsForm {
    TrendsForm::read(|name| {
        let value = match name {
            "event" => &event,
            "math" => &math,
            "property" => &property,
            "interval" => &interval,
            "range" => &range,
            "breakdown" => &breakdown,
            _ => &compare,
        };
        value.clone()
    })
}

/// The name of an insight as pages show it.
#[cfg(feature = "ssr")]
pub(super) fn name_of(insight: &weir_model::insights::Insight) -> String {
    let name = insight.name.as_ref().or(insight.derived_name.as_ref());
    name.cloned().unwrap_or_else(|| format!("Insight {}", insight.short_id))
}

/// The kind of the question of an insight in words.
#[cfg(feature = "ssr")]
fn kind_of(insight: &weir_model::insights::Insight) -> &'static str {
    match insight.query["kind"].as_str() {
        Some("TrendsQuery") => "Trends",
        Some("FunnelsQuery") => "Funnel",
        Some("RetentionQuery") => "Retention",
        Some("PathsQuery") => "Paths",
        Some("StickinessQuery") => "Stickiness",
        Some("LifecycleQuery") => "Lifecycle",
        Some("HogQLQuery") => "SQL",
        _ => "Events",
    }
}

/// Moves the fault of a question to the field of the form.
#[cfg(feature = "ssr")]
fn at_field(error: UiError) -> UiError {
    use weir_model::errors::FieldError;

    match error {
        UiError::Field(fault) => {
            let attr = fault.attr.as_deref().and_then(crate::trends::field_of);
            let attr = attr.map(str::to_owned);
            UiError::Field(FieldError { attr, ..fault })
        }
        other => other,
    }
}

#[cfg(feature = "ssr")]
async fn answer(
    services: &Services,
    project: &ProjectCtx,
    form: &TrendsForm,
) -> Result<TrendsView, UiError> {
    use weir_questions::results::{CompareLabel, TrendsResult};

    let (found, answered) = ask(services, project, &form.query()).await?;
    let intervals = found.first().map(|first| first.labels.clone()).unwrap_or_default();
    if intervals.len() > INTERVALS_MAX {
        let detail = format!(
            "The page shows at most {INTERVALS_MAX} intervals. Choose a longer interval or a \
             shorter range."
        );
        return Err(UiError::field("interval", "max_length", &detail));
    }
    let is_sum = form.math().is_some_and(|math| math.is_sum);
    let whole = match is_sum {
        true => Vec::new(),
        false => ask(services, project, &form.query_of_range()).await?.0,
    };
    let numbers = |one: &TrendsResult, is_drawn: bool| NumbersView {
        data: match is_drawn {
            true => one.data.iter().map(|amount| amount.value()).collect(),
            false => Vec::new(),
        },
        whole: match is_sum {
            true => Some(one.count.value()),
            false => {
                let same = whole.iter().find(|other| is_same(one, other));
                same.and_then(|other| other.aggregated_value).map(|amount| amount.value())
            }
        },
    };
    let is_before = |one: &&TrendsResult| one.compare_label == Some(CompareLabel::Previous);
    let series = found.iter().filter(|one| !is_before(one)).enumerate().map(|(at, one)| {
        let is_drawn = at < form.drawn();
        let before = found
            .iter()
            .find(|other| is_before(other) && other.breakdown_value == one.breakdown_value);
        SeriesView {
            label: label(one),
            numbers: numbers(one, is_drawn),
            before: before.map(|before| numbers(before, is_drawn)),
        }
    });
    Ok(TrendsView {
        series: series.collect(),
        intervals,
        has_others: answered.has_more == Some(true),
        computed_at: answered.computed_at,
    })
}

/// What is known of an answer beside its results.
#[cfg(feature = "ssr")]
struct AnsweredFacts {
    has_more: Option<bool>,
    computed_at: String,
}

#[cfg(feature = "ssr")]
async fn ask(
    services: &Services,
    project: &ProjectCtx,
    query: &serde_json::Value,
) -> Result<(Vec<weir_questions::results::TrendsResult>, AnsweredFacts), UiError> {
    use weir_service::Error;
    use weir_service::questions::Asking;

    let query = weir_questions::Query::read(query).map_err(|fault| ui_error(fault.into()))?;
    let found = services.questions.ask(project, query, Asking::default()).await;
    let answer = found.map_err(ui_error)?.answer;
    let results = serde_json::from_str(answer.results.get());
    let results = results.map_err(|error| ui_error(Error::Internal(error.to_string())))?;
    let computed_at = answer.last_refresh.to_string();
    Ok((results, AnsweredFacts { has_more: answer.has_more, computed_at }))
}

/// Whether two results are about the same events.
#[cfg(feature = "ssr")]
fn is_same(
    one: &weir_questions::results::TrendsResult,
    other: &weir_questions::results::TrendsResult,
) -> bool {
    one.compare_label == other.compare_label && one.breakdown_value == other.breakdown_value
}

/// The label of a result for readers.
#[cfg(feature = "ssr")]
fn label(result: &weir_questions::results::TrendsResult) -> String {
    use weir_questions::results::{BREAKDOWN_NULL, BREAKDOWN_OTHER};

    match result.label.as_str() {
        BREAKDOWN_OTHER => "All other values".to_owned(),
        BREAKDOWN_NULL => "Without a value".to_owned(),
        "" => "Empty text".to_owned(),
        label => label.to_owned(),
    }
}
