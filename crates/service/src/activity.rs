//! The activity log: recording changes, and reading them (API-45).
//!
//! What belongs here: creating audit entries, comparing before and after. What does
//! not: which fields of a resource are secret; each resource removes its secrets before
//! it calls this module.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use weir_model::activity::{
    Activity, ActivityQuery, ActivityUser, AuditAction, Detail, Entry, FieldChange, HASH, Subject,
    UsedKey,
};
use weir_model::pagination::{Page, Paged};
use weir_model::plugin_configs::SECRET;
use weir_model::scopes::{Scope, ScopeObject};
use weir_model::{OrganizationId, ProjectId, Timestamp, UserId};
use weir_store::activity::{self as rows, Of};
use weir_store::{ids, users};

use crate::ctx::{Actor, Ctx, OrgCtx, ProjectCtx};
use crate::scim::ScimCtx;
use crate::{Core, Result, secrets};

/// Maximum length of the JSON text of a value that is recorded as it is, in bytes. The
/// log is kept forever, and a search reads all of it.
const LONG: usize = 4 << 10;

/// The subject of an audit entry.
#[derive(Debug, Clone)]
pub(crate) struct About<'a> {
    /// Its kind.
    pub(crate) subject: Subject,
    pub(crate) id: String,
    /// Its name, for people.
    pub(crate) name: Option<&'a str>,
    /// The project that it belongs to, if any.
    pub(crate) project: Option<ProjectId>,
}

/// An audit entry of the caller about a resource of an organization.
pub(crate) fn entry(
    ctx: &Ctx,
    organization: OrganizationId,
    about: About<'_>,
    action: AuditAction,
    changes: Changes,
) -> Entry {
    let key = match &ctx.actor {
        Actor::Session { .. } => None,
        Actor::Key { key, .. } => Some(UsedKey {
            id: key.id.0.clone(),
            label: key.label.clone(),
            mask_value: key.mask_value.clone(),
        }),
    };
    Entry {
        id: ids::time_ordered(ctx.now),
        organization_id: organization,
        team_id: about.project,
        user: Some(ctx.user()),
        personal_api_key: key,
        scim_token: None,
        activity: action,
        scope: about.subject,
        item_id: about.id,
        detail: Detail { name: about.name.map(str::to_owned), changes: changes.of(about.subject) },
        created_at: ctx.now,
        request_id: ctx.request_id.clone(),
    }
}

/// An audit entry about a change of the identity provider of a domain.
pub(crate) fn scim_entry(
    ctx: &ScimCtx,
    about: About<'_>,
    action: AuditAction,
    changes: Changes,
) -> Entry {
    Entry {
        scim_token: Some(ctx.token.clone()),
        request_id: ctx.request_id.clone(),
        ..own_entry(ctx.now, ctx.domain.organization, about, action, changes)
    }
}

/// An audit entry about a change that the service made without a caller.
pub(crate) fn own_entry(
    now: Timestamp,
    organization: OrganizationId,
    about: About<'_>,
    action: AuditAction,
    changes: Changes,
) -> Entry {
    Entry {
        id: ids::time_ordered(now),
        organization_id: organization,
        team_id: about.project,
        user: None,
        personal_api_key: None,
        scim_token: None,
        activity: action,
        scope: about.subject,
        item_id: about.id,
        detail: Detail { name: about.name.map(str::to_owned), changes: changes.of(about.subject) },
        created_at: now,
        request_id: String::new(),
    }
}

/// The changed fields of an audit entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(Vec<(String, Value, Value)>);

impl Changes {
    /// No fields: the action says enough.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// The fields that differ between two states of a resource, in their order.
    pub(crate) fn between<T: Serialize>(before: &T, after: &T) -> Self {
        let after = Members::of(after).0;
        let after = |name: &str| after.iter().find(|(other, _)| other == name);
        let mut changes = Self::none();
        for (name, value) in Members::of(before).0 {
            let value_after = after(&name).map_or(Value::Null, |(_, value)| value.clone());
            changes = changes.field(&name, &value, &value_after);
        }
        changes
    }

    /// Adds a field if it changed.
    pub(crate) fn field<T: Serialize>(mut self, name: &str, before: &T, after: &T) -> Self {
        // A value without a JSON form would be shown as null. Our values have one.
        let json = |value: &T| serde_json::to_value(value).unwrap_or(Value::Null);
        let (before, after) = (json(before), json(after));
        if before != after {
            self.0.push((name.to_owned(), noted(before), noted(after)));
        }
        self
    }

    /// Adds a changed secret, without its value.
    pub(crate) fn secret(mut self, name: &str) -> Self {
        let hidden = || Value::from(SECRET);
        self.0.push((name.to_owned(), hidden(), hidden()));
        self
    }

    /// Adds the fields of another change.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether nothing changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(self, subject: Subject) -> Vec<FieldChange> {
        let change = |(field, before, after): (String, Value, Value)| {
            let action = match (before.is_null(), after.is_null()) {
                (true, false) => "created",
                (false, true) => "deleted",
                _ => "changed",
            };
            FieldChange { subject, action: action.to_owned(), field, before, after }
        };
        self.0.into_iter().map(change).collect()
    }
}

