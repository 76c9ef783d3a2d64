//! Setting a new password with a link from a mail.

use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::domains::SsoEnforcement;
use weir_testkit::{Answer, TestApp};

use super::{DAY, House, Link, NOT_CONFIRMED, OTHER_PASSWORD, PASSWORD, assert_void, cookie};
use crate::domains::{enforce, verified};
use crate::web::function;

const REQUEST: &str = "/api/reset/";
const ADA: &str = "ada@mail.example";

impl House {
    async fn ask(&self, email: &str) -> Answer {
        self.post(REQUEST, &json!({"email": email})).await
    }

    /// The link in the user's mail with this number.
    async fn reset_link(&self, to: &str, count: usize) -> Link {
        self.link(to, "Set a new password on Weir", count).await
    }

    async fn check(&self, link: &Link) -> Answer {
        let path = format!("/api/reset/{}/?token={}", link.user, link.token);
        self.nobody().get(&path).await
    }

    async fn set(&self, link: &Link, password: &str) -> Answer {
        let body = json!({"token": link.token, "password": password});
        self.post(&format!("/api/reset/{}/", link.user), &body).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_sets_a_new_password_once_and_ends_all_sessions() {
    let house = House::open().await;
    let sessions = [house.session(ADA, PASSWORD).await, house.session(ADA, PASSWORD).await];
    let key = house.app.owner().key(&["organization:read"]).await;
    let answer = house.ask(" ADA@Mail.Example ").await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    // The mail goes to the stored address, not to the entered one.
    let link = house.reset_link(ADA, 1).await;
    assert_eq!(link.user, house.app.owner().id().to_string());
    for _ in 0..2 {
        let answer = house.check(&link).await;
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
        let answer = house.set(&link, password).await;
        let (status, _, found, _, attr) = answer.error();
        let expected = (400, code, Some("password"));
        assert_eq!((status, found.as_str(), attr.as_deref()), expected, "{password}");
    }
    assert!(house.is_open(&sessions[0]).await);

    let answer = house.set(&link, OTHER_PASSWORD).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"success": true, "email": ADA})));
    assert_eq!(answer.header("set-cookie"), None);
    for session in &sessions {
        assert!(!house.is_open(session).await);
    }
    assert_eq!(key.get("/api/organizations/").await.status, 200, "keys go on working");
    let answer = house.login(ADA, PASSWORD).await;
    let detail = "Invalid email or password.";
    answer.assert_error(400, "validation_error", "invalid_credentials", detail);
    house.session(ADA, OTHER_PASSWORD).await;
    let secret = json!("(secret)");
    assert_eq!(
        house.told().await,
        [
            ("password".to_owned(), secret.clone(), secret),
            ("is_email_verified".to_owned(), json!(false), json!(true)),
        ]
    );
    let text = house.mail(ADA, "Your password on Weir was changed").await;
    assert!(text.contains("Forgot your password?") && !text.contains("?token="), "{text}");
    assert_void(&house.check(&link).await);
    assert_void(&house.set(&link, PASSWORD).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_account_gets_the_same_answer_and_no_mail() {
    let house = House::open().await;
    for email in ["nobody@mail.example", "nobody@elsewhere.example"] {
        let answer = house.ask(email).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0));
    }
    house.settled().await;
    assert!(house.sink.received().is_empty());
    for (body, code, detail) in [
        (json!({}), "required", "This field is required."),
        (json!({"email": "ada"}), "invalid_input", "Enter a valid email address."),
    ] {
        let answer = house.post(REQUEST, &body).await;
        answer.assert_field_error(400, "validation_error", code, detail, Some("email"));
    }
    // Six mails, then none for a day, whether the user exists or not, in any spelling.
    for email in [ADA, "nobody@mail.example"] {
        let free = if email == ADA { 6 } else { 5 };
        for number in 0..free {
            let spelling = if number % 2 == 0 { email.to_uppercase() } else { email.to_owned() };
            assert_eq!(house.ask(&spelling).await.status, 204, "{spelling}");
        }
        let answer = house.ask(email).await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("86400")), "{email}");
    }
    house.clock.advance(DAY - 1);
    assert_eq!(house.ask(ADA).await.status, 429);
    house.clock.advance(1);
    for _ in 0..6 {
        assert_eq!(house.ask(ADA).await.status, 204);
    }
    assert_eq!(house.ask(ADA).await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_do_not_work_are_answered_alike() {
    let house = House::open().await;
    house.ask(ADA).await;
    let link = house.reset_link(ADA, 1).await;
    let linus = house.app.stranger("linus").await.id().to_string();
    let of = |user: &str, token: &str| Link { user: user.to_owned(), token: token.to_owned() };
    for void in [
        of(&link.user, "x"),
        of(&link.user, &link.token[1..]),
        of(&linus, &link.token),
        of(&Uuid::from_u128(7).to_string(), &link.token),
        of("junk", &link.token),
    ] {
        assert_void(&house.check(&void).await);
        assert_void(&house.set(&void, OTHER_PASSWORD).await);
    }
    assert_void(&house.nobody().get(&format!("/api/reset/{}/", link.user)).await);
    // A link for a new password does not confirm an address.
    assert_void(&house.confirm(&link).await);
    house.clock.advance(DAY);
    assert_void(&house.check(&link).await);
    assert_void(&house.set(&link, OTHER_PASSWORD).await);
    house.clock.advance(-1);
    assert_eq!(house.set(&link, OTHER_PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_link_of_several_ends_the_others() {
    let house = House::open().await;
    house.ask(ADA).await;
    let first = house.reset_link(ADA, 1).await;
    house.ask(ADA).await;
    let second = house.reset_link(ADA, 2).await;
    let answers = futures::future::join_all([
        house.set(&first, OTHER_PASSWORD),
        house.set(&second, OTHER_PASSWORD),
        house.set(&first, OTHER_PASSWORD),
        house.set(&second, OTHER_PASSWORD),
    ]);
    let mut statuses: Vec<u16> = answers.await.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400, 400, 400]);
    assert_void(&house.check(&first).await);
    assert_void(&house.check(&second).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_the_mail_has_the_address() {
    let house = House::open().await;
    house.sign_up().await;
    let grace = "Grace@mail.example";
    let answer = house.login(grace, PASSWORD).await;
    answer.assert_error(400, "validation_error", "not_verified", NOT_CONFIRMED);
    house.ask(grace).await;
    let link = house.reset_link(grace, 1).await;
    assert_eq!(house.set(&link, OTHER_PASSWORD).await.status, 200);
    house.session(grace, OTHER_PASSWORD).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_with_a_provider_of_its_own_sets_no_password() {
    let house = House::open().await;
    house.ask(ADA).await;
    let link = house.reset_link(ADA, 1).await;
    verified(&house.app, "mail.example").await;
    enforce(&house.app, "mail.example", SsoEnforcement::Saml).await;
    let detail = "Password reset is disabled because SSO login is enforced for this domain.";
    for answer in [
        house.ask(ADA).await,
        house.ask("nobody@mail.example").await,
        house.set(&link, OTHER_PASSWORD).await,
    ] {
        answer.assert_error(400, "validation_error", "sso_enforced", detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_there_is_no_link() {
    let app = TestApp::with_owner().await;
    let detail = "This instance sends no mail. Ask whoever runs it.";
    for email in [ADA, "nobody@mail.example"] {
        let answer = app.anonymous().post(REQUEST, &json!({"email": email})).await;
        answer.assert_error(400, "validation_error", "email_not_available", detail);
    }
}

/// The person with access to the mailbox owns the address.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_sets_a_password_by_mail_waits_for_no_stranger() {
    let house = House::open().await;
    house.ask(ADA).await;
    let link = house.reset_link(ADA, 1).await;
    for _ in 0..6 {
        assert_eq!(house.login(ADA, "wrong").await.status, 400);
    }
    assert_eq!(house.login(ADA, PASSWORD).await.status, 429);
    let form = format!("id={}&token={}&password={OTHER_PASSWORD}", link.user, link.token);
    let set = function(&house.app, "reset_password", &form).send().await;
    let browser = cookie(&set);
    assert!(browser.starts_with("__Host-browser="), "{browser}");
    assert_eq!(house.login(ADA, OTHER_PASSWORD).await.status, 429);
    let body = json!({"email": ADA, "password": OTHER_PASSWORD});
    let login = house.nobody().call(Method::POST, "/api/login/").header("cookie", &browser);
    assert_eq!(login.json(&body).send().await.status, 200);
}
