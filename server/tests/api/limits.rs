//! Limits on what a client may cost (SECURITY-NOTES 7).

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use weir_testkit::TestApp;

async fn raw(app: &TestApp, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(app.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(10), reading).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_throttled_one_by_one() {
    let app = TestApp::start(|config| config.rate_per_minute = 3, |_| {}).await.set_up().await;
    let busy = app.owner().key(&["*"]).await;
    let other = app.owner().key(&["*"]).await;
    for _ in 0..3 {
        assert_eq!(busy.get("/api/users/@me/").await.status, 200);
    }
    let answer = busy.get("/api/users/@me/").await;
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let detail = format!("Request was throttled. Expected available in {wait} seconds.");
    answer.assert_error(429, "throttled_error", "throttled", &detail);
    assert_eq!(other.get("/api/users/@me/").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn management_overload_is_429() {
    let app = TestApp::start(|_| {}, |limits| limits.api_requests = 0).await.set_up().await;
    let caller = app.owner().key(&["*"]).await;
    let answer = caller.get("/api/organizations/").await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    let event = json!({"api_key": app.project_key(), "event": "a", "distinct_id": "b"});
    assert_eq!(caller.post("/e/", &event).await.status, 200);
    assert_eq!(app.anonymous().get("/_readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_limited() {
    let app = TestApp::empty().await;
    let lines: String = (0..65).map(|n| format!("x-{n}: y\r\n")).collect();
    let many = format!("GET /_health HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
    assert!(raw(&app, many.as_bytes()).await.starts_with("HTTP/1.1 431"));
    let large = format!("GET /_health HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(40_000));
    assert!(raw(&app, large.as_bytes()).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_and_slow_clients_are_let_go() {
    let app = TestApp::start(
        |_| {},
        |limits| {
            limits.connections.first_bytes = Duration::from_millis(300);
            limits.connections.header_read = Duration::from_millis(300);
            limits.capture_body.progress_time = Duration::from_millis(300);
        },
    )
    .await;
    for beginning in ["", "P", "PRI * HTTP", "GET /_health HTTP/1.1\r\nhost:"] {
        let began = std::time::Instant::now();
        raw(&app, beginning.as_bytes()).await;
        assert!(began.elapsed() < Duration::from_secs(5), "{beginning:?}");
    }
    let slow = "POST /e/ HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{";
    let answer = raw(&app, slow.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("access-control-allow-origin"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_may_rest_between_requests_but_not_within_headers() {
    let limit = Duration::from_millis(300);
    let app = TestApp::start(|_| {}, |limits| limits.connections.header_read = limit).await;
    let mut stream = TcpStream::connect(app.address()).await.unwrap();
    let ask = b"GET /_health HTTP/1.1\r\nhost: a\r\n\r\n";
    for _ in 0..2 {
        stream.write_all(ask).await.unwrap();
        let mut answer = [0; 4_096];
        let read = stream.read(&mut answer).await.unwrap();
        assert!(answer[..read].starts_with(b"HTTP/1.1 200 OK"));
        // Longer than headers may take: that time must pass here.
        tokio::time::sleep(2 * limit).await;
    }
    stream.write_all(&ask[..20]).await.unwrap();
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "half a header line is not waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_limited_per_network() {
    let app = TestApp::start(|_| {}, |limits| limits.connections.per_network = 2).await;
    let ask = b"GET /_health HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(app.address()).await.unwrap();
        stream.write_all(ask).await.unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        open.push(stream);
    }
    let mut third = TcpStream::connect(app.address()).await.unwrap();
    let _ = third.write_all(ask).await;
    let mut answer = Vec::new();
    let _ = third.read_to_end(&mut answer).await;
    assert!(answer.is_empty());
    drop(open);
    // The places come back.
    for _ in 0..100 {
        if raw(&app, b"GET /_health HTTP/1.0\r\n\r\n").await.contains("200 OK") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!("no place came back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upload_leaves_the_connection_usable() {
    let app = TestApp::with_owner().await;
    let large = vec![b'x'; 21_000_000];
    for _ in 0..2 {
        let call = app.anonymous().call(http::Method::POST, "/batch/").body(large.clone());
        assert_eq!(call.send().await.status, 413);
    }
}
