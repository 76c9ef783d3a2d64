//! POST `…/batch_exports/`.

use super::*;
use weir_model::exports::EXPORTS_MAX;
use weir_model::organizations::Level;
use weir_store::exports::{self, ExportRow};

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_shows_everything_but_secrets() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let answer = owner.post(&path(&app), &s3()).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let mut body = answer.json();
    let id = body["id"].take();
    assert_eq!(id.as_str().unwrap().len(), 36);
    assert_eq!(
        body,
        json!({
            "id": null,
            "team_id": app.project(),
            "name": "Nightly",
            "destination": {"type": "S3", "config": {
                "bucket_name": "events", "region": "eu-west-1", "prefix": "weir/",
                "compression": null, "file_format": "JSONLines", "encryption": null,
                "kms_key_id": null, "endpoint_url": null, "max_file_size_mb": null,
                "use_virtual_style_addressing": false,
                "include_events": null, "exclude_events": null,
            }},
            "model": "events",
            "interval": "day",
            "timezone": "UTC",
            "offset_day": null,
            "offset_hour": null,
            "paused": false,
            "created_at": "2026-05-28T20:26:40Z",
            "last_updated_at": "2026-05-28T20:26:40Z",
            "last_paused_at": null,
            "start_at": null,
            "end_at": null,
            "latest_runs": [],
            "latest_error": null,
            "failing_since": null,
            "next_try_at": null,
            "hogql_query": null,
            "schema": null,
        })
    );
    let log = format!("/api/organizations/{}/activity_log/", app.organization());
    let entry = owner.get(&log).await.json()["results"][0].clone();
    let changes = entry["detail"]["changes"].as_array().unwrap();
    let model = changes.iter().find(|change| change["field"] == "model").unwrap();
    assert_eq!((&model["before"], &model["after"]), (&Value::Null, &json!("events")));
    // Without the slash, below the project, and for every interval.
    let paths = [path(&app), project_path(&app)];
    for path in paths.iter().map(|path| path.trim_end_matches('/')) {
        for interval in ["hour", "day", "week", "every 5 minutes", "every 15 minutes"] {
            let body = with(s3(), "interval", json!(interval));
            let answer = owner.post(path, &body).await;
            assert_eq!((answer.status, &answer.json()["interval"]), (201, &json!(interval)));
        }
    }
}

/// Every destination with this host in its address, and the name of that setting.
fn everywhere(host: &str) -> Vec<(&'static str, Value)> {
    let export = |kind: &str, config: Value| {
        json!({
            "name": kind, "interval": "hour", "paused": true,
            "destination": {"type": kind, "config": config},
        })
    };
    let url = format!("http://{host}:9000/x");
    // A URL has IPv6 addresses in brackets.
    let alone = host.trim_matches(['[', ']']);
    let database = json!({"host": alone, "database": "d", "user": "u", "password": "p"});
    let s3 = json!({
        "bucket_name": "b", "region": "r", "prefix": "p", "endpoint_url": url,
        "use_virtual_style_addressing": false,
    });
    let azure = format!("AccountName=a;AccountKey=a2V5;BlobEndpoint={url}");
    vec![
        ("endpoint_url", export("S3", s3)),
        (
            "connection_string",
            export("AzureBlob", json!({"container_name": "c", "connection_string": azure})),
        ),
        (
            "endpoint_url",
            export(
                "GoogleCloudStorage",
                json!({"bucket_name": "b", "service_account_key": "{}", "endpoint_url": url}),
            ),
        ),
        ("host", export("Postgres", database.clone())),
        ("host", export("Redshift", database)),
        (
            "token_uri",
            export(
                "BigQuery",
                json!({
                    "project_id": "p", "dataset_id": "d", "private_key": "k",
                    "private_key_id": "i", "token_uri": url, "client_email": "e",
                }),
            ),
        ),
        (
            "server_hostname",
            export(
                "Databricks",
                json!({
                    "server_hostname": alone, "http_path": "/x", "client_id": "c",
                    "client_secret": "s", "catalog": "c", "schema": "s", "table_name": "t",
                }),
            ),
        ),
        ("url", export("HTTP", json!({"url": url, "token": "t"}))),
    ]
}

const INNER: &str = "This is on a network that this server does not connect to. The operator \
                     can allow it with egress_allow.";

