//! Changing the email address of a user in the web app. `users.rs` tests that a key
//! cannot do so.

use serde_json::{Value, json};
use weir_model::domains::SsoEnforcement;
use weir_testkit::{Answer, TestApp};

use super::{House, OTHER_PASSWORD, PASSWORD, assert_void, cookie, told};
use crate::domains::{enforce, verified};

const ADA: &str = "ada@mail.example";
const NEW: &str = "ada@new.example";

impl House {
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
    let house = House::open().await;
    let session = house.session(ADA, PASSWORD).await;
    let answer = house.change(&session, "Ada@New.Example").await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let pending = "Ada@new.example";
    assert_eq!(house.address().await, json!([ADA, pending, false]));
    assert_eq!(house.told().await, [("pending_email".to_owned(), Value::Null, json!(pending))]);
    let link = house.confirmation(pending, 1).await;
    assert_eq!(house.login(NEW, PASSWORD).await.status, 400);
    house.session(ADA, PASSWORD).await;

    let answer = house.confirm(&link).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert!(house.is_open(&cookie(&answer)).await && house.is_open(&session).await);
    assert_eq!(house.address().await, json!([pending, null, true]));
    assert_eq!(
        house.told().await,
        [
            ("email".to_owned(), json!(ADA), json!(pending)),
            ("pending_email".to_owned(), json!(pending), Value::Null),
            ("is_email_verified".to_owned(), json!(false), json!(true)),
        ]
    );
    house.session(NEW, PASSWORD).await;
    assert_eq!(house.login(ADA, PASSWORD).await.status, 400);
    assert_void(&house.confirm(&link).await);
    // The old address gets a mail without the new address.
    let text = house.mail(ADA, "Your address on Weir was changed").await;
    assert!(text.contains("tell whoever runs this instance"), "{text}");
    assert!(!text.contains("new.example"), "{text}");
    // The old address is free, also for other users.
    let app = &house.app;
    app.stranger_with_address("linus", ADA).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_somebody_else_gets_no_mail_and_the_answer_does_not_tell() {
    let house = House::open().await;
    house.app.stranger_with_address("linus", NEW).await;
    let session = house.session(ADA, PASSWORD).await;
    assert_eq!(house.change(&session, NEW).await.status, 200);
    assert_eq!(house.address().await, json!([ADA, NEW, false]));
    house.settled().await;
    assert!(house.sink.received().is_empty());

    // A link from before another user got the address does not work either.
    let free = "ada@free.example";
    assert_eq!(house.change(&session, free).await.status, 200);
    let link = house.confirmation(free, 1).await;
    house.app.stranger_with_address("grace", free).await;
    assert_void(&house.confirm(&link).await);
    assert_eq!(house.address().await, json!([ADA, free, false]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_taken_back_by_the_present_address_and_by_a_new_password() {
    let house = House::open().await;
    let session = house.session(ADA, PASSWORD).await;
    house.change(&session, NEW).await;
    let link = house.confirmation(NEW, 1).await;
    assert_eq!(house.change(&session, ADA).await.status, 200);
    assert_eq!(house.address().await, json!([ADA, null, false]));
    assert_void(&house.confirm(&link).await);

    // The sender of the request may not be the owner of the user record.
    house.change(&session, NEW).await;
    let link = house.confirmation(NEW, 2).await;
    house.post("/api/reset/", &json!({"email": ADA})).await;
    let reset = house.link(ADA, "Set a new password on Weir", 1).await;
    let body = json!({"token": reset.token, "password": OTHER_PASSWORD});
    let answer = house.post(&format!("/api/reset/{}/", reset.user), &body).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(house.address().await, json!([ADA, null, true]));
    assert_void(&house.confirm(&link).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_ends_the_links_to_the_old_address() {
    let house = House::open().await;
    let session = house.session(ADA, PASSWORD).await;
    house.post("/api/reset/", &json!({"email": ADA})).await;
    let reset = house.link(ADA, "Set a new password on Weir", 1).await;
    house.change(&session, NEW).await;
    let link = house.confirmation(NEW, 1).await;
    assert_eq!(house.confirm(&link).await.status, 200);
    let path = format!("/api/reset/{}/?token={}", reset.user, reset.token);
    assert_void(&house.nobody().get(&path).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_signed_in_just_now_changes_the_address() {
    let house = House::open().await;
    let session = house.session(ADA, PASSWORD).await;
    house.clock.advance(15 * 60 + 1);
    let answer = house.change(&session, NEW).await;
    assert_eq!(answer.status, 403);
    assert!(String::from_utf8_lossy(&answer.body).contains("SignInAgain"), "{:?}", answer.body);
    assert_eq!(house.change("session=x", NEW).await.status, 401);
    assert_eq!(house.address().await, json!([ADA, null, false]));
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_a_domain_with_a_provider_stay() {
    let house = House::open().await;
    let session = house.session(ADA, PASSWORD).await;
    verified(&house.app, "mail.example").await;
    enforce(&house.app, "mail.example", SsoEnforcement::Saml).await;
    let answer = house.change(&session, NEW).await;
    let why = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(answer.status == 400 && why.contains("sso_enforced"), "{why}");
    enforce(&house.app, "mail.example", SsoEnforcement::Off).await;
    assert_eq!(house.change(&session, NEW).await.status, 200);

    // An earlier request to change the address does not work either.
    let link = house.confirmation(NEW, 1).await;
    enforce(&house.app, "mail.example", SsoEnforcement::Saml).await;
    let answer = house.confirm(&link).await;
    let (status, _, code, ..) = answer.error();
    assert_eq!((status, code.as_str()), (400, "sso_enforced"), "{:?}", answer.body);
    assert_eq!(house.address().await, json!([ADA, NEW, false]));
    enforce(&house.app, "mail.example", SsoEnforcement::Off).await;
    assert_eq!(house.confirm(&link).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_use_up_the_mails_of_the_owner() {
    let house = House::open().await;
    let session = house.session(ADA, PASSWORD).await;
    let body = json!({"uuid": house.app.owner().id().to_string()});
    let mut statuses = Vec::new();
    for _ in 0..7 {
        let answer = house.post("/api/users/request_email_verification/", &body).await;
        statuses.push(answer.status);
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 429]);
    for _ in 0..6 {
        assert_eq!(house.change(&session, NEW).await.status, 200);
    }
    let answer = house.change(&session, NEW).await;
    assert_eq!(answer.status, 429, "{:?}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_a_new_address_counts_at_once() {
    let app = TestApp::with_owner().await;
    app.stranger_with_address("linus", NEW).await;
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
    let text = |answer: &Answer| String::from_utf8_lossy(&answer.body).into_owned();
    let taken = change("ADA%40new.example").await;
    let why = text(&taken);
    assert!(taken.status == 400 && why.contains("unique") && why.contains("already"), "{why}");
    let bad = change("ada").await;
    assert!(bad.status == 400 && text(&bad).contains("valid email"), "{}", text(&bad));
    // The user as it was stored while mail was configured.
    let row = weir_store::users::get(app.store(), app.owner().id()).await.unwrap();
    let mut row = row.unwrap();
    (row.pending_email, row.is_email_verified) = (Some(NEW.to_owned()), true);
    weir_store::users::create(app.store(), &row, ADA).await.unwrap();
    assert_eq!(change("ada%40third.example").await.status, 200);
    assert_eq!(
        told(&app).await,
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
