//! Mails about invites and new members, as a mail server receives them.

use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::Clock;
use weir_testkit::{Caller, MailSink, Received, TestApp, until};

use super::{id, invite, owner, path, token};
use crate::web::{page, session};

const ORIGIN: &str = "https://weir.example";

async fn with_mail(url: &str) -> TestApp {
    let url = url.to_owned();
    let app = TestApp::start(
        move |config| {
            config.public_url = ORIGIN.parse().unwrap();
            config.smtp_url = url.parse().unwrap();
        },
        |_| {},
    );
    app.await.set_up().await
}

/// The same, with a stopped clock.
async fn with_mail_at(url: &str, clock: Clock) -> TestApp {
    let url = url.to_owned();
    let app = TestApp::with_settings_at(clock, move |config| {
        config.public_url = ORIGIN.parse().unwrap();
        config.smtp_url = url.parse().unwrap();
    });
    app.await.set_up().await
}

async fn attempt_made(app: &TestApp) -> bool {
    shown(app, &owner(app).await).await
}

async fn shown(app: &TestApp, caller: &Caller) -> bool {
    let list = caller.get(&path(app)).await.json();
    list["results"][0]["emailing_attempt_made"].as_bool().unwrap()
}

/// Waits until the task has stored the outcome of an accepted mail.
async fn until_attempt_made(app: &TestApp) {
    let caller = owner(app).await;
    until(async || shown(app, &caller).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_arrives() {
    let sink = MailSink::start().await;
    let app = with_mail(&sink.url()).await;
    let body =
        json!({"target_email": "grace@mail.example", "first_name": "Grace", "message": "Welcome!"});
    let answer = owner(&app).await.post(&path(&app), &body).await;
    assert_eq!((answer.status, &answer.json()["emailing_attempt_made"]), (201, &json!(false)));
    let made = answer.json();

    let mails = sink.wait_for(1).await;
    let mail = &mails[0];
    assert_eq!(mail.to, ["grace@mail.example"]);
    assert_eq!(mail.from, "weir@weir.example");
    assert_eq!(mail.header("To"), Some("grace@mail.example"));
    assert!(mail.header("Reply-To").unwrap().contains("ada@mail.example"));
    assert_eq!(mail.header("Subject"), Some("Ada invited you to join Acme Tea on Weir"));
    // The mail has a different link. The link of the answer works too.
    assert!(!mail.text.contains(token(&made)), "{}", mail.text);
    let begins = format!("{ORIGIN}/signup/");
    assert_eq!(mail.text.matches(&begins).count(), 3, "{}", mail.text);
    let (_, rest) = mail.text.split_once(&begins).unwrap();
    let mailed = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap();
    for token in [mailed, token(&made)] {
        let answer = app.anonymous().get(&format!("/api/signup/{token}/")).await;
        assert_eq!(answer.status, 200, "{token} {:?}", answer.body);
    }
    assert!(mail.text.contains("> Welcome!") && mail.text.contains(" UTC"), "{}", mail.text);
    until_attempt_made(&app).await;
    assert_eq!(app.app().services.mails.waiting().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_says_where_the_message_is_read() {
    let sink = MailSink::start().await;
    for (app, expected) in [
        (with_mail(&sink.url()).await, "It is shown in the mail and on the page"),
        (TestApp::with_owner().await, "It is shown on the page that the link opens."),
    ] {
        let cookie = session(&app).await;
        let form = format!("/organizations/{}/invites?people=a%40mail.example", app.organization());
        let answer = page(&app, &form, &cookie).await;
        let text = answer.text();
        assert_eq!((answer.status, text.contains(expected)), (200, true), "{expected}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_per_mail_and_none_where_it_was_declined() {
    let sink = MailSink::start().await;
    let app = with_mail(&sink.url()).await;
    let list = json!([
        {"target_email": "a@mail.example"},
        {"target_email": "b@mail.example", "send_email": false},
        {"target_email": "c@mail.example"},
        {"target_email": "A@mail.example"},
    ]);
    let answer = owner(&app).await.post(&format!("{}bulk/", path(&app)), &list).await;
    assert_eq!(answer.status, 200);
    let bad = json!([{"target_email": "d@mail.example"}, {"target_email": "bad"}]);
    assert_eq!(owner(&app).await.post(&format!("{}bulk/", path(&app)), &bad).await.status, 400);
    invite(&app, "last@mail.example").await;
    let mails = sink.wait_for(3).await;
    let mut to: Vec<&str> = mails.iter().map(|mail| mail.to[0].as_str()).collect();
    to.sort_unstable();
    assert_eq!(to, ["A@mail.example", "c@mail.example", "last@mail.example"]);
    assert!(mails.iter().all(|mail| mail.to.len() == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_was_refused_is_tried_again() {
    let sink = MailSink::start().await;
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = with_mail_at(&sink.url(), clock.clone()).await;
    sink.refuse(2);
    invite(&app, "grace@mail.example").await;
    sink.refused(1).await;
    until_attempt_made(&app).await;
    clock.advance(5);
    sink.refused(2).await;
    assert!(sink.received().is_empty());
    app.until_mail_tried(2).await;
    // The next back-off is longer.
    clock.advance(30);
    assert_eq!(sink.wait_for(1).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undeliverable_mail_is_abandoned_and_recorded() {
    let sink = MailSink::start().await;
    let app = with_mail(&sink.url()).await;
    sink.refuse_for_good(1);
    invite(&app, "nobody@mail.example").await;
    sink.refused(1).await;
    let mails = &app.app().services.mails;
    let given_up = until(async || mails.undelivered().await.unwrap().pop()).await;
    assert_eq!(given_up.mail.to, "nobody@mail.example");
    assert!(given_up.reason.contains("550"), "{}", given_up.reason);
    assert_eq!(mails.waiting().await.unwrap(), 0);
    assert!(attempt_made(&app).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_whose_invite_is_gone_is_not_sent() {
    let sink = MailSink::start().await;
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = with_mail_at(&sink.url(), clock.clone()).await;
    sink.refuse(1);
    let made = invite(&app, "grace@mail.example").await;
    sink.refused(1).await;
    until_attempt_made(&app).await;
    let answer = owner(&app).await.delete(&format!("{}{}/", path(&app), id(&made))).await;
    assert_eq!(answer.status, 204);
    clock.advance(60);
    invite(&app, "linus@mail.example").await;
    let mails = sink.wait_for(1).await;
    assert_eq!(mails[0].to, ["linus@mail.example"]);
    until(async || app.app().services.mails.waiting().await.unwrap() == 0).await;
    assert_eq!(sink.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_mail_server_nothing_blocks() {
    // No server listens there.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", free.local_addr().unwrap());
    drop(free);
    let app = with_mail(&url).await;
    let made = invite(&app, "grace@mail.example").await;
    assert!(!attempt_made(&app).await);
    assert_eq!(app.app().services.mails.waiting().await.unwrap(), 1, "it waits for a server");
    assert_eq!(app.anonymous().get(&format!("/api/signup/{}/", token(&made))).await.status, 200);
    app.stop().await;

    // Without a mail server no mail waits.
    let app = TestApp::with_owner().await;
    invite(&app, "grace@mail.example").await;
    assert!(!attempt_made(&app).await);
    assert_eq!(app.app().services.mails.waiting().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_hear_of_new_ones_if_they_want() {
    let sink = MailSink::start().await;
    let app = with_mail(&sink.url()).await;
    app.member("linus", Level::Member).await;
    let join = async |email: &str| {
        let body = json!({"target_email": email, "send_email": false});
        let made = owner(&app).await.post(&path(&app), &body).await.json();
        let account = json!({"first_name": "Grace", "password": "plum-otter-violin-93"});
        let answer =
            app.anonymous().post(&format!("/api/signup/{}/", token(&made)), &account).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
    };
    join("grace@mail.example").await;
    // New users confirm their address, so there is one more mail.
    let mails = sink.wait_for(3).await;
    let news = |mail: &&Received| mail.header("Subject") == Some("Grace joined you on Weir");
    let mut to: Vec<&str> = mails.iter().filter(news).map(|mail| mail.to[0].as_str()).collect();
    to.sort_unstable();
    assert_eq!(to, ["ada@mail.example", "linus@mail.example"]);

    let key = app.owner().key(&["organization:write"]).await;
    let off = json!({"is_member_join_email_enabled": false});
    let organization = format!("/api/organizations/{}/", app.organization());
    assert_eq!(key.patch(&organization, &off).await.status, 200);
    join("barbara@mail.example").await;
    invite(&app, "last@mail.example").await;
    let mails: Vec<Value> =
        sink.wait_for(5).await.iter().skip(3).map(|mail| json!(mail.to)).collect();
    assert_eq!(mails, [json!(["barbara@mail.example"]), json!(["last@mail.example"])]);
}
