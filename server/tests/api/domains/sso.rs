//! The effect of an enforced provider (API-40): signing in through the API and the web
//! app, signing up with an invite, and the answer of the precheck.

use http::Method;
use serde_json::{Value, json};
use weir_model::domains::SsoEnforcement;
use weir_model::organizations::Level;
use weir_model::sso::ProviderName;
use weir_testkit::{Answer, Caller, TestApp};

use super::{claim, enforce, one, owner, trust_settings, verified};
use crate::organization_pages::newcomer;
use crate::web;

const PASSWORD: &str = "plum-otter-violin-93";

/// A call from the app's own page, with the browser's headers.
async fn post(app: &TestApp, path: &str, body: &Value) -> Answer {
    let call = app.anonymous().call(Method::POST, path).header("sec-fetch-site", "same-origin");
    call.json(body).send().await
}

async fn precheck(app: &TestApp, email: &str) -> Value {
    let answer = app.anonymous().post("/api/login/precheck/", &json!({"email": email})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_precheck_reveals_the_domain_and_no_users() {
    let app = TestApp::with_owner().await;
    let free = json!({"sso_enforcement": null, "saml_available": false});
    assert_eq!(precheck(&app, "ada@mail.example").await, free);
    verified(&app, "mail.example").await;
    assert_eq!(precheck(&app, "ada@mail.example").await, free);
    enforce(&app, "mail.example", SsoEnforcement::Saml).await;
    let bound = json!({"sso_enforcement": "saml", "saml_available": true});
    for email in ["ada@mail.example", "unknown@mail.example", "ADA@Mail.Example"] {
        assert_eq!(precheck(&app, email).await, bound, "{email}");
    }
    assert_eq!(precheck(&app, "ada@tea.mail.example").await, free);
    for (body, code, detail) in [
        (json!({}), "required", "This field is required."),
        (json!({"email": "ada"}), "invalid_input", "Enter a valid email address."),
    ] {
        let answer = app.anonymous().post("/api/login/precheck", &body).await;
        answer.assert_field_error(400, "validation_error", code, detail, Some("email"));
    }
    // A provider that is not set up is not required.
    enforce(&app, "mail.example", SsoEnforcement::Provider(ProviderName::GITHUB)).await;
    let free_with_saml = json!({"sso_enforcement": null, "saml_available": true});
    assert_eq!(precheck(&app, "ada@mail.example").await, free_with_saml);
    // Only a verified domain has an effect.
    claim(&app, "coffee.example").await;
    enforce(&app, "coffee.example", SsoEnforcement::Saml).await;
    assert_eq!(precheck(&app, "ada@coffee.example").await, free);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_refused_but_keys_keep_working() {
    let app = TestApp::with_owner().await;
    let key = app.owner().key(&["organization:read"]).await;
    verified(&app, "mail.example").await;
    let login = async |email: &str, password: &str| {
        post(&app, "/api/login/", &json!({"email": email, "password": password})).await
    };
    assert_eq!(login("ada@mail.example", PASSWORD).await.status, 200);
    enforce(&app, "mail.example", SsoEnforcement::Saml).await;

    for (email, password) in [
        ("ada@mail.example", PASSWORD),
        ("ada@MAIL.example", "no"),
        ("unknown@mail.example", "no"),
        // The same address with a full-width letter.
        ("ada@\u{ff4d}ail.example", PASSWORD),
    ] {
        let answer = login(email, password).await;
        let detail = "You can only login with SSO for this account (saml).";
        answer.assert_field_error(400, "validation_error", "sso_enforced", detail, None);
        assert_eq!(answer.header("set-cookie"), None);
    }
    let form = "email=ada%40mail.example&password=plum-otter-violin-93&next=%2F";
    let call = app.anonymous().call(Method::POST, "/_fn/sign_in");
    let answer = call
        .header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin")
        .body(form)
        .send()
        .await;
    assert_eq!(answer.header("set-cookie"), None, "{:?}", answer.body);
    let audit_entries = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(audit_entries.contains("You can only login with SSO"), "{audit_entries}");
    assert_eq!(key.get("/api/organizations/").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_creates_no_user_with_a_password() {
    let app = TestApp::with_owner().await;
    verified(&app, "mail.example").await;
    let inviter = app.owner().key(&["organization_member:write"]).await;
    let body = json!({"target_email": "grace@mail.example"});
    let invite = inviter.post("/api/organizations/@current/invites/", &body).await.json();
    let link = format!("/api/signup/{}/", invite["token"].as_str().unwrap());
    let account = json!({"first_name": "Grace", "password": PASSWORD});
    enforce(&app, "mail.example", SsoEnforcement::Saml).await;
    let detail = "Sign up with a password is disabled because SSO login is enforced for this \
                  domain. Please log in with your SSO credentials.";
    let answer = post(&app, &link, &account).await;
    answer.assert_field_error(400, "validation_error", "sso_enforced", detail, None);
    enforce(&app, "mail.example", SsoEnforcement::Off).await;
    assert_eq!(post(&app, &link, &account).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_impact_names_who_could_no_longer_sign_in() {
    let providers = "github id secret".parse().unwrap();
    let app = TestApp::start(|config| config.sign_in_providers = providers, |_| {}).await;
    let app = app.set_up().await;
    let domain = verified(&app, "mail.example").await;
    let reader = app.owner().key(&["organization_member:read"]).await;
    let path = format!("{}impact/", one(&app, &domain));
    let impact = reader.get(&path).await;
    let way = |locks_out: bool| {
        json!({
            "sso_enforcement": "github",
            "proved": [],
            "unproved": ["ada@mail.example"],
            "locks_out_owners": locks_out,
        })
    };
    let expected = json!({
        "members": ["ada@mail.example"],
        "includes_you": true,
        "owners_elsewhere": [],
        "ways": [way(true)],
    });
    assert_eq!((impact.status, impact.json()), (200, expected));
    let caller = app.owner().key(&["organization:read"]).await;
    let domain = caller.get(&one(&app, &domain)).await.json();
    assert_eq!((&domain["sso_enforcement"], &domain["warnings"]), (&json!(""), &json!([])));

    // An owner elsewhere can still sign in.
    let other = app.outsider_with_address("linus", "linus@elsewhere.example").await;
    app.join(&other, Level::Owner).await;
    let impact = reader.get(&path).await.json();
    assert_eq!(impact["owners_elsewhere"], json!(["linus@elsewhere.example"]));
    assert_eq!(impact["ways"], json!([way(false)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_locks_out_all_owners_is_warned() {
    let providers = "github id secret".parse().unwrap();
    let app = TestApp::start(|config| config.sign_in_providers = providers, |_| {}).await;
    let app = app.set_up().await;
    let domain = verified(&app, "mail.example").await;
    let path = one(&app, &domain);
    let (caller, reader) = (owner(&app).await, app.owner().key(&["*"]).await);
    let of = |domain: &Value, code: &str| {
        let warnings = domain["warnings"].as_array().unwrap().iter();
        let found = warnings.filter(|warning| warning["code"] == code);
        let found = found.map(|warning| {
            assert_eq!(warning["attr"], "sso_enforcement");
            warning["detail"].as_str().unwrap().to_owned()
        });
        found.collect::<Vec<_>>()
    };
    let set = async |caller: &Caller, way: &str| {
        let answer = caller.patch(&path, &json!({"sso_enforcement": way})).await;
        let domain = answer.json();
        assert_eq!((answer.status, &domain["sso_enforcement"]), (200, &json!(way)), "{domain}");
        domain
    };
    // A key that may not read members learns how many there are.
    let names = [
        (&caller, "any more: 1 of the members whom impact/ lists."),
        (&reader, "any more: ada@mail.example."),
    ];
    for (caller, who) in names {
        let changed = set(caller, "github").await;
        let detail = of(&changed, "would_lock_out").pop().unwrap();
        assert!(detail.contains(who), "{detail}");
        assert!(detail.contains("weir user sign-in-link"), "{detail}");
        // The provider does not sign in who is above a key.
        let detail = of(&changed, "settings_by_key").pop().unwrap();
        assert!(detail.contains("not sign in administrators, owners"), "{detail}");
        // The first warning is about the change, the second one about what is stored.
        let stored = caller.get(&path).await.json();
        assert!(of(&stored, "would_lock_out").is_empty(), "{stored}");
        assert_eq!(of(&stored, "settings_by_key").len(), 1, "{stored}");
        let cleared = set(caller, "").await;
        assert_eq!(cleared["warnings"], json!([]));
    }
    // Nothing is confirmed with a name, and an owner elsewhere can still sign in.
    let body = json!({"sso_enforcement": "github", "confirmed_name": "mail.example"});
    let changed = caller.patch(&path, &body).await.json();
    assert_eq!(of(&changed, "would_lock_out").len(), 1, "{changed}");
    set(&caller, "").await;
    let other = app.outsider_with_address("linus", "linus@elsewhere.example").await;
    app.join(&other, Level::Owner).await;
    assert!(of(&set(&caller, "github").await, "would_lock_out").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_warns_of_a_lock_out_and_of_a_rule_that_a_key_saved() {
    let providers = "github id secret".parse().unwrap();
    let app = TestApp::start(|config| config.sign_in_providers = providers, |_| {}).await;
    let app = app.set_up().await;
    let domain = verified(&app, "mail.example").await;
    let caller = owner(&app).await;
    // The rule ends no session of an address elsewhere.
    let cookie = newcomer(&app, "linus@elsewhere.example", Level::Administrator).await;
    let id = domain["id"].as_str().unwrap();
    let path = format!("/organizations/{}/domains/{id}", app.organization());
    // The page has the same texts as data too.
    let warnings = ["<p>An API key saved this rule", "<strong>Perhaps no owner can sign in."];
    for (way, is_warned) in [("", false), ("github", true), ("", false)] {
        let answer = caller.patch(&one(&app, &domain), &json!({"sso_enforcement": way})).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let page = web::page(&app, &path, &cookie).await;
        assert_eq!(page.status, 200);
        for warning in warnings {
            assert_eq!(page.text().contains(warning), is_warned, "{warning}, {way}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_turns_provisioning_on_reads_whom_google_does_not_sign_in() {
    let warnings = |domain: &Value| {
        let all = domain["warnings"].as_array().unwrap().iter();
        let both = all.map(|warning| (warning["attr"].clone(), warning["code"].clone()));
        both.collect::<Vec<_>>()
    };
    let of = |attr: &str| vec![(json!(attr), json!("settings_by_key"))];
    let jit = json!({"jit_provisioning_enabled": true});
    let start = async |providers: &str| {
        let providers = providers.parse().unwrap();
        let app = TestApp::start(|config| config.sign_in_providers = providers, |_| {}).await;
        app.set_up().await
    };
    // No other provider signs in users who exist because of this setting.
    let app = start("github id secret").await;
    let path = one(&app, &verified(&app, "mail.example").await);
    let changed = owner(&app).await.patch(&path, &jit).await.json();
    assert_eq!(changed["jit_provisioning_enabled"], json!(true));
    assert_eq!(changed["warnings"], json!([]));

    let app = start("google-oauth2 id secret").await;
    let domain = verified(&app, "mail.example").await;
    let (path, caller) = (one(&app, &domain), owner(&app).await);
    let changed = caller.patch(&path, &jit).await.json();
    assert_eq!(warnings(&changed), of("jit_provisioning_enabled"));
    let detail = changed["warnings"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("Google does not sign in administrators, owners"), "{detail}");
    let id = domain["id"].as_str().unwrap();
    let page = format!("/organizations/{}/domains/{id}", app.organization());
    // The rule below ends no session of an address elsewhere.
    let cookie = newcomer(&app, "linus@elsewhere.example", Level::Administrator).await;
    let text = web::page(&app, &page, &cookie).await.text();
    assert!(text.contains("<p>An API key saved the rules of this domain"), "{text}");
    // Other settings decide where a way of signing in is required.
    let required = caller.patch(&path, &json!({"sso_enforcement": "google-oauth2"})).await.json();
    let kept = |(_, code): &(Value, Value)| *code == json!("settings_by_key");
    let by_key: Vec<_> = warnings(&required).into_iter().filter(kept).collect();
    assert_eq!(by_key, of("sso_enforcement"));
    caller.patch(&path, &json!({"sso_enforcement": ""})).await;

    trust_settings(&app, &path).await;
    assert!(warnings(&caller.get(&path).await.json()).is_empty());
    let text = web::page(&app, &page, &cookie).await.text();
    assert!(!text.contains("<p>An API key saved"), "{text}");
}
