//! The activity log: append-only, ordered, chained by hashes (SEC-24).
//!
//! What belongs here: the part of a transaction that writes an audit entry together with
//! the change, and reading audit entries. What does not: the content of an audit entry
//! (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `activity` | `[organization, number]` | the entry as JSON text, and the hash of that text after the hash before it |
//! | `activity_of_project` | `[organization, project, number]` | the number in the organization |
//! | `activity_head` | organization | the last number, its hash and its id |
//! | `activity_head` | `[organization, project]` | the last number of the project |
//!
//! Numbers are dense, so a page is a narrow range wherever it begins. No statement here
//! changes or removes an audit entry. When a project moves to another organization, its
//! audit entries stay behind: they describe actions of members of the old one.

use sha2::{Digest, Sha256};
use surrealdb::types::{SurrealValue, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::pagination::Page;
use weir_model::{BatchExportId, OrganizationId, ProjectId};

use crate::bind::bind;
use crate::db::{Answer, Statement};
use crate::{Error, Result, Store};

/// The number of newest entries that a search reads.
const SEARCH_LIMIT: i64 = 10_000;
/// The number of entries that a search reads at a time.
const STEP: i64 = 500;

/// An audit entry as a statement binds it.
#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    uuid: Uuid,
    organization: Uuid,
    project: Option<i64>,
    text: String,
}

impl TryFrom<&Entry> for Stored {
    type Error = Error;

    fn try_from(entry: &Entry) -> Result<Self> {
        let shape = |error: serde_json::Error| Error::Shape {
            statement: "activity",
            detail: error.to_string(),
        };
        let text = serde_json::to_string(entry).map_err(shape)?;
        // An entry that cannot be read would hide all others for ever: a value can be
        // nested more deeply than the parser accepts.
        serde_json::from_str::<Entry>(&text).map_err(shape)?;
        Ok(Self {
            uuid: entry.id,
            organization: entry.organization_id.0,
            project: entry.team_id.map(|project| project.0),
            text,
        })
    }
}

/// Writes the audit entries `$activities`. Used by the transactions that change
/// management data, which [`change`] runs: a change that cannot be logged is not made. An
/// entry that is already the last one is not written again, so that a transaction with an
/// unknown outcome can be repeated.
macro_rules! write_activities {
    () => {
        "FOR $activity IN $activities {
             LET $head = (SELECT * FROM ONLY type::record('activity_head', $activity.organization));
             IF $head.uuid != $activity.uuid {
                 LET $number = ($head.number ?? 0) + 1;
                 LET $hash = crypto::sha256(string::concat($head.hash ?? '', $activity.text));
                 UPSERT type::record('activity_head', $activity.organization)
                     CONTENT { number: $number, hash: $hash, uuid: $activity.uuid } RETURN NONE;
                 UPSERT type::record('activity', [$activity.organization, $number])
                     CONTENT { text: $activity.text, hash: $hash } RETURN NONE;
                 IF $activity.project != NONE {
                     LET $of = [$activity.organization, $activity.project];
                     LET $last = (SELECT VALUE number
                                  FROM ONLY type::record('activity_head', $of));
                     LET $next = ($last ?? 0) + 1;
                     UPSERT type::record('activity_head', $of)
                         CONTENT { number: $next } RETURN NONE;
                     UPSERT type::record('activity_of_project',
                                         [$activity.organization, $activity.project, $next])
                         CONTENT { number: $number } RETURN NONE;
                 };
             };
         };"
    };
}
pub(crate) use write_activities;

/// Runs a transaction that contains [`write_activities`], holding the keyed locks of the
/// organizations of `entries`: all changes of one organization write the head of its log
/// (`locks`).
pub(crate) async fn change(
    store: &Store,
    statement: Statement,
    vars: Variables,
    entries: &[Entry],
) -> Result<Answer> {
    change_holding(store, statement, vars, entries, ()).await
}

/// Runs [`change`] and drops `held` when the transaction has ended, even if the caller is
/// dropped before.
pub(crate) async fn change_holding(
    store: &Store,
    statement: Statement,
    mut vars: Variables,
    entries: &[Entry],
    held: impl Send + 'static,
) -> Result<Answer> {
    let stored: Result<Vec<Stored>> = entries.iter().map(Stored::try_from).collect();
    vars.insert("activities", stored?);
    let locks = store.locks.take(entries.iter().map(|entry| entry.organization_id.0)).await;
    store.db.run_holding(statement, vars, (held, locks)).await
}

