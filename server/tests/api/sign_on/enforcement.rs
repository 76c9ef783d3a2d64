//! Enforcement refuses every other sign-in method (SSO-31): each entry point into an account
//! is tried with each method, where the domain requires nothing, and where it requires each
//! provider.
//!
//! What belongs here: entry points of users. What does not: which user a provider signs in
//! (`saml`, `openid` and the parent module).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_store::users::{self, UserRow};
use weir_testkit::{Answer, Caller, MailSink, Received, TestApp};
use weir_testservers::{SoftPasskey, StandIn, StubAnswer};

use self::SignInMethod::{Passkey, Password, Saml};
use super::identity_provider::{OWN, Says};
use super::saml::{self, ENTITY_ID};
use super::{GitHub, PASSWORD, Provider, get, leads_to, provider_time, set_cookie, stand_in};
use crate::domains::{one, trust_settings, verified};
use crate::web;

const ADA: &str = "ada@mail.example";
const GRACE: &str = "grace@mail.example";
const OTHER_PASSWORD: &str = "kettle-harbour-lichen-7";
const SITE: &str = "http://localhost:8000";
const CLIENT: &str = "weir-client";

/// A method of signing in. A session that it opened, and what is done in the session, belong
/// to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignInMethod {
    Password,
    Passkey,
    /// A provider of the instance, by its name.
    Provider(&'static str),
    Saml,
}

const GOOGLE: SignInMethod = SignInMethod::Provider("google-oauth2");
const GITHUB: SignInMethod = SignInMethod::Provider("github");
const GITLAB: SignInMethod = SignInMethod::Provider("gitlab");
const ISSUER: SignInMethod = SignInMethod::Provider("keycloak");
const METHODS: [SignInMethod; 7] = [Password, Passkey, GOOGLE, GITHUB, GITLAB, ISSUER, Saml];
/// Those that Ada links to her account before the rule comes.
const PROVIDERS: [&str; 4] = ["google-oauth2", "github", "gitlab", "keycloak"];

impl SignInMethod {
    /// The value of `sso_enforcement` that requires it; `None`: no rule can.
    fn rule(self) -> Option<&'static str> {
        match self {
            Password | Passkey => None,
            SignInMethod::Provider(name) => Some(name),
            Saml => Some("saml"),
        }
    }
}

/// A way into an account, or a use of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryPoint {
    SignIn(SignInMethod),
    /// A page in a session that is open when the rule comes.
    Page(SignInMethod),
    /// A new personal key in such a session.
    NewKey(SignInMethod),
    /// Linking another account in such a session.
    Linking(SignInMethod),
    /// Adding a passkey in such a session.
    NewPasskey(SignInMethod),
    SignInInApi,
    /// A sign-in at a provider that creates a user and a member.
    NewUser(SignInMethod),
    /// The link of a mail that confirms the address, and signs in.
    ConfirmAddress,
    /// Confirming the session with the password.
    SignInAgain(SignInMethod),
    /// Another password, with the present one.
    ChangePassword(SignInMethod),
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

/// Each entry point with the method that it belongs to. No rule closes those without one.
fn entry_points() -> Vec<(EntryPoint, Option<SignInMethod>)> {
    let mut all = Vec::new();
    for method in METHODS {
        let own = [
            EntryPoint::Page(method),
            EntryPoint::NewKey(method),
            EntryPoint::Linking(method),
            EntryPoint::SignIn(method),
        ];
        all.extend(own.map(|entry_point| (entry_point, Some(method))));
        // A passkey is refused in each session, and so is a password.
        all.push((EntryPoint::NewPasskey(method), Some(Passkey)));
        all.push((EntryPoint::ChangePassword(method), Some(Password)));
    }
    let through = METHODS.into_iter().filter(|method| method.rule().is_some());
    all.extend(through.map(|method| (EntryPoint::NewUser(method), Some(method))));
    all.extend([
        (EntryPoint::SignInInApi, Some(Password)),
        (EntryPoint::ConfirmAddress, Some(Password)),
        (EntryPoint::InviteInApi, Some(Password)),
        (EntryPoint::InviteOnPage, Some(Password)),
        (EntryPoint::Operator, None),
        (EntryPoint::OldKey, None),
    ]);
    // A confirmed session gets another cookie.
    all.extend(METHODS.map(|method| (EntryPoint::SignInAgain(method), Some(Password))));
    // The last ones: a new password ends all sessions, and a new link the one before.
    all.extend([(EntryPoint::Reset, Some(Password)), (EntryPoint::AskForReset, Some(Password))]);
    all
}

