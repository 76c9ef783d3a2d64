//! `…/activity_log/` of an organization and of a project (API-45): audit entries, which
//! are only read. `…/activity/` of a project lists the entries about the project itself,
//! in numbered pages.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use weir_model::activity::{Activity, ActivityQuery, Subject};
use weir_model::errors::FieldError;
use weir_model::pagination::{Envelope, MAX_LIMIT, Page};
use weir_model::validate;
use weir_service::ProjectCtx;

use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InOrganization, InOrganizationProject, InProject};
use crate::http::guards::ActivityLogRead;
use crate::http::pagination::{Filters, Listing, Params};

filters! {
    /// Filters for audit entries. A search covers the newest ten thousand.
    ActivityFilters {
        "scope": OneOf(Subject::WORDS), "Only about this kind of thing.";
        "item_id": Text, "Only about the object with this id.";
        "user": Uuid, "Only by this user.";
    }
}

/// The activity log of an organization, newest first.
pub async fn list_organization_activity(
    auth: Authorized<ActivityLogRead, InOrganization>,
    State(app): State<App>,
    listing: Listing<ActivityFilters>,
) -> ApiResult<Json<Envelope<Activity>>> {
    let query = query(&listing)?;
    let paged = app.services.activity.of_organization(&auth.ctx, &query, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// The activity log of a project, newest first.
pub async fn list_project_activity(
    auth: Authorized<ActivityLogRead, InProject>,
    State(app): State<App>,
    listing: Listing<ActivityFilters>,
) -> ApiResult<Json<Envelope<Activity>>> {
    let query = query(&listing)?;
    let paged = app.services.activity.of_project(&auth.ctx, &query, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

filters! {
    /// Selects a page by its number.
    PageFilters {
        "limit": Number, "Entries per page, 1 to 1,000; 10 without it. Invalid values are ignored.";
        "offset": Number, "Entries to pass over, in place of `page`.";
        "page": Number, "The page, from 1. Invalid values are ignored.";
    }
}

/// A page of the changes of a project.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActivityPage {
    /// The entries, newest first.
    pub results: Vec<Activity>,
    /// Link to the next page; null on the last one.
    #[schema(format = "uri")]
    pub next: Option<String>,
    /// Link to the previous page; null on the first.
    #[schema(format = "uri")]
    pub previous: Option<String>,
    /// Total number of entries.
    pub total_count: u64,
}

/// Changes of the project itself, newest first. A search covers the newest ten thousand
/// entries of its activity log.
pub async fn list_project_changes(
    auth: Authorized<ActivityLogRead, InProject>,
    State(app): State<App>,
    params: Params<PageFilters>,
) -> ApiResult<Json<ActivityPage>> {
    changes(&app, &auth.ctx, &params).await
}

/// Changes of the project itself, by the path below the organization.
pub async fn list_organization_project_changes(
    auth: Authorized<ActivityLogRead, InOrganizationProject>,
    State(app): State<App>,
    params: Params<PageFilters>,
) -> ApiResult<Json<ActivityPage>> {
    changes(&app, &auth.ctx, &params).await
}

async fn changes(
    app: &App,
    project: &ProjectCtx,
    params: &Params<PageFilters>,
) -> ApiResult<Json<ActivityPage>> {
    let query = ActivityQuery {
        scope: Some(Subject::Project.text().to_owned()),
        ..ActivityQuery::default()
    };
    let numbered = Numbered::of(params);
    let found = app.services.activity.of_project(project, &query, numbered.page).await?;
    let (next, previous) = numbered.links(params, found.count);
    Ok(Json(ActivityPage { results: found.results, next, previous, total_count: found.count }))
}

/// Entries of a page with a number.
const PER_PAGE: u64 = 10;

/// A page selected by its number, or by the number of entries before it.
pub(super) struct Numbered {
    /// The entries.
    pub(super) page: Page,
    number: u64,
    by_offset: bool,
}

impl Numbered {
    /// The page that `limit` and `page` select, or `limit` and `offset`.
    pub(super) fn of<F: Filters>(params: &Params<F>) -> Self {
        let read = |name: &str| {
            let given = params.param(name).and_then(|text| text.trim().parse::<u64>().ok());
            given.filter(|number| *number > 0)
        };
        let limit = read("limit").unwrap_or(PER_PAGE).min(MAX_LIMIT);
        let number = read("page").unwrap_or(1);
        let given = params.param("offset").and_then(|text| text.trim().parse::<u64>().ok());
        let offset = given.unwrap_or((number - 1).saturating_mul(limit)).min(1_000_000_000);
        Self { page: Page { limit, offset }, number, by_offset: given.is_some() }
    }

    /// Links to the next and the previous page, for this total of entries.
    pub(super) fn links<F: Filters>(
        &self,
        params: &Params<F>,
        count: u64,
    ) -> (Option<String>, Option<String>) {
        let Page { limit, offset } = self.page;
        let to = |at: u64, page: u64| match self.by_offset {
            true => params.link(&[("offset", Some(at.to_string()))]),
            false => params.link(&[("page", Some(page.to_string()))]),
        };
        let is_last = offset.saturating_add(limit) >= count;
        let next = (!is_last).then(|| to(offset + limit, self.number + 1));
        let previous =
            (offset > 0).then(|| to(offset.saturating_sub(limit), self.number.max(2) - 1));
        (next, previous)
    }
}

fn query(listing: &Listing<ActivityFilters>) -> Result<ActivityQuery, FieldError> {
    let scope = match listing.param("scope") {
        Some(word) if !Subject::WORDS.contains(&word) => {
            return Err(validate::invalid_choice("scope", &word));
        }
        known => known.map(str::to_owned),
    };
    let wrong = |_| FieldError::new("user", "invalid_input", "Must be a valid UUID.");
    Ok(ActivityQuery {
        scope,
        item_id: listing.param("item_id").map(str::to_owned),
        user: listing.param("user").map(str::parse).transpose().map_err(wrong)?,
        ..ActivityQuery::default()
    })
}