const WITHIN: Statement = Statement::write("activity within", write_activities!());

/// The statement that writes audit entries within a transaction on records. Its caller holds
/// the keyed locks of the organizations of `entries`, as [`change_holding`] does.
pub(crate) fn within(entries: &[Entry]) -> Result<(Statement, Variables)> {
    let stored: Result<Vec<Stored>> = entries.iter().map(Stored::try_from).collect();
    Ok((WITHIN, bind! { activities: stored? }))
}

/// Runs [`change`] for a change of these exports, whose runs write the same records. It
/// waits for their keyed locks first, so that running exports cannot starve it.
pub(crate) async fn change_exports(
    store: &Store,
    statement: Statement,
    vars: Variables,
    entries: &[Entry],
    exports: impl IntoIterator<Item = BatchExportId>,
    held: impl Send + 'static,
) -> Result<Answer> {
    // Always before the locks of organizations, so that there is no deadlock: a holder of
    // one of those never waits for the lock of an export.
    let locks = store.locks.take(exports.into_iter().map(|export| export.0)).await;
    change_holding(store, statement, vars, entries, (held, locks)).await
}

const WRITE: Statement =
    Statement::write("activity write", concat!("BEGIN;", write_activities!(), "COMMIT;"));

/// Writes audit entries without a change in the store: a refused call, or work that was
/// started.
pub async fn write(store: &Store, entries: &[Entry]) -> Result<()> {
    change(store, WRITE, bind! {}, entries).await.map(drop)
}

/// The scope of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All audit entries of an organization.
    Organization(OrganizationId),
    /// The audit entries about one project of an organization.
    Project(OrganizationId, ProjectId),
}

const LAST_OF_ORGANIZATION: Statement = Statement::read(
    "activity last of an organization",
    "SELECT VALUE number FROM type::record('activity_head', $organization);",
);

const LAST_OF_PROJECT: Statement = Statement::read(
    "activity last of a project",
    "SELECT VALUE number FROM type::record('activity_head', [$organization, $project]);",
);

const RANGE_OF_ORGANIZATION: Statement = Statement::read(
    "activity of an organization",
    "SELECT VALUE text FROM activity:[$organization, $from]..=[$organization, $to];",
);

const RANGE_OF_PROJECT: Statement = Statement::read(
    "activity of a project",
    "SELECT VALUE text FROM (SELECT VALUE type::record('activity', [$organization, number])
     FROM activity_of_project:[$organization, $project, $from]..=[$organization, $project, $to]);",
);

/// The number of the newest entry, which is also the number of entries.
async fn last(store: &Store, of: Of) -> Result<i64> {
    let mut answer = match of {
        Of::Organization(organization) => {
            store.db.run(LAST_OF_ORGANIZATION, bind! { organization: organization.0 }).await?
        }
        Of::Project(organization, project) => {
            let vars = bind! { organization: organization.0, project: project.0 };
            store.db.run(LAST_OF_PROJECT, vars).await?
        }
    };
    Ok(answer.row::<i64>(0)?.unwrap_or(0))
}

/// The entries with these numbers, newest first.
async fn range(store: &Store, of: Of, from: i64, to: i64) -> Result<Vec<Entry>> {
    let (statement, vars) = match of {
        Of::Organization(organization) => {
            (RANGE_OF_ORGANIZATION, bind! { organization: organization.0, from: from, to: to })
        }
        Of::Project(organization, project) => (
            RANGE_OF_PROJECT,
            bind! { organization: organization.0, project: project.0, from: from, to: to },
        ),
    };
    let texts: Vec<String> = store.db.run(statement, vars).await?.rows(0)?;
    let read = |text: &String| {
        serde_json::from_str(text)
            .map_err(|error| Error::Shape { statement: statement.name, detail: error.to_string() })
    };
    texts.iter().rev().map(read).collect()
}