/// An issuer of OpenID Connect. Its codes are the nonces of their logins.
struct Issuer {
    url: String,
    /// The address of its user.
    email: String,
}

async fn issuer() -> StandIn<Issuer> {
    let script = Issuer { url: String::new(), email: ADA.to_owned() };
    let issuer = StandIn::start(script, |Issuer { url, email }, asked| {
        let answer = match asked.path.as_str() {
            "/.well-known/openid-configuration" => json!({
                "issuer": url,
                "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/token"),
                "jwks_uri": format!("{url}/keys"),
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }),
            "/keys" => json!({"keys": [OWN.jwk()]}),
            "/token" => {
                let mut fields = form_urlencoded::parse(&asked.body);
                let nonce = fields.find(|(name, _)| name == "code").expect("a code").1;
                let token = id_token(url, &nonce, email);
                json!({"access_token": "t", "token_type": "Bearer", "id_token": token})
            }
            _ => return Some(StubAnswer::empty(404)),
        };
        Some(StubAnswer::json(200, &answer).with("content-type", "application/json"))
    })
    .await;
    let url = issuer.url();
    issuer.lock().url = url;
    issuer
}

/// A token about the user with this address.
fn id_token(issuer: &str, nonce: &str, email: &str) -> String {
    let now = provider_time().timestamp();
    let claims = json!({
        "iss": issuer,
        "aud": CLIENT,
        "sub": format!("subject of {email}"),
        "nonce": nonce,
        "iat": now,
        "exp": now + 300,
        "email": email,
        "email_verified": true,
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({"alg": "RS256", "typ": "JWT", "kid": "a"});
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = URL_SAFE_NO_PAD.encode(OWN.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// An instance whose owner, Ada, signs in with each method but a passkey, which another
/// member, Grace, has: with a passkey, a password needs a second step. A third member, Hedy,
/// has not confirmed the address yet.
struct Instance {
    app: TestApp,
    owner: Caller,
    github: Provider,
    issuer: StandIn<Issuer>,
    sink: MailSink,
    passkey: SoftPasskey,
    /// A session of each method.
    sessions: Vec<(SignInMethod, String)>,
    /// The user and the token of a link that sets a new password.
    user: String,
    reset: String,
    /// The same of a link that confirms an address.
    unconfirmed: String,
    confirmation: String,
    /// The tokens of two invites.
    invites: Vec<String>,
    /// The path of the domain in the API.
    domain: String,
}

impl Instance {
    async fn start() -> Self {
        let github = stand_in(GitHub { id: 7, email: ADA.to_owned() }).await;
        let issuer = issuer().await;
        let setting = PROVIDERS.map(|name| match name {
            "github" => format!("github id secret {}", github.url()),
            _ => format!("{name} {CLIENT} secret {}", issuer.url()),
        });
        let setting = setting.join(",");
        let sink = MailSink::start().await;
        let mail = sink.url();
        let app = TestApp::start(
            move |config| {
                config.egress_allow = "127.0.0.1".parse().unwrap();
                config.sign_in_providers = setting.parse().unwrap();
                config.public_url = SITE.parse().unwrap();
                config.smtp_url = mail.parse().unwrap();
            },
            |_| {},
        );
        let app = app.await.set_up().await;
        let owner = app.owner().key(&["*"]).await;
        let domain = one(&app, &verified(&app, "mail.example").await);
        saml::connect(&owner, &domain, ENTITY_ID, OWN).await;
        trust_settings(&app, &domain).await;
        let (passkey, of_grace) = with_passkey(&app).await;
        let hedy = app.member("hedy", Level::Member).await;
        let mut it = Self {
            owner,
            github,
            issuer,
            sink,
            passkey,
            sessions: vec![(Password, web::session(&app).await), (Passkey, of_grace)],
            user: app.owner().id().to_string(),
            reset: String::new(),
            unconfirmed: hedy.id().to_string(),
            confirmation: String::new(),
            invites: Vec::new(),
            domain,
            app,
        };
        for name in PROVIDERS {
            let session = it.session(Password).to_owned();
            let query = it.linking(&session, name).await.expect("a link to the provider");
            let linked = it.through(name, &query, &session).await;
            assert_eq!(leads_to(&linked), "/account/security", "{name}");
        }
        for method in [GOOGLE, GITHUB, GITLAB, ISSUER, Saml] {
            let session = it.sign_in(method).await.expect("a session");
            it.sessions.push((method, session));
        }
        for name in ["linus", "barbara"] {
            it.invites.push(invite(&it.owner, name).await);
        }
        assert_eq!(it.post("/api/reset/", json!({"email": ADA})).await.status, 204);
        it.reset = link_token(&it.sink, "Set a new password on Weir").await;
        let asked = json!({"uuid": it.unconfirmed});
        let asked = it.post("/api/users/request_email_verification/", asked).await;
        assert_eq!(asked.status, 200);
        it.confirmation = link_token(&it.sink, "Confirm your address on Weir").await;
        it
    }

    fn session(&self, method: SignInMethod) -> &str {
        &self.sessions.iter().find(|(found, _)| *found == method).unwrap().1
    }

    /// Makes the domain require a method, through the API.
    async fn require(&self, text: &str) {
        let answer = self.owner.patch(&self.domain, &json!({"sso_enforcement": text})).await;
        assert_eq!((answer.status, &answer.json()["sso_enforcement"]), (200, &json!(text)));
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        post(&self.app, path, body).await
    }

    async fn function(&self, name: &str, fields: &[(&str, &str)], cookie: &str) -> Answer {
        function(&self.app, name, fields, cookie).await
    }

    /// Begins and finishes a login at a provider of the instance, in a browser with this
    /// session.
    async fn through(&self, name: &str, query: &str, session: &str) -> Answer {
        let answer = get(&self.app, &format!("/login/{name}/{query}"), session).await;
        let location = leads_to(&answer);
        let (_, asked) = location.split_once('?').expect("a query");
        let field = |name: &str| {
            let mut pairs = form_urlencoded::parse(asked.as_bytes());
            pairs.find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
        };
        let (state, nonce) = (field("state").unwrap(), field("nonce").unwrap_or_default());
        let cookie = format!("{}; {session}", set_cookie(&answer, "pending_login").unwrap());
        let callback = form_urlencoded::Serializer::new(String::new())
            .append_pair("code", if nonce.is_empty() { "c" } else { &nonce })
            .append_pair("state", &state)
            .finish();
        get(&self.app, &format!("/complete/{name}/?{callback}"), &cookie).await
    }

    /// Signs in: the cookie of the session, if one was opened.
    async fn sign_in(&mut self, method: SignInMethod) -> Option<String> {
        let answer = match method {
            Password => {
                let fields = [("email", ADA), ("password", PASSWORD), ("next", "/")];
                self.function("sign_in", &fields, "").await
            }
            Passkey => {
                let begun = self.function("begin_passkey_sign_in", &[], "").await;
                let browser = set_cookie(&begun, "passkey").expect("a browser");
                let answer = self.passkey.answer(begun.json().as_str().unwrap());
                let fields = [("next", "/"), ("answer", &*answer)];
                self.function("sign_in_with_passkey", &fields, &browser).await
            }
            SignInMethod::Provider(_) | Saml => self.as_user(method, ADA).await,
        };
        set_cookie(&answer, "session")
    }

    /// Signs in through a provider, as its user with this address.
    async fn as_user(&self, method: SignInMethod, email: &str) -> Answer {
        let SignInMethod::Provider(name) = method else { return by_saml(&self.app, email).await };
        let id = if email == ADA { 7 } else { 8 };
        *self.github.lock() = GitHub { id, email: email.to_owned() };
        self.issuer.lock().email = email.to_owned();
        self.through(name, "?next=/account", "").await
    }

    /// The query of the link that links a provider, on the Security page of a session.
    async fn linking(&self, session: &str, name: &str) -> Option<String> {
        let page = web::page(&self.app, "/account/security", session).await.text();
        let link = format!("href=\"/login/{name}/");
        let links = page.split(&link).skip(1);
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

    /// Whether an entry point is open.
    async fn is_entry_open(&mut self, entry_point: EntryPoint) -> bool {
        match entry_point {
            EntryPoint::SignIn(method) => match self.sign_in(method).await {
                Some(session) => self.is_open(&session).await,
                None => false,
            },
            EntryPoint::Page(method) => self.is_open(self.session(method)).await,
            EntryPoint::NewKey(method) => {
                let fields = [
                    ("label", "entry point"),
                    ("preset", "custom"),
                    ("scopes[0]", "organization:read"),
                    ("days", "30"),
                ];
                self.function("create_key", &fields, self.session(method)).await.status == 200
            }
            // GitHub is linked to Ada, and can be linked more than once.
            EntryPoint::Linking(method) => {
                self.linking(self.session(method), "github").await.is_some()
            }
            EntryPoint::NewPasskey(method) => {
                let session = self.session(method);
                self.function("begin_adding_passkey", &[], session).await.status == 200
            }
            EntryPoint::SignInInApi => {
                let body = json!({"email": ADA, "password": PASSWORD});
                self.opens_session(&self.post("/api/login/", body).await).await
            }
            EntryPoint::NewUser(method) => {
                let email = format!("new-by-{}@mail.example", method.rule().unwrap());
                let answer = self.as_user(method, &email).await;
                self.opens_session(&answer).await
            }
            EntryPoint::ConfirmAddress => {
                let body = json!({"uuid": self.unconfirmed, "token": self.confirmation});
                self.opens_session(&self.post("/api/users/verify_email/", body).await).await
            }
            EntryPoint::SignInAgain(method) => {
                let fields = [("password", PASSWORD), ("next", "/")];
                let answer = self.function("sign_in_again", &fields, self.session(method)).await;
                self.opens_session(&answer).await
            }
            // Far enough to compare the present password, and not further.
            EntryPoint::ChangePassword(method) => {
                let fields = [("current_password", PASSWORD), ("password", "short")];
                let answer = self.function("change_password", &fields, self.session(method)).await;
                answer.text().contains("password_too_short")
            }
            EntryPoint::AskForReset => {
                self.post("/api/reset/", json!({"email": ADA})).await.status == 204
            }
            EntryPoint::Reset => {
                let body = json!({"token": self.reset, "password": OTHER_PASSWORD});
                self.post(&format!("/api/reset/{}/", self.user), body).await.status == 200
            }
            EntryPoint::InviteInApi => {
                let path = format!("/api/signup/{}/", self.invites[0]);
                let body = json!({"first_name": "Linus", "password": PASSWORD});
                self.post(&path, body).await.status == 201
            }
            EntryPoint::InviteOnPage => {
                let fields =
                    [("id", &*self.invites[1]), ("first_name", "Barbara"), ("password", PASSWORD)];
                self.function("sign_up", &fields, "").await.status == 200
            }
            EntryPoint::Operator => {
                let identity = &self.app.app().services.identity;
                let link = identity.sign_in_link(ADA).await.unwrap().unwrap();
                let link = link.strip_prefix("/login/link/").unwrap();
                let (id, token) = link.split_once("?token=").unwrap();
                let fields = [("id", id), ("token", token)];
                self.opens_session(&self.function("sign_in_by_link", &fields, "").await).await
            }
            EntryPoint::OldKey => {
                self.owner.get("/api/organizations/@current/").await.status == 200
            }
        }
    }
}

async fn post(app: &TestApp, path: &str, body: Value) -> Answer {
    let call = app.anonymous().call(Method::POST, path);
    call.header("sec-fetch-site", "same-origin").json(&body).send().await
}

async fn function(app: &TestApp, name: &str, fields: &[(&str, &str)], cookie: &str) -> Answer {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    web::function(app, name, &body).header("cookie", cookie).send().await
}

/// The token of an invite for this name at the domain.
async fn invite(owner: &Caller, name: &str) -> String {
    let body = json!({"target_email": format!("{name}@mail.example"), "send_email": false});
    let made = owner.post("/api/organizations/@current/invites/", &body).await.json();
    made["token"].as_str().unwrap().to_owned()
}

async fn by_saml(app: &TestApp, email: &str) -> Answer {
    let (cookie, request) = saml::begin_login(app, email, "").await;
    let says = Says::about(&request, ENTITY_ID, email);
    saml::bring(app, &cookie, &request.relay_state, &says.signed()).await
}

/// Grace, who joins by SAML and adds a passkey: her device, and the cookie of a session that
/// it opened. She has the password of Ada too.
async fn with_passkey(app: &TestApp) -> (SoftPasskey, String) {
    let session = set_cookie(&by_saml(app, GRACE).await, "session");
    let session = session.expect("a session");
    let grace = users::by_email(app.store(), GRACE).await.unwrap().unwrap().id;
    let ada = users::by_email(app.store(), ADA).await.unwrap().unwrap();
    let with_password = |row: &UserRow| {
        let row = UserRow { password: ada.password.clone(), ..row.clone() };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let updated = weir_store::update::update(app.store(), grace, (), with_password).await.unwrap();
    assert!(updated.stored().is_some());
    let begun = function(app, "begin_adding_passkey", &[], &session).await;
    let browser = set_cookie(&begun, "passkey").expect("a browser");
    let (mut device, answer) = SoftPasskey::create(begun.json().as_str().unwrap(), SITE);
    let fields = [("name", "Phone"), ("answer", &*answer)];
    let added = function(app, "add_passkey", &fields, &format!("{session}; {browser}")).await;
    assert_eq!(added.status, 200, "{:?}", added.body);
    let begun = function(app, "begin_passkey_sign_in", &[], "").await;
    let browser = set_cookie(&begun, "passkey").expect("a browser");
    let answer = device.answer(begun.json().as_str().unwrap());
    let fields = [("next", "/"), ("answer", &*answer)];
    let opened = function(app, "sign_in_with_passkey", &fields, &browser).await;
    (device, set_cookie(&opened, "session").expect("a session of the passkey"))
}

/// The token of the link in the mail with this subject.
async fn link_token(sink: &MailSink, subject: &str) -> String {
    let mut wanted = 1;
    loop {
        let all = sink.wait_for(wanted).await;
        let is_it = |mail: &&Received| mail.header("Subject") == Some(subject);
        if let Some(mail) = all.iter().find(is_it) {
            let (_, rest) = mail.text.split_once("?token=").expect("a link");
            return rest.split_whitespace().next().unwrap().to_owned();
        }
        wanted = all.len() + 1;
    }
}

/// Tries each entry point where the domain requires this method; `None`: it requires none.
async fn try_entry_points(required: Option<SignInMethod>) {
    let mut it = Instance::start().await;
    let rule = required.map(|method| method.rule().unwrap());
    it.require(rule.unwrap_or_default()).await;
    let precheck = it.post("/api/login/precheck/", json!({"email": "x@mail.example"})).await.json();
    assert_eq!(precheck, json!({"sso_enforcement": rule, "saml_available": true}));
    let me = it.owner.get("/api/users/@me/").await.json();
    assert_eq!(me["has_sso_enforcement"], rule.is_some());
    for (entry_point, method) in entry_points() {
        let expected = required.is_none() || method.is_none() || method == required;
        let is_open = it.is_entry_open(entry_point).await;
        assert_eq!(is_open, expected, "{entry_point:?}, where {rule:?} is required");
    }
    if required.is_some() {
        // Sessions of the other methods have ended. They do not come back with the rule gone.
        it.require("").await;
        for method in METHODS {
            let is_open = it.is_entry_open(EntryPoint::Page(method)).await;
            assert_eq!(is_open, Some(method) == required, "{method:?} after {rule:?}");
        }
        assert!(it.is_entry_open(EntryPoint::SignIn(Password)).await);
        assert!(it.is_entry_open(EntryPoint::SignIn(Passkey)).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rule_every_entry_point_is_open() {
    try_entry_points(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_saml_is_required_every_other_method_is_refused() {
    try_entry_points(Some(Saml)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_google_is_required_every_other_method_is_refused() {
    try_entry_points(Some(GOOGLE)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_github_is_required_every_other_method_is_refused() {
    try_entry_points(Some(GITHUB)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_gitlab_is_required_every_other_method_is_refused() {
    try_entry_points(Some(GITLAB)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_an_issuer_is_required_every_other_method_is_refused() {
    try_entry_points(Some(ISSUER)).await;
}
