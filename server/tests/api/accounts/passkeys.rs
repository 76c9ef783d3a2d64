//! Passkeys over HTTP: adding, renaming and removing them on the Security page, signing in,
//! the second step, and confirming a change. A device in software answers.

use serde_json::json;
use weir_model::domains::SsoEnforcement;
use weir_testkit::Answer;
use weir_testservers::SoftPasskey;

use super::{Instance, ORIGIN, PASSWORD, cookie};
use crate::domains::{enforce, verified};

const ADA: &str = "ada@mail.example";
const SECURITY: &str = "/account/security";

/// The options that a function returns, and the cookie of the browser.
fn asked(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let browser = cookie(answer);
    assert!(browser.starts_with("__Host-passkey="), "{browser}");
    (answer.json().as_str().unwrap().to_owned(), browser)
}

fn both(one: &str, other: &str) -> String {
    format!("{one}; {other}")
}

impl Instance {
    /// Adds a passkey in a session: the device, and the answer.
    async fn add_passkey(&self, session: &str, name: &str) -> (SoftPasskey, Answer) {
        let (options, browser) = asked(&self.act("begin_adding_passkey", &[], session).await);
        let (device, answer) = SoftPasskey::create(&options, ORIGIN);
        let fields = [("name", name), ("answer", answer.as_str())];
        (device, self.act("add_passkey", &fields, &both(session, &browser)).await)
    }

    /// Ada's device, the cookie of her session, and her recovery codes.
    async fn with_passkey(&self) -> (SoftPasskey, String, Vec<String>) {
        let session = self.session(ADA, PASSWORD).await;
        let (device, added) = self.add_passkey(&session, "Phone").await;
        assert_eq!(added.status, 200, "{:?}", added.body);
        assert_eq!(added.header("location"), Some("/account/security/codes"));
        let session = cookie(&added);
        let shown = self.act("reveal_recovery_codes", &[], &session).await.json();
        let codes = shown.as_str().unwrap().lines().map(str::to_owned).collect();
        (device, session, codes)
    }

    /// Answers a challenge of `begin`, with these cookies, to `end`.
    async fn answer(
        &self,
        device: &mut SoftPasskey,
        [begin, end]: [&str; 2],
        fields: &[(&str, &str)],
        cookies: &str,
    ) -> Answer {
        let (options, browser) = asked(&self.act(begin, &[], cookies).await);
        let answer = device.answer(&options);
        let fields = [fields, &[("answer", answer.as_str())]].concat();
        self.act(end, &fields, &both(cookies, &browser)).await
    }

    async fn sign_in_with(&self, device: &mut SoftPasskey) -> Answer {
        let functions = ["begin_passkey_sign_in", "sign_in_with_passkey"];
        self.answer(device, functions, &[("next", "/account")], "").await
    }
}

