//! Checking an ID token (SSO-6).
//!
//! What belongs here: the form of a token, which is checked first, and what the library
//! leaves to its caller (`azp`, `nbf`, `iat`, `at_hash`). The library checks signature,
//! issuer, audience, expiry and nonce. Values are taken from its verified claims.
//!
//! What does not: what the claims mean for a user (`identity`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use openidconnect::core::{
    CoreGenderClaim, CoreJsonWebKeySet, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm,
};
use openidconnect::{
    AccessToken, AccessTokenHash, AdditionalClaims, ClaimsVerificationError, ClientId, IdToken,
    IdTokenVerifier, IssuerUrl, LocalizedClaim, Nonce, SignatureVerificationError,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Refusal;
use crate::identity::Claims;
use crate::object::Object;
use crate::secret::Secret;

/// The longest token. Those with many groups have about 20 KiB.
pub(crate) const MAX_BYTES: usize = 64 * 1024;
/// The highest number of audiences.
const MAX_AUDIENCES: usize = 32;
/// How far the clocks of an issuer and of this server may differ.
const LEEWAY: TimeDelta = TimeDelta::seconds(60);

const ALGORITHMS: [(&str, CoreJwsSigningAlgorithm); 3] = [
    ("RS256", CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256),
    ("ES256", CoreJwsSigningAlgorithm::EcdsaP256Sha256),
    ("EdDSA", CoreJwsSigningAlgorithm::EdDsa),
];

/// What a token is compared with.
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) nonce: &'a Secret,
    pub(crate) access_token: &'a Secret,
    /// When the login was begun.
    pub(crate) begun: DateTime<Utc>,
    pub(crate) now: DateTime<Utc>,
}

/// The claims of Google that are in no standard.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct Additional {
    hd: Option<String>,
}

impl AdditionalClaims for Additional {}

type Token = IdToken<
    Additional,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;

/// Checks a token: its claims.
pub(crate) fn verify(
    text: &str,
    keys: &CoreJsonWebKeySet,
    expected: &Expected<'_>,
) -> Result<Claims, Refusal> {
    check_form(text, expected)?;
    let token: Token = text.parse().map_err(|_| Refusal::TokenForm)?;
    let issuer = IssuerUrl::new(expected.issuer.to_owned()).map_err(|_| Refusal::Issuer)?;
    let client = ClientId::new(expected.client_id.to_owned());
    // As a public client: no token is signed with the client secret.
    let verifier = IdTokenVerifier::new_public_client(client, issuer, keys.clone())
        .set_allowed_algs(ALGORITHMS.map(|(_, algorithm)| algorithm))
        // `azp`, which has been checked, says that the token is for this client.
        .set_other_audience_verifier_fn(|_| true)
        .set_time_fn(|| expected.now - LEEWAY);
    let nonce = Nonce::new(expected.nonce.expose().to_owned());
    let claims = token.claims(&verifier, &nonce).map_err(of_library)?;
    if let Some(hash) = claims.access_token_hash() {
        let access_token = AccessToken::new(expected.access_token.expose().to_owned());
        let algorithm = token.signing_alg().map_err(|_| Refusal::Algorithm)?;
        let key = token.signing_key(&verifier).map_err(|_| Refusal::UnknownKey)?;
        let own = AccessTokenHash::from_token(&access_token, algorithm, key);
        if own.map_err(|_| Refusal::UnusableKey)? != *hash {
            return Err(Refusal::AccessTokenHash);
        }
    }
    Ok(Claims {
        subject: claims.subject().as_str().to_owned(),
        email: claims.email().map(|email| email.as_str().to_owned()),
        email_verified: claims.email_verified(),
        name: claims.name().and_then(plain).map(|name| name.as_str().to_owned()),
        hosted_domain: claims.additional_claims().hd.clone(),
        signed_in_at: claims.auth_time(),
    })
}

/// The value without a language.
fn plain<T>(claim: &LocalizedClaim<T>) -> Option<&T> {
    claim.get(None)
}

