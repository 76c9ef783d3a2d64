//! Erasures: removing the stored data of a person, with or without the person's events.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `erasure` | `[project, uuid]` | the report: who, when, which person, counts, how far it is. It stays |
//! | `erasure_pending` | `[project, uuid]` | nothing: the erasure is not done |
//! | `erasure_ids` | `[project, uuid, number]` | the distinct ids, some in each record, until the erasure is done |
//! | `erasure_of` | `[project, person]` | the last erasure of a person |
//! | `erasure_sweep` | `[uuid]` | that files must be written again because of a deleted project |
//!
//! Backups have a list of erasures beside the database (`listed`).
//!
//! One transaction ([`begin`]) removes the person, its pointers and its counts, and writes
//! these records with the audit entry. From then on readers leave out the events (`active`).
//! They are removed in the background (`work`): from blocks and segments
//! (`events/segments/erase`), from dropped and altered events (`warnings`), from snapshots of
//! persons, and then from the files of the database and the log.
//!
//! An erasure takes the events up to the last one that each partition had stored in that
//! transaction. Later events of the same distinct ids belong to a new person. See
//! `docs/adr/0025-erasure.md`.

mod active;
mod listed;
mod rows;
mod work;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::erasures::Erasure;
use weir_model::{PersonId, ProjectId, Timestamp, UserId};

use crate::db::{Failure, Operation, Statement};
use crate::events::{PARTITIONS, fingerprint};
use crate::persons::{self, LeadsTo, PersonState, PersonWrite, Versioned};
use crate::transaction::{Keyspace, RowKey, Transaction};
use crate::{Error, Result, Store, activity, counts, events};

pub use self::listed::{ErasedIds, FILE, Listed, erased_ids, note_applied, note_failed, unapplied};
pub use self::work::{
    WithoutLogEnd, changed, erase_stored, finish, note_log_end, request_sweep, without_log_end,
};

pub(crate) use self::active::{Active, Erased};
pub(crate) use self::rows::{note_removed, purge, start};

use self::rows::Report;

/// The largest number of distinct ids of a person that is erased: one transaction removes
/// what leads from them.
const MOST_IDS: usize = 100_000;
/// The largest number of distinct ids of all erasures that are not done. They are in memory.
const MOST_PENDING: usize = 1_000_000;
/// The largest number of bytes of these distinct ids, as far as persons list them.
const MOST_TEXT: usize = 64 << 20;
/// How often an erasure begins again because the person has changed.
const ATTEMPTS: u32 = 8;
/// The reason for that.
const STALE: &str = "stale person";
/// Records of persons that are read at a time.
const READ: usize = 32;

const NAME: &str = "erase a person";
const BEGIN: Operation = Operation::delete(NAME).within(Duration::from_secs(60));

/// An erasure to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewErasure {
    /// The person, or one that was merged into it.
    pub person: PersonId,
    /// Whether the events of the person are erased too.
    pub deletes_events: bool,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// The user who requested it.
    pub requested_by: UserId,
}

/// A number that changes with the erasures of any project. As long as it is the same, an answer
/// has no events of persons who were erased since.
pub fn version(store: &Store, project: ProjectId) -> u64 {
    store.erasures.numbered(project).1
}

/// What a call of [`begin`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The person is erased: nothing of it is shown any more.
    Yes(Box<Erasure>),
    /// There is no such person.
    NoPerson,
    /// The person has more distinct ids than can be erased.
    TooManyIds,
    /// Too many erasures are not done yet.
    TooManyPending,
}

