//! Redshift's SQL, as far as PostgreSQL accepts it. There is no local server for
//! Redshift.

mod copy;

use serde_json::json;
use weir_export::rows::EventWithPerson;
use weir_model::exports::ExportModel;
use weir_testkit::servers::Postgres;

use crate::postgres::{
    alterations, at, client, job, record, records, rows, run, two_runs_of_persons, types, write,
};

#[tokio::test]
async fn redshift_gets_its_rows_as_statements() {
    let server = Postgres::like_redshift().await;
    let client = client(&server).await;
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
            alterations(&altered),
            [
                (Some(1), "properties", "a NUL character was omitted"),
                (Some(2), "properties", "JSON longer than 65,535 bytes was omitted"),
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

    // An interrupted run leaves nothing.
    let columns = destination.columns();
    let mut writer = destination.begin(job(&columns)).await.unwrap();
    let more: Vec<EventWithPerson> = (6_000..8_000).map(|n| record(n, "{}")).collect();
    write(writer.as_mut(), &columns, &more).await.unwrap();
    drop(writer);
    assert_eq!(rows(&client, "SELECT count(*) FROM events").await, ["5000"]);
    for step in 0..destination.steps().len() {
        assert_eq!(destination.test(step, ExportModel::Events).await, Ok(()));
    }
}

#[tokio::test]
async fn redshift_replaces_persons_that_are_older() {
    let server = Postgres::like_redshift().await;
    let client = client(&server).await;
    let config = json!({"properties_data_type": "super", "table_name": "persons"});
    let destination = at("Redshift", &server, config);
    two_runs_of_persons(destination.as_ref(), &client, "persons").await;
}
