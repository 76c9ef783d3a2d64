//! Connections to real listeners: which are made, and with which outcome.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use weir_egress::{Egress, Fault, FaultClass, Method, Refused, Resolve, Rules, Trust};

// For the name localhost, created for these tests, valid for a hundred years.
const CERTIFICATE: &[u8] = include_bytes!("data/localhost.crt.der");
const KEY: &[u8] = include_bytes!("data/localhost.key.der");

/// What a listener does with a connection after a request.
#[derive(Clone)]
enum Act {
    Say(String),
    /// Sends this, then nothing more, and keeps the connection open.
    SayAndHang(String),
    /// Sends this without end.
    Endlessly(String),
    /// TLS, and an answer to every byte.
    Tls,
}

struct Listener {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Listener {
    async fn at(address: &str, act: Act) -> Self {
        let tcp = TcpListener::bind(address).await.unwrap();
        let address = tcp.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = tcp.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let act = act.clone();
                tokio::spawn(async move {
                    // A refused client closes the connection.
                    let _ = talk(stream, act).await;
                });
            }
        });
        Self { address, accepted, serving }
    }

    async fn new(act: Act) -> Self {
        Self::at("127.0.0.1:0", act).await
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

async fn talk(mut stream: TcpStream, act: Act) -> io::Result<()> {
    match act {
        Act::Say(text) => {
            request(&mut stream).await?;
            stream.write_all(text.as_bytes()).await
        }
        Act::SayAndHang(text) => {
            request(&mut stream).await?;
            stream.write_all(text.as_bytes()).await?;
            std::future::pending().await
        }
        Act::Endlessly(text) => {
            request(&mut stream).await?;
            loop {
                stream.write_all(text.as_bytes()).await?;
            }
        }
        Act::Tls => {
            let mut stream = acceptor().accept(stream).await?;
            let byte = stream.read_u8().await?;
            stream.write_all(&[byte + 1]).await?;
            stream.flush().await
        }
    }
}

/// Waits for a request, of any length.
async fn request(stream: &mut TcpStream) -> io::Result<usize> {
    stream.read(&mut [0; 1024]).await
}

fn acceptor() -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let certificates = vec![CertificateDer::from(CERTIFICATE)];
    TlsAcceptor::from(Arc::new(config.with_single_cert(certificates, key).unwrap()))
}

