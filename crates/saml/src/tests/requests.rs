//! What Weir sends: requests and metadata.

use std::collections::HashMap;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use der::{Decode as _, Encode as _};
use flate2::read::DeflateDecoder;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use url::Url;

use super::checks::{ACS, DOMAIN, IDP, OWN, SSO, connection, idp, now, service};
use crate::shape::{ASSERTION, PROTOCOL, text};
use crate::xml::{Document, Element, Part};
use crate::{BegunLogin, Certificate, Connection, ServiceProvider, SigningKey, SigningKeyFault};

fn key() -> SigningKey {
    SigningKey::read(include_str!("keys/idp.key"), &idp()).unwrap()
}

fn child<'a>(element: Element<'a>, local: &str) -> Element<'a> {
    let children = element.content().filter_map(|part| match part {
        Part::Element(child) => Some(child),
        Part::Text(_) => None,
    });
    children.into_iter().find(|child| child.local() == local).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "reads the short request of the test")]
fn inflated(encoded: &str) -> String {
    let compressed = STANDARD.decode(encoded).unwrap();
    let mut request = String::new();
    DeflateDecoder::new(compressed.as_slice()).read_to_string(&mut request).unwrap();
    request
}

#[test]
fn a_request_names_both_sides_and_the_login() {
    let begun = connection(vec![idp()]).begin(DOMAIN, None, now()).unwrap();
    assert!(begun.url.starts_with(&format!("{SSO}&SAMLRequest=")), "{}", begun.url);
    let url = Url::parse(&begun.url).unwrap();
    let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
    assert_eq!(query["RelayState"], DOMAIN);
    assert!(!query.contains_key("Signature"));
    let request = inflated(&query["SAMLRequest"]);
    let document = Document::read(&request).unwrap();
    let root = document.root();
    assert!(root.is(PROTOCOL, "AuthnRequest"));
    assert_eq!(root.attribute("ID"), Some(begun.pending.request_id.as_str()));
    assert_eq!(root.attribute("Destination"), Some(SSO));
    assert_eq!(root.attribute("AssertionConsumerServiceURL"), Some(ACS));
    assert_eq!(root.attribute("IssueInstant"), Some("2026-06-01T12:00:00Z"));
    let issuer = child(root, "Issuer");
    assert!(issuer.is(ASSERTION, "Issuer"));
    assert_eq!(text(issuer), Ok(OWN));
    let names = |element: Element<'_>| {
        let name = |part: Part<'_>| match part {
            Part::Element(child) => child.local().to_owned(),
            Part::Text(text) => text.to_owned(),
        };
        element.content().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(root), ["Issuer", "NameIDPolicy"]);
    let policy = child(root, "NameIDPolicy");
    assert!(policy.is(PROTOCOL, "NameIDPolicy"));
    let format = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified";
    assert_eq!(policy.attribute("Format"), Some(format));
    assert_eq!(policy.attribute("AllowCreate"), Some("true"));
    assert_eq!(begun.pending.relay_state, DOMAIN);
    assert_eq!(begun.pending.created, now());
}

#[test]
fn a_person_is_asked_to_sign_in_again_only_if_wished() {
    let connection = connection(vec![idp()]);
    let force = |begun: BegunLogin| {
        let url = Url::parse(&begun.url).unwrap();
        let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
        let request = inflated(&query["SAMLRequest"]);
        let document = Document::read(&request).unwrap();
        document.root().attribute("ForceAuthn").map(str::to_owned)
    };
    assert_eq!(force(connection.begin(DOMAIN, None, now()).unwrap()), None);
    let again = connection.begin_again(DOMAIN, None, now()).unwrap();
    assert_eq!(force(again).as_deref(), Some("true"));
}

#[test]
fn two_requests_have_different_ids() {
    let connection = connection(vec![idp()]);
    let id = || connection.begin(DOMAIN, None, now()).unwrap().pending.request_id;
    let (first, second) = (id(), id());
    assert_ne!(first, second);
    assert_eq!(first.len(), 33);
}

