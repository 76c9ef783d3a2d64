//! Snowflake: runs against fakesnow, which speaks the protocol of Snowflake's drivers and
//! keeps tables, stages and the load history. A stand-in tests signing in, codes and
//! statements that take long.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use weir_export::destination::Destination;
use weir_export::destinations::DestinationAddresses;
use weir_model::exports::ExportModel;
use weir_testkit::servers::{Fakesnow, Stub, StubAnswer, python};

use crate::warehouse::{
    self, KEY, LOCKED_KEY, ids, job, job_of_persons, noise, person, row, rows, run, uuid, write,
};

/// Sends a statement with Snowflake's own Python driver.
const ASK: &str = r#"
import json, sys, snowflake.connector
given = json.load(sys.stdin)
con = snowflake.connector.connect(
    user="weir", password="secret", account="fakesnow", host="127.0.0.1", port=given["port"],
    protocol="http", database="DB", schema="PUBLIC",
    session_parameters={"CLIENT_OUT_OF_BAND_TELEMETRY_ENABLED": False})
rows = None
for statement in given["statements"]:
    rows = con.cursor().execute(statement).fetchall()
print(json.dumps(rows, default=str))
"#;

fn config(changes: Value) -> Value {
    let mut config = json!({
        "account": "org-account",
        "database": "DB",
        "warehouse": "COMPUTE_WH",
        "schema": "PUBLIC",
        "user": "weir",
        "authentication_type": "password",
        "password": "secret",
        "private_key": null,
        "private_key_passphrase": null,
        "table_name": "events",
        "role": null,
        "exclude_events": null,
    });
    for (name, value) in changes.as_object().unwrap() {
        config[name] = value.clone();
    }
    config
}

fn at(url: String, changes: Value) -> Box<dyn Destination> {
    let addresses = DestinationAddresses { snowflake: url, ..DestinationAddresses::default() };
    warehouse::destination("Snowflake", &config(changes), addresses)
}

struct Fixture {
    fakesnow: Fakesnow,
}

impl Fixture {
    async fn new() -> Self {
        Self { fakesnow: Fakesnow::start().await }
    }

    fn destination(&self) -> Box<dyn Destination> {
        at(self.fakesnow.url(), json!({}))
    }

    async fn ask(&self, statements: &[&str]) -> Value {
        let url = self.fakesnow.url();
        let port: u16 = url.rsplit_once(':').unwrap().1.parse().unwrap();
        python(ASK, &json!({ "port": port, "statements": statements })).await
    }

