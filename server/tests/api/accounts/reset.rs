//! Setting a new password with a link from a mail.

use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::domains::SsoEnforcement;
use weir_testkit::{Answer, TestApp};

use super::{DAY, Instance, Link, NOT_CONFIRMED, OTHER_PASSWORD, PASSWORD, assert_void, cookie};
use crate::domains::{enforce, verified};
use crate::web::function;

const REQUEST: &str = "/api/reset/";
const ADA: &str = "ada@mail.example";

impl Instance {
    async fn ask(&self, email: &str) -> Answer {
        self.post(REQUEST, &json!({"email": email})).await
    }

    /// The link in the user's mail with this number.
    async fn reset_link(&self, to: &str, count: usize) -> Link {
        self.link(to, "Set a new password on Weir", count).await
    }

    async fn check(&self, link: &Link) -> Answer {
        let path = format!("/api/reset/{}/?token={}", link.user, link.token);
        self.anonymous().get(&path).await
    }

    async fn set(&self, link: &Link, password: &str) -> Answer {
        let body = json!({"token": link.token, "password": password});
        self.post(&format!("/api/reset/{}/", link.user), &body).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_sets_a_new_password_once_and_ends_all_sessions() {
    let instance = Instance::open().await;
    let sessions = [instance.session(ADA, PASSWORD).await, instance.session(ADA, PASSWORD).await];
    let key = instance.app.owner().key(&["organization:read"]).await;
    let answer = instance.ask(" ADA@Mail.Example ").await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    // The mail goes to the stored address, not to the entered one.
    let link = instance.reset_link(ADA, 1).await;
    assert_eq!(link.user, instance.app.owner().id().to_string());
    for _ in 0..2 {
        let answer = instance.check(&link).await;
        assert_eq!((answer.status, answer.json()), (200, Value::Null), "looking uses nothing up");
    }
    // The rules of the sign-up. A refused password does not use up the link.
    for (password, code) in [
        ("short", "password_too_short"),
        ("aaaaaaaaaaaaa", "password_too_weak"),
        ("much acme tea, much 7", "password_too_similar"),
        ("analytical ada engine 7", "password_too_similar"),
        ("", "blank"),
    ] {
        let answer = instance.set(&link, password).await;
        let (status, _, found, _, attr) = answer.error();
        let expected = (400, code, Some("password"));
        assert_eq!((status, found.as_str(), attr.as_deref()), expected, "{password}");
    }
    assert!(instance.is_open(&sessions[0]).await);

    let answer = instance.set(&link, OTHER_PASSWORD).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"success": true, "email": ADA})));
    assert_eq!(answer.header("set-cookie"), None);
    for session in &sessions {
        assert!(!instance.is_open(session).await);
    }
    assert_eq!(key.get("/api/organizations/").await.status, 200, "keys continue to work");
    let answer = instance.login(ADA, PASSWORD).await;
    let detail = "Invalid email or password.";
    answer.assert_error(400, "validation_error", "invalid_credentials", detail);
    instance.session(ADA, OTHER_PASSWORD).await;
    let secret = json!("(secret)");
    assert_eq!(
        instance.audit_entries().await,
        [
            ("password".to_owned(), secret.clone(), secret),
            ("is_email_verified".to_owned(), json!(false), json!(true)),
        ]
    );
    let text = instance.mail(ADA, "Your password on Weir was changed").await;
    assert!(text.contains("Forgot your password?") && !text.contains("?token="), "{text}");
    assert_void(&instance.check(&link).await);
    assert_void(&instance.set(&link, PASSWORD).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_address_gets_the_same_answer_and_no_mail() {
    let instance = Instance::open().await;
    for email in ["nobody@mail.example", "nobody@elsewhere.example"] {
        let answer = instance.ask(email).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0));
    }
    instance.settled().await;
    assert!(instance.sink.received().is_empty());
    for (body, code, detail) in [
        (json!({}), "required", "This field is required."),
        (json!({"email": "ada"}), "invalid_input", "Enter a valid email address."),
    ] {
        let answer = instance.post(REQUEST, &body).await;
        answer.assert_field_error(400, "validation_error", code, detail, Some("email"));
    }
    // Six mails, then none for a day, whether the user exists or not, in any spelling.
    for email in [ADA, "nobody@mail.example"] {
        let free = if email == ADA { 6 } else { 5 };
        for number in 0..free {
            let spelling = if number % 2 == 0 { email.to_uppercase() } else { email.to_owned() };
            assert_eq!(instance.ask(&spelling).await.status, 204, "{spelling}");
        }
        let answer = instance.ask(email).await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("86400")), "{email}");
    }
    instance.clock.advance(DAY - 1);
    assert_eq!(instance.ask(ADA).await.status, 429);
    instance.clock.advance(1);
    for _ in 0..6 {
        assert_eq!(instance.ask(ADA).await.status, 204);
    }
    assert_eq!(instance.ask(ADA).await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_do_not_work_are_answered_alike() {
    let instance = Instance::open().await;
    instance.ask(ADA).await;
    let link = instance.reset_link(ADA, 1).await;
    let linus = instance.app.outsider("linus").await.id().to_string();
    let of = |user: &str, token: &str| Link { user: user.to_owned(), token: token.to_owned() };
    for void in [
        of(&link.user, "x"),
        of(&link.user, &link.token[1..]),
        of(&linus, &link.token),
        of(&Uuid::from_u128(7).to_string(), &link.token),
        of("junk", &link.token),
    ] {
        assert_void(&instance.check(&void).await);
        assert_void(&instance.set(&void, OTHER_PASSWORD).await);
    }
    assert_void(&instance.anonymous().get(&format!("/api/reset/{}/", link.user)).await);
    // A link for a new password does not confirm an address.
    assert_void(&instance.confirm(&link).await);
    instance.clock.advance(DAY);
    assert_void(&instance.check(&link).await);
    assert_void(&instance.set(&link, OTHER_PASSWORD).await);
    instance.clock.advance(-1);
    assert_eq!(instance.set(&link, OTHER_PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_link_of_several_ends_the_others() {
    let instance = Instance::open().await;
    instance.ask(ADA).await;
    let first = instance.reset_link(ADA, 1).await;
    instance.ask(ADA).await;
    let second = instance.reset_link(ADA, 2).await;
    let answers = futures::future::join_all([
        instance.set(&first, OTHER_PASSWORD),
        instance.set(&second, OTHER_PASSWORD),
        instance.set(&first, OTHER_PASSWORD),
        instance.set(&second, OTHER_PASSWORD),
    ]);
    let mut statuses: Vec<u16> = answers.await.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400, 400, 400]);
    assert_void(&instance.check(&first).await);
    assert_void(&instance.check(&second).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_the_mail_confirms_the_address() {
    let instance = Instance::open().await;
    instance.sign_up().await;
    let grace = "Grace@mail.example";
    let answer = instance.login(grace, PASSWORD).await;
    answer.assert_error(400, "validation_error", "not_verified", NOT_CONFIRMED);
    instance.ask(grace).await;
    let link = instance.reset_link(grace, 1).await;
    assert_eq!(instance.set(&link, OTHER_PASSWORD).await.status, 200);
    instance.session(grace, OTHER_PASSWORD).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_with_a_provider_of_its_own_sets_no_password() {
    let instance = Instance::open().await;
    instance.ask(ADA).await;
    let link = instance.reset_link(ADA, 1).await;
    verified(&instance.app, "mail.example").await;
    enforce(&instance.app, "mail.example", SsoEnforcement::Saml).await;
    let detail = "Password reset is disabled because SSO login is enforced for this domain.";
    for answer in [
        instance.ask(ADA).await,
        instance.ask("nobody@mail.example").await,
        instance.set(&link, OTHER_PASSWORD).await,
    ] {
        answer.assert_error(400, "validation_error", "sso_enforced", detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_there_is_no_link() {
    let app = TestApp::with_owner().await;
    let detail = "This instance sends no mail. Ask the operator.";
    for email in [ADA, "nobody@mail.example"] {
        let answer = app.anonymous().post(REQUEST, &json!({"email": email})).await;
        answer.assert_error(400, "validation_error", "email_not_available", detail);
    }
}

/// The person with access to the mailbox owns the address.
#[tokio::test(flavor = "multi_thread")]
async fn resetting_a_password_by_mail_is_not_delayed_by_unknown_senders() {
    let instance = Instance::open().await;
    instance.ask(ADA).await;
    let link = instance.reset_link(ADA, 1).await;
    for _ in 0..6 {
        assert_eq!(instance.login(ADA, "wrong").await.status, 400);
    }
    assert_eq!(instance.login(ADA, PASSWORD).await.status, 429);
    let form = format!("id={}&token={}&password={OTHER_PASSWORD}", link.user, link.token);
    let set = function(&instance.app, "reset_password", &form).send().await;
    let browser = cookie(&set);
    assert!(browser.starts_with("__Host-browser="), "{browser}");
    assert_eq!(instance.login(ADA, OTHER_PASSWORD).await.status, 429);
    let body = json!({"email": ADA, "password": OTHER_PASSWORD});
    let login = instance.anonymous().call(Method::POST, "/api/login/").header("cookie", &browser);
    assert_eq!(login.json(&body).send().await.status, 200);
}
