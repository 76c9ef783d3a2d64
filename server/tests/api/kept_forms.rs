//! Forms that do not run immediately: because a sign-in is missing, or because another
//! user saved the same form meanwhile.

use std::collections::BTreeMap;

use http::Method;
use serde_json::json;
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::Clock;
use weir_testkit::{Answer, TestApp};

use crate::organization_pages::newcomer;

const MINUTES: i64 = 60;
const HOURS: i64 = 60 * MINUTES;
const PASSWORD: &str = "plum-otter-violin-93";

/// A browser without scripts.
struct Browser<'a> {
    app: &'a TestApp,
    cookies: BTreeMap<String, String>,
}

impl<'a> Browser<'a> {
    fn of(app: &'a TestApp) -> Self {
        Self { app, cookies: BTreeMap::new() }
    }

    async fn signed_in(app: &'a TestApp) -> Self {
        let mut browser = Self::of(app);
        assert_eq!(browser.sign_in("/account").await, "/account");
        browser
    }

    fn keep_cookies(&mut self, answer: &Answer) {
        for set in answer.headers.get_all("set-cookie") {
            let cookie = set.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = cookie.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }

    fn cookie(&self) -> String {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        cookies.join("; ")
    }

    /// Sends a form, and returns the target of the redirect.
    async fn send(&mut self, function: &str, fields: &[(&str, &str)]) -> String {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let call = self.app.anonymous().call(Method::POST, &format!("/_fn/{function}"));
        let call = call.header("accept", "text/html").header("sec-fetch-site", "same-origin");
        let call = call.header("content-type", "application/x-www-form-urlencoded");
        let answer = call.header("cookie", &self.cookie()).body(body).send().await;
        self.keep_cookies(&answer);
        let location = answer.header("location");
        location.expect(function).to_owned()
    }

    async fn sign_in(&mut self, next: &str) -> String {
        let fields = [("email", "ada@mail.example"), ("password", PASSWORD), ("next", next)];
        self.send("sign_in", &fields).await
    }

    async fn open(&self, path: &str) -> String {
        let call = self.app.anonymous().call(Method::GET, path).header("cookie", &self.cookie());
        let answer = call.send().await;
        assert_eq!(answer.status, 200, "{path}");
        answer.text()
    }

    /// The value of a hidden field of the page.
    async fn hidden(&self, path: &str, name: &str) -> String {
        let page = self.open(path).await;
        let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).expect(&page);
        rest.split('"').next().unwrap().replace("&amp;", "&")
    }
}

fn parameter(location: &str, name: &str) -> String {
    let (_, query) = location.split_once('?').unwrap();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(found, _)| found == name).expect(location).1.into_owned()
}

async fn at() -> (Clock, TestApp) {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    (clock, app)
}

