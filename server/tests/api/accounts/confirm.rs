//! A new user confirms the email address before the first sign-in.

use serde_json::json;
use uuid::Uuid;
use weir_testkit::TestApp;

use super::{DAY, Instance, NOT_CONFIRMED, PASSWORD, assert_void, cookie};

const REQUEST: &str = "/api/users/request_email_verification/";

#[tokio::test(flavor = "multi_thread")]
async fn a_new_user_can_sign_in_after_confirming_the_address() {
    let instance = Instance::open().await;
    let answer = instance.sign_up().await;
    let user = answer.json();
    assert_eq!(answer.header("set-cookie"), None);
    let page = format!("/verify_email/{}", user["uuid"].as_str().unwrap());
    assert_eq!((&user["redirect_url"], &user["is_email_verified"]), (&json!(page), &json!(false)));
    let first = instance.confirmation("Grace@mail.example", 1).await;
    assert_eq!(user["uuid"], first.user);

    // The right password is not enough, and sends another mail. A wrong one gets an error
    // without details.
    let answer = instance.login("grace@mail.example", PASSWORD).await;
    answer.assert_error(400, "validation_error", "not_verified", NOT_CONFIRMED);
    assert_eq!(answer.header("set-cookie"), None);
    let second = instance.confirmation("Grace@mail.example", 2).await;
    let answer = instance.login("grace@mail.example", "wrong password").await;
    let detail = "Invalid email or password.";
    answer.assert_error(400, "validation_error", "invalid_credentials", detail);

    let answer = instance.confirm(&first).await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"success": true, "token": first.token}))
    );
    let set = answer.header("set-cookie").unwrap();
    assert!(set.contains("; SameSite=Lax") && set.contains("; HttpOnly"), "{set}");
    assert!(instance.is_open(&cookie(&answer)).await);
    assert_eq!(
        instance.audit_entries().await,
        [("is_email_verified".to_owned(), json!(false), json!(true))]
    );
    // A link works once, and the link of the other mail does not work afterwards.
    for link in [&first, &second] {
        assert_void(&instance.confirm(link).await);
    }
    instance.session("grace@mail.example", PASSWORD).await;
    let members =
        format!("/api/organizations/{}/members/?search=grace", instance.app.organization());
    let owner = instance.app.owner().key(&["organization_member:read"]).await;
    let list = owner.get(&members).await.json();
    assert_eq!(list["results"][0]["user"]["is_email_verified"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_do_not_work_are_answered_alike() {
    let instance = Instance::open().await;
    instance.sign_up().await;
    let link = instance.confirmation("Grace@mail.example", 1).await;
    let nobody = Uuid::from_u128(7).to_string();
    let ada = instance.app.owner().id().to_string();
    for (user, token) in [
        (link.user.as_str(), "x"),
        (&link.user, &link.token[1..]),
        (&nobody, &link.token),
        (&ada, &link.token),
        ("junk", &link.token),
        (&link.user, &"t".repeat(128)),
    ] {
        let body = json!({"uuid": user, "token": token});
        assert_void(&instance.post("/api/users/verify_email/", &body).await);
    }
    // A link for confirming cannot set a password.
    let path = format!("/api/reset/{}/", link.user);
    assert_void(&instance.anonymous().get(&format!("{path}?token={}", link.token)).await);
    let body = json!({"token": link.token, "password": super::OTHER_PASSWORD});
    assert_void(&instance.post(&path, &body).await);
    for (body, attr) in [
        (json!({}), "uuid"),
        (json!({"uuid": link.user}), "token"),
        (json!({"uuid": link.user, "token": " "}), "token"),
    ] {
        let answer = instance.post("/api/users/verify_email/", &body).await;
        assert_eq!((answer.status, answer.error().4.as_deref()), (400, Some(attr)), "{body}");
    }
    instance.clock.advance(DAY);
    assert_void(&instance.confirm(&link).await);
    instance.clock.advance(-1);
    assert_eq!(instance.confirm(&link).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_works_for_one_of_several_concurrent_uses() {
    let instance = Instance::open().await;
    instance.sign_up().await;
    let link = instance.confirmation("Grace@mail.example", 1).await;
    let answers = futures::future::join_all((0..4).map(|_| instance.confirm(&link))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400, 400, 400]);
}

#[tokio::test(flavor = "multi_thread")]
async fn resending_the_mail_does_not_reveal_users() {
    let instance = Instance::open().await;
    let grace = instance.sign_up().await.json()["uuid"].as_str().unwrap().to_owned();
    instance.confirmation("Grace@mail.example", 1).await;
    // Ada's address is not confirmed either: she may get the mail.
    let linus = instance.app.outsider("linus").await.id().to_string();
    let (nobody, upper) = (Uuid::from_u128(7).to_string(), grace.to_uppercase());
    for id in [grace.as_str(), &linus, &nobody, "junk", &upper] {
        let answer = instance.post(REQUEST, &json!({"uuid": id})).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"success": true})), "{id}");
    }
    let link = instance.confirmation("Grace@mail.example", 3).await;
    assert_eq!(instance.confirm(&link).await.status, 200);
    // A confirmed user gets no mail, and the answer is the same.
    let before = instance.sink.received().len();
    let answer = instance.post(REQUEST, &json!({"uuid": grace})).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"success": true})));
    instance.settled().await;
    assert_eq!(instance.sink.received().len(), before);

    // Six mails, then none for a day, whether the user exists or not.
    for id in [linus.as_str(), &nobody] {
        for _ in 0..5 {
            assert_eq!(instance.post(REQUEST, &json!({"uuid": id})).await.status, 200, "{id}");
        }
        let answer = instance.post(REQUEST, &json!({"uuid": id})).await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("86400")), "{id}");
    }
    instance.clock.advance(DAY);
    assert_eq!(instance.post(REQUEST, &json!({"uuid": nobody})).await.status, 200);
    instance.post(REQUEST, &json!({})).await.assert_field_error(
        400,
        "validation_error",
        "required",
        "This field is required.",
        Some("uuid"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_is_tried_again_has_a_link_that_works_for_a_day_from_then_on() {
    let instance = Instance::open().await;
    instance.sink.refuse(1);
    let owner = instance.app.owner().key(&["organization:write"]).await;
    let organization = format!("/api/organizations/{}/", instance.app.organization());
    let quiet = json!({"is_member_join_email_enabled": false});
    assert_eq!(owner.patch(&organization, &quiet).await.status, 200);
    instance.sign_up().await;
    instance.sink.refused(1).await;
    instance.app.until_mail_tried(1).await;
    instance.clock.advance(60 * 60);
    let link = instance.confirmation("Grace@mail.example", 1).await;
    instance.clock.advance(DAY - 60);
    assert_eq!(instance.confirm(&link).await.status, 200);
    assert!(instance.app.app().services.mails.undelivered().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_users_are_unchanged() {
    let instance = Instance::open().await;
    let ada = instance.app.owner().key(&["user:read"]).await;
    assert_eq!(ada.get("/api/users/@me/").await.json()["is_email_verified"], false);
    instance.session("ada@mail.example", PASSWORD).await;
    instance.settled().await;
    assert!(instance.sink.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_nothing_needs_to_be_confirmed() {
    let app = TestApp::with_owner().await;
    let user = app.owner().id().to_string();
    let answer = app.anonymous().post(REQUEST, &json!({"uuid": user})).await;
    let detail = "This instance sends no mail. Ask the operator.";
    answer.assert_error(400, "validation_error", "email_not_available", detail);
    // The sign-up opens a session there: see `invites/accept.rs`.
}

#[tokio::test(flavor = "multi_thread")]
async fn links_opened_by_other_sites_do_not_sign_in() {
    let instance = Instance::open().await;
    instance.sign_up().await;
    let link = instance.confirmation("Grace@mail.example", 1).await;
    let body = json!({"uuid": link.user, "token": link.token});
    let call =
        instance.anonymous().call(http::Method::POST, "/api/users/verify_email/").json(&body);
    let answer = call.header("sec-fetch-site", "cross-site").send().await;
    assert_eq!((answer.status, answer.header("set-cookie")), (403, None));
    assert_eq!(instance.confirm(&link).await.status, 200);
}
