//! Answers of an authenticator in software, and answers that are hostile.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents as RsaPublicKeyComponents;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use weir_testservers::SoftPasskey;

use super::*;

const SITE: &str = "https://weir.example";

fn party() -> RelyingParty {
    RelyingParty::at(SITE).unwrap()
}

fn challenge(number: u8) -> Challenge {
    Challenge::new(&[number; 32])
}

fn creation_options(present: &[Credential]) -> String {
    let new = NewPasskey { handle: &[5; 16], account: "a@b.example", name: "Ada", present };
    party().creation_options(&challenge(1), &new)
}

fn created() -> (SoftPasskey, Credential) {
    let (device, answer) = SoftPasskey::create(&creation_options(&[]), SITE);
    (device, party().register(&answer, &challenge(1)).unwrap())
}

fn verified(answer: &str, credential: &Credential) -> Result<Credential, Refusal> {
    party().verify(&Assertion::read(answer)?, &challenge(2), credential)
}

fn request_options() -> String {
    party().request_options(&challenge(2), &[])
}

#[test]
fn the_relying_party_is_the_host_name_of_the_site() {
    for (site, expected) in [
        ("https://weir.example", Some("weir.example")),
        ("https://weir.example:8443", Some("weir.example")),
        ("http://localhost:8000", Some("localhost")),
        ("http://weir.localhost:8000", Some("weir.localhost")),
        ("http://weir.example", None),
        ("http://localhost.evil.example", None),
        ("http://127.0.0.1:8000", None),
        ("https://192.0.2.7", None),
        ("https://[::1]:8000", None),
        ("https://weir.example/path", None),
        ("https://user@weir.example", None),
        ("https://", None),
        ("ftp://weir.example", None),
        ("weir.example", None),
        ("", None),
    ] {
        let party = RelyingParty::at(site);
        assert_eq!(party.as_ref().map(RelyingParty::id), expected, "{site}");
    }
}

#[test]
fn a_passkey_is_made_and_used() {
    let (mut device, credential) = created();
    assert_eq!(credential.id(), device.id);
    let stored = serde_json::to_string(&credential).unwrap();
    let credential: Credential = serde_json::from_str(&stored).unwrap();
    let answer = device.answer(&request_options());
    assert_eq!(Assertion::read(&answer).unwrap().handle(), Some([5; 16].as_slice()));
    let after = verified(&answer, &credential).unwrap();
    assert_eq!((credential.counter, after.counter), (1, 2));
    // The next use is checked with what the last one left.
    assert_eq!(verified(&answer, &after), Err(Refusal::CounterWentBack));
    assert!(verified(&device.answer(&request_options()), &after).is_ok());
}

#[test]
fn options_ask_for_a_verified_user_and_no_name() {
    let (_, credential) = created();
    let known = std::slice::from_ref(&credential);
    let options: Value = serde_json::from_str(&creation_options(known)).unwrap();
    assert_eq!(options["rp"], json!({"id": "weir.example", "name": "Weir"}));
    assert_eq!(options["authenticatorSelection"]["residentKey"], "required");
    assert_eq!(options["authenticatorSelection"]["userVerification"], "required");
    assert_eq!(options["excludeCredentials"][0]["id"], bytes::encoded(credential.id()));
    let options: Value = serde_json::from_str(&request_options()).unwrap();
    assert_eq!(options["userVerification"], "required");
    assert_eq!(options["allowCredentials"], json!([]));
}

#[test]
fn answers_with_a_flaw_are_refused() {
    type Flaw = fn(&mut SoftPasskey);
    let (device, credential) = created();
    let flaws: [(Flaw, Refusal); 7] = [
        (|device| device.origin = "https://evil.example".to_owned(), Refusal::OtherOrigin),
        (|device| device.origin = "https://weir.example:8443".to_owned(), Refusal::OtherOrigin),
        (|device| device.origin = "http://weir.example".to_owned(), Refusal::OtherOrigin),
        (|device| device.rp_id = "evil.example".to_owned(), Refusal::OtherRelyingParty),
        (|device| device.verifies = false, Refusal::NotVerified),
        (|device| device.id = vec![1; 32], Refusal::OtherCredential),
        (|device| device.counter = 0, Refusal::CounterWentBack),
    ];
    for (flaw, expected) in flaws {
        let mut flawed = device.copied();
        flaw(&mut flawed);
        assert_eq!(verified(&flawed.answer(&request_options()), &credential), Err(expected));
    }
    let other = party().request_options(&challenge(3), &[]);
    let answer = device.copied().answer(&other);
    assert_eq!(verified(&answer, &credential), Err(Refusal::OtherChallenge));
    let (mut unknown, _) = created();
    unknown.id.clone_from(&device.id);
    unknown.counter = 7;
    let answer = unknown.answer(&request_options());
    assert_eq!(verified(&answer, &credential), Err(Refusal::WrongSignature));
}

/// What the authenticator signs cannot be changed.
#[test]
fn changed_answers_are_refused() {
    let (mut device, credential) = created();
    let answer: Value = serde_json::from_str(&device.answer(&request_options())).unwrap();
    let change = |part: &str, at: usize| {
        let mut changed = answer.clone();
        let text = changed["response"][part].as_str().unwrap();
        let mut text = text.as_bytes().to_vec();
        text[at] = if text[at] == b'A' { b'B' } else { b'A' };
        changed["response"][part] = String::from_utf8(text).unwrap().into();
        changed.to_string()
    };
    for part in ["authenticatorData", "signature", "clientDataJSON"] {
        for at in [0, 20, 40, 48, 60] {
            let length = answer["response"][part].as_str().unwrap().len();
            if at < length {
                assert!(verified(&change(part, at), &credential).is_err(), "{part} {at}");
            }
        }
    }
    assert!(verified(&answer.to_string(), &credential).is_ok());
}

