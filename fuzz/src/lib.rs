//! The checks of the fuzz targets. The tests of the crates replay the corpus with the
//! same code, so that a finding shows in both.

// The included file `checks` refers to names of `weir-capture`.
use weir_capture::*;
// The included file `settings` refers to names of `weir-model`.
use weir_model::{Timestamp, errors, exports};
// The included file `select` refers to names of `weir-query`.
use weir_query::{
    Aggregate, LIMIT_MAX, OFFSET_MAX, QueryError, SQL_MAX, Select, Source, parse_select,
};

#[path = "../../crates/capture/src/tests/corpus/checks.rs"]
mod checks;

#[path = "../../crates/model/src/exports/corpus/checks.rs"]
mod settings;

// The included file `addresses` refers to names of `weir-egress`, which also opens
// connections.
#[path = "../../crates/egress/src/host.rs"]
#[expect(dead_code, reason = "an address that is refused when it is dialled is told there")]
mod host;
#[path = "../../crates/egress/src/rules.rs"]
mod rules;

#[path = "../../crates/egress/src/corpus/checks.rs"]
mod addresses;

// The included file `callbacks` refers to names of `weir-oidc`, which also has a client of
// HTTP.
#[path = "../../crates/oidc/src/callback.rs"]
#[expect(dead_code, reason = "the texts of faults are for administrators")]
mod callback;
#[path = "../../crates/oidc/src/corpus/checks.rs"]
mod callbacks;

#[path = "../../crates/plugins/src/code/archive.rs"]
mod archive;
// The included checks of archives refer to these names.
use archive::{ArchiveFault, FOLDERS_MAX, KEPT_MAX, PATH_MAX, extract};
#[path = "../../crates/plugins/src/code/archive/checks.rs"]
mod archives;

#[path = "../../crates/query/src/select/tests/corpus/checks.rs"]
mod select;

mod passkeys;
mod saml;

/// Checks a file of `corpus/requests`: the target of a request, headers, an empty line,
/// the body.
pub fn check_request(file: &[u8]) {
    checks::check_request(file);
}

/// Checks a file of `corpus/events`: the JSON text of a payload.
pub fn check_text(text: &str) {
    let payload = Payload::from_text(text.to_owned());
    for engage in [false, true] {
        checks::check_payload(&payload, engage);
    }
}

/// Checks a file of `corpus/addresses`: a host or a URL.
pub fn check_address(text: &str) {
    addresses::check_address(text.strip_suffix('\n').unwrap_or(text));
}

/// Checks a file of `corpus/prefixes`: a key prefix of files.
pub fn check_prefix(text: &str) {
    settings::check_prefix(text.strip_suffix('\n').unwrap_or(text));
}

/// Checks a file of `corpus/settings`: JSON settings of a destination.
pub fn check_settings(text: &str) {
    settings::check_settings(text);
}

/// Checks a file of `corpus/archives`: an archive of a plugin.
pub fn check_archive(bytes: &[u8]) {
    archives::check_archive(bytes);
}

/// Checks a file of `corpus/callbacks`: the query of a callback.
pub fn check_callback(text: &str) {
    callbacks::check_callback(text.strip_suffix('\n').unwrap_or(text));
}

/// Checks a file of `corpus/saml_response`: the XML of a response.
pub fn check_response(document: &[u8]) {
    saml::checks::check_response(document);
}

/// Checks a file of `corpus/passkey_answers`: the JSON text of a browser's answer.
pub fn check_passkey_answer(text: &str) {
    passkeys::checks::check_answer(text);
}

/// Checks a file of `corpus/attestations`: the CBOR of an authenticator.
pub fn check_attestation(bytes: &[u8]) {
    passkeys::checks::check_attestation(bytes);
}

/// Checks a file of `corpus/select_query`: the text of a question in SQL.
pub fn check_select(text: &str) {
    select::check_select(text);
}
