//! Changing the email address of a user in the web app. `users.rs` tests that a key
//! cannot do so.

use serde_json::{Value, json};
use weir_model::domains::SsoEnforcement;
use weir_service::identity::Peer;
use weir_testkit::{Answer, TestApp};

use super::{Instance, OTHER_PASSWORD, PASSWORD, assert_void, audit_entries, cookie};
use crate::domains::{enforce, verified};

const ADA: &str = "ada@mail.example";
const NEW: &str = "ada@new.example";

impl Instance {
    async fn change(&self, cookie: &str, email: &str) -> Answer {
        let body =
            form_urlencoded::Serializer::new(String::new()).append_pair("email", email).finish();
        self.function("change_address", &body).header("cookie", cookie).send().await
    }

    /// The address, the address that waits for confirmation, and whether the address is
    /// confirmed.
    async fn address(&self) -> Value {
        let me = self.app.owner().key(&["user:read"]).await.get("/api/users/@me/").await.json();
        json!([me["email"], me["pending_email"], me["is_email_verified"]])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_address_counts_once_it_is_confirmed() {
    let instance = Instance::open().await;
    let session = instance.session(ADA, PASSWORD).await;
    let answer = instance.change(&session, "Ada@New.Example").await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let pending = "Ada@new.example";
    assert_eq!(instance.address().await, json!([ADA, pending, false]));
    assert_eq!(
        instance.audit_entries().await,
        [("pending_email".to_owned(), Value::Null, json!(pending))]
    );
    let link = instance.confirmation(pending, 1).await;
    assert_eq!(instance.login(NEW, PASSWORD).await.status, 400);
    instance.session(ADA, PASSWORD).await;

    let answer = instance.confirm(&link).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert!(instance.is_open(&cookie(&answer)).await && instance.is_open(&session).await);
    assert_eq!(instance.address().await, json!([pending, null, true]));
    assert_eq!(
        instance.audit_entries().await,
        [
            ("email".to_owned(), json!(ADA), json!(pending)),
            ("pending_email".to_owned(), json!(pending), Value::Null),
            ("is_email_verified".to_owned(), json!(false), json!(true)),
        ]
    );
    instance.session(NEW, PASSWORD).await;
    assert_eq!(instance.login(ADA, PASSWORD).await.status, 400);
    assert_void(&instance.confirm(&link).await);
    // The old address gets a mail without the new address.
    let text = instance.mail(ADA, "Your address on Weir was changed").await;
    assert!(text.contains("tell the operator of this instance"), "{text}");
    assert!(!text.contains("new.example"), "{text}");
    // The old address is free, also for other users.
    let app = &instance.app;
    app.outsider_with_address("linus", ADA).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_another_user_gets_no_mail_and_the_answer_does_not_reveal_it() {
    let instance = Instance::open().await;
    instance.app.outsider_with_address("linus", NEW).await;
    let session = instance.session(ADA, PASSWORD).await;
    assert_eq!(instance.change(&session, NEW).await.status, 200);
    assert_eq!(instance.address().await, json!([ADA, NEW, false]));
    instance.settled().await;
    assert!(instance.sink.received().is_empty());

    // A link from before another user got the address does not work either.
    let free = "ada@free.example";
    assert_eq!(instance.change(&session, free).await.status, 200);
    let link = instance.confirmation(free, 1).await;
    instance.app.outsider_with_address("grace", free).await;
    assert_void(&instance.confirm(&link).await);
    assert_eq!(instance.address().await, json!([ADA, free, false]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_taken_back_by_the_present_address_and_by_a_new_password() {
    let instance = Instance::open().await;
    let session = instance.session(ADA, PASSWORD).await;
    instance.change(&session, NEW).await;
    let link = instance.confirmation(NEW, 1).await;
    assert_eq!(instance.change(&session, ADA).await.status, 200);
    assert_eq!(instance.address().await, json!([ADA, null, false]));
    assert_void(&instance.confirm(&link).await);

    // The sender of the request may not be the owner of the user record.
    instance.change(&session, NEW).await;
    let link = instance.confirmation(NEW, 2).await;
    instance.post("/api/reset/", &json!({"email": ADA})).await;
    let reset = instance.link(ADA, "Set a new password on Weir", 1).await;
    let body = json!({"token": reset.token, "password": OTHER_PASSWORD});
    let answer = instance.post(&format!("/api/reset/{}/", reset.user), &body).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(instance.address().await, json!([ADA, null, true]));
    assert_void(&instance.confirm(&link).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_ends_the_links_to_the_old_address() {
    let instance = Instance::open().await;
    let session = instance.session(ADA, PASSWORD).await;
    instance.post("/api/reset/", &json!({"email": ADA})).await;
    let reset = instance.link(ADA, "Set a new password on Weir", 1).await;
    instance.change(&session, NEW).await;
    let link = instance.confirmation(NEW, 1).await;
    assert_eq!(instance.confirm(&link).await.status, 200);
    let path = format!("/api/reset/{}/?token={}", reset.user, reset.token);
    assert_void(&instance.anonymous().get(&path).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_signed_in_just_now_changes_the_address() {
    let instance = Instance::open().await;
    let session = instance.session(ADA, PASSWORD).await;
    instance.clock.advance(15 * 60 + 1);
    let answer = instance.change(&session, NEW).await;
    assert_eq!(answer.status, 403);
    assert!(String::from_utf8_lossy(&answer.body).contains("SignInAgain"), "{:?}", answer.body);
    assert_eq!(instance.change("session=x", NEW).await.status, 401);
    assert_eq!(instance.address().await, json!([ADA, null, false]));
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_a_domain_with_a_provider_stay() {
    let instance = Instance::open().await;
    let with_password = instance.session(ADA, PASSWORD).await;
    // The session of a link of the operator counts nevertheless.
    let identity = &instance.app.app().services.identity;
    let link = identity.sign_in_link(ADA).await.unwrap().unwrap();
    let (user, token) = link.strip_prefix("/login/link/").unwrap().split_once("?token=").unwrap();
    let opened = identity.use_sign_in_link(user, token, &Peer::default(), "test").await.unwrap();
    let (name, _) = with_password.split_once('=').unwrap();
    let session = format!("{name}={}", opened.token);
    verified(&instance.app, "mail.example").await;
    enforce(&instance.app, "mail.example", SsoEnforcement::Saml).await;
    assert_eq!(instance.change(&with_password, NEW).await.status, 401);
    let answer = instance.change(&session, NEW).await;
    let why = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(answer.status == 400 && why.contains("sso_enforced"), "{why}");
    enforce(&instance.app, "mail.example", SsoEnforcement::Off).await;
    assert_eq!(instance.change(&session, NEW).await.status, 200);

    // An earlier request to change the address does not work either.
    let link = instance.confirmation(NEW, 1).await;
    enforce(&instance.app, "mail.example", SsoEnforcement::Saml).await;
    let answer = instance.confirm(&link).await;
    let (status, _, code, ..) = answer.error();
    assert_eq!((status, code.as_str()), (400, "sso_enforced"), "{:?}", answer.body);
    assert_eq!(instance.address().await, json!([ADA, NEW, false]));
    enforce(&instance.app, "mail.example", SsoEnforcement::Off).await;
    assert_eq!(instance.confirm(&link).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_senders_do_not_use_up_the_mails_of_the_owner() {
    let instance = Instance::open().await;
    let session = instance.session(ADA, PASSWORD).await;
    let body = json!({"uuid": instance.app.owner().id().to_string()});
    let mut statuses = Vec::new();
    for _ in 0..7 {
        let answer = instance.post("/api/users/request_email_verification/", &body).await;
        statuses.push(answer.status);
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 429]);
    for _ in 0..6 {
        assert_eq!(instance.change(&session, NEW).await.status, 200);
    }
    let answer = instance.change(&session, NEW).await;
    assert_eq!(answer.status, 429, "{:?}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_a_new_address_takes_effect_immediately() {
    let app = TestApp::with_owner().await;
    app.outsider_with_address("linus", NEW).await;
    let post = async |name: &str, body: &str, cookie: &str| {
        let call = app.anonymous().call(http::Method::POST, &format!("/_fn/{name}"));
        call.header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .header("cookie", cookie)
            .body(body.to_owned())
            .send()
            .await
    };
    let login = format!("email=ada%40mail.example&password={PASSWORD}&next=%2F");
    let session = cookie(&post("sign_in", &login, "").await);
    let change =
        async |email: &str| post("change_address", &format!("email={email}"), &session).await;
    let taken = change("ADA%40new.example").await;
    let why = taken.text();
    assert!(taken.status == 400 && why.contains("unique") && why.contains("already"), "{why}");
    let bad = change("ada").await;
    assert!(bad.status == 400 && bad.text().contains("valid email"), "{}", bad.text());
    // The user as it was stored while mail was configured.
    let row = weir_store::users::get(app.store(), app.owner().id()).await.unwrap();
    let mut row = row.unwrap();
    (row.pending_email, row.is_email_verified) = (Some(NEW.to_owned()), true);
    weir_store::users::create(app.store(), &row, ADA).await.unwrap();
    assert_eq!(change("ada%40third.example").await.status, 200);
    assert_eq!(
        audit_entries(&app).await,
        [
            ("email".to_owned(), json!(ADA), json!("ada@third.example")),
            ("pending_email".to_owned(), json!(NEW), Value::Null),
            ("is_email_verified".to_owned(), json!(true), json!(false)),
        ]
    );
    let me = app.owner().key(&["user:read"]).await.get("/api/users/@me/").await.json();
    assert_eq!(
        (&me["email"], &me["pending_email"], &me["is_email_verified"]),
        (&json!("ada@third.example"), &Value::Null, &json!(false))
    );
    let login = json!({"email": "ada@third.example", "password": PASSWORD});
    assert_eq!(app.anonymous().post("/api/login/", &login).await.status, 200);
    let login = json!({"email": ADA, "password": PASSWORD});
    assert_eq!(app.anonymous().post("/api/login/", &login).await.status, 400);
}
