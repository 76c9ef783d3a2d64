//! The activity of a group in the latest events of a project. The store has no order of
//! events by group, so older events are not searched.

use serde_json::Value;
use weir_store::events::{self, StoredEvent};

use super::Groups;
use crate::Result;
use crate::ctx::ProjectCtx;

/// How many of the latest events are searched.
const SEARCHED_EVENTS: usize = 2_000;
/// The maximum number of events that are shown.
const EVENTS: usize = 50;

/// The latest events of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupActivity {
    /// Events of the group, the last to arrive first, at most 50.
    pub events: Vec<StoredEvent>,
    /// Whether the group has further events; `None`: not all events were searched.
    pub more: Option<bool>,
}

impl Groups {
    /// Searches the latest events of the project for the group with this index of its type
    /// and this key.
    pub async fn activity(
        &self,
        project: &ProjectCtx,
        index: u8,
        key: &str,
    ) -> Result<GroupActivity> {
        let (store, project_id) = (&self.core.store, project.project);
        let page = events::arrivals(store, project_id, None, SEARCHED_EVENTS).await?;
        let property = format!("$group_{index}");
        let mut found: Vec<StoredEvent> =
            page.events.into_iter().filter(|event| is_about(event, &property, key)).collect();
        let is_cut = found.len() > EVENTS;
        found.truncate(EVENTS);
        Ok(GroupActivity { events: found, more: (is_cut || !page.more).then_some(is_cut) })
    }
}

/// Whether an event is about the group with this key. Most events are not, and are
/// skipped without being parsed.
fn is_about(event: &StoredEvent, property: &str, key: &str) -> bool {
    if !event.properties.contains(property) {
        return false;
    }
    let properties: Value = serde_json::from_str(&event.properties).unwrap_or_default();
    match properties.get(property) {
        Some(Value::String(text)) => text == key,
        Some(Value::Number(number)) => number.to_string() == key,
        Some(_) | None => false,
    }
}
