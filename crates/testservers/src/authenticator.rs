//! An authenticator in software: makes passkeys and answers challenges as a browser does,
//! and with the flaws that a test asks for. It stands for devices of users, of which tests
//! have none.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

const PRESENT: u8 = 0x01;
const VERIFIED: u8 = 0x04;
const HAS_KEY: u8 = 0x40;

/// A passkey on a device. The fields say what it answers next.
pub struct SoftPasskey {
    /// The origin that the browser reports.
    pub origin: String,
    /// The relying party that it signs for.
    pub rp_id: String,
    /// The id of the credential.
    pub id: Vec<u8>,
    /// What it keeps for the user; `None`: it does not say.
    pub handle: Option<Vec<u8>>,
    /// Its counter, after the next answer.
    pub counter: u32,
    /// Whether it verifies its user.
    pub verifies: bool,
    key: EcdsaKeyPair,
    pkcs8: Vec<u8>,
}

impl SoftPasskey {
    /// Makes a passkey, at a page of this origin. Returns it with the answer for the server.
    pub fn create(options: &str, origin: &str) -> (Self, String) {
        Self::create_verifying(options, origin, true)
    }

    /// Like [`SoftPasskey::create`]; `verifies`: whether it verifies its user.
    pub fn create_verifying(options: &str, origin: &str, verifies: bool) -> (Self, String) {
        let options: Value = serde_json::from_str(options).unwrap();
        let random = SystemRandom::new();
        let mut id = vec![0; 32];
        random.fill(&mut id).unwrap();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let passkey = Self {
            origin: origin.to_owned(),
            rp_id: options["rp"]["id"].as_str().unwrap().to_owned(),
            handle: Some(decoded(&options["user"]["id"])),
            id,
            counter: 1,
            verifies,
            key: key(pkcs8.as_ref()),
            pkcs8: pkcs8.as_ref().to_vec(),
        };
        let answer = json!({
            "id": encoded(&passkey.id),
            "rawId": encoded(&passkey.id),
            "type": "public-key",
            "response": {
                "clientDataJSON": encoded(&passkey.client_data("webauthn.create", &options)),
                "attestationObject": encoded(&passkey.attestation()),
                "transports": ["internal"],
            },
            "clientExtensionResults": {},
        });
        (passkey, answer.to_string())
    }

    /// A copy of the device, with the counter of this moment.
    pub fn copied(&self) -> Self {
        Self {
            origin: self.origin.clone(),
            rp_id: self.rp_id.clone(),
            id: self.id.clone(),
            handle: self.handle.clone(),
            counter: self.counter,
            verifies: self.verifies,
            key: key(&self.pkcs8),
            pkcs8: self.pkcs8.clone(),
        }
    }

    /// Answers a challenge, and counts.
    pub fn answer(&mut self, options: &str) -> String {
        let options: Value = serde_json::from_str(options).unwrap();
        self.counter = self.counter.wrapping_add(1);
        let client_data = self.client_data("webauthn.get", &options);
        let data = self.data(0);
        let signed = [data.as_slice(), digest(&SHA256, &client_data).as_ref()].concat();
        let signature = self.key.sign(&SystemRandom::new(), &signed).unwrap();
        let answer = json!({
            "id": encoded(&self.id),
            "rawId": encoded(&self.id),
            "type": "public-key",
            "response": {
                "clientDataJSON": encoded(&client_data),
                "authenticatorData": encoded(&data),
                "signature": encoded(signature.as_ref()),
                "userHandle": self.handle.as_deref().map(encoded),
            },
            "clientExtensionResults": {},
        });
        answer.to_string()
    }

    fn client_data(&self, kind: &str, options: &Value) -> Vec<u8> {
        let data = json!({
            "type": kind,
            "challenge": options["challenge"],
            "origin": self.origin,
            "crossOrigin": false,
        });
        data.to_string().into_bytes()
    }

    /// What the authenticator signs.
    fn data(&self, flags: u8) -> Vec<u8> {
        let verified = if self.verifies { VERIFIED } else { 0 };
        let mut data = digest(&SHA256, self.rp_id.as_bytes()).as_ref().to_vec();
        data.push(PRESENT | verified | flags);
        data.extend(self.counter.to_be_bytes());
        data
    }

    /// The public key, in CBOR.
    fn attestation(&self) -> Vec<u8> {
        let mut data = self.data(HAS_KEY);
        data.extend([0; 16]);
        data.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
        data.extend(&self.id);
        // An uncompressed point: a byte, and two coordinates.
        let (x, y) = self.key.public_key().as_ref()[1..].split_at(32);
        data.extend([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]);
        data.extend(x);
        data.extend([0x22, 0x58, 0x20]);
        data.extend(y);
        let mut object = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58".to_vec();
        object.push(u8::try_from(data.len()).unwrap());
        object.extend(data);
        object
    }
}

fn key(pkcs8: &[u8]) -> EcdsaKeyPair {
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &SystemRandom::new()).unwrap()
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decoded(text: &Value) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap()
}
