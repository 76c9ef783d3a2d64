//! The activity log: append-only, in order, chained by hashes (SEC-24).
//!
//! What belongs here: the part of a transaction that writes an entry beside the
//! change that it tells of, and reading entries back. What does not: what an
//! entry says (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `activity` | `[organization, number]` | the entry as JSON text, and the hash of that text after the hash before it |
//! | `activity_of_project` | `[organization, project, number]` | the number in the organization |
//! | `activity_head` | organization | the last number, its hash and its id |
//! | `activity_head` | `[organization, project]` | the last number of the project |
//!
//! Numbers are dense, so a page is a narrow range wherever it begins. Nothing
//! here changes or removes an entry. A project that goes to another organization
//! leaves its entries behind: they tell of people there.

use sha2::{Digest, Sha256};
use surrealdb::types::{SurrealValue, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::pagination::Page;
use weir_model::{BatchExportId, OrganizationId, ProjectId};

use crate::bind::bind;
use crate::db::{Answer, Statement};
use crate::{Error, Result, Store};

/// How far back a search through entries looks.
const LOOK: i64 = 10_000;
/// How many entries a search reads at a time.
const STEP: i64 = 500;

/// An entry as a statement binds it.
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
        // One entry that cannot be read would hide all others for ever: values
        // can be nested deeper than can be read back.
        serde_json::from_str::<Entry>(&text).map_err(shape)?;
        Ok(Self {
            uuid: entry.id,
            organization: entry.organization_id.0,
            project: entry.team_id.map(|project| project.0),
            text,
        })
    }
}

/// Writes the entries `$activities`. Part of the transactions that change
/// management data, which [`change`] runs: what cannot be logged does not happen.
/// An entry that is the last already is not written again, so that a transaction
/// whose outcome is unknown can be repeated.
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

/// Runs a transaction with [`write_activities`] in it, when the organizations
/// that `entries` tell of have their turn: changes of one organization all write
/// the head of its log (`turns`).
///
/// # Errors
/// Any failure of the store.
pub(crate) async fn change(
    store: &Store,
    statement: Statement,
    vars: Variables,
    entries: &[Entry],
) -> Result<Answer> {
    change_holding(store, statement, vars, entries, ()).await
}

/// The same with something that is dropped when the transaction has ended, whether
/// the caller waits for it or not.
///
/// # Errors
/// Any failure of the store.
pub(crate) async fn change_holding(
    store: &Store,
    statement: Statement,
    mut vars: Variables,
    entries: &[Entry],
    held: impl Send + 'static,
) -> Result<Answer> {
    let stored: Result<Vec<Stored>> = entries.iter().map(Stored::try_from).collect();
    vars.insert("activities", stored?);
    let turns = store.turns.take(entries.iter().map(|entry| entry.organization_id.0)).await;
    store.db.run_holding(statement, vars, (held, turns)).await
}

/// The same for a change of these exports, whose runs write the same records: it waits
/// for their turns first, so that running exports cannot outrun it.
///
/// # Errors
/// Any failure of the store.
pub(crate) async fn change_exports(
    store: &Store,
    statement: Statement,
    vars: Variables,
    entries: &[Entry],
    exports: impl IntoIterator<Item = BatchExportId>,
    held: impl Send + 'static,
) -> Result<Answer> {
    // Always before those of organizations: nobody who has one of those waits for these.
    let turns = store.turns.take(exports.into_iter().map(|export| export.0)).await;
    change_holding(store, statement, vars, entries, (held, turns)).await
}

const WRITE: Statement =
    Statement::write("activity write", concat!("BEGIN;", write_activities!(), "COMMIT;"));

/// Writes entries about what is no change of the store: a refused call, work
/// that was started.
///
/// # Errors
/// Any failure of the store.
pub async fn write(store: &Store, entries: &[Entry]) -> Result<()> {
    change(store, WRITE, bind! {}, entries).await.map(drop)
}

/// Whose entries are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All of an organization.
    Organization(OrganizationId),
    /// Those about one of its projects.
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

/// The newest entry's number: there are as many.
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

/// A page of entries, newest first, and how many there are in all.
///
/// # Errors
/// Any failure of the store.
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

/// A page of the entries that `wanted` picks among the newest ten thousand, newest
/// first, and how many it picks in all.
///
/// # Errors
/// Any failure of the store.
pub async fn search(
    store: &Store,
    of: Of,
    page: Page,
    wanted: impl Fn(&Entry) -> bool,
) -> Result<(u64, Vec<Entry>)> {
    let end_of_page = page.offset.saturating_add(page.limit);
    let last = last(store, of).await?;
    let end = (last - LOOK).max(0);
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

/// The entries that `wanted` picks in one stretch of the log, newest first: of the
/// five hundred before the entry numbered `before`, or of the newest. With them
/// the number before which the next stretch lies; `None`: this was the oldest.
///
/// # Errors
/// Any failure of the store.
pub async fn stretch(
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

/// What became of checking an organization's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// Every entry is as it was written, and none is missing.
    Whole {
        /// How many there are.
        entries: u64,
    },
    /// The first entry that is missing, or that is not as it was written.
    BrokenAt {
        /// Its number; the oldest has 1.
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

/// Works out the hashes of an organization's entries again. Entries that are
/// written meanwhile are not looked at.
///
/// # Errors
/// Any failure of the store.
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
