//! TLS of the server: certificate files, their replacement, protocols, redirects (SEC-32 to
//! SEC-36).

mod acme;
mod proxies;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustix::process::Signal;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use weir_server::config::{Config, Settings};
use weir_server::limits::Limits;
use weir_server::logs::with_causes;
use weir_server::serve::{Options, Server};
use weir_testkit::{TestApp, until};

use crate::doctor::doctor;
use crate::process::{Serving, weir, weir_through};

const HOST: &str = "weir.example";
const ASK: &str = "GET /_livez HTTP/1.1\r\nhost: weir.example\r\n\r\n";

/// A certificate of its own signature and its key, as PEM.
#[derive(Clone)]
struct Made {
    certificate: String,
    key: String,
}

fn made(names: &[&str]) -> Made {
    made_until(names, 2096)
}

/// Valid from 2020 to the first day of a year.
fn made_until(names: &[&str], year: i32) -> Made {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut certificate = CertificateParams::new(names).unwrap();
    certificate.not_before = date_time_ymd(2020, 1, 1);
    certificate.not_after = date_time_ymd(year, 1, 1);
    let certificate = certificate.self_signed(&key).unwrap().pem();
    Made { certificate, key: key.serialize_pem() }
}

/// The files that the settings name.
struct Files(TempDir);

impl Files {
    fn new(made: &Made) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write(made);
        files
    }

    /// Replaces the files, one after the other.
    fn write(&self, made: &Made) {
        std::fs::write(self.certificate(), &made.certificate).unwrap();
        std::fs::write(self.key(), &made.key).unwrap();
    }

    fn certificate(&self) -> PathBuf {
        self.0.path().join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("key.pem")
    }

    fn set(&self, config: &mut Config) {
        config.public_url = format!("https://{HOST}").parse().unwrap();
        config.metrics_listen = "127.0.0.1:0".parse().unwrap();
        config.tls_certificate = self.certificate();
        config.tls_key = self.key();
    }
}

/// A server with these files.
async fn serving(files: &Files, limits: impl FnOnce(&mut Limits)) -> TestApp {
    TestApp::start(|config| files.set(config), limits).await
}

