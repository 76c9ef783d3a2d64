//! The names of `weir-webauthn` to which the included file refers.

use weir_webauthn::{Assertion, Challenge, Credential, Refusal, RelyingParty};

#[path = "../../crates/webauthn/src/corpus/checks.rs"]
pub(crate) mod checks;
