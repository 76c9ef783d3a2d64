//! Test support: a real server on a free port with a store in memory, and callers that
//! act as a given user.
//!
//! ```ignore
//! let app = TestApp::with_owner().await;
//! let reader = app.owner().key(&["organization:read"]).await;
//! let answer = reader.get("/api/organizations/").await;
//! assert_eq!(answer.status, 200);
//! ```
//!
//! What belongs here: helpers that several test programs need. What does not:
//! expectations about single resources, which are with the tests. Only tests depend on
//! this crate.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test support fails by panicking")]

mod app;
mod caller;
mod conformity;
mod dns_server;
mod mail_sink;
mod parquet_rows;
mod people;

pub use app::TestApp;
pub use caller::{Answer, Call, Caller};
pub use conformity::schema_faults;
pub use dns_server::{DnsAnswer, DnsServer};
pub use mail_sink::{MailSink, Received};
pub use parquet_rows::parquet_rows;
pub use people::Person;
pub use weir_testservers as servers;
pub use weir_testservers::until;
