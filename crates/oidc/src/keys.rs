//! The keys that an issuer signs tokens with (SSO-5).
//!
//! What belongs here: reading a key set, and which keys are used. What does not: fetching
//! it (`discovery`), and checking signatures (`id_token`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{CoreJsonWebKey, CoreJsonWebKeySet};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::refusal::{Answer, Refusal};

/// The highest number of keys of an issuer. Large providers publish about ten.
pub(crate) const MAX_KEYS: usize = 100;

/// The sizes of an RSA modulus, in bytes. Shorter ones are weak, and longer ones are
/// expensive to check.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=512;

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

/// What decides whether a key is used.
#[derive(Deserialize)]
struct Shape {
    kty: String,
    crv: Option<String>,
    n: Option<String>,
}

/// Reads a key set. Keys of other types and sizes are ignored, because an issuer may have
/// them for other clients.
pub(crate) fn read(text: &str) -> Result<CoreJsonWebKeySet, Refusal> {
    let document: Document<'_> =
        serde_json::from_str(text).map_err(|_| Refusal::NotJson(Answer::Keys))?;
    if document.keys.len() > MAX_KEYS {
        return Err(Refusal::TooManyKeys);
    }
    let usable = document.keys.iter().map(|raw| raw.get()).filter(|raw| is_usable(raw));
    let keys: Vec<CoreJsonWebKey> =
        usable.filter_map(|raw| serde_json::from_str(raw).ok()).collect();
    if keys.is_empty() {
        return Err(Refusal::NoUsableKey);
    }
    Ok(CoreJsonWebKeySet::new(keys))
}

fn is_usable(raw: &str) -> bool {
    let Ok(shape) = serde_json::from_str::<Shape>(raw) else { return false };
    match (shape.kty.as_str(), shape.crv.as_deref()) {
        ("RSA", _) => shape.n.is_some_and(|modulus| is_long_enough(&modulus)),
        ("EC", Some("P-256")) | ("OKP", Some("Ed25519")) => true,
        _ => false,
    }
}

fn is_long_enough(modulus: &str) -> bool {
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(modulus.trim_end_matches('=')) else { return false };
    // A leading zero, which some issuers write, is no part of the number.
    let leading = bytes.iter().take_while(|byte| **byte == 0).count();
    RSA_BYTES.contains(&(bytes.len() - leading))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    use super::read;
    use crate::refusal::{Answer, Refusal};

    fn rsa(bytes: usize) -> Value {
        let modulus = URL_SAFE_NO_PAD.encode(vec![0xc3; bytes]);
        json!({"kty": "RSA", "kid": "a", "use": "sig", "n": modulus, "e": "AQAB"})
    }

    fn count(keys: &[Value]) -> Result<usize, Refusal> {
        read(&json!({"keys": keys}).to_string()).map(|set| set.keys().len())
    }

    #[test]
    fn keys_of_other_types_and_sizes_are_ignored() {
        let x = URL_SAFE_NO_PAD.encode([7; 32]);
        let edwards = json!({"kty": "OKP", "crv": "Ed25519", "x": x});
        let others = [
            rsa(255),
            rsa(128),
            rsa(513),
            json!({"kty": "EC", "crv": "P-384", "x": x, "y": x}),
            json!({"kty": "OKP", "crv": "X25519", "x": x}),
            json!({"kty": "oct", "k": x}),
            json!({"kty": "RSA"}),
            json!("a"),
        ];
        assert_eq!(count(&others), Err(Refusal::NoUsableKey));
        let mut all = others.to_vec();
        all.extend([edwards, rsa(256), rsa(512)]);
        assert_eq!(count(&all), Ok(3));
    }

    #[test]
    fn a_key_set_is_bounded() {
        assert_eq!(count(&vec![rsa(256); 100]), Ok(100));
        assert_eq!(count(&vec![rsa(256); 101]), Err(Refusal::TooManyKeys));
        assert_eq!(count(&vec![json!(0); 10_000]), Err(Refusal::TooManyKeys));
        assert_eq!(count(&[]), Err(Refusal::NoUsableKey));
        for text in ["", "[]", "{}", r#"{"keys": {}}"#, "<html>"] {
            assert_eq!(read(text).err(), Some(Refusal::NotJson(Answer::Keys)), "{text}");
        }
    }
}
