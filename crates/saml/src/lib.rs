//! Signing in by SAML 2.0: the messages between Weir, the service provider, and the
//! identity provider of a domain (ADR 21).
//!
//! ```text
//! Connection::begin -> browser -> identity provider -> browser -> Connection::accept
//!      |                                                               |
//!      PendingLogin, stored by the caller ------------------------------
//! ```
//!
//! What belongs here: writing requests and metadata, and every check of a response. What
//! does not: storage, cookies, pages, users, and which domain a person belongs to.
//!
//! Invariants:
//! - A response is read once, into one tree. What is verified is the element that is then
//!   used, of the same tree (SAML-3).
//! - A shape that is not the one of `response` is refused, signed or not (SAML-1).
//! - The report of the connection test is written by the checks that decide (SAML-9).

mod address;
mod canonical;
mod certificate;
mod connection;
mod reason;
mod replay;
mod report;
mod request;
mod response;
mod shape;
mod signature;
mod signing_key;
#[cfg(test)]
mod tests;
mod xml;

pub use certificate::{Certificate, CertificateFault, Key};
pub use connection::{
    Connection, ConnectionFault, Field, LOGIN_TIME, PendingLogin, ServiceProvider,
};
pub use reason::{Quoted, Reason};
pub use replay::{Remembered, ReplayCache, ReplayUnavailable};
pub use report::{Check, CheckOutcome, Entry, Refusal, Report};
pub use request::{BegunLogin, RequestFault};
pub use response::{Attribute, Identity, Outcome, Received, Sent};
pub use signing_key::{NewSigningKey, SigningKey, SigningKeyFault};