/// Checks the form of a token and the claims that the library does not check. Every text
/// that passes has one reading, and a fault has its own reason.
fn check_form(text: &str, expected: &Expected<'_>) -> Result<(), Refusal> {
    if text.len() > MAX_BYTES {
        return Err(Refusal::TokenTooLong);
    }
    let [header, payload, signature] =
        text.split('.').collect::<Vec<_>>().try_into().map_err(|_| Refusal::TokenForm)?;
    let header = object(header).ok_or(Refusal::TokenForm)?;
    let payload = object(payload).ok_or(Refusal::TokenForm)?;
    let algorithm = header.text("alg").ok().flatten().ok_or(Refusal::TokenForm)?;
    if !ALGORITHMS.iter().any(|(known, _)| *known == algorithm) {
        return Err(Refusal::Algorithm);
    }
    if signature.is_empty() || URL_SAFE_NO_PAD.decode(signature).is_err() {
        return Err(Refusal::Signature);
    }
    // An access token that is a JWT is no ID token.
    let is_jwt =
        header.text("typ").is_ok_and(|it| it.is_none_or(|it| it.eq_ignore_ascii_case("jwt")));
    if !is_jwt || header.has("crit") || header.has("cty") || header.has("b64") {
        return Err(Refusal::TokenHeader);
    }
    header.text("kid").map_err(|_| Refusal::TokenForm)?;
    check_claims(&payload, expected)
}

fn check_claims(payload: &Object, expected: &Expected<'_>) -> Result<(), Refusal> {
    for name in ["iss", "sub", "nonce"] {
        payload.text(name)?.ok_or(Refusal::ClaimMissing(name))?;
    }
    for name in ["name", "email", "hd", "at_hash"] {
        payload.text(name)?;
    }
    payload.flag("email_verified")?;
    check_audience(payload, expected)?;
    payload.seconds("exp")?.ok_or(Refusal::ClaimMissing("exp"))?;
    let issued = payload.seconds("iat")?.ok_or(Refusal::ClaimMissing("iat"))?;
    if issued > (expected.now + LEEWAY).timestamp() {
        return Err(Refusal::IssuedInFuture);
    }
    if issued < (expected.begun - LEEWAY).timestamp() {
        return Err(Refusal::IssuedBeforeLogin);
    }
    payload.seconds("auth_time")?;
    let valid_from = payload.seconds("nbf")?;
    if valid_from.is_some_and(|at| at > (expected.now + LEEWAY).timestamp()) {
        return Err(Refusal::NotYetValid);
    }
    Ok(())
}

fn check_audience(payload: &Object, expected: &Expected<'_>) -> Result<(), Refusal> {
    let audiences: &[Value] = match payload.get("aud").ok_or(Refusal::ClaimMissing("aud"))? {
        Value::Array(several) => several,
        one => std::slice::from_ref(one),
    };
    if audiences.len() > MAX_AUDIENCES || !audiences.iter().all(Value::is_string) {
        return Err(Refusal::ClaimType("aud"));
    }
    match payload.text("azp")? {
        Some(party) if party != expected.client_id => Err(Refusal::AuthorizedParty),
        None if audiences.len() > 1 => Err(Refusal::AuthorizedParty),
        _ => Ok(()),
    }
}

fn object(part: &str) -> Option<Object> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
    Object::parse(std::str::from_utf8(&bytes).ok()?)
}

/// The reason of the library, without its text, which has values of the token.
fn of_library(error: ClaimsVerificationError) -> Refusal {
    use SignatureVerificationError as Of;
    match error {
        ClaimsVerificationError::Expired(_) => Refusal::Expired,
        ClaimsVerificationError::InvalidAudience(_) => Refusal::Audience,
        ClaimsVerificationError::InvalidIssuer(_) => Refusal::Issuer,
        ClaimsVerificationError::InvalidNonce(_) => Refusal::Nonce,
        ClaimsVerificationError::InvalidSubject(_) => Refusal::Subject,
        ClaimsVerificationError::Unsupported(_) => Refusal::TokenHeader,
        ClaimsVerificationError::SignatureVerification(error) => match error {
            Of::AmbiguousKeyId(_) => Refusal::AmbiguousKey,
            Of::NoMatchingKey => Refusal::UnknownKey,
            Of::DisallowedAlg(_) | Of::NoSignature | Of::UnsupportedAlg(_) => Refusal::Algorithm,
            Of::InvalidKey(_) => Refusal::UnusableKey,
            _ => Refusal::Signature,
        },
        _ => Refusal::TokenForm,
    }
}
