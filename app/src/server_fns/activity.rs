//! The activity log of an organization.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::activity::{ActivityFilter, AuditAction, Subject};

#[cfg(feature = "ssr")]
use crate::context::{enter_organization, ui_error};
use crate::error::UiError;

/// Limit of members in the actor filter.
const ACTORS: u64 = 200;

/// A page of audit entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ActivityView {
    /// Total number of entries.
    pub(crate) total: u64,
    /// Entries of the page, newest first.
    pub(crate) entries: Vec<EntryView>,
    /// Actors for the filter: id and name.
    pub(crate) actors: Vec<(String, String)>,
}

/// An audit entry as pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EntryView {
    /// Id of the entry.
    pub(crate) id: String,
    /// The actor: id, name and address. `None` if the user is deleted, or if Weir acted
    /// automatically.
    pub(crate) who: Option<(String, String, String)>,
    /// Whether Weir acted automatically.
    pub(crate) by_service: bool,
    /// Label of the personal API key that was used.
    pub(crate) key: Option<String>,
    pub(crate) action: AuditAction,
    /// The kind of the changed object.
    pub(crate) subject: Subject,
    /// Id of the object.
    pub(crate) item: String,
    /// Name of the object at that time.
    pub(crate) name: Option<String>,
    /// Changed fields: name, value before, value after. Empty means no value.
    pub(crate) changes: Vec<(String, String, String)>,
    /// Time of the change.
    pub(crate) at: String,
}

/// Lists audit entries of an organization.
#[server(prefix = "/_fn", endpoint = "list_activity")]
pub(crate) async fn list_activity(
    id: String,
    filter: ActivityFilter,
    limit: u32,
    offset: u32,
) -> Result<ActivityView, UiError> {
    use weir_model::activity::{Activity, FieldChange};
    use weir_model::members::{Member, MemberOrder, MemberQuery};
    use weir_model::pagination::Page;

    let (services, org) = enter_organization(&id).await?;
    let page = Page { limit: limit.clamp(1, 1000).into(), offset: offset.into() };
    let found = services.activity.of_organization(&org, &filter.query(), page).await;
    let found = found.map_err(ui_error)?;
    let oldest = MemberQuery { order: MemberOrder::OldestFirst, ..MemberQuery::default() };
    let first = Page { limit: ACTORS, offset: 0 };
    let members = services.members.list(&org, &oldest, first).await.map_err(ui_error)?;
    let actor = |member: Member| {
        (
            member.user.uuid.to_string(),
            format!("{} ({})", member.user.first_name, member.user.email),
        )
    };
    let change = |change: FieldChange| (change.field, value(&change.before), value(&change.after));
    let show = |entry: Activity| EntryView {
        id: entry.id.to_string(),
        who: entry.user.map(|user| (user.uuid.to_string(), user.first_name, user.email)),
        by_service: entry.is_system,
        key: entry.personal_api_key.map(|key| key.label),
        action: entry.activity,
        subject: entry.scope,
        item: entry.item_id,
        name: entry.detail.name,
        changes: entry.detail.changes.into_iter().map(change).collect(),
        at: entry.created_at.to_string(),
    };
    Ok(ActivityView {
        total: found.count,
        entries: found.results.into_iter().map(show).collect(),
        actors: members.results.into_iter().map(actor).collect(),
    })
}

/// A value as a text. Empty for no value.
fn value(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
