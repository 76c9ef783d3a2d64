//! The lists of pages as CSV files. The address of a file is `/_csv` and the address of its
//! page, with the filter of the page. If a page has several lists, the name of the list is
//! behind its address.
//!
//! What belongs here: which list a page has, with its columns, and who may download it:
//! everyone who may open the page. What does not: how a file is written (`csv`), and the
//! filters (`weir_app::filters`).

mod account;
mod activity;
mod exports;
mod number;
mod organization;
mod people;
mod project;

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::uri::PathAndQuery;
use percent_encoding::percent_decode_str;
use weir_app::local_path;
use weir_model::ProjectId;
use weir_service::{Ctx, Error as ServiceError, OrgCtx, ProjectCtx, Services};

use super::csv::CsvList;
use super::{Web, visit};
use crate::dispatcher::RoutePattern;
use crate::http::error::{ApiError, ApiResult};
use crate::limits::Exhausted;

/// The prefix of the addresses of files.
const ROOT: &str = "/_csv/";

/// Answers with the list of the page at the rest of the path.
pub(super) async fn download(State(web): State<Web>, request: Request) -> Response {
    let mut response = match open(&web, request).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    };
    response.extensions_mut().insert(RoutePattern("/_csv/{page}"));
    response
}

async fn open(web: &Web, request: Request) -> ApiResult<Response> {
    let (parts, _body) = request.into_parts();
    let visit = visit::of(web, &parts).await?;
    let Some(ctx) = visit.ctx else {
        let asked = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let sign_in = format!("/login?next={}", local_path::encode(asked));
        return Ok(Redirect::to(&sign_in).into_response());
    };
    let permit = web.streams.enter(ctx.user()).map_err(|Exhausted| ApiError::Busy)?;
    let asked = Asked {
        services: web.app.services.clone(),
        ctx,
        query: parts.uri.query().unwrap_or_default(),
    };
    let list = list_of(&asked, parts.uri.path()).await?;
    list.answer(permit, web.app.limits.sending).await
}

/// The list of the page at a path below [`ROOT`].
async fn list_of(asked: &Asked<'_>, path: &str) -> ApiResult<CsvList> {
    let path = path.strip_prefix(ROOT).unwrap_or_default();
    let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let parts: Vec<String> = path.split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let list = match *parts {
        ["account", "keys"] => account::keys(asked).await?,
        ["account", "messages"] => account::messages(asked).await?,
        ["account", "security", "sessions"] => account::sessions(asked).await?,
        ["instance", "organizations"] => account::all_organizations(asked),
        ["organizations"] => account::organizations(asked),
        ["organizations", id, ref rest @ ..] => {
            let organization = asked.organization(id).await?;
            match *rest {
                [] => organization::projects(organization),
                ["members"] => organization::members(asked, organization),
                ["invites"] => organization::invites(organization),
                ["domains"] => organization::domains(organization),
                ["activity"] => activity::entries(asked, organization),
                ["plugins", shelf] => organization::plugins(organization, shelf).await?,
                ["exports"] => exports::exports(asked, organization),
                ["exports", export] => exports::runs(asked, organization, export),
                ["exports", export, "logs"] => exports::logs(asked, organization, export),
                ["exports", export, "backfill"] => exports::backfills(organization, export),
                _ => return Err(ApiError::UnknownPath),
            }
        }
        ["projects", id, ref rest @ ..] => {
            let project = asked.project(id).await?;
            match *rest {
                ["events"] => project::events(asked, project).await?,
                ["insights"] => project::insights(asked, project),
                ["insights", "persons"] => number::persons(asked, project),
                ["dashboards"] => project::dashboards(asked, project),
                ["definitions"] => project::definitions(asked, project).await?,
                ["definitions", event] => project::event_properties(project, event).await?,
                ["health", "events"] => project::affected(asked, project),
                ["health", "unknown-keys"] => project::unknown_keys(project).await?,
                ["persons"] => project::persons(asked, project),
                ["persons", person, "events"] => {
                    people::person_events(asked, project, person).await?
                }
                ["groups"] => project::groups(asked, project, None),
                ["groups", group_type] => project::groups(asked, project, Some(group_type)),
                ["groups", group_type, key, "persons"] => {
                    people::group_members(project, group_type, key).await?
                }
                ["groups", group_type, key, "events"] => {
                    people::group_events(project, group_type, key).await?
                }
                ["plugins", config, "log"] => project::config_log(project, config),
                ["migrations"] => project::imports(project).await?,
                ["transformations"] => project::transformations(project).await?,
                ["settings", "keys"] => project::keys(project).await?,
                _ => return Err(ApiError::UnknownPath),
            }
        }
        _ => return Err(ApiError::UnknownPath),
    };
    Ok(list)
}

/// A request for a file.
struct Asked<'a> {
    services: Services,
    ctx: Ctx,
    query: &'a str,
}

impl Asked<'_> {
    /// The value of a filter. Empty if it is missing.
    fn value(&self, name: &str) -> String {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
    }

    /// All filters with their values. Of several with the same name, the last one counts.
    fn values(&self) -> BTreeMap<String, String> {
        form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    async fn organization(&self, id: &str) -> Result<Organization, ServiceError> {
        let services = self.services.clone();
        let org = services.organizations.enter(&self.ctx, id).await?;
        let found = services.organizations.get(&org).await?;
        let projects = found.teams.into_iter().map(|team| (team.id, team.name)).collect();
        Ok(Organization { services, org, name: found.row.name, projects })
    }

    async fn project(&self, id: &str) -> Result<Project, ServiceError> {
        let services = self.services.clone();
        let project = services.projects.enter(&self.ctx, id).await?;
        let name = services.projects.get(&project).await?.brief.name;
        Ok(Project { services, project, name })
    }
}

/// The organization of a list.
#[derive(Clone)]
struct Organization {
    services: Services,
    org: OrgCtx,
    name: String,
    /// Id and name of each project.
    projects: Vec<(ProjectId, String)>,
}

/// The project of a list.
#[derive(Clone)]
struct Project {
    services: Services,
    project: ProjectCtx,
    name: String,
}