/// A connection of a client that trusts a certificate.
async fn connect(
    address: SocketAddr,
    trusted: &str,
    name: &str,
    protocols: &[&[u8]],
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

async fn trusting(app: &TestApp, made: &Made) -> io::Result<TlsStream<TcpStream>> {
    connect(app.address(), &made.certificate, HOST, &[b"http/1.1"]).await
}

/// Sends a request that is answered with a JSON object. The connection stays open.
async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") && stream.read_buf(&mut answer).await.unwrap() > 0 {}
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends bytes without TLS, and reads until the connection is closed.
async fn send(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close the connection before it has read all.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(10), reading).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// The value of a metric.
async fn metric(app: &TestApp, name: &str) -> f64 {
    let page = app.metrics().await;
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

/// Why a server with these files does not start.
async fn refusal(files: &Files) -> String {
    let given = Settings {
        listen: Some("127.0.0.1:0".to_owned()),
        store: Some("mem://".parse().unwrap()),
        ..Settings::default()
    };
    let mut config = given.over(Settings::default());
    files.set(&mut config);
    with_causes(&Server::start(config, Options::default()).await.err().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_choose_http2_or_http1() {
    let made = made(&[HOST]);
    let files = Files::new(&made);
    let app = serving(&files, |_| {}).await;

    let stream = connect(app.address(), &made.certificate, HOST, &[b"h2", b"http/1.1"]).await;
    let stream = stream.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let io = TokioIo::new(stream);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get("https://weir.example/_livez").body(Empty::<Bytes>::new()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    assert_eq!(answer.headers()["strict-transport-security"], "max-age=31536000");
    connection.abort();

    let choices: [&[&[u8]]; 2] = [&[b"http/1.1"], &[]];
    for protocols in choices {
        let stream = connect(app.address(), &made.certificate, HOST, protocols).await;
        let answer = ask(&mut stream.unwrap(), ASK).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert!(metric(&app, "weir_tls_certificate_expiry_seconds").await > 3_900_000_000.0);
    assert_eq!(metric(&app, "weir_tls_handshakes_failed_total").await, 0.0);
    let choices: [&[&[u8]]; 2] = [&[b"gopher"], &[b"acme-tls/1"]];
    for wrong in choices {
        let refused = connect(app.address(), &made.certificate, HOST, wrong).await;
        assert!(refused.is_err());
    }
    // Without TLS there is no answer of HTTP.
    let answer = send(app.address(), ASK.as_bytes()).await;
    assert!(!answer.contains("HTTP"), "{answer}");
    until(async || metric(&app, "weir_tls_handshakes_failed_total").await == 3.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_files_change_new_connections_and_no_open_one() {
    let (old, new) = (made(&[HOST]), made(&[HOST]));
    let files = Files::new(&old);
    let app = serving(&files, |_| {}).await;
    let mut open = trusting(&app, &old).await.unwrap();
    assert!(ask(&mut open, ASK).await.starts_with("HTTP/1.1 200"));
    files.write(&new);
    until(async || trusting(&app, &new).await.map(drop)).await;
    assert!(trusting(&app, &old).await.is_err());
    assert!(ask(&mut open, ASK).await.starts_with("HTTP/1.1 200"));
    assert_eq!(metric(&app, "weir_tls_certificate_failures_total").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_used_leave_the_last_certificate() {
    let (old, other, new) = (made(&[HOST]), made(&[HOST]), made(&[HOST]));
    let files = Files::new(&old);
    let app = serving(&files, |_| {}).await;
    files.write(&Made { key: other.key.clone(), ..old.clone() });
    until(async || metric(&app, "weir_tls_certificate_failures_total").await == 1.0).await;
    trusting(&app, &old).await.unwrap();
    std::fs::remove_file(files.certificate()).unwrap();
    until(async || metric(&app, "weir_tls_certificate_failures_total").await == 2.0).await;
    trusting(&app, &old).await.unwrap();
    files.write(&new);
    until(async || trusting(&app, &new).await.map(drop)).await;
    assert_eq!(metric(&app, "weir_tls_certificate_failures_total").await, 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_does_not_start_with_a_wrong_pair() {
    let (one, other, old) = (made(&[HOST]), made(&[HOST]), made_until(&[HOST], 2021));
    for (files, fault) in [
        (Files::new(&Made { key: other.key, ..one.clone() }), "does not belong to the certificate"),
        (Files::new(&old), "expired at 2021-01-01T00:00:00Z"),
        (Files::new(&Made { key: String::new(), ..one.clone() }), "has no private key"),
        (Files::new(&Made { certificate: "x".to_owned(), ..one }), "has no certificate"),
    ] {
        let error = refusal(&files).await;
        assert!(error.contains(fault) && !error.contains("BEGIN"), "{error}");
        std::fs::remove_file(files.key()).unwrap();
        std::fs::remove_file(files.certificate()).unwrap();
        let error = refusal(&files).await;
        assert!(error.contains("cannot read") && error.contains("certificate.pem"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reads_the_files_immediately() {
    let files = Files::new(&made(&[HOST]));
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("lines");
    // The tests may run in a terminal. The program must not have it.
    let mut command = weir_through(&["setsid".to_owned()], folder.path());
    command.args(["--public-url", "https://weir.example"]);
    command.arg("--tls-certificate").arg(files.certificate());
    command.arg("--tls-key").arg(files.key()).arg("serve");
    command.stderr(std::fs::File::create(&log).unwrap());
    let serving = Serving::launch(command).await;
    let shows = async |text: &str| {
        until(async || {
            // Before the program is ready, the signal may be received for the log alone.
            serving.signal(Signal::HUP);
            let lines = std::fs::read_to_string(&log).unwrap();
            if lines.contains(text) { Ok(()) } else { Err(lines) }
        })
        .await;
    };
    shows("the certificate has not changed").await;
    std::fs::write(files.key(), "").unwrap();
    shows("the certificate was not read again; the last one stays").await;
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_has_the_probes_of_a_server_with_https() {
    for more in ["", "trusted_proxies = '127.0.0.1'\nproxy_protocol = true\n"] {
        let files = Files::new(&made(&[HOST]));
        let folder = tempfile::tempdir().unwrap();
        let settings = format!(
            "public_url = 'https://{HOST}'\ntls_certificate = '{}'\ntls_key = '{}'\n{more}",
            files.certificate().display(),
            files.key().display()
        );
        std::fs::write(folder.path().join("weir.toml"), settings).unwrap();
        let serving = Serving::start_with(weir(folder.path())).await;
        let report = doctor(folder.path(), &serving.address.to_string(), "off", &[]).await;
        for line in ["/_livez: 200", "/_readyz: 200"] {
            assert!(report.out.contains(line), "{line} is not in\n{}", report.out);
        }
        serving.signal(Signal::TERM);
        assert_eq!(serving.ended().await, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_redirected() {
    let files = Files::new(&made(&[HOST]));
    let settings = |config: &mut Config| {
        files.set(config);
        config.redirect_listen = "127.0.0.1:0".parse().unwrap();
    };
    let app = TestApp::start(settings, |_| {}).await;
    for (request, location) in [
        (
            "GET /projects/1/events?q=a%20b HTTP/1.0",
            "https://weir.example/projects/1/events?q=a%20b",
        ),
        ("POST /e/?ip=1 HTTP/1.0", "https://weir.example/e/?ip=1"),
        ("GET //other.example/ HTTP/1.0", "https://weir.example//other.example/"),
        // No order is open.
        (
            "GET /.well-known/acme-challenge/abc HTTP/1.0",
            "https://weir.example/.well-known/acme-challenge/abc",
        ),
    ] {
        let asked = format!("{request}\r\nhost: other.example\r\n\r\n");
        let answer = send(app.redirect_address(), asked.as_bytes()).await;
        assert!(answer.contains(" 308 Permanent Redirect\r\n"), "{answer}");
        assert!(answer.contains(&format!("location: {location}\r\n")), "{answer}");
        assert!(!answer.contains("strict-transport-security"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demand_for_https_is_a_setting() {
    let made = made(&[HOST]);
    let files = Files::new(&made);
    for (seconds, header) in [(300, Some("strict-transport-security: max-age=300\r\n")), (0, None)]
    {
        let settings = |config: &mut Config| {
            files.set(config);
            config.hsts_seconds = seconds;
        };
        let app = TestApp::start(settings, |_| {}).await;
        let answer = ask(&mut trusting(&app, &made).await.unwrap(), ASK).await;
        match header {
            Some(header) => assert!(answer.contains(header), "{answer}"),
            None => assert!(!answer.contains("strict-transport-security"), "{answer}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_are_limited_in_time_and_in_number() {
    let made = made(&[HOST]);
    let files = Files::new(&made);
    let app = serving(&files, |limits| {
        limits.connections.openings = 1;
        limits.connections.opening = Duration::from_secs(5);
    })
    .await;
    let mut silent = TcpStream::connect(app.address()).await.unwrap();
    until(async || metric(&app, "weir_http_connections").await >= 2.0).await;
    let refused = trusting(&app, &made).await;
    assert!(refused.is_err());
    assert_eq!(metric(&app, "weir_http_connections_refused_total").await, 1.0);
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(60), silent.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "a client that says nothing is not awaited");
    until(async || trusting(&app, &made).await.map(drop)).await;
    assert_eq!(metric(&app, "weir_tls_handshakes_failed_total").await, 1.0);
}