/// A page of entries, newest first, and the number of all entries.
pub async fn page(store: &Store, of: Of, page: Page) -> Result<(u64, Vec<Entry>)> {
    let last = last(store, of).await?;
    let count = u64::try_from(last).unwrap_or(0);
    let to = last - i64::try_from(page.offset).unwrap_or(i64::MAX);
    if to < 1 {
        return Ok((count, Vec::new()));
    }
    let from = (to - i64::try_from(page.limit).unwrap_or(i64::MAX)).saturating_add(1).max(1);
    Ok((count, range(store, of, from, to).await?))
}

/// A page of the entries that `wanted` accepts among the newest ten thousand, newest
/// first, and the number of all accepted entries.
pub async fn search(
    store: &Store,
    of: Of,
    page: Page,
    wanted: impl Fn(&Entry) -> bool,
) -> Result<(u64, Vec<Entry>)> {
    let end_of_page = page.offset.saturating_add(page.limit);
    let last = last(store, of).await?;
    let end = (last - SEARCH_LIMIT).max(0);
    let mut to = last;
    let (mut count, mut found) = (0_u64, Vec::new());
    while to > end {
        let from = (to - STEP).max(end) + 1;
        for entry in range(store, of, from, to).await?.into_iter().filter(&wanted) {
            if (page.offset..end_of_page).contains(&count) {
                found.push(entry);
            }
            count += 1;
        }
        to = from - 1;
    }
    Ok((count, found))
}

/// The entries that `wanted` accepts in one range of the log, newest first. The range is
/// the five hundred entries before the entry number `before`, or the newest five hundred.
/// Also returns the number before which the next range ends; `None`: this range had the
/// oldest entry.
pub async fn batch(
    store: &Store,
    of: Of,
    before: Option<i64>,
    wanted: impl Fn(&Entry) -> bool,
) -> Result<(Vec<Entry>, Option<i64>)> {
    let to = match before {
        Some(number) => number - 1,
        None => last(store, of).await?,
    };
    if to < 1 {
        return Ok((Vec::new(), None));
    }
    let from = (to - STEP + 1).max(1);
    let found = range(store, of, from, to).await?.into_iter().filter(wanted).collect();
    Ok((found, (from > 1).then_some(from)))
}

/// The result of checking the audit entries of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// Every entry is unchanged, and none is missing.
    Whole {
        /// The number of entries.
        entries: u64,
    },
    /// An entry is missing or was changed.
    BrokenAt {
        /// The number of the first such entry; the oldest entry has 1.
        number: i64,
    },
}

#[derive(Debug, SurrealValue)]
struct Head {
    number: i64,
    hash: String,
}

#[derive(Debug, SurrealValue)]
struct Link {
    number: i64,
    text: String,
    hash: String,
}

const HEAD: Statement = Statement::read(
    "activity head",
    "SELECT number, hash FROM type::record('activity_head', $organization);",
);

const LINKS: Statement = Statement::read(
    "activity links",
    "SELECT record::id(id)[1] AS number, text, hash
     FROM activity:[$organization, $from]..=[$organization, $to];",
);

/// Computes the hashes of an organization's audit entries again and compares them.
/// Entries that are written during the check are not included.
pub async fn verify(store: &Store, organization: OrganizationId) -> Result<Verified> {
    let head: Option<Head> =
        store.db.run(HEAD, bind! { organization: organization.0 }).await?.row(0)?;
    let Some(head) = head else { return Ok(Verified::Whole { entries: 0 }) };
    let mut before = String::new();
    let mut next = 1;
    while next <= head.number {
        let to = (next + STEP - 1).min(head.number);
        let vars = bind! { organization: organization.0, from: next, to: to };
        for link in store.db.run(LINKS, vars).await?.rows::<Link>(0)? {
            if link.number != next || link.hash != hash(&before, &link.text) {
                return Ok(Verified::BrokenAt { number: next });
            }
            before = link.hash;
            next += 1;
        }
        if next <= to {
            return Ok(Verified::BrokenAt { number: next });
        }
    }
    if before != head.hash {
        return Ok(Verified::BrokenAt { number: head.number });
    }
    Ok(Verified::Whole { entries: u64::try_from(head.number).unwrap_or(0) })
}

fn hash(before: &str, text: &str) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::new().chain_update(before).chain_update(text).finalize();
    digest.iter().fold(String::new(), |mut hex, byte| {
        // Writing into a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
