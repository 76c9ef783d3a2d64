//! Certificates by ACME, from a certificate authority that checks names over real
//! connections (SEC-34).

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use weir_server::config::Config;
use weir_testkit::servers::{Pebble, free_address};
use weir_testkit::{DnsAnswer, DnsServer, TestApp, until};

use super::{ASK, Made, ask, connect, made};

const NAMES: [&str; 2] = ["weir.test", "t.shop.test"];

/// A certificate authority, and what a server needs to use it.
struct Authority {
    pebble: Pebble,
    _names: DnsServer,
    own: Made,
    listen: SocketAddr,
    redirect: SocketAddr,
    data: TempDir,
}

impl Authority {
    async fn start() -> Self {
        let names = DnsServer::start().await;
        for name in NAMES {
            names.set(name, DnsAnswer::Address(Ipv4Addr::LOCALHOST));
        }
        let (listen, redirect) = (free_address(), free_address());
        let own = made(&["localhost", "127.0.0.1"]);
        let pair = (own.certificate.as_str(), own.key.as_str());
        let pebble = Pebble::start(names.address(), redirect.port(), listen.port(), pair).await;
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("root.pem"), &own.certificate).unwrap();
        Self { pebble, _names: names, own, listen, redirect, data }
    }

    fn set(&self, config: &mut Config) {
        config.listen = self.listen.to_string();
        config.data = self.data.path().join("data");
        config.public_url = "https://weir.test".parse().unwrap();
        config.metrics_listen = "127.0.0.1:0".parse().unwrap();
        config.acme_domains = NAMES.join(",").parse().unwrap();
        config.acme_contact = "ada@mail.example".parse().unwrap();
        config.acme_directory = self.pebble.directory().parse().unwrap();
        config.acme_root = self.data.path().join("root.pem");
    }

    /// The root certificate that clients must trust, as PEM.
    async fn root(&self) -> String {
        let address = self.pebble.management();
        let stream = connect(address, &self.own.certificate, "localhost", &[b"http/1.1"]).await;
        let mut stream = stream.unwrap();
        stream.write_all(b"GET /roots/0 HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        // The end of the connection may not be announced.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let (_, pem) = answer.split_once("\r\n\r\n").unwrap();
        assert!(pem.contains("END CERTIFICATE"), "{answer}");
        pem.to_owned()
    }

    /// Waits until a server has a certificate, and asks it under each of its names.
    async fn until_served(&self, app: &TestApp) {
        let root = self.root().await;
        for name in NAMES {
            let mut stream =
                until(async || connect(app.address(), &root, name, &[b"http/1.1"]).await).await;
            let answer = ask(&mut stream, ASK).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
        }
    }

    /// The stored certificate with its key.
    fn stored(&self) -> String {
        let file = self.data.path().join("data/acme/certificate.pem");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::read_to_string(file).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_checked_at_the_port_of_tls() {
    let authority = Authority::start().await;
    let app = TestApp::start(|config| authority.set(config), |_| {}).await;
    authority.until_served(&app).await;
    let stored = authority.stored();
    assert!(stored.contains("PRIVATE KEY") && stored.contains("CERTIFICATE"));
    app.stop().await;

    // The next start has the certificate immediately, and asks for no other one.
    let app = TestApp::start(|config| authority.set(config), |_| {}).await;
    let root = authority.root().await;
    connect(app.address(), &root, NAMES[0], &[]).await.unwrap();
    assert_eq!(authority.stored(), stored);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_checked_at_the_port_of_redirects() {
    let authority = Authority::start().await;
    let settings = |config: &mut Config| {
        authority.set(config);
        config.redirect_listen = authority.redirect.to_string().parse().unwrap();
    };
    let app = TestApp::start(settings, |_| {}).await;
    authority.until_served(&app).await;
    assert_eq!(super::metric(&app, "weir_tls_certificate_failures_total").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_elsewhere_is_a_failure_that_is_counted() {
    let authority = Authority::start().await;
    let settings = |config: &mut Config| {
        authority.set(config);
        config.acme_domains = "unknown.test".parse().unwrap();
    };
    let app = TestApp::start(settings, |_| {}).await;
    until(async || super::metric(&app, "weir_tls_certificate_failures_total").await == 1.0).await;
    assert_eq!(super::metric(&app, "weir_tls_certificate_expiry_seconds").await, 0.0);
    assert!(connect(app.address(), &authority.own.certificate, NAMES[0], &[]).await.is_err());
}
