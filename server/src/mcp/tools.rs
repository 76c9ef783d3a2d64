//! The tools: what each needs and answers. All of them read, and call the service that the
//! operation of the management API calls (QRY-35).
//!
//! What belongs here: names, descriptions, scopes, and the shapes of answers. What does not:
//! the JSON Schema of arguments (`schemas`), and reading those that several tools have
//! (`arguments`).

use serde::Serialize;
use serde_json::{Map, Value, json};
use weir_mcp::Tool;
use weir_model::dashboards::{DashboardBrief, DashboardQuery};
use weir_model::definitions::PropertyOwner;
use weir_model::insights::{Insight, InsightQuery};
use weir_model::pagination::Paged;
use weir_model::projects::ProjectBrief;
use weir_model::scopes::{Scope, ScopeObject};
use weir_model::{DashboardId, InsightId, ProjectId, Timestamp};
use weir_service::{Ctx, ProjectCtx};

use super::arguments::{check_names, page, project, search};
use super::schemas;
use crate::api::definitions::{EventDefinitionAnswer, PropertyDefinitionAnswer};
use crate::api::query::{self, QueryAnswer, QueryInput};
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::input::{Fields, Input as _, missing};

/// Most characters of the id of an insight or a dashboard.
const ID_MAX: usize = 32;

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolKind {
    ListProjects,
    ListEvents,
    ListProperties,
    Query,
    QuerySql,
    ListInsights,
    GetInsight,
    ListDashboards,
    GetDashboard,
}

impl ToolKind {
    const ALL: [Self; 9] = [
        Self::ListProjects,
        Self::ListEvents,
        Self::ListProperties,
        Self::Query,
        Self::QuerySql,
        Self::ListInsights,
        Self::GetInsight,
        Self::ListDashboards,
        Self::GetDashboard,
    ];

    /// The tool of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::ListProjects => "list_projects",
            Self::ListEvents => "list_events",
            Self::ListProperties => "list_properties",
            Self::Query => "query",
            Self::QuerySql => "query_sql",
            Self::ListInsights => "list_insights",
            Self::GetInsight => "get_insight",
            Self::ListDashboards => "list_dashboards",
            Self::GetDashboard => "get_dashboard",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::ListProjects => "List projects",
            Self::ListEvents => "List event names",
            Self::ListProperties => "List property names",
            Self::Query => "Ask a question",
            Self::QuerySql => "Ask in SQL",
            Self::ListInsights => "List saved insights",
            Self::GetInsight => "Answer a saved insight",
            Self::ListDashboards => "List dashboards",
            Self::GetDashboard => "Get a dashboard",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::ListProjects => {
                "The projects that this key may read, with their time zones. Use an id as \
                 project_id of the other tools."
            }
            Self::ListEvents => {
                "The event names of a project, in alphabetical order, with when each was seen \
                 first and last."
            }
            Self::ListProperties => {
                "The property names of events, persons and groups of a project, in alphabetical \
                 order, with their types."
            }
            Self::Query => {
                "Answers a question about the events of a project: trends (numbers over time), a \
                 funnel (how many do one step after another), retention (how many come back), \
                 paths (what they do after what), stickiness (on how many days they are active), \
                 a lifecycle (how many are new, return or stay away), or a list of events. The \
                 same question has the same answer in the app and in the API."
            }
            Self::QuerySql => {
                "Answers one SELECT from events, persons, groups or sessions, in a subset of \
                 HogQL. Properties are columns such as properties.plan and person.properties.plan. \
                 There are 100 rows without LIMIT. Joins, WITH, UNION and window functions are \
                 refused. Prefer query for trends, funnels and retention."
            }
            Self::ListInsights => {
                "The insights of a project: questions that its members have saved."
            }
            Self::GetInsight => {
                "One saved insight with its answer of now, which is that of its page in the app."
            }
            Self::ListDashboards => "The dashboards of a project, without their insights.",
            Self::GetDashboard => {
                "One dashboard with its insights, without their answers. Call get_insight for \
                 those. The filters of the dashboard are not part of those answers."
            }
        }
    }

    /// The scopes that a key needs, all of them.
    const fn scopes(self) -> &'static [Scope] {
        const PROJECTS: &[Scope] = &[Scope::read(ScopeObject::Project)];
        const EVENTS: &[Scope] = &[Scope::read(ScopeObject::EventDefinition)];
        const PROPERTIES: &[Scope] = &[Scope::read(ScopeObject::PropertyDefinition)];
        const QUESTIONS: &[Scope] = &[Scope::read(ScopeObject::Query)];
        const INSIGHTS: &[Scope] = &[Scope::read(ScopeObject::Insight)];
        const ANSWERED: &[Scope] =
            &[Scope::read(ScopeObject::Insight), Scope::read(ScopeObject::Query)];
        const DASHBOARDS: &[Scope] = &[Scope::read(ScopeObject::Dashboard)];
        match self {
            Self::ListProjects => PROJECTS,
            Self::ListEvents => EVENTS,
            Self::ListProperties => PROPERTIES,
            Self::Query | Self::QuerySql => QUESTIONS,
            Self::ListInsights => INSIGHTS,
            Self::GetInsight => ANSWERED,
            Self::ListDashboards | Self::GetDashboard => DASHBOARDS,
        }
    }

    /// The names of all arguments.
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::ListProjects => &["limit", "offset"],
            Self::ListEvents | Self::ListInsights | Self::ListDashboards => {
                &["project_id", "search", "limit", "offset"]
            }
            Self::ListProperties => &["project_id", "search", "type", "limit", "offset"],
            Self::Query => &["project_id", "query", "refresh"],
            Self::QuerySql => &["project_id", "query", "values"],
            Self::GetInsight => &["project_id", "insight"],
            Self::GetDashboard => &["project_id", "dashboard"],
        }
    }

    /// The names of the arguments that must be there.
    const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Query | Self::QuerySql => &["query"],
            Self::GetInsight => &["insight"],
            Self::GetDashboard => &["dashboard"],
            _ => &[],
        }
    }

    fn schema(self) -> Value {
        let one = |name: &&str| ((*name).to_owned(), self.argument(name));
        let properties: Map<String, Value> = self.arguments().iter().map(one).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": self.required(),
            "additionalProperties": false,
        })
    }

    /// The JSON Schema of an argument.
    fn argument(self, name: &str) -> Value {
        match (self, name) {
            (Self::Query, "query") => schemas::question(),
            (Self::QuerySql, "query") => schemas::sql(),
            (_, name) => schemas::shared(name),
        }
    }
}

