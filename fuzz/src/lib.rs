//! What the targets check: the same as the replay of the corpus in
//! `weir-capture`, by the same code, so that a finding shows in both.

// `outcomes` finds the names of `weir-capture` in its own crate.
use weir_capture::*;

#[path = "../../crates/capture/src/tests/corpus/outcomes.rs"]
mod outcomes;

/// A file of `corpus/requests`: the target of a request, headers, an empty line,
/// the body.
pub fn check_request(file: &[u8]) {
    outcomes::check_request(file);
}

/// A file of `corpus/events`: the text of a payload.
pub fn check_text(text: &str) {
    let payload = Payload::from_text(text.to_owned());
    for engage in [false, true] {
        outcomes::check_payload(&payload, engage);
    }
}
