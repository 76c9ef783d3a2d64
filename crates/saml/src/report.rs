//! The checks of a response in their order, and how each one ended.
//!
//! What belongs here: the list, and its writer. What does not: the checks themselves.

use std::fmt;

use crate::Reason;
use crate::response::Sent;

/// A check of a response. The order is that of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each one has a title")]
pub enum Check {
    Login,
    Document,
    Response,
    Status,
    Assertion,
    SignatureForm,
    Certificate,
    Signature,
    ResponseSignature,
    Subject,
    Issuer,
    Destination,
    InResponseTo,
    Recipient,
    Time,
    Audience,
    Session,
    Address,
    Replay,
}

impl Check {
    /// Every check, in order.
    pub const ALL: [Self; 19] = [
        Self::Login,
        Self::Document,
        Self::Response,
        Self::Status,
        Self::Assertion,
        Self::SignatureForm,
        Self::Certificate,
        Self::Signature,
        Self::ResponseSignature,
        Self::Subject,
        Self::Issuer,
        Self::Destination,
        Self::InResponseTo,
        Self::Recipient,
        Self::Time,
        Self::Audience,
        Self::Session,
        Self::Address,
        Self::Replay,
    ];

    /// What the check is about, for the list on the page.
    pub fn title(self) -> &'static str {
        match self {
            Self::Login => "The response belongs to a login that began here",
            Self::Document => "The response is readable XML",
            Self::Response => "The document is a SAML 2.0 response",
            Self::Status => "The identity provider reports success",
            Self::Assertion => "There is exactly one assertion",
            Self::SignatureForm => "The assertion is signed with an accepted algorithm",
            Self::Certificate => "A certificate of the connection is valid",
            Self::Signature => "The signature is by a certificate of the connection",
            Self::ResponseSignature => "The signature of the response, if there is one, is correct",
            Self::Subject => "The name id and the attributes are readable",
            Self::Issuer => "The issuer is the identity provider",
            Self::Destination => "The destination is Weir",
            Self::InResponseTo => "The response answers the request of this login",
            Self::Recipient => "The recipient is Weir",
            Self::Time => "The assertion is valid at this time",
            Self::Audience => "The audience is Weir",
            Self::Session => "The session at the identity provider is valid",
            Self::Address => "There is an e-mail address",
            Self::Replay => "The assertion is used for the first time",
        }
    }
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It passed.
    Passed,
    /// It failed, for this reason. The response is refused.
    Failed(Reason),
    /// An earlier check failed.
    NotReached,
}

/// A check, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The check.
    pub check: Check,
    /// How it ended.
    pub outcome: CheckOutcome,
}

/// How the checks of one response ended, for the page of the connection test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Every check, in order.
    pub entries: Vec<Entry>,
    /// What the identity provider sent about the person, once its signature is verified.
    /// Of a refused response it is for reading only.
    pub sent: Option<Sent>,
}

/// A response that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The check that failed.
    pub check: Check,
    /// Why, for administrators.
    pub reason: Reason,
}

impl Report {
    pub(crate) fn new() -> Self {
        let unreached = |check| Entry { check, outcome: CheckOutcome::NotReached };
        Self { entries: Check::ALL.map(unreached).to_vec(), sent: None }
    }

    /// Records how a check ended. The same value decides whether the next one runs.
    pub(crate) fn record<T>(
        &mut self,
        check: Check,
        result: Result<T, Reason>,
    ) -> Result<T, Refusal> {
        let outcome = match &result {
            Ok(_) => CheckOutcome::Passed,
            Err(reason) => CheckOutcome::Failed(reason.clone()),
        };
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.check == check) {
            entry.outcome = outcome;
        }
        result.map_err(|reason| Refusal { check, reason })
    }
}

impl fmt::Display for Check {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.title())
    }
}
