//! Enforcement closes every door (SSO-31): each way into an account is tried where the
//! domain requires nothing, SAML, and a provider of the instance.
//!
//! What belongs here: doors of users. What does not: which user a provider signs in
//! (`saml` and the parent module).

use http::Method;
use serde_json::{Value, json};
use weir_testkit::{Answer, Caller, MailSink, TestApp};

use super::identity_provider::{OWN, Says};
use super::saml::{self, ENTITY_ID};
use super::{GitHub, PASSWORD, Provider, get, leads_to, leave, set_cookie, stand_in, through};
use crate::domains::{one, verified, vouch};
use crate::web;

const ADA: &str = "ada@mail.example";
const OTHER_PASSWORD: &str = "kettle-harbour-lichen-7";

/// A way of signing in. A session that it opened, and a key that is made in the session,
/// belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Password,
    GitHub,
    Saml,
}

/// A way into an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// A session that is open when the rule comes.
    Session(Way),
    /// A new personal key in such a session.
    NewKey(Way),
    /// Linking another account in such a session.
    Linking(Way),
    PasswordInApi,
    PasswordOnPage,
    SignInByGitHub,
    SignInBySaml,
    AskForReset,
    /// The link of a mail that was sent before.
    Reset,
    /// The link of an invite that was made before.
    InviteInApi,
    InviteOnPage,
    /// The link that the operator makes on the host.
    Operator,
    /// A personal key that was made before.
    OldKey,
}

/// Each door, and the way that it belongs to. No rule closes the doors without one.
const DOORS: &[(Door, Option<Way>)] = &[
    (Door::Session(Way::Password), Some(Way::Password)),
    (Door::Session(Way::GitHub), Some(Way::GitHub)),
    (Door::Session(Way::Saml), Some(Way::Saml)),
    (Door::NewKey(Way::Password), Some(Way::Password)),
    (Door::NewKey(Way::GitHub), Some(Way::GitHub)),
    (Door::NewKey(Way::Saml), Some(Way::Saml)),
    (Door::Linking(Way::Password), Some(Way::Password)),
    (Door::Linking(Way::GitHub), Some(Way::GitHub)),
    (Door::Linking(Way::Saml), Some(Way::Saml)),
    (Door::PasswordInApi, Some(Way::Password)),
    (Door::PasswordOnPage, Some(Way::Password)),
    (Door::SignInByGitHub, Some(Way::GitHub)),
    (Door::SignInBySaml, Some(Way::Saml)),
    (Door::InviteInApi, Some(Way::Password)),
    (Door::InviteOnPage, Some(Way::Password)),
    (Door::Operator, None),
    (Door::OldKey, None),
    // The last ones: a new password ends all sessions, and a new link the one before.
    (Door::Reset, Some(Way::Password)),
    (Door::AskForReset, Some(Way::Password)),
];

/// An instance whose owner can sign in in each way, and the keys to all doors.
struct Instance {
    app: TestApp,
    owner: Caller,
    _provider: Provider,
    sink: MailSink,
    /// A session of each way.
    sessions: Vec<(Way, String)>,
    /// The user and the token of a link that sets a new password.
    user: String,
    reset: String,
    /// The tokens of two invites.
    invites: Vec<String>,
    /// The path of the domain in the API.
    domain: String,
}

impl Instance {
    async fn start() -> Self {
        let provider = stand_in(GitHub { id: 7, email: ADA.to_owned() }).await;
        let setting = format!("github id secret {}", provider.url());
        let sink = MailSink::start().await;
        let mail = sink.url();
        let app = TestApp::start(
            move |config| {
                config.egress_allow = "127.0.0.1".parse().unwrap();
                config.sign_in_providers = setting.parse().unwrap();
                config.public_url = "http://localhost:8000".parse().unwrap();
                config.smtp_url = mail.parse().unwrap();
            },
            |_| {},
        );
        let app = app.await.set_up().await;
        let owner = app.owner().key(&["*"]).await;
        let domain = one(&app, &verified(&app, "mail.example").await);
        saml::connect(&owner, &domain, ENTITY_ID, OWN).await;
        vouch(&app, &domain).await;
        let mut it = Self {
            owner,
            _provider: provider,
            sink,
            sessions: vec![(Way::Password, web::session(&app).await)],
            user: app.owner().id().to_string(),
            reset: String::new(),
            invites: Vec::new(),
            domain,
            app,
        };
        let query = it.linking(Way::Password).await.expect("a link to the provider");
        let session = it.session(Way::Password).to_owned();
        let (departure, callback) = leave(&it.app, &query, &session).await;
        let linked = get(&it.app, &callback, &format!("{departure}; {session}")).await;
        assert_eq!(leads_to(&linked), "/account/security");
        let by_github = through(&it.app).await.1.expect("a session of GitHub");
        let by_saml = set_cookie(&it.by_saml().await, "session").expect("a session of SAML");
        it.sessions.extend([(Way::GitHub, by_github), (Way::Saml, by_saml)]);
        for name in ["grace", "linus"] {
            let body = json!({"target_email": format!("{name}@mail.example"), "send_email": false});
            let path = "/api/organizations/@current/invites/";
            let made = it.owner.post(path, &body).await.json();
            it.invites.push(made["token"].as_str().unwrap().to_owned());
        }
        assert_eq!(it.post("/api/reset/", json!({"email": ADA})).await.status, 204);
        it.reset = reset_token(&it.sink).await;
        it
    }

