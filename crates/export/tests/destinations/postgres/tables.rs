//! The content of the table after a run: values, types, each event once.

use std::sync::Arc;

use serde_json::json;
use weir_export::columns::Columns;
use weir_export::rows::{Batch, EventWithPerson};
use weir_model::ProjectId;
use weir_testkit::servers::Postgres;

use super::{
    TIME, alterations, at, client, failing, job, record, records, rows, run, try_run, types, write,
};

fn query(text: &str) -> Columns {
    Columns::of_query(Arc::new(weir_query::parse(text).unwrap()))
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
        alterations(&altered),
        [
            (Some(1), "properties", "a NUL character was omitted"),
            (Some(2), "event", "a NUL character was omitted"),
            (Some(2), "timestamp", "a value that does not fit its column was omitted"),
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
    let again: Vec<EventWithPerson> =
        (1..=2_001).map(|n| record(n, &format!("{{\"n\":{n},\"again\":true}}"))).collect();
    run(destination.as_ref(), &again).await;
    let client = client(&server).await;
    let counted = "SELECT count(*), count(DISTINCT uuid), count(properties->'again') FROM events";
    assert_eq!(rows(&client, counted).await, ["2001|2001|2001"]);

    // The ids of another project are independent.
    let columns = destination.columns();
    let mut writer = destination.begin(job(&columns)).await.unwrap();
    let row = columns.row_if_included(ProjectId(4), TIME, &record(1, "{}")).unwrap().unwrap().cells;
    writer.write(Batch { rows: vec![row], arrivals: Some(vec![1]) }).await.unwrap();
    writer.finish().await.unwrap();
    assert_eq!(rows(&client, counted).await, ["2002|2001|2001"]);
}

/// Some parts are in the table before the first event that the table already has.
#[tokio::test]
async fn a_run_that_meets_an_earlier_one_halfway_replaces_it() {
    let server = Postgres::start().await;
    let destination = at("Postgres", &server, json!({}));
    let long = "x".repeat(2_000);
    let records = |from: u64, to: u64, word: &str| -> Vec<EventWithPerson> {
        let properties = format!("{{\"word\":\"{word}\",\"long\":\"{long}\"}}");
        (from..=to).map(|n| record(n, &properties)).collect()
    };
    run(destination.as_ref(), &records(9_000, 10_000, "first")).await;
    run(destination.as_ref(), &records(1, 12_000, "second")).await;
    let client = client(&server).await;
    let counted =
        "SELECT properties->>'word', count(*), count(DISTINCT uuid) FROM events GROUP BY 1";
    assert_eq!(rows(&client, counted).await, ["second|12000|12000"]);
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
        // The table has no row of the run, and is not locked.
        assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["0"]);
    }
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weir'";
    weir_testkit::until(async || rows(&client, sessions).await == ["0"]).await;
    run(destination.as_ref(), &records(5_000)).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["5000"]);
}

#[tokio::test]
async fn runs_of_a_new_table_start_without_delay() {
    let server = Postgres::start().await;
    let destination = at("Postgres", &server, json!({}));
    let (few, more) = (records(3), records(4));
    tokio::join!(run(destination.as_ref(), &few), run(destination.as_ref(), &more));
    let client = client(&server).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["4"]);
}

#[tokio::test]
async fn one_value_does_not_stop_a_run_into_columns_of_ones_own() {
    let server = Postgres::start().await;
    let client = client(&server).await;
    client
        .batch_execute(
            "CREATE TABLE events (uuid text, ip inet, net cidr, price numeric(10, 2)); \
             CREATE TABLE odd (uuid text, event macaddr)",
        )
        .await
        .unwrap();
    let destination = at("Postgres", &server, json!({}));
    let columns = query(
        "SELECT uuid, properties.$ip AS ip, properties.net AS net, \
         toFloat(properties.price) AS price FROM events",
    );
    let fits = r#"{"$ip": "10.0.0.1", "net": "10.0.0.0/8", "price": -99999999.994}"#;
    let does_not = r#"{"$ip": "x", "net": "10.0.0.1/8", "price": 99999999.995}"#;
    let records = [record(1, fits), record(2, does_not)];
    let altered = try_run(destination.as_ref(), &columns, &records).await.unwrap();
    let what = "a value that does not fit its column was omitted";
    assert_eq!(
        alterations(&altered),
        [(Some(2), "ip", what), (Some(2), "net", what), (Some(2), "price", what)]
    );
    assert_eq!(
        rows(&client, "SELECT * FROM events ORDER BY uuid").await,
        [
            "00000000-0000-0000-0000-000000000001|10.0.0.1|10.0.0.0/8|-99999999.99",
            "00000000-0000-0000-0000-000000000002|NULL|NULL|NULL",
        ]
    );

    // For other types, the message names the columns to check.
    let failure = failing(at("Postgres", &server, json!({"table_name": "odd"})).as_ref()).await;
    assert_eq!((failure.class, failure.is_retryable), ("WrongType", false));
    assert!(failure.message.contains("\"event\""), "{failure}");
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
        alterations(&altered),
        [
            (Some(1), "event", "a text was cut to the length of its column"),
            (Some(1), "distinct_id", "a value that does not fit its column was omitted"),
        ]
    );
    let all = "SELECT * FROM mine.facts";
    let row = "00000000-0000-0000-0000-000000000001|{\"n\":1}|2026-06-01|NULL";
    assert_eq!(rows(&client, all).await, [format!("1|pa|3|{row}")]);
    // Without a unique key, a repeated event cannot be detected.
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
