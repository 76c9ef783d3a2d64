//! Signing in through a provider: OpenID Connect, and GitHub by its OAuth API (ADR 20).
//!
//! ```text
//! begin  -> address of the provider, and a pending login that the caller keeps
//! finish -> pending login and callback -> code -> token -> checked claims -> identity
//! ```
//!
//! What belongs here: the protocol, and every check of it. What does not: which user of
//! Weir an identity is, where settings and pending logins are stored (`weir-service`), and
//! cookies and pages (`weir-server`).
//!
//! Invariant: an identity is returned only after every check. A refusal has no text of a
//! provider, and every answer has bounds in bytes and time.

mod callback;
mod discovery;
mod fetch;
mod github;
mod id_token;
mod identity;
mod keys;
mod object;
mod pending;
mod provider;
mod refusal;
mod secret;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use openidconnect::core::CoreJsonWebKeySet;
use openidconnect::{PkceCodeChallenge, PkceCodeVerifier};
use serde_json::Value;
use tokio::time::timeout;
use url::Url;
use weir_egress::Egress;

pub use callback::{Callback, CallbackFault};
pub use identity::{Email, Identity};
pub use pending::PendingLogin;
pub use provider::{InvalidSetting, Kind, Provider, Settings};
pub use refusal::{Answer, Endpoint, ProviderError, Refusal};
pub use secret::Secret;

use discovery::{Issuers, Metadata};
use fetch::{ClientProof, Fetch};
use id_token::Expected;
use identity::Claims;
use object::Object;

/// The timeout for one answer of a provider.
const REQUEST: Duration = Duration::from_secs(10);
/// The timeout for all answers that one step needs.
pub(crate) const IN_ALL: Duration = Duration::from_secs(25);
/// The longest access token.
const MAX_ACCESS_TOKEN: usize = 32 * 1024;

/// The present time, which the caller reads.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// The time of day, which times in tokens are compared with.
    pub time: DateTime<Utc>,
    /// The time since some moment, which never goes back: the age of what is cached.
    pub uptime: Duration,
}

/// A login that was begun. `Debug` does not show the address, which has the state.
pub struct Begun {
    /// The address of the provider to send the browser to.
    pub url: Url,
    /// What the caller stores and binds to this browser.
    pub pending: PendingLogin,
}

impl Begun {
    /// Asks the provider to let the user sign in once more, even if the user has a session
    /// there, and to say when that was (SSO-41). GitHub knows no such request.
    #[must_use]
    pub fn asking_again(mut self) -> Self {
        if !self.pending.is_github() {
            self.url.query_pairs_mut().append_pair("prompt", "login").append_pair("max_age", "0");
        }
        self
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("pending", &self.pending).finish_non_exhaustive()
    }
}

/// Signs users in through providers. It keeps what issuers publish; nothing of a login.
pub struct SignOn {
    fetch: Fetch,
    issuers: Issuers,
}

impl SignOn {
    /// Requests go out through `egress`. Its settings decide whether an issuer in an inner
    /// network can be used.
    pub fn new(egress: Egress) -> Self {
        Self { fetch: Fetch(egress.within(REQUEST)), issuers: Issuers::default() }
    }

