//! `/api/projects/{id}/groups/` and `…/groups_types/`: companies, teams and the
//! like (DECISIONS "Reading data back").

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_model::groups::{Group, GroupQuery};
use weir_service::ProjectCtx;
use weir_service::groups::Groups;

use super::stored_object;
use super::streamed::{Links, Pieces, Streamed};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject};
use crate::http::guards::GroupsRead;
use crate::http::pagination::Listing;

/// Groups that are read at a time.
const PIECE: u64 = 250;

filters! {
    /// Which groups are wanted.
    GroupFilters {
        "after": Text, "Where the page before ended; from `next`.";
        "group_type": Text, "Only groups of this type.";
        "search": Text, "Only groups with this in the key or the name.";
    }
}

/// One page of groups.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupList {
    /// Link to the next page.
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
    /// Name of its type.
    pub group_type: String,
    /// Index of its type, 0 to 4.
    pub group_type_index: u8,
    /// Its key within the type.
    pub group_key: String,
    /// Properties, numbers as they were sent.
    #[schema(value_type = Object)]
    pub group_properties: Box<RawValue>,
    /// When it was first seen.
    pub created_at: Timestamp,
}

/// A group type.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupType)]
pub struct GroupTypeAnswer {
    /// Its name.
    pub group_type: String,
    /// Its index, 0 to 4.
    pub group_type_index: u8,
}

/// The group types of a project, in order of their indexes.
pub async fn list_group_types(
    auth: Authorized<GroupsRead, InProject>,
    State(app): State<App>,
) -> ApiResult<Json<Vec<GroupTypeAnswer>>> {
    let types = app.services.groups.types(&auth.ctx).await?;
    let shown = |(group_type_index, group_type)| GroupTypeAnswer { group_type, group_type_index };
    Ok(Json((0_u8..).zip(types).map(shown).collect()))
}

/// Groups of a project.
pub async fn list_groups(
    auth: Authorized<GroupsRead, InProject>,
    State(app): State<App>,
    listing: Listing<GroupFilters>,
) -> ApiResult<Streamed<GroupList>> {
    let query = query(&listing)?;
    let groups = app.services.groups.clone();
    let pieces = GroupPieces {
        groups,
        project: auth.ctx,
        listing,
        left: query.limit,
        query,
        is_done: false,
    };
    Streamed::of(&app, pieces).await
}

/// The groups of a page that are not read yet.
struct GroupPieces {
    groups: Groups,
    project: ProjectCtx,
    listing: Listing<GroupFilters>,
    /// For those that come next.
    query: GroupQuery,
    /// How many the page may still have.
    left: u64,
    /// Whether there are no more groups at all.
    is_done: bool,
}

impl Pieces for GroupPieces {
    type Item = GroupAnswer;
    type Links = Links;

    async fn next(&mut self) -> ApiResult<Vec<GroupAnswer>> {
        // What looks at many groups finds few in some steps.
        while self.left > 0 && !self.is_done {
            let query = GroupQuery { limit: self.left.min(PIECE), ..self.query.clone() };
            let page = self.groups.list(&self.project, &query).await?;
            self.left = self.left.saturating_sub(page.groups.len() as u64);
            match page.next {
                Some((next, rest)) => {
                    (self.query.after, self.query.offset) = (Some(next), rest);
                }
                None => self.is_done = true,
            }
            if !page.groups.is_empty() {
                return page.groups.into_iter().map(answer).collect();
            }
        }
        Ok(Vec::new())
    }

    fn links(&self) -> Links {
        let next = self.query.after.filter(|_| !self.is_done);
        Links::to(next.map(|(index, place)| {
            self.listing.link(&[
                ("limit", Some(self.listing.page().limit.to_string())),
                ("offset", None),
                ("after", Some(format!("{index}:{place}"))),
            ])
        }))
    }
}

fn query(listing: &Listing<GroupFilters>) -> Result<GroupQuery, FieldError> {
    let text = |name: &str| listing.param(name).filter(|value| !value.is_empty());
    let page = listing.page();
    let after = text("after").map(|after| {
        place(after)
            .ok_or_else(|| FieldError::new("after", "invalid_input", "Use the link of a page."))
    });
    Ok(GroupQuery {
        limit: page.limit,
        offset: page.offset,
        after: after.transpose()?,
        group_type: text("group_type").map(str::to_owned),
        search: text("search").map(str::to_owned),
    })
}

fn place(text: &str) -> Option<(u8, Uuid)> {
    let (index, place) = text.split_once(':')?;
    Some((index.parse().ok()?, place.parse().ok()?))
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
