//! Lists that are sent while they are read: how many a user may read, and how slowly.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use weir_model::organizations::Level;
use weir_server::limits::Limits;
use weir_testkit::{TestApp, until};

use crate::stored::send;

/// Sends more events than fit into the buffers of a connection whose client does not
/// read.
async fn send_much(app: &TestApp) {
    let text = "x".repeat(900_000);
    let event = json!({"event": "big", "distinct_id": "u", "properties": {"text": text}});
    send(app, json!(vec![event; 18])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_does_not_take_the_permits_of_others() {
    let few = |limits: &mut Limits| {
        limits.api_streams = 3;
        limits.api_streams_per_user = 2;
    };
    let app = TestApp::start(|_| {}, few).await.set_up().await;
    send(&app, json!([{"event": "big", "distinct_id": "u", "properties": {"a": "x".repeat(900_000)}},
                      {"event": "big", "distinct_id": "u", "properties": {"a": "x".repeat(900_000)}}]))
    .await;
    let path = format!("/api/projects/{}/events/", app.project());
    let (one, other) = (app.owner().key(&["*"]).await, app.owner().key(&["event:read"]).await);
    let grace = app.member("grace", Level::Member).await.key(&["*"]).await;
    let places = &app.app().permits.api_streams;
    // Two lists are being sent to the owner.
    let held = [(); 2].map(|()| places.enter(app.owner().id()).unwrap());
    for key in [&one, &other] {
        let refused = key.get(&path).await;
        assert_eq!(refused.header("retry-after"), Some("5"));
        let detail = "Too many long lists are being sent. You may read 2 at a time: read one to \
                      its end, or ask for smaller pages.";
        refused.assert_error(429, "throttled_error", "throttled", detail);
        // Short lists need no permit.
        assert_eq!(key.get(&format!("{path}?limit=1")).await.status, 200);
    }
    assert_eq!(grace.get(&path).await.json()["results"].as_array().unwrap().len(), 2);
    drop(held);
    assert_eq!(one.get(&path).await.status, 200);
    // A list that was read to its end releases its permit.
    until(async || [(); 2].map(|()| places.enter(app.owner().id())).iter().all(Result::is_ok))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_does_not_read_releases_its_permit() {
    let change = |limits: &mut Limits| {
        limits.api_streams_per_user = 1;
        limits.sending.part = Duration::from_secs(1);
    };
    let app = TestApp::start(|_| {}, change).await.set_up().await;
    send_much(&app).await;
    let key = app.owner().key(&["*"]).await;
    let path = format!("/api/projects/{}/events/", app.project());
    let mut slow = TcpStream::connect(app.address()).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        key.key()
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 15];
    slow.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200 OK");
    assert!(app.app().permits.api_streams.enter(app.owner().id()).is_err(), "it has the place");
    until(async || key.get(&path).await.status == 200).await;
    // The answer of the slow reader does not look complete.
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest).await;
    assert!(rest.len() < 16_000_000 && !rest.ends_with(b"0\r\n\r\n"), "{}", rest.len());
}