fn ok(body: &str) -> Act {
    Act::Say(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

/// Names whose addresses change: one answer after the other, and the last one from then
/// on.
#[derive(Default)]
struct Changing {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Changing {
    fn of(answers: &[&[&str]]) -> Arc<Self> {
        let addresses = |answer: &&[&str]| {
            let addresses = answer.iter().map(|address| address.parse::<IpAddr>().unwrap());
            addresses.collect::<Vec<_>>()
        };
        let answers = Mutex::new(answers.iter().map(addresses).collect());
        Arc::new(Self { answers, asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Resolve for Changing {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock();
        if answers.len() > 1 {
            return Ok(answers.pop_front().unwrap());
        }
        answers.front().cloned().ok_or_else(|| io::Error::other("no such name"))
    }
}

/// Never answers.
struct Silent;

#[async_trait]
impl Resolve for Silent {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}

fn rules(allow: &[&str]) -> Rules {
    Rules { allow: allow.iter().map(|network| network.parse().unwrap()).collect(), own: Vec::new() }
}

fn egress(allow: &[&str]) -> Egress {
    Egress::new(rules(allow)).unwrap()
}

fn with_names(allow: &[&str], names: Arc<dyn Resolve>) -> Egress {
    Egress::with_resolver(rules(allow), names).unwrap()
}

async fn get(egress: &Egress, url: &str) -> Result<(u16, Bytes), Fault> {
    let response = egress.request(Method::GET, url)?.send().await?;
    let status = response.status().as_u16();
    Ok((status, Egress::read(response, 1 << 20).await?))
}

fn fault<T>(outcome: Result<T, Fault>) -> Option<FaultClass> {
    outcome.err().map(|fault| fault.class)
}

#[tokio::test]
async fn an_allowed_address_is_reached() {
    let listener = Listener::new(ok("hello")).await;
    let egress = egress(&["127.0.0.1/32"]);
    assert_eq!(get(&egress, &listener.url()).await, Ok((200, Bytes::from("hello"))));
    assert!(egress.dial("127.0.0.1", listener.port()).await.is_ok());
    let localhost = with_names(&["127.0.0.1/32"], Changing::of(&[&["127.0.0.1"]]));
    let url = format!("http://inner.example:{}/", listener.port());
    assert_eq!(get(&localhost, &url).await, Ok((200, Bytes::from("hello"))));
    assert!(localhost.dial("inner.example", listener.port()).await.is_ok());
    assert_eq!(localhost.check_url(&url).await, Ok(()));
}

#[tokio::test]
async fn inner_addresses_are_refused_in_every_spelling() {
    let listener = Listener::new(ok("inner")).await;
    let port = listener.port();
    let egress = egress(&[]);
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "%31%32%37.0.0.1",
        "①②⑦.0.0.1",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::1]",
        "169.254.169.254",
        "10.0.0.1",
    ] {
        let url = format!("http://{host}:{port}/");
        let refused = egress.request(Method::GET, &url).err();
        assert_eq!(refused, Some(Refused::Address), "{url}");
        assert_eq!(fault(egress.dial(host, port).await), Some(FaultClass::Forbidden), "{host}");
        let expected = match host.is_ascii() && !host.contains('%') {
            true => Refused::Address,
            false => Refused::Spelling,
        };
        assert_eq!(egress.judge_url(&url), Err(expected), "{url}");
        let alone = host.trim_start_matches('[').trim_end_matches(']');
        for host in [host, alone] {
            assert!(egress.never_dials(host), "{host}");
            assert_eq!(egress.judge_host(host), Err(expected), "{host}");
        }
    }
    // This name is in the file of hosts.
    let url = format!("http://localhost:{port}/");
    assert_eq!(fault(get(&egress, &url).await), Some(FaultClass::Forbidden));
    assert_eq!(fault(egress.dial("LOCALHOST", port).await), Some(FaultClass::Forbidden));
    assert_eq!(fault(egress.check_url(&url).await), Some(FaultClass::Forbidden));
    let allowing = with_names(&["127.0.0.1/32"], Arc::new(Silent));
    for name in ["localhost", "LocalHost.", "db.localhost"] {
        assert_eq!(egress.judge_host(name), Err(Refused::Address), "{name}");
        assert_eq!(allowing.judge_host(name), Ok(()), "{name}");
    }
    assert_eq!(listener.accepted(), 0);
}

#[tokio::test]
async fn localhost_is_this_machine() {
    let listener = Listener::new(ok("here")).await;
    let (port, allow) = (listener.port(), ["127.0.0.0/8", "::1/128", "10.0.0.0/8"]);
    let here = with_names(&allow, Changing::of(&[&["127.0.0.1"]]));
    let url = format!("http://localhost:{port}/");
    assert_eq!(get(&here, &url).await, Ok((200, Bytes::from("here"))));
    // Addresses that other names may have.
    for addresses in [&["10.0.0.1"][..], &["8.8.8.8"], &["127.0.0.1", "10.0.0.1"]] {
        let elsewhere = with_names(&allow, Changing::of(&[addresses]));
        for name in ["localhost", "LocalHost.", "db.localhost"] {
            let url = format!("http://{name}:{port}/");
            assert_eq!(fault(elsewhere.check_url(&url).await), Some(FaultClass::Forbidden));
            assert_eq!(fault(get(&elsewhere, &url).await), Some(FaultClass::Forbidden), "{url}");
            assert_eq!(fault(elsewhere.dial(name, port).await), Some(FaultClass::Forbidden));
        }
        let url = format!("http://a.example:{port}/");
        assert_eq!(elsewhere.check_url(&url).await, Ok(()));
    }
    assert_eq!(listener.accepted(), 1);
}

#[tokio::test]
async fn no_host_ends_in_a_panic() {
    let egress = with_names(&[], Changing::of(&[]));
    let long = "a".repeat(300);
    for host in [
        "256.0.0.1",
        "b.127.0.0.1",
        "xn--a",
        "xn--ls8h",
        "xn--",
        "a..b",
        "..",
        ".",
        "-",
        "_",
        "*",
        "a!$&'()*+,;=b",
        "a\u{0}b",
        "a%00b",
        "a\u{200d}b",
        "münchen.example",
        "\u{ad}",
        "[fe80::1%25eth0]",
        "[::1",
        "]",
        "a:b:c",
        "0x",
        "1e5",
        "999999999999",
        &long,
    ] {
        for url in [format!("http://{host}/"), format!("https://{host}:99999/"), host.to_owned()] {
            let _ = egress.judge_url(&url);
            let _ = get(&egress, &url).await;
            let _ = egress.check_url(&url).await;
        }
        let _ = egress.judge_host(host);
        let _ = egress.dial(host, 1).await;
    }
}

#[test]
fn only_addresses_of_the_web_without_a_user_are_requested() {
    let egress = egress(&["0.0.0.0/0"]);
    for (url, expected) in [
        ("ftp://a.example/", Refused::Scheme),
        ("file:///etc/passwd", Refused::Scheme),
        ("unix:/run/docker.sock", Refused::Scheme),
        ("gopher://a.example:6379/_", Refused::Scheme),
        ("javascript:1", Refused::Scheme),
        ("http://user@a.example/", Refused::UserInfo),
        ("http://user:password@a.example/", Refused::UserInfo),
        ("http://:password@a.example/", Refused::UserInfo),
        ("http://a.example:80@127.0.0.1/", Refused::UserInfo),
        ("a.example", Refused::Malformed),
        ("//a.example/", Refused::Malformed),
        ("http://", Refused::Malformed),
        ("http://a b/", Refused::Malformed),
        ("http://1.2.3.4.5/", Refused::Malformed),
        ("", Refused::Malformed),
    ] {
        assert_eq!(egress.request(Method::GET, url).err(), Some(expected), "{url}");
    }
}

#[tokio::test]
async fn a_name_is_judged_by_what_it_stands_for_when_it_is_dialled() {
    let listener = Listener::new(ok("inner")).await;
    let port = listener.port();
    let url = format!("http://a.example:{port}/");
    let saved_as_public = || Changing::of(&[&["8.8.8.8"], &["127.0.0.1"]]);

    let over_http = with_names(&[], saved_as_public());
    assert_eq!(over_http.check_url(&url).await, Ok(()));
    assert_eq!(fault(get(&over_http, &url).await), Some(FaultClass::Forbidden));

    let over_tcp = with_names(&[], saved_as_public());
    assert_eq!(over_tcp.check_url(&url).await, Ok(()));
    assert_eq!(fault(over_tcp.dial("a.example", port).await), Some(FaultClass::Forbidden));
    assert_eq!(listener.accepted(), 0);
}

#[tokio::test]
async fn a_name_is_asked_for_once_and_that_answer_is_dialled() {
    let listener = Listener::new(ok("allowed")).await;
    let port = listener.port();
    // A second lookup would return another address.
    let names = Changing::of(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let egress = with_names(&["127.0.0.1/32"], names.clone());
    let url = format!("http://a.example:{port}/");
    assert_eq!(get(&egress, &url).await, Ok((200, Bytes::from("allowed"))));
    assert_eq!(names.asked(), 1);

    let names = Changing::of(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let egress = with_names(&["127.0.0.1/32"], names.clone());
    let stream = egress.dial("a.example", port).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), listener.address);
    assert_eq!(names.asked(), 1);
}

#[tokio::test]
async fn a_name_with_one_inner_address_is_refused() {
    let listener = Listener::new(ok("allowed")).await;
    let port = listener.port();
    for answer in [
        &["127.0.0.1", "127.0.0.2"][..],
        &["127.0.0.2", "127.0.0.1"],
        &["127.0.0.1", "fe80::1"],
        &["127.0.0.1", "::ffff:10.0.0.1"],
    ] {
        let egress = with_names(&["127.0.0.1/32"], Changing::of(&[answer]));
        let url = format!("http://a.example:{port}/");
        assert_eq!(fault(get(&egress, &url).await), Some(FaultClass::Forbidden), "{answer:?}");
        let dialled = egress.dial("a.example", port).await;
        assert_eq!(fault(dialled), Some(FaultClass::Forbidden), "{answer:?}");
    }
    assert_eq!(listener.accepted(), 0);
}

#[tokio::test]
async fn our_own_listeners_are_refused_by_name_too() {
    let own: SocketAddr = "8.8.8.8:9464".parse().unwrap();
    let rules = Rules { allow: Vec::new(), own: vec![own] };
    let egress = Egress::with_resolver(rules, Changing::of(&[&["8.8.8.8"]])).unwrap();
    for url in ["http://a.example:9464/metrics", "http://8.8.8.8:9464/metrics"] {
        assert_eq!(fault(get(&egress, url).await), Some(FaultClass::Forbidden), "{url}");
        assert_eq!(fault(egress.check_url(url).await), Some(FaultClass::Forbidden), "{url}");
    }
    assert_eq!(fault(egress.dial("a.example", 9464).await), Some(FaultClass::Forbidden));
    assert_eq!(egress.check_url("http://a.example:9465/").await, Ok(()));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let inner = Listener::at("127.0.0.2:0", ok("inner")).await;
    let to =
        format!("HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", inner.url());
    let outer = Listener::new(Act::Say(to)).await;
    let egress = egress(&["127.0.0.0/8"]);
    assert_eq!(get(&egress, &outer.url()).await, Ok((302, Bytes::new())));
    assert_eq!((outer.accepted(), inner.accepted()), (1, 0));
}

#[tokio::test]
async fn a_huge_answer_is_read_up_to_its_limit() {
    let egress = egress(&["127.0.0.1/32"]);
    let megabytes = "x".repeat(2 << 20);
    let chunk = format!("10000\r\n{}\r\n", "y".repeat(0x10000));
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for act in [
        ok(&megabytes),
        Act::Say(format!("HTTP/1.1 200 OK\r\n\r\n{megabytes}")),
        Act::Say(format!("{head}{}", chunk.repeat(40))),
    ] {
        let listener = Listener::new(act).await;
        assert_eq!(fault(get(&egress, &listener.url()).await), Some(FaultClass::TooLarge));
    }
    // Headers have a limit too.
    let endless = Listener::new(Act::Endlessly("HTTP/1.1 200 OK\r\nx: ".to_owned())).await;
    assert!(get(&egress, &endless.url()).await.is_err());
    let endless = Listener::new(Act::Endlessly("x".repeat(1000))).await;
    assert!(get(&egress, &endless.url()).await.is_err());
}

#[tokio::test]
async fn a_hanging_one_is_given_up() {
    let egress = egress(&["127.0.0.1/32"]).within(Duration::from_millis(200));
    for text in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"] {
        let listener = Listener::new(Act::SayAndHang(text.to_owned())).await;
        let outcome = get(&egress, &listener.url()).await;
        assert_eq!(fault(outcome), Some(FaultClass::TimedOut), "{text}");
    }
    let silent = with_names(&[], Arc::new(Silent)).within(Duration::from_millis(200));
    assert_eq!(fault(get(&silent, "http://a.example/").await), Some(FaultClass::TimedOut));
}

#[tokio::test]
async fn faults_are_classified() {
    let egress = egress(&["127.0.0.1/32"]);
    let closed = {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        tcp.local_addr().unwrap()
    };
    let url = format!("http://{closed}/");
    assert_eq!(fault(get(&egress, &url).await), Some(FaultClass::Refused));
    let dialled = egress.dial("127.0.0.1", closed.port()).await;
    assert_eq!(fault(dialled), Some(FaultClass::Refused));

    let garbage = Listener::new(Act::Say("220 mail.example ESMTP\r\n".to_owned())).await;
    assert_eq!(fault(get(&egress, &garbage.url()).await), Some(FaultClass::Broken));
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_owned();
    let half = Listener::new(Act::Say(half)).await;
    assert_eq!(fault(get(&egress, &half.url()).await), Some(FaultClass::Broken));

    let unreachable = with_names(&[], Changing::of(&[]));
    let empty = with_names(&[], Changing::of(&[&[]]));
    for names in [unreachable, empty] {
        let outcome = get(&names, "https://a.example/").await;
        assert_eq!(fault(outcome), Some(FaultClass::NotFound));
        assert_eq!(fault(names.dial("a.example", 5432).await), Some(FaultClass::NotFound));
        assert_eq!(fault(names.check_url("https://a.example/").await), Some(FaultClass::NotFound));
    }
    assert_eq!(fault(egress.dial("/run/postgresql", 5432).await), Some(FaultClass::NotFound));
    assert_eq!(FaultClass::Status(403).text(), "HTTP 403");
}

#[tokio::test]
async fn the_next_address_of_a_name_is_tried() {
    let listener = Listener::at("127.0.0.2:0", ok("second")).await;
    let names = || Changing::of(&[&["127.0.0.1", "127.0.0.2"]]);
    let egress = with_names(&["127.0.0.0/8"], names());
    let stream = egress.dial("a.example", listener.port()).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), listener.address);
    let url = format!("http://a.example:{}/", listener.port());
    assert_eq!(get(&egress, &url).await, Ok((200, Bytes::from("second"))));
}

#[tokio::test]
async fn tls_trusts_the_configured_certificates() {
    let listener = Listener::new(Act::Tls).await;
    let egress = egress(&["127.0.0.1/32"]);
    let dial = || egress.dial("127.0.0.1", listener.port());
    for host in ["localhost", "127.0.0.1", "localhost."] {
        let stream = dial().await.unwrap();
        let shaken = egress.tls(stream, host, Trust::Roots).await;
        assert_eq!(fault(shaken), Some(FaultClass::Tls), "{host}");

        let stream = dial().await.unwrap();
        let mut stream = egress.tls(stream, host, Trust::AnyCertificate).await.unwrap();
        stream.write_all(&[41]).await.unwrap();
        stream.flush().await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), 42, "{host}");
    }
    let url = format!("https://127.0.0.1:{}/", listener.port());
    assert_eq!(fault(get(&egress, &url).await), Some(FaultClass::Tls));
    // A server without TLS.
    let plain = Listener::new(ok("plain")).await;
    let url = format!("https://{}/", plain.address);
    assert_eq!(fault(get(&egress, &url).await), Some(FaultClass::Tls));
}

/// The environment variable with which the test below starts its own child process.
const TARGET: &str = "WEIR_TEST_TARGET";

#[tokio::test]
async fn no_proxy_is_asked() {
    if let Ok(url) = std::env::var(TARGET) {
        let egress = egress(&["127.0.0.1/32"]);
        assert_eq!(get(&egress, &url).await, Ok((200, Bytes::from("direct"))));
        return;
    }
    let listener = Listener::new(ok("direct")).await;
    let proxy = Listener::new(ok("by way of the proxy")).await;
    let program = std::env::current_exe().unwrap();
    let mut again = Command::new(program);
    again.args(["--exact", "no_proxy_is_asked"]).env(TARGET, listener.url());
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"] {
        again.env(name, proxy.url());
    }
    again.env_remove("no_proxy").env_remove("NO_PROXY");
    let output = tokio::task::spawn_blocking(move || again.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((listener.accepted(), proxy.accepted()), (1, 0));
}
