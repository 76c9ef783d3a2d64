//! Historical migrations: the sources of imported events by day, and the migrations that
//! users have announced.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `import_source` | `[project, day, hash]` | counts of a key and library on a day |
//! | `import_plan` | `[project, uuid]` | an announced migration |
//!
//! Sources are counted in memory and written once a minute by the one task that writes
//! traffic (`traffic`). So a record is read, added to and replaced.

use std::collections::BTreeMap;

use surrealdb::types::{Array, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::{Uuid, uuid};
use weir_model::activity::Entry;
use weir_model::imports::{ImportCounts, ImportPlan, ImportSource};
use weir_model::{ProjectId, Timestamp};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::events::{part, range};
use crate::warnings::of_project;
use crate::{Error, Result, Store};

/// Days for which sources are kept.
pub const DAYS: i64 = 400;
/// The largest number of sources of a project on one day. Client libraries name
/// themselves, so further ones are counted as [`OTHERS`].
const SOURCES: usize = 20;
/// The name under which further client libraries are counted.
const OTHERS: &str = "others";
/// Namespace of the hashes of sources. It must never change, because ids depend on it.
const NAMESPACE: Uuid = uuid!("5f0f9c0e-6f0b-4f39-8a52-1a3b0f6b2d57");

const RANGE: Statement = Statement::read("imports in order", "SELECT * FROM $range;");
const WRITE: Statement = Statement::write(
    "imports write",
    "BEGIN; FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }; COMMIT;",
);
const PLAN: Statement = Statement::read("import plan", "SELECT * FROM $ids;");
const PUT_PLAN: Statement = Statement::write(
    "import plan put",
    concat!(
        "BEGIN;
         UPSERT $row.id CONTENT $row RETURN NONE;",
        write_activities!(),
        "COMMIT;"
    ),
);
const DELETE: Statement = Statement::delete("imports of long ago", "DELETE $range RETURN NONE;")
    .within(std::time::Duration::from_secs(60));

#[derive(Clone, SurrealValue)]
struct StoredReason {
    code: String,
    count: i64,
}

#[derive(SurrealValue)]
struct SourceRow {
    id: RecordId,
    source_key: String,
    library: String,
    historical: bool,
    accepted: i64,
    dropped: i64,
    first_at: i64,
    last_at: i64,
    oldest: i64,
    newest: i64,
    begins: i64,
    ends: i64,
    out_of_order: i64,
    future: i64,
    missing_ids: i64,
    minutes: i64,
    peak: i64,
    minute: i64,
    in_minute: i64,
    reasons: Vec<StoredReason>,
}

#[derive(SurrealValue)]
struct PlanRow {
    id: RecordId,
    source: String,
    file: String,
    note: String,
    total: Option<i64>,
    created_at: i64,
    baseline: i64,
    finished_at: Option<i64>,
    sent: Option<i64>,
}

/// The sources of imported events, in order of days.
///
/// # Errors
/// When the store cannot be read.
pub async fn sources(store: &Store, project: ProjectId) -> Result<Vec<ImportSource>> {
    let range = of_project("import_source", project);
    let rows: Vec<SourceRow> = store.db.run(RANGE, bind! { range: range }).await?.rows(0)?;
    rows.into_iter().map(source).collect()
}

/// Adds the sources that were counted since the last call, in the order of `new`.
///
/// # Errors
/// When the store cannot be read or written. A part of the sources may be written.
pub async fn write(store: &Store, new: &[(ProjectId, ImportSource)]) -> Result<()> {
    let mut days: BTreeMap<(ProjectId, i64), Vec<&ImportSource>> = BTreeMap::new();
    for (project, source) in new {
        days.entry((*project, source.day)).or_default().push(source);
    }
    for ((project, day), new) in days {
        let ids = range("import_source", &[project.0, day], &[project.0, day + 1]);
        let rows: Vec<SourceRow> = store.db.run(RANGE, bind! { range: ids }).await?.rows(0)?;
        let mut known: Vec<ImportSource> = rows.into_iter().map(source).collect::<Result<_>>()?;
        let mut changed: BTreeMap<Uuid, ImportSource> = BTreeMap::new();
        for source in new {
            let united = unite(&mut known, source);
            changed.insert(hash(&united), united);
        }
        let rows: Vec<SourceRow> =
            changed.into_iter().map(|(hash, source)| row(project, hash, source)).collect();
        store.db.run(WRITE, bind! { rows: rows }).await?;
    }
    Ok(())
}

/// Adds a source to the sources of its day, and returns the sum.
fn unite(known: &mut Vec<ImportSource>, new: &ImportSource) -> ImportSource {
    let place = |known: &[ImportSource], library: &str| {
        known.iter().position(|present| {
            present.key == new.key
                && present.historical == new.historical
                && present.library == library
        })
    };
    let library = match place(known, &new.library) {
        None if known.len() >= SOURCES => OTHERS,
        Some(_) | None => new.library.as_str(),
    };
    if let Some(present) = place(known, library).and_then(|at| known.get_mut(at)) {
        present.counts.add(&new.counts);
        return present.clone();
    }
    let first = ImportSource { library: library.to_owned(), ..new.clone() };
    known.push(first.clone());
    first
}

/// The announced migrations, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn plans(store: &Store, project: ProjectId) -> Result<Vec<ImportPlan>> {
    let range = of_project("import_plan", project);
    let rows: Vec<PlanRow> = store.db.run(RANGE, bind! { range: range }).await?.rows(0)?;
    let mut plans: Vec<ImportPlan> = rows.into_iter().map(plan).collect::<Result<_>>()?;
    plans.reverse();
    Ok(plans)
}