/// Erases a person. Everything that was acknowledged before must be applied. `entry` is the
/// audit entry for the person with this id. The caller must not drop the call halfway: what
/// is in memory must follow what is committed.
///
/// Returns the persons whose records have changed: the caller removes them from what memory has.
///
/// # Errors
/// [`Error::Making`] when events from before an update are still counted and the person has
/// very many distinct ids; errors of the store. Nothing was erased then.
pub async fn begin(
    store: &Store,
    project: ProjectId,
    new: &NewErasure,
    entry: impl Fn(PersonId) -> Entry,
) -> Result<(Begun, Vec<PersonId>)> {
    for _ in 0..ATTEMPTS {
        let mut found = persons::resolve_versioned(store, project, [new.person]).await?;
        let Some(person) = found.remove(&new.person) else {
            return Ok((Begun::NoPerson, Vec::new()));
        };
        let Some(ids) = ids_of(store, project, &person).await? else {
            return Ok((Begun::TooManyIds, Vec::new()));
        };
        let text: usize = ids.iter().filter_map(|id| id.text.as_ref()).map(String::len).sum();
        if store.erasures.distinct_ids() + ids.len() > MOST_PENDING
            || store.erasures.text_bytes() + text > MOST_TEXT
        {
            return Ok((Begun::TooManyPending, Vec::new()));
        }
        let entries = [entry(person.person.id)];
        match erase(store, project, new, &person, ids, &entries).await {
            Err(Error::Refused { reason, .. }) if reason == STALE => {}
            done => {
                let (erasure, ids) = done?;
                return Ok((Begun::Yes(Box::new(erasure)), ids));
            }
        }
    }
    Err(Error::Conflict { statement: NAME, attempts: ATTEMPTS })
}

/// The last erasure of a person, also by the id of one that was merged into it before, if it
/// was erased by that id.
///
/// # Errors
/// When the store cannot be read.
pub async fn of_person(
    store: &Store,
    project: ProjectId,
    person: PersonId,
) -> Result<Option<Erasure>> {
    rows::of_person(store, project, person).await
}

/// A distinct id, by its first id.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ErasedId {
    id: Uuid,
    /// `None`: the person does not list it.
    text: Option<String>,
}

/// All distinct ids that lead to a person. `None`: there are too many.
async fn ids_of(
    store: &Store,
    project: ProjectId,
    person: &Versioned,
) -> Result<Option<Vec<ErasedId>>> {
    let listed = &person.person.distinct_ids;
    let of = |text: &String| ErasedId {
        id: persons::first_id(project, text).0,
        text: Some(text.clone()),
    };
    let mut ids: Vec<ErasedId> = listed.iter().map(of).collect();
    if !persons::may_list_less(listed) {
        return Ok(Some(ids));
    }
    if !counts::is_complete(store, project).await? {
        return Err(Error::Making { statement: NAME });
    }
    let known: HashSet<Uuid> = ids.iter().map(|id| id.id).chain([person.person.id.0]).collect();
    let all = counts::merged_into(store, project, known.iter().copied(), MOST_IDS).await?;
    let Some(all) = all else { return Ok(None) };
    let further = all.into_iter().filter(|id| !known.contains(id));
    ids.extend(further.map(|id| ErasedId { id, text: None }));
    Ok(Some(ids))
}

/// What the transaction of an erasure needs, encoded.
struct Plan {
    keyspace: Keyspace,
    project: ProjectId,
    id: Uuid,
    /// The person, and the id that the caller knows it by.
    persons: Vec<PersonId>,
    version: i64,
    person: RowKey,
    heads: Vec<RowKey>,
    /// The ids whose records lead to the person, and the keys of these.
    records: Vec<(Uuid, RowKey)>,
    ids: Vec<ErasedId>,
    report: Report,
    activities: (Statement, surrealdb::types::Variables),
}

async fn erase(
    store: &Store,
    project: ProjectId,
    new: &NewErasure,
    Versioned { person, version }: &Versioned,
    ids: Vec<ErasedId>,
    entries: &[Entry],
) -> Result<(Erasure, Vec<PersonId>)> {
    let keyspace = store.db.keyspace().await?;
    let mut records: Vec<Uuid> = ids.iter().map(|id| id.id).chain([person.id.0]).collect();
    records.sort_unstable();
    records.dedup();
    let all: Vec<PersonId> = records.iter().map(|id| PersonId(*id)).collect();
    let record = |id: Uuid| -> Result<(Uuid, RowKey)> {
        Ok((id, keyspace.key(persons::key(project, PersonId(id)))?))
    };
    let mut known = vec![person.id, new.person];
    known.dedup();
    let segments = match new.deletes_events {
        true => events::segment_count(store, project).await?,
        false => 0,
    };
    let id = crate::ids::time_ordered(new.requested_at);
    let plan = Arc::new(Plan {
        keyspace,
        project,
        id,
        persons: known,
        version: *version,
        person: keyspace.key(persons::key(project, person.id))?,
        heads: keyspace.keys((0..PARTITIONS).map(|of| events::head_key(project, of)))?,
        records: records.into_iter().map(record).collect::<Result<_>>()?,
        report: Report::new(new, person.id, ids.len(), segments),
        ids,
        activities: activity::within(entries)?,
    });
    // Events from before an update must not be counted meanwhile.
    let changing = match counts::is_complete(store, project).await? {
        true => None,
        false => Some(store.segments.changing().await?),
    };
    let locks = store.locks.take(entries.iter().map(|entry| entry.organization_id.0)).await;
    let work = {
        let plan = Arc::clone(&plan);
        move |tx: Transaction| {
            let plan = Arc::clone(&plan);
            async move { plan.write(&tx).await }
        }
    };
    // It removes merges. Whatever its outcome is, the map of persons is made again.
    let ticket = store.people.begin_removal(project);
    let (report, ids) = store.db.transact(BEGIN, (changing, locks, ticket), work).await?;
    let pending = report.pending(id, &ids, project);
    let ids = pending.ids.clone();
    store.erasures.add(project, pending);
    // Decoded events of the person.
    store.blocks.forget(project);
    listed::append(store, project, id, &report, &ids).await;
    Ok((report.erasure(id), all))
}

