//! Reading persons (API-47), exporting and erasing them.
//!
//! What belongs here: finding and listing. What does not: creating persons from events
//! (`weir-ingest`).

mod erasure;
mod export;
mod order;
mod profile;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use weir_model::persons::{PersonQuery, PersonRef};
use weir_model::{PersonId, ProjectId};
use weir_store::counts;
use weir_store::persons as rows;

use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::scan::{ScanStep, scan_limits};
use crate::{Core, Result};

pub use self::erasure::Applying;
pub use self::export::PersonExport;
pub use self::order::{Ordered, Ranking};
pub use self::profile::{DistinctId, Profile, RefusedMerge, SetBy, Timeline};
pub use weir_store::counts::PersonCounts;

/// Properties that can name a person, the best first.
const NAMES: [&str; 6] = ["name", "Name", "email", "Email", "username", "Username"];

/// The service for persons.
#[derive(Clone)]
pub struct Persons {
    core: Arc<Core>,
    applying: Arc<dyn Applying>,
}

impl Persons {
    pub(crate) fn new(core: Arc<Core>, applying: Arc<dyn Applying>) -> Self {
        Self { core, applying }
    }

    /// Persons from a cursor on. Searches no longer than `within`.
    pub async fn list(
        &self,
        project: &ProjectCtx,
        query: &PersonQuery,
        within: Duration,
    ) -> Result<ScanStep<PersonRef, PersonId>> {
        let id = project.project;
        if let Some(distinct_id) = &query.distinct_id {
            let person = self.of_distinct_id(id, distinct_id).await?;
            let wanted = |person: &PersonRef| query.offset == 0 && finds(query, person);
            return Ok(ScanStep { found: person.into_iter().filter(wanted).collect(), next: None });
        }
        // A search for a whole distinct id gets its person first.
        let exact = match &query.search {
            Some(search) => self.of_distinct_id(id, search).await?,
            None => None,
        };
        let exact_id = exact.as_ref().map(|person| person.id);
        let is_first = query.after.is_none();
        let mut passed = u64::from(is_first && exact.is_some());
        let exact = exact.filter(|_| is_first && query.offset == 0);
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let wanted = |person: &PersonRef| {
            if Some(person.id) == exact_id || !finds(query, person) {
                return false;
            }
            passed += 1;
            passed > query.offset
        };
        let room = limit.saturating_sub(usize::from(exact.is_some()));
        let limits = scan_limits(query.offset, within);
        let page = rows::page(&self.core.store, id, query.after, room, limits, wanted).await?;
        let found = exact.into_iter().chain(page.persons).collect();
        let rest = query.offset.saturating_sub(passed);
        Ok(ScanStep { found, next: page.next.map(|id| (id, rest)) })
    }

    /// A person, also by the id of one that was merged into it.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn get(&self, project: &ProjectCtx, id: PersonId) -> Result<PersonRef> {
        let mut found = rows::resolve(&self.core.store, project.project, [id]).await?;
        found.remove(&id).map(Arc::unwrap_or_clone).ok_or(Error::NotFound(NOT_FOUND))
    }

    /// The event counts of persons, in the same order. `None`: events from before an update
    /// are still being counted.
    pub async fn counts(
        &self,
        project: &ProjectCtx,
        persons: &[PersonRef],
    ) -> Result<Option<Vec<PersonCounts>>> {
        Ok(counts::of_persons(&self.core.store, project.project, persons).await?)
    }

    async fn of_distinct_id(
        &self,
        project: ProjectId,
        distinct_id: &str,
    ) -> Result<Option<PersonRef>> {
        let id = rows::first_id(project, distinct_id);
        let mut found = rows::resolve(&self.core.store, project, [id]).await?;
        Ok(found.remove(&id).map(Arc::unwrap_or_clone))
    }
}

/// The display name of a person: a name or an address among the properties, else the
/// first distinct id.
pub fn display_name(person: &PersonRef) -> String {
    let properties: Value = serde_json::from_str(&person.properties).unwrap_or_default();
    let texts = NAMES.iter().filter_map(|name| properties.get(name)?.as_str());
    let named = texts.into_iter().find(|name| !name.trim().is_empty());
    let first = person.distinct_ids.first().map(String::as_str);
    named.or(first).unwrap_or_default().to_owned()
}

fn finds(query: &PersonQuery, person: &PersonRef) -> bool {
    let Some(search) = &query.search else { return true };
    let search = search.to_lowercase();
    let within = |text: &str| text.to_lowercase().contains(&search);
    let properties: Value = serde_json::from_str(&person.properties).unwrap_or_default();
    let named = |name: &&str| properties.get(name).and_then(Value::as_str).is_some_and(within);
    person.id.to_string() == search
        || person.distinct_ids.iter().any(|id| within(id))
        || NAMES.iter().any(named)
        || search.split_once('=').is_some_and(|(name, value)| has(&properties, name, value))
}

/// Whether a property has this value in its written form, in any case.
fn has(properties: &Value, name: &str, value: &str) -> bool {
    let (name, value) = (name.trim(), value.trim());
    let is_it = |present: &Value| match present {
        Value::String(text) => text.trim().to_lowercase() == value,
        other => other.to_string().to_lowercase() == value,
    };
    let properties = properties.as_object();
    let mut named = properties.into_iter().flatten().filter(|(key, _)| key.to_lowercase() == name);
    named.any(|(_, present)| is_it(present))
}
