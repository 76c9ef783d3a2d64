//! What is true of every response, and the pending login that the responses in
//! `fuzz/corpus/saml_response` answer. The fuzz target includes this file.

use std::collections::HashSet;
use std::future::{Future, ready};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};

use super::{
    Certificate, Check, CheckOutcome, Connection, Outcome, PendingLogin, Received, Remembered,
    ReplayCache, ReplayUnavailable, ServiceProvider,
};

pub(crate) const IDP: &str = "https://idp.example.com/metadata";
pub(crate) const SSO: &str = "https://idp.example.com/sso?tenant=1&x=%22";
pub(crate) const OWN: &str = "https://weir.example.com/api/saml/metadata/";
pub(crate) const ACS: &str = "https://weir.example.com/complete/saml/";
pub(crate) const DOMAIN: &str = "0199a1b2-0000-7000-8000-000000000001";
const REQUEST: &str = "_6f1d2c3b4a5968778695a4b3c2d1e0f0";

/// What a valid response of the corpus names as the person. Another name in an accepted
/// response was put there by an attacker.
const PERSONS: [&str; 4] = ["ada@example.com", "u8Gk2m", "G-7a0e", "5c1e9f"];

/// Noon of the day of the corpus.
pub(crate) fn now() -> DateTime<Utc> {
    time("2026-06-01T12:00:00Z")
}

pub(crate) fn time(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().with_timezone(&Utc)
}

pub(crate) fn certificate(pem: &str) -> Certificate {
    Certificate::read(pem).unwrap()
}

pub(crate) fn idp() -> Certificate {
    certificate(include_str!("keys/idp.crt"))
}

pub(crate) fn service() -> ServiceProvider {
    ServiceProvider::new(OWN, ACS).unwrap()
}

/// The connection with these certificates.
pub(crate) fn connection(certificates: Vec<Certificate>) -> Connection {
    Connection::new(IDP, SSO, certificates, service()).unwrap()
}

pub(crate) fn pending() -> PendingLogin {
    PendingLogin {
        request_id: REQUEST.to_owned(),
        relay_state: DOMAIN.to_owned(),
        created: time("2026-06-01T11:58:00Z"),
    }
}

/// The assertions that were used, in memory.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashSet<(String, String)>>);

impl ReplayCache for Memory {
    fn remember(
        &self,
        issuer: &str,
        assertion: &str,
        until: DateTime<Utc>,
    ) -> impl Future<Output = Result<Remembered, ReplayUnavailable>> + Send {
        // No response is accepted after its login ended, so nothing is kept longer.
        assert!(until <= time("2026-06-01T12:09:00Z"), "{until}");
        let key = (issuer.to_owned(), assertion.to_owned());
        let first = self.0.lock().unwrap().insert(key);
        ready(Ok(if first { Remembered::Now } else { Remembered::Before }))
    }
}

/// The result of a future that waits for nothing.
pub(crate) fn finished<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the future waits"),
    }
}

/// The outcome of a document in the form field of the login above.
pub(crate) fn accept(connection: &Connection, document: &[u8], replay: &Memory) -> Outcome {
    let field = STANDARD.encode(document);
    let received = Received { response: &field, relay_state: Some(DOMAIN) };
    let outcome = finished(connection.accept(received, Some(&pending()), now(), replay));
    check_report(&outcome);
    outcome
}

/// The checks before the one that failed passed, and those after it did not run. The
/// result says the same as the report.
pub(crate) fn check_report(outcome: &Outcome) {
    let checks: Vec<_> = outcome.report.entries.iter().map(|entry| entry.check).collect();
    assert_eq!(checks, Check::ALL);
    let mut entries = outcome.report.entries.iter();
    let failed = entries.find(|entry| entry.outcome != CheckOutcome::Passed);
    match (&outcome.result, failed) {
        (Ok(_), None) => {}
        (Err(refusal), Some(entry)) => {
            assert_eq!(entry.check, refusal.check);
            assert_eq!(entry.outcome, CheckOutcome::Failed(refusal.reason.clone()));
            assert!(entries.all(|entry| entry.outcome == CheckOutcome::NotReached));
        }
        _ => panic!("the report and the result differ: {outcome:?}"),
    }
    // What was sent is shown once it is verified, and not before.
    let verified = outcome
        .report
        .entries
        .iter()
        .any(|entry| entry.check == Check::Subject && entry.outcome == CheckOutcome::Passed);
    assert_eq!(outcome.report.sent.is_some(), verified);
}

/// Checks any document: it is refused, or names a person of the corpus.
pub(crate) fn check_response(document: &[u8]) {
    let connection = connection(vec![idp(), certificate(include_str!("keys/elliptic.crt"))]);
    let outcome = accept(&connection, document, &Memory::default());
    if let Some(sent) = &outcome.report.sent {
        // The references to characters are in a response about the same person.
        let known = PERSONS.contains(&sent.name_id.as_str());
        assert!(known || outcome.result.is_err(), "{sent:?}");
    }
    if let Ok(identity) = outcome.result {
        assert_eq!(identity.address, "ada@example.com");
        assert_eq!(identity.issuer, IDP);
    }
}
