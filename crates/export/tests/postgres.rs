//! PostgreSQL 15 as a destination, and Redshift's SQL as far as that takes it.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use uuid::Uuid;
use weir_egress::{Egress, Rules};
use weir_export::columns::Columns;
use weir_export::destination::{Altered, Destination, Failure, Job, Writer};
use weir_export::destinations::{Surroundings, open};
use weir_export::rows::{Batch, Person, Record};
use weir_model::{BatchExportId, PersonId, ProjectId, RunId, Timestamp};
use weir_store::events::StoredEvent;
use weir_testkit::servers::Postgres;

const PROJECT: ProjectId = ProjectId(3);
/// 2026-06-01T10:00:05.25Z
const TIME: i64 = 1_780_308_005_250_000;
/// Rows that come together.
const TOGETHER: usize = 500;

/// A destination of this kind at a server, with settings of its own.
fn at(kind: &str, server: &Postgres, more: Value) -> Box<dyn Destination> {
    let mut config = json!({
        "host": "127.0.0.1", "port": server.address().port(), "database": "postgres",
        "user": "weir", "password": "correct horse",
    });
    let config = config.as_object_mut().unwrap();
    config.extend(more.as_object().unwrap().clone());
    opened(kind, config, &["127.0.0.1/32"]).unwrap()
}

fn opened(
    kind: &str,
    config: &Map<String, Value>,
    allow: &[&str],
) -> Result<Box<dyn Destination>, Failure> {
    let allow = allow.iter().map(|network| network.parse().unwrap()).collect();
    let egress = Egress::new(Rules { allow, own: Vec::new() }).unwrap();
    open(kind, config, &Surroundings::new(egress, None))
}

fn job(columns: &Columns) -> Job {
    Job {
        export: BatchExportId(Uuid::from_u128(1)),
        run: RunId(Uuid::from_u128(2)),
        project: PROJECT,
        start: None,
        end: Timestamp::from_micros(TIME),
        model: "events",
        columns: Arc::new(columns.clone()),
        cursor: None,
    }
}

