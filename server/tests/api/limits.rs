//! Limits on the resources that a client may use (SEC-16, SEC-17).

mod of_users;

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use weir_model::organizations::Level;
use weir_server::config::Networks;
use weir_server::limits::{ByteLimits, Limits};
use weir_testkit::{Call, TestApp, until};

use crate::live::LiveStream;
use crate::web::{cookie, function, session};

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
async fn silent_and_slow_clients_are_disconnected() {
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
        // Longer than the limit for headers, which must pass here.
        let closed = tokio::time::timeout(2 * limit, stream.read(&mut answer)).await;
        assert!(closed.is_err(), "the connection stays open: {closed:?}");
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
    // The permits are released.
    until(async || raw(&app, b"GET /_health HTTP/1.0\r\n\r\n").await.contains("200 OK")).await;
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

/// A budget of which each network may hold a part, without a reserve.
fn bytes(total: usize, per_network: [usize; 3]) -> ByteLimits {
    ByteLimits { total, per_network, reserve: 0, small_body: 0 }
}

/// A request that announces more bytes than it sends, from a client behind the proxy.
async fn unfinished(app: &TestApp, client: &str, path: &str, sent: usize) -> TcpStream {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-forwarded-for: {client}\r\n\
         sec-fetch-site: same-origin\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         content-length: 60000\r\n\r\n"
    );
    let mut stream = TcpStream::connect(app.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'a'; sent]).await.unwrap();
    stream
}

/// Sends a byte a few times. A byte that comes after the answer can end the connection before
/// the answer is read, so the last one comes well before `limit`.
async fn trickle(stream: &mut TcpStream, limit: Duration) {
    let mut ticks = tokio::time::interval(limit / 10);
    for _ in 0..5 {
        ticks.tick().await;
        stream.write_all(b"a").await.unwrap();
    }
}

async fn answer_to(mut stream: TcpStream) -> String {
    let mut answer = [0; 4_096];
    let reading = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut answer));
    let read = reading.await.expect("an answer").unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// An instance that identifies clients by a proxy's header.
async fn behind_a_proxy(change: impl FnOnce(&mut Limits)) -> TestApp {
    let proxies = "127.0.0.1/32".parse::<Networks>().unwrap();
    TestApp::start(|config| config.trusted_proxies = proxies, change).await.set_up().await
}

fn sign_in_from(app: &TestApp, client: &str) -> Call {
    padded_sign_in_from(app, client, 0)
}

/// The same sign-in in a form with this many more bytes.
fn padded_sign_in_from(app: &TestApp, client: &str, more: usize) -> Call {
    let body = "email=ada%40mail.example&password=plum-otter-violin-93&next=%2F";
    let body = format!("{body}&junk={}", "x".repeat(more));
    function(app, "sign_in", &body).header("x-forwarded-for", client)
}