/// All tools, as models see them.
pub(super) fn all() -> Vec<Tool> {
    let shown = |tool: ToolKind| {
        Tool::reading(tool.name(), tool.title(), tool.description(), tool.schema())
    };
    ToolKind::ALL.into_iter().map(shown).collect()
}

/// A page of a list.
#[derive(Serialize)]
struct Listed<T> {
    /// Total number of results.
    count: u64,
    results: Vec<T>,
}

/// A project, without its key: a model that reads need not be able to send events.
#[derive(Serialize)]
struct ProjectLine {
    id: ProjectId,
    name: String,
    timezone: String,
    has_events: bool,
}

/// An insight, without the users who created and changed it.
#[derive(Serialize)]
struct InsightLine {
    id: InsightId,
    short_id: String,
    name: Option<String>,
    description: Option<String>,
    query: Value,
    dashboards: Vec<DashboardId>,
    tags: Vec<String>,
    last_modified_at: Timestamp,
}

#[derive(Serialize)]
struct AnsweredInsight {
    insight: InsightLine,
    answer: QueryAnswer,
}

/// A dashboard, without the user who created it.
#[derive(Serialize)]
struct DashboardLine {
    id: DashboardId,
    name: String,
    description: String,
    pinned: bool,
    tags: Vec<String>,
    filters: Value,
}

#[derive(Serialize)]
struct DashboardWithInsights {
    dashboard: DashboardLine,
    insights: Vec<InsightLine>,
}

impl From<ProjectBrief> for ProjectLine {
    fn from(project: ProjectBrief) -> Self {
        Self {
            id: project.id,
            name: project.name,
            timezone: project.timezone,
            has_events: project.ingested_event,
        }
    }
}

impl From<Insight> for InsightLine {
    fn from(insight: Insight) -> Self {
        Self {
            id: insight.id,
            short_id: insight.short_id,
            name: insight.name.or(insight.derived_name),
            description: insight.description,
            query: insight.query,
            dashboards: insight.dashboards,
            tags: insight.tags,
            last_modified_at: insight.last_modified_at,
        }
    }
}

impl From<DashboardBrief> for DashboardLine {
    fn from(dashboard: DashboardBrief) -> Self {
        Self {
            id: dashboard.id,
            name: dashboard.name,
            description: dashboard.description,
            pinned: dashboard.pinned,
            tags: dashboard.tags,
            filters: dashboard.filters,
        }
    }
}

/// Calls a tool. Its answer is JSON text.
pub(super) async fn call(
    app: &App,
    ctx: &Ctx,
    tool: ToolKind,
    fields: &Fields,
) -> ApiResult<String> {
    for scope in tool.scopes() {
        ctx.require(*scope)?;
    }
    check_names(fields, tool.arguments())?;
    if tool == ToolKind::ListProjects {
        let found = app.services.projects.list_within_limits(ctx, page(fields)?).await?;
        return listed::<_, ProjectLine>(found);
    }
    let project = &project(app, ctx, fields).await?;
    call_in_project(app, project, tool, fields).await
}

