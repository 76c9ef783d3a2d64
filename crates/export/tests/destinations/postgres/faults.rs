//! Faults: servers that refuse, end, have untrusted certificates or send invalid data.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use weir_export::destination::Destination;
use weir_model::exports::ExportModel;
use weir_testkit::servers::{Postgres, free_address};

use super::{at, client, failing, job, opened, records, rows, run, write};

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
        (json!({"port": free_address().port()}), "ConnectionRefused", true),
    ] {
        let destination = at("Postgres", &server, more.clone());
        let failure = failing(destination.as_ref()).await;
        assert_eq!((failure.class, failure.is_retryable), (class, is_retryable), "{more}");
        assert!(!failure.message.contains("relation"), "{failure}: words of the server");
    }

    let config = json!({"host": "127.0.0.1", "database": "d", "user": "u", "password": "p"});
    let refused = opened("Postgres", config.as_object().unwrap(), &[]).unwrap();
    assert_eq!(failing(refused.as_ref()).await.class, "ForbiddenAddress");

    // The server ends during the run, and starts again.
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
async fn a_connection_test_names_the_step_and_leaves_nothing() {
    let server = Postgres::start().await;
    let outcome = async |more: Value| {
        let destination = at("Postgres", &server, more);
        let mut classes = Vec::new();
        for step in 0..destination.steps().len() {
            classes.push(
                destination
                    .test(step, ExportModel::Events)
                    .await
                    .err()
                    .map(|failure| failure.class),
            );
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

/// A server that answers the request for TLS, and then sends `then`.
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
                        // Waits until the other side has read it.
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

/// Encodes a message of the protocol.
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

    // A message of one gigabyte that does not end.
    let chatter = [&[b'R', 0x40, 0, 0, 0], &[b'x'; 1 << 20][..]].concat();
    let failure = failing(impostor(b"N", chatter, true).await.as_ref()).await;
    assert_eq!((failure.class, failure.is_retryable), ("ConnectionBroken", true));
}
