//! Signing in with GitHub, which issues no ID tokens: its OAuth API (SSO-8).
//!
//! What belongs here: the requests to GitHub, and from its answers to claims. What does
//! not: the login around them (`lib`).

use serde_json::Value;
use url::Url;

use crate::fetch::{ClientProof, Fetch};
use crate::identity::Claims;
use crate::provider::Provider;
use crate::refusal::{Answer, Endpoint, Refusal};
use crate::secret::Secret;

/// The page where the user agrees.
pub(crate) fn authorization(fetch: &Fetch, provider: &Provider) -> Result<Url, Refusal> {
    fetch.judge(Endpoint::Authorization, &provider.issuer)?;
    let url = format!("{}/login/oauth/authorize", base(&provider.issuer));
    Url::parse(&url).map_err(|_| Refusal::EndpointUrl(Endpoint::Authorization))
}

/// Whether a callback may name this issuer: GitHub's metadata name it with a path.
pub(crate) fn is_issuer(provider: &Provider, issuer: &str) -> bool {
    issuer == provider.issuer || issuer == format!("{}/login/oauth", base(&provider.issuer))
}

/// Exchanges a code for an access token.
pub(crate) async fn token(
    fetch: &Fetch,
    provider: &Provider,
    form: &[(&str, &str)],
) -> Result<Secret, Refusal> {
    let url = format!("{}/login/oauth/access_token", base(&provider.issuer));
    let proof = ClientProof::Form { id: &provider.client_id, secret: &provider.client_secret };
    crate::access_token(&fetch.token(&url, proof, form).await?)
}

/// The user that an access token belongs to, with the primary address if it is verified.
pub(crate) async fn claims(
    fetch: &Fetch,
    provider: &Provider,
    token: &Secret,
) -> Result<Claims, Refusal> {
    let api = base(&provider.api);
    let answer = Answer::GitHubUser;
    let user = fetch.object(answer, &format!("{api}/user"), token).await?;
    // The login can be renamed and be taken by another user; the number stays.
    let id = user.get("id").and_then(Value::as_u64).filter(|id| *id > 0);
    let id = id.ok_or(Refusal::Member { answer, member: "id" })?;
    let name = user.get("name").and_then(Value::as_str);
    let login = user.get("login").and_then(Value::as_str);
    let url = format!("{api}/user/emails?per_page=100");
    let addresses = fetch.list(Answer::GitHubAddresses, &url, token).await?;
    let email = addresses.iter().find_map(primary);
    Ok(Claims {
        subject: id.to_string(),
        email_verified: email.map(|_| true),
        email: email.map(str::to_owned),
        name: name.or(login).map(str::to_owned),
        hosted_domain: None,
        signed_in_at: None,
    })
}

/// The address of an entry, if it is the primary one and verified. Both say so as a
/// boolean.
fn primary(entry: &Value) -> Option<&str> {
    let is_true = |name: &str| entry.get(name).and_then(Value::as_bool) == Some(true);
    if !is_true("primary") || !is_true("verified") {
        return None;
    }
    entry.get("email").and_then(Value::as_str)
}

fn base(url: &str) -> &str {
    url.trim_end_matches('/')
}
