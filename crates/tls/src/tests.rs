//! Pairs, and handshakes with a client of the same library.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_rustls::{TlsConnector, client};
use weir_model::Timestamp;

use crate::{ACME_PROTOCOL, Handshake, Pair, PairError, Tls};

/// A certificate of its own signature and its key, as PEM.
struct Made {
    certificate: String,
    key: String,
}

fn made(name: &str) -> Made {
    made_until(name, 2096)
}

/// Valid from 2020 to the first day of a year.
fn made_until(name: &str, year: i32) -> Made {
    let key = KeyPair::generate().unwrap();
    let mut certificate = CertificateParams::new(vec![name.to_owned()]).unwrap();
    certificate.not_before = date_time_ymd(2020, 1, 1);
    certificate.not_after = date_time_ymd(year, 1, 1);
    let certificate = certificate.self_signed(&key).unwrap().pem();
    Made { certificate, key: key.serialize_pem() }
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn parsed(tls: &Tls, certificate: &str, key: &str) -> Result<Pair, PairError> {
    let (of_certificate, of_key) = (Path::new("a.pem"), Path::new("a.key"));
    let certificate = (of_certificate, certificate.as_bytes());
    Pair::parse(tls.provider(), certificate, (of_key, key.as_bytes()))
}

fn pair(tls: &Tls, made: &Made) -> Pair {
    parsed(tls, &made.certificate, &made.key).unwrap()
}

#[test]
fn faults_of_files_are_named() {
    let (tls, one, other) = (Tls::new().unwrap(), made("a.example"), made("a.example"));
    let text = |certificate: &str, key: &str| {
        parsed(&tls, certificate, key).map(drop).unwrap_err().to_string()
    };
    let mismatch = text(&one.certificate, &other.key);
    assert_eq!(
        mismatch,
        "the private key in `a.key` does not belong to the certificate in `a.pem`"
    );
    let swapped = text(&one.key, &one.certificate);
    assert_eq!(swapped, "`a.pem` has no certificate in the PEM format");
    assert!(text("", &one.key).contains("has no certificate"));
    assert!(text(&one.certificate, "").contains("has no private key"));
    let encrypted = one.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    assert!(text(&one.certificate, &encrypted).contains("or one that is encrypted"));
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(text(damaged, &one.key), "a certificate in `a.pem` is damaged");
    let unusable = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert_eq!(text(&one.certificate, unusable), "the private key in `a.key` cannot be used");
}

#[test]
fn files_are_read_within_a_bound() {
    let (tls, made) = (Tls::new().unwrap(), made("a.example"));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.pem"), &made.certificate).unwrap();
    std::fs::write(path("a.key"), &made.key).unwrap();
    Pair::read(&tls, &path("a.pem"), &path("a.key")).unwrap();
    let missing = Pair::read(&tls, &path("a.pem"), &path("b.key")).unwrap_err();
    assert!(matches!(missing, PairError::Unreadable { .. }), "{missing}");
    std::fs::write(path("a.pem"), "x".repeat((1 << 20) + 1)).unwrap();
    let large = Pair::read(&tls, &path("a.pem"), &path("a.key")).unwrap_err();
    assert!(matches!(large, PairError::TooLarge(_)), "{large}");
}

#[test]
fn the_time_of_a_certificate_is_checked() {
    let tls = Tls::new().unwrap();
    // Valid for three years.
    let pair = pair(&tls, &made_until("a.example", 2023));
    assert_eq!(pair.expires_at(), at("2023-01-01T00:00:00Z"));
    for (time, is_valid, is_due) in [
        ("2019-12-31T23:59:59Z", false, false),
        ("2020-01-01T00:00:00Z", true, false),
        ("2021-12-31T00:00:00Z", true, false),
        ("2022-01-03T00:00:00Z", true, true),
        ("2022-12-31T23:59:59Z", true, true),
        ("2023-01-01T00:00:00Z", false, true),
    ] {
        assert_eq!(pair.check(at(time)).is_ok(), is_valid, "{time}");
        assert_eq!(pair.is_due(at(time)), is_due, "{time}");
    }
    let expired = pair.check(at("2024-01-01T00:00:00Z")).unwrap_err().to_string();
    assert_eq!(expired, "the certificate in `a.pem` expired at 2023-01-01T00:00:00Z");
}

#[test]
fn a_certificate_is_for_its_names_alone() {
    let tls = Tls::new().unwrap();
    let pair = pair(&tls, &made("*.a.example"));
    assert!(pair.covers("weir.a.example"));
    for other in ["a.example", "weir.b.example", "127.0.0.1", "", "not a name"] {
        assert!(!pair.covers(other), "{other}");
    }
}

/// A handshake of a client that trusts this certificate.
async fn shake(
    tls: &Tls,
    trusted: &Made,
    protocols: &[&[u8]],
) -> (io::Result<Handshake<DuplexStream>>, io::Result<client::TlsStream<DuplexStream>>) {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::clone(tls.provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let (near, far) = tokio::io::duplex(64 << 10);
    let name = ServerName::try_from("a.example").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    tokio::join!(tls.accept(far), connector.connect(name, near))
}

#[tokio::test]
async fn clients_get_the_newest_certificate_and_the_protocol_that_they_prefer_less() {
    let (tls, old, new) = (Tls::new().unwrap(), made("a.example"), made("a.example"));
    let (server, client) = shake(&tls, &old, &[]).await;
    assert!(server.is_err() && client.is_err(), "there is no certificate");

    tls.install(pair(&tls, &old));
    let (server, client) = shake(&tls, &old, &[b"http/1.1", b"h2"]).await;
    let (Handshake::Done(mut server), mut client) = (server.unwrap(), client.unwrap()) else {
        panic!("the handshake succeeds");
    };
    assert_eq!(client.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));

    tls.install(pair(&tls, &new));
    let (_, client_of_old) = shake(&tls, &old, &[]).await;
    assert!(client_of_old.is_err(), "the old certificate is not served");
    let (_, client_of_new) = shake(&tls, &new, &[b"http/1.1"]).await;
    let client_of_new = client_of_new.unwrap();
    assert_eq!(client_of_new.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));

    // A connection from before is as it was.
    server.write_all(b"still here").await.unwrap();
    server.flush().await.unwrap();
    let mut received = [0; 10];
    client.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"still here");

    let (server, client) = shake(&tls, &new, &[b"gopher"]).await;
    assert!(server.is_err() && client.is_err(), "no protocol in common");
}

