//! `/api/projects/{id}/groups/` and `…/groups_types/`: companies, teams and the
//! like (API-47).

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_model::groups::{Group, GroupCursor, GroupQuery};
use weir_model::ids::PersonId;
use weir_service::ProjectCtx;
use weir_service::groups::{GroupMember, Groups};
use weir_service::scan::ScanStep;
use weir_store::groups::TYPES;

use super::persons::CountsAnswer;
use super::scanned_list::{BatchRequest, ScanPage, ScannedList};
use super::stored_object;
use super::streamed::Streamed;
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject};
use crate::http::guards::{GroupsRead, PersonsRead};
use crate::http::pagination::Listing;

filters! {
    /// Filters for groups.
    GroupFilters {
        "after": Text, "Where the page before ended; from `next`.";
        "group_type": Text, "Only groups of this type.";
        "search": Text, "Only groups with this in the key or the name.";
    }
}

filters! {
    /// The group whose members are listed.
    MemberFilters, pages of 50 {
        "group_type_index": RequiredOneOf(&["0", "1", "2", "3", "4"]), "Index of the group type.";
        "group_key": RequiredText, "Key of the group within its type.";
    }
}

/// One page of the members of a group.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct GroupMemberList {
    /// The number of members; null while events from before an update are counted.
    pub count: Option<u64>,
    /// Whether that is all of them. Of a group with more than 100,000 distinct ids only
    /// some are counted.
    pub is_count_exact: bool,
    /// Link to the next page; null on the last one.
    pub next: Option<String>,
    /// Always `null`: pages lead forward only.
    pub previous: Option<String>,
    /// The members of this page, those with most events first.
    pub results: Vec<MemberAnswer>,
}

/// A member of a group, with the counts of its events within the group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupMember)]
pub struct MemberAnswer {
    /// Id of the person.
    pub id: PersonId,
    /// Display name of the person.
    pub name: String,
    /// The counts.
    #[serde(flatten)]
    pub counts: CountsAnswer,
}

/// One page of groups.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupList {
    /// Link to the next page; null on the last one.
    pub next: Option<String>,
    /// Always `null`: pages lead forward only.
    pub previous: Option<String>,
    /// The groups of this page.
    pub results: Vec<GroupAnswer>,
}

/// A group as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Group)]
pub struct GroupAnswer {
    /// Name of the group type.
    pub group_type: String,
    /// Index of the group type, 0 to 4.
    pub group_type_index: u8,
    /// Key of the group within its type.
    pub group_key: String,
    /// Properties. Numbers are returned as they were sent.
    #[schema(value_type = Object)]
    pub group_properties: Box<RawValue>,
    /// When the group was first seen.
    pub created_at: Timestamp,
}

/// A group type of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupType)]
pub struct GroupTypeAnswer {
    /// Name of the group type.
    pub group_type: String,
    /// Index of the group type, 0 to 4.
    pub group_type_index: u8,
}

/// The group types of a project, ordered by index.
pub async fn list_group_types(
    auth: Authorized<GroupsRead, InProject>,
    State(app): State<App>,
) -> ApiResult<Json<Vec<GroupTypeAnswer>>> {
    let types = app.services.groups.types(&auth.ctx).await?;
    let shown = |(group_type_index, group_type)| GroupTypeAnswer { group_type, group_type_index };
    Ok(Json((0_u8..).zip(types).map(shown).collect()))
}

/// The members of a group: the persons with events of it, those with most events first.
pub async fn list_group_members(
    auth: Authorized<PersonsRead, InProject>,
    State(app): State<App>,
    listing: Listing<MemberFilters>,
) -> ApiResult<Json<GroupMemberList>> {
    let required = |name: &str| {
        let value = listing.param(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| FieldError::new(name, "required", "This field is required."))
    };
    let index: Option<u8> = required("group_type_index")?.parse().ok();
    let index = index.filter(|index| usize::from(*index) < TYPES).ok_or_else(|| {
        FieldError::new("group_type_index", "invalid_input", "Must be a number from 0 to 4.")
    })?;
    let (key, page) = (required("group_key")?, listing.page());
    let Some(found) = app.services.groups.members(&auth.ctx, index, key, page).await? else {
        return Ok(Json(GroupMemberList::default()));
    };
    let end = page.offset.saturating_add(page.limit);
    let next =
        (end < found.count as u64).then(|| listing.link(&[("offset", Some(end.to_string()))]));
    let results = found.members.into_iter().map(|GroupMember { id, name, counts }| MemberAnswer {
        id,
        name,
        counts: CountsAnswer::from(counts),
    });
    Ok(Json(GroupMemberList {
        count: Some(found.count as u64),
        is_count_exact: found.is_complete,
        next,
        previous: None,
        results: results.collect(),
    }))
}

/// The groups of a project.
pub async fn list_groups(
    auth: Authorized<GroupsRead, InProject>,
    State(app): State<App>,
    listing: Listing<GroupFilters>,
) -> ApiResult<Streamed<GroupList>> {
    let query = query(&listing)?;
    let (groups, after) = (app.services.groups.clone(), query.after);
    let user = auth.ctx.org.ctx.user();
    let list = GroupScan { groups, project: auth.ctx, query };
    let page = ScanPage::begin(list, listing, after, app.limits.scan_time);
    Streamed::of(&app, user, page).await
}

/// Reads the groups of a list step by step.
struct GroupScan {
    groups: Groups,
    project: ProjectCtx,
    /// Filter of the list.
    query: GroupQuery,
}

impl ScannedList for GroupScan {
    type Item = GroupAnswer;
    type At = GroupCursor;
    type Filters = GroupFilters;

    async fn step(
        &self,
        request: BatchRequest<GroupCursor>,
        within: Duration,
    ) -> ApiResult<ScanStep<GroupAnswer, GroupCursor>> {
        let BatchRequest { after, offset, limit } = request;
        let query = GroupQuery { after, offset, limit, ..self.query.clone() };
        let ScanStep { found, next } = self.groups.list(&self.project, &query, within).await?;
        let found: ApiResult<_> = found.into_iter().map(answer).collect();
        Ok(ScanStep { found: found?, next })
    }
}

fn query(listing: &Listing<GroupFilters>) -> Result<GroupQuery, FieldError> {
    let text = |name: &str| listing.param(name).filter(|value| !value.is_empty());
    let page = listing.page();
    let after = text("after").map(|after| {
        after
            .parse()
            .map_err(|_| FieldError::new("after", "invalid_input", "Use the link of a page."))
    });
    Ok(GroupQuery {
        limit: page.limit,
        offset: page.offset,
        after: after.transpose()?,
        group_type: text("group_type").map(str::to_owned),
        search: text("search").map(str::to_owned),
    })
}

fn answer((group_type, group): (String, Group)) -> ApiResult<GroupAnswer> {
    Ok(GroupAnswer {
        group_type,
        group_type_index: group.index,
        group_key: group.key,
        group_properties: stored_object(group.properties)?,
        created_at: group.created_at,
    })
}