    /// The ids of the events in the table.
    async fn events(&self) -> Vec<String> {
        let rows = self.ask(&[r#"SELECT "uuid" FROM "DB"."PUBLIC"."events" ORDER BY 1"#]).await;
        rows.as_array().unwrap().iter().map(|row| row[0].as_str().unwrap().to_owned()).collect()
    }

    /// The number of files in the stage of the table.
    async fn staged(&self) -> usize {
        self.ask(&[r#"LIST @"DB"."PUBLIC"."%events""#]).await.as_array().unwrap().len()
    }
}

#[tokio::test]
async fn events_arrive_with_their_types() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination();
    let job = job(destination.as_ref(), 1);
    let mut events = rows(&job, 1..=250);
    events.push(row(
        &job,
        251,
        "{\"n\":9007199254740993,\"o\":{\"ä\":[null,1.5]},\"nul\":\"a\\u0000b\"}",
    ));
    let altered = run(destination.as_ref(), job, events).await.unwrap();
    assert_eq!(fixture.events().await, ids(1..=251));
    assert_eq!(fixture.staged().await, 0);
    assert_eq!(altered.len(), 1);
    assert_eq!((altered[0].uuid, altered[0].column.as_str()), (Some(uuid(251)), "properties"));

    let last = format!(
        r#"SELECT "event", "properties", "properties":n::INTEGER, "elements"::VARCHAR, "people_set",
           "team_id", "timestamp", "site_url", "person_properties":plan::VARCHAR
           FROM "DB"."PUBLIC"."events" WHERE "uuid" = '{}'"#,
        uuid(251)
    );
    let row = &fixture.ask(&[&last]).await[0];
    assert_eq!(row[0], "paid");
    let properties: Value = serde_json::from_str(row[1].as_str().unwrap()).unwrap();
    let expected =
        json!({ "n": 9_007_199_254_740_993_i64, "o": { "ä": [null, 1.5] }, "nul": "ab" });
    assert_eq!(properties, expected);
    assert_eq!(row[2], 9_007_199_254_740_993_i64);
    assert!(row[3].as_str().unwrap().contains("a:nth-child="), "{row}");
    assert_eq!(
        (&row[4], &row[5], &row[7], &row[8]),
        (&Value::Null, &json!(3), &json!(""), &json!("pro"))
    );
    assert_eq!(row[6], "2026-07-01 10:00:00.123707");
}

#[tokio::test]
async fn persons_replace_what_is_older() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination();
    let first = vec![person("ada", 1, 5), person("anon", 2, 0)];
    let second = vec![person("ada", 1, 4), person("anon", 2, 3), person("anon", 1, 6)];
    for (number, people) in [(1, first.clone()), (1, first), (2, second)] {
        let job = job_of_persons(destination.as_ref(), number);
        run(destination.as_ref(), job, people).await.unwrap();
    }
    let found = r#"SELECT "distinct_id", "person_id", "person_version", "properties":v::INTEGER,
                   "is_deleted" FROM "DB"."PUBLIC"."events" ORDER BY 1"#;
    let ada = uuid(1).to_string();
    assert_eq!(
        fixture.ask(&[found]).await,
        json!([["ada", ada, 5, 5, false], ["anon", ada, 6, 6, false]])
    );
    let tables = fixture.ask(&["SHOW TABLES IN SCHEMA DB.PUBLIC"]).await;
    assert_eq!(tables.as_array().unwrap().len(), 1, "{tables}");
}

#[tokio::test]
async fn a_table_keeps_its_columns() {
    let fixture = Fixture::new().await;
    let table =
        r#"CREATE TABLE "DB"."PUBLIC"."events" ("uuid" VARCHAR, "own" VARCHAR, "team_id" INTEGER)"#;
    fixture.ask(&[table]).await;
    let destination = fixture.destination();
    let job = job(destination.as_ref(), 1);
    let events = rows(&job, 1..=3);
    run(destination.as_ref(), job, events).await.unwrap();
    let rows =
        fixture.ask(&[r#"SELECT * FROM "DB"."PUBLIC"."events" ORDER BY "uuid" LIMIT 1"#]).await;
    assert_eq!(rows, json!([[uuid(1).to_string(), null, 3]]));
}

#[tokio::test]
async fn nothing_to_export_copies_nothing() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination();
    let job = job(destination.as_ref(), 1);
    run(destination.as_ref(), job, Vec::new()).await.unwrap();
    assert_eq!(fixture.events().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_interrupted_run_of_many_files_restarts() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination();
    let job = job(destination.as_ref(), 1);
    let long = |n| row(&job, n, &format!("{{\"t\":\"{}\"}}", noise(n, 1 << 20)));
    let mut writer = destination.begin(job.clone()).await.unwrap();
    for n in 1..=40 {
        write(writer.as_mut(), vec![long(n)]).await.unwrap();
    }
    drop(writer);
    assert_eq!(fixture.events().await, Vec::<String>::new());

    let mut writer = destination.begin(job.clone()).await.unwrap();
    for n in 1..=40 {
        write(writer.as_mut(), vec![long(n)]).await.unwrap();
    }
    writer.finish().await.unwrap();
    assert_eq!(fixture.events().await, ids(1..=40));
}

#[tokio::test]
async fn a_run_that_was_done_and_could_not_say_so_is_not_done_again() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination();
    let first = job(destination.as_ref(), 1);
    let events = rows(&first, 1..=30);
    run(destination.as_ref(), first.clone(), events.clone()).await.unwrap();
    run(destination.as_ref(), first, events).await.unwrap();
    assert_eq!(fixture.events().await, ids(1..=30));
    // Another run of the same export is independent.
    let second = job(destination.as_ref(), 2);
    let events = rows(&second, 31..=40);
    run(destination.as_ref(), second, events).await.unwrap();
    assert_eq!(fixture.events().await, ids(1..=40));
}

#[tokio::test]
async fn a_run_waits_while_an_earlier_try_is_brought_in() {
    let asked_for = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked_for);
    let stub = Stub::start(move |asked| {
        let answer = |data: Value| StubAnswer::json(200, &json!({ "success": true, "data": data }));
        Some(match asked.path.as_str() {
            "/session/v1/login-request" => answer(json!({ "token": "t" })),
            "/queries/v1/query-request" => {
                let statement = asked.json()["sqlText"].as_str().unwrap().to_owned();
                let at_work = u8::from(statement.contains("QUERY_HISTORY_BY_USER"));
                kept.lock().unwrap().push(statement);
                answer(json!({ "rowtype": [{ "name": "uuid" }], "total": at_work }))
            }
            _ => answer(Value::Null),
        })
    })
    .await;
    let destination = at(stub.url(), json!({}));
    let failure = destination.begin(job(destination.as_ref(), 1)).await.err().unwrap();
    assert_eq!((failure.class, failure.is_retryable), ("StillLoading", true));
    // The files that the statement reads stay in place.
    let statements = asked_for.lock().unwrap();
    assert!(statements.iter().all(|said| said.starts_with("SELECT ")), "{statements:?}");
}

#[tokio::test]
async fn a_connection_test_leaves_nothing_and_names_the_failed_step() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination();
    for step in 0..destination.steps().len() {
        destination.test(step, ExportModel::Events).await.unwrap();
    }
    let tables = fixture.ask(&["SHOW TABLES IN SCHEMA DB.PUBLIC"]).await;
    assert_eq!(tables, json!([]));
    let failure = at("http://127.0.0.1:9".to_owned(), json!({}))
        .test(0, ExportModel::Events)
        .await
        .unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("ConnectionRefused", true));
}

