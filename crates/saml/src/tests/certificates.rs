//! Certificates as administrators enter them, and connections.

use super::checks::{ACS, DOMAIN, IDP, OWN, SSO, certificate, idp, now, service};
use crate::{
    Certificate, CertificateFault, Connection, Field, Key, Reason, RequestFault, ServiceProvider,
    SigningKey, SigningKeyFault,
};

const PEM: &str = include_str!("keys/idp.crt");
const KEY: &str = include_str!("keys/idp.key");

#[test]
fn a_certificate_is_read_as_pem_and_as_bare_base64() {
    let read = idp();
    assert_eq!(read.subject(), "CN=idp.example.com");
    assert_eq!(read.key(), Key::Rsa(2048));
    assert_eq!(read.expires().to_rfc3339(), "2036-01-01T00:00:00+00:00");
    assert!(read.begins() < now());
    assert_eq!(read.fingerprint().len(), 32 * 3 - 1);
    let inner: Vec<&str> = PEM.lines().filter(|line| !line.starts_with('-')).collect();
    for bare in [inner.concat(), inner.join("\r\n"), format!("  {}\n", inner.join(" "))] {
        assert_eq!(Certificate::read(&bare).unwrap(), read);
    }
    let elliptic = certificate(include_str!("keys/elliptic.crt"));
    assert_eq!(elliptic.key(), Key::P256);
}

#[test]
fn other_texts_are_refused_with_the_reason() {
    let read = |text: &str| Certificate::read(text).unwrap_err();
    assert_eq!(read(" \n"), CertificateFault::Empty);
    assert_eq!(read(&"A".repeat(100_000)), CertificateFault::TooLong);
    assert_eq!(read(KEY), CertificateFault::PrivateKey);
    assert_eq!(read(&format!("{PEM}{KEY}")), CertificateFault::PrivateKey);
    assert_eq!(read(&format!("{PEM}{PEM}")), CertificateFault::NotOne);
    assert_eq!(read(&PEM.replace("-----END", "----END")), CertificateFault::NotOne);
    assert_eq!(read("certificate!"), CertificateFault::NotBase64);
    assert!(matches!(read("AAAA"), CertificateFault::NotX509(_)));
    assert!(matches!(read(&PEM.replace("\nMII", "\nMIJ")), CertificateFault::NotX509(_)));
    assert_eq!(read(include_str!("keys/small.crt")), CertificateFault::KeySize(1024));
    assert_eq!(read(include_str!("keys/curve.crt")), CertificateFault::Key);
}

#[test]
fn a_connection_names_the_field_that_is_wrong() {
    let field = |idp_entity_id: &str, sso: &str, certificates: Vec<Certificate>| {
        Connection::new(idp_entity_id, sso, certificates, service()).unwrap_err().field
    };
    assert_eq!(field("", SSO, vec![idp()]), Field::IdpEntityId);
    assert_eq!(field("a b", SSO, vec![idp()]), Field::IdpEntityId);
    assert_eq!(field(OWN, SSO, vec![idp()]), Field::IdpEntityId);
    let urls = [
        "",
        "idp.example.com",
        "javascript:alert(1)",
        "https://a@b.example",
        "https://b/#x",
        "https://b/ x",
    ];
    for url in urls {
        assert_eq!(field(IDP, url, vec![idp()]), Field::IdpSsoUrl, "{url}");
    }
    assert_eq!(field(IDP, SSO, Vec::new()), Field::Certificates);
    assert_eq!(field(IDP, SSO, vec![idp(), idp(), idp()]), Field::Certificates);
    assert_eq!(ServiceProvider::new("", ACS).unwrap_err().field, Field::EntityId);
    assert_eq!(ServiceProvider::new(OWN, "ftp://x").unwrap_err().field, Field::AcsUrl);
    let connection = Connection::new(IDP, SSO, vec![idp()], service()).unwrap();
    for wrong in ["", "a b", "ä", &"x".repeat(81)] {
        let fault = connection.begin(wrong, None, now()).unwrap_err();
        assert_eq!(fault, RequestFault::RelayState);
    }
    assert!(connection.begin(DOMAIN, None, now()).is_ok());
}

#[test]
fn a_signing_key_needs_its_own_certificate_and_is_not_shown() {
    let key = SigningKey::read(KEY, &idp()).unwrap();
    assert_eq!(format!("{key:?}"), "SigningKey { .. }");
    let other = certificate(include_str!("keys/next.crt"));
    assert_eq!(SigningKey::read(KEY, &other).unwrap_err(), SigningKeyFault::OtherCertificate);
    for wrong in ["", PEM, &KEY[..200]] {
        assert_eq!(SigningKey::read(wrong, &idp()).unwrap_err(), SigningKeyFault::NotAKey);
    }
}

#[test]
fn sentences_quote_values_short_and_without_tricks() {
    let long = crate::Quoted::new(&"x".repeat(10_000)).to_string();
    assert!(long.len() < 300);
    let reversed = Reason::Condition(crate::Quoted::new("a\u{202e}b\r\nc")).to_string();
    assert!(!reversed.contains(['\u{202e}', '\r', '\n']), "{reversed}");
}
