//! Bodies of unknown senders without a session or key: many fields, and the largest
//! allowed size, sent slowly.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;

/// How long other clients may wait meanwhile.
const WITHIN: Duration = Duration::from_secs(20);

fn form(serving: &Serving, path: &str, network: &str, body: String) -> weir_testkit::Call {
    let call = serving.caller.call(Method::POST, path).body(body);
    call.header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin")
        .header("x-forwarded-for", network)
}

/// Asserts that other clients can sign in and send events, in the usual time.
async fn assert_serves_others(serving: &Serving, made: &Value) {
    let (key, other) = (&made["project_api_key"], network(250));
    let event = json!({"api_key": key, "event": "a", "distinct_id": "b"});
    let event = serving.caller.call(Method::POST, "/e/").json(&event);
    let sign_in = "email=ada%40mail.example&password=plum-otter-violin-93&next=%2F".to_owned();
    let both = async {
        let event = event.header("x-forwarded-for", &other).send();
        let signed_in = form(serving, "/_fn/sign_in", &other, sign_in).send();
        tokio::join!(event, signed_in)
    };
    let (event, signed_in) = tokio::time::timeout(WITHIN, both).await.expect("answers");
    assert_eq!((event.status, signed_in.status), (200, 200), "{:?}", signed_in.body);
}

/// Sends this many bytes of a form that announces as many or more.
async fn begin(
    address: SocketAddr,
    path: &'static str,
    network: String,
    announced: usize,
    sent: usize,
) -> TcpStream {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nx-forwarded-for: {network}\r\n\
         sec-fetch-site: same-origin\r\ncontent-length: {announced}\r\n\
         content-type: application/x-www-form-urlencoded\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A refused connection may be closed before all of it was sent.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&b"a&".repeat(sent / 2)).await;
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_unknown_senders_fit_into_a_gigabyte() {
    let (_folder, serving, made) = serving().await;
    let watch = Watch::on(&serving);
    let mut forms = JoinSet::new();
    for n in 0..40 {
        let path = ["/_fn/nothing", "/_fn/sign_in", "/login", "/api/login/"][n % 4];
        forms.spawn(begin(serving.address, path, network(n), 60_000, 60_000));
    }
    assert_serves_others(&serving, &made).await;
    for mut stream in forms.join_all().await {
        let mut answer = [0; 12];
        // If the path is refused, the connection may be reset before the answer is read.
        if let Ok(12) = stream.read_exact(&mut answer).await {
            assert!(answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
        }
    }
    watch.survived("40 forms of 30,000 fields", SMALL);

    // Together more than any budget. Most of them are never complete.
    let mut slow = JoinSet::new();
    for n in 0..200 {
        let (path, announced, sent) = [
            ("/_fn/nothing", 900_000, 900_000),
            ("/_fn/sign_in", 1_000_000, 950_000),
            ("/api/login/", 60_000, 50_000),
            ("/batch/", 19_000_000, 4_000_000),
        ][n % 4];
        slow.spawn(begin(serving.address, path, network(n), announced, sent));
    }
    let open = slow.join_all().await;
    assert_serves_others(&serving, &made).await;
    watch.survived("200 large or slow bodies", SMALL);
    drop(open);
}

/// As many objects as fit into so many bytes of JSON, each with one number: in memory a
/// hundred times as much.
fn objects(bytes: usize, begin: &str) -> String {
    let one = r#"{"":0},"#;
    let count = (bytes - begin.len()) / one.len() - 1;
    format!(r#"{{{begin}"junk":[{}0]}}"#, one.repeat(count))
}

#[tokio::test(flavor = "multi_thread")]
async fn json_of_small_objects_fits_into_a_gigabyte() {
    let (_folder, serving, made) = serving().await;
    let watch = Watch::on(&serving);
    let owner = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    let organization = made["organization_id"].as_str().unwrap();
    // Nothing answers there, so a request that passes the checks waits with its body.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/batch/", silent.local_addr().unwrap());
    let try_it = format!("/api/organizations/{organization}/batch_exports/run_test_step_new/");
    let destination = json!({"type": "HTTP", "config": {"url": url, "token": "t"}});
    let begin = format!(r#""destination":{destination},"step":1,"#);
    let large = objects(1_000_000, &begin);
    let most = objects(7 * weir_model::json::VALUES / 2 - 700, &begin);
    let mut calls = JoinSet::new();
    for n in 0..64 {
        let body = if n % 2 == 0 { &large } else { &most };
        let call = owner.call(Method::POST, &try_it).body(body.clone());
        let call = call.header("content-type", "application/json");
        calls.spawn(call.header("x-forwarded-for", &network(n)).send());
    }
    let unknown = objects(60_000, r#""email":"a@b.example","#);
    for n in 0..128 {
        let call = serving.caller.call(Method::POST, "/api/login/precheck/").body(unknown.clone());
        let call = call.header("content-type", "application/json");
        calls.spawn(call.header("x-forwarded-for", &network(n)).send());
    }
    assert_serves_others(&serving, &made).await;
    watch.survived("192 bodies of small objects", SMALL);
    let statuses: Vec<u16> = calls.join_all().await.iter().map(|answer| answer.status).collect();
    assert!(statuses.iter().all(|status| [200, 400, 429, 503].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&400), "{statuses:?}");
}
