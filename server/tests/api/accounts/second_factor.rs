//! The second factor: signing in through the API and the web app, turning it on and off,
//! organizations that require it; and the list of a user's sessions.

use hmac::{Hmac, Mac as _};
use http::Method;
use serde_json::{Value, json};
use sha1::Sha1;
use weir_model::Timestamp;
use weir_model::domains::SsoEnforcement;
use weir_testkit::Answer;

use super::{Instance, OTHER_PASSWORD, PASSWORD, cookie};
use crate::domains::{enforce, verified};

const ADA: &str = "ada@mail.example";
const STEP: i64 = 30;

/// The code that an authenticator app with this secret (base32) shows.
pub(crate) fn code(secret: &str, now: Timestamp) -> String {
    let mac = Hmac::<Sha1>::new_from_slice(&unbase32(secret)).unwrap();
    let step = now.micros() / 1_000_000 / STEP;
    let tag = mac.chain_update(step.to_be_bytes()).finalize().into_bytes();
    let at = usize::from(tag[19] & 15);
    let number = u32::from_be_bytes(tag[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

fn unbase32(text: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let (mut bytes, mut rest, mut bits) = (Vec::new(), 0_usize, 0);
    for digit in text.bytes() {
        rest = rest << 5 | alphabet.iter().position(|known| *known == digit).unwrap();
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(rest >> bits).unwrap());
            rest &= (1 << bits) - 1;
        }
    }
    bytes
}

/// The second factor of a user.
struct Factor {
    secret: String,
    codes: Vec<String>,
    /// The cookie of the session in which it was turned on.
    session: String,
}

fn encoded(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

impl Instance {
    /// Calls a server function as a script of the app's own page.
    pub(super) async fn act(&self, name: &str, fields: &[(&str, &str)], cookie: &str) -> Answer {
        self.function(name, &encoded(fields)).header("cookie", cookie).send().await
    }

    /// Sends a form as a browser without scripts does.
    pub(super) async fn submit(&self, name: &str, fields: &[(&str, &str)], cookie: &str) -> Answer {
        let call = self.function(name, &encoded(fields)).header("accept", "text/html");
        call.header("cookie", cookie).send().await
    }

    pub(super) async fn visit(&self, path: &str, cookie: &str) -> Answer {
        self.anonymous().call(Method::GET, path).header("cookie", cookie).send().await
    }

    pub(super) async fn text(&self, path: &str, cookie: &str) -> String {
        let answer = self.visit(path, cookie).await;
        assert_eq!(answer.status, 200, "{path}");
        answer.text()
    }

    /// The code for this many seconds from now.
    fn code(&self, factor: &Factor, seconds: i64) -> String {
        code(&factor.secret, self.clock.now().plus_seconds(seconds))
    }

    /// A code that is not valid now.
    fn wrong(&self, factor: &Factor) -> String {
        let near = [-STEP, 0, STEP].map(|seconds| self.code(factor, seconds));
        let mut codes = (0_u32..).map(|number| format!("{number:06}"));
        codes.find(|code| !near.contains(code)).unwrap()
    }

    async fn turn_on(&self, session: &str) -> Factor {
        let begun = self.act("begin_second_factor", &[], session).await;
        assert_eq!(begun.status, 200, "{:?}", begun.body);
        let waiting = self.act("get_enrolment", &[], session).await.json();
        let secret = waiting["secret"].as_str().unwrap().to_owned();
        let now = code(&secret, self.clock.now());
        let confirmed = self.act("confirm_second_factor", &[("code", now.as_str())], session).await;
        assert_eq!(confirmed.status, 200, "{:?}", confirmed.body);
        let session = cookie(&confirmed);
        let shown = self.act("reveal_recovery_codes", &[], &session).await.json();
        let codes = shown.as_str().unwrap().lines().map(str::to_owned).collect();
        assert_eq!(self.act("reveal_recovery_codes", &[], &session).await.json(), Value::Null);
        // The code that turned it on cannot be used again.
        self.clock.advance(STEP);
        Factor { secret, codes, session }
    }

    /// Turns on Ada's second factor.
    async fn with_factor(&self) -> Factor {
        let session = self.session(ADA, PASSWORD).await;
        self.turn_on(&session).await
    }

    /// The cookie of a sign-in of Ada that waits for a code.
    pub(super) async fn begin(&self) -> String {
        let answer = self.login(ADA, PASSWORD).await;
        answer.assert_error(401, "server_error", "2fa_required", "2FA is required.");
        cookie(&answer)
    }

    pub(super) async fn end(&self, token: &str, pending: &str) -> Answer {
        let call = self.anonymous().call(Method::POST, "/api/login/token/");
        call.header("cookie", pending).json(&json!({"token": token})).send().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_opens_no_session_before_the_code() {
    let instance = Instance::open().await;
    let factor = instance.with_factor().await;
    let pending = instance.begin().await;
    assert!(pending.starts_with("__Host-pending="), "{pending}");
    assert!(!instance.is_open(&pending).await);
    let as_session = pending.replace("__Host-pending", "__Host-session");
    assert!(!instance.is_open(&as_session).await);

    for (token, cookie, code) in [
        (instance.wrong(&factor), pending.as_str(), "2fa_invalid"),
        (instance.code(&factor, 0), "", "2fa_expired"),
        (instance.code(&factor, 0), "__Host-pending=x.y", "2fa_expired"),
        (String::new(), pending.as_str(), "blank"),
    ] {
        let refused = instance.end(&token, cookie).await;
        assert_eq!((refused.status, refused.error().2.as_str()), (400, code));
        assert_eq!(refused.header("set-cookie"), None);
    }
    let now = instance.code(&factor, 0);
    let call =
        instance.anonymous().call(Method::POST, "/api/login/token/").header("cookie", &pending);
    let call = call.header("sec-fetch-site", "cross-site").json(&json!({"token": now}));
    assert_eq!(call.send().await.status, 403, "another site sends no code");

    let answer = instance.end(&now, &pending).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"success": true})));
    assert!(instance.is_open(&cookie(&answer)).await);
    // Neither the code nor the sign-in works a second time.
    assert_eq!(
        instance.end(&instance.code(&factor, STEP), &pending).await.error().2,
        "2fa_expired"
    );
    let pending = instance.begin().await;
    assert_eq!(instance.end(&now, &pending).await.error().2, "2fa_invalid");
    let first = factor.codes.first().unwrap();
    assert_eq!(instance.end(first, &pending).await.status, 200);
    let pending = instance.begin().await;
    assert_eq!(instance.end(first, &pending).await.error().2, "2fa_invalid");
    instance.clock.advance(10 * 60);
    assert_eq!(instance.end(&instance.code(&factor, 0), &pending).await.error().2, "2fa_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_opens_no_session_where_a_provider_is_required_since() {
    let instance = Instance::open().await;
    let factor = instance.with_factor().await;
    verified(&instance.app, "mail.example").await;
    let pending = instance.begin().await;
    enforce(&instance.app, "mail.example", SsoEnforcement::Saml).await;
    for code in [&instance.code(&factor, 0), &factor.codes[0]] {
        let answer = instance.end(code, &pending).await;
        let detail = "You can only login with SSO for this account (saml).";
        answer.assert_field_error(400, "validation_error", "sso_enforced", detail, None);
        assert_eq!(answer.header("set-cookie"), None);
    }
    enforce(&instance.app, "mail.example", SsoEnforcement::Off).await;
    assert_eq!(instance.end(&instance.code(&factor, 0), &pending).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_are_slowed_down() {
    let instance = Instance::open().await;
    let factor = instance.with_factor().await;
    let pending = instance.begin().await;
    for _ in 0..5 {
        assert_eq!(instance.end(&instance.wrong(&factor), &pending).await.error().2, "2fa_invalid");
    }
    let slowed = instance.end(&instance.code(&factor, 0), &pending).await;
    assert_eq!((slowed.status, slowed.header("retry-after")), (429, Some("60")));
    // The password has a separate counter.
    let pending = instance.begin().await;
    instance.clock.advance(60);
    assert_eq!(instance.end(&instance.code(&factor, 0), &pending).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_ask_for_the_code() {
    let instance = Instance::open().await;
    let factor = instance.with_factor().await;
    let asked = instance.visit("/login/2fa?next=/account", "").await;
    assert_eq!((asked.status, asked.header("location")), (303, Some("/login?next=/account")));

    let fields = [("email", ADA), ("password", PASSWORD), ("next", "/account"), ("back", "/login")];
    let answer = instance.submit("sign_in", &fields, "").await;
    let page = "/login/2fa?next=/account";
    assert_eq!((answer.status, answer.header("location")), (303, Some(page)));
    let pending = cookie(&answer);
    let text = instance.text(page, &pending).await;
    assert!(text.contains("one-time-code") && text.contains("Use a recovery code"), "{text}");
    assert!(!text.contains("Codes depend on the time"), "{text}");

    for _ in 0..2 {
        let wrong = instance.wrong(&factor);
        let fields = [("code", wrong.as_str()), ("next", "/account"), ("back", page)];
        let answer = instance.submit("end_sign_in", &fields, &pending).await;
        let location = answer.header("location").unwrap();
        assert!(location.starts_with(page) && location.contains("__err="), "{location}");
        let kept = answer.header("set-cookie").unwrap_or_default();
        assert!(!kept.contains(&wrong), "{kept}");
    }
    assert!(instance.text(page, &pending).await.contains("Codes depend on the time"));
    let now = instance.code(&factor, 0);
    let fields = [("code", now.as_str()), ("next", "/account"), ("back", page)];
    let answer = instance.submit("end_sign_in", &fields, &pending).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/account")));
    let session = cookie(&answer);
    assert!(instance.is_open(&session).await);
    // A signed-in user is redirected, and an expired sign-in is reported.
    let answer = instance.visit(page, &session).await;
    assert_eq!(answer.header("location"), Some("/account"));
    let late = "/login?late=yes&next=/account";
    assert_eq!(instance.visit(page, &pending).await.header("location"), Some(late));
    assert!(instance.text(late, "").await.contains("The code came too late"));
    let answer = instance.submit("end_sign_in", &fields, &pending).await;
    assert_eq!(answer.header("location"), Some(late));

    let pending = instance.begin().await;
    let recovery = factor.codes.first().unwrap().as_str();
    let fields = [("recovery_code", recovery), ("next", "/account"), ("back", page)];
    let answer = instance.submit("end_sign_in_recovering", &fields, &pending).await;
    assert!(instance.is_open(&cookie(&answer)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn turning_it_on_and_off_ends_what_was_open() {
    let instance = Instance::open().await;
    let other = instance.session(ADA, PASSWORD).await;
    let this = instance.session(ADA, PASSWORD).await;
    let reader = instance.app.owner().key(&["organization_member:read", "user:read"]).await;
    let members = format!("/api/organizations/{}/members/", instance.app.organization());
    let shown = async || {
        let listed = reader.get(&members).await.json()["results"][0]["is_2fa_enabled"].clone();
        json!([listed, reader.get("/api/users/@me/").await.json()["is_2fa_enabled"]])
    };
    assert_eq!(shown().await, json!([false, false]));
    assert!(instance.text("/account/security", &this).await.contains("Set up two-step sign-in"));
    let page = "/account/security/two-step";
    assert!(instance.text(page, &this).await.contains("No set-up is in progress"));
    instance.act("begin_second_factor", &[], &this).await;
    let text = instance.text(page, &this).await;
    assert!(text.contains("class=\"qr\"") && text.contains("Enter the code"), "{text}");

    let factor = instance.turn_on(&this).await;
    assert_eq!(shown().await, json!([true, true]));
    assert_eq!(
        instance.audit_entries().await,
        [("is_2fa_enabled".to_owned(), json!(false), json!(true))]
    );
    assert!(!instance.is_open(&other).await && !instance.is_open(&this).await);
    assert!(instance.is_open(&factor.session).await);
    let text = instance.text("/account/security", &factor.session).await;
    assert!(text.contains("10 recovery codes are left."), "{text}");
    let text = instance.mail(ADA, "An authenticator app was added to your account on Weir").await;
    assert!(text.contains("a code of this app signs you in."), "{text}");
    let fields = [("code", factor.codes[0].as_str())];
    let renewed = instance.act("renew_recovery_codes", &fields, &factor.session).await;
    assert_eq!(renewed.status, 200, "{:?}", renewed.body);
    let text = instance.mail(ADA, "The recovery codes of your account on Weir were replaced").await;
    assert!(text.contains("The previous ones do not work any more."), "{text}");
    let pending = instance.begin().await;

    let disable = async |code: &str| {
        instance.act("disable_second_factor", &[("last_code", code)], &factor.session).await
    };
    assert_eq!(disable(&instance.wrong(&factor)).await.status, 400);
    let off = disable(&instance.code(&factor, 0)).await;
    assert_eq!(off.status, 200, "{:?}", off.body);
    assert!(instance.is_open(&cookie(&off)).await && !instance.is_open(&factor.session).await);
    assert_eq!(shown().await, json!([false, false]));
    let text = instance.mail(ADA, "Two-step sign-in on Weir was turned off").await;
    assert!(text.contains("The password alone signs you in now."), "{text}");
    // A sign-in that waited for the old factor does not work with a new one.
    let again = instance.session(ADA, PASSWORD).await;
    let factor = instance.turn_on(&again).await;
    assert_eq!(instance.end(&instance.code(&factor, 0), &pending).await.error().2, "2fa_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn changing_it_wants_a_recent_sign_in() {
    let instance = Instance::open().await;
    let session = instance.session(ADA, PASSWORD).await;
    instance.clock.advance(16 * 60);
    for (name, fields) in [
        ("begin_second_factor", &[][..]),
        ("get_enrolment", &[][..]),
        ("confirm_second_factor", &[("code", "123456")][..]),
        ("renew_recovery_codes", &[("code", "123456")][..]),
        ("disable_second_factor", &[("last_code", "123456")][..]),
    ] {
        let answer = instance.act(name, fields, &session).await;
        let audit_entries = String::from_utf8_lossy(&answer.body);
        assert!(
            answer.status == 403 && audit_entries.contains("SignInAgain"),
            "{name}: {audit_entries}"
        );
    }
    for name in ["begin_second_factor", "get_second_factor", "list_sessions", "end_other_sessions"]
    {
        assert_eq!(instance.act(name, &[], "").await.status, 401, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_that_asks_for_it_leads_its_members_there() {
    let instance = Instance::open().await;
    let session = instance.session(ADA, PASSWORD).await;
    let writer = instance.app.owner().key(&["organization:write", "project:read"]).await;
    let path = format!("/api/organizations/{}/", instance.app.organization());
    let answer = writer.patch(&path, &json!({"enforce_2fa": true})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let live = format!("/projects/{}/events", instance.app.project());
    let organization = format!("/organizations/{}", instance.app.organization());
    for page in [&live, &organization] {
        let answer = instance.visit(page, &session).await;
        let led = (answer.status, answer.header("location"));
        assert_eq!(led, (303, Some("/account/security")), "{page}");
    }
    let text = instance.text("/account/security", &session).await;
    assert!(text.contains("Two-step sign-in is required by"), "{text}");
    let stream = format!("/_live/{}", instance.app.project());
    instance.visit(&stream, &session).await.assert_error(
        403,
        "authentication_error",
        "two_factor_setup_required",
        "2FA setup required",
    );
    // Missing pages stay missing, and keys still work.
    assert_eq!(instance.visit("/projects/4711/events", &session).await.status, 404);
    assert_eq!(writer.get(&format!("/api/projects/{}/", instance.app.project())).await.status, 200);

    let factor = instance.turn_on(&session).await;
    for page in [&live, &organization] {
        assert_eq!(instance.visit(page, &factor.session).await.status, 200, "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_shown_and_ended() {
    let instance = Instance::open().await;
    let (other, third) =
        (instance.session(ADA, PASSWORD).await, instance.session(ADA, PASSWORD).await);
    let this = instance.session(ADA, PASSWORD).await;
    let listed = instance.act("list_sessions", &[], &this).await.json();
    let ids: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), &listed[0]["is_this"]), (3, &json!(true)));
    let missing = instance.act("end_session", &[("id", "0123456789abcdef")], &this).await;
    assert_eq!(missing.status, 404);
    let ended = instance.act("end_session", &[("id", ids[1])], &this).await;
    assert_eq!(ended.status, 200, "{:?}", ended.body);
    let left = [instance.is_open(&other).await, instance.is_open(&third).await];
    assert_eq!(left.iter().filter(|open| **open).count(), 1);
    let ended = instance.act("end_other_sessions", &[], &this).await;
    assert_eq!(ended.status, 200, "{:?}", ended.body);
    assert!(!instance.is_open(&other).await && !instance.is_open(&third).await);
    assert!(instance.is_open(&this).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_changed_on_the_page() {
    let instance = Instance::open().await;
    let (other, this) =
        (instance.session(ADA, PASSWORD).await, instance.session(ADA, PASSWORD).await);
    let page = "/account/security";
    let change = async |current: &str, chosen: &str| {
        let fields = [("current_password", current), ("password", chosen), ("back", page)];
        instance.submit("change_password", &fields, &this).await
    };
    let refused = change("not the password", OTHER_PASSWORD).await;
    let location = refused.header("location").unwrap();
    assert!(location.contains("__err="), "{location}");
    let kept = refused.header("set-cookie").unwrap_or_default();
    assert!(!kept.contains("password="), "{kept}");
    let text = instance.text(location, &this).await;
    assert!(text.contains("This is not the present password"), "{text}");

    let changed = change(PASSWORD, OTHER_PASSWORD).await;
    let done = "/account/security?__done=/_fn/change_password";
    assert_eq!(changed.header("location"), Some(done), "{:?}", changed.body);
    let session = cookie(&changed);
    assert!(instance.text(done, &session).await.contains("Password changed"));
    assert!(!instance.is_open(&other).await && !instance.is_open(&this).await);
    assert_eq!(instance.login(ADA, PASSWORD).await.status, 400);
    instance.session(ADA, OTHER_PASSWORD).await;
    let audit_entries: Vec<String> =
        instance.audit_entries().await.into_iter().map(|(field, ..)| field).collect();
    assert_eq!(audit_entries, ["password"]);
    instance.mail(ADA, "Your password on Weir was changed").await;
}
