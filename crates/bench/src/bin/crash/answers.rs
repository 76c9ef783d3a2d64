//! What the API says of an instance before an upgrade, and whether it says the same after it.
//!
//! What belongs here: the lists and the fields that are compared. What does not: the upgrade
//! (`upgrade`), and what was sent (`compare`, `people`).

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;
use weir_bench::api::{Api, organization_path};
use weir_bench::weir::Instance;

use crate::Check;

/// Events that are also read individually.
const SPOT_CHECKS: usize = 100;
/// The list with the events.
const EVENTS: &str = "events/";

/// A list of a project: its path, what identifies an entry, and fields that neither time nor
/// an upgrade changes.
struct List {
    path: &'static str,
    by: &'static [&'static str],
    fields: &'static [&'static str],
}

const LISTS: [List; 6] = [
    List {
        path: EVENTS,
        by: &["/uuid"],
        fields: &[
            "/event",
            "/distinct_id",
            "/timestamp",
            "/created_at",
            "/properties",
            "/elements_chain",
            "/historical",
        ],
    },
    List {
        path: "persons/",
        by: &["/id"],
        fields: &["/distinct_ids", "/properties", "/created_at", "/is_identified"],
    },
    List {
        path: "groups/",
        by: &["/group_type", "/group_key"],
        fields: &["/group_type_index", "/group_properties", "/created_at"],
    },
    List { path: "event_definitions/", by: &["/name"], fields: &[] },
    List { path: "property_definitions/", by: &["/type", "/name"], fields: &["/property_type"] },
    List {
        path: "batch_exports/",
        by: &["/id"],
        fields: &[
            "/name",
            "/model",
            "/interval",
            "/paused",
            "/destination/type",
            "/destination/config/path",
            "/created_at",
            "/start_at",
            "/end_at",
        ],
    },
];

/// Settings of the project and of the organization.
const PROJECT: [&str; 6] = ["/id", "/uuid", "/name", "/api_token", "/timezone", "/created_at"];
const ORGANIZATION: [&str; 4] = ["/id", "/name", "/slug", "/created_at"];

/// What the API said.
pub(crate) struct Answers {
    /// The entries of each of [`LISTS`].
    lists: Vec<HashMap<String, Said>>,
    settings: [Vec<Value>; 2],
}

/// A digest of the fields of an entry, and how often it was there in the last comparison.
#[derive(Debug, Clone, Copy)]
struct Said {
    digest: u64,
    times: u32,
}

/// The checks of an upgrade.
#[derive(Debug)]
pub(crate) struct Differences {
    missing: Check,
    twice: Check,
    changed: Check,
    unreadable: Check,
    /// The number of events at the last comparison.
    readable: usize,
}

impl Differences {
    pub(crate) fn new() -> Self {
        Self {
            missing: Check::new("everything from before the upgrade is there"),
            twice: Check::new("nothing is there twice after the upgrade"),
            changed: Check::new("everything reads as before the upgrade"),
            unreadable: Check::new("events from before the upgrade are found by their uuids"),
            readable: 0,
        }
    }

    pub(crate) fn into_checks(self) -> [Check; 4] {
        [self.missing, self.twice, self.changed, self.unreadable]
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { missing, twice, changed, unreadable, readable } = self;
        write!(
            f,
            "{readable} readable; missing {}, twice {}, changed {}, unreadable {}",
            missing.faults.len(),
            twice.faults.len(),
            changed.faults.len(),
            unreadable.faults.len()
        )
    }
}

#[derive(Deserialize)]
struct Page {
    next: Option<String>,
    results: Vec<Value>,
}

