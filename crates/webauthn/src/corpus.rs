//! Replays the corpora of the fuzz targets `passkey_answers` and `attestations`
//! (`fuzz/corpus`).

mod checks;

use std::fs;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::{any, proptest};

use super::{Assertion, Challenge, Credential, Refusal, RelyingParty};

use self::checks::{check_answer, check_attestation, registered, verified};

/// The files of a target, by their names.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        files.push((name, fs::read(entry.path()).unwrap()));
    }
    assert!(!files.is_empty());
    files
}

#[test]
fn every_answer_has_a_safe_outcome() {
    let mut accepted = Vec::new();
    for (name, text) in corpus("passkey_answers") {
        let text = String::from_utf8(text).unwrap();
        check_answer(&text);
        if registered(&text).is_ok() || verified(&text).is_ok() {
            accepted.push(name);
        }
    }
    accepted.sort();
    assert_eq!(accepted, ["created", "used"]);
}

#[test]
fn every_attestation_has_a_safe_outcome() {
    let mut accepted = Vec::new();
    for (name, object) in corpus("attestations") {
        if !check_attestation(&object) {
            continue;
        }
        for at in 0..object.len() {
            check_attestation(&object[..at]);
            let mut changed = object.clone();
            changed[at] ^= 1 << (at % 8);
            check_attestation(&changed);
        }
        accepted.push(name);
    }
    accepted.sort();
    assert_eq!(accepted, ["ed25519", "es256", "extensions", "packed", "rs256"]);
}

proptest! {
    #[test]
    fn any_attestation_has_a_safe_outcome(object in vec(any::<u8>(), 0..200)) {
        check_attestation(&object);
    }
}
