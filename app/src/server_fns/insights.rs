//! Saved insights of a project, and answers to the questions of their forms.
//!
//! What does not belong here: what the answers have (`answers`).

pub(crate) mod answers;
pub(crate) mod persons;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_service::{ProjectCtx, Services};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, go, notice, notice_with_undo, redirect_with_notice, ui_error};
use crate::error::UiError;
use crate::questions::QuestionFields;
#[cfg(feature = "ssr")]
use crate::questions::QuestionForm;
use answers::AnswerView;

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
    /// Whether one of its alerts fires.
    pub(crate) is_firing: bool,
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
    /// The fields of the form for its question. `None`: no form can show it.
    pub(crate) form: Option<QuestionFields>,
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
    // The list is of use without them.
    let firing = services.alerts.firing(&project).await.unwrap_or_default();
    let line = |insight: Insight| InsightLine {
        is_firing: firing.iter().any(|alert| alert.insight == insight.id),
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
        form: QuestionForm::of_query(&found.query).as_ref().map(QuestionFields::from),
        query: found.query.to_string(),
        short_id: found.short_id,
    })
}

/// Lists names of events and of their properties.
#[server(prefix = "/_fn", endpoint = "list_question_names")]
pub(crate) async fn list_question_names(project: i64) -> Result<NamesView, UiError> {
    let (services, project) = enter_project(project).await?;
    question_names(&services, &project).await
}

#[cfg(feature = "ssr")]
pub(super) async fn question_names(
    services: &Services,
    project: &ProjectCtx,
) -> Result<NamesView, UiError> {
    use weir_model::definitions::{EventOrder, PropertyOwner};
    use weir_model::pagination::Page;

    let page = || Page { limit: SUGGESTIONS, offset: 0 };
    let (definitions, order) = (&services.definitions, EventOrder::named("-events"));
    let events = definitions.names(project, "", order, page()).await.map_err(ui_error)?;
    let of_events = Some(PropertyOwner::Event);
    let properties = definitions.properties(project, of_events, "", page()).await;
    let properties = properties.map_err(ui_error)?.results;
    Ok(NamesView {
        events: events.page.results.into_iter().map(|seen| seen.name).collect(),
        properties: properties.into_iter().map(|seen| seen.name).collect(),
    })
}

/// Answers a question. A fault has the name of a field of its form.
#[server(prefix = "/_fn", endpoint = "answer_question")]
pub(crate) async fn answer_question(
    project: i64,
    #[server(default)] question: QuestionFields,
) -> Result<AnswerView, UiError> {
    let (services, project) = enter_project(project).await?;
    answers::answer(&services, &project, &question.form()).await
}

/// Saves a question under a name: as a new insight, or as the question of the one with this
/// short id.
#[server(prefix = "/_fn", endpoint = "save_insight")]
pub(crate) async fn save_insight(
    project: i64,
    #[server(default)] insight: String,
    name: String,
    #[server(default)] question: QuestionFields,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::insights::{InsightInput, InsightPatch, NAME_MAX};

    let (services, ctx) = enter_project(project).await?;
    let form = question.form();
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

/// The name of an insight as pages show it.
#[cfg(feature = "ssr")]
pub(super) fn name_of(insight: &weir_model::insights::Insight) -> String {
    let name = insight.name.as_ref().or(insight.derived_name.as_ref());
    name.cloned().unwrap_or_else(|| format!("Insight {}", insight.short_id))
}

/// The kind of the question of an insight in words.
#[cfg(feature = "ssr")]
fn kind_of(insight: &weir_model::insights::Insight) -> &str {
    match insight.query["kind"].as_str().unwrap_or_default() {
        "TrendsQuery" => "Trends",
        "FunnelsQuery" => "Funnel",
        "EventsQuery" => "Events",
        "ActorsQuery" => "Persons",
        "HogQLQuery" => "SQL",
        "WebOverviewQuery" | "WebStatsTableQuery" | "WebTrendsQuery" => "Web",
        // Such as `RetentionQuery`.
        other => other.strip_suffix("Query").unwrap_or(other),
    }
}