impl Plan {
    /// Writes the erasure. Returns the report, and the distinct ids that lead to the person.
    async fn write(&self, tx: &Transaction) -> Result<(Report, Vec<ErasedId>), Failure> {
        let Self { keyspace, project, .. } = *self;
        let (statement, vars) = &self.activities;
        tx.run(*statement, vars.clone()).await?;
        let person: Option<LeadsTo> = tx.get_for_update(&self.person).await?;
        if person.is_none_or(|person| person.version != self.version) {
            return Err(tx.refusal(STALE));
        }
        let heads: Vec<Option<events::Head>> = tx.get(&self.heads).await?;
        let bounds = heads.iter().map(|head| head.as_ref().map_or(0, |head| head.last));
        let mut report = self.report.clone();
        report.bounds = bounds.collect();
        let others = self.remove_persons(tx).await?;
        let is_ours = |id: &Uuid| !others.contains(id);
        let ids: Vec<Uuid> = self.records.iter().map(|(id, _)| *id).filter(is_ours).collect();
        counts::forget(tx, keyspace, project, &ids, !report.deletes_events).await?;
        let ids: Vec<ErasedId> = self.ids.iter().filter(|of| is_ours(&of.id)).cloned().collect();
        for row in report.rows(keyspace, project, self.id, &self.persons, &ids)? {
            tx.set(&row).await?;
        }
        Ok((report, ids))
    }

    /// Removes the person and the pointers to it. Their versions stay. Returns the ids that
    /// have another person.
    async fn remove_persons(&self, tx: &Transaction) -> Result<HashSet<Uuid>, Failure> {
        let mut found: HashMap<Uuid, LeadsTo> = HashMap::new();
        for some in self.records.chunks(READ) {
            let keys: Vec<&RowKey> = some.iter().map(|(_, key)| key).collect();
            let records: Vec<Option<LeadsTo>> = tx.get(&keys).await?;
            for ((id, _), record) in some.iter().zip(records) {
                if let Some(record) = record.filter(|record| record.erased != Some(true)) {
                    found.insert(*id, record);
                }
            }
        }
        let mut others = HashSet::new();
        for (id, _) in &self.records {
            let Some(record) = found.get(id) else { continue };
            if !self.leads(&found, *id) {
                others.insert(*id);
                continue;
            }
            let id = PersonId(*id);
            let version = record.version.saturating_add(1);
            let (state, expected) = (PersonState::Erased, None);
            let content = persons::content(PersonWrite { id, state, expected, version });
            let row = self.keyspace.row(persons::key(self.project, id), content)?;
            tx.set(&row).await?;
        }
        Ok(others)
    }

    /// Whether an id leads to the person, directly or through others of these.
    fn leads(&self, found: &HashMap<Uuid, LeadsTo>, id: Uuid) -> bool {
        let mut at = id;
        for _ in 0..persons::HOPS {
            if self.persons.first() == Some(&PersonId(at)) {
                return true;
            }
            match found.get(&at).and_then(|record| record.merged_into) {
                Some(into) => at = into,
                None => return false,
            }
        }
        false
    }
}

/// The fingerprints of the distinct ids that are known.
fn prints(project: ProjectId, ids: &[ErasedId]) -> Vec<u32> {
    let texts = ids.iter().filter_map(|id| id.text.as_deref());
    texts.map(|text| fingerprint(project, text)).collect()
}