#[tokio::test]
async fn a_key_pair_signs_in_without_being_sent() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let stub = Stub::start(move |asked| {
        kept.lock().unwrap().push(asked.clone());
        Some(StubAnswer::json(200, &json!({ "success": true, "data": { "token": "t" } })))
    })
    .await;
    let changes = json!({
        "account": "my_org-acc.eu-west-1",
        "authentication_type": "keypair",
        "private_key": LOCKED_KEY,
        "private_key_passphrase": "correct",
        "password": null,
        "role": "LOADER",
    });
    at(stub.url(), changes).test(0, ExportModel::Events).await.unwrap();

    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen[0].path, "/session/v1/login-request");
    for part in ["databaseName=%22DB%22", "warehouse=COMPUTE_WH", "roleName=LOADER"] {
        assert!(seen[0].query.contains(part), "{}", seen[0].query);
    }
    let data = &seen[0].json()["data"];
    assert_eq!((&data["AUTHENTICATOR"], data.get("PASSWORD")), (&json!("SNOWFLAKE_JWT"), None));
    assert_eq!(
        (&data["ACCOUNT_NAME"], &data["LOGIN_NAME"]),
        (&json!("MY_ORG-ACC"), &json!("weir"))
    );
    let (signed, signature) = data["TOKEN"].as_str().unwrap().rsplit_once('.').unwrap();
    let claims = BASE64_URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["sub"], "MY_ORG-ACC.WEIR");
    let issuer = "MY_ORG-ACC.WEIR.SHA256:I8hqIjWoUFJbiifdc+EReD0PZJO8CjIw04SEj5nwhO0=";
    assert_eq!(claims["iss"], issuer);
    let der: String = KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let pair = RsaKeyPair::from_pkcs8(&BASE64_STANDARD.decode(der).unwrap()).unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key())
        .verify(signed.as_bytes(), &BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap())
        .unwrap();
    assert_eq!(seen[1].header("authorization"), "Snowflake Token=\"t\"");

    let wrong = json!({
        "authentication_type": "keypair", "private_key": LOCKED_KEY, "private_key_passphrase": "x"
    });
    let failure = at(stub.url(), wrong).test(0, ExportModel::Events).await.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("InvalidPrivateKey", false));
}

#[tokio::test]
async fn long_statements_are_polled_and_sessions_are_renewed() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&calls);
    let mut statements = 0;
    let mut asked_again = 0;
    let stub = Stub::start(move |asked| {
        kept.lock().unwrap().push(format!("{} {}", asked.method, asked.path));
        Some(match asked.path.as_str() {
            "/session/v1/login-request" => {
                StubAnswer::json(200, &json!({ "success": true, "data": { "token": "t" } }))
            }
            "/queries/v1/query-request" => {
                statements += 1;
                match statements {
                    1 => StubAnswer::json(200, &json!({ "success": false, "code": "390112" })),
                    _ => StubAnswer::json(
                        200,
                        &json!({
                            "success": false, "code": "333334",
                            "data": { "getResultUrl": "/queries/1/result" }
                        }),
                    ),
                }
            }
            "/queries/1/result" => {
                asked_again += 1;
                match asked_again {
                    1 => StubAnswer::json(
                        200,
                        &json!({
                            "success": false, "code": "333333",
                            "data": { "getResultUrl": "/queries/1/result" }
                        }),
                    ),
                    _ => StubAnswer::json(200, &json!({ "success": true, "data": {} })),
                }
            }
            _ => StubAnswer::json(200, &json!({ "success": true, "data": null })),
        })
    })
    .await;
    at(stub.url(), json!({})).test(1, ExportModel::Events).await.unwrap();
    let calls = calls.lock().unwrap();
    let expected = [
        "POST /session/v1/login-request",
        "POST /queries/v1/query-request",
        "POST /session/v1/login-request",
        "POST /queries/v1/query-request",
        "GET /queries/1/result",
        "GET /queries/1/result",
        "POST /session",
    ];
    assert_eq!(*calls, expected);
}

#[tokio::test]
async fn failures_say_if_a_retry_can_help_and_quote_nothing() {
    let code =
        |code: &str| json!({ "success": false, "code": code, "message": "leaked", "data": null });
    for (said, class, is_retryable) in [
        (StubAnswer::json(200, &code("390100")), "AuthenticationFailed", false),
        (StubAnswer::json(200, &code("390201")), "PermissionDenied", false),
        (StubAnswer::json(200, &code("000608")), "WarehouseSuspended", true),
        (StubAnswer::empty(403), "PermissionDenied", false),
        (StubAnswer::empty(503).with("retry-after", "5"), "Unavailable", true),
    ] {
        let answer = said.clone();
        let stub = Stub::start(move |_| Some(answer.clone())).await;
        let failure = at(stub.url(), json!({})).test(0, ExportModel::Events).await.unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), (class, is_retryable));
        assert!(!failure.message.contains("leaked"), "{failure}");
    }
    let failure = at("http://127.0.0.1:9".to_owned(), json!({ "account": "x/y" }))
        .test(0, ExportModel::Events)
        .await;
    assert_eq!(failure.unwrap_err().class, "InvalidConfig");
}
