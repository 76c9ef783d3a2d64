//! The activity log of an organization.

#[cfg(feature = "ssr")]
use std::collections::BTreeMap;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_model::activity::{Activity, FieldChange};
use weir_model::activity::{ActivityFilter, AuditAction, Subject};

#[cfg(feature = "ssr")]
use super::members::full_name;
#[cfg(feature = "ssr")]
use crate::context::{enter_organization, ui_error};
use crate::error::UiError;
#[cfg(feature = "ssr")]
use crate::pages::organization::activity_fields::label;

/// Limit of members in the actor filter.
const ACTORS: u64 = 200;
/// Limit of plugins whose names are read for one page.
#[cfg(feature = "ssr")]
const PLUGINS: usize = 50;

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
    /// The domain whose identity provider acted.
    pub(crate) identity_provider: Option<String>,
    pub(crate) action: AuditAction,
    /// The kind of the changed object.
    pub(crate) subject: Subject,
    /// Id of the object.
    pub(crate) item: String,
    /// Name of the object at that time.
    pub(crate) name: Option<String>,
    /// Changed fields and parts of fields.
    pub(crate) changes: Vec<ChangeView>,
    /// Time of the change.
    pub(crate) at: String,
}

/// A changed field, or a changed part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeView {
    /// Its name, as the API has it.
    pub(crate) field: String,
    /// The label of the field, and the path of the part. `None`: it has no label.
    pub(crate) label: Option<(String, String)>,
    /// The value before. Empty: there was none.
    pub(crate) before: String,
    /// The value after. Empty: there is none.
    pub(crate) after: String,
}

#[cfg(feature = "ssr")]
impl ChangeView {
    fn new(subject: Subject, (field, before, after): (String, String, String)) -> Self {
        let label = label(subject, &field);
        let label = label.map(|(label, part)| (label.into_owned(), part.to_owned()));
        Self { label, field, before, after }
    }
}

#[cfg(feature = "ssr")]
impl From<Activity> for EntryView {
    fn from(entry: Activity) -> Self {
        let who = entry.user.map(|user| {
            let name = full_name(&user.first_name, &user.last_name, &user.email);
            (user.uuid.to_string(), name, user.email)
        });
        Self {
            id: entry.id.to_string(),
            who,
            by_service: entry.is_system,
            key: entry.personal_api_key.map(|key| key.label),
            identity_provider: entry.scim_token.map(|token| token.label),
            action: entry.activity,
            subject: entry.scope,
            item: entry.item_id,
            name: entry.detail.name,
            changes: entry
                .detail
                .changes
                .into_iter()
                .flat_map(lines)
                .map(|change| ChangeView::new(entry.scope, change))
                .collect(),
            at: entry.created_at.to_string(),
        }
    }
}

/// Lists audit entries of an organization.
#[server(prefix = "/_fn", endpoint = "list_activity")]
pub(crate) async fn list_activity(
    id: String,
    filter: ActivityFilter,
    limit: u32,
    offset: u32,
) -> Result<ActivityView, UiError> {
    use weir_model::members::{Member, MemberOrder, MemberQuery};
    use weir_model::pagination::Page;

    let (services, org) = enter_organization(&id).await?;
    let page = Page { limit: limit.clamp(1, 1000).into(), offset: offset.into() };
    let found = services.activity.of_organization(&org, &filter.query(), page).await;
    let found = found.map_err(ui_error)?;
    let oldest = MemberQuery { order: MemberOrder::OldestFirst, ..MemberQuery::default() };
    let first = Page { limit: ACTORS, offset: 0 };
    let members = services.members.list(&org, &oldest, first).await.map_err(ui_error)?;
    let actor = |Member { user, .. }: Member| {
        let name = full_name(&user.first_name, &user.last_name, &user.email);
        (user.uuid.to_string(), format!("{name} ({})", user.email))
    };
    let mut entries: Vec<EntryView> = found.results.into_iter().map(EntryView::from).collect();
    name_objects(&services, &org, &mut entries).await?;
    Ok(ActivityView {
        total: found.count,
        entries,
        actors: members.results.into_iter().map(actor).collect(),
    })
}