#[test]
fn the_signature_is_over_the_query_as_it_is_sent() {
    let begun = connection(vec![idp()]).begin(DOMAIN, Some(&key()), now()).unwrap();
    let (_, query) = begun.url.split_once("&SAMLRequest=").unwrap();
    let query = format!("SAMLRequest={query}");
    let (signed, signature) = query.rsplit_once("&Signature=").unwrap();
    assert!(signed.contains(
        "&SigAlg=http%3A%2F%2Fwww%2Ew3%2Eorg%2F2001%2F04%2Fxmldsig%2Dmore%23rsa%2Dsha256"
    ));
    let decoded = percent_encoding::percent_decode_str(signature).decode_utf8().unwrap();
    let signature = STANDARD.decode(decoded.as_bytes()).unwrap();
    let certificate = idp();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, certificate.public());
    public.verify(signed.as_bytes(), &signature).unwrap();
}

#[test]
fn a_new_key_signs_and_has_a_certificate_of_its_own() {
    let made = SigningKey::generate(now()).unwrap();
    let text = made.certificate.base64();
    let certificate = Certificate::read(&text).unwrap();
    assert_eq!(certificate, made.certificate);
    assert_eq!(certificate.subject(), "CN=Weir");
    assert!(certificate.is_valid(now()));
    assert_eq!(certificate.expires(), now() + TimeDelta::days(3650));
    // openssl and identity providers check the signature of a certificate by its key.
    let encoded = STANDARD.decode(&text).unwrap();
    let whole = x509_cert::Certificate::from_der(&encoded).unwrap();
    let signed = whole.tbs_certificate.to_der().unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, certificate.public());
    public.verify(&signed, whole.signature.raw_bytes()).unwrap();
    let key = SigningKey::read(&made.key, &certificate).unwrap();
    let begun = connection(vec![idp()]).begin(DOMAIN, Some(&key), now()).unwrap();
    assert!(begun.url.contains("&Signature="));
    // Each key is another one.
    assert_ne!(SigningKey::generate(now()).unwrap().certificate.base64(), text);
    let other = SigningKey::read(&made.key, &idp()).unwrap_err();
    assert_eq!(other, SigningKeyFault::OtherCertificate);
}

#[test]
fn metadata_says_what_is_signed_and_where_responses_go() {
    let read = |certificate: Option<&Certificate>| service().metadata(certificate);
    let metadata = read(None);
    let document = Document::read(&metadata).unwrap();
    assert_eq!(document.root().attribute("entityID"), Some(OWN));
    let descriptor = child(document.root(), "SPSSODescriptor");
    assert_eq!(descriptor.attribute("WantAssertionsSigned"), Some("true"));
    assert_eq!(descriptor.attribute("AuthnRequestsSigned"), Some("false"));
    let receiver = child(descriptor, "AssertionConsumerService");
    assert_eq!(receiver.attribute("Location"), Some(ACS));
    let format = child(descriptor, "NameIDFormat");
    assert_eq!(text(format), Ok("urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"));
    assert!(!metadata.contains("KeyDescriptor"));
    let signed = read(Some(&idp()));
    assert!(signed.contains(&idp().base64()));
    assert!(signed.contains("AuthnRequestsSigned=\"true\""));
}

#[test]
fn values_do_not_leave_their_place_in_a_message() {
    let odd = "urn:x\"<&>'";
    let service = ServiceProvider::new(odd, ACS).unwrap();
    let metadata = service.metadata(None);
    let document = Document::read(&metadata).unwrap();
    assert_eq!(document.root().attribute("entityID"), Some(odd));
    let connection = Connection::new(IDP, SSO, vec![idp()], service).unwrap();
    let url = Url::parse(&connection.begin(DOMAIN, None, now()).unwrap().url).unwrap();
    let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
    let request = inflated(&query["SAMLRequest"]);
    let document = Document::read(&request).unwrap();
    assert_eq!(text(child(document.root(), "Issuer")), Ok(odd));
}
