//! Form fields and documents that are large, deep or broken, and logins that do not fit.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;

use super::checks::{
    DOMAIN, Memory, accept, certificate, check_report, connection, finished, idp, now, pending,
};
use super::corpus::document;
use crate::{
    Check, Outcome, PendingLogin, Reason, Received, Refusal, Remembered, ReplayCache,
    ReplayUnavailable,
};

/// The reason for which a document is refused, in a time that no document may exceed.
fn reason(document: &[u8]) -> Reason {
    let begin = Instant::now();
    let outcome = accept(&connection(vec![idp()]), document, &Memory::default());
    assert!(begin.elapsed() < Duration::from_secs(10));
    outcome.result.unwrap_err().reason
}

fn of_field(field: &str) -> Reason {
    let received = Received { response: field, relay_state: Some(DOMAIN) };
    let connection = connection(vec![idp()]);
    let replay = Memory::default();
    let outcome = finished(connection.accept(received, Some(&pending()), now(), &replay));
    check_report(&outcome);
    let refusal = outcome.result.unwrap_err();
    assert_eq!(refusal.check, Check::Document);
    refusal.reason
}

/// A valid response with more text after the opening tag of its root.
fn with(more: &str) -> Vec<u8> {
    let text = String::from_utf8(document("valid-assertion")).unwrap();
    let (before, after) = text.split_once("<samlp:Status>").unwrap();
    format!("{before}{more}<samlp:Status>{after}").into_bytes()
}

#[test]
fn a_form_field_is_base64_of_a_limited_length() {
    assert_eq!(of_field("<samlp:Response/>"), Reason::NotBase64);
    assert_eq!(of_field("AAAA=AAAA"), Reason::NotBase64);
    assert_eq!(of_field(""), Reason::NotWellFormed);
    assert_eq!(of_field(&" ".repeat(10_000_000)), Reason::TooLarge);
    assert_eq!(of_field(&"A".repeat(10_000_000)), Reason::TooLarge);
    assert_eq!(of_field(&STANDARD.encode(vec![b' '; 256 * 1024 + 1])), Reason::TooLarge);
    assert_eq!(of_field(&STANDARD.encode(vec![b' '; 256 * 1024])), Reason::NotWellFormed);
    // Line ends, as some providers write them.
    let field = STANDARD.encode(document("valid-assertion"));
    let lines: Vec<&str> =
        field.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let field = lines.join("\r\n");
    let received = Received { response: &field, relay_state: Some(DOMAIN) };
    let connection = connection(vec![idp()]);
    let replay = Memory::default();
    let outcome = finished(connection.accept(received, Some(&pending()), now(), &replay));
    assert!(outcome.result.is_ok());
}

#[test]
fn white_space_between_elements_is_allowed_up_to_the_limit() {
    let white = " ".repeat(100 * 1024);
    let outcome = accept(&connection(vec![idp()]), &with(&white), &Memory::default());
    assert!(outcome.result.is_ok());
}

#[test]
fn large_and_deep_documents_are_refused() {
    assert_eq!(reason(&with(&"<a>".repeat(60_000))), Reason::TooComplex);
    assert_eq!(
        reason(&with(&format!("{}{}", "<a>".repeat(32), "</a>".repeat(32)))),
        Reason::TooComplex
    );
    assert_eq!(reason(&with(&"<a/>".repeat(50_000))), Reason::TooComplex);
    let many: String = (0..20_000).map(|n| format!(" a{n}=''")).collect();
    assert_eq!(reason(&with(&format!("<a{many}/>"))), Reason::TooComplex);
    let many: String = (0..20).map(|n| format!(" xmlns:a{n}='urn:{n}'")).collect();
    let nested = format!("<a{many}>").repeat(4) + &"</a>".repeat(4);
    assert_eq!(reason(&with(&nested)), Reason::TooComplex);
    let name = "a".repeat(100_000);
    assert_eq!(reason(&with(&format!("<{name}/>"))), Reason::TooComplex);
    let value = "x".repeat(200_000);
    assert!(matches!(reason(&with(&format!("<a b='{value}'/>"))), Reason::Missing(_)));
    let references = "&amp;".repeat(40_000);
    assert!(matches!(reason(&with(&format!("<a b='{references}'/>"))), Reason::Missing(_)));
    assert!(matches!(reason(&with(&references)), Reason::UnexpectedText(_)));
    let unended = "&".repeat(200_000);
    assert_eq!(reason(&with(&format!("<a b='{unended}'/>"))), Reason::NotWellFormed);
}

