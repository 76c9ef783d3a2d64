use serde_json::{Value, json};

use super::*;
use crate::exports::destinations;

fn kind(name: &str) -> &'static DestinationType {
    DestinationType::of(name).unwrap()
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("no object: {other}"),
    }
}

fn s3() -> Value {
    json!({
        "bucket_name": "events", "region": "eu-west-1", "prefix": "weir/",
        "aws_access_key_id": "AK", "aws_secret_access_key": " se cret ",
    })
}

fn postgres() -> Value {
    json!({"host": "db.example", "database": "d", "user": "u", "password": "p"})
}

/// The fault of a new config: attr (without the common prefix) and code.
fn fault(name: &str, config: Value) -> Option<(String, String)> {
    fault_of(complete(kind(name), &map(config)))
}

fn fault_of(outcome: Result<Map<String, Value>, FieldError>) -> Option<(String, String)> {
    let fault = outcome.err()?;
    let attr = fault.attr.unwrap();
    Some((attr.strip_prefix("destination__config__").unwrap().to_owned(), fault.code))
}

fn with(mut config: Value, name: &str, value: Value) -> Value {
    config[name] = value;
    config
}

fn without(mut config: Value, name: &str) -> Value {
    config.as_object_mut().unwrap().remove(name);
    config
}

#[test]
fn a_missing_field_gets_its_default() {
    let config = complete(kind("Postgres"), &map(postgres())).unwrap();
    assert_eq!(
        Value::Object(config),
        json!({
            "host": "db.example", "port": 5432, "database": "d", "user": "u", "password": "p",
            "schema": "public", "table_name": "events", "has_self_signed_cert": false,
            "include_events": null, "exclude_events": null,
        })
    );
    // Every default is valid JSON and valid for its setting.
    for kind in destinations::ALL {
        for field in kind.fields {
            if let Need::Default(default) = field.need {
                let value: Value = serde_json::from_str(default).unwrap();
                assert_eq!(read(field, "x", None, &value), Ok(value), "{}", field.name);
            }
        }
    }
}

#[test]
fn faults_name_the_setting_and_come_in_its_order() {
    let cases = [
        (json!({}), "bucket_name", "required"),
        (with(s3(), "bucket_name", json!(" ")), "bucket_name", "blank"),
        (with(s3(), "region", json!(7)), "region", "invalid_input"),
        (with(s3(), "prefix", Value::Null), "prefix", "null"),
        (with(s3(), "bucket", json!("b")), "bucket", "invalid_input"),
        (with(s3(), "compression", json!("zip")), "compression", "invalid_choice"),
        (with(s3(), "compression", json!("zstd")), "compression", "invalid_choice"),
        (with(s3(), "max_file_size_mb", json!("many")), "max_file_size_mb", "invalid_input"),
        (with(s3(), "max_file_size_mb", json!(-1)), "max_file_size_mb", "min_value"),
        (with(s3(), "endpoint_url", json!("")), "endpoint_url", "blank"),
        (with(s3(), "endpoint_url", json!("ftp://x")), "endpoint_url", "invalid_input"),
        (with(s3(), "endpoint_url", json!("http://u:p@x")), "endpoint_url", "invalid_input"),
        (
            with(s3(), "use_virtual_style_addressing", json!(1)),
            "use_virtual_style_addressing",
            "invalid_input",
        ),
        (with(s3(), "include_events", json!("a")), "include_events", "not_a_list"),
        (with(s3(), "include_events", json!(["a", ""])), "include_events__1", "blank"),
        (without(s3(), "aws_access_key_id"), "aws_access_key_id", "required"),
    ];
    for (config, attr, code) in cases {
        let expected = Some((attr.to_owned(), code.to_owned()));
        assert_eq!(fault("S3", config.clone()), expected, "{config}");
    }
    for name in ["drop table", "1a", "a-b", "ä"] {
        let config = with(postgres(), "table_name", json!(name));
        assert_eq!(fault("Postgres", config).unwrap().0, "table_name", "{name}");
    }
    let parquet = with(with(s3(), "file_format", json!("Parquet")), "compression", json!("zstd"));
    assert_eq!(fault("S3", parquet), None);
    let coerced =
        with(with(postgres(), "port", json!("6543")), "has_self_signed_cert", json!("True"));
    let config = complete(kind("Postgres"), &map(coerced)).unwrap();
    assert_eq!((&config["port"], &config["has_self_signed_cert"]), (&json!(6543), &json!(true)));
}

