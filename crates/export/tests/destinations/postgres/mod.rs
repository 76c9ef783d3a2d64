//! PostgreSQL 15 as a destination: the content of the table afterwards, and faults.

mod faults;
mod people;
mod tables;

pub(crate) use people::two_runs_of_persons;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use uuid::Uuid;
use weir_egress::{Egress, Rules};
use weir_export::columns::Columns;
use weir_export::destination::{Altered, Destination, Failure, Job, Writer};
use weir_export::destinations::{Dependencies, open};
use weir_export::rows::{Batch, EventWithPerson, Person};
use weir_model::exports::ExportModel;
use weir_model::{BatchExportId, PersonId, ProjectId, RunId, Timestamp};
use weir_store::events::StoredEvent;
use weir_testkit::servers::Postgres;

const PROJECT: ProjectId = ProjectId(3);
/// 2026-06-01T10:00:05.25Z
pub(crate) const TIME: i64 = 1_780_308_005_250_000;
/// Rows in a batch.
const EVENTS_PER_REQUEST: usize = 500;

/// A destination of this kind at a server. `more` has additional settings.
pub(crate) fn at(kind: &str, server: &Postgres, more: Value) -> Box<dyn Destination> {
    let mut config = json!({
        "host": "127.0.0.1", "port": server.address().port(), "database": "postgres",
        "user": "weir", "password": "correct horse",
    });
    let config = config.as_object_mut().unwrap();
    config.extend(more.as_object().unwrap().clone());
    opened(kind, config, &["127.0.0.1/32"]).unwrap()
}

/// A destination of this kind that may dial these networks.
pub(crate) fn opened(
    kind: &str,
    config: &Map<String, Value>,
    allow: &[&str],
) -> Result<Box<dyn Destination>, Failure> {
    let allow = allow.iter().map(|network| network.parse().unwrap()).collect();
    let egress = Egress::new(Rules { allow, own: Vec::new() }).unwrap();
    open(kind, config, &Dependencies::new(egress, None))
}

/// The job of a run with these columns.
pub(crate) fn job(columns: &Columns) -> Job {
    Job {
        export: BatchExportId(Uuid::from_u128(1)),
        run: RunId(Uuid::from_u128(2)),
        project: PROJECT,
        start: None,
        end: Timestamp::from_micros(TIME),
        by_time: false,
        model: ExportModel::Events,
        columns: Arc::new(columns.clone()),
        cursor: None,
    }
}

/// The event of this number, with these properties.
pub(crate) fn record(n: u64, properties: &str) -> EventWithPerson {
    EventWithPerson {
        event: StoredEvent {
            arrival: n,
            uuid: Uuid::from_u128(u128::from(n)),
            event: "paid".to_owned(),
            distinct_id: "ada\tℵ\\\n".to_owned(),
            timestamp: TIME + i64::try_from(n).unwrap(),
            received_at: TIME,
            properties: properties.to_owned(),
            elements_chain: String::new(),
            historical: false,
            warnings: Vec::new(),
        },
        person: Some(Arc::new(Person {
            id: PersonId(Uuid::from_u128(9)),
            properties: r#"{"email": "ada@example.com"}"#.to_owned(),
        })),
    }
}

/// The events with the numbers from 1 on.
pub(crate) fn records(count: u64) -> Vec<EventWithPerson> {
    (1..=count).map(|n| record(n, &format!("{{\"n\":{n}}}"))).collect()
}

/// Writes all records.
pub(crate) async fn write(
    writer: &mut dyn Writer,
    columns: &Columns,
    records: &[EventWithPerson],
) -> Result<(), Failure> {
    for records in records.chunks(EVENTS_PER_REQUEST) {
        let made = |record: &EventWithPerson| {
            Some(columns.row_if_included(PROJECT, TIME, record).unwrap()?.cells)
        };
        let rows = records.iter().filter_map(made).collect();
        let arrivals = Some(records.iter().map(|record| record.event.arrival).collect());
        writer.write(Batch { rows, arrivals }).await?;
    }
    Ok(())
}

/// A run with these columns, or one attempt of it.
pub(crate) async fn try_run(
    destination: &dyn Destination,
    columns: &Columns,
    records: &[EventWithPerson],
) -> Result<Vec<Altered>, Failure> {
    let mut writer = destination.begin(job(columns)).await?;
    write(writer.as_mut(), columns, records).await?;
    writer.finish().await?;
    Ok(writer.altered())
}

/// A complete run.
pub(crate) async fn run(
    destination: &dyn Destination,
    records: &[EventWithPerson],
) -> Vec<Altered> {
    try_run(destination, &destination.columns(), records).await.unwrap()
}

/// A session of the superuser.
pub(crate) async fn client(server: &Postgres) -> Client {
    let mut config = tokio_postgres::Config::new();
    config.user("weir").password("correct horse").dbname("postgres");
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (client, connection) = config.connect_raw(stream, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The rows of a result, with `|` between the columns.
pub(crate) async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for message in client.simple_query(sql).await.unwrap() {
        if let SimpleQueryMessage::Row(row) = message {
            let cells = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
            rows.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    rows
}

/// The columns of a table and their types, with `|` between them.
pub(crate) async fn types(client: &Client, table: &str) -> Vec<String> {
    let sql = format!(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute \
         WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum"
    );
    rows(client, &sql).await
}

/// The alterations: number of the event, column, and text.
pub(crate) fn alterations(altered: &[Altered]) -> Vec<(Option<u128>, &str, &str)> {
    altered
        .iter()
        .map(|one| (one.uuid.map(|uuid| uuid.as_u128()), one.column.as_str(), one.what))
        .collect()
}

/// The failure of a run.
pub(crate) async fn failing(destination: &dyn Destination) -> Failure {
    try_run(destination, &destination.columns(), &records(1)).await.unwrap_err()
}
