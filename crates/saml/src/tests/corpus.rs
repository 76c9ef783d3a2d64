//! The files of `fuzz/corpus/saml_response`: what each one comes to.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::checks::{self, Memory, accept, certificate, connection, idp, now};
use super::hostile::HOSTILE;
use crate::{Certificate, Check, Outcome};

/// The certificates that are pinned.
type Pinned = fn() -> Vec<Certificate>;

/// The valid responses.
const VALID: [(&str, Pinned); 32] = [
    ("valid-assertion", one),
    ("valid-both", one),
    ("valid-canonical-1.0", one),
    ("valid-canonical-1.1", one),
    ("valid-clock-differs", one),
    ("valid-confirmations-of-other-methods", one),
    ("valid-ecdsa", elliptic),
    ("valid-entra", one),
    ("valid-google", one),
    ("valid-inclusive", one),
    ("valid-key-info-of-attacker", one),
    ("valid-keycloak", one),
    ("valid-known-conditions", one),
    ("valid-name-without-format", one),
    ("valid-next-key", rollover),
    ("valid-okta", one),
    ("valid-old-key-in-rollover", rollover),
    ("valid-principal-name", one),
    ("valid-principal-name-beside-address", one),
    ("valid-principal-name-beside-name", one),
    ("valid-principal-name-of-entra", one),
    ("valid-pysaml2", one),
    ("valid-references", one),
    ("valid-sha384", one),
    ("valid-sha512", one),
    ("valid-signxml-defaults", one),
    ("valid-thousand-groups", one),
    ("valid-two-audiences", one),
    ("valid-two-confirmations", one),
    ("valid-two-statements", one),
    ("valid-white-space", one),
    ("valid-without-response-issuer", one),
];

fn one() -> Vec<Certificate> {
    vec![idp()]
}

fn elliptic() -> Vec<Certificate> {
    vec![certificate(include_str!("keys/elliptic.crt"))]
}

fn rollover() -> Vec<Certificate> {
    vec![idp(), certificate(include_str!("keys/next.crt"))]
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/saml_response")
}

pub(super) fn document(name: &str) -> Vec<u8> {
    fs::read(folder().join(format!("{name}.xml"))).unwrap()
}

pub(super) fn outcome(name: &str) -> Outcome {
    accept(&connection(one()), &document(name), &Memory::default())
}

#[test]
fn valid_responses_are_accepted() {
    for (name, certificates) in VALID {
        let outcome = accept(&connection(certificates()), &document(name), &Memory::default());
        let identity = outcome.result.unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        assert_eq!(identity.address, "ada@example.com", "{name}");
    }
    assert!(VALID.len() >= 20);
}

#[test]
fn hostile_responses_are_refused_for_their_reason() {
    let mut wrong = Vec::new();
    for (name, check, reason) in HOSTILE {
        let found = match outcome(name).result {
            Ok(identity) => format!("accepted: {identity:?}"),
            Err(refusal) => {
                // Administrators read a sentence.
                let sentence = refusal.to_string();
                assert!(sentence.len() > 15 && sentence.ends_with('.'), "{name}: {sentence}");
                let text = format!("{:?}", refusal.reason);
                let kind = text.split(['(', ' ']).next().unwrap_or_default();
                if refusal.check == *check && kind == *reason {
                    continue;
                }
                format!("(\"{name}\", Check::{:?}, \"{kind}\"),", refusal.check)
            }
        };
        wrong.push(format!("{name}: {found}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(HOSTILE.len() >= 60);
}

#[test]
fn every_file_is_in_one_of_the_tables() {
    let files: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".xml").unwrap_or(&name).to_owned())
        .collect();
    let valid = VALID.iter().map(|(name, _)| (*name).to_owned());
    let hostile = HOSTILE.iter().map(|(name, ..)| (*name).to_owned());
    let listed: BTreeSet<String> = valid.chain(hostile).collect();
    assert_eq!(files, listed);
    assert_eq!(listed.len(), VALID.len() + HOSTILE.len());
}

#[test]
fn no_variant_of_a_file_signs_another_person_in() {
    // A small generator: the variants are the same in every run.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % (below.max(1) as u64)).unwrap()
    };
    for file in fs::read_dir(folder()).unwrap() {
        let document = fs::read(file.unwrap().path()).unwrap();
        checks::check_response(&document);
        for _ in 0..40 {
            let mut variant = document.clone();
            for _ in 0..=next(3) {
                let (from, to) = (next(variant.len()), next(variant.len()));
                let length = next(200).min(variant.len() - from.max(to));
                match next(4) {
                    0 if !variant.is_empty() => {
                        variant.drain(from..from + length);
                    }
                    1 => {
                        let copy = variant[from..from + length].to_vec();
                        variant.splice(to..to, copy);
                    }
                    2 if !variant.is_empty() => variant[from] = b"<>&'\"/ !-\0a:#"[next(13)],
                    _ if !variant.is_empty() => variant[from] ^= 1 << next(8),
                    _ => {}
                }
            }
            checks::check_response(&variant);
        }
    }
}

#[test]
fn what_was_sent_is_returned_in_order() {
    let identity = outcome("valid-keycloak").result.unwrap();
    assert_eq!(identity.sent.name_id, "G-7a0e");
    let format = identity.sent.name_id_format.as_deref();
    assert_eq!(format, Some("urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"));
    let attributes: Vec<_> = identity
        .sent
        .attributes
        .iter()
        .map(|it| (it.name.as_str(), it.friendly_name.as_deref(), it.values.join(",")))
        .collect();
    assert_eq!(
        attributes,
        [
            ("urn:oid:1.2.840.113549.1.9.1", Some("email"), "ada@example.com".to_owned()),
            ("Role", None, "view-profile".to_owned()),
            ("Role", None, "manage-account".to_owned()),
        ]
    );
    assert_eq!(identity.session_index.as_deref(), Some("_session"));
    assert!(identity.session_ends.unwrap() > now());
    assert_eq!(identity.signed_in_at, checks::time("2026-06-01T11:59:30Z"));
    let identity = outcome("valid-references").result.unwrap();
    let note = &identity.sent.attributes[0];
    assert_eq!(note.values, ["a & b <c> \r\n\t\"d\" é 😀"]);
    assert_eq!(note.friendly_name.as_deref(), Some("x \t\n\r \"y\" <z"));
}

#[test]
fn what_was_sent_is_shown_also_when_a_later_check_fails() {
    let report = outcome("audience-other").report;
    assert_eq!(report.sent.unwrap().attributes[1].values, ["staff", "admins"]);
    let report = outcome("changed-name").report;
    assert_eq!(report.sent, None);
}

#[test]
fn an_assertion_is_accepted_once() {
    let replay = Memory::default();
    let connection = connection(one());
    let document = document("valid-assertion");
    assert!(accept(&connection, &document, &replay).result.is_ok());
    let refusal = accept(&connection, &document, &replay).result.unwrap_err();
    assert_eq!(refusal.check, Check::Replay);
    // A refused response does not use its assertion up.
    let replay = Memory::default();
    let other = super::corpus::document("destination-other");
    assert!(accept(&connection, &other, &replay).result.is_err());
    assert!(accept(&connection, &document, &replay).result.is_ok());
}
