//! What an issuer publishes about itself: endpoints and keys, fetched and cached (SSO-4,
//! SSO-5).
//!
//! What belongs here: reading the discovery document, and how long its parts are kept.
//! What does not: reading keys (`keys`), and requests (`fetch`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use openidconnect::core::CoreJsonWebKeySet;
use parking_lot::Mutex;
use serde::Deserialize;
use url::Url;

use crate::fetch::Fetch;
use crate::keys;
use crate::provider::{is_loopback, is_safe};
use crate::refusal::{Answer, Endpoint, Refusal};

/// How long a document and a key set are used. Afterwards they are fetched again.
const AGE: Duration = Duration::from_secs(60 * 60);
/// The time between two fetches of the keys because a key is unknown or does not verify a
/// signature. Only tokens that the issuer's own endpoint returned for a code cause one, so
/// visitors cause none; this bounds what an issuer causes that signs with a wrong key.
const BETWEEN_REFRESHES: Duration = Duration::from_secs(5);
/// The highest number of issuers in the cache, of which each has about 100 KiB at most:
/// keys are small, and the documents are not kept.
const MAX_ISSUERS: usize = 256;
/// The longest URL of an endpoint.
const MAX_URL: usize = 2048;

/// What a login needs of a discovery document.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) authorization: Url,
    pub(crate) token: String,
    pub(crate) keys: String,
    pub(crate) userinfo: Option<String>,
    /// The client secret is part of the form, because the issuer takes no header.
    pub(crate) has_secret_in_form: bool,
    /// Callbacks name the issuer (RFC 9207).
    pub(crate) names_issuer: bool,
}

#[derive(Deserialize)]
struct Document {
    issuer: Option<String>,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    jwks_uri: Option<String>,
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: Option<bool>,
}

/// The cache of all issuers.
#[derive(Default)]
pub(crate) struct Issuers(Mutex<HashMap<String, Entry>>);

struct Entry {
    used: Duration,
    known: Arc<tokio::sync::Mutex<IssuerData>>,
}

/// The metadata and keys of one issuer. Its lock is held while a part is fetched, so that
/// concurrent logins make one request.
#[derive(Default)]
pub(crate) struct IssuerData {
    metadata: Option<Fetched<Metadata>>,
    keys: Option<Fetched<CoreJsonWebKeySet>>,
    refreshed: Option<Duration>,
}

struct Fetched<T> {
    at: Duration,
    value: Arc<T>,
}

impl<T> Fetched<T> {
    fn at(now: Duration, value: T) -> Self {
        Self { at: now, value: Arc::new(value) }
    }

    fn fresh(kept: Option<&Self>, now: Duration) -> Option<Arc<T>> {
        let kept = kept.filter(|kept| now.saturating_sub(kept.at) < AGE);
        kept.map(|kept| Arc::clone(&kept.value))
    }
}

impl Issuers {
    fn known(&self, issuer: &str, now: Duration) -> Arc<tokio::sync::Mutex<IssuerData>> {
        let mut issuers = self.0.lock();
        if issuers.len() >= MAX_ISSUERS && !issuers.contains_key(issuer) {
            let oldest = issuers.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(issuer, _)| issuer.clone()) {
                issuers.remove(&oldest);
            }
        }
        let entry = issuers
            .entry(issuer.to_owned())
            .or_insert_with(|| Entry { used: now, known: Arc::default() });
        entry.used = now;
        Arc::clone(&entry.known)
    }

    /// The endpoints of an issuer.
    pub(crate) async fn metadata(
        &self,
        fetch: &Fetch,
        issuer: &str,
        now: Duration,
    ) -> Result<Arc<Metadata>, Refusal> {
        let known = self.known(issuer, now);
        let mut known = known.lock().await;
        if let Some(metadata) = Fetched::fresh(known.metadata.as_ref(), now) {
            return Ok(metadata);
        }
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let text = fetch.document(Answer::Discovery, &url).await?;
        let fetched = Fetched::at(now, read(&text, issuer, fetch)?);
        let metadata = Arc::clone(&fetched.value);
        // The document may name another address of the keys.
        known.keys = None;
        known.metadata = Some(fetched);
        Ok(metadata)
    }

    /// The keys of an issuer.
    pub(crate) async fn keys(
        &self,
        fetch: &Fetch,
        issuer: &str,
        metadata: &Metadata,
        now: Duration,
    ) -> Result<Arc<CoreJsonWebKeySet>, Refusal> {
        let known = self.known(issuer, now);
        let mut known = known.lock().await;
        if let Some(keys) = Fetched::fresh(known.keys.as_ref(), now) {
            return Ok(keys);
        }
        known.fetch_keys(fetch, metadata, now).await
    }

    /// The keys of an issuer after a token could not be verified with `seen`: fetched again,
    /// or `None` if that happened a short time ago.
    pub(crate) async fn refreshed_keys(
        &self,
        fetch: &Fetch,
        issuer: &str,
        metadata: &Metadata,
        seen: &Arc<CoreJsonWebKeySet>,
        now: Duration,
    ) -> Result<Option<Arc<CoreJsonWebKeySet>>, Refusal> {
        let known = self.known(issuer, now);
        let mut known = known.lock().await;
        // A concurrent login may have fetched them.
        if let Some(keys) = Fetched::fresh(known.keys.as_ref(), now)
            && !Arc::ptr_eq(&keys, seen)
        {
            return Ok(Some(keys));
        }
        if known.refreshed.is_some_and(|at| now.saturating_sub(at) < BETWEEN_REFRESHES) {
            return Ok(None);
        }
        known.refreshed = Some(now);
        known.fetch_keys(fetch, metadata, now).await.map(Some)
    }
}