#[test]
fn settings_hang_together() {
    let snowflake = json!({
        "account": "a", "database": "d", "warehouse": "w", "schema": "s", "user": "u",
    });
    let fault_of = |config| fault("Snowflake", config).map(|(attr, _)| attr);
    assert_eq!(fault_of(snowflake.clone()).as_deref(), Some("password"));
    let key = with(snowflake.clone(), "authentication_type", json!("keypair"));
    assert_eq!(fault_of(key).as_deref(), Some("private_key"));
    assert_eq!(fault_of(with(snowflake, "password", json!("p"))), None);

    let copy = with(postgres(), "mode", json!("COPY"));
    assert_eq!(fault("Redshift", copy.clone()).unwrap().0, "copy_inputs");
    let inputs = json!({
        "s3_bucket": "b", "region_name": "r", "authorization": "arn:aws:iam::1:role/x",
        "bucket_credentials": {"aws_access_key_id": "a"},
    });
    assert_eq!(
        fault("Redshift", with(copy, "copy_inputs", inputs)).unwrap().0,
        "copy_inputs__bucket_credentials__aws_secret_access_key"
    );
}

#[test]
fn files_have_codecs_that_suit_their_format_wherever_they_go() {
    for (name, config) in [
        ("S3", s3()),
        ("AzureBlob", json!({"container_name": "c", "connection_string": "AccountName=a"})),
        ("GoogleCloudStorage", json!({"bucket_name": "b", "service_account_key": "{}"})),
        ("LocalDirectory", json!({"path": "events"})),
    ] {
        for codec in ["zstd", "lz4", "snappy", "gzip", "brotli"] {
            let lines = with(config.clone(), "compression", json!(codec));
            let is_known = matches!(codec, "gzip" | "brotli");
            let expected =
                (!is_known).then(|| ("compression".to_owned(), "invalid_choice".to_owned()));
            assert_eq!(fault(name, lines.clone()), expected, "{name} {codec}");
            let parquet = with(lines, "file_format", json!("Parquet"));
            assert_eq!(fault(name, parquet), None, "{name} {codec}");
        }
    }
}

#[test]
fn local_paths_stay_below_their_directory() {
    for path in ["events", "a/b/c", "date={year}-{month}/", "..a", "Ünï cödé"] {
        assert_eq!(fault("LocalDirectory", json!({"path": path})), None, "{path}");
    }
    for path in ["/etc", "..", "a/../b", "a/..", "./a", "a//b", "/", "a\u{0}b"] {
        let attr = fault("LocalDirectory", json!({"path": path})).map(|(attr, _)| attr);
        assert_eq!(attr.as_deref(), Some("path"), "{path}");
    }
}

fn redshift() -> Map<String, Value> {
    let inputs = json!({
        "s3_bucket": "b", "region_name": "r",
        "authorization": {"aws_access_key_id": "a", "aws_secret_access_key": "nested-1"},
        "bucket_credentials": {"aws_access_key_id": "a", "aws_secret_access_key": "nested-2"},
    });
    let config = with(with(postgres(), "mode", json!("COPY")), "copy_inputs", inputs);
    complete(kind("Redshift"), &map(config)).unwrap()
}