#[test]
fn new_passkeys_with_a_flaw_are_refused() {
    let register = |answer: &str| party().register(answer, &challenge(1)).map(drop);
    let options = creation_options(&[]);
    let (_, answer) = SoftPasskey::create(&options, "https://evil.example");
    assert_eq!(register(&answer), Err(Refusal::OtherOrigin));
    let (_, answer) = SoftPasskey::create_verifying(&options, SITE, false);
    assert_eq!(register(&answer), Err(Refusal::NotVerified));
    let (_, answer) = SoftPasskey::create(&options.replace("weir.", "evil."), SITE);
    assert_eq!(register(&answer), Err(Refusal::OtherRelyingParty));
    let (_, answer) = SoftPasskey::create(&options, SITE);
    let other = party().register(&answer, &challenge(2)).map(drop);
    assert_eq!(other, Err(Refusal::OtherChallenge));
    // An answer of one type is worth nothing as the other one.
    let (mut device, answer) = SoftPasskey::create(&options, SITE);
    assert!(Assertion::read(&answer).is_err());
    assert!(matches!(register(&device.answer(&options)), Err(Refusal::Unreadable(_))));
    let mut named: Value = serde_json::from_str(&answer).unwrap();
    named["rawId"] = bytes::encoded(&[1; 32]).into();
    assert_eq!(register(&named.to_string()), Err(Refusal::OtherCredential));
    assert_eq!(register(&"a".repeat(20 << 10)), Err(Refusal::TooLong));
    assert_eq!(register(&answer), Ok(()));
}

#[test]
fn a_page_in_a_frame_of_another_site_is_refused() {
    let (_, answer) = SoftPasskey::create(&creation_options(&[]), SITE);
    let mut answer: Value = serde_json::from_str(&answer).unwrap();
    let data = json!({
        "type": "webauthn.create", "challenge": challenge(1), "origin": SITE, "crossOrigin": true,
    });
    answer["response"]["clientDataJSON"] = bytes::encoded(data.to_string().as_bytes()).into();
    let refused = party().register(&answer.to_string(), &challenge(1)).map(drop);
    assert_eq!(refused, Err(Refusal::OtherOrigin));
}

/// A counter that never counts is no sign of a copy. One that stops is.
#[test]
fn counters() {
    let (device, credential) = created();
    let with = |stored: u32, sent: u32| {
        let credential = Credential { counter: stored, ..credential.clone() };
        let mut device = device.copied();
        device.counter = sent.wrapping_sub(1);
        let verified = verified(&device.answer(&request_options()), &credential);
        verified.map(|after| after.counter)
    };
    assert_eq!(with(0, 0), Ok(0));
    assert_eq!(with(0, 1), Ok(1));
    assert_eq!(with(5, 9), Ok(9));
    for (stored, sent) in [(5, 5), (5, 4), (5, 0), (1, 1)] {
        assert_eq!(with(stored, sent), Err(Refusal::CounterWentBack), "{stored} {sent}");
    }
}

/// Keys of the other two algorithms: Ed25519 from RFC 8032, 7.1, test 2, and RSA.
#[test]
fn keys_of_other_types() {
    let read = |bytes: &[u8]| key::PublicKey::read(&mut cbor::Reader::new(bytes));
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
            .collect()
    };
    let mut ed25519 = b"\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20".to_vec();
    ed25519.extend(hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"));
    let key = read(&ed25519).unwrap();
    let signature = hex("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
    assert_eq!(key.verify(&[0x72], &signature), Ok(()));
    assert_eq!(key.verify(&[0x73], &signature), Err(Refusal::WrongSignature));
    let pem = include_str!("../../saml/src/tests/keys/idp.key");
    let pem: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let pair = RsaKeyPair::from_pkcs8(&STANDARD.decode(pem).unwrap()).unwrap();
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
    let mut rsa = b"\xa4\x01\x03\x03\x39\x01\x00\x20\x59\x01\x00".to_vec();
    rsa.extend(&public.n);
    rsa.extend(b"\x21\x43");
    rsa.extend(&public.e);
    let key = read(&rsa).unwrap();
    let mut signature = vec![0; 256];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), b"signed", &mut signature).unwrap();
    assert_eq!(key.verify(b"signed", &signature), Ok(()));
    assert_eq!(key.verify(b"other", &signature), Err(Refusal::WrongSignature));
    assert_eq!(key.verify(b"signed", &[0; 256]), Err(Refusal::WrongSignature));
    // Another curve, another algorithm, a member twice, and no map.
    assert_eq!(read(b"\xa3\x01\x02\x03\x26\x20\x02"), Err(Refusal::OtherKey));
    assert_eq!(read(b"\xa2\x01\x02\x03\x38\x22"), Err(Refusal::OtherKey));
    assert!(matches!(read(b"\xa2\x01\x02\x01\x02"), Err(Refusal::Unreadable(_))));
    assert!(matches!(read(b"\x80"), Err(Refusal::Unreadable(_))));
}

proptest! {
    /// Bytes that no authenticator wrote are refused, and nothing panics.
    #[test]
    fn any_bytes_are_read_without_a_panic(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        let answer = json!({
            "rawId": "AA", "type": "public-key",
            "response": {
                "clientDataJSON": bytes::encoded(&data),
                "attestationObject": bytes::encoded(&data),
            },
        });
        prop_assert!(party().register(&answer.to_string(), &challenge(1)).is_err());
        prop_assert!(AuthenticatorData::read(&data).is_err() || data.len() >= 37);
        let _ = cbor::Reader::new(&data).item();
    }
}
