//! Requests that are refused: by their token, their body, or what they ask for.

use http::Method;
use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_store::users;
use weir_testkit::TestApp;

use super::{Provider, USER, assert_refused, new_token, prove};
use crate::domains::verified;

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_of_the_domain_opens_it() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let other = verified(app, "coffee.example").await["id"].as_str().unwrap().to_owned();
    let of_other = new_token(app, &other).await;
    let personal = app.owner().key(&["*"]).await;
    let forged = format!("scim_{}", "x".repeat(48));
    let long = format!("scim_{}", "x".repeat(5000));
    let path = provider.path("/Users");
    for token in [of_other.as_str(), personal.key(), &forged, &long, "x"] {
        for method in [Method::GET, Method::POST] {
            let caller = app.anonymous().with_key(token);
            let answer = caller.call(method, &path).json(&json!({})).send().await;
            assert_refused(&answer, 401, None);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    assert_refused(&app.anonymous().get(&path).await, 401, None);
    // The token opens nothing else, and no other place of a request is searched for it.
    let token = provider.caller.key();
    assert_eq!(provider.caller.get("/api/organizations/").await.status, 401);
    let anonymous = app.anonymous();
    let answer = anonymous.get(&format!("{path}?personal_api_key={token}")).await;
    assert_refused(&answer, 401, None);
    let unknown = "00000000-0000-0000-0000-000000000000";
    for domain in [other.as_str(), "coffee.example", "tea.mail.example", unknown, "%ff"] {
        let answer = provider.caller.get(&format!("/scim/v2/{domain}/Users")).await;
        assert_refused(&answer, 401, None);
    }
    // The domain has its id and its name, for its own token.
    let listed = provider.get("/Users").await;
    assert_eq!(listed.status, 200);
    for name in ["mail.example", "Mail.Example"] {
        let by_name = format!("/scim/v2/{name}/Users");
        assert_eq!(provider.caller.get(&by_name).await.json(), listed.json());
        let of_other = app.anonymous().with_key(&of_other);
        assert_refused(&of_other.get(&by_name).await, 401, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_ends_when_it_is_replaced_revoked_or_its_domain_is_gone() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let next = app.anonymous().with_key(&new_token(app, &provider.domain).await);
    assert_refused(&provider.get("/Users").await, 401, None);
    let path = provider.path("/Users");
    assert_eq!(next.get(&path).await.status, 200);
    let owner = app.owner().key(&["organization:write"]).await;
    let domain = format!("/api/organizations/@current/domains/{}/", provider.domain);
    assert_eq!(owner.delete(&format!("{domain}scim/token/")).await.status, 204);
    assert_refused(&next.get(&path).await, 401, None);

    let last = app.anonymous().with_key(&new_token(app, &provider.domain).await);
    assert_eq!(last.get(&path).await.status, 200);
    let renamed = owner.patch(&domain, &json!({"domain": "coffee.example"})).await;
    assert_eq!(renamed.status, 200, "{:?}", renamed.body);
    assert_refused(&last.get(&path).await, 401, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_whose_record_is_missing_for_long_is_refused() {
    use weir_store::domains::DomainRow;
    let provider = Provider::new().await;
    let lapsed = |row: &DomainRow| {
        let since = row.checked_at.unwrap();
        let row = DomainRow {
            failing_since: Some(since),
            checked_at: Some(since.plus_seconds(8 * 24 * 60 * 60)),
            ..row.clone()
        };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let id = provider.domain.parse().unwrap();
    weir_store::update::update(provider.app.store(), id, (), lapsed).await.unwrap();
    assert_refused(&provider.get("/Users").await, 403, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_must_be_one_of_the_domain() {
    let provider = Provider::new().await;
    for user_name in [
        "grace@elsewhere.example",
        "grace@tea.mail.example",
        "grace@notmail.example",
        "grace",
        "grace@",
        "@mail.example",
        "a b@mail.example",
        "grace@mail.example@elsewhere.example",
        "grace@mail.example.",
        "grace@\u{ff4d}ail.example",
        "grace\u{ff20}mail.example",
    ] {
        let answer = provider.post("/Users", &json!({"userName": user_name})).await;
        assert_refused(&answer, 400, Some("invalidValue"));
    }
    let id = provider.user("grace").await;
    let away = json!([{"op": "replace", "path": "emails[type eq \"work\"].value",
                       "value": "grace@elsewhere.example"}]);
    let answer = provider.patch(&format!("/Users/{id}"), away).await;
    assert_refused(&answer, 400, Some("invalidValue"));
    for elsewhere in ["grace@elsewhere.example", "grace@tea.mail.example", "grace", ""] {
        let user = json!({"userName": "hopper", "emails": [{"value": elsewhere}]});
        assert_refused(&provider.post("/Users", &user).await, 400, Some("invalidValue"));
    }
    // Users have one address.
    let two = json!({"userName": "a@mail.example",
                     "emails": [{"value": "b@mail.example", "primary": true}]});
    assert_refused(&provider.post("/Users", &two).await, 400, Some("invalidValue"));
    assert_eq!(provider.members().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_user_of_another_organization_is_taken_over() {
    let provider = Provider::new().await;
    let app = &provider.app;
    // A user of another organization, one without any, and one whom the operator deactivated.
    let mallory = app.outsider("mallory").await;
    let row = users::get(app.store(), mallory.id()).await.unwrap().unwrap();
    prove(app, row).await;
    let caller = mallory.key(&["*"]).await;
    assert_eq!(caller.post("/api/organizations/", &json!({"name": "Coffee"})).await.status, 201);
    let free = app.outsider("free").await.id().to_string();
    let gone = app.outsider("gone").await;
    let now = app.app().services.clock.now();
    weir_store::members::set_active(app.store(), gone.id(), false, &[], now).await.unwrap();
    for name in ["mallory", "gone"] {
        let user = json!({"userName": format!("{name}@mail.example")});
        assert_refused(&provider.post("/Users", &user).await, 409, Some("uniqueness"));
        assert_eq!(provider.level(name).await, None);
    }
    assert_refused(&provider.get(&format!("/Users/{}", mallory.id())).await, 404, None);
    let rename = json!([{"op": "replace", "path": "userName", "value": "mallory@mail.example"}]);
    assert_eq!(provider.user("free").await, free);
    let answer = provider.patch(&format!("/Users/{free}"), rename).await;
    assert_refused(&answer, 409, Some("uniqueness"));
    // A member is there already, and a user cannot be added twice.
    app.member("grace", Level::Member).await;
    for name in ["grace", "free", "FREE"] {
        let user = json!({"userName": format!("{name}@mail.example")});
        assert_refused(&provider.post("/Users", &user).await, 409, Some("uniqueness"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_organization_reaches_none_of_it() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let (user, group) = (provider.user("grace").await, provider.group("Tea", &[]).await);
    let mallory = app.outsider_with_address("mallory", "m@coffee.example").await;
    let caller = mallory.key(&["*"]).await;
    let made = caller.post("/api/organizations/", &json!({"name": "Coffee"})).await.json();
    let root = format!("/api/organizations/{}/domains/", made["id"].as_str().unwrap());
    let domain = caller.post(&root, &json!({"domain": "coffee.example"})).await.json();
    let challenge = domain["verification_challenge"].as_str().unwrap();
    app.dns().set("_posthog-challenge.coffee.example", weir_testkit::DnsAnswer::txt(challenge));
    let domain = domain["id"].as_str().unwrap();
    let verified = caller.post(&format!("{root}{domain}/verify/"), &json!({})).await;
    assert_eq!(verified.json()["is_verified"], true);
    let token = caller.post(&format!("{root}{domain}/scim/token/"), &json!({})).await.json();
    let theirs = app.anonymous().with_key(token["value"].as_str().unwrap());
    let base = format!("/scim/v2/{domain}");
    for path in [format!("/Users/{user}"), format!("/Groups/{group}")] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let call = theirs.call(method, &format!("{base}{path}"));
            let body = json!({"userName": "grace@coffee.example", "displayName": "x"});
            assert_refused(&call.json(&body).send().await, 404, None);
        }
        assert_refused(&theirs.get(&provider.path(&path)).await, 401, None);
    }
    let member = json!({"displayName": "x", "members": [{"value": user}]});
    let answer = theirs.post(&format!("{base}/Groups"), &member).await;
    assert_refused(&answer, 400, Some("invalidValue"));
    assert_eq!(theirs.get(&format!("{base}/Users")).await.json()["totalResults"], 1);
    // Nor does its administrator.
    for path in ["", "groups/", &format!("groups/{group}/")] {
        let ours = format!(
            "/api/organizations/{}/domains/{}/scim/{path}",
            app.organization(),
            provider.domain
        );
        assert_eq!(caller.get(&ours).await.status, 404);
        assert_eq!(caller.get(&format!("{root}{}/scim/{path}", provider.domain)).await.status, 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_cannot_be_read_are_refused() {
    let provider = Provider::new().await;
    let id = provider.user("grace").await;
    let path = provider.path(&format!("/Users/{id}"));
    let send = async |media: &str, body: String| {
        let call = provider.caller.call(Method::PUT, &path);
        call.header("content-type", media).body(body).send().await
    };
    let good = r#"{"userName": "grace@mail.example"}"#;
    for media in ["application/scim+json", "application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(send(media, good.to_owned()).await.status, 200, "{media}");
    }
    assert_refused(&send("text/plain", good.to_owned()).await, 415, None);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for body in ["", "{", "nothing", deep.as_str()] {
        let answer = send("application/scim+json", body.to_owned()).await;
        assert_refused(&answer, 400, Some("invalidSyntax"));
    }
    for body in ["[]", "7", "null", "\"x\""] {
        let answer = send("application/scim+json", body.to_owned()).await;
        assert_refused(&answer, 400, Some("invalidSyntax"));
    }
    let large = json!({"userName": "grace@mail.example", "title": "x".repeat(1 << 20)});
    assert_refused(&send("application/scim+json", large.to_string()).await, 413, None);
    let many = vec![json!({"op": "remove", "path": "title"}); 1001];
    let answer = provider.patch(&format!("/Users/{id}"), json!(many)).await;
    assert_refused(&answer, 400, Some("tooMany"));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_do_not_fit_are_refused() {
    let provider = Provider::new().await;
    for (field, value) in [
        ("active", json!("maybe")),
        ("active", json!(7)),
        ("externalId", json!(7)),
        ("externalId", json!("x".repeat(1025))),
        ("displayName", json!(["x"])),
        ("name", json!({"givenName": "x".repeat(129)})),
        ("name", json!({"familyName": "x".repeat(151)})),
        ("name", json!({"givenName": {}})),
        ("emails", json!({"value": "x"})),
        ("emails", json!([{"value": 7}])),
        ("userName", Value::Null),
        ("userName", json!("a\u{0}b@mail.example")),
    ] {
        let mut user = json!({"userName": "grace@mail.example"});
        user[field] = value.clone();
        let answer = provider.post("/Users", &user).await;
        assert_refused(&answer, 400, Some("invalidValue"));
    }
    assert_eq!(provider.level("grace").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_made_whole_or_not_at_all() {
    let provider = Provider::new().await;
    let id = provider.user("grace").await;
    let path = format!("/Users/{id}");
    let before = provider.get(&path).await.json();
    for operations in [
        json!([{"op": "replace", "path": "name.givenName", "value": "X"},
               {"op": "replace", "path": "id", "value": "y"}]),
        json!([{"op": "replace", "path": "name.givenName", "value": "X"}, {"op": "remove"}]),
        json!([{"op": "replace", "path": "active", "value": false},
               {"op": "replace", "path": "userName", "value": "ada@mail.example"}]),
    ] {
        let answer = provider.patch(&path, operations).await;
        assert!([400, 409].contains(&answer.status), "{:?}", answer.body);
    }
    assert_eq!(provider.get(&path).await.json(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_and_methods_are_refused_in_the_form_of_the_protocol() {
    let provider = Provider::new().await;
    for path in ["/Users/x/y", "/users"] {
        assert_refused(&provider.get(path).await, 404, None);
    }
    // What belongs to the protocol and is not here (RFC 7644, 3.11 and 3.12).
    for (method, path) in [
        (Method::GET, "/Me"),
        (Method::POST, "/Me"),
        (Method::PUT, "/Me"),
        (Method::PATCH, "/Me"),
        (Method::DELETE, "/Me"),
        (Method::POST, "/Bulk"),
    ] {
        let answer = provider.send(method.clone(), path, &json!({})).await;
        assert_refused(&answer, 501, None);
        let call = provider.app.anonymous().call(method, &provider.path(path));
        assert_refused(&call.send().await, 401, None);
    }
    for id in ["x", "00000000-0000-0000-0000-000000000000", "%2e%2e"] {
        assert_refused(&provider.get(&format!("/Users/{id}")).await, 404, None);
        assert_refused(&provider.get(&format!("/Groups/{id}")).await, 404, None);
    }
    // What is no text names no domain.
    assert_refused(&provider.get("/Users/%ff").await, 401, None);
    for (method, path) in [
        (Method::DELETE, "/Users"),
        (Method::PUT, "/Groups"),
        (Method::POST, "/ServiceProviderConfig"),
        (Method::PATCH, "/Schemas"),
        (Method::GET, "/Bulk"),
    ] {
        let answer = provider.send(method, path, &json!({})).await;
        assert_refused(&answer, 405, None);
    }
    // A slash at the end is optional, as everywhere.
    assert_eq!(provider.get("/Users/").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_has_the_quota_of_a_key() {
    let app = TestApp::start(|config| config.rate_per_minute = 20, |_| {}).await.set_up().await;
    let provider = Provider::of(app).await;
    let mut statuses = Vec::new();
    for _ in 0..21 {
        statuses.push(provider.get("/Users").await.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 20);
    let refused = provider.get("/Users").await;
    assert_refused(&refused, 429, None);
    assert!(refused.header("retry-after").is_some());
    // A new token has no new quota.
    let next = new_token(&provider.app, &provider.domain).await;
    let caller = provider.app.anonymous().with_key(&next);
    assert_refused(&caller.get(&provider.path("/Users")).await, 429, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_user_is_added_or_activated_beyond_the_limit_of_members() {
    let provider = Provider::new().await;
    let grace = provider.user("grace").await;
    let staff = provider.app.owner().key(&["*"]).await;
    let limits = format!("/api/instance/organizations/{}/limits/", provider.app.organization());
    let choose = async |most: i64| {
        let body = json!({"members_limit": most, "members_action": "reject"});
        assert_eq!(staff.patch(&limits, &body).await.status, 200);
    };
    let switch = async |active: bool| {
        let operations = json!([{"op": "replace", "path": "active", "value": active}]);
        provider.patch(&format!("/Users/{grace}"), operations).await
    };
    choose(2).await;
    let joan = json!({"schemas": [USER], "userName": "joan@mail.example"});
    assert_refused(&provider.post("/Users", &joan).await, 400, Some("tooMany"));
    // A deactivated user is no member.
    assert_eq!(switch(false).await.status, 200);
    provider.user("joan").await;
    assert_refused(&switch(true).await, 400, Some("tooMany"));
    assert_eq!(provider.members().await.len(), 2);
    choose(3).await;
    assert_eq!(switch(true).await.status, 200);
    assert_eq!(provider.members().await.len(), 3);
}
