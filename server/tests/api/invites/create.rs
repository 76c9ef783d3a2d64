//! POST `…/invites/`.

use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::InviteId;
use weir_model::invites::INVITES_MAX;
use weir_model::organizations::Level;
use weir_store::invites::{self, InviteRow};
use weir_testkit::TestApp;

use super::{id, invite, member, owner, path, token};

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_has_every_field_of_its_type() {
    let app = TestApp::with_owner().await;
    let body = json!({
        "target_email": " Grace@Mail.Example ",
        "first_name": "Grace",
        "message": "Hello!",
        "level": "8",
        // Read-only or unknown: ignored.
        "id": Uuid::nil(),
        "emailing_attempt_made": true,
        "is_expired": true,
        "created_by": null,
        "private_project_access": [1],
    });
    let answer = owner(&app).await.post(&path(&app), &body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let mut made = answer.json();
    assert_eq!(made["created_by"]["uuid"], json!(app.owner().id()));
    assert!(!id(&made).is_empty() && id(&made) != Uuid::nil().to_string());
    assert_eq!(made["created_at"], made["updated_at"]);
    assert_eq!(token(&made).len(), 43, "{made}");
    for field in ["id", "created_by", "created_at", "updated_at", "token"] {
        made[field] = json!("[there]");
    }
    assert_eq!(
        made,
        json!({
            "id": "[there]",
            "target_email": "Grace@mail.example",
            "first_name": "Grace",
            "emailing_attempt_made": false,
            "is_expired": false,
            "level": 8,
            "created_by": "[there]",
            "created_at": "[there]",
            "updated_at": "[there]",
            "message": "Hello!",
            "private_project_access": [],
            "token": "[there]",
        })
    );
    let made = invite(&app, "linus@mail.example").await;
    assert_eq!((&made["first_name"], &made["message"]), (&json!(""), &Value::Null));
    assert_eq!(made["level"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_are_checked_in_their_order() {
    let app = TestApp::with_owner().await;
    let owner = owner(&app).await;
    let email = "a@mail.example";
    for (body, code, detail, attr) in [
        (json!({}), "required", "This field is required.", "target_email"),
        (json!({"target_email": null}), "null", "This field may not be null.", "target_email"),
        (json!({"target_email": " "}), "blank", "This field may not be blank.", "target_email"),
        (json!({"target_email": []}), "invalid_input", "Not a valid string.", "target_email"),
        (
            json!({"target_email": "a@mail.example, b@mail.example"}),
            "invalid_input",
            "Enter a valid email address.",
            "target_email",
        ),
        (
            json!({"target_email": "a@mail.example\r\nBcc: b@mail.example"}),
            "invalid_input",
            "Enter a valid email address.",
            "target_email",
        ),
        (
            json!({"target_email": format!("{}@mail.example", "a".repeat(250))}),
            "max_length",
            "Ensure this field has no more than 254 characters.",
            "target_email",
        ),
        (
            json!({"target_email": email, "first_name": "x".repeat(31), "level": 2}),
            "max_length",
            "Ensure this field has no more than 30 characters.",
            "first_name",
        ),
        (
            json!({"target_email": email, "level": 2}),
            "invalid_choice",
            "\"2\" is not a valid choice.",
            "level",
        ),
        (
            json!({"target_email": email, "message": {}}),
            "invalid_input",
            "Not a valid string.",
            "message",
        ),
        (
            json!({"target_email": email, "send_email": "maybe"}),
            "invalid_input",
            "Must be a valid boolean.",
            "send_email",
        ),
    ] {
        let answer = owner.post(&path(&app), &body).await;
        answer.assert_field_error(400, "validation_error", code, detail, Some(attr));
    }
    let answer = owner.post(&path(&app), &json!([{"target_email": email}])).await;
    let detail = "Invalid data. Expected a dictionary, but got list.";
    answer.assert_field_error(400, "validation_error", "invalid_input", detail, None);
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_not_invited_and_no_level_above_the_inviter() {
    let app = TestApp::with_owner().await;
    let member = member(&app, "grace", Level::Member).await;
    for email in ["ada@mail.example", "ADA@mail.example", "grace@MAIL.example"] {
        let answer = member.post(&path(&app), &json!({"target_email": email})).await;
        let detail = "A user with this email address already belongs to the organization.";
        answer.assert_field_error(400, "validation_error", "invalid_input", detail, None);
    }
    for level in [8, 15] {
        let body = json!({"target_email": "linus@mail.example", "level": level});
        member.post(&path(&app), &body).await.assert_error(
            403,
            "authentication_error",
            "permission_denied",
            "You cannot invite a user with a higher permission level than your own.",
        );
    }
    let body = json!({"target_email": "linus@mail.example", "level": 1});
    assert_eq!(member.post(&path(&app), &body).await.status, 201);
    // A user of another organization can be invited.
    app.outsider("mallory").await;
    invite(&app, "mallory@mail.example").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_invite_of_the_address_ends() {
    let app = TestApp::with_owner().await;
    let first = invite(&app, "grace@mail.example").await;
    let second = invite(&app, "Grace@mail.example").await;
    assert_ne!(first["id"], second["id"]);
    let list = owner(&app).await.get(&path(&app)).await.json();
    assert_eq!((&list["count"], &list["results"][0]["id"]), (&json!(1), &second["id"]));
    let link = |invite: &Value| format!("/api/signup/{}/", token(invite));
    assert_eq!(app.anonymous().get(&link(&first)).await.status, 400);
    assert_eq!(app.anonymous().get(&link(&second)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_and_outsiders() {
    let app = TestApp::with_owner().await;
    let body = json!({"target_email": "grace@mail.example"});
    let reader = app.owner().key(&["organization_member:read"]).await;
    reader.post(&path(&app), &body).await.assert_error(
        403,
        "authentication_error",
        "permission_denied",
        "API key missing required scope 'organization_member:write'",
    );
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    let answer = outsider.post(&path(&app), &body).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    let current = owner(&app).await.post("/api/organizations/@current/invites", &body).await;
    assert_eq!(current.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_invite_more_than_the_maximum_is_refused() {
    let app = TestApp::with_owner().await;
    let made = invite(&app, "grace@mail.example").await;
    let store = app.store();
    let id = InviteId(id(&made).parse().unwrap());
    let row = invites::get(store, app.organization(), id).await.unwrap().unwrap();
    let like = |number: usize| InviteRow {
        id: InviteId(Uuid::new_v4()),
        email_key: format!("{number}@mail.example"),
        links: Vec::new(),
        ..row.clone()
    };
    let rows: Vec<InviteRow> = (1..INVITES_MAX).map(like).collect();
    // Each statement has to end within the time of a statement.
    for rows in rows.chunks(100) {
        let bounds = invites::InviteBounds::of(INVITES_MAX);
        invites::create(store, app.organization(), rows, bounds, &[], &[]).await.unwrap();
    }
    let body = json!({"target_email": "linus@mail.example"});
    let refused = owner(&app).await.post(&path(&app), &body).await;
    let detail = "An organization may have at most 500 invites that are not accepted, expired ones \
                  too. Delete some first.";
    refused.assert_field_error(400, "validation_error", "invalid_input", detail, None);
}
