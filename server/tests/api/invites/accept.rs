//! GET and POST `/api/signup/{id}/` (API-35), and `/api/login/`.

use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::Clock;
use weir_testkit::{Answer, Call, TestApp};

use super::{id, invite, member, owner, path, token};

const PASSWORD: &str = "plum-otter-violin-93";
const OWN_PAGE: (&str, &str) = ("sec-fetch-site", "same-origin");

fn link(invite: &Value) -> String {
    format!("/api/signup/{}/", token(invite))
}

fn account() -> Value {
    json!({"first_name": "Grace", "password": PASSWORD})
}

async fn sign_up(app: &TestApp, invite: &Value) -> Answer {
    app.anonymous().post(&link(invite), &account()).await
}

/// The cookie that an answer sets, as the browser sends it back.
fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie").expect("a cookie");
    set.split(';').next().unwrap().to_owned()
}

/// A call with a session, from the app's own page.
fn with_session(app: &TestApp, method: Method, path: &str, cookie: &str) -> Call {
    let call = app.anonymous().call(method, path).header("cookie", cookie);
    call.header(OWN_PAGE.0, OWN_PAGE.1)
}

#[track_caller]
fn assert_refused(answer: &Answer, code: &str, detail: &str) {
    answer.assert_field_error(400, "validation_error", code, detail, None);
    assert_eq!(answer.header("set-cookie"), None);
}

/// SHA-256 of `late`.
const LATE: &str = "089001a35679a33ef3db0ca350db9b9a2f0136e0e327577b04b3b98127470961";
const UNKNOWN: &str = "The provided invite ID is not valid.";
/// A cookie without a valid session.
const UNKNOWN_USER: &str = "session=x";

