//! What the targets check: the same as the replay of the corpus in the crates, by the
//! same code, so that a finding shows in both.

// `outcomes` finds the names of `weir-capture` in its own crate.
use weir_capture::*;
// So do `settings` those of `weir-model`,
use weir_model::{Timestamp, errors, exports};

#[path = "../../crates/capture/src/tests/corpus/outcomes.rs"]
mod outcomes;

#[path = "../../crates/model/src/exports/corpus/outcomes.rs"]
mod settings;

// and `addresses` these of `weir-egress`, which has connections besides.
#[path = "../../crates/egress/src/host.rs"]
#[expect(dead_code, reason = "an address that is refused when it is dialled is told there")]
mod host;
#[path = "../../crates/egress/src/rules.rs"]
mod rules;

#[path = "../../crates/egress/src/corpus/outcomes.rs"]
mod addresses;

#[path = "../../crates/plugins/src/code/archive.rs"]
mod archive;
// What they must come to finds its names here.
use archive::{ArchiveFault, FOLDERS_MAX, KEPT_MAX, PATH_MAX, unpack};
#[path = "../../crates/plugins/src/code/archive/outcomes.rs"]
mod archives;

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

/// A file of `corpus/addresses`: a host, or an address of the web.
pub fn check_address(text: &str) {
    addresses::check_address(text.strip_suffix('\n').unwrap_or(text));
}

/// A file of `corpus/prefixes`: a prefix of the keys of files.
pub fn check_prefix(text: &str) {
    settings::check_prefix(text.strip_suffix('\n').unwrap_or(text));
}

/// A file of `corpus/settings`: JSON of what is sent for a destination.
pub fn check_settings(text: &str) {
    settings::check_settings(text);
}

/// A file of `corpus/archives`: an archive of a plugin.
pub fn check_archive(bytes: &[u8]) {
    archives::check_archive(bytes);
}
