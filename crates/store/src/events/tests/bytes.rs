//! Records have the bytes that statements write. Data directories hold records of both.
//! The index of uuids, which has no records any more, is in `uuids`.

use surrealdb::types::{RecordId, SurrealValue, Value};
use weir_model::PersonId;
use weir_model::Timestamp;
use weir_model::definitions::{EventDefinition, PropertyDefinition, PropertyKind, PropertyOwner};

use super::support::{PROJECT, ada, batch, event, events};
use super::uuids::write_older_uuids;
use crate::bind::bind;
use crate::db::Statement;
use crate::events::apply::updates::{Rule, Update, Updates};
use crate::events::apply::{Content, Records};
use crate::events::{Apply, Sample, Span, WarningCount, apply};
use crate::groups::{GroupWrite, TypesWrite};
use crate::persons::{Merged, PersonState, PersonWrite};
use crate::tests::stores;
use crate::transaction::tests::stored;
use crate::warnings::{Affected, AffectedBuilder};
use crate::{Store, persons};

const TABLES: [&str; 13] = [
    "affected_block",
    "affected_summary",
    "event_block",
    "event_definition",
    "event_group",
    "event_head",
    "event_summary",
    "event_time",
    "group_types",
    "ingest_position",
    "ingestion_warning",
    "person",
    "property_definition",
];

/// The statements that wrote a batch before its records were written without any.
const WRITE: Statement = Statement::write(
    "test",
    "BEGIN;
    UPSERT $position SET offset = $to.offset, index = $to.index RETURN NONE;
    FOR $row IN $replaced { UPSERT $row.id CONTENT $row RETURN NONE };
    INSERT IGNORE INTO event_time $times RETURN NONE;
    FOR $row IN $changed { UPDATE $row.id CONTENT $row.content RETURN NONE };
    INSERT INTO event_group $groups RETURN NONE;
    INSERT INTO person $persons RETURN NONE;
    COMMIT;",
);

const EVENT_NAMES: Statement = Statement::write(
    "define events",
    "FOR $row IN $rows {
        UPSERT $row.id SET first_at = first_at ?? $row.first_at, last_at = $row.last_at
            RETURN NONE;
    };",
);
const PROPERTY_NAMES: Statement = Statement::write(
    "define properties",
    "INSERT IGNORE INTO property_definition $rows RETURN NONE;",
);
const WARNINGS: Statement = Statement::write(
    "count warnings",
    "FOR $row IN $rows {
        UPSERT $row.id SET count = (count ?? 0) + $row.count,
            first_at = first_at ?? $row.first_at, last_at = $row.last_at,
            samples = array::slice(array::concat($row.samples, samples ?? []), 0, 5) RETURN NONE;
    };",
);
const GROUP_TYPES: Statement = Statement::write(
    "add group types",
    "FOR $row IN $rows {
        LET $present = (SELECT VALUE names FROM ONLY $row.id) ?? [];
        IF array::len($present) != $row.expected { THROW 'stale group types' };
        UPSERT $row.id SET names = $row.names RETURN NONE;
    };",
);

#[derive(SurrealValue)]
struct Changed {
    id: RecordId,
    content: Value,
}

fn with_id((id, content): Content) -> Value {
    let Value::Object(mut row) = content else { panic!("{id:?}") };
    row.insert("id", id);
    Value::Object(row)
}

async fn write_by_statements(store: &Store, batch: Apply) {
    let records = Records::of(batch, store.db.keyspace().await.unwrap()).unwrap();
    let is_of = |table: &'static str| move |(id, _): &Content| id.table.as_str() == table;
    let rows = |all: Vec<Content>| all.into_iter().map(with_id).collect::<Vec<_>>();
    let (times, replaced) = records.replaced.into_iter().partition(is_of("event_time"));
    let (groups, new): (Vec<_>, Vec<_>) = records.new.into_iter().partition(is_of("event_group"));
    assert!(new.iter().all(is_of("person")));
    let changed: Vec<Changed> = records
        .changed
        .into_iter()
        .map(|change| Changed { id: change.record.0, content: change.record.1 })
        .collect();
    let vars = bind! {
        position: records.position.0,
        to: records.position.1,
        replaced: rows(replaced),
        times: rows(times),
        changed: changed,
        groups: rows(groups),
        persons: rows(new),
    };
    store.db.run(WRITE, vars).await.unwrap();
    write_older_uuids(store, &records.uuids).await;
    for (statement, vars) in records.statements {
        store.db.run(statement, vars).await.unwrap();
    }
    let Updates { names, warnings, .. } = records.updates;
    for Update { id, mut content, rule, .. } in names.into_iter().chain(warnings) {
        let statement = match rule {
            Rule::EventName => EVENT_NAMES,
            Rule::PropertyName => PROPERTY_NAMES,
            Rule::Warning => WARNINGS,
            Rule::GroupTypes { expected } => {
                content.insert("expected", i64::try_from(expected).unwrap());
                GROUP_TYPES
            }
        };
        let rows = vec![with_id((id, Value::Object(content)))];
        store.db.run(statement, bind! { rows: rows }).await.unwrap();
    }
}

