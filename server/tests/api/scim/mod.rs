//! `/scim/v2/{domain}/`: SCIM 2.0 as an identity provider uses it (SSO-50 and later).

mod administration;
mod deactivation;
mod dialects;
mod groups;
mod lists;
mod refusals;
mod users;

use http::Method;
use serde_json::{Value, json};
use weir_store::users::UserRow;
use weir_testkit::{Answer, Caller, TestApp};

use super::domains::verified;

const USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";
const PATCH: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";
const PASSWORD: &str = "plum-otter-violin-93";

/// The identity provider of the domain `mail.example` of the owner's organization.
struct Provider {
    app: TestApp,
    caller: Caller,
    domain: String,
    /// A key of the owner that lists members.
    reader: Caller,
}

impl Provider {
    async fn new() -> Self {
        Self::of(TestApp::with_owner().await).await
    }

    async fn of(app: TestApp) -> Self {
        let domain = verified(&app, "mail.example").await;
        let domain = domain["id"].as_str().unwrap().to_owned();
        let token = new_token(&app, &domain).await;
        let caller = app.anonymous().with_key(&token);
        let reader = app.owner().key(&["organization_member:read"]).await;
        Self { app, caller, domain, reader }
    }

    /// A path below the domain.
    fn path(&self, rest: &str) -> String {
        format!("/scim/v2/{}{rest}", self.domain)
    }

    async fn get(&self, rest: &str) -> Answer {
        self.caller.get(&self.path(rest)).await
    }

    async fn post(&self, rest: &str, body: &Value) -> Answer {
        self.send(Method::POST, rest, body).await
    }

    async fn put(&self, rest: &str, body: &Value) -> Answer {
        self.send(Method::PUT, rest, body).await
    }

    /// Sends operations.
    async fn patch(&self, rest: &str, operations: Value) -> Answer {
        let body = json!({"schemas": [PATCH], "Operations": operations});
        self.send(Method::PATCH, rest, &body).await
    }

    async fn delete(&self, rest: &str) -> Answer {
        self.caller.delete(&self.path(rest)).await
    }

    async fn send(&self, method: Method, rest: &str, body: &Value) -> Answer {
        let call = self.caller.call(method, &self.path(rest));
        call.header("content-type", "application/scim+json").body(body.to_string()).send().await
    }

    /// Adds a user, and returns its id.
    async fn user(&self, name: &str) -> String {
        let user = json!({"schemas": [USER], "userName": format!("{name}@mail.example")});
        id_of(&self.post("/Users", &user).await)
    }

    /// Adds a group, and returns its id.
    async fn group(&self, name: &str, members: &[&str]) -> String {
        let members: Vec<Value> = members.iter().map(|id| json!({"value": id})).collect();
        let group = json!({"schemas": [GROUP], "displayName": name, "members": members});
        id_of(&self.post("/Groups", &group).await)
    }

    /// The members of the organization: address and level.
    async fn members(&self) -> Vec<(String, i64)> {
        let listed = self.reader.get("/api/organizations/@current/members/").await.json();
        let member = |member: &Value| {
            let email = member["user"]["email"].as_str().unwrap().to_owned();
            (email, member["level"].as_i64().unwrap())
        };
        let mut members: Vec<_> =
            listed["results"].as_array().unwrap().iter().map(member).collect();
        members.sort();
        members
    }

    /// The level of a member; `None`: there is no such member.
    async fn level(&self, name: &str) -> Option<i64> {
        let email = format!("{name}@mail.example");
        self.members().await.into_iter().find(|(of, _)| *of == email).map(|(_, level)| level)
    }
}

/// Makes a token for a domain of the owner's organization.
async fn new_token(app: &TestApp, domain: &str) -> String {
    let owner = app.owner().key(&["organization_member:write"]).await;
    let path = format!("/api/organizations/@current/domains/{domain}/scim/token/");
    let answer = owner.post(&path, &json!({})).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()["value"].as_str().unwrap().to_owned()
}

/// Makes the user one who has proved the address.
async fn prove(app: &TestApp, user: UserRow) {
    let row = UserRow { is_email_verified: true, ..user };
    weir_store::users::create(app.store(), &row, &row.email).await.unwrap();
}

#[track_caller]
fn id_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Fails unless the answer is an error of the protocol.
#[track_caller]
fn assert_refused(answer: &Answer, status: u16, kind: Option<&str>) {
    assert_eq!(answer.status, status, "{:?}", answer.body);
    assert_eq!(answer.header("content-type"), Some("application/scim+json"));
    let body = answer.json();
    assert_eq!(body["schemas"], json!([ERROR]), "{body}");
    assert_eq!(body["status"], status.to_string(), "{body}");
    assert_eq!(body["scimType"].as_str(), kind, "{body}");
    assert!(!body["detail"].as_str().unwrap().is_empty(), "{body}");
}