async fn session_from(app: &TestApp, client: &str) -> String {
    cookie(&sign_in_from(app, client).send().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_block_no_other_client() {
    let (slow, other) = ("198.51.100.1", "203.0.113.2");
    let app = behind_a_proxy(|limits| {
        limits.early_bytes = bytes(64 << 10, [32 << 10; 3]);
        // A client that is still sending does not hold a permit.
        limits.api_requests = 1;
        limits.web_requests = 1;
    })
    .await;
    let reader = app.owner().key(&["*"]).await;
    let cookie = session_from(&app, slow).await;
    let mut open = Vec::new();
    for path in ["/_fn/sign_in", "/api/login/"] {
        open.push(unfinished(&app, slow, path, 10_000).await);
    }
    until(async || sign_in_from(&app, slow).send().await.status == 429).await;
    // Other clients can sign in, and known users do not need the bytes that unknown
    // senders use up.
    assert_eq!(sign_in_from(&app, other).send().await.status, 200);
    let call = function(&app, "list_organizations", "").header("cookie", &cookie);
    assert_eq!(call.header("x-forwarded-for", slow).send().await.status, 200);
    assert_eq!(reader.get("/api/organizations/").await.status, 200);
    drop(open);
    until(async || sign_in_from(&app, slow).send().await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trickle_of_bytes_keeps_no_body_open() {
    let limit = Duration::from_secs(3);
    let app = behind_a_proxy(|limits| limits.early_body.time = limit).await;
    for path in ["/_fn/sign_in", "/api/login/"] {
        let mut stream = unfinished(&app, "198.51.100.1", path, 10_000).await;
        trickle(&mut stream, limit).await;
        assert!(answer_to(stream).await.starts_with("HTTP/1.1 408"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_networks_of_one_site_share_their_room() {
    // Six bodies fit, two of each network and three of each site.
    let step = 16 << 10;
    let app = behind_a_proxy(|limits| {
        limits.early_bytes = bytes(6 * step, [2 * step, 3 * step, 4 * step]);
    })
    .await;
    let mut open = Vec::new();
    for subnet in 0..16 {
        let client = format!("2001:db8:1:{subnet:x}::1");
        open.push(unfinished(&app, &client, "/_fn/sign_in", 10_000).await);
    }
    until(async || sign_in_from(&app, "2001:db8:1:ff::1").send().await.status == 429).await;
    for other in ["2001:db8:2::1", "2001:db9::1", "198.51.100.1"] {
        assert_eq!(sign_in_from(&app, other).send().await.status, 200, "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_bodies_have_room_while_slow_ones_hold_the_rest() {
    let app = behind_a_proxy(|limits| {
        let total = 64 << 10;
        let reserve = 128 << 10;
        let small = ByteLimits { total, per_network: [total; 3], reserve, small_body: 4 << 10 };
        limits.early_bytes = small;
        limits.capture_bytes = small;
    })
    .await;
    let event = |client: &'static str, more: usize| {
        let event = json!({"api_key": app.project_key(), "event": "a", "distinct_id": "b",
                           "properties": {"junk": "x".repeat(more)}});
        let call = app.anonymous().call(Method::POST, "/e/").header("x-forwarded-for", client);
        call.json(&event).send()
    };
    let (slow, other) = ("198.51.100.1", "203.0.113.1");
    let mut open = Vec::new();
    for path in ["/_fn/sign_in", "/batch/"] {
        for _ in 0..4 {
            open.push(unfinished(&app, slow, path, 10_000).await);
        }
    }
    until(async || padded_sign_in_from(&app, other, 5_000).send().await.status == 429).await;
    until(async || event(other, 5_000).await.status == 503).await;
    for client in [slow, other] {
        assert_eq!(sign_in_from(&app, client).send().await.status, 200, "{client}");
        assert_eq!(event(client, 0).await.status, 200, "{client}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_events_keep_no_other_network_out() {
    let app = behind_a_proxy(|limits| {
        limits.capture_bytes = bytes(1 << 20, [64 << 10; 3]);
    })
    .await;
    let send = |client: &'static str| {
        let event = json!({"api_key": app.project_key(), "event": "a", "distinct_id": "b"});
        app.anonymous()
            .call(Method::POST, "/e/")
            .header("x-forwarded-for", client)
            .json(&event)
            .send()
    };
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(unfinished(&app, "198.51.100.1", "/batch/", 10_000).await);
    }
    until(async || send("198.51.100.1").await.status == 503).await;
    assert_eq!(send("203.0.113.2").await.status, 200);
    drop(open);
    until(async || send("198.51.100.1").await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_senders_may_send_little() {
    let app = TestApp::with_owner().await;
    let key = app.owner().key(&["*"]).await;
    let (value, large) = (key.key().to_owned(), "x".repeat(100_000));
    let organizations = "/api/organizations/";
    let body = |key: Option<&str>| json!({"name": "Beta", "junk": large, "personal_api_key": key});
    // A known user may send more.
    assert_eq!(key.post(organizations, &body(None)).await.status, 201);
    let in_query = format!("{organizations}?personal_api_key={value}");
    assert_eq!(app.anonymous().post(&in_query, &body(None)).await.status, 201);
    // A body of this size is not searched for a key.
    assert_eq!(app.anonymous().post(organizations, &body(Some(&value))).await.status, 401);
    let small = json!({"name": "Gamma", "personal_api_key": value});
    assert_eq!(app.anonymous().post(organizations, &small).await.status, 201);
    let login = json!({"email": "ada@mail.example", "password": "x", "junk": large});
    assert_eq!(app.anonymous().post("/api/login/", &login).await.status, 413);

    let form = format!("name=Beta&junk={large}");
    let create = || function(&app, "create_organization", &form);
    let answer = create().send().await;
    assert_eq!((answer.status, answer.json()), (401, json!("SignIn")));
    let page = create().header("accept", "text/html").header("referer", "http://h/a?b=1");
    let answer = page.send().await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some("/login?next=/a%3Fb%3D1&unsent=1"))
    );
    let cookie = session(&app).await;
    assert_eq!(create().header("cookie", &cookie).send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_function_takes_is_refused_before_it_is_read() {
    let app = TestApp::with_owner().await;
    // No byte of the body is sent.
    let head = |path: &str, site: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\nsec-fetch-site: {site}\r\n\
             content-length: 900000\r\n\r\n"
        )
    };
    for (path, site, status) in [
        ("/_fn/nothing", "same-origin", "404"),
        ("/_fn/sign_in", "cross-site", "403"),
        ("/_upload/nothing", "same-origin", "404"),
        ("/login", "same-origin", "404"),
    ] {
        let mut stream = TcpStream::connect(app.address()).await.unwrap();
        stream.write_all(head(path, site).as_bytes()).await.unwrap();
        let answer = answer_to(stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
    for (body, fault) in [
        (Bytes::from("a&".repeat(1_000)), "1001 fields"),
        (Bytes::from_static(b"email=\xff"), "UTF-8"),
        (Bytes::from_static(b"email=%ff"), "UTF-8"),
    ] {
        for accept in ["application/json", "text/html"] {
            let call = function(&app, "sign_in", "").header("accept", accept).body(body.clone());
            let answer = call.send().await;
            let text = answer.text();
            assert_eq!((answer.status, text.contains(fault)), (400, true), "{text}");
        }
    }
    let most = format!("{}email=x", "a&".repeat(999));
    let answer = function(&app, "sign_in", &most).send().await;
    assert!(!String::from_utf8_lossy(&answer.body).contains("1000 fields"), "{:?}", answer.body);
}

/// Reads until the connection is closed.
async fn until_closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let reading = stream.read_to_end(&mut rest);
    let _ = tokio::time::timeout(Duration::from_secs(20), reading).await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_without_requests_is_closed() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const PING: [u8; 17] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(Limits::default().connections.idle, Duration::from_secs(60), "what is promised");
    let idle = Duration::from_millis(500);
    let app = TestApp::start(|_| {}, |limits| limits.connections.idle = idle).await;
    let open = async || {
        let mut stream = TcpStream::connect(app.address()).await.unwrap();
        stream.write_all(&[PREFACE, &SETTINGS].concat()).await.unwrap();
        stream
    };
    until_closed(open().await).await;
    // A client that sends pings all the time, but no request and no acknowledgement.
    let (mut reading, mut writing) = open().await.into_split();
    let pinging = tokio::spawn(async move {
        let mut interval = tokio::time::interval(Duration::from_millis(20));
        while writing.write_all(&PING).await.is_ok() {
            interval.tick().await;
        }
    });
    let mut bytes = [0; 4_096];
    let closed = async { while reading.read(&mut bytes).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(Duration::from_secs(20), closed).await.expect("it is closed");
    pinging.abort();
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// A GET without a body, in literals without compression.
fn get_frame(stream: u32, path: &str) -> Vec<u8> {
    let literal = |index: u8, text: &str| {
        [&[index, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
    };
    let headers = [vec![0x82, 0x86], literal(0x04, path), literal(0x01, "127.0.0.1")].concat();
    frame(1, 0x5, stream, &headers)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_with_an_unread_answer_is_closed_though_others_are_read() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let idle = Duration::from_millis(500);
    let app = TestApp::start(|_| {}, |limits| limits.connections.idle = idle).await;
    for window in [0, 1] {
        let stream = TcpStream::connect(app.address()).await.unwrap();
        let (mut reading, mut writing) = stream.into_split();
        let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, window]);
        let begin = [PREFACE, &settings, &get_frame(1, "/api/schema/")].concat();
        writing.write_all(&begin).await.unwrap();
        let asking = tokio::spawn(async move {
            let mut interval = tokio::time::interval(Duration::from_millis(50));
            for stream in (3..).step_by(2) {
                interval.tick().await;
                // The reader gives this answer all the room that it needs.
                let room = frame(8, 0, stream, &[0, 1, 0, 0]);
                let asked = [get_frame(stream, "/_livez"), room].concat();
                if writing.write_all(&asked).await.is_err() {
                    break;
                }
            }
        });
        let mut bytes = [0; 4_096];
        let closed = async { while reading.read(&mut bytes).await.is_ok_and(|read| read > 0) {} };
        tokio::time::timeout(Duration::from_secs(20), closed).await.expect("it is closed");
        asking.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_has_a_few_requests_at_a_time() {
    let (slow, other) = ("198.51.100.1", "203.0.113.2");
    let app = behind_a_proxy(|limits| limits.requests_per_network = [2; 3]).await;
    let status = async |client: &'static str, path: &str| {
        let call = app.anonymous().call(Method::GET, path);
        call.header("x-forwarded-for", client).send().await.status
    };
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(unfinished(&app, slow, "/batch/", 1).await);
    }
    until(async || status(slow, "/login").await == 429).await;
    assert_eq!(status(slow, "/flags/").await, 503, "libraries try it again");
    assert_eq!(status(slow, "/api/users/@me/").await, 429);
    assert_eq!(status(slow, "/_livez").await, 200, "probes are always answered");
    assert_eq!(status(other, "/login").await, 200);
    drop(open);
    until(async || status(slow, "/login").await == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_senders_of_one_network_take_a_part_of_the_permits() {
    let app = behind_a_proxy(|limits| limits.api_requests_per_network = [0; 3]).await;
    let key = app.owner().key(&["*"]).await;
    let login = json!({"email": "ada@mail.example", "password": "plum-otter-violin-93"});
    assert_eq!(app.anonymous().post("/api/login/", &login).await.status, 429);
    assert_eq!(key.get("/api/users/@me/").await.status, 200);
    let app = behind_a_proxy(|limits| limits.web_requests_per_network = [0; 3]).await;
    assert_eq!(app.anonymous().get("/login").await.status, 429);
    let event = json!({"api_key": app.project_key(), "event": "a", "distinct_id": "b"});
    assert_eq!(app.anonymous().post("/e/", &event).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_of_a_known_user_holds_no_permit() {
    let few = |limits: &mut Limits| (limits.api_requests, limits.api_requests_per_user) = (1, 1);
    let app = TestApp::start(|_| {}, few).await.set_up().await;
    let key = app.owner().key(&["*"]).await;
    let other = app.member("grace", Level::Member).await.key(&["*"]).await;
    let head = format!(
        "POST /api/organizations/ HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 16\r\n\
         expect: 100-continue\r\n\r\n",
        key.key()
    );
    let mut stream = TcpStream::connect(app.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body when the user of the request is known.
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(key.get("/api/users/@me/").await.status, 429);
    assert_eq!(other.get("/api/users/@me/").await.status, 200);
    stream.write_all(br#"{"name": "Acme"}"#).await.unwrap();
    assert!(answer_to(stream).await.starts_with("HTTP/1.1 201"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_outlives_the_time_without_requests() {
    let idle = Duration::from_millis(300);
    let app = TestApp::start(|_| {}, |limits| limits.connections.idle = idle).await.set_up().await;
    let cookie = session(&app).await;
    let mut live = LiveStream::open(&app, &cookie).await;
    live.until("hello").await;
    // Longer than a connection may be without a request, while rows arrive.
    let mut interval = tokio::time::interval(idle / 3);
    for _ in 0..8 {
        interval.tick().await;
        let event = json!({"api_key": app.project_key(), "event": "a", "distinct_id": "b"});
        assert_eq!(app.anonymous().post("/e/", &event).await.status, 200);
        live.until("event: row").await;
    }
}