/// Two batches with records of every kind. The second one changes records of the first.
fn batches() -> [Apply; 2] {
    let merged = PersonState::Merged(Merged {
        into: persons::first_id(PROJECT, "a"),
        at: -5,
        by: event(3, "b").uuid,
    });
    let person = |id: PersonId, state, version: i64| PersonWrite {
        id,
        state,
        expected: (version > 0).then(|| version - 1),
        version,
    };
    let group = |version: i64| GroupWrite {
        index: 1,
        key: "Ünïcode".to_owned(),
        properties: format!(r#"{{"version":{version}}}"#),
        created_at: i64::MAX,
        expected: (version > 0).then(|| version - 1),
        version,
    };
    let dropped = |received_at| Affected {
        codes: vec!["missing_event_name".to_owned()],
        is_stored: false,
        received_at,
        detail: None,
        event: Some("e".to_owned()),
        distinct_id: None,
        uuid: None,
        payload: "{}".to_owned(),
    };
    let complete = |mut batch: Apply, version: i64| {
        let write = &mut batch.projects[0];
        write.persons = vec![
            person(persons::first_id(PROJECT, "a"), ada(&format!("[{version}]")), version),
            person(persons::first_id(PROJECT, "b"), merged.clone(), version),
        ];
        write.groups = vec![group(version)];
        let types = ["company", "team"].map(str::to_owned);
        let expected = usize::try_from(version).unwrap();
        write.group_types = Some(TypesWrite { names: types[..=expected].to_vec(), expected });
        let at = Timestamp::from_micros(version);
        write.event_names =
            vec![EventDefinition { name: "e".to_owned(), first_at: at, last_at: at }];
        write.property_names = vec![PropertyDefinition {
            owner: PropertyOwner::Event,
            name: "p".to_owned(),
            kind: PropertyKind::Text,
            first_at: at,
        }];
        let sample = Sample {
            code: "missing_event_name".to_owned(),
            received_at: version,
            detail: None,
            event: Some("e".to_owned()),
            distinct_id: None,
            payload: "{}".to_owned(),
        };
        write.warnings = vec![WarningCount {
            code: "missing_event_name".to_owned(),
            count: 1,
            seen: Span { from: version, to: version },
            sample: Some(sample),
        }];
        let mut block = AffectedBuilder::begin(0);
        for received_at in 0..=version {
            block.push(&dropped(received_at)).unwrap();
        }
        write.affected = vec![block.finish().unwrap()];
        batch
    };
    // The first block spans more than an hour, so its summary lists seconds.
    let mut wide = events(1, 40, "a");
    wide[39].timestamp += 86_400_000_000;
    let mut second = batch(0, 10, 20, &events(41, 43, "b"));
    // The rewritten block has the id of the first one.
    let mut rewritten = batch(0, 0, 10, &wide).projects.remove(0).blocks;
    second.projects[0].blocks.append(&mut rewritten);
    [complete(batch(0, 0, 10, &wide), 0), complete(second, 1)]
}

#[tokio::test]
async fn records_have_the_bytes_that_statements_write() {
    let mut expected = None;
    for by_statements in [[true, true], [true, false], [false, true], [false, false]] {
        let (stores, _directory) = stores().await;
        for store in &stores {
            for (batch, by_statements) in batches().into_iter().zip(by_statements) {
                match by_statements {
                    true => write_by_statements(store, batch).await,
                    false => apply(store, batch).await.unwrap(),
                }
            }
            let found = stored(store, &TABLES).await;
            assert_eq!(*expected.get_or_insert_with(|| found.clone()), found, "{by_statements:?}");
        }
    }
}