    /// Begins a login. `redirect_uri` is where the provider sends the browser back to, as
    /// it is registered there.
    ///
    /// # Errors
    /// [`Refusal`], if the provider cannot be used now.
    pub async fn begin(
        &self,
        provider: &Provider,
        redirect_uri: &str,
        now: Now,
    ) -> Result<Begun, Refusal> {
        let endpoint = self.authorization(provider, now);
        let mut url = timeout(IN_ALL, endpoint).await.unwrap_or(Err(Refusal::TooSlow))?;
        let pending = PendingLogin::new(provider, redirect_uri, now.time)?;
        let verifier = PkceCodeVerifier::new(pending.verifier.expose().to_owned());
        let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &provider.client_id)
                .append_pair("redirect_uri", redirect_uri)
                .append_pair("scope", &provider.scopes.join(" "))
                .append_pair("state", pending.state.expose())
                .append_pair("code_challenge", challenge.as_str())
                .append_pair("code_challenge_method", challenge.method().as_str());
            if provider.kind != Kind::GitHub {
                query.append_pair("nonce", pending.nonce.expose());
            }
        }
        Ok(Begun { url, pending })
    }

    async fn authorization(&self, provider: &Provider, now: Now) -> Result<Url, Refusal> {
        if provider.kind == Kind::GitHub {
            return github::authorization(&self.fetch, provider);
        }
        let metadata = self.issuers.metadata(&self.fetch, &provider.issuer, now.uptime).await?;
        Ok(metadata.authorization.clone())
    }

    /// Finishes a login: who signed in.
    ///
    /// `provider` has the settings of [`PendingLogin::provider`]. The caller has removed
    /// the pending login from where it was stored, and found it by the browser, not by
    /// the callback.
    ///
    /// # Errors
    /// [`Refusal`] of the first check that failed.
    pub async fn finish(
        &self,
        provider: &Provider,
        pending: PendingLogin,
        callback: &Callback,
        now: Now,
    ) -> Result<Identity, Refusal> {
        pending.check(provider, callback, now.time)?;
        let claims = async {
            if provider.kind == Kind::GitHub {
                self.github_claims(provider, &pending, callback).await
            } else {
                self.openid_claims(provider, &pending, callback, now).await
            }
        };
        let claims = timeout(IN_ALL, claims).await.unwrap_or(Err(Refusal::TooSlow))?;
        Identity::new(provider, claims)
    }

    async fn github_claims(
        &self,
        provider: &Provider,
        pending: &PendingLogin,
        callback: &Callback,
    ) -> Result<Claims, Refusal> {
        if callback.issuer().is_some_and(|issuer| !github::is_issuer(provider, issuer)) {
            return Err(Refusal::CallbackIssuer);
        }
        let code = code(callback)?;
        let token = github::token(&self.fetch, provider, &form(pending, code)).await?;
        github::claims(&self.fetch, provider, &token).await
    }

    async fn openid_claims(
        &self,
        provider: &Provider,
        pending: &PendingLogin,
        callback: &Callback,
        now: Now,
    ) -> Result<Claims, Refusal> {
        let metadata = self.issuers.metadata(&self.fetch, &provider.issuer, now.uptime).await?;
        match callback.issuer() {
            Some(issuer) if issuer != provider.issuer => return Err(Refusal::CallbackIssuer),
            None if metadata.names_issuer => return Err(Refusal::CallbackIssuerMissing),
            _ => {}
        }
        let code = code(callback)?;
        let (id, secret) = (&provider.client_id, &provider.client_secret);
        let proof = match metadata.has_secret_in_form {
            true => ClientProof::Form { id, secret },
            false => ClientProof::Header { id, secret },
        };
        let answer = self.fetch.token(&metadata.token, proof, &form(pending, code)).await?;
        let token = access_token(&answer)?;
        let missing = Refusal::Member { answer: Answer::Token, member: "id_token" };
        let id_token = answer.get("id_token").and_then(Value::as_str).ok_or(missing)?;
        let expected = Expected {
            issuer: &provider.issuer,
            client_id: &provider.client_id,
            nonce: &pending.nonce,
            access_token: &token,
            begun: pending.begun,
            now: now.time,
        };
        let mut claims = self.verified(id_token, &expected, &metadata, now).await?;
        if claims.email.is_none()
            && let Some(url) = &metadata.userinfo
        {
            self.add_userinfo(&mut claims, url, &token).await?;
        }
        Ok(claims)
    }

    /// Checks an ID token. If its key is unknown or does not fit its signature, the issuer
    /// may have new keys, also under the ids of old ones.
    async fn verified(
        &self,
        id_token: &str,
        expected: &Expected<'_>,
        metadata: &Metadata,
        now: Now,
    ) -> Result<Claims, Refusal> {
        let (fetch, issuer) = (&self.fetch, expected.issuer);
        let keys = self.issuers.keys(fetch, issuer, metadata, now.uptime).await?;
        let verify = |keys: &Arc<CoreJsonWebKeySet>| id_token::verify(id_token, keys, expected);
        match verify(&keys) {
            Err(refusal @ (Refusal::UnknownKey | Refusal::Signature)) => {
                let newer =
                    self.issuers.refreshed_keys(fetch, issuer, metadata, &keys, now.uptime).await?;
                newer.map_or(Err(refusal), |keys| verify(&keys))
            }
            checked => checked,
        }
    }

    /// Adds what the ID token lacks, from the userinfo endpoint.
    async fn add_userinfo(
        &self,
        claims: &mut Claims,
        url: &str,
        token: &Secret,
    ) -> Result<(), Refusal> {
        let answer = self.fetch.object(Answer::Userinfo, url, token).await?;
        let subject = answer.text("sub")?.ok_or(Refusal::ClaimMissing("sub"))?;
        if subject != claims.subject {
            return Err(Refusal::UserinfoSubject);
        }
        claims.email = answer.text("email")?.map(str::to_owned);
        // Of the same answer as the address, and of no other.
        claims.email_verified = answer.flag("email_verified")?;
        claims.hosted_domain = answer.text("hd")?.map(str::to_owned);
        if claims.name.is_none() {
            claims.name = answer.text("name")?.map(str::to_owned);
        }
        Ok(())
    }
}

/// The code of a callback, or the error that the provider sent instead of it.
fn code(callback: &Callback) -> Result<&str, Refusal> {
    if let Some(error) = callback.error() {
        return Err(Refusal::RefusedByProvider(ProviderError::of_code(error)));
    }
    callback.code().ok_or(Refusal::CodeMissing)
}

/// The form that exchanges a code.
fn form<'a>(pending: &'a PendingLogin, code: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", &pending.redirect_uri),
        ("code_verifier", pending.verifier.expose()),
    ]
}

/// The access token of an answer. It becomes part of a header.
pub(crate) fn access_token(answer: &Object) -> Result<Secret, Refusal> {
    let member = |member| Refusal::Member { answer: Answer::Token, member };
    let text = |name| answer.get(name).and_then(Value::as_str);
    let kind = text("token_type").filter(|kind| kind.eq_ignore_ascii_case("bearer"));
    kind.ok_or(member("token_type"))?;
    let token = text("access_token").filter(|token| {
        (1..=MAX_ACCESS_TOKEN).contains(&token.len())
            && token.bytes().all(|byte| byte.is_ascii_graphic())
    });
    token.map(|token| Secret::new(token.to_owned())).ok_or(member("access_token"))
}

#[cfg(test)]
mod corpus;
