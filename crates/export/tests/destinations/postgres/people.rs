//! Persons in a table, where each distinct id has one row.

use serde_json::json;
use tokio_postgres::Client;
use uuid::Uuid;
use weir_export::destination::{Altered, Destination, Failure, Job};
use weir_export::persons;
use weir_export::rows::{Batch, PersonRecord};
use weir_model::exports::ExportModel;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, Timestamp};
use weir_testkit::servers::Postgres;

use super::{PROJECT, TIME, alterations, at, client, job, records, rows, run, types};

/// A run of persons: distinct ids, the persons that they lead to, and the versions.
async fn run_persons(
    destination: &dyn Destination,
    people: &[(&str, u128, i64)],
) -> Result<Vec<Altered>, Failure> {
    let columns = persons::columns();
    let row = |(distinct_id, person, version): &(&str, u128, i64)| {
        let person = PersonRef {
            id: PersonId(Uuid::from_u128(*person)),
            distinct_ids: Vec::new(),
            properties: format!("{{\"v\":{version}}}"),
            created_at: Timestamp::from_micros(TIME),
            is_identified: true,
        };
        let version = *version;
        columns.row_of_person(
            PROJECT,
            PersonRecord { distinct_id, person: &person, version, seen_at: TIME },
        )
    };
    let rows = people.iter().map(row).collect();
    let job = Job { model: ExportModel::Persons, ..job(&columns) };
    let mut writer = destination.begin(job).await?;
    writer.write(Batch { rows, arrivals: None }).await?;
    writer.finish().await?;
    Ok(writer.altered())
}

/// Two runs. The second one also has rows that are older than the present ones.
pub(crate) async fn two_runs_of_persons(
    destination: &dyn Destination,
    client: &Client,
    table: &str,
) {
    for _ in 0..2 {
        let first = [("ada", 1, 5), ("anon", 2, 0)];
        assert_eq!(run_persons(destination, &first).await, Ok(Vec::new()));
    }
    // The anonymous person was merged into Ada while the run was reading.
    let second = [("ada", 1, 4), ("anon", 2, 3), ("anon", 1, 6), ("n\0ew", 1, 6)];
    let altered = run_persons(destination, &second).await.unwrap();
    let expected = [(None, "distinct_id", "a NUL character was omitted")];
    assert_eq!(alterations(&altered), expected);
    let sql = format!(
        "SET timezone = 'UTC'; SELECT team_id, distinct_id, person_id, properties, \
         person_distinct_id_version, person_version, created_at, is_deleted, _inserted_at \
         FROM {table} ORDER BY distinct_id"
    );
    let row = |distinct_id: &str, version: i64| {
        format!(
            "3|{distinct_id}|00000000-0000-0000-0000-000000000001|{{\"v\": {version}}}|{version}|\
             {version}|2026-06-01 10:00:05.25+00|f|2026-06-01 10:00:05.25+00"
        )
    };
    assert_eq!(rows(client, &sql).await, [row("ada", 5), row("anon", 6), row("new", 6)]);
}

#[tokio::test]
async fn persons_replace_what_is_older() {
    let server = Postgres::start().await;
    let destination = at("Postgres", &server, json!({"table_name": "persons"}));
    let client = client(&server).await;
    two_runs_of_persons(destination.as_ref(), &client, "persons").await;
    assert_eq!(
        types(&client, "persons").await,
        [
            "team_id|integer",
            "distinct_id|text",
            "person_id|uuid",
            "properties|jsonb",
            "person_distinct_id_version|bigint",
            "person_version|bigint",
            "created_at|timestamp with time zone",
            "is_deleted|boolean",
            "_inserted_at|timestamp with time zone",
        ]
    );
}

#[tokio::test]
async fn a_test_tries_the_columns_of_its_model() {
    let server = Postgres::start().await;
    let client = client(&server).await;
    client.batch_execute("CREATE TABLE events (uuid text, event text)").await.unwrap();
    for kind in ["Postgres", "Redshift"] {
        let tested = async |table: &str, model| {
            let destination = at(kind, &server, json!({"table_name": table}));
            destination.test(3, model).await.err().map(|failure| failure.class)
        };
        assert_eq!(tested("events", ExportModel::Events).await, None, "{kind}");
        let refused = Some("NoPersonsTable");
        assert_eq!(tested("events", ExportModel::Persons).await, refused, "{kind}");
        assert_eq!(tested("persons", ExportModel::Persons).await, None, "{kind}");
    }
    let tables = "SELECT count(*) FROM pg_class WHERE relname IN ('persons', 'weir_rows')";
    assert_eq!(rows(&client, tables).await, ["0"]);
}

#[tokio::test]
async fn a_table_without_a_person_key_gets_no_persons() {
    let server = Postgres::start().await;
    let client = client(&server).await;
    let people = [("ada", 1, 5)];
    let events = at("Postgres", &server, json!({}));
    run(events.as_ref(), &records(3)).await;
    let failure = run_persons(events.as_ref(), &people).await.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("NoPersonsTable", false));
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["3"]);

    client
        .batch_execute(
            "CREATE TABLE own (team_id bigint, distinct_id varchar(400), person_version bigint, \
             person_distinct_id_version bigint)",
        )
        .await
        .unwrap();
    let own = at("Postgres", &server, json!({"table_name": "own"}));
    let failure = run_persons(own.as_ref(), &people).await.unwrap_err();
    assert_eq!(failure.class, "NoPersonsTable");
    client.batch_execute("CREATE UNIQUE INDEX ON own (team_id, distinct_id)").await.unwrap();
    assert_eq!(run_persons(own.as_ref(), &people).await, Ok(Vec::new()));
    assert_eq!(rows(&client, "SELECT * FROM own").await, ["3|ada|5|5"]);
}