fn record(n: u64, properties: &str) -> Record {
    Record {
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

fn records(count: u64) -> Vec<Record> {
    (1..=count).map(|n| record(n, &format!("{{\"n\":{n}}}"))).collect()
}

async fn write(
    writer: &mut dyn Writer,
    columns: &Columns,
    records: &[Record],
) -> Result<(), Failure> {
    for records in records.chunks(TOGETHER) {
        let mut batch = Batch::default();
        for record in records {
            batch.arrivals.push(record.event.arrival);
            batch.rows.extend(columns.row_if_taken(PROJECT, TIME, record));
        }
        writer.write(batch).await?;
    }
    Ok(())
}

async fn try_run(
    destination: &dyn Destination,
    columns: &Columns,
    records: &[Record],
) -> Result<Vec<Altered>, Failure> {
    let mut writer = destination.begin(job(columns)).await?;
    write(writer.as_mut(), columns, records).await?;
    writer.finish().await?;
    Ok(writer.altered())
}

async fn run(destination: &dyn Destination, records: &[Record]) -> Vec<Altered> {
    try_run(destination, &destination.columns(), records).await.unwrap()
}

fn query(text: &str) -> Columns {
    Columns::of_query(Arc::new(weir_query::parse(text).unwrap()))
}

/// A session of the superuser.
async fn client(server: &Postgres) -> Client {
    let mut config = tokio_postgres::Config::new();
    config.user("weir").password("correct horse").dbname("postgres");
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (client, connection) = config.connect_raw(stream, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The rows of an answer, columns with `|` between them.
async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for message in client.simple_query(sql).await.unwrap() {
        if let SimpleQueryMessage::Row(row) = message {
            let cells = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
            rows.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    rows
}

async fn types(client: &Client, table: &str) -> Vec<String> {
    let sql = format!(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute \
         WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum"
    );
    rows(client, &sql).await
}

fn told(altered: &[Altered]) -> Vec<(Option<u128>, &str, &str)> {
    altered
        .iter()
        .map(|one| (one.uuid.map(|uuid| uuid.as_u128()), one.column.as_str(), one.what))
        .collect()
}

#[tokio::test]
async fn values_and_types_are_equal() {
    let server = Postgres::start().await;
    let destination = at("Postgres", &server, json!({}));
    let properties = "{\"n\": 9007199254740993, \"u\": 18446744073709551615, \"f\": 1.50, \
         \"t\": \"ä\u{1f600}\\\"\\\\\", \"nul\": \"a\\u0000b\", \"null\": null, \
         \"o\": {\"list\": [1, {\"deep\": [true]}]}, \"$ip\": \"::1\", \
         \"$set\": {\"plan\": \"pro\"}, \"huge\": 1e999999}";
    let mut first = record(1, properties);
    first.event.elements_chain = "a:text=\"x\"".to_owned();
    let mut second = record(2, "{}");
    second.event.event = "nu\0l".to_owned();
    second.event.timestamp = i64::MAX;
    let altered = run(destination.as_ref(), &[first, second]).await;
    assert_eq!(
        told(&altered),
        [
            (Some(1), "properties", "a NUL character was left out"),
            (Some(2), "event", "a NUL character was left out"),
            (Some(2), "timestamp", "a value that does not fit its column was left out"),
        ]
    );

    let client = client(&server).await;
    assert_eq!(
        types(&client, "events").await,
        [
            "uuid|character varying(200)",
            "event|text",
            "properties|jsonb",
            "elements|jsonb",
            "set|jsonb",
            "set_once|jsonb",
            "distinct_id|text",
            "team_id|integer",
            "ip|character varying(200)",
            "site_url|character varying(200)",
            "timestamp|timestamp with time zone",
        ]
    );
    assert_eq!(
        rows(
            &client,
            "SET timezone = 'UTC'; SELECT uuid, event, elements #>> '{}', set, set_once, distinct_id, \
             team_id, ip, site_url, timestamp FROM events ORDER BY uuid"
        )
        .await,
        [
            "00000000-0000-0000-0000-000000000001|paid|a:text=\"x\"|{\"plan\": \"pro\"}|NULL|\
             ada\tℵ\\\n|3|::1||2026-06-01 10:00:05.250001+00",
            "00000000-0000-0000-0000-000000000002|nul||NULL|NULL|ada\tℵ\\\n|3|NULL||NULL",
        ]
    );
    assert_eq!(
        rows(
            &client,
            "SELECT properties->>'n', properties->'n' = '9007199254740993', properties->>'u', \
             properties->>'f', properties->>'t', properties->>'nul', \
             jsonb_typeof(properties->'null'), properties#>>'{o,list,1,deep,0}', \
             jsonb_typeof(properties->'huge') FROM events ORDER BY uuid LIMIT 1"
        )
        .await,
        ["9007199254740993|t|18446744073709551615|1.50|ä\u{1f600}\"\\|ab|null|true|string"]
    );
}

#[tokio::test]
async fn a_query_makes_a_table_of_its_own() {
    let server = Postgres::start().await;
    let destination = at("Postgres", &server, json!({"table_name": "chosen"}));
    let columns = query(
        "SELECT uuid AS id, properties.n AS n, toInt(properties.n) AS whole, \
         toFloat(properties.f) AS f, properties.yes = true AS yes, timestamp AS \"odd \"\"name\", \
         properties.o AS properties, person.properties.email AS email, event FROM events",
    );
    let properties = r#"{"n": 9007199254740993, "f": 0.1, "yes": true, "o": {"a": "b"}}"#;
    let records = [record(1, properties), record(2, "{}")];
    for _ in 0..2 {
        try_run(destination.as_ref(), &columns, &records).await.unwrap();
    }
    let client = client(&server).await;
    assert_eq!(
        types(&client, "chosen").await,
        [
            "id|uuid",
            "n|text",
            "whole|bigint",
            "f|double precision",
            "yes|boolean",
            "odd \"name|timestamp with time zone",
            "properties|jsonb",
            "email|text",
            "event|text",
        ]
    );
    assert_eq!(
        rows(&client, "SET timezone = 'UTC'; SELECT * FROM chosen ORDER BY id").await,
        [
            "00000000-0000-0000-0000-000000000001|9007199254740993|9007199254740993|0.1|t|\
             2026-06-01 10:00:05.250001+00|{\"a\": \"b\"}|ada@example.com|paid",
            "00000000-0000-0000-0000-000000000002|NULL|NULL|NULL|NULL|\
             2026-06-01 10:00:05.250002+00|NULL|ada@example.com|paid",
        ]
    );
}

#[tokio::test]
async fn a_run_that_is_done_twice_has_each_event_once() {
    let server = Postgres::start().await;
    let destination = at("Postgres", &server, json!({}));
    run(destination.as_ref(), &records(2_000)).await;
    let again: Vec<Record> =
        (1..=2_001).map(|n| record(n, &format!("{{\"n\":{n},\"again\":true}}"))).collect();
    run(destination.as_ref(), &again).await;
    let client = client(&server).await;
    let counted = "SELECT count(*), count(DISTINCT uuid), count(properties->'again') FROM events";
    assert_eq!(rows(&client, counted).await, ["2001|2001|2001"]);

    // The ids of another project are its own.
    let columns = destination.columns();
    let mut writer = destination.begin(job(&columns)).await.unwrap();
    let row = columns.row_if_taken(ProjectId(4), TIME, &record(1, "{}")).unwrap();
    writer.write(Batch { rows: vec![row], arrivals: vec![1] }).await.unwrap();
    writer.finish().await.unwrap();
    assert_eq!(rows(&client, counted).await, ["2002|2001|2001"]);
}

#[tokio::test]
async fn a_run_that_is_cut_short_leaves_nothing() {
    let server = Postgres::start().await;
    let destination = at("Postgres", &server, json!({}));
    let columns = destination.columns();
    let client = client(&server).await;
    for is_dropped in [true, false] {
        let mut writer = destination.begin(job(&columns)).await.unwrap();
        write(writer.as_mut(), &columns, &records(5_000)).await.unwrap();
        if !is_dropped {
            writer.abort().await;
        }
        drop(writer);
        // The other half of the table waits for nobody.
        assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["0"]);
    }
    let begun = std::time::Instant::now();
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weir'";
    while rows(&client, sessions).await != ["0"] {
        assert!(begun.elapsed().as_secs() < 30, "the sessions end");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    run(destination.as_ref(), &records(5_000)).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["5000"]);
}

#[tokio::test]
async fn runs_of_a_new_table_begin_at_once() {
    let server = Postgres::start().await;
    let destination = at("Postgres", &server, json!({}));
    let (few, more) = (records(3), records(4));
    tokio::join!(run(destination.as_ref(), &few), run(destination.as_ref(), &more));
    let client = client(&server).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["4"]);
}

#[tokio::test]
async fn an_existing_table_keeps_its_columns() {
    let server = Postgres::start().await;
    let client = client(&server).await;
    client
        .batch_execute(
            "CREATE SCHEMA mine; CREATE TABLE mine.facts (id serial, event varchar(2), \
             team_id smallint, uuid uuid, properties text, \"timestamp\" date, distinct_id integer)",
        )
        .await
        .unwrap();
    let destination = at("Postgres", &server, json!({"schema": "mine", "table_name": "facts"}));
    let altered = run(destination.as_ref(), &records(1)).await;
    assert_eq!(
        told(&altered),
        [
            (Some(1), "event", "a text was cut to the length of its column"),
            (Some(1), "distinct_id", "a value that does not fit its column was left out"),
        ]
    );
    let all = "SELECT * FROM mine.facts";
    let row = "00000000-0000-0000-0000-000000000001|{\"n\":1}|2026-06-01|NULL";
    assert_eq!(rows(&client, all).await, [format!("1|pa|3|{row}")]);
    // Without a unique key nothing tells that it is the same.
    run(destination.as_ref(), &records(1)).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM mine.facts").await, ["2"]);

    client
        .batch_execute("TRUNCATE mine.facts; CREATE UNIQUE INDEX ON mine.facts (uuid)")
        .await
        .unwrap();
    for _ in 0..2 {
        run(destination.as_ref(), &records(1)).await;
    }
    assert_eq!(rows(&client, "SELECT count(*) FROM mine.facts").await, ["1"]);

    client.batch_execute("CREATE TABLE mine.other (x text)").await.unwrap();
    let other = at("Postgres", &server, json!({"schema": "mine", "table_name": "other"}));
    let failure = failing(other.as_ref()).await;
    assert_eq!((failure.class, failure.is_retryable), ("MissingColumn", false));
}

async fn failing(destination: &dyn Destination) -> Failure {
    try_run(destination, &destination.columns(), &records(1)).await.unwrap_err()
}

#[tokio::test]
async fn each_fault_has_its_class() {
    let mut server = Postgres::start().await;
    let client = client(&server).await;
    client
        .batch_execute(
            "CREATE TABLE strict (uuid text, needed text NOT NULL); \
             CREATE TABLE checked (uuid text CHECK (uuid = 'x')); \
             CREATE TABLE locked (uuid text); \
             CREATE USER reader PASSWORD 'reader'; GRANT SELECT ON locked TO reader; \
             REVOKE CREATE ON SCHEMA public FROM PUBLIC; \
             CREATE USER nobody PASSWORD 'nobody' CONNECTION LIMIT 0",
        )
        .await
        .unwrap();
    let as_reader =
        |table: &str| json!({"user": "reader", "password": "reader", "table_name": table});
    for (more, class, is_retryable) in [
        (json!({"schema": "nowhere"}), "MissingSchema", false),
        (json!({"database": "nowhere"}), "MissingDatabase", false),
        (json!({"password": "wrong"}), "WrongPassword", false),
        (json!({"user": "stranger"}), "WrongPassword", false),
        (json!({"user": "nobody", "password": "nobody"}), "DatabaseUnavailable", true),
        (as_reader("locked"), "MissingPrivilege", false),
        (as_reader("missing"), "MissingPrivilege", false),
        (json!({"table_name": "strict"}), "NotNull", false),
        (json!({"table_name": "checked"}), "Constraint", false),
        (json!({"port": weir_testkit::servers::free_address().port()}), "ConnectionRefused", true),
    ] {
        let destination = at("Postgres", &server, more.clone());
        let failure = failing(destination.as_ref()).await;
        assert_eq!((failure.class, failure.is_retryable), (class, is_retryable), "{more}");
        assert!(!failure.message.contains("relation"), "{failure}: words of the server");
    }

    let config = json!({"host": "127.0.0.1", "database": "d", "user": "u", "password": "p"});
    let refused = opened("Postgres", config.as_object().unwrap(), &[]).unwrap();
    assert_eq!(failing(refused.as_ref()).await.class, "ForbiddenAddress");

    // The server goes in the middle, and comes back.
    let destination = at("Postgres", &server, json!({}));
    let columns = destination.columns();
    let mut writer = destination.begin(job(&columns)).await.unwrap();
    write(writer.as_mut(), &columns, &records(1_000)).await.unwrap();
    server.stop();
    let failure = loop {
        if let Err(failure) = write(writer.as_mut(), &columns, &records(5_000)).await {
            break failure;
        }
    };
    assert!(failure.is_retryable, "{failure}");
    writer.abort().await;
    assert!(failing(destination.as_ref()).await.is_retryable);
    server.go_on().await;
    run(destination.as_ref(), &records(1_000)).await;
    let client = self::client(&server).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["1000"]);
}

#[tokio::test]
async fn the_line_is_protected_where_the_server_can() {
    let server = Postgres::with_tls().await;
    let failure = failing(at("Postgres", &server, json!({})).as_ref()).await;
    assert_eq!((failure.class, failure.is_retryable), ("Tls", false));

    let trusting = at("Postgres", &server, json!({"has_self_signed_cert": true}));
    let columns = trusting.columns();
    let mut writer = trusting.begin(job(&columns)).await.unwrap();
    let client = client(&server).await;
    let protected = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'weir'";
    assert_eq!(rows(&client, protected).await, ["t"]);
    write(writer.as_mut(), &columns, &records(3)).await.unwrap();
    writer.finish().await.unwrap();
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["3"]);
}

#[tokio::test]
async fn a_test_tells_the_step_and_leaves_nothing() {
    let server = Postgres::start().await;
    let outcome = async |more: Value| {
        let destination = at("Postgres", &server, more);
        let mut classes = Vec::new();
        for step in 0..destination.steps().len() {
            classes.push(destination.test(step).await.err().map(|failure| failure.class));
        }
        classes
    };
    assert_eq!(outcome(json!({})).await, [None, None, None, None]);
    let client = client(&server).await;
    let tables = "SELECT count(*) FROM pg_class WHERE relname IN ('events', 'weir_rows')";
    assert_eq!(rows(&client, tables).await, ["0"]);

    let schema = Some("MissingSchema");
    assert_eq!(outcome(json!({"schema": "nowhere"})).await, [None, None, schema, schema]);
    let password = Some("WrongPassword");
    assert_eq!(outcome(json!({"password": "x"})).await, [None, password, password, password]);

    client
        .batch_execute(
            "CREATE TABLE events (uuid text); CREATE USER reader PASSWORD 'reader'; \
             GRANT SELECT ON events TO reader",
        )
        .await
        .unwrap();
    let reader = json!({"user": "reader", "password": "reader"});
    assert_eq!(outcome(reader).await, [None, None, None, Some("MissingPrivilege")]);
    assert_eq!(outcome(json!({})).await, [None, None, None, None]);
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["0"]);
}