/// Replaces the ids of organizations and plugins in values by their names.
#[cfg(feature = "ssr")]
async fn name_objects(
    services: &weir_service::Services,
    org: &weir_service::OrgCtx,
    entries: &mut [EntryView],
) -> Result<(), UiError> {
    let mut names = Names { services, org, organizations: None, plugins: BTreeMap::new() };
    for entry in entries {
        let subject = entry.subject;
        for ChangeView { field, before, after, .. } in &mut entry.changes {
            for value in [before, after].into_iter().filter(|value| !value.is_empty()) {
                match (subject, field.as_str()) {
                    (Subject::Project, "organization") => {
                        *value = names.organization(value).await?;
                    }
                    (Subject::PluginConfig, "plugin") => *value = names.plugin(value).await,
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// Names of objects by their ids.
#[cfg(feature = "ssr")]
struct Names<'a> {
    services: &'a weir_service::Services,
    org: &'a weir_service::OrgCtx,
    /// Those of the viewer. `None`: they were not read yet.
    organizations: Option<BTreeMap<String, String>>,
    plugins: BTreeMap<String, String>,
}

#[cfg(feature = "ssr")]
impl Names<'_> {
    async fn organization(&mut self, id: &str) -> Result<String, UiError> {
        use weir_model::pagination::{MAX_LIMIT, Page};

        let known = match self.organizations.take() {
            Some(known) => known,
            None => {
                let page = Page { limit: MAX_LIMIT, offset: 0 };
                let found = self.services.organizations.list(&self.org.ctx, page).await;
                let found = found.map_err(ui_error)?.results.into_iter();
                found.map(|one| (one.row.id.to_string(), one.row.name)).collect()
            }
        };
        let name = known.get(id).cloned();
        self.organizations = Some(known);
        Ok(name.unwrap_or_else(|| "another organization".to_owned()))
    }

    async fn plugin(&mut self, id: &str) -> String {
        if let Some(name) = self.plugins.get(id) {
            return name.clone();
        }
        let without_name = format!("Plugin {id}");
        if self.plugins.len() >= PLUGINS {
            return without_name;
        }
        let found = self.services.plugins.get_listed(self.org, id).await.ok();
        let name = found.map(|found| super::plugins::views::name_of(&found.plugin));
        let name = name.unwrap_or(without_name);
        self.plugins.insert(id.to_owned(), name.clone());
        name
    }
}

/// The change of a field, line by line: a field with parts has a line for each part that
/// changed.
#[cfg(feature = "ssr")]
fn lines(change: FieldChange) -> Vec<(String, String, String)> {
    let FieldChange { field, before, after, .. } = change;
    let mut parts: BTreeMap<String, (String, String)> = BTreeMap::new();
    walk(&field, &before, &mut |path, text| parts.entry(path).or_default().0 = text);
    walk(&field, &after, &mut |path, text| parts.entry(path).or_default().1 = text);
    let is_one = parts.len() <= 1;
    let changed = parts.into_iter().filter(|(_, (before, after))| is_one || before != after);
    let lines: Vec<_> = changed.map(|(path, (before, after))| (path, before, after)).collect();
    if lines.is_empty() { vec![(field, String::new(), String::new())] } else { lines }
}

/// The parts of a value as texts, with their paths. No value is no part.
#[cfg(feature = "ssr")]
fn walk(path: &str, value: &serde_json::Value, add: &mut dyn FnMut(String, String)) {
    use serde_json::Value;

    match value {
        Value::Null => {}
        Value::Object(parts) => {
            for (name, part) in parts {
                walk(&format!("{path}.{name}"), part, add);
            }
        }
        Value::Array(parts) if parts.iter().any(|part| part.is_object() || part.is_array()) => {
            for (at, part) in (1..).zip(parts) {
                walk(&format!("{path} {at}"), part, add);
            }
        }
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(text).collect();
            add(path.to_owned(), texts.join(", "));
        }
        single => add(path.to_owned(), text(single)),
    }
}

#[cfg(feature = "ssr")]
fn text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Bool(true) => "Yes".to_owned(),
        serde_json::Value::Bool(false) => "No".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::{Value, json};
    use weir_model::activity::{FieldChange, Subject};

    use super::lines;

    #[test]
    fn changes_have_a_line_for_each_part() {
        let lines = |before: Value, after: Value| {
            let (subject, action, field) = (Subject::Project, "changed".to_owned(), "f".to_owned());
            let lines = lines(FieldChange { subject, action, field, before, after });
            let line = |(path, before, after)| format!("{path}: {before} > {after}");
            lines.into_iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(lines(json!(1), json!(null)), ["f: 1 > "]);
        assert_eq!(lines(json!("a"), json!("a")), ["f: a > a"]);
        assert_eq!(lines(json!(null), json!(null)), ["f:  > "]);
        assert_eq!(lines(json!(["a", 2]), json!([])), ["f: a, 2 > "]);
        assert_eq!(
            lines(json!({"a": 1, "b": true, "c": {"d": "x"}}), json!({"a": 1, "b": false})),
            ["f.b: Yes > No", "f.c.d: x > "]
        );
        assert_eq!(lines(json!([{"a": 1}]), json!([{"a": 2}])), ["f 1.a: 1 > 2"]);
    }
}