#[tokio::test(flavor = "multi_thread")]
async fn confirming_the_password_carries_out_what_was_sent() {
    let (clock, app) = at().await;
    let mut browser = Browser::signed_in(&app).await;
    let before = browser.cookie();
    clock.advance(16 * MINUTES);
    let new = "/account/keys/new";
    let fields = [("label", "Rooibos"), ("preset", "read"), ("days", "30"), ("back", new)];
    let sign_in_page = browser.send("create_key", &fields).await;
    assert!(
        sign_in_page.starts_with("/login/again?next=/account/keys/new&held="),
        "{sign_in_page}"
    );
    assert!(!browser.open("/account/keys").await.contains("Rooibos"));
    let page = browser.open(&sign_in_page).await;
    assert!(page.contains("has not been made yet") && page.contains("name=\"held\""), "{page}");

    let held = parameter(&sign_in_page, "held");
    let confirm = |password| {
        [
            ("password", password),
            ("next", new),
            ("held", held.as_str()),
            ("back", sign_in_page.as_str()),
        ]
    };
    let refused = browser.send("sign_in_again", &confirm("wrong")).await;
    assert!(refused.starts_with("/login/again?") && refused.contains("__err="), "{refused}");
    assert_eq!(parameter(&refused, "held"), held);
    let done = browser.send("sign_in_again", &confirm(PASSWORD)).await;
    assert_eq!(done, "/account/keys/reveal");
    assert_ne!(browser.cookie(), before, "another session");
    assert!(browser.open(&done).await.contains("phx_"), "the value of the new key");
    assert_eq!(browser.open("/account/keys").await.matches("Rooibos</a>").count(), 1);

    // Only once: a second confirmation reports that nothing was done.
    assert_eq!(browser.send("sign_in_again", &confirm(PASSWORD)).await, new);
    assert!(browser.open(new).await.contains("nothing was changed"));
    assert_eq!(browser.open("/account/keys").await.matches("Rooibos</a>").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_waits_is_of_its_sender_and_fails_at_its_page() {
    let (clock, app) = at().await;
    let mut browser = Browser::signed_in(&app).await;
    clock.advance(16 * MINUTES);
    let domains = format!("/organizations/{}/domains", app.organization());
    let id = app.organization().to_string();
    let fields = [("id", id.as_str()), ("domain", "not a domain"), ("back", domains.as_str())];
    let sign_in_page = browser.send("add_domain", &fields).await;
    let held = parameter(&sign_in_page, "held");
    // Going back instead shows the entered values.
    let page = browser.open(&format!("{domains}?__kept=1")).await;
    assert!(page.contains("This was not saved") && page.contains("not a domain"), "{page}");

    let confirm = [("password", PASSWORD), ("next", domains.as_str()), ("held", held.as_str())];
    let failed = browser.send("sign_in_again", &confirm).await;
    assert!(failed.starts_with(&domains) && failed.contains("__err="), "{failed}");
    assert!(browser.open(&failed).await.contains("value=\"not a domain\""));

    // No other user can run it, not even with its name.
    clock.advance(16 * MINUTES);
    let good = [("id", id.as_str()), ("domain", "otter.example"), ("back", domains.as_str())];
    let sign_in_page = browser.send("add_domain", &good).await;
    let held = parameter(&sign_in_page, "held");
    let mut other = Browser::of(&app);
    let confirm = [("password", PASSWORD), ("next", domains.as_str()), ("held", held.as_str())];
    let refused = other.send("sign_in_again", &confirm).await;
    assert!(refused.starts_with("/login?next="), "{refused}");
    assert!(!browser.open(&domains).await.contains("otter.example"));
    browser.send("sign_in_again", &confirm).await;
    assert!(browser.open(&domains).await.contains("otter.example"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_asks_for_the_password_itself_keeps_what_was_typed() {
    let (clock, app) = at().await;
    let mut browser = Browser::signed_in(&app).await;
    clock.advance(16 * MINUTES);
    let new = "/account/keys/new";
    let fields = [("label", "Rooibos"), ("preset", "read"), ("days", "30"), ("back", new)];
    browser.send("create_key", &fields).await;
    // Going back instead of confirming leads to the same question, now of the page.
    let back = format!("{new}?__kept=1");
    let call = app.anonymous().call(Method::GET, &back).header("cookie", &browser.cookie());
    let sign_in_page = call.send().await.header("location").unwrap().to_owned();
    assert_eq!(parameter(&sign_in_page, "next"), back);
    let confirm =
        [("password", PASSWORD), ("next", back.as_str()), ("back", sign_in_page.as_str())];
    assert_eq!(browser.send("sign_in_again", &confirm).await, back);
    let page = browser.open(&back).await;
    assert!(page.contains("This was not saved") && page.contains("value=\"Rooibos\""), "{page}");
    // The same without a session: another tab may have signed out.
    let answer = app.anonymous().call(Method::GET, &back).send().await;
    assert_eq!(parameter(answer.header("location").unwrap(), "next"), back);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ended_keeps_what_was_typed() {
    let (clock, app) = at().await;
    let project = app.project().to_string();
    let settings = format!("/projects/{project}/settings");
    // In a cookie, in memory, and larger than an unknown sender may send.
    let (long, longer) = ("x".repeat(5_000), "y".repeat(300_000));
    for name in ["Mill race", &long, &longer] {
        let mut browser = Browser::signed_in(&app).await;
        clock.advance(12 * HOURS + 1);
        let fields = [
            ("id", project.as_str()),
            ("name", name),
            ("timezone", "UTC"),
            ("anonymize_ips", "true"),
            ("back", settings.as_str()),
        ];
        let sign_in_page = browser.send("update_project", &fields).await;
        assert_eq!(sign_in_page, format!("/login?next={settings}%3F__kept%3D1"));
        let page = browser.open(&sign_in_page).await;
        assert!(page.contains("Your session has ended, so nothing was changed."), "{page}");

        let next = browser.sign_in(&parameter(&sign_in_page, "next")).await;
        assert_eq!(next, format!("{settings}?__kept=1"));
        let page = browser.open(&next).await;
        assert!(page.contains(&format!("value=\"{name}\"")), "{page}");
        assert!(page.contains("This was not saved"), "{page}");
        assert!(page.contains("name=\"anonymize_ips\" value=\"true\" checked"), "{page}");
        let page = browser.open(&settings).await;
        assert!(!page.contains(name) && !page.contains("This was not saved"), "shown once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_is_kept_for_who_signed_in_there_before() {
    let (clock, app) = at().await;
    let mut browser = Browser::signed_in(&app).await;
    clock.advance(12 * HOURS + 1);
    let project = app.project().to_string();
    let settings = format!("/projects/{project}/settings");
    let long = "x".repeat(300_000);
    let fields = [
        ("id", project.as_str()),
        ("name", long.as_str()),
        ("timezone", "UTC"),
        ("back", settings.as_str()),
    ];
    // Another browser, and one with the cookie of another user, show that the values are
    // lost.
    let own = browser.cookies["browser"].clone();
    let outsider = "a".repeat(43);
    let (token, user) = own.split_once('.').unwrap();
    let nobody = uuid::Uuid::nil().simple().to_string();
    for cookie in ["x", token, &format!("{outsider}.{user}"), &format!("{token}.{nobody}")] {
        browser.cookies.insert("browser".to_owned(), cookie.to_owned());
        let sign_in_page = browser.send("update_project", &fields).await;
        assert_eq!(sign_in_page, "/login?next=/&unsent=1", "{cookie}");
        assert!(browser.open(&sign_in_page).await.contains("that you sent was not kept"));
    }
    browser.cookies.insert("browser".to_owned(), own);
    let sign_in_page = browser.send("update_project", &fields).await;
    let kept = parameter(&sign_in_page, "next");
    assert_eq!(kept, format!("{settings}?__kept=1"));
    // The text is shown only to its user, even in the same browser.
    let grace = newcomer(&app, "grace@mail.example", Level::Member).await;
    let mut shared = Browser { app: &app, cookies: browser.cookies.clone() };
    let (name, value) = grace.split_once('=').unwrap();
    shared.cookies.insert(name.to_owned(), value.to_owned());
    let page = shared.open(&kept).await;
    assert!(page.contains("could not be kept") && !page.contains(&long));
    browser.sign_in(&kept).await;
    assert!(browser.open(&kept).await.contains(&format!("value=\"{long}\"")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_wait_is_said_to_be_lost() {
    let (clock, app) = at().await;
    let mut browser = Browser::signed_in(&app).await;
    clock.advance(16 * MINUTES);
    let add = format!("/organizations/{}/plugins/destinations/add", app.organization());
    let mut body = String::new();
    let organization = app.organization().to_string();
    for (name, value) in
        [("organization", organization.as_str()), ("plugin_list", "destinations"), ("back", &add)]
    {
        body +=
            &format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    body += "--b\r\ncontent-disposition: form-data; name=\"archive\"; filename=\"a.zip\"\r\n\r\nPK\r\n--b--\r\n";
    let send = async |browser: &Browser<'_>| {
        let call = app.anonymous().call(Method::POST, "/_upload/plugin");
        let call = call.header("sec-fetch-site", "same-origin").header("accept", "text/html");
        let call = call.header("content-type", "multipart/form-data; boundary=b");
        let answer = call.header("cookie", &browser.cookie()).body(body.clone()).send().await;
        answer.header("location").unwrap().to_owned()
    };
    let sign_in_page = send(&browser).await;
    assert_eq!(sign_in_page, format!("/login/again?next={add}&unsent=1"));
    assert!(browser.open(&sign_in_page).await.contains("the file was not kept"));
    browser.cookies.clear();
    let sign_in_page = send(&browser).await;
    assert_eq!(sign_in_page, format!("/login?next={add}&unsent=1"));
    assert!(browser.open(&sign_in_page).await.contains("that you sent was not kept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_of_a_project_change_what_was_changed_in_them() {
    let app = TestApp::with_owner().await;
    let mut browser = Browser::signed_in(&app).await;
    let id = app.project().to_string();
    let settings = format!("/projects/{id}/settings");
    let owner = app.owner().key(&["*"]).await;
    let now = async || {
        let found = owner.get(&format!("/api/projects/{id}/")).await.json();
        json!([found["name"], found["timezone"], found["anonymize_ips"]])
    };
    let first = browser.hidden(&settings, "seen").await;
    let send = async |browser: &mut Browser<'_>, seen: &str, name: &str, zone: &str, ips: bool| {
        let mut fields = vec![
            ("id", id.as_str()),
            ("seen", seen),
            ("name", name),
            ("timezone", zone),
            ("back", settings.as_str()),
        ];
        if ips {
            fields.push(("anonymize_ips", "true"));
        }
        browser.send("update_project", &fields).await
    };
    // One tab changes the time zone and a checkbox. The other, opened before, changes the
    // name.
    let done = send(&mut browser, &first, "Shop", "Europe/Berlin", true).await;
    assert!(done.contains("__done="), "{done}");
    send(&mut browser, &first, "Mill race", "UTC", false).await;
    assert_eq!(now().await, json!(["Mill race", "Europe/Berlin", true]));
    // The same change twice is not a conflict.
    let done = send(&mut browser, &first, "Mill race", "UTC", false).await;
    assert!(done.contains("__done="), "{done}");

    // Both change the time zone: nothing is written, and the page shows the stored value.
    let failed = send(&mut browser, &first, "Store", "Asia/Tokyo", false).await;
    assert!(failed.contains("__err="), "{failed}");
    assert_eq!(now().await, json!(["Mill race", "Europe/Berlin", true]));
    let page = browser.open(&failed).await;
    assert!(page.contains("Time zone is now \u{201c}Europe/Berlin\u{201d}"), "{page}");
    assert!(page.contains("Name is now \u{201c}Mill race\u{201d}"), "{page}");
    assert!(page.contains("value=\"Asia/Tokyo\"") && page.contains("value=\"Store\""), "{page}");
    // Unchanged fields show the values that the other tab saved.
    assert!(page.contains("name=\"anonymize_ips\" value=\"true\" checked"), "{page}");
    // Sending it again as that page shows it succeeds.
    let second = browser.hidden(&failed, "seen").await;
    let done = send(&mut browser, &second, "Store", "Asia/Tokyo", true).await;
    assert!(done.contains("__done="), "{done}");
    assert_eq!(now().await, json!(["Store", "Asia/Tokyo", true]));

    // A form that is refused for another reason still has the values that it showed at
    // first.
    let third = browser.hidden(&settings, "seen").await;
    let failed = send(&mut browser, &third, "Mill", "Nowhere", true).await;
    assert!(failed.contains("__err="), "{failed}");
    send(&mut browser, &third, "Weir", "Asia/Tokyo", true).await;
    let fourth = browser.hidden(&failed, "seen").await;
    let failed = send(&mut browser, &fourth, "Mill", "UTC", true).await;
    assert!(browser.open(&failed).await.contains("Name is now \u{201c}Weir\u{201d}"));
    assert_eq!(now().await, json!(["Weir", "Asia/Tokyo", true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_of_an_export_change_what_was_changed_in_them() {
    let app = TestApp::with_owner().await;
    let mut browser = Browser::signed_in(&app).await;
    let home = app.organization().to_string();
    let path = format!("/api/organizations/{home}/batch_exports/");
    let config = json!({"url": "https://hooks.example/a", "token": "phc_other"});
    let owner = app.owner().key(&["*"]).await;
    let body = json!({"name": "Hourly", "interval": "hour", "model": "events", "paused": true,
                      "destination": {"type": "HTTP", "config": config}});
    let made = owner.post(&path, &body).await.json();
    let export = made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let page = format!("/organizations/{home}/exports/{export}/settings");
    let seen = browser.hidden(&page, "seen").await;
    let send = async |browser: &mut Browser<'_>, name: &str, interval: &str, end: &str| {
        let fields = [
            ("organization", home.as_str()),
            ("export", export.as_str()),
            ("seen", seen.as_str()),
            ("name", name),
            ("interval", interval),
            ("timezone", "UTC"),
            ("end_at", end),
            ("config[url]", "https://hooks.example/a"),
            ("back", page.as_str()),
        ];
        browser.send("update_export", &fields).await
    };
    let done = send(&mut browser, "Hourly", "day", "2030-01-02T03:04").await;
    assert!(done.contains("__done="), "{done}");
    let done = send(&mut browser, "Daily", "hour", "").await;
    assert!(done.contains("__done="), "{done}");
    let now = owner.get(&format!("{path}{export}/")).await.json();
    assert_eq!(
        (&now["name"], &now["interval"], &now["end_at"]),
        (&json!("Daily"), &json!("day"), &json!("2030-01-02T03:04:00Z"))
    );
    let failed = send(&mut browser, "Nightly", "hour", "").await;
    let shown = browser.open(&failed).await;
    assert!(shown.contains("Name is now \u{201c}Daily\u{201d}"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_of_a_key_do_not_mix_what_it_may_do() {
    let app = TestApp::with_owner().await;
    let mut browser = Browser::signed_in(&app).await;
    let new = [("label", "Rooibos"), ("preset", "read"), ("days", "30")];
    browser.send("create_key", &new).await;
    let list = browser.open("/account/keys").await;
    let at = list.find("Rooibos</a>").unwrap();
    let (before, _) = list.split_at(at);
    let path = before.rsplit("href=\"").next().unwrap().split('"').next().unwrap().to_owned();
    let id = path.rsplit('/').next().unwrap().to_owned();
    let seen = browser.hidden(&path, "seen").await;
    let send = async |browser: &mut Browser<'_>, label: &str, preset: &str| {
        let fields = [
            ("id", id.as_str()),
            ("seen", seen.as_str()),
            ("label", label),
            ("preset", preset),
            ("back", path.as_str()),
        ];
        browser.send("update_key", &fields).await
    };
    let done = send(&mut browser, "Mint", "members").await;
    assert!(done.contains("__done="), "{done}");
    let failed = send(&mut browser, "Sage", "read").await;
    let shown = browser.open(&failed).await;
    assert!(shown.contains("saved in another tab") && shown.contains("value=\"Mint\""), "{shown}");
}