impl Answers {
    /// Reads everything.
    pub(crate) async fn read(api: &mut Api, instance: &Instance) -> Result<Self> {
        let mut lists = Vec::with_capacity(LISTS.len());
        for list in &LISTS {
            let mut entries = HashMap::new();
            let mut next = Some("?limit=1000".to_owned());
            while let Some(query) = next {
                let page: Page = api.of_project(list.path, &query).await?;
                for entry in &page.results {
                    let said = Said { digest: digest(list, entry), times: 0 };
                    let name = name(list, entry);
                    let is_new = entries.insert(name, said).is_none();
                    ensure!(is_new, "{} has an entry twice: {entry}", list.path);
                }
                next = page.next;
            }
            lists.push(entries);
        }
        Ok(Self { lists, settings: settings(api, instance).await? })
    }

    /// The number of events.
    pub(crate) fn events(&self) -> usize {
        self.lists.first().map_or(0, HashMap::len)
    }

    /// Reads everything again, and compares it. `may_have_more`: whether something was sent
    /// after the first reading.
    pub(crate) async fn compare(
        &mut self,
        api: &mut Api,
        instance: &Instance,
        may_have_more: bool,
        found: &mut Differences,
    ) -> Result<()> {
        for (list, entries) in LISTS.iter().zip(&mut self.lists) {
            let path = list.path;
            entries.values_mut().for_each(|said| said.times = 0);
            let (mut next, mut all) = (Some("?limit=1000".to_owned()), 0);
            while let Some(query) = next {
                let page: Page = api.of_project(path, &query).await?;
                all += page.results.len();
                for entry in &page.results {
                    let name = name(list, entry);
                    let Some(said) = entries.get_mut(&name) else {
                        if !may_have_more {
                            found.changed.fail(format!("{path}: {name} was not there"));
                        }
                        continue;
                    };
                    said.times += 1;
                    if said.times > 1 {
                        found.twice.fail(format!("{path}: {name} is there {} times", said.times));
                    }
                    if said.digest != digest(list, entry) {
                        found.changed.fail(format!("{path}: {name} reads otherwise: {entry}"));
                    }
                }
                next = page.next;
            }
            for (name, _) in entries.iter().filter(|(_, said)| said.times == 0) {
                found.missing.fail(format!("{path}: {name} is not in the list"));
            }
            if path == EVENTS {
                found.readable = all;
                for uuid in entries.keys().take(SPOT_CHECKS) {
                    let uuid: Uuid = uuid.parse().context("an event has no uuid")?;
                    if !api.is_readable(uuid).await? {
                        found.unreadable.fail(format!("event {uuid} is not found by its uuid"));
                    }
                }
            }
        }
        let now = settings(api, instance).await?;
        if now != self.settings {
            found.changed.fail(format!("settings are {now:?}, and were {:?}", self.settings));
        }
        Ok(())
    }
}

/// Fields of the project and of the organization.
async fn settings(api: &mut Api, instance: &Instance) -> Result<[Vec<Value>; 2]> {
    let project: Value = api.of_project("", "").await?;
    let (status, body) = api.call("GET", &organization_path(instance), "").await?;
    ensure!(status == 200, "the organization answered {status}");
    let organization: Value = serde_json::from_slice(&body)?;
    Ok([fields(&project, &PROJECT), fields(&organization, &ORGANIZATION)])
}

fn fields(entry: &Value, pointers: &[&str]) -> Vec<Value> {
    pointers.iter().map(|field| entry.pointer(field).cloned().unwrap_or_default()).collect()
}

/// What identifies an entry.
fn name(list: &List, entry: &Value) -> String {
    let parts = list.by.iter().map(|field| match entry.pointer(field) {
        Some(Value::String(text)) => text.clone(),
        other => other.cloned().unwrap_or_default().to_string(),
    });
    parts.collect::<Vec<_>>().join(" ")
}

fn digest(list: &List, entry: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for mut field in fields(entry, list.fields) {
        // Distinct ids have no order.
        if let Value::Array(items) = &mut field
            && items.iter().all(Value::is_string)
        {
            items.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
        }
        field.to_string().hash(&mut hasher);
    }
    hasher.finish()
}
