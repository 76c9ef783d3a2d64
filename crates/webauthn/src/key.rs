//! Public keys of passkeys: from COSE, as authenticators write them, and the check of a
//! signature.

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::bytes::Bytes;
use crate::cbor::{Item, Reader};

/// The algorithms that are requested, best first, by their numbers in COSE.
pub(crate) const ALGORITHMS: [i64; 3] = [ES256, ED_DSA, RS256];
const ES256: i64 = -7;
const ED_DSA: i64 = -8;
const RS256: i64 = -257;
/// Most members of a key.
const MEMBERS: u64 = 8;
/// Length of a coordinate and of an Ed25519 key, in bytes.
const COORDINATE: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "alg")]
pub(crate) enum PublicKey {
    /// ECDSA on P-256 with SHA-256: an uncompressed point.
    ES256 { point: Bytes },
    /// Ed25519.
    EdDSA { point: Bytes },
    /// RSASSA-PKCS1-v1_5 with SHA-256: modulus and exponent. Windows Hello uses it.
    RS256 { n: Bytes, e: Bytes },
}

impl PublicKey {
    /// Reads a key, and leaves the reader after it.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        let unreadable = || Refusal::Unreadable("the public key");
        let members = reader.map().filter(|members| *members <= MEMBERS);
        let members = members.ok_or_else(unreadable)?;
        let mut found: Vec<(i64, Item<'_>)> = Vec::new();
        for _ in 0..members {
            let Some(Item::Integer(label)) = reader.item() else { return Err(unreadable()) };
            if found.iter().any(|(present, _)| *present == label) {
                return Err(unreadable());
            }
            found.push((label, reader.item().ok_or_else(unreadable)?));
        }
        let find = |label: i64| found.iter().find(|(other, _)| *other == label).map(|(_, it)| *it);
        let bytes = |label: i64| match find(label) {
            Some(Item::Bytes(bytes)) => Some(bytes),
            _ => None,
        };
        let coordinate = |label: i64| bytes(label).filter(|bytes| bytes.len() == COORDINATE);
        let (kind, algorithm, curve) = (find(1), find(3), find(-1));
        let is = |item: Option<Item<'_>>, number: i64| item == Some(Item::Integer(number));
        let key = if is(kind, 2) && is(algorithm, ES256) && is(curve, 1) {
            coordinate(-2).zip(coordinate(-3)).map(|(x, y)| {
                // The mark of an uncompressed point.
                Self::ES256 { point: Bytes([&[4], x, y].concat()) }
            })
        } else if is(kind, 1) && is(algorithm, ED_DSA) && is(curve, 6) {
            coordinate(-2).map(|point| Self::EdDSA { point: Bytes(point.to_vec()) })
        } else if is(kind, 3) && is(algorithm, RS256) {
            bytes(-1)
                .zip(bytes(-2))
                .map(|(n, e)| Self::RS256 { n: Bytes(n.to_vec()), e: Bytes(e.to_vec()) })
        } else {
            None
        };
        key.ok_or(Refusal::OtherKey)
    }

    /// Checks a signature.
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Refusal> {
        let verified = match self {
            Self::ES256 { point } => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &point.0).verify(message, signature)
            }
            Self::EdDSA { point } => {
                UnparsedPublicKey::new(&ED25519, &point.0).verify(message, signature)
            }
            Self::RS256 { n, e } => RsaPublicKeyComponents { n: &n.0, e: &e.0 }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                message,
                signature,
            ),
        };
        verified.map_err(|_| Refusal::WrongSignature)
    }
}