/// The page of an invite for this session.
async fn shown(app: &TestApp, invite: &Value, cookie: &str) -> String {
    let path = format!("/signup/{}", token(invite));
    let answer = with_session(app, Method::GET, &path, cookie).send().await;
    assert_eq!((answer.status, answer.header("referrer-policy")), (200, Some("no-referrer")));
    answer.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_person_signs_up_and_is_in() {
    let app = TestApp::with_owner().await;
    let body = json!({"target_email": "Grace@mail.example", "first_name": "G.", "level": 8});
    let made = owner(&app).await.post(&path(&app), &body).await.json();
    let shown = app.anonymous().get(&link(&made)).await;
    assert_eq!(
        (shown.status, shown.json()),
        (
            200,
            json!({
                "id": made["token"],
                "target_email": "Grace@mail.example",
                "first_name": "G.",
                "organization_name": "Acme Tea",
            })
        )
    );
    let answer = sign_up(&app, &made).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let user = answer.json();
    assert_eq!(user["redirect_url"], "/");
    assert_eq!(user["first_name"], "Grace");
    assert_eq!(user["email"], "Grace@mail.example");
    assert_eq!(user["is_email_verified"], false);
    let set = answer.header("set-cookie").unwrap();
    assert!(set.contains("; SameSite=Lax") && set.contains("; HttpOnly"), "{set}");
    let page = with_session(&app, Method::GET, "/account", &cookie(&answer)).send().await;
    assert_eq!(page.status, 200);

    let members = format!("/api/organizations/{}/members/", app.organization());
    let list = owner(&app).await.get(&members).await.json();
    assert_eq!((&list["count"], &list["results"][0]["level"]), (&json!(2), &json!(8)));
    assert_eq!(owner(&app).await.get(&path(&app)).await.json()["count"], 0);
    assert_refused(&sign_up(&app, &made).await, "invalid_input", UNKNOWN);

    // From now on the password works, in any spelling of the address.
    let login = json!({"email": "grace@MAIL.example", "password": PASSWORD});
    for path in ["/api/login", "/api/login/"] {
        let answer = app.anonymous().post(path, &login).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"success": true})));
        let page = with_session(&app, Method::GET, "/account", &cookie(&answer)).send().await;
        assert_eq!(page.status, 200);
    }
    let wrong = json!({"email": "grace@mail.example", "password": "wrong password"});
    let answer = app.anonymous().post("/api/login", &wrong).await;
    assert_refused(&answer, "invalid_credentials", "Invalid email or password.");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_passwords_follow_the_rules_of_the_web_app() {
    let app = TestApp::with_owner().await;
    let made = invite(&app, "grace.h@mail.example").await;
    for (body, attr, code) in [
        (json!({}), "first_name", "required"),
        (json!({"first_name": " ", "password": "x"}), "first_name", "blank"),
        (json!({"first_name": "x".repeat(129), "password": "x"}), "first_name", "max_length"),
        (json!({"first_name": "Grace"}), "password", "required"),
        (json!({"first_name": "Grace", "password": ""}), "password", "blank"),
        (json!({"first_name": "Grace", "password": "short"}), "password", "password_too_short"),
        (
            json!({"first_name": "Grace", "password": "aaaaaaaaaaaaa"}),
            "password",
            "password_too_weak",
        ),
        (
            json!({"first_name": "Grace", "password": "grace.h is my secret 7"}),
            "password",
            "password_too_similar",
        ),
        (
            json!({"first_name": "Grace", "password": "much acme tea, much 7"}),
            "password",
            "password_too_similar",
        ),
    ] {
        let answer = app.anonymous().post(&link(&made), &body).await;
        let (status, kind, found, _, at) = answer.error();
        assert_eq!((status, kind.as_str()), (400, "validation_error"), "{body}");
        assert_eq!((found.as_str(), at.as_deref()), (code, Some(attr)), "{body}");
    }
    assert_eq!(sign_up(&app, &made).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_lead_nowhere() {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let long = "x".repeat(4000);
    for token in [Uuid::nil().to_string(), "junk".to_owned(), "%00".to_owned(), long] {
        let path = format!("/api/signup/{token}/");
        assert_refused(&app.anonymous().get(&path).await, "invalid_input", UNKNOWN);
        let answer = app.anonymous().post(&path, &account()).await;
        assert_refused(&answer, "invalid_input", UNKNOWN);
    }
    let made = invite(&app, "grace@mail.example").await;
    clock.advance(3 * 24 * 60 * 60);
    assert_eq!(app.anonymous().get(&link(&made)).await.status, 200);
    clock.advance(1);
    let detail = "This invite has expired. Please ask your admin for a new one.";
    assert_refused(&app.anonymous().get(&link(&made)).await, "expired", detail);
    assert_refused(&sign_up(&app, &made).await, "expired", detail);

    // An address of an existing user: the user signs in.
    app.outsider("mallory").await;
    let made = invite(&app, "Mallory@mail.example").await;
    let sign_in = format!("/login?next=/signup/{}", token(&made));
    assert_refused(&app.anonymous().get(&link(&made)).await, "account_exists", &sign_in);
    let detail = "There already exists an account with email address Mallory@mail.example. \
                  Please log in instead.";
    assert_refused(&sign_up(&app, &made).await, "invalid_input", detail);

    let answer = app.anonymous().put(&link(&made), &json!({})).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, POST, HEAD, OPTIONS")));
}

/// Signs Grace up at the owner's organization, and returns her session cookie.
async fn grace(app: &TestApp) -> String {
    let made = invite(app, "grace@mail.example").await;
    cookie(&sign_up(app, &made).await)
}

/// Another organization and its invite for this address.
async fn invite_elsewhere(app: &TestApp, email: &str) -> Value {
    let other = app.outsider("linus").await.key(&["*"]).await;
    let home = other.post("/api/organizations/", &json!({"name": "Home"})).await.json();
    let path = format!("/api/organizations/{}/invites/", home["id"].as_str().unwrap());
    other.post(&path, &json!({"target_email": email})).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_in_user_accepts_an_invite() {
    let app = TestApp::with_owner().await;
    let cookie = grace(&app).await;
    let made = invite_elsewhere(&app, "GRACE@mail.example").await;
    let shown = with_session(&app, Method::GET, &link(&made), &cookie).send().await;
    assert_eq!((shown.status, &shown.json()["organization_name"]), (200, &json!("Home")));
    let answer = with_session(&app, Method::POST, &link(&made), &cookie).send().await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    assert_eq!(
        (&answer.json()["first_name"], &answer.json()["redirect_url"]),
        (&json!("Grace"), &json!("/"))
    );
    // The new organization is the current one.
    let account = with_session(&app, Method::GET, "/organizations", &cookie).send().await;
    assert!(String::from_utf8_lossy(&account.body).contains("Home"));

    let not_hers = invite(&app, "barbara@mail.example").await;
    for method in [Method::GET, Method::POST] {
        let answer = with_session(&app, method, &link(&not_hers), &cookie).send().await;
        let detail = "This invite is intended for another email address.";
        assert_refused(&answer, "invalid_recipient", detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_cannot_accept_again() {
    let app = TestApp::with_owner().await;
    let made = invite(&app, "grace@mail.example").await;
    let cookie = cookie(&sign_up(&app, &made).await);
    // Only an invite from before can still exist, because members are not invited.
    let store = app.store();
    let late = weir_store::invites::InviteRow {
        id: weir_model::InviteId(Uuid::new_v4()),
        organization: app.organization(),
        target_email: "grace@mail.example".to_owned(),
        email_key: "grace@mail.example".to_owned(),
        first_name: String::new(),
        level: Level::Member,
        message: None,
        created_by: app.owner().id(),
        created_at: app.app().services.clock.now(),
        updated_at: app.app().services.clock.now(),
        emailing_attempt_made: false,
        links: vec![LATE.to_owned()],
    };
    let rows = std::slice::from_ref(&late);
    let bounds = weir_store::invites::InviteBounds::of(1);
    let made = weir_store::invites::create(store, app.organization(), rows, bounds, &[], &[]).await;
    assert_eq!(made.unwrap(), weir_store::invites::Created::Yes);
    let text = shown(&app, &json!({"token": "late"}), &cookie).await;
    assert!(text.contains("You belong to this organization already."), "{text}");
    let answer = with_session(&app, Method::POST, "/api/signup/late/", &cookie).send().await;
    let detail = "You already are a member of this organization.";
    assert_refused(&answer, "user_already_member", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_sites_accept_no_invite() {
    let app = TestApp::with_owner().await;
    let cookie = grace(&app).await;
    let made = invite_elsewhere(&app, "grace@mail.example").await;
    let sent = |headers: &[(&str, &str)]| {
        let mut call = app.anonymous().call(Method::POST, &link(&made)).json(&account());
        for (name, value) in headers {
            call = call.header(name, value);
        }
        call.send()
    };
    let session = ("cookie", cookie.as_str());
    for headers in [
        // With a session the browser must say that the request comes from the app's own
        // page.
        &[session][..],
        &[session, ("sec-fetch-site", "cross-site")],
        &[session, ("origin", "http://evil.example")],
        // Without a session no other site can sign a user up or in.
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "null")],
    ] {
        let answer = sent(headers).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{headers:?}");
        assert_eq!(answer.json()["code"], "permission_denied");
    }
    let login = json!({"email": "ada@mail.example", "password": PASSWORD});
    let call = app.anonymous().call(Method::POST, "/api/login/").json(&login);
    assert_eq!(call.header("sec-fetch-site", "cross-site").send().await.status, 403);
    // A key is not a session.
    let key = app.owner().key(&["*"]).await;
    let answer = key.post(&link(&made), &json!({})).await;
    assert_eq!(answer.json()["detail"].as_str().unwrap().split(' ').next(), Some("There"));
    assert_eq!(sent(&[session, OWN_PAGE]).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_works_for_one_of_several_concurrent_accepts() {
    let app = TestApp::with_owner().await;
    let made = invite(&app, "grace@mail.example").await;
    let answers = futures::future::join_all((0..4).map(|_| sign_up(&app, &made))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 400, 400, 400]);
    let members = format!("/api/organizations/{}/members/", app.organization());
    assert_eq!(owner(&app).await.get(&members).await.json()["count"], 2);
}

/// An invite is valid as long as its inviter may create it.
#[tokio::test(flavor = "multi_thread")]
async fn an_invite_is_void_after_its_inviter_left_or_lost_the_level() {
    let app = TestApp::with_owner().await;
    let linus = app.member("linus", Level::Administrator).await;
    let key = linus.key(&["*"]).await;
    let made = async |email: &str, level: u8| {
        let body = json!({"target_email": email, "level": level});
        key.post(&path(&app), &body).await.json()
    };
    let high = made("grace@mail.example", 8).await;
    let low = made("barbara@mail.example", 1).await;
    let expired = async || {
        let list = owner(&app).await.get(&path(&app)).await.json();
        let results = list["results"].as_array().unwrap().clone();
        results.iter().map(|one| one["is_expired"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    let void = async |invite: &Value| {
        let detail = "This invite has expired. Please ask your admin for a new one.";
        assert_refused(&app.anonymous().get(&link(invite)).await, "expired", detail);
        assert_refused(&sign_up(&app, invite).await, "expired", detail);
        assert!(shown(&app, invite, UNKNOWN_USER).await.contains("This invite has expired"));
    };
    assert!(shown(&app, &high, UNKNOWN_USER).await.contains("Administrator"));
    assert_eq!(expired().await, [false, false]);

    let member = format!("/api/organizations/{}/members/{}/", app.organization(), linus.id());
    assert_eq!(owner(&app).await.patch(&member, &json!({"level": 1})).await.status, 200);
    void(&high).await;
    // Any member may invite new members.
    assert_eq!(app.anonymous().get(&link(&low)).await.status, 200);
    assert_eq!(expired().await, [false, true]);

    assert_eq!(owner(&app).await.delete(&member).await.status, 204);
    void(&low).await;
    assert_eq!(expired().await, [true, true]);
    let members = format!("/api/organizations/{}/members/", app.organization());
    assert_eq!(owner(&app).await.get(&members).await.json()["count"], 1);
}

/// The level is checked in the transaction that accepts the invite, because it may have
/// been lost a moment ago.
#[tokio::test(flavor = "multi_thread")]
async fn the_transaction_checks_the_level_of_the_inviter() {
    let app = TestApp::with_owner().await;
    let linus = app.member("linus", Level::Administrator).await;
    let body = json!({"target_email": "grace@mail.example", "level": 8});
    let made = linus.key(&["*"]).await.post(&path(&app), &body).await.json();
    let store = app.store();
    let invite = weir_model::InviteId(id(&made).parse().unwrap());
    let row = weir_store::invites::get_any(store, invite).await.unwrap().unwrap();
    let accept = async || {
        let acceptance = weir_store::invites::Acceptance {
            invite: &row,
            user: app.outsider("mallory").await.id(),
            new_user: None,
            proof: None,
            membership: weir_model::MembershipId(Uuid::new_v4()),
            level: row.level,
            project: None,
            members_most: None,
            mails: &[],
            activities: &[],
        };
        weir_store::invites::accept(store, acceptance, app.app().services.clock.now()).await
    };
    let member = format!("/api/organizations/{}/members/{}/", app.organization(), linus.id());
    assert_eq!(owner(&app).await.patch(&member, &json!({"level": 1})).await.status, 200);
    assert_eq!(accept().await.unwrap(), weir_store::invites::Accepted::Void);
}

/// Without mail, a read-only key sees nothing that could be used to accept an invite.
#[tokio::test(flavor = "multi_thread")]
async fn what_lists_show_opens_nothing() {
    let app = TestApp::with_owner().await;
    let body = json!({"target_email": "grace@mail.example", "level": 15});
    let made = owner(&app).await.post(&path(&app), &body).await.json();
    let reader = app.owner().key(&["organization_member:read"]).await;
    for caller in [reader, owner(&app).await] {
        let list = caller.get(&path(&app)).await;
        let shown = &list.json()["results"][0];
        assert_eq!(shown["token"], Value::Null);
        assert!(!String::from_utf8_lossy(&list.body).contains(token(&made)));
        for tried in [id(shown), id(&made)] {
            let path = format!("/api/signup/{tried}/");
            assert_refused(&app.anonymous().get(&path).await, "invalid_input", UNKNOWN);
            let answer = app.anonymous().post(&path, &account()).await;
            assert_refused(&answer, "invalid_input", UNKNOWN);
        }
    }
    assert_eq!(sign_up(&app, &made).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_at_links_slows_down() {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let made = invite(&app, "grace@mail.example").await;
    for _ in 0..20 {
        assert_eq!(app.anonymous().get(&link(&made)).await.status, 200, "right ones are free");
    }
    let guess = async || app.anonymous().get(&format!("/api/signup/{}/", Uuid::new_v4())).await;
    for _ in 0..21 {
        assert_eq!(guess().await.status, 400);
    }
    let answer = guess().await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("2")));
    assert_eq!(app.anonymous().get(&link(&made)).await.status, 429);
    clock.advance(2);
    assert_eq!(app.anonymous().get(&link(&made)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_works_without_scripts() {
    let app = TestApp::with_owner().await;
    let made = invite(&app, "grace@mail.example").await;
    let page = app.anonymous().get(&format!("/signup/{}", token(&made))).await;
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert_eq!((page.status, page.header("referrer-policy")), (200, Some("no-referrer")));
    assert!(text.contains("Ada invited you to join") && text.contains("Acme Tea"), "{text}");
    assert!(text.contains("name=\"password\"") && text.contains("grace@mail.example"), "{text}");
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("id", token(&made))
        .append_pair("back", &format!("/signup/{}", token(&made)))
        .append_pair("first_name", "Grace")
        .append_pair("password", PASSWORD)
        .finish();
    let call = app.anonymous().call(Method::POST, "/_fn/sign_up").header(OWN_PAGE.0, OWN_PAGE.1);
    let call = call.header("accept", "text/html");
    let answer = call.header("content-type", "application/x-www-form-urlencoded").body(body);
    let answer = answer.send().await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{:?}", answer.body);
    let cookie = cookie(&answer);

    assert!(
        shown(&app, &made, UNKNOWN_USER).await.contains("This link is unknown or no longer valid")
    );
    let made = invite_elsewhere(&app, "grace@mail.example").await;
    let page = format!("/signup/{}", token(&made));
    let text = app.anonymous().get(&page).await;
    assert!(
        String::from_utf8_lossy(&text.body)
            .contains(&format!("/login?next=/signup/{}", token(&made)))
    );
    let text = with_session(&app, Method::GET, &page, &cookie).send().await;
    assert!(String::from_utf8_lossy(&text.body).contains("You are signed in as"));
    let join = with_session(&app, Method::POST, "/_fn/join_organization", &cookie)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("id={}", token(&made)));
    assert_eq!(join.send().await.status, 200);
    assert_eq!(member(&app, "barbara", Level::Member).await.get(&path(&app)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_who_invites_to_what() {
    let app = TestApp::with_owner().await;
    app.outsider("mallory").await;
    let message = "Have a look.\n<b>See you</b> at https://evil.example";
    // The answer is the same for a user who exists and must sign in.
    for (email, then) in [
        ("grace@mail.example", "Create account and join"),
        ("mallory@mail.example", "Sign in with it to join."),
    ] {
        let body = json!({"target_email": email, "level": 8, "message": message});
        let made = owner(&app).await.post(&path(&app), &body).await.json();
        let text = shown(&app, &made, UNKNOWN_USER).await;
        for words in [
            "Ada invited you to join",
            "Acme Tea",
            "Administrator",
            "Have a look.",
            "<br",
            "&lt;b&gt;See you&lt;/b&gt;",
            then,
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("href=\"https://evil.example"), "{text}");
    }
    let plain = shown(&app, &invite(&app, "linus@mail.example").await, UNKNOWN_USER).await;
    assert!(plain.contains("Member") && !plain.contains("<dt>Message"), "{plain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_link_that_is_of_no_use_says_what_helps() {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let revoked = invite(&app, "linus@mail.example").await;
    let one = format!("{}{}/", path(&app), id(&revoked));
    assert_eq!(owner(&app).await.delete(&one).await.status, 204);
    for invite in [revoked, json!({"token": Uuid::nil().to_string()}), json!({"token": "junk"})] {
        let text = shown(&app, &invite, UNKNOWN_USER).await;
        assert!(text.contains("This link is unknown or no longer valid"), "{text}");
        assert!(!text.contains("linus@mail.example") && !text.contains("Acme Tea"), "{text}");
    }

    let expired = invite(&app, "linus@mail.example").await;
    clock.advance(3 * 24 * 60 * 60 + 1);
    let grace = grace(&app).await;
    // The answer does not show the invited address, with or without a session.
    for cookie in [UNKNOWN_USER, grace.as_str()] {
        let text = shown(&app, &expired, cookie).await;
        assert!(text.contains("This invite has expired"), "{text}");
        assert!(!text.contains("linus@mail.example") && !text.contains("Acme Tea"), "{text}");
    }

    let others = invite(&app, "barbara@mail.example").await;
    let text = shown(&app, &others, &grace).await;
    for words in ["barbara@mail.example", "grace@mail.example", "Sign out and continue"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let out = with_session(&app, Method::POST, "/_fn/sign_out_to_join", &grace)
        .header("accept", "text/html")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("id={}", id(&others)));
    let answer = out.send().await;
    let page = format!("/signup/{}", id(&others));
    assert_eq!((answer.status, answer.header("location")), (303, Some(page.as_str())));
    assert!(answer.header("set-cookie").unwrap().starts_with("session=;"));
    // The session itself has ended, not only its cookie.
    let text = shown(&app, &others, &grace).await;
    assert!(text.contains("Create account and join"), "{text}");
}