    fn session(&self, way: Way) -> &str {
        &self.sessions.iter().find(|(found, _)| *found == way).unwrap().1
    }

    /// Makes the domain require a way of signing in, through the API.
    async fn require(&self, text: &str) {
        let answer = self.owner.patch(&self.domain, &json!({"sso_enforcement": text})).await;
        assert_eq!((answer.status, &answer.json()["sso_enforcement"]), (200, &json!(text)));
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        let call = self.app.anonymous().call(Method::POST, path);
        call.header("sec-fetch-site", "same-origin").json(&body).send().await
    }

    async fn function(&self, name: &str, fields: &[(&str, &str)], cookie: &str) -> Answer {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        web::function(&self.app, name, &body).header("cookie", cookie).send().await
    }

    async fn by_saml(&self) -> Answer {
        let (cookie, request) = saml::leave(&self.app, ADA, "").await;
        let says = Says::about(&request, ENTITY_ID, ADA);
        saml::bring(&self.app, &cookie, &request.relay_state, &says.signed()).await
    }

    /// The query of the link that links GitHub, on the page of a session.
    async fn linking(&self, way: Way) -> Option<String> {
        let page = web::page(&self.app, "/account/security", self.session(way)).await;
        let page = page.text();
        let links = page.split("href=\"/login/github/").skip(1);
        let mut links = links.filter_map(|rest| rest.split('"').next());
        links.find(|link| link.contains("purpose=link")).map(|link| link.replace("&amp;", "&"))
    }

    /// Whether a session works.
    async fn is_open(&self, session: &str) -> bool {
        web::page(&self.app, "/account", session).await.status == 200
    }

    /// Whether an answer opens a session that works.
    async fn opens_session(&self, answer: &Answer) -> bool {
        match set_cookie(answer, "session") {
            Some(session) => self.is_open(&session).await,
            None => false,
        }
    }

    /// Whether a door opens.
    async fn opens(&self, door: Door) -> bool {
        let login = [("email", ADA), ("password", PASSWORD), ("next", "/")];
        match door {
            Door::Session(way) => self.is_open(self.session(way)).await,
            Door::NewKey(way) => {
                let fields = [
                    ("label", "door"),
                    ("preset", "custom"),
                    ("scopes[0]", "organization:read"),
                    ("days", "30"),
                ];
                self.function("create_key", &fields, self.session(way)).await.status == 200
            }
            Door::Linking(way) => self.linking(way).await.is_some(),
            Door::PasswordInApi => {
                let body = json!({"email": ADA, "password": PASSWORD});
                self.opens_session(&self.post("/api/login/", body).await).await
            }
            Door::PasswordOnPage => {
                self.opens_session(&self.function("sign_in", &login, "").await).await
            }
            Door::SignInByGitHub => match through(&self.app).await.1 {
                Some(session) => self.is_open(&session).await,
                None => false,
            },
            Door::SignInBySaml => self.opens_session(&self.by_saml().await).await,
            Door::AskForReset => {
                self.post("/api/reset/", json!({"email": ADA})).await.status == 204
            }
            Door::Reset => {
                let body = json!({"token": self.reset, "password": OTHER_PASSWORD});
                self.post(&format!("/api/reset/{}/", self.user), body).await.status == 200
            }
            Door::InviteInApi => {
                let path = format!("/api/signup/{}/", self.invites[0]);
                let body = json!({"first_name": "Grace", "password": PASSWORD});
                self.post(&path, body).await.status == 201
            }
            Door::InviteOnPage => {
                let fields =
                    [("id", &*self.invites[1]), ("first_name", "Linus"), ("password", PASSWORD)];
                self.function("sign_up", &fields, "").await.status == 200
            }
            Door::Operator => {
                let identity = &self.app.app().services.identity;
                let link = identity.sign_in_link(ADA).await.unwrap().unwrap();
                let link = link.strip_prefix("/login/link/").unwrap();
                let (id, token) = link.split_once("?token=").unwrap();
                let fields = [("id", id), ("token", token)];
                self.opens_session(&self.function("sign_in_by_link", &fields, "").await).await
            }
            Door::OldKey => self.owner.get("/api/organizations/@current/").await.status == 200,
        }
    }
}

/// The token of the link in the mail that sets a new password.
async fn reset_token(sink: &MailSink) -> String {
    let mut wanted = 1;
    loop {
        let all = sink.wait_for(wanted).await;
        let subject = Some("Set a new password on Weir");
        if let Some(mail) = all.iter().find(|mail| mail.header("Subject") == subject) {
            let (_, rest) = mail.text.split_once("?token=").expect("a link");
            return rest.split_whitespace().next().unwrap().to_owned();
        }
        wanted = all.len() + 1;
    }
}

/// What each door does where the domain requires this.
async fn try_doors(text: &str, required: Option<Way>) {
    let it = Instance::start().await;
    it.require(text).await;
    let precheck = it.post("/api/login/precheck/", json!({"email": "x@mail.example"})).await.json();
    let shown = if text.is_empty() { Value::Null } else { json!(text) };
    assert_eq!(precheck, json!({"sso_enforcement": shown, "saml_available": true}));
    for (door, way) in DOORS {
        let expected = required.is_none() || way.is_none() || *way == required;
        assert_eq!(it.opens(*door).await, expected, "{door:?}, where {text:?} is required");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rule_every_door_is_open() {
    try_doors("", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_door_is_closed_but_that_of_the_required_provider() {
    try_doors("saml", Some(Way::Saml)).await;
    try_doors("github", Some(Way::GitHub)).await;
}
