//! A new user confirms the email address before the first sign-in.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;
use weir_testkit::TestApp;

use super::{DAY, House, NOT_CONFIRMED, PASSWORD, assert_void, cookie};

const REQUEST: &str = "/api/users/request_email_verification/";

#[tokio::test(flavor = "multi_thread")]
async fn a_new_account_opens_once_its_address_is_confirmed() {
    let house = House::open().await;
    let answer = house.sign_up().await;
    let user = answer.json();
    assert_eq!(answer.header("set-cookie"), None);
    let page = format!("/verify_email/{}", user["uuid"].as_str().unwrap());
    assert_eq!((&user["redirect_url"], &user["is_email_verified"]), (&json!(page), &json!(false)));
    let first = house.confirmation("Grace@mail.example", 1).await;
    assert_eq!(user["uuid"], first.user);

    // The right password is not enough, and sends another mail. A wrong one gets an error
    // without details.
    let answer = house.login("grace@mail.example", PASSWORD).await;
    answer.assert_error(400, "validation_error", "not_verified", NOT_CONFIRMED);
    assert_eq!(answer.header("set-cookie"), None);
    let second = house.confirmation("Grace@mail.example", 2).await;
    let answer = house.login("grace@mail.example", "wrong password").await;
    let detail = "Invalid email or password.";
    answer.assert_error(400, "validation_error", "invalid_credentials", detail);

    let answer = house.confirm(&first).await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"success": true, "token": first.token}))
    );
    assert!(answer.header("set-cookie").unwrap().contains("; HttpOnly; SameSite=Lax"));
    assert!(house.is_open(&cookie(&answer)).await);
    assert_eq!(house.told().await, [("is_email_verified".to_owned(), json!(false), json!(true))]);
    // A link works once, and the link of the other mail does not work afterwards.
    for link in [&first, &second] {
        assert_void(&house.confirm(link).await);
    }
    house.session("grace@mail.example", PASSWORD).await;
    let members = format!("/api/organizations/{}/members/?search=grace", house.app.organization());
    let owner = house.app.owner().key(&["organization_member:read"]).await;
    let list = owner.get(&members).await.json();
    assert_eq!(list["results"][0]["user"]["is_email_verified"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_do_not_work_are_answered_alike() {
    let house = House::open().await;
    house.sign_up().await;
    let link = house.confirmation("Grace@mail.example", 1).await;
    let nobody = Uuid::from_u128(7).to_string();
    let ada = house.app.owner().id().to_string();
    for (user, token) in [
        (link.user.as_str(), "x"),
        (&link.user, &link.token[1..]),
        (&nobody, &link.token),
        (&ada, &link.token),
        ("junk", &link.token),
        (&link.user, &"t".repeat(128)),
    ] {
        let body = json!({"uuid": user, "token": token});
        assert_void(&house.post("/api/users/verify_email/", &body).await);
    }
    // A link for confirming cannot set a password.
    let path = format!("/api/reset/{}/", link.user);
    assert_void(&house.nobody().get(&format!("{path}?token={}", link.token)).await);
    let body = json!({"token": link.token, "password": super::OTHER_PASSWORD});
    assert_void(&house.post(&path, &body).await);
    for (body, attr) in [
        (json!({}), "uuid"),
        (json!({"uuid": link.user}), "token"),
        (json!({"uuid": link.user, "token": " "}), "token"),
    ] {
        let answer = house.post("/api/users/verify_email/", &body).await;
        assert_eq!((answer.status, answer.error().4.as_deref()), (400, Some(attr)), "{body}");
    }
    house.clock.advance(DAY);
    assert_void(&house.confirm(&link).await);
    house.clock.advance(-1);
    assert_eq!(house.confirm(&link).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_who_use_one_link_at_once_one_wins() {
    let house = House::open().await;
    house.sign_up().await;
    let link = house.confirmation("Grace@mail.example", 1).await;
    let answers = futures::future::join_all((0..4).map(|_| house.confirm(&link))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400, 400, 400]);
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_for_the_mail_again_tells_nothing_of_accounts() {
    let house = House::open().await;
    let grace = house.sign_up().await.json()["uuid"].as_str().unwrap().to_owned();
    house.confirmation("Grace@mail.example", 1).await;
    // Ada's address is not confirmed either: she may get the mail.
    let linus = house.app.stranger("linus").await.id().to_string();
    let (nobody, upper) = (Uuid::from_u128(7).to_string(), grace.to_uppercase());
    for id in [grace.as_str(), &linus, &nobody, "junk", &upper] {
        let answer = house.post(REQUEST, &json!({"uuid": id})).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"success": true})), "{id}");
    }
    let link = house.confirmation("Grace@mail.example", 3).await;
    assert_eq!(house.confirm(&link).await.status, 200);
    // A confirmed user gets no mail, and the answer is the same.
    let before = house.sink.received().len();
    let answer = house.post(REQUEST, &json!({"uuid": grace})).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"success": true})));
    house.settled().await;
    assert_eq!(house.sink.received().len(), before);

    // Six mails, then none for a day, whether the user exists or not.
    for id in [linus.as_str(), &nobody] {
        for _ in 0..5 {
            assert_eq!(house.post(REQUEST, &json!({"uuid": id})).await.status, 200, "{id}");
        }
        let answer = house.post(REQUEST, &json!({"uuid": id})).await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("86400")), "{id}");
    }
    house.clock.advance(DAY);
    assert_eq!(house.post(REQUEST, &json!({"uuid": nobody})).await.status, 200);
    house.post(REQUEST, &json!({})).await.assert_field_error(
        400,
        "validation_error",
        "required",
        "This field is required.",
        Some("uuid"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_is_tried_again_has_a_link_that_works_for_a_day_from_then_on() {
    let house = House::open().await;
    house.sink.refuse(1);
    let owner = house.app.owner().key(&["organization:write"]).await;
    let organization = format!("/api/organizations/{}/", house.app.organization());
    let quiet = json!({"is_member_join_email_enabled": false});
    assert_eq!(owner.patch(&organization, &quiet).await.status, 200);
    house.sign_up().await;
    house.sink.refused(1).await;
    house.clock.advance(60 * 60);
    let waiting = async {
        while house.sink.received().is_empty() {
            house.clock.advance(5);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
    let link = house.confirmation("Grace@mail.example", 1).await;
    house.clock.advance(DAY - 60);
    assert_eq!(house.confirm(&link).await.status, 200);
    assert!(house.app.app().services.mails.undelivered().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_that_were_there_before_keep_what_they_are() {
    let house = House::open().await;
    let ada = house.app.owner().key(&["user:read"]).await;
    assert_eq!(ada.get("/api/users/@me/").await.json()["is_email_verified"], false);
    house.session("ada@mail.example", PASSWORD).await;
    house.settled().await;
    assert!(house.sink.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_nothing_needs_to_be_confirmed() {
    let app = TestApp::with_owner().await;
    let user = app.owner().id().to_string();
    let answer = app.anonymous().post(REQUEST, &json!({"uuid": user})).await;
    let detail = "This instance sends no mail. Ask whoever runs it.";
    answer.assert_error(400, "validation_error", "email_not_available", detail);
    // The sign-up opens a session there: see `invites/accept.rs`.
}

#[tokio::test(flavor = "multi_thread")]
async fn other_sites_sign_nobody_in_with_a_link() {
    let house = House::open().await;
    house.sign_up().await;
    let link = house.confirmation("Grace@mail.example", 1).await;
    let body = json!({"uuid": link.user, "token": link.token});
    let call = house.nobody().call(http::Method::POST, "/api/users/verify_email/").json(&body);
    let answer = call.header("sec-fetch-site", "cross-site").send().await;
    assert_eq!((answer.status, answer.header("set-cookie")), (403, None));
    assert_eq!(house.confirm(&link).await.status, 200);
}