/// The code of the error of a server function.
fn code(answer: &Answer) -> String {
    let text = answer.text();
    assert!(answer.status >= 400, "{text}");
    let codes = ["passkey_refused", "passkey_expired", "passkey_missing", "sso_enforced"];
    codes.into_iter().find(|code| text.contains(code)).unwrap_or("other").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passkey_signs_in_without_a_name_and_a_password() {
    let instance = Instance::open().await;
    let other = instance.session(ADA, PASSWORD).await;
    let (mut device, session, codes) = instance.with_passkey().await;
    assert_eq!(codes.len(), 10);
    assert!(!instance.is_open(&other).await, "it has not seen the second factor");
    let entry = instance.audit_entries().await;
    assert_eq!(entry[0], ("passkey".to_owned(), json!(null), json!("Phone")));
    assert_eq!(entry[1], ("is_2fa_enabled".to_owned(), json!(false), json!(true)));
    let mail = instance.mail(ADA, "A passkey was added to your account on Weir").await;
    assert!(mail.contains("without the password"), "{mail}");

    let page = instance.text("/login?next=/account", "").await;
    assert!(page.contains("Sign in with a passkey") && page.contains("/passkeys.js"), "{page}");
    assert!(page.contains("data-passkey=\"/_fn/begin_passkey_sign_in\""), "{page}");
    let policy = instance.visit("/login", "").await;
    let features = policy.header("permissions-policy").unwrap();
    assert!(features.contains("publickey-credentials-get=(self)"), "{features}");
    let opened = instance.sign_in_with(&mut device).await;
    assert_eq!((opened.status, opened.header("location")), (200, Some("/account")));
    let opened = cookie(&opened);
    assert!(instance.is_open(&opened).await && instance.is_open(&session).await);
    let page = instance.text(SECURITY, &opened).await;
    assert!(page.contains("Phone") && page.contains("10 recovery codes are left."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_once_and_in_its_browser() {
    let instance = Instance::open().await;
    let (mut device, ..) = instance.with_passkey().await;
    let (options, browser) = asked(&instance.act("begin_passkey_sign_in", &[], "").await);
    let answer = device.answer(&options);
    let fields = [("next", "/"), ("answer", answer.as_str())];
    let refused = instance.act("sign_in_with_passkey", &fields, "").await;
    assert_eq!(code(&refused), "passkey_expired", "another browser");
    assert_eq!(refused.header("set-cookie"), None);
    let opened = instance.act("sign_in_with_passkey", &fields, &browser).await;
    assert_eq!(opened.status, 200, "{:?}", opened.body);
    let again = instance.act("sign_in_with_passkey", &fields, &browser).await;
    assert_eq!(code(&again), "passkey_expired", "a replay");

    let (options, browser) = asked(&instance.act("begin_passkey_sign_in", &[], "").await);
    let answer = device.answer(&options);
    instance.clock.advance(5 * 60);
    let fields = [("next", "/"), ("answer", answer.as_str())];
    let late = instance.act("sign_in_with_passkey", &fields, &browser).await;
    assert_eq!(code(&late), "passkey_expired");
    // Another site can neither begin nor end it.
    for name in ["begin_passkey_sign_in", "sign_in_with_passkey"] {
        let call = instance.function(name, "").header("sec-fetch-site", "cross-site");
        assert_eq!(call.send().await.status, 403, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_devices_are_refused() {
    type Flaw = fn(&mut SoftPasskey);
    let instance = Instance::open().await;
    let (mut device, session, _) = instance.with_passkey().await;
    let flaws: [(&str, Flaw); 5] = [
        ("another origin", |device| device.origin = "https://evil.example".to_owned()),
        ("another relying party", |device| device.rp_id = "evil.example".to_owned()),
        ("a user who is not verified", |device| device.verifies = false),
        ("another user", |device| device.handle = Some(vec![1; 16])),
        ("another key", |device| device.id = vec![1; 32]),
    ];
    for (what, flaw) in flaws {
        let mut hostile = device.copied();
        flaw(&mut hostile);
        let refused = instance.sign_in_with(&mut hostile).await;
        assert_eq!(code(&refused), "passkey_refused", "{what}");
        assert_eq!(refused.header("set-cookie"), None, "{what}");
    }
    let reader = instance.app.owner().key(&["activity_log:read"]).await;
    // A copy of the device: its counter is behind.
    let mut copy = device.copied();
    assert_eq!(instance.sign_in_with(&mut device).await.status, 200);
    assert_eq!(code(&instance.sign_in_with(&mut copy).await), "passkey_refused");
    let page = instance.text(SECURITY, &session).await;
    assert!(page.contains("There may be a copy of it"), "{page}");
    let path = format!("/api/organizations/{}/activity_log/", instance.app.organization());
    let log = reader.get(&path).await.json();
    let mut entries = log["results"].as_array().unwrap().iter();
    assert!(entries.any(|entry| entry["activity"] == "sign_in_refused"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passkey_is_the_second_step() {
    let instance = Instance::open().await;
    let (mut device, _, codes) = instance.with_passkey().await;
    let pending = instance.begin().await;
    let page = instance.text("/login/2fa?next=/account", &pending).await;
    assert!(page.contains("Use your passkey") && page.contains("Use a recovery code"), "{page}");
    assert!(!page.contains("one-time-code"), "there is no app: {page}");
    let functions = ["begin_passkey_step", "end_sign_in_with_passkey"];
    let next = [("next", "/account")];
    let opened = instance.answer(&mut device, functions, &next, &pending).await;
    assert_eq!((opened.status, opened.header("location")), (200, Some("/account")));
    assert!(instance.is_open(&cookie(&opened)).await);
    // The sign-in waits no longer.
    let fields = [("next", "/account"), ("answer", "{}")];
    let late = instance.act("end_sign_in_with_passkey", &fields, &pending).await;
    assert_eq!(late.header("location"), Some("/login?late=yes&next=/account"));
    // Of the API, which has no passkeys, a recovery code is asked for.
    let pending = instance.begin().await;
    assert_eq!(instance.end("123456", &pending).await.error().2, "2fa_invalid");
    assert_eq!(instance.end(&codes[0], &pending).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn passkeys_are_named_and_removed() {
    let instance = Instance::open().await;
    let (mut device, session, _) = instance.with_passkey().await;
    let listed = instance.act("list_passkeys", &[], &session).await.json();
    let id = listed["passkeys"][0]["id"].as_str().unwrap().to_owned();
    let rename = async |name: &str| {
        let fields = [("id", id.as_str()), ("new_name", name)];
        instance.act("rename_passkey", &fields, &session).await.status
    };
    assert_eq!(rename("Old phone").await, 200);
    assert_eq!(rename("").await, 400);
    assert_eq!(rename(&"n".repeat(65)).await, 400);
    assert!(instance.text(SECURITY, &session).await.contains("Old phone"));

    let removed = instance.act("remove_passkey", &[("id", id.as_str())], &session).await;
    assert_eq!((removed.status, removed.header("location")), (200, Some(SECURITY)));
    assert!(!instance.is_open(&session).await && instance.is_open(&cookie(&removed)).await);
    assert_eq!(code(&instance.sign_in_with(&mut device).await), "passkey_refused");
    let mail = instance.mail(ADA, "The last passkey was removed from your account on Weir").await;
    assert!(mail.contains("the password alone signs you in"), "{mail}");
    instance.session(ADA, PASSWORD).await;
    let entry = instance.audit_entries().await;
    assert_eq!(entry[0], ("passkey".to_owned(), json!("Old phone"), json!(null)));
    for name in ["list_passkeys", "begin_adding_passkey", "add_passkey", "remove_passkey"] {
        let fields = [("id", id.as_str()), ("name", "x"), ("answer", "{}")];
        assert_eq!(instance.act(name, &fields, "").await.status, 401, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passkey_confirms_a_change() {
    let instance = Instance::open().await;
    let (mut device, session, _) = instance.with_passkey().await;
    instance.clock.advance(16 * 60);
    let refused = instance.act("begin_adding_passkey", &[], &session).await;
    assert!(refused.status == 403 && refused.text().contains("SignInAgain"));
    // A form without scripts waits for the confirmation.
    let new = "/account/keys/new";
    let fields = [("label", "Rooibos"), ("preset", "read"), ("days", "30"), ("back", new)];
    let waits = instance.submit("create_key", &fields, &session).await;
    let confirm = waits.header("location").unwrap().to_owned();
    assert!(confirm.starts_with("/login/again?next="), "{confirm}");
    let held = confirm.split_once("held=").unwrap().1.to_owned();
    let page = instance.text(&confirm, &session).await;
    assert!(page.contains("Confirm with a passkey"), "{page}");
    let (options, browser) =
        asked(&instance.act("begin_passkey_confirmation", &[], &session).await);
    let answer = device.answer(&options);
    let fields = [
        ("next", new),
        ("held", held.as_str()),
        ("back", confirm.as_str()),
        ("answer", answer.as_str()),
    ];
    let cookies = both(&session, &browser);
    let done = instance.submit("sign_in_again_with_passkey", &fields, &cookies).await;
    assert_eq!(done.header("location"), Some("/account/keys/reveal"));
    assert!(instance.text("/account/keys", &cookie(&done)).await.contains("Rooibos"));
}

/// The browser has no scripts, or the script could not make a challenge.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_without_an_answer_says_what_is_missing() {
    let instance = Instance::open().await;
    let session = instance.session(ADA, PASSWORD).await;
    let page = instance.text(SECURITY, &session).await;
    assert!(page.contains("Passkeys need scripts."), "{page}");
    for (name, cookies) in [("sign_in_with_passkey", ""), ("add_passkey", session.as_str())] {
        let fields = [("next", "/"), ("name", "a"), ("back", "/login")];
        let led = instance.submit(name, &fields, cookies).await;
        let location = led.header("location").unwrap();
        assert!(location.contains("passkey_missing"), "{name}: {location}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_requires_a_provider_refuses_passkeys() {
    let instance = Instance::open().await;
    let (mut device, session, codes) = instance.with_passkey().await;
    let opened = cookie(&instance.sign_in_with(&mut device).await);
    verified(&instance.app, "mail.example").await;
    // The password was right before the rule came.
    let pending = instance.begin().await;
    enforce(&instance.app, "mail.example", SsoEnforcement::Saml).await;
    assert!(!instance.is_open(&opened).await && !instance.is_open(&session).await);
    assert_eq!(code(&instance.sign_in_with(&mut device).await), "sso_enforced");
    let functions = ["begin_passkey_step", "end_sign_in_with_passkey"];
    let step = instance.answer(&mut device, functions, &[("next", "/")], &pending).await;
    assert_eq!(code(&step), "sso_enforced");
    assert_eq!(instance.end(&codes[0], &pending).await.error().2, "sso_enforced");
    // Nothing was used up.
    enforce(&instance.app, "mail.example", SsoEnforcement::Off).await;
    assert_eq!(instance.end(&codes[0], &pending).await.status, 200);
}
