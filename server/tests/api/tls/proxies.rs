//! The client's address in the header of the PROXY protocol (SEC-35).

use serde_json::{Value, json};
use weir_server::config::Config;
use weir_testkit::TestApp;

use super::{metric, send};

const LINE: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n";

/// A header of version 2 for a client at 192.0.2.8, or for the proxy itself.
fn binary(command: u8) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([0x20 | command, 0x11, 0, 12]);
    header.extend([192, 0, 2, 8, 10, 0, 0, 1, 0x12, 0x67, 0x01, 0xbb]);
    header
}

async fn behind(proxies: &str) -> TestApp {
    let settings = |config: &mut Config| {
        config.proxy_protocol = true;
        config.trusted_proxies = proxies.parse().unwrap();
        config.metrics_listen = "127.0.0.1:0".parse().unwrap();
    };
    TestApp::start(settings, |_| {}).await.set_up().await
}

/// Sends an event with a forwarded header, and returns the answer.
async fn capture(app: &TestApp, header: &[u8], name: &str) -> String {
    let body = json!({"api_key": app.project_key(), "event": name, "distinct_id": "u"}).to_string();
    let request = format!(
        "POST /capture/ HTTP/1.0\r\nhost: a\r\nx-forwarded-for: 203.0.113.9\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    send(app.address(), &[header, request.as_bytes()].concat()).await
}

/// The address that an event was stored with.
async fn stored(app: &TestApp, header: &[u8], name: &str) -> Value {
    app.app().ingest.applied().await;
    let key = app.owner().key(&["query:read"]).await;
    let request = format!(
        "GET /api/projects/{}/events/?event={name} HTTP/1.0\r\nhost: a\r\n\
         authorization: Bearer {}\r\n\r\n",
        app.project(),
        key.key()
    );
    let answer = send(app.address(), &[header, request.as_bytes()].concat()).await;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut list: Value = serde_json::from_str(body).unwrap();
    list["results"][0]["properties"]["$ip"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_names_the_client() {
    let app = behind("127.0.0.1").await;
    for (name, header, address) in [
        ("line", LINE.to_vec(), "192.0.2.7"),
        ("binary", binary(1), "192.0.2.8"),
        // No client is named, so the forwarded header may be the client's own.
        ("local", binary(0), "127.0.0.1"),
        ("unknown", b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
    ] {
        let answer = capture(&app, &header, name).await;
        assert!(answer.contains(" 200 OK\r\n"), "{name}: {answer}");
        assert_eq!(stored(&app, LINE, name).await, address, "{name}");
    }
    assert_eq!(metric(&app, "weir_proxy_headers_refused_total").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_without_a_header_is_not_served() {
    let app = behind("127.0.0.1").await;
    let mut longest = b"PROXY TCP4 ".to_vec();
    longest.extend([b'1'; 4096]);
    for header in [b"".to_vec(), b"PROXY TCP4 192.0.2.7\r\n".to_vec(), longest] {
        assert_eq!(capture(&app, &header, "refused").await, "");
    }
    assert_eq!(metric(&app, "weir_proxy_headers_refused_total").await, 3.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_others_are_no_headers() {
    let app = behind("10.0.0.1").await;
    for header in [LINE.to_vec(), binary(1)] {
        let answer = capture(&app, &header, "refused").await;
        assert!(!answer.contains(" 200 OK\r\n"), "{answer}");
    }
    let answer = capture(&app, b"", "direct").await;
    assert!(answer.contains(" 200 OK\r\n"), "{answer}");
    assert_eq!(stored(&app, b"", "direct").await, "127.0.0.1");
    assert_eq!(metric(&app, "weir_proxy_headers_refused_total").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_behind_a_proxy_have_their_own_limits() {
    let settings = |config: &mut Config| {
        config.proxy_protocol = true;
        config.trusted_proxies = "127.0.0.1".parse().unwrap();
        config.metrics_listen = "127.0.0.1:0".parse().unwrap();
    };
    let app = TestApp::start(settings, |limits| limits.connections.per_network = 1).await;
    let ask = b"GET /_livez HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut open = tokio::net::TcpStream::connect(app.address()).await.unwrap();
    let request = String::from_utf8([LINE, ask].concat()).unwrap();
    let answer = super::ask(&mut open, &request).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(send(app.address(), &[LINE, ask].concat()).await, "");
    let closing = b"GET /_livez HTTP/1.0\r\n\r\n";
    let other = send(app.address(), &[&binary(1)[..], closing].concat()).await;
    // Both are in one network of 256 addresses, which may have two connections.
    assert!(other.contains(" 200 OK\r\n"), "{other}");
}