/// A server that answers the question about TLS, then says something.
async fn impostor(first: &'static [u8], then: Vec<u8>, repeats: bool) -> Box<dyn Destination> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let then = then.clone();
            tokio::spawn(async move {
                let mut request = [0; 8];
                stream.read_exact(&mut request).await.unwrap();
                let mut said = stream.write_all(first).await;
                while said.is_ok() {
                    said = stream.write_all(&then).await;
                    if !repeats {
                        // Until the other side has read it.
                        let _ = stream.read_to_end(&mut Vec::new()).await;
                        return;
                    }
                }
            });
        }
    });
    let config = json!({
        "host": "127.0.0.1", "port": port, "database": "d", "user": "u", "password": "p",
    });
    opened("Postgres", config.as_object().unwrap(), &["127.0.0.1/32"]).unwrap()
}

/// A message of the protocol.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind], &length[..], body].concat()
}

#[tokio::test]
async fn a_server_that_lies_gets_nowhere() {
    let no_database = impostor(b"H", Vec::new(), false).await;
    assert_eq!(failing(no_database.as_ref()).await.class, "NoDatabase");

    let error = message(b'E', b"SFATAL\0C28P01\0Mthe password of root is 1234\0\0");
    let failure = failing(impostor(b"N", error, false).await.as_ref()).await;
    assert_eq!(failure.class, "WrongPassword");
    assert!(!failure.message.contains("root"), "{failure}");

    let error = message(b'E', b"SFATAL\0C<b>12\0Mx\0\0");
    let failure = failing(impostor(b"N", error, false).await.as_ref()).await;
    assert_eq!(failure.to_string(), "Refused: The server refused a statement.");

    // A message of a gigabyte that does not end.
    let chatter = [&[b'R', 0x40, 0, 0, 0], &[b'x'; 1 << 20][..]].concat();
    let failure = failing(impostor(b"N", chatter, true).await.as_ref()).await;
    assert_eq!((failure.class, failure.is_retryable), ("ConnectionBroken", true));
}