/// The members of a JSON object, in their order.
#[derive(Default)]
struct Members(Vec<(String, Value)>);

impl Members {
    /// The members of a value without a JSON form would be none. Our rows have one.
    fn of<T: Serialize>(value: &T) -> Self {
        let text = serde_json::to_string(value).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// The recorded form of a value. Of a long value it is the SHA-256 of its JSON text, so
/// that two values can still be distinguished.
fn noted(value: Value) -> Value {
    if is_long(&value) { Value::from(hash(&value.to_string())) } else { value }
}

/// The recorded form of a long text.
pub(crate) fn hash(text: &str) -> String {
    format!("{HASH}{}", secrets::sha256_hex(text))
}

/// Whether a value is too long to be recorded.
pub(crate) fn is_long(value: &Value) -> bool {
    value.to_string().len() > LONG
}

/// A part of the activity log.
#[derive(Debug, Clone)]
pub struct ActivityPage {
    /// The entries, newest first.
    pub entries: Vec<Activity>,
    /// The number before which the next batch lies; `None`: there is none.
    pub next: Option<i64>,
}

/// The service for reading the activity log.
#[derive(Clone)]
pub struct ActivityLog {
    core: Arc<Core>,
}

impl ActivityLog {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The audit entries of an organization, newest first. A query searches the newest
    /// ten thousand.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope).
    pub async fn of_organization(
        &self,
        org: &OrgCtx,
        query: &ActivityQuery,
        page: Page,
    ) -> Result<Paged<Activity>> {
        org.ctx.require(Scope::read(ScopeObject::ActivityLog))?;
        self.list(Of::Organization(org.organization), query, page).await
    }

    /// The audit entries about a project, newest first. A query searches the newest ten
    /// thousand.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope).
    pub async fn of_project(
        &self,
        project: &ProjectCtx,
        query: &ActivityQuery,
        page: Page,
    ) -> Result<Paged<Activity>> {
        project.org.ctx.require(Scope::read(ScopeObject::ActivityLog))?;
        self.list(Of::Project(project.org.organization, project.project), query, page).await
    }

    /// The audit entries of an organization that match a query, one batch of the log at
    /// a time: the newest batch, or the one before the number from the previous answer.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope).
    pub async fn batch(
        &self,
        org: &OrgCtx,
        query: &ActivityQuery,
        before: Option<i64>,
    ) -> Result<ActivityPage> {
        org.ctx.require(Scope::read(ScopeObject::ActivityLog))?;
        let of = Of::Organization(org.organization);
        let wanted = |entry: &Entry| query.wants(entry);
        let (entries, next) = rows::batch(&self.core.store, of, before, wanted).await?;
        Ok(ActivityPage { entries: shown(&self.core, entries).await?, next })
    }

    async fn list(&self, of: Of, query: &ActivityQuery, page: Page) -> Result<Paged<Activity>> {
        let store = &self.core.store;
        let (count, entries) = if query.is_all() {
            rows::page(store, of, page).await?
        } else {
            rows::search(store, of, page, |entry| query.wants(entry)).await?
        };
        Ok(Paged { count, results: shown(&self.core, entries).await? })
    }
}

/// A page of the audit entries that match `wanted` among the newest ten thousand of an
/// organization, newest first, and the number of all matches.
pub(crate) async fn search(
    core: &Core,
    organization: OrganizationId,
    page: Page,
    wanted: impl Fn(&Entry) -> bool,
) -> Result<(u64, Vec<Entry>)> {
    Ok(rows::search(&core.store, Of::Organization(organization), page, wanted).await?)
}

/// Audit entries with the users who caused them.
pub(crate) async fn shown(core: &Core, entries: Vec<Entry>) -> Result<Vec<Activity>> {
    let mut people: BTreeMap<UserId, Option<ActivityUser>> = BTreeMap::new();
    for user in entries.iter().filter_map(|entry| entry.user) {
        if let std::collections::btree_map::Entry::Vacant(free) = people.entry(user) {
            let row = users::get(&core.store, user).await?;
            free.insert(row.map(|row| ActivityUser {
                uuid: row.id,
                first_name: row.first_name,
                last_name: row.last_name,
                email: row.email,
            }));
        }
    }
    let show = |entry: Entry| {
        let user = entry.user.and_then(|user| people.get(&user).cloned().flatten());
        Activity {
            id: entry.id,
            organization_id: entry.organization_id,
            team_id: entry.team_id,
            user,
            is_system: entry.user.is_none() && entry.scim_token.is_none(),
            personal_api_key: entry.personal_api_key,
            scim_token: entry.scim_token,
            activity: entry.activity,
            scope: entry.scope,
            item_id: entry.item_id,
            detail: entry.detail,
            created_at: entry.created_at,
            request_id: entry.request_id,
        }
    };
    Ok(entries.into_iter().map(show).collect())
}