/// One announced migration.
///
/// # Errors
/// When the store cannot be read.
pub async fn get_plan(store: &Store, project: ProjectId, id: Uuid) -> Result<Option<ImportPlan>> {
    let ids = vec![plan_id(project, id)];
    let row: Option<PlanRow> = store.db.run(PLAN, bind! { ids: ids }).await?.row(0)?;
    row.map(plan).transpose()
}

/// Writes a migration, replacing its stored record, and its audit entries.
///
/// # Errors
/// When the store cannot be written.
pub async fn put_plan(
    store: &Store,
    project: ProjectId,
    plan: &ImportPlan,
    activities: &[Entry],
) -> Result<()> {
    let row = PlanRow {
        id: plan_id(project, plan.id),
        source: plan.source.clone(),
        file: plan.file.clone(),
        note: plan.note.clone(),
        total: plan.total.map(signed),
        created_at: plan.created_at.micros(),
        baseline: signed(plan.baseline),
        finished_at: plan.finished.map(|(at, _)| at.micros()),
        sent: plan.finished.map(|(_, sent)| signed(sent)),
    };
    activity::change(store, PUT_PLAN, bind! { row: row }, activities).await.map(drop)
}

/// Removes sources of days that are kept no longer.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub async fn forget(store: &Store, project: ProjectId, today: i64) -> Result<()> {
    let range = range("import_source", &[project.0, 0], &[project.0, today - DAYS]);
    store.db.run(DELETE, bind! { range: range }).await.map(drop)
}

/// Removes all sources and migrations of a project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    for table in ["import_source", "import_plan"] {
        store.db.run(DELETE, bind! { range: of_project(table, project) }).await?;
    }
    Ok(())
}

fn hash(source: &ImportSource) -> Uuid {
    let ImportSource { key, library, historical, .. } = source;
    Uuid::new_v5(&NAMESPACE, format!("{historical}\n{key}\n{library}").as_bytes())
}

fn plan_id(project: ProjectId, id: Uuid) -> RecordId {
    let parts = vec![Value::Number(project.0.into()), Value::Uuid(id.into())];
    RecordId::new("import_plan", RecordIdKey::Array(Array::from(parts)))
}

fn row(project: ProjectId, hash: Uuid, source: ImportSource) -> SourceRow {
    let ImportSource { day, key, library, historical, counts } = source;
    let parts =
        vec![Value::Number(project.0.into()), Value::Number(day.into()), Value::Uuid(hash.into())];
    let reason = |(code, count): (String, u64)| StoredReason { code, count: signed(count) };
    SourceRow {
        id: RecordId::new("import_source", RecordIdKey::Array(Array::from(parts))),
        source_key: key,
        library,
        historical,
        accepted: signed(counts.accepted),
        dropped: signed(counts.dropped),
        first_at: counts.first_at,
        last_at: counts.last_at,
        oldest: counts.oldest,
        newest: counts.newest,
        begins: counts.begins,
        ends: counts.ends,
        out_of_order: signed(counts.out_of_order),
        future: signed(counts.future),
        missing_ids: signed(counts.missing_ids),
        minutes: signed(counts.minutes),
        peak: signed(counts.peak),
        minute: counts.minute,
        in_minute: signed(counts.in_minute),
        reasons: counts.reasons.into_iter().map(reason).collect(),
    }
}

