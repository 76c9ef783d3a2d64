//! The activity log of an organization, with a line for each changed field.

use std::sync::Arc;

use serde_json::Value;
use weir_model::activity::{Activity, ActivityFilter, FieldChange};

use super::{Asked, Organization};
use crate::web::csv::{Column, CsvList, by_cursor, optional};

/// An entry with one of its changes. `None`: it has none.
type Row = (Arc<Activity>, Option<FieldChange>);

const COLUMNS: &[Column<Row>] = &[
    ("id", |(entry, _)| entry.id.to_string()),
    ("time", |(entry, _)| entry.created_at.to_string()),
    ("name", |(entry, _)| match &entry.user {
        Some(user) => user.first_name.clone(),
        None if entry.is_system => "Weir".to_owned(),
        None if entry.scim_token.is_some() => "identity provider".to_owned(),
        None => String::new(),
    }),
    ("address", |(entry, _)| optional(entry.user.as_ref().map(|user| &user.email))),
    ("via", |(entry, _)| match &entry.personal_api_key {
        Some(key) => format!("key {}", key.label),
        None if entry.scim_token.is_some() => "SCIM".to_owned(),
        None if entry.is_system => String::new(),
        None => "web app".to_owned(),
    }),
    ("action", |(entry, _)| entry.activity.text().to_owned()),
    ("kind", |(entry, _)| entry.scope.text().to_owned()),
    ("item_id", |(entry, _)| entry.item_id.clone()),
    ("item", |(entry, _)| optional(entry.detail.name.as_ref())),
    ("project", |(entry, _)| optional(entry.team_id.as_ref())),
    ("field", |(_, change)| optional(change.as_ref().map(|change| &change.field))),
    ("before", |(_, change)| change.as_ref().map(|it| value(&it.before)).unwrap_or_default()),
    ("after", |(_, change)| change.as_ref().map(|it| value(&it.after)).unwrap_or_default()),
    ("request_id", |(entry, _)| entry.request_id.clone()),
];

pub(super) fn entries(asked: &Asked<'_>, within: Organization) -> CsvList {
    let name = within.name.clone();
    let query = filter(asked).query();
    let pages = by_cursor(None, move |before: Option<i64>| {
        let (Organization { services, org, .. }, query) = (within.clone(), query.clone());
        async move {
            let batch = services.activity.batch(&org, &query, before).await?;
            let rows = batch.entries.into_iter().flat_map(rows).collect();
            Ok((rows, batch.next.map(Some)))
        }
    });
    CsvList::new("activity", &name, COLUMNS, pages)
}

fn filter(asked: &Asked<'_>) -> ActivityFilter {
    ActivityFilter {
        actor: asked.value("actor"),
        kind: asked.value("kind"),
        action: asked.value("action"),
        item: asked.value("item"),
        from: asked.value("from"),
        to: asked.value("to"),
        entry: asked.value("entry"),
    }
}

fn rows(mut entry: Activity) -> Vec<Row> {
    let changes = std::mem::take(&mut entry.detail.changes);
    let entry = Arc::new(entry);
    if changes.is_empty() {
        return vec![(entry, None)];
    }
    changes.into_iter().map(|change| (Arc::clone(&entry), Some(change))).collect()
}

/// A value as a cell shows it.
fn value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
