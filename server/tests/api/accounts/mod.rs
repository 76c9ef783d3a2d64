//! Links from mails: confirming an address, setting a new password, changing the address
//! (API-42, API-43); the second factor; passkeys. A real mail server
//! receives the mails.

mod address;
mod confirm;
mod pages;
mod passkeys;
mod reset;
pub(crate) mod second_factor;

use http::Method;
use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_service::Clock;
use weir_testkit::{Answer, Call, Caller, MailSink, Received, TestApp, until};

const ORIGIN: &str = "https://weir.example";
const PASSWORD: &str = "plum-otter-violin-93";
const OTHER_PASSWORD: &str = "kettle-harbour-lichen-7";
const DAY: i64 = 24 * 60 * 60;
const VOID: &str = "This link does not work any more, or never did. Ask for a new one.";
const NOT_CONFIRMED: &str =
    "Your address is not confirmed yet. Open the link in the mail that we sent to it.";

/// An instance with a mail server.
struct Instance {
    app: TestApp,
    sink: MailSink,
    clock: Clock,
}

/// A link from a mail.
#[derive(Debug, Clone)]
struct Link {
    user: String,
    token: String,
}

impl Instance {
    async fn open() -> Self {
        let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
        let sink = MailSink::start().await;
        let url = sink.url();
        let app = TestApp::with_settings_at(clock.clone(), move |config| {
            config.public_url = ORIGIN.parse().unwrap();
            config.smtp_url = url.parse().unwrap();
        });
        let app = app.await.set_up().await;
        Self { app, sink, clock }
    }

    fn anonymous(&self) -> Caller {
        self.app.anonymous()
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.anonymous().post(path, body).await
    }

    async fn login(&self, email: &str, password: &str) -> Answer {
        self.post("/api/login/", &json!({"email": email, "password": password})).await
    }

    /// Signs a user in, and returns the cookie of the session.
    async fn session(&self, email: &str, password: &str) -> String {
        let answer = self.login(email, password).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        cookie(&answer)
    }

    /// Whether a session's cookie is valid.
    async fn is_open(&self, cookie: &str) -> bool {
        let call = self.anonymous().call(Method::GET, "/account").header("cookie", cookie);
        call.send().await.status == 200
    }

    /// Signs Grace up with an invite, and returns the answer.
    async fn sign_up(&self) -> Answer {
        let owner = self.app.owner().key(&["organization_member:write"]).await;
        let path = format!("/api/organizations/{}/invites/", self.app.organization());
        let body = json!({"target_email": "Grace@mail.example", "send_email": false});
        let invite = owner.post(&path, &body).await.json();
        let path = format!("/api/signup/{}/", invite["token"].as_str().unwrap());
        let answer = self.post(&path, &json!({"first_name": "Grace", "password": PASSWORD})).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
        answer
    }

    /// Waits until an address has received this many mails with this subject, and returns
    /// the link of the last one.
    async fn link(&self, to: &str, subject: &str, count: usize) -> Link {
        let mut wanted = 1;
        loop {
            let all = self.sink.wait_for(wanted).await;
            let is_it =
                |mail: &&Received| mail.to == [to] && mail.header("Subject") == Some(subject);
            let found: Vec<&Received> = all.iter().filter(is_it).collect();
            if let Some(mail) = found.get(count - 1) {
                assert_eq!(found.len(), count);
                return link_of(mail);
            }
            wanted = all.len() + 1;
        }
    }

    /// Waits until an address has received a mail with this subject, and returns its
    /// text.
    async fn mail(&self, to: &str, subject: &str) -> String {
        let mut wanted = 1;
        loop {
            let all = self.sink.wait_for(wanted).await;
            let is_it =
                |mail: &&Received| mail.to == [to] && mail.header("Subject") == Some(subject);
            if let Some(mail) = all.iter().find(is_it) {
                return mail.text.clone();
            }
            wanted = all.len() + 1;
        }
    }

    async fn confirmation(&self, to: &str, count: usize) -> Link {
        self.link(to, "Confirm your address on Weir", count).await
    }

    async fn confirm(&self, link: &Link) -> Answer {
        let body = json!({"uuid": link.user, "token": link.token});
        self.post("/api/users/verify_email/", &body).await
    }

    /// Waits until no mail waits in the outbox.
    async fn settled(&self) {
        until(async || self.app.app().services.mails.waiting().await.unwrap() == 0).await;
    }

    /// A call of a server function by a script of the app's own page.
    fn function(&self, name: &str, body: &str) -> Call {
        let call = self.anonymous().call(Method::POST, &format!("/_fn/{name}"));
        call.header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .body(body.to_owned())
    }

    /// The result of [`audit_entries`].
    async fn audit_entries(&self) -> Vec<(String, Value, Value)> {
        audit_entries(&self.app).await
    }
}

/// The fields in the newest audit entry about a user: name, before and after.
async fn audit_entries(app: &TestApp) -> Vec<(String, Value, Value)> {
    let reader = app.owner().key(&["activity_log:read"]).await;
    let path = format!("/api/organizations/{}/activity_log/?scope=User", app.organization());
    let list = reader.get(&path).await.json();
    let newest = &list["results"][0];
    assert!(!newest["user"].is_null(), "{newest}");
    let changes = newest["detail"]["changes"].as_array().unwrap().iter();
    changes
        .map(|change| {
            let field = change["field"].as_str().unwrap().to_owned();
            (field, change["before"].clone(), change["after"].clone())
        })
        .collect()
}

/// The cookie that an answer sets, as the browser sends it back.
fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie").expect("a cookie");
    set.split(';').next().unwrap().to_owned()
}

fn link_of(mail: &Received) -> Link {
    let at = mail.text.find(&format!("{ORIGIN}/")).filter(|_| mail.text.contains("?token="));
    let rest = &mail.text[at.expect("a link")..];
    // The mail names the instance before the link.
    let url = rest
        .split_whitespace()
        .find(|word| word.starts_with(ORIGIN) && word.contains("?token="))
        .expect("a link");
    let (path, token) = url.split_once("?token=").unwrap();
    Link { user: path.rsplit('/').next().unwrap().to_owned(), token: token.to_owned() }
}

#[track_caller]
fn assert_void(answer: &Answer) {
    let attr = Some("token");
    answer.assert_field_error(400, "validation_error", "invalid_token", VOID, attr);
    assert_eq!(answer.header("set-cookie"), None);
}
