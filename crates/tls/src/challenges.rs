//! The open challenges of an ACME order: what a check of a name is answered with.
//!
//! What belongs here: the answers. What does not: the order (`acme`), and the requests and
//! handshakes of a check.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::sign::CertifiedKey;

/// Answers to checks. An order adds one for each of its names, and removes them when it has
/// ended.
#[derive(Debug, Default)]
pub struct Challenges {
    // Locked for single map operations only.
    texts: Mutex<HashMap<String, String>>,
    // The same.
    certificates: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl Challenges {
    /// The path of a check over HTTP, before its token.
    pub const PATH: &'static str = "/.well-known/acme-challenge/";

    /// The answer to a check over HTTP with this token.
    pub fn text(&self, token: &str) -> Option<String> {
        self.texts.lock().get(token).cloned()
    }

    /// The certificate for a check of this name over TLS.
    pub(crate) fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.certificates.lock().get(name).cloned()
    }

    pub(crate) fn add_text(&self, token: String, text: String) {
        self.texts.lock().insert(token, text);
    }

    pub(crate) fn add_certificate(&self, name: String, certificate: CertifiedKey) {
        self.certificates.lock().insert(name, Arc::new(certificate));
    }

    /// Answers until the returned value is dropped. One order is open at a time.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held(self)
    }
}

/// The answers of one order.
pub(crate) struct Held<'a>(&'a Challenges);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.texts.lock().clear();
        self.0.certificates.lock().clear();
    }
}
