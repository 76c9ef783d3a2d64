//! Logins at npm's `oidc-provider`, which shares no code with this crate.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use url::Url;
use weir_egress::{Method, header};
use weir_oidc::{Callback, Email, Identity, Now, Refusal, SignOn};
use weir_testservers::OidcProvider;

use crate::issuer::{EGRESS, REDIRECT_URI, provider};

#[expect(clippy::disallowed_methods, reason = "the issuer reads the same clock")]
fn now() -> Now {
    let time: DateTime<Utc> = Utc::now();
    Now { time, uptime: Duration::ZERO }
}

/// A browser without a screen: follows redirects with cookies up to the callback, and
/// returns its query.
async fn browse(start: &Url) -> String {
    let mut cookies = BTreeMap::new();
    let mut url = start.clone();
    for _ in 0..10 {
        if url.as_str().starts_with(REDIRECT_URI) {
            return url.query().unwrap().to_owned();
        }
        let sent: Vec<String> =
            cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = EGRESS.request(Method::GET, url.as_str()).unwrap();
        let response = request.header(header::COOKIE, sent.join("; ")).send().await.unwrap();
        for cookie in response.headers().get_all(header::SET_COOKIE) {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            cookies.insert(name.to_owned(), value.to_owned());
        }
        let location = response.headers().get(header::LOCATION);
        let location = location.unwrap_or_else(|| panic!("{url} leads on: {response:?}"));
        url = url.join(location.to_str().unwrap()).unwrap();
    }
    panic!("{start} leads to no callback")
}

#[tokio::test]
async fn a_user_signs_in_at_an_issuer_of_others() {
    for (algorithm, options) in
        [("RS256", &[][..]), ("ES256", &["--in-token"]), ("EdDSA", &["--login", "grace"])]
    {
        let server = OidcProvider::start(REDIRECT_URI, algorithm, options).await;
        let provider = provider(&server.url());
        let sign_on = SignOn::new(EGRESS.clone());
        let begun = sign_on.begin(&provider, REDIRECT_URI, now()).await.unwrap();
        let query = browse(&begun.url).await;
        // It names itself, as RFC 9207 asks for.
        assert!(query.contains("iss=http"), "{query}");
        let callback = Callback::read(&query).unwrap();
        let identity = sign_on.finish(&provider, begun.pending, &callback, now()).await;
        let login = if options.contains(&"grace") { "grace" } else { "ada" };
        let address = format!("{login}@corp.example");
        // Names are at the userinfo endpoint, which is asked if the token has no address.
        let is_in_token = options.contains(&"--in-token");
        let expected = Identity {
            provider: "keycloak".to_owned(),
            issuer: server.url(),
            subject: login.to_owned(),
            email: Some(Email { address, verified: true }),
            name: Some(format!("User {login}")),
            // Some issuers state it without being asked.
            signed_in_at: identity.as_ref().ok().and_then(|identity| identity.signed_in_at),
        };
        assert_eq!(identity, Ok(expected), "{algorithm}, in the token: {is_in_token}");
    }
}

#[tokio::test]
async fn a_code_is_worth_nothing_in_another_login() {
    let server = OidcProvider::start(REDIRECT_URI, "RS256", &[]).await;
    let provider = provider(&server.url());
    let sign_on = SignOn::new(EGRESS.clone());
    let victim = sign_on.begin(&provider, REDIRECT_URI, now()).await.unwrap();
    let attacker = sign_on.begin(&provider, REDIRECT_URI, now()).await.unwrap();
    // The code of the attacker is put into the login of the victim.
    let stolen = browse(&attacker.url).await;
    let callback = Callback::read(&stolen).unwrap();
    let outcome = sign_on.finish(&provider, victim.pending, &callback, now()).await;
    assert_eq!(outcome, Err(Refusal::State));
    // With the right state too: the issuer compares the proof of the code.
    let victim = sign_on.begin(&provider, REDIRECT_URI, now()).await.unwrap();
    let state = crate::issuer::parameter(&victim.url, "state");
    let replaced = stolen.replace(callback.state().unwrap(), &state);
    let callback = Callback::read(&replaced).unwrap();
    let outcome = sign_on.finish(&provider, victim.pending, &callback, now()).await;
    assert_eq!(outcome, Err(Refusal::NoToken(weir_oidc::ProviderError::InvalidCode)));
}

#[tokio::test]
async fn a_code_works_once() {
    let server = OidcProvider::start(REDIRECT_URI, "RS256", &[]).await;
    let provider = provider(&server.url());
    let sign_on = SignOn::new(EGRESS.clone());
    let begun = sign_on.begin(&provider, REDIRECT_URI, now()).await.unwrap();
    let stored = begun.pending.to_stored();
    let callback = Callback::read(&browse(&begun.url).await).unwrap();
    let outcome = sign_on.finish(&provider, begun.pending, &callback, now()).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    let again = weir_oidc::PendingLogin::from_stored(stored.expose()).unwrap();
    let outcome = sign_on.finish(&provider, again, &callback, now()).await;
    assert_eq!(outcome, Err(Refusal::NoToken(weir_oidc::ProviderError::InvalidCode)));
}