#[tokio::test]
async fn a_check_of_an_acme_server_gets_its_own_certificate() {
    let (tls, usual, check) = (Tls::new().unwrap(), made("a.example"), made("a.example"));
    tls.install(pair(&tls, &usual));
    let held = tls.challenges().hold();
    let of_check = pair(&tls, &check);
    let certificate = CertifiedKey::clone(of_check.key());
    tls.challenges().add_certificate("a.example".to_owned(), certificate);
    let (server, client) = shake(&tls, &check, &[ACME_PROTOCOL]).await;
    assert!(matches!(server.unwrap(), Handshake::Checked));
    assert_eq!(client.unwrap().get_ref().1.alpn_protocol(), Some(ACME_PROTOCOL));
    // Others are served as ever.
    let (server, _client) = shake(&tls, &usual, &[b"h2"]).await;
    assert!(matches!(server.unwrap(), Handshake::Done(_)));
    drop(held);
    let (server, client) = shake(&tls, &check, &[ACME_PROTOCOL]).await;
    assert!(server.is_err() && client.is_err(), "the order has ended");
}

#[tokio::test]
async fn who_leaves_or_speaks_something_else_is_no_client() {
    let tls = Tls::new().unwrap();
    let (near, far) = tokio::io::duplex(1024);
    drop(near);
    assert!(matches!(tls.accept(far).await.unwrap(), Handshake::Left));
    let (mut near, far) = tokio::io::duplex(1024);
    near.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert!(tls.accept(far).await.is_err());
}