/// What Redshift has and PostgreSQL does not, and the meaning of a backslash.
const AS_REDSHIFT: &str = "CREATE DOMAIN super AS jsonb; \
    CREATE FUNCTION json_parse(text) RETURNS super LANGUAGE sql AS 'SELECT $1::jsonb::super'; \
    ALTER DATABASE postgres SET standard_conforming_strings = off; \
    ALTER DATABASE postgres SET escape_string_warning = off";

#[tokio::test]
async fn redshift_gets_its_rows_as_statements() {
    let server = Postgres::start().await;
    let client = client(&server).await;
    client.batch_execute(AS_REDSHIFT).await.unwrap();
    let config = json!({"properties_data_type": "super", "table_name": "Events"});
    let destination = at("Redshift", &server, config);
    let properties = r#"{"n": 9007199254740993, "t": "it's \\ \u0000", "$set": {"a": [null]}}"#;
    let mut strange = vec![record(1, properties)];
    strange.extend(records(5_000).into_iter().skip(1));
    let long = format!("{{\"long\":\"{}\"}}", "x".repeat(70_000));
    strange[1].event.properties = long;
    for _ in 0..2 {
        let altered = run(destination.as_ref(), &strange).await;
        assert_eq!(
            told(&altered),
            [
                (Some(1), "properties", "a NUL character was left out"),
                (Some(2), "properties", "JSON longer than 65,535 bytes was left out"),
            ]
        );
    }
    assert_eq!(
        types(&client, "events").await,
        [
            "uuid|character varying(200)",
            "event|character varying(65535)",
            "properties|super",
            "elements|character varying(65535)",
            "set|super",
            "set_once|super",
            "distinct_id|character varying(65535)",
            "team_id|integer",
            "ip|character varying(200)",
            "site_url|character varying(200)",
            "timestamp|timestamp with time zone",
        ]
    );
    assert_eq!(
        rows(&client, "SELECT count(*), count(DISTINCT uuid) FROM events").await,
        ["5000|5000"]
    );
    assert_eq!(
        rows(
            &client,
            "SET timezone = 'UTC'; SELECT properties->>'n', properties->>'t', set, distinct_id, \
             elements, team_id, timestamp FROM events ORDER BY uuid LIMIT 2"
        )
        .await,
        [
            "9007199254740993|it's \\ |{\"a\": [null]}|ada\tℵ\\\n||3|\
             2026-06-01 10:00:05.250001+00",
            "NULL|NULL|NULL|ada\tℵ\\\n||3|2026-06-01 10:00:05.250002+00",
        ]
    );

    // Cut short, it leaves nothing.
    let columns = destination.columns();
    let mut writer = destination.begin(job(&columns)).await.unwrap();
    let more: Vec<Record> = (6_000..8_000).map(|n| record(n, "{}")).collect();
    write(writer.as_mut(), &columns, &more).await.unwrap();
    drop(writer);
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["5000"]);
    for step in 0..destination.steps().len() {
        assert_eq!(destination.test(step).await, Ok(()));
    }
}

#[tokio::test]
async fn redshift_says_what_it_does_not_do() {
    let config = json!({
        "host": "127.0.0.1", "database": "d", "user": "u", "password": "p", "mode": "COPY",
    });
    let failure = opened("Redshift", config.as_object().unwrap(), &[]).err().expect("a failure");
    assert_eq!((failure.class, failure.is_retryable), ("Unsupported", false));
}
