//! Events with difficult values, and runs that export them.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;
use weir_egress::{Egress, Rules};
use weir_export::destination::{Destination, Failure, Job, Writer};
use weir_export::destinations::{Dependencies, open};
use weir_export::rows::{Batch, EventWithPerson, Person};
use weir_model::exports::ExportModel;
use weir_model::{BatchExportId, PersonId, ProjectId, RunId, Timestamp};
use weir_store::events::StoredEvent;

/// The names of the run's files, without prefix and extension.
pub(crate) const STEM: &str = "2026-08-21T14:00:00+00:00-2026-08-21T15:00:00+00:00";
/// Every format with every codec, and the extension of the files.
pub(crate) const KINDS: [(&str, Option<&str>, &str); 9] = [
    ("JSONLines", None, "jsonl"),
    ("JSONLines", Some("gzip"), "jsonl.gz"),
    ("JSONLines", Some("brotli"), "jsonl.br"),
    ("Parquet", None, "parquet"),
    ("Parquet", Some("zstd"), "parquet.zst"),
    ("Parquet", Some("lz4"), "parquet.lz4"),
    ("Parquet", Some("snappy"), "parquet.sz"),
    ("Parquet", Some("gzip"), "parquet.gz"),
    ("Parquet", Some("brotli"), "parquet.br"),
];
/// 2026-08-21T14:05:00.000001Z
const TIME: i64 = 1_787_321_100_000_001;
/// Properties as they were sent. Their numbers and blanks must not change.
pub(crate) const PROPERTIES: &str = "{\"big\": 9007199254740993,\n \"tiny\":1.10e-7,\
     \"deep\":{\"a\":[1,{\"b\":null}]},\"text\":\"naïve 🦀 \\u0000 \\\"q\\\"\",\"none\":null}";
/// Properties of a person.
pub(crate) const PERSON: &str = r#"{"email":"ada@example.com","n":9223372036854775808}"#;

/// Dependencies that may dial this machine.
pub(crate) fn dependencies(local_root: Option<PathBuf>) -> Dependencies {
    let rules = Rules { allow: vec!["127.0.0.1/32".parse().unwrap()], own: Vec::new() };
    Dependencies::new(Egress::new(rules).unwrap(), local_root)
}

pub(crate) fn destination(kind: &str, config: &Value) -> Box<dyn Destination> {
    opened(kind, config, &dependencies(None)).unwrap()
}

pub(crate) fn opened(
    kind: &str,
    config: &Value,
    dependencies: &Dependencies,
) -> Result<Box<dyn Destination>, Failure> {
    open(kind, config.as_object().unwrap(), dependencies)
}

/// Settings, some of which `others` replace.
pub(crate) fn with(mut config: Value, others: Value) -> Value {
    for (name, value) in others.as_object().unwrap() {
        config[name] = value.clone();
    }
    config
}

pub(crate) fn job(destination: &dyn Destination) -> Job {
    Job {
        export: BatchExportId(Uuid::from_u128(1)),
        run: RunId(Uuid::from_u128(2)),
        project: ProjectId(3),
        start: Timestamp::parse("2026-08-21T14:00:00Z"),
        end: Timestamp::parse("2026-08-21T15:00:00Z").unwrap(),
        by_time: false,
        model: ExportModel::Events,
        columns: Arc::new(destination.columns()),
        cursor: None,
    }
}

fn event(number: u64) -> StoredEvent {
    StoredEvent {
        arrival: number,
        uuid: Uuid::from_u128(u128::from(number)),
        event: "paid".to_owned(),
        distinct_id: format!("user-{}", number % 7),
        timestamp: TIME + i64::try_from(number).unwrap(),
        received_at: TIME + 1_000_000,
        properties: format!("{{\"n\":{number}}}"),
        elements_chain: String::new(),
        historical: false,
        warnings: Vec::new(),
    }
}

/// One event with all difficult values, and one with none.
pub(crate) fn odd() -> Vec<EventWithPerson> {
    let person = Person { id: PersonId(Uuid::from_u128(9)), properties: PERSON.to_owned() };
    let hard = StoredEvent {
        event: "naïve \"🦀\"\n\t\\".to_owned(),
        distinct_id: "a\u{0}b".to_owned(),
        properties: PROPERTIES.to_owned(),
        elements_chain: "button:nth-child=\"1\"text=\"Buy\"".to_owned(),
        ..event(1)
    };
    let empty = StoredEvent { timestamp: -1, properties: "{}".to_owned(), ..event(2) };
    vec![
        EventWithPerson { event: hard, person: Some(Arc::new(person)) },
        EventWithPerson { event: empty, person: None },
    ]
}

/// Events of one kilobyte that do not compress well.
pub(crate) fn many(count: u64) -> Vec<EventWithPerson> {
    let mut state = 1_u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:08x}", state >> 32)
    };
    let large = |number: u64| {
        let text: String = std::iter::repeat_with(&mut noise).take(110).collect();
        let properties = json!({"n": number, "text": text}).to_string();
        EventWithPerson { event: StoredEvent { properties, ..event(number) }, person: None }
    };
    (0..count).map(large).collect()
}

/// Writes all records.
pub(crate) async fn write(
    destination: &dyn Destination,
    writer: &mut dyn Writer,
    records: &[EventWithPerson],
) -> Result<(), Failure> {
    let columns = destination.columns();
    for records in records.chunks(500) {
        let row = |record: &EventWithPerson| {
            columns.row_if_included(ProjectId(3), TIME, record).unwrap().unwrap().cells
        };
        let rows = records.iter().map(row).collect();
        let arrivals = Some(records.iter().map(|record| record.event.arrival).collect());
        writer.write(Batch { rows, arrivals }).await?;
    }
    Ok(())
}

/// Exports the records in one run.
pub(crate) async fn export(
    destination: &dyn Destination,
    records: &[EventWithPerson],
) -> Result<(), Failure> {
    let mut writer = destination.begin(job(destination)).await?;
    let ended = match write(destination, writer.as_mut(), records).await {
        Ok(()) => writer.finish().await,
        failed => failed,
    };
    if ended.is_err() {
        writer.abort().await;
    }
    ended
}

/// Runs all steps of the test.
pub(crate) async fn test(destination: &dyn Destination) -> Vec<Result<(), &'static str>> {
    let mut outcomes = Vec::new();
    for step in 0..destination.steps().len() {
        outcomes.push(
            destination.test(step, ExportModel::Events).await.map_err(|failure| failure.class),
        );
    }
    outcomes
}