#[tokio::test(flavor = "multi_thread")]
async fn inner_addresses_are_not_saved() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    for host in [
        "127.0.0.1",
        "169.254.169.254",
        "10.1.2.3",
        "2130706433",
        "0177.0.0.1",
        "0x7f000001",
        "127.1",
        "127.0.0.1.",
        "[::1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::127.0.0.1]",
        "localhost",
    ] {
        for (name, body) in everywhere(host) {
            let attr = format!("destination__config__{name}");
            let answer = owner.post(&path(&app), &body).await;
            assert_invalid(&answer, Some(&attr), "invalid_input", INNER);
        }
    }
    // A change to such a host is refused too.
    for ((_, body), (name, moved)) in everywhere("a.example").iter().zip(everywhere("127.0.0.1")) {
        let (_, export) = made(&app, &owner, body).await;
        let config = &moved["destination"]["config"];
        let patch = json!({"destination": {"config": config}});
        let attr = format!("destination__config__{name}");
        assert_invalid(&owner.patch(&export, &patch).await, Some(&attr), "invalid_input", INNER);
        assert_eq!(owner.patch(&export, &json!({"name": "n"})).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_host_is_not_saved() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    for host in ["münchen.example", "①②⑦.0.0.1", "%31%32%37.0.0.1", "256.0.0.1", "a b"] {
        for (name, body) in everywhere(host) {
            let answer = owner.post(&path(&app), &body).await;
            let (status, _, code, _, attr) = answer.error();
            let expected = format!("destination__config__{name}");
            assert_eq!((status, attr.as_deref()), (400, Some(expected.as_str())), "{host} {code}");
        }
    }
    for host in [
        "postgres://db.example/events",
        "postgresql://u:p@db.example:5432/events",
        "/var/run/postgresql",
        "db.example:5432",
    ] {
        for kind in ["Postgres", "Redshift"] {
            let config = json!({"host": host, "database": "d", "user": "u", "password": "p"});
            let body = with(s3(), "destination", json!({"type": kind, "config": config}));
            let detail =
                "Enter the name or the address of the host alone: no URL, no path, no port.";
            let answer = owner.post(&path(&app), &body).await;
            assert_invalid(&answer, Some("destination__config__host"), "invalid_input", detail);
        }
    }
    // A value that becomes part of a host name must be a valid part of one.
    for (kind, name, config) in [
        ("S3", "region", json!({"bucket_name": "b", "region": "r.evil.example/", "prefix": "p"})),
        ("S3", "bucket_name", json!({"bucket_name": "ä", "region": "r", "prefix": "p"})),
        (
            "Snowflake",
            "account",
            json!({
                "account": "169.254.169.254/", "database": "d", "warehouse": "w", "schema": "s",
                "user": "u", "password": "p",
            }),
        ),
    ] {
        let body = with(s3(), "destination", json!({"type": kind, "config": config}));
        let attr = format!("destination__config__{name}");
        let detail = "Use letters, digits, `-`, `.` and `_`.";
        let answer = owner.post(&path(&app), &body).await;
        assert_invalid(&answer, Some(&attr), "invalid_input", detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inner_addresses_that_are_allowed_are_saved() {
    let app =
        TestApp::start(|config| config.egress_allow = "::1,10.1.0.0/16".parse().unwrap(), |_| {});
    let app = app.await.set_up().await;
    let owner = owner(&app).await;
    for host in ["10.1.2.3", "[::1]", "localhost"] {
        for (_, body) in everywhere(host) {
            made(&app, &owner, &body).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_name_the_first_field() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let destination = |value: Value| with(s3(), "destination", value);
    let config = |name: &str, value: Value| {
        let mut body = s3();
        body["destination"]["config"][name] = value;
        body
    };
    let required = "This field is required.";
    let mut no_name = s3();
    no_name.as_object_mut().unwrap().remove("name");
    let mut no_interval = s3();
    no_interval.as_object_mut().unwrap().remove("interval");
    for (body, attr, code, detail) in [
        (json!({}), "name", "required", required),
        (no_name, "name", "required", required),
        (with(s3(), "name", json!(" ")), "name", "blank", "This field may not be blank."),
        (
            with(s3(), "name", json!("x".repeat(201))),
            "name",
            "max_length",
            "Ensure this field has no more than 200 characters.",
        ),
        (json!({"name": "n", "interval": "day"}), "destination", "required", required),
        (destination(Value::Null), "destination", "null", "This field may not be null."),
        (
            destination(json!([])),
            "destination__non_field_errors",
            "invalid_input",
            "Invalid data. Expected a dictionary, but got list.",
        ),
        (destination(json!({"config": {}})), "destination__type", "required", required),
        (
            destination(json!({"type": "s3", "config": {}})),
            "destination__type",
            "invalid_choice",
            "\"s3\" is not a valid choice.",
        ),
        (destination(json!({"type": "S3"})), "destination__config", "required", required),
        (
            destination(json!({"type": "S3", "config": "x"})),
            "destination__config",
            "not_a_dict",
            "Expected a dictionary of items but got type \"str\".",
        ),
        (
            destination(json!({"type": "S3", "config": {}})),
            "destination__config__bucket_name",
            "required",
            required,
        ),
        (
            config("region", json!(7)),
            "destination__config__region",
            "invalid_input",
            "Not a valid string.",
        ),
        (
            config("bucket", json!("b")),
            "destination__config__bucket",
            "invalid_input",
            "This destination has no such setting.",
        ),
        (
            config("compression", json!("zstd")),
            "destination__config__compression",
            "invalid_choice",
            "JSONLines files cannot be compressed with zstd.",
        ),
        (no_interval, "interval", "required", required),
        (
            with(s3(), "interval", json!("month")),
            "interval",
            "invalid_choice",
            "\"month\" is not a valid choice.",
        ),
        (
            with(s3(), "paused", json!("perhaps")),
            "paused",
            "invalid_input",
            "Must be a valid boolean.",
        ),
        (
            with(s3(), "start_at", json!("tomorrow")),
            "start_at",
            "invalid_input",
            "Datetime has wrong format. Use one of these formats instead: \
             YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].",
        ),
        (
            with(with(s3(), "start_at", json!("2026-06-02")), "end_at", json!("2026-06-01T00:00Z")),
            "start_at",
            "invalid_input",
            "Datetime has wrong format. Use one of these formats instead: \
             YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].",
        ),
        (
            with(
                with(s3(), "start_at", json!("2026-06-01T00:00Z")),
                "end_at",
                json!("2026-06-01T00:00Z"),
            ),
            "end_at",
            "invalid_input",
            "The end must be after the start.",
        ),
        (
            with(s3(), "team_id", json!(999)),
            "team_id",
            "does_not_exist",
            "Object with id=999 does not exist.",
        ),
        (
            with(s3(), "team_id", json!("x")),
            "team_id",
            "invalid_input",
            "A valid integer is required.",
        ),
    ] {
        let answer = owner.post(&path(&app), &body).await;
        let expected = (400, code.to_owned(), detail.to_owned(), Some(attr.to_owned()));
        let (status, _, code, detail, attr) = answer.error();
        assert_eq!((status, code, detail, attr), expected, "{body}");
    }
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn these_types_of_destinations_are_known() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    for kind in [
        "S3",
        "Snowflake",
        "Postgres",
        "Redshift",
        "BigQuery",
        "HTTP",
        "NoOp",
        "Databricks",
        "AzureBlob",
        "GoogleCloudStorage",
        "LocalDirectory",
        "Ftp",
    ] {
        let destination = json!({"type": kind, "config": {"not_a_setting": 1}});
        let answer = owner.post(&path(&app), &with(s3(), "destination", destination)).await;
        let (status, _, _, detail, attr) = answer.error();
        assert_eq!(
            (status, attr.unwrap() == "destination__type"),
            (400, kind == "Ftp"),
            "{detail}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_read_and_its_faults_have_a_position() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let query = |text: &str| with(s3(), "hogql_query", json!(text));
    let (export, _) = made(
        &app,
        &owner,
        &query("select event, properties.$browser as browser from events where team_id = 1"),
    )
    .await;
    assert_eq!(
        export["hogql_query"],
        "SELECT event, properties.$browser AS browser FROM events WHERE team_id = 1"
    );
    assert_eq!(
        export["schema"],
        json!({
            "fields": [
                {"expression": "events.event", "alias": "event"},
                {
                    "expression": "JSONExtractString(events.properties, %(hogql_val_0)s)",
                    "alias": "browser",
                },
            ],
            "values": {"hogql_val_0": "$browser"},
            "hogql_query": export["hogql_query"],
            "filter": "events.team_id = 1",
        })
    );
    for empty in [json!(""), json!("  "), Value::Null] {
        let (export, _) = made(&app, &owner, &with(s3(), "hogql_query", empty)).await;
        assert_eq!((&export["hogql_query"], &export["schema"]), (&Value::Null, &Value::Null));
    }
    let attr = Some("hogql_query");
    for (text, detail) in [
        ("SELECT nothing FROM events", "Unknown field `nothing` (line 1, column 8)"),
        (
            "SELECT event FROM persons",
            "Only the table `events` can be exported (line 1, column 19)",
        ),
        ("SELECT event", "The query must read FROM events (line 1, column 13)"),
    ] {
        let answer = owner.post(&path(&app), &query(text)).await;
        assert_invalid(&answer, attr, "invalid_input", detail);
    }
    let http = json!({
        "name": "n", "interval": "hour", "hogql_query": "SELECT event FROM events",
        "destination": {"type": "HTTP", "config": {"url": "https://x.example/batch/", "token": "t"}},
    });
    let detail = "The destination HTTP takes whole events, so it has no query.";
    assert_invalid(&owner.post(&path(&app), &http).await, attr, "invalid_input", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_have_no_query_and_no_names_of_events() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let persons = || with(s3(), "model", json!("persons"));
    let (export, path) = made(&app, &owner, &persons()).await;
    assert_eq!(export["model"], "persons");
    assert_eq!(owner.get(&path).await.json()["model"], "persons");
    let given = with(s3(), "model", json!("events"));
    assert_eq!(made(&app, &owner, &given).await.0["model"], "events");
    for word in ["Persons", "sessions", ""] {
        let answer = owner.post(&super::path(&app), &with(s3(), "model", json!(word))).await;
        let detail = format!("\"{word}\" is not a valid choice.");
        assert_invalid(&answer, Some("model"), "invalid_choice", &detail);
    }
    let answer = owner.post(&super::path(&app), &with(s3(), "model", Value::Null)).await;
    assert_invalid(&answer, Some("model"), "null", "This field may not be null.");

    let query = with(persons(), "hogql_query", json!("SELECT event FROM events"));
    let detail = "A query chooses among events. An export of persons has none.";
    let answer = owner.post(&super::path(&app), &query).await;
    assert_invalid(&answer, Some("hogql_query"), "invalid_input", detail);
    for name in ["include_events", "exclude_events"] {
        let mut body = persons();
        body["destination"]["config"][name] = json!(["paid"]);
        let answer = owner.post(&super::path(&app), &body).await;
        let attr = format!("destination__config__{name}");
        let detail = "Names choose among events. An export of persons has none.";
        assert_invalid(&answer, Some(&attr), "invalid_input", detail);
        // An empty list is not a filter.
        body["destination"]["config"][name] = json!([]);
        assert_eq!(owner.post(&super::path(&app), &body).await.status, 201);
    }
    let http = json!({"type": "HTTP", "config": {"url": "https://x.example/batch/", "token": "t"}});
    let answer = owner.post(&super::path(&app), &with(persons(), "destination", http)).await;
    let detail = "The destination HTTP takes events only.";
    assert_invalid(&answer, None, "invalid_input", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_export_says_since_when() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let paused = with(s3(), "paused", json!(true));
    let (export, _) = made(&app, &owner, &paused).await;
    assert_eq!(export["last_paused_at"], "2026-05-28T20:26:40Z");
    let given = with(paused.clone(), "last_paused_at", json!("2026-01-01 00:00+01:00"));
    let (export, _) = made(&app, &owner, &given).await;
    assert_eq!(export["last_paused_at"], "2025-12-31T23:00:00Z");
    let future = with(paused, "last_paused_at", json!("2026-05-28T20:26:41Z"));
    let answer = owner.post(&path(&app), &future).await;
    let detail = "The last pause must not be in the future.";
    assert_invalid(&answer, Some("last_paused_at"), "invalid_input", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_only() {
    let (app, _) = app().await;
    let grace = app.outsider("grace").await;
    let outsider = grace.key(&["*"]).await;
    let answer = outsider.post(&path(&app), &s3()).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    let answer = outsider.post(&project_path(&app), &s3()).await;
    answer.assert_error(404, "invalid_request", "not_found", "Project not found.");
    app.join(&grace, Level::Member).await;
    assert_eq!(outsider.post(&path(&app), &s3()).await.status, 201);
    let reader = grace.key(&["batch_export:read"]).await;
    let detail = "API key missing required scope 'batch_export:write'";
    for path in [path(&app), project_path(&app)] {
        let answer = reader.post(&path, &s3()).await;
        answer.assert_error(403, "authentication_error", "permission_denied", detail);
    }
    // A key that is limited to the project can use its exports only below the project.
    let limited = grace.limited_key(&["*"], &[], &[app.project()]).await;
    assert_eq!(limited.post(&project_path(&app), &s3()).await.status, 201);
    assert_eq!(limited.post(&path(&app), &s3()).await.status, 403);
    let current = "/api/organizations/@current/batch_exports/";
    assert_eq!(owner(&app).await.post(current, &s3()).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_export_more_than_the_maximum_is_refused() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let made = owner.post(&path(&app), &s3()).await.json();
    let store = app.store();
    let id = BatchExportId(made["id"].as_str().unwrap().parse().unwrap());
    let row = exports::find(store, id).await.unwrap().unwrap();
    for _ in 1..EXPORTS_MAX {
        let row = ExportRow { id: BatchExportId(ids::time_ordered(row.created_at)), ..row.clone() };
        exports::create(store, &row, EXPORTS_MAX, None, &[]).await.unwrap();
    }
    let refused = owner.post(&path(&app), &s3()).await;
    let detail = "A project may have at most 500 exports. Delete one first.";
    assert_invalid(&refused, None, "invalid_input", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_events_have_a_bound_in_bytes() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let mut sent = s3();
    sent["destination"]["config"]["include_events"] = json!(vec!["n".repeat(400); 82]);
    let refused = owner.post(&path(&app), &sent).await;
    let attr = "destination__config__include_events";
    let detail =
        "The names in include_events and exclude_events may have at most 32768 bytes together.";
    assert_invalid(&refused, Some(attr), "max_length", detail);
}