async fn call_in_project(
    app: &App,
    project: &ProjectCtx,
    tool: ToolKind,
    fields: &Fields,
) -> ApiResult<String> {
    let services = &app.services;
    match tool {
        // It is called above.
        ToolKind::ListProjects => Err(ApiError::internal("the tool is of no project")),
        ToolKind::ListEvents => {
            let (search, page) = (search(fields)?, page(fields)?);
            let search = search.unwrap_or_default();
            let found = services.definitions.events(project, &search, page).await?;
            listed::<_, EventDefinitionAnswer>(found)
        }
        ToolKind::ListProperties => {
            let (owner, search, page) = (owner(fields)?, search(fields)?, page(fields)?);
            let search = search.unwrap_or_default();
            let found = services.definitions.properties(project, owner, &search, page).await?;
            listed::<_, PropertyDefinitionAnswer>(found)
        }
        ToolKind::Query => text(&query::ask(app, project, QueryInput::read(fields)?).await?),
        ToolKind::QuerySql => {
            let argument = |name: &str| fields.value(name, false, || tool.argument(name)).cloned();
            let query = argument("query").ok_or_else(|| missing("query"))?;
            let values = argument("values");
            let question = json!({"kind": "HogQLQuery", "query": query, "values": values});
            text(&ask(app, project, question).await?)
        }
        ToolKind::ListInsights => {
            let query = InsightQuery { search: search(fields)?, ..InsightQuery::default() };
            let found = services.insights.list(project, &query, page(fields)?).await?;
            listed::<_, InsightLine>(found)
        }
        ToolKind::GetInsight => {
            let id = fields.required_text("insight", ID_MAX)?;
            let insight = services.insights.get(project, &id).await?;
            let answer = ask(app, project, insight.query.clone()).await?;
            text(&AnsweredInsight { insight: insight.into(), answer })
        }
        ToolKind::ListDashboards => {
            let query = DashboardQuery { search: search(fields)?, pinned: None };
            let found = services.dashboards.list(project, &query, page(fields)?).await?;
            listed::<_, DashboardLine>(found)
        }
        ToolKind::GetDashboard => {
            let id = fields.required_text("dashboard", ID_MAX)?;
            let found = services.dashboards.get(project, &id).await?;
            let insights = found.tiles.into_iter().map(|tile| tile.insight.into()).collect();
            text(&DashboardWithInsights { dashboard: found.brief.into(), insights })
        }
    }
}

/// The answer to a question, as if it were the body of a request to the API.
async fn ask(app: &App, project: &ProjectCtx, question: Value) -> ApiResult<QueryAnswer> {
    let body = Fields::of_object(Map::from_iter([("query".to_owned(), question)]));
    query::ask(app, project, QueryInput::read(&body)?).await
}

/// The objects whose properties are listed. `None`: all of them.
fn owner(fields: &Fields) -> ApiResult<Option<PropertyOwner>> {
    let Some(word) = fields.word("type", &schemas::OWNERS)?.over(None) else { return Ok(None) };
    let owner = word.parse::<PropertyOwner>();
    owner.map(Some).map_err(|_| ApiError::internal("a word is not an owner of properties"))
}

fn listed<T, L: From<T> + Serialize>(found: Paged<T>) -> ApiResult<String> {
    let results = found.results.into_iter().map(L::from).collect();
    text(&Listed { count: found.count, results })
}

fn text(answer: &impl Serialize) -> ApiResult<String> {
    serde_json::to_string(answer).map_err(|_| ApiError::internal("an answer is not JSON"))
}

#[cfg(test)]
mod tests {
    use weir_model::scopes::ScopeAction;

    use super::*;

    #[test]
    fn tools_read_and_have_one_name_each() {
        for tool in ToolKind::ALL {
            assert_eq!(ToolKind::named(tool.name()), Some(tool));
            assert!(!tool.scopes().is_empty(), "{tool:?}");
            for scope in tool.scopes() {
                assert!(matches!(scope, Scope::On(_, ScopeAction::Read)), "{tool:?}");
            }
        }
        assert_eq!(ToolKind::named("delete_project"), None);
    }

    #[test]
    fn every_argument_is_described() {
        for tool in ToolKind::ALL {
            let schema = tool.schema();
            for name in tool.arguments() {
                let argument = &schema["properties"][name];
                assert!(argument["type"].is_string(), "{tool:?}: {name}");
                assert!(argument["description"].is_string(), "{tool:?}: {name}");
            }
            for name in tool.required() {
                assert!(tool.arguments().contains(name), "{tool:?}: {name}");
            }
        }
    }
}
