//! Keys that tests make, and tokens that are signed with them.

use std::process::Command;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use ring::{digest, hmac};
use serde_json::{Value, json};

/// A key that signs.
pub(crate) enum Signer {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Edwards(Ed25519KeyPair),
    /// With the bytes as secret.
    Secret(Vec<u8>),
    /// No signature at all.
    Nothing,
}

/// The key of the issuer.
pub(crate) static RSA: LazyLock<Signer> = LazyLock::new(rsa);
/// The key of another issuer.
pub(crate) static OTHER_RSA: LazyLock<Signer> = LazyLock::new(rsa);
pub(crate) static P256: LazyLock<Signer> =
    LazyLock::new(|| Signer::P256(ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING)));
pub(crate) static P384: LazyLock<Signer> =
    LazyLock::new(|| Signer::P384(ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING)));
pub(crate) static EDWARDS: LazyLock<Signer> = LazyLock::new(|| {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Signer::Edwards(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
});
/// Signs with the public key of [`RSA`] as secret. The key is public.
pub(crate) static PUBLIC_KEY_AS_SECRET: LazyLock<Signer> =
    LazyLock::new(|| Signer::Secret(RSA.jwk("a")["n"].as_str().unwrap().as_bytes().to_vec()));
pub(crate) static CLIENT_SECRET: LazyLock<Signer> =
    LazyLock::new(|| Signer::Secret(crate::issuer::CLIENT_SECRET.as_bytes().to_vec()));
pub(crate) static NOTHING: Signer = Signer::Nothing;

/// ring makes no RSA keys.
fn rsa() -> Signer {
    let output = Command::new("openssl")
        .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
        .args(["-outform", "DER"])
        .output()
        .unwrap();
    assert!(output.status.success(), "openssl makes a key");
    // The form depends on the version of openssl.
    let pair = RsaKeyPair::from_der(&output.stdout);
    Signer::Rsa(pair.or_else(|_| RsaKeyPair::from_pkcs8(&output.stdout)).unwrap())
}

fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap()
}

impl Signer {
    /// The public half, as a key of a key set.
    pub(crate) fn jwk(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Rsa(pair) => {
                let key = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({
                    "kty": "RSA", "kid": id, "use": "sig", "alg": "RS256",
                    "n": text(&key.n), "e": text(&key.e),
                })
            }
            Self::P256(pair) | Self::P384(pair) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let curve = if x.len() == 32 { "P-256" } else { "P-384" };
                json!({"kty": "EC", "kid": id, "use": "sig", "crv": curve, "x": text(x), "y": text(y)})
            }
            Self::Edwards(pair) => {
                let x = text(pair.public_key().as_ref());
                json!({"kty": "OKP", "kid": id, "use": "sig", "crv": "Ed25519", "x": x})
            }
            Self::Secret(bytes) => json!({"kty": "oct", "kid": id, "k": text(bytes)}),
            Self::Nothing => json!({}),
        }
    }

    fn sign(&self, text: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).unwrap();
                signature
            }
            Self::P256(pair) | Self::P384(pair) => {
                pair.sign(&random, text).unwrap().as_ref().to_vec()
            }
            Self::Edwards(pair) => pair.sign(text).as_ref().to_vec(),
            Self::Secret(bytes) => {
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, bytes), text).as_ref().to_vec()
            }
            Self::Nothing => Vec::new(),
        }
    }

    /// A signed token. The texts need not be JSON.
    pub(crate) fn token(&self, header: &str, claims: &str) -> String {
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// `at_hash` of an access token, for RS256 and ES256.
pub(crate) fn access_token_hash(token: &str) -> String {
    let hash = digest::digest(&digest::SHA256, token.as_bytes());
    URL_SAFE_NO_PAD.encode(&hash.as_ref()[..16])
}

/// `at_hash` of an access token, for EdDSA.
pub(crate) fn long_access_token_hash(token: &str) -> String {
    let hash = digest::digest(&digest::SHA512, token.as_bytes());
    URL_SAFE_NO_PAD.encode(&hash.as_ref()[..32])
}
