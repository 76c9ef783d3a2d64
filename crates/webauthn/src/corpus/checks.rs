//! What is true of every answer of a browser. The fuzz targets `passkey_answers` and
//! `attestations` include this file (`fuzz/`).

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Assertion, Challenge, Credential, Refusal, RelyingParty};

const SITE: &str = "https://weir.example";

/// The id of the passkey of both corpora.
const ID: [u8; 32] = [7; 32];

/// The passkey that the answers of the corpus use.
static CREATED: LazyLock<Credential> = LazyLock::new(|| {
    registered(include_str!("../../../../fuzz/corpus/passkey_answers/created")).unwrap()
});

fn party() -> RelyingParty {
    RelyingParty::at(SITE).unwrap()
}

fn challenge(number: u8) -> Challenge {
    Challenge::new(&[number; 32])
}

/// What a text comes to as the answer of a browser that made a passkey.
pub(super) fn registered(text: &str) -> Result<Credential, Refusal> {
    party().register(text, &challenge(1))
}

/// What a text comes to as the answer of a browser with the passkey of the corpus.
pub(super) fn verified(text: &str) -> Result<Credential, Refusal> {
    party().verify(&Assertion::read(text)?, &challenge(2), &CREATED)
}

/// Checks a text as both answers of a browser: it is refused, or it is one of the two and
/// only for its challenge and its site. What is accepted can be stored, and is accepted once.
///
/// # Panics
/// When it has another outcome.
pub(crate) fn check_answer(text: &str) {
    let made = registered(text);
    let used = verified(text);
    assert!(made.is_err() || used.is_err(), "one answer is both");
    let elsewhere = RelyingParty::at("https://evil.example").unwrap();
    if let Ok(credential) = made {
        check_credential(&credential);
        let other = party().register(text, &challenge(3));
        assert_eq!(other, Err(Refusal::OtherChallenge));
        assert_eq!(elsewhere.register(text, &challenge(1)), Err(Refusal::OtherOrigin));
    }
    if let Ok(after) = used {
        check_credential(&after);
        let answer = Assertion::read(text).unwrap();
        let again = party().verify(&answer, &challenge(2), &after);
        assert_eq!(again, Err(Refusal::CounterWentBack));
        let other = party().verify(&answer, &challenge(3), &after);
        assert_eq!(other, Err(Refusal::OtherChallenge));
        let there = elsewhere.verify(&answer, &challenge(2), &after);
        assert_eq!(there, Err(Refusal::OtherOrigin));
    }
}

fn check_credential(credential: &Credential) {
    assert!((1..=1023).contains(&credential.id().len()), "an id of {}", credential.id().len());
    let stored = serde_json::to_string(credential).unwrap();
    assert_eq!(serde_json::from_str::<Credential>(&stored).unwrap(), *credential);
}

/// Checks bytes as what an authenticator writes: as an attestation, as the data in one, and
/// as the data of an assertion. The last is refused, because its signature is of other data.
/// Returns whether the attestation is accepted.
///
/// # Panics
/// When it has another outcome.
pub(crate) fn check_attestation(bytes: &[u8]) -> bool {
    let whole = answer("webauthn.create", 1, json!({"attestationObject": encoded(bytes)}));
    check_answer(&whole);
    let mut object = b"\xa1\x68authData\x5a".to_vec();
    object.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    object.extend(bytes);
    check_answer(&answer("webauthn.create", 1, json!({"attestationObject": encoded(&object)})));
    let parts = json!({"authenticatorData": encoded(bytes), "signature": "AA"});
    assert!(verified(&answer("webauthn.get", 2, parts)).is_err(), "a signature of nothing");
    registered(&whole).is_ok()
}

/// The answer of a browser with the other parts of its response.
fn answer(kind: &str, number: u8, mut response: Value) -> String {
    let data = json!({"type": kind, "challenge": challenge(number), "origin": SITE});
    response["clientDataJSON"] = encoded(data.to_string().as_bytes()).into();
    json!({"rawId": encoded(&ID), "type": "public-key", "response": response}).to_string()
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