impl IssuerData {
    async fn fetch_keys(
        &mut self,
        fetch: &Fetch,
        metadata: &Metadata,
        now: Duration,
    ) -> Result<Arc<CoreJsonWebKeySet>, Refusal> {
        let text = fetch.document(Answer::Keys, &metadata.keys).await?;
        let fetched = Fetched::at(now, keys::read(&text)?);
        let keys = Arc::clone(&fetched.value);
        self.keys = Some(fetched);
        Ok(keys)
    }
}

/// Reads a discovery document.
fn read(text: &str, issuer: &str, fetch: &Fetch) -> Result<Metadata, Refusal> {
    let document: Document =
        serde_json::from_str(text).map_err(|_| Refusal::NotJson(Answer::Discovery))?;
    let missing = |member| Refusal::Member { answer: Answer::Discovery, member };
    if document.issuer.ok_or(missing("issuer"))? != issuer {
        return Err(Refusal::DiscoveryIssuer);
    }
    let with_loopback = Url::parse(issuer).is_ok_and(|issuer| is_loopback(&issuer));
    let checked = |endpoint, text: &str| {
        let url = Url::parse(text).ok().filter(|url| is_safe(url, with_loopback));
        url.filter(|_| text.len() <= MAX_URL).ok_or(Refusal::EndpointUrl(endpoint))
    };
    // The browser goes to the authorization endpoint, and this server to the others.
    let dialled = |endpoint, text: String| -> Result<String, Refusal> {
        checked(endpoint, &text)?;
        fetch.judge(endpoint, &text)?;
        Ok(text)
    };
    let authorization = document.authorization_endpoint.ok_or(missing("authorization_endpoint"))?;
    let token = document.token_endpoint.ok_or(missing("token_endpoint"))?;
    let keys = document.jwks_uri.ok_or(missing("jwks_uri"))?;
    let methods = document.token_endpoint_auth_methods_supported.unwrap_or_default();
    let has = |method: &str| methods.iter().any(|other| other == method);
    Ok(Metadata {
        authorization: checked(Endpoint::Authorization, &authorization)?,
        token: dialled(Endpoint::Token, token)?,
        keys: dialled(Endpoint::Keys, keys)?,
        userinfo: document
            .userinfo_endpoint
            .map(|url| dialled(Endpoint::Userinfo, url))
            .transpose()?,
        has_secret_in_form: has("client_secret_post") && !has("client_secret_basic"),
        names_issuer: document.authorization_response_iss_parameter_supported == Some(true),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Issuers, MAX_ISSUERS};

    #[test]
    fn the_cache_holds_a_bounded_number_of_issuers() {
        let issuers = Issuers::default();
        let seconds = |number: usize| Duration::from_secs(number.try_into().unwrap());
        for number in 0..MAX_ISSUERS * 2 {
            issuers.known(&format!("https://{number}.example"), seconds(number));
            // One that is in use stays.
            issuers.known("https://used.example", seconds(number));
        }
        let kept = issuers.0.lock();
        assert_eq!(kept.len(), MAX_ISSUERS);
        assert!(kept.contains_key("https://used.example"));
        assert!(!kept.contains_key("https://0.example"));
    }
}
