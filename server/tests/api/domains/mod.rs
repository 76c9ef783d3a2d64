//! `/api/organizations/{organization_id}/domains/` (API-37, API-38).

mod create;
mod delete;
mod get;
mod list;
mod replace;
mod sso;
mod update;
mod verify;

use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_testkit::{Answer, Caller, DnsAnswer, TestApp};

const REQUIRED: &str = "This attribute cannot be updated until the domain is verified.";

fn path(app: &TestApp) -> String {
    format!("/api/organizations/{}/domains/", app.organization())
}

pub(crate) fn one(app: &TestApp, domain: &Value) -> String {
    format!("{}{}/", path(app), domain["id"].as_str().unwrap())
}

/// A key of the owner that may change domains.
pub(crate) async fn owner(app: &TestApp) -> Caller {
    app.owner().key(&["organization:write"]).await
}

/// A key of a new member of this level that may change domains.
async fn member(app: &TestApp, name: &str, level: Level) -> Caller {
    app.member(name, level).await.key(&["organization:write"]).await
}

/// A key of a user with another organization.
pub(crate) async fn outsider(app: &TestApp) -> Caller {
    let caller = app.outsider("mallory").await.key(&["*"]).await;
    let made = caller.post("/api/organizations/", &json!({"name": "Coffee"})).await;
    assert_eq!(made.status, 201);
    caller
}

/// Fails unless a key without the write scope, and a member, are refused.
async fn assert_guarded(app: &TestApp, call: impl AsyncFn(&Caller) -> Answer) {
    let reader = app.owner().key(&["organization:read"]).await;
    let lacking = "API key missing required scope 'organization:write'";
    let member = member(app, "grace", Level::Member).await;
    let insufficient = "Your organization access level is insufficient.";
    for (caller, detail) in [(&reader, lacking), (&member, insufficient)] {
        let answer = call(caller).await;
        answer.assert_error(403, "authentication_error", "permission_denied", detail);
    }
}

/// A domain that the owner claims.
async fn claim(app: &TestApp, name: &str) -> Value {
    claim_with(&owner(app).await, app, name).await
}

/// The same with an existing key, because a user can have at most ten.
async fn claim_with(caller: &Caller, app: &TestApp, name: &str) -> Value {
    let answer = caller.post(&path(app), &json!({"domain": name})).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

/// The name of the record that proves a domain.
fn record(domain: &Value) -> String {
    format!("_posthog-challenge.{}", domain["domain"].as_str().unwrap())
}

fn challenge(domain: &Value) -> &str {
    domain["verification_challenge"].as_str().unwrap()
}

async fn verify(app: &TestApp, domain: &Value) -> Answer {
    verify_with(&owner(app).await, app, domain).await
}

async fn verify_with(caller: &Caller, app: &TestApp, domain: &Value) -> Answer {
    caller.post(&format!("{}verify/", one(app, domain)), &json!({})).await
}

/// A domain that the owner has verified.
pub(crate) async fn verified(app: &TestApp, name: &str) -> Value {
    let domain = claim(app, name).await;
    app.dns().set(&record(&domain), DnsAnswer::txt(challenge(&domain)));
    let answer = verify(app, &domain).await;
    assert_eq!((answer.status, &answer.json()["is_verified"]), (200, &json!(true)));
    answer.json()
}

/// Makes the settings of a domain count for every user, as those do that the staff of the
/// instance saves. Those of a key count for members alone. `path`: the domain in the API.
pub(crate) async fn trust_settings(app: &TestApp, path: &str) {
    use weir_store::domains::DomainRow;
    let trusted = |row: &DomainRow| {
        let row = DomainRow { provider_rank: Some(100), rules_rank: Some(100), ..row.clone() };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let id = path.trim_end_matches('/').rsplit('/').next().unwrap().parse().unwrap();
    let updated = weir_store::update::update(app.store(), id, (), trusted).await.unwrap();
    assert!(updated.stored().is_some());
}

/// Stores an enforcement, and SAML settings so that it is in force.
pub(crate) async fn enforce(app: &TestApp, name: &str, sso: weir_model::domains::SsoEnforcement) {
    use weir_store::domains::{DomainRow, ordered, rows};
    let ids = ordered(app.store(), app.organization()).await.unwrap();
    let rows = rows(app.store(), app.organization(), &ids).await.unwrap();
    let domain = rows.into_iter().find(|row| row.domain == name).unwrap();
    let enforced = |row: &DomainRow| {
        let saml = Some("https://idp.example".to_owned());
        let row = DomainRow {
            sso_enforcement: sso,
            saml_entity_id: saml.clone(),
            saml_acs_url: saml.clone(),
            saml_x509_cert: saml,
            provider_rank: Some(100),
            rules_rank: Some(100),
            ..row.clone()
        };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let updated = weir_store::update::update(app.store(), domain.id, (), enforced).await.unwrap();
    assert!(updated.stored().is_some());
}