fn source(row: SourceRow) -> Result<ImportSource> {
    let reasons = row.reasons.into_iter().map(|kept| (kept.code, unsigned(kept.count)));
    Ok(ImportSource {
        day: part(&row.id, 1, RANGE.name)?,
        key: row.source_key,
        library: row.library,
        historical: row.historical,
        counts: ImportCounts {
            accepted: unsigned(row.accepted),
            dropped: unsigned(row.dropped),
            first_at: row.first_at,
            last_at: row.last_at,
            oldest: row.oldest,
            newest: row.newest,
            begins: row.begins,
            ends: row.ends,
            out_of_order: unsigned(row.out_of_order),
            future: unsigned(row.future),
            missing_ids: unsigned(row.missing_ids),
            minutes: unsigned(row.minutes),
            peak: unsigned(row.peak),
            minute: row.minute,
            in_minute: unsigned(row.in_minute),
            reasons: reasons.collect(),
        },
    })
}

fn plan(row: PlanRow) -> Result<ImportPlan> {
    let wrong = || Error::Shape { statement: PLAN.name, detail: "unexpected id".to_owned() };
    let RecordIdKey::Array(parts) = &row.id.key else { return Err(wrong()) };
    let Some(Value::Uuid(id)) = parts.get(1) else { return Err(wrong()) };
    let finished = row.finished_at.zip(row.sent);
    Ok(ImportPlan {
        id: Uuid::from_bytes(*id.as_bytes()),
        source: row.source,
        file: row.file,
        note: row.note,
        total: row.total.map(unsigned),
        created_at: Timestamp::from_micros(row.created_at),
        baseline: unsigned(row.baseline),
        finished: finished.map(|(at, sent)| (Timestamp::from_micros(at), unsigned(sent))),
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Location, Settings};

    const PROJECT: ProjectId = ProjectId(4);

    fn source_of(library: &str, accepted: u64) -> (ProjectId, ImportSource) {
        let counts = ImportCounts {
            accepted,
            dropped: 1,
            first_at: 5,
            last_at: 6,
            oldest: 1,
            newest: 2,
            begins: 1,
            ends: 2,
            out_of_order: 0,
            future: 0,
            missing_ids: 1,
            minutes: 1,
            peak: accepted,
            minute: 0,
            in_minute: accepted,
            reasons: [("missing_distinct_id".to_owned(), 1)].into(),
        };
        let (key, library) = ("phc_a".to_owned(), library.to_owned());
        (PROJECT, ImportSource { day: 20_000, key, library, historical: true, counts })
    }

    #[tokio::test]
    async fn sources_are_added_to_and_have_a_bound() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        write(&store, &[source_of("python", 10)]).await.unwrap();
        write(&store, &[source_of("python", 5)]).await.unwrap();
        let found = sources(&store, PROJECT).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].counts.accepted, found[0].counts.sent()), (15, 17));
        assert_eq!(found[0].counts.reasons.get("missing_distinct_id"), Some(&2));

        let many: Vec<_> = (0..50).map(|n| source_of(&format!("made up {n}"), 1)).collect();
        write(&store, &many).await.unwrap();
        let found = sources(&store, PROJECT).await.unwrap();
        assert_eq!(found.len(), SOURCES + 1);
        let others = found.iter().find(|source| source.library == OTHERS).unwrap();
        assert_eq!(others.counts.accepted, 50 - 19);

        forget(&store, PROJECT, 20_000 + DAYS).await.unwrap();
        assert_eq!(sources(&store, PROJECT).await.unwrap().len(), SOURCES + 1);
        forget(&store, PROJECT, 20_001 + DAYS).await.unwrap();
        assert!(sources(&store, PROJECT).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn plans_are_kept_until_their_project_goes() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let mut plan = ImportPlan {
            id: crate::ids::time_ordered(Timestamp::from_micros(5_000_000)),
            source: "Old tool".to_owned(),
            file: "events.jsonl".to_owned(),
            note: String::new(),
            total: Some(100),
            created_at: Timestamp::from_micros(5_000_000),
            baseline: 3,
            finished: None,
        };
        put_plan(&store, PROJECT, &plan, &[]).await.unwrap();
        plan.finished = Some((Timestamp::from_micros(9), 97));
        put_plan(&store, PROJECT, &plan, &[]).await.unwrap();
        assert_eq!(plans(&store, PROJECT).await.unwrap(), [plan.clone()]);
        assert_eq!(get_plan(&store, PROJECT, plan.id).await.unwrap(), Some(plan.clone()));
        assert_eq!(get_plan(&store, ProjectId(5), plan.id).await.unwrap(), None);
        purge(&store, PROJECT).await.unwrap();
        assert!(plans(&store, PROJECT).await.unwrap().is_empty());
    }
}
