//! The names of `weir-saml` to which the included file refers.

use weir_saml::{
    Certificate, Check, CheckOutcome, Connection, Outcome, PendingLogin, Received, Remembered,
    ReplayCache, ReplayUnavailable, ServiceProvider,
};

#[path = "../../crates/saml/src/tests/checks.rs"]
pub(crate) mod checks;