#[test]
fn secrets_are_kept_apart_also_within_settings() {
    let whole = redshift();
    let (shown, secrets) = split_secrets(kind("Redshift"), whole.clone());
    let text = Value::Object(shown.clone()).to_string();
    for secret in ["nested-1", "nested-2", "password", "\"user\"", "aws_"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert_eq!(shown["copy_inputs"]["authorization"], json!({}));
    assert_eq!(merged(shown, secrets), whole);

    // Leading and trailing blanks are part of a secret.
    let config = complete(kind("S3"), &map(s3())).unwrap();
    assert_eq!(config["aws_secret_access_key"], " se cret ");
}

#[test]
fn a_change_keeps_what_it_does_not_name() {
    let before = redshift();
    let sent = map(json!({"copy_inputs": {"s3_bucket": "other"}, "table_name": "t"}));
    let after = changed(kind("Redshift"), &before, &sent).unwrap();
    assert_eq!(after["copy_inputs"]["s3_bucket"], "other");
    let credentials = &after["copy_inputs"]["bucket_credentials"];
    assert_eq!(credentials["aws_secret_access_key"], "nested-2");
    assert_eq!((&after["table_name"], &after["password"]), (&json!("t"), &json!("p")));
    assert_eq!(changed_secrets(kind("Redshift"), &before, &after), Vec::<String>::new());

    let s3 = complete(kind("S3"), &map(s3())).unwrap();
    let cleared = changed(
        kind("S3"),
        &s3,
        &map(json!({
            "aws_access_key_id": null, "aws_secret_access_key": null, "file_format": null,
        })),
    )
    .unwrap();
    assert_eq!(cleared["aws_secret_access_key"], Value::Null);
    assert_eq!(cleared["file_format"], "JSONLines");
    assert_eq!(
        changed_secrets(kind("S3"), &s3, &cleared),
        ["aws_access_key_id", "aws_secret_access_key"]
    );
    assert_eq!(
        fault_of(changed(kind("S3"), &s3, &map(json!({"region": null})))).unwrap().1,
        "null"
    );
}

#[test]
fn another_address_or_user_wants_the_secrets_again() {
    let change = |name: &str, before: Value, sent: Value| {
        let before = complete(kind(name), &map(before)).unwrap();
        fault_of(changed(kind(name), &before, &map(sent))).map(|(attr, code)| {
            assert_eq!(code, "required");
            attr
        })
    };
    let host = json!({"host": "evil.example"});
    assert_eq!(change("Postgres", postgres(), host.clone()).as_deref(), Some("user"));
    let user = with(host.clone(), "user", json!("u"));
    assert_eq!(change("Postgres", postgres(), user.clone()).as_deref(), Some("password"));
    assert_eq!(change("Postgres", postgres(), with(user, "password", json!("p"))), None);
    let user = json!({"user": "root"});
    assert_eq!(change("Postgres", postgres(), user).as_deref(), Some("password"));
    for same in [json!({"host": "db.example"}), json!({"port": 5432, "user": "u"}), json!({})] {
        assert_eq!(change("Postgres", postgres(), same.clone()), None, "{same}");
    }
    assert_eq!(change("Postgres", postgres(), json!({"port": 1})).as_deref(), Some("user"));
    let endpoint = json!({"endpoint_url": "https://evil.example"});
    assert_eq!(change("S3", s3(), endpoint.clone()).as_deref(), Some("aws_access_key_id"));
    let no_secrets = without(without(s3(), "aws_access_key_id"), "aws_secret_access_key");
    assert_eq!(change("S3", no_secrets, endpoint), None);
    let http = json!({"url": "https://a.example/batch/", "token": "t"});
    let url = json!({"url": "https://b.example/batch/"});
    assert_eq!(change("HTTP", http, url).as_deref(), Some("token"));
}

#[test]
fn names_of_events_have_a_bound_for_both_lists_together() {
    let names = |count: usize| vec!["n".repeat(256); count];
    let s3_with = |included: usize, excluded: usize| {
        let mut config = map(s3());
        config.insert("include_events".to_owned(), Value::from(names(included)));
        config.insert("exclude_events".to_owned(), Value::from(names(excluded)));
        config
    };
    let attr = |outcome: Result<Map<String, Value>, FieldError>| outcome.err().and_then(|e| e.attr);
    assert_eq!(attr(complete(kind("S3"), &s3_with(64, 64))), None);
    for (included, excluded, at) in
        [(129, 0, "include_events"), (64, 65, "exclude_events"), (65, 64, "include_events")]
    {
        let fault = complete(kind("S3"), &s3_with(included, excluded)).unwrap_err();
        assert_eq!(fault.attr.unwrap(), format!("{AT}__{at}"));
        assert_eq!(fault.code, "max_length");
    }
    // Longer lists of before stay, and other settings can still change.
    let mut before = complete(kind("S3"), &s3_with(0, 0)).unwrap();
    before.insert("include_events".to_owned(), Value::from(names(1000)));
    before.insert("exclude_events".to_owned(), Value::from(names(1000)));
    let changed = |sent: Value| changed(kind("S3"), &before, &map(sent));
    assert_eq!(attr(changed(json!({"prefix": "other/"}))), None);
    assert_eq!(
        attr(changed(json!({"include_events": names(999)}))).unwrap(),
        format!("{AT}__exclude_events")
    );
    assert_eq!(attr(changed(json!({"include_events": names(9), "exclude_events": []}))), None);
}