#[test]
fn a_canonical_text_has_a_limit() {
    // Each value would repeat the long namespace, 4 GB in all.
    let text = String::from_utf8(document("valid-assertion")).unwrap();
    let space = format!(" xmlns:z=\"urn:{}\"", "z".repeat(100_000));
    let text = text.replace("<samlp:Response ", &format!("<samlp:Response{space} "));
    let value = "<saml:AttributeValue z:z=\"\">x</saml:AttributeValue>";
    let end = "</saml:AttributeStatement>";
    let many = format!("<saml:Attribute Name=\"m\">{}</saml:Attribute>{end}", value.repeat(2000));
    assert_eq!(reason(text.replace(end, &many).as_bytes()), Reason::TooComplex);
}

#[test]
fn a_compressed_document_is_not_decompressed() {
    // The binding of responses has no compression.
    use std::io::Write as _;
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..200 {
        encoder.write_all(&[b' '; 100_000]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(matches!(reason(&bomb), Reason::NotUtf8 | Reason::NotWellFormed));
}

fn of_login(pending: Option<&PendingLogin>, relay_state: Option<&str>) -> Outcome {
    let field = STANDARD.encode(document("valid-assertion"));
    let received = Received { response: &field, relay_state };
    let replay = Memory::default();
    let connection = connection(vec![idp()]);
    let outcome = finished(connection.accept(received, pending, now(), &replay));
    check_report(&outcome);
    outcome
}

#[test]
fn a_response_belongs_to_a_login_that_began_here() {
    let refusal = |outcome: Outcome| outcome.result.unwrap_err();
    let of = |check, reason| Refusal { check, reason };
    assert!(of_login(Some(&pending()), Some(DOMAIN)).result.is_ok());
    let unsolicited = of(Check::Login, Reason::Unsolicited);
    assert_eq!(refusal(of_login(None, Some(DOMAIN))), unsolicited);
    assert_eq!(refusal(of_login(None, None)), unsolicited);
    let other = of(Check::Login, Reason::RelayState);
    assert_eq!(refusal(of_login(Some(&pending()), None)), other);
    assert_eq!(refusal(of_login(Some(&pending()), Some(""))), other);
    assert_eq!(refusal(of_login(Some(&pending()), Some("0199"))), other);
    let at = |created| PendingLogin { created, ..pending() };
    let expired = of(Check::Login, Reason::LoginExpired);
    let early = at(now() - TimeDelta::minutes(10));
    assert_eq!(refusal(of_login(Some(&early), Some(DOMAIN))), expired);
    let late = at(now() + TimeDelta::seconds(61));
    assert_eq!(refusal(of_login(Some(&late), Some(DOMAIN))), expired);
    let another = PendingLogin { request_id: "_other".to_owned(), ..pending() };
    let refused = refusal(of_login(Some(&another), Some(DOMAIN)));
    assert_eq!(refused, of(Check::InResponseTo, Reason::InResponseTo));
}

#[test]
fn an_expired_certificate_verifies_nothing() {
    let old = || certificate(include_str!("keys/old.crt"));
    let accepted =
        |pinned, name| accept(&connection(pinned), &document(name), &Memory::default()).result;
    let refusal = accepted(vec![old()], "expired-key").unwrap_err();
    assert_eq!(refusal.reason, Reason::CertificateExpired);
    // Beside a valid one it is no certificate either.
    let refusal = accepted(vec![old(), idp()], "expired-key").unwrap_err();
    assert_eq!(refusal.reason, Reason::WrongSignature);
    assert!(accepted(vec![old(), idp()], "valid-assertion").is_ok());
    let elliptic = certificate(include_str!("keys/elliptic.crt"));
    let refusal = accepted(vec![elliptic], "valid-assertion").unwrap_err();
    assert_eq!(refusal.reason, Reason::KeyKind);
}

/// A storage that does not answer.
struct Down;

impl ReplayCache for Down {
    fn remember(
        &self,
        _: &str,
        _: &str,
        _: chrono::DateTime<chrono::Utc>,
    ) -> impl Future<Output = Result<Remembered, ReplayUnavailable>> + Send {
        std::future::ready(Err(ReplayUnavailable))
    }
}

#[test]
fn without_the_storage_of_used_assertions_nothing_is_accepted() {
    let field = STANDARD.encode(document("valid-assertion"));
    let received = Received { response: &field, relay_state: Some(DOMAIN) };
    let connection = connection(vec![idp()]);
    let outcome = finished(connection.accept(received, Some(&pending()), now(), &Down));
    check_report(&outcome);
    assert_eq!(outcome.result.unwrap_err().reason, Reason::ReplayUnavailable);
    assert!(!format!("{received:?}").contains(&field[..40]));
}
