//! `/api/organizations/{organization_id}/invites/` and `/api/signup/{id}/` (API-33).

mod accept;
mod bulk;
mod create;
mod delete;
mod list;
mod mail;

use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_testkit::{Caller, TestApp};

fn path(app: &TestApp) -> String {
    format!("/api/organizations/{}/invites/", app.organization())
}

/// A key of the owner with the right to invite.
async fn owner(app: &TestApp) -> Caller {
    app.owner().key(&["organization_member:write"]).await
}

/// A key of a new member of this level with the right to invite.
async fn member(app: &TestApp, name: &str, level: Level) -> Caller {
    app.member(name, level).await.key(&["organization_member:write"]).await
}

/// A new invite of the owner.
async fn invite(app: &TestApp, email: &str) -> Value {
    let answer = owner(app).await.post(&path(app), &json!({"target_email": email})).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

/// The token in the link of an invite. Only the answer that created the invite contains
/// it.
fn token(invite: &Value) -> &str {
    invite["token"].as_str().unwrap()
}

fn id(invite: &Value) -> &str {
    invite["id"].as_str().unwrap()
}
