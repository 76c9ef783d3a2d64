//! Creating, reading, replacing, changing and removing users.

use http::Method;
use serde_json::{Value, json};
use weir_model::organizations::Level;

use super::{Provider, USER, assert_refused, id_of};

/// The user of RFC 7643, 8.2, with an address of the domain.
fn bjensen() -> Value {
    json!({
        "schemas": [USER],
        "externalId": "701984",
        "userName": "bjensen@mail.example",
        "name": {
            "formatted": "Ms. Barbara J Jensen, III",
            "familyName": "Jensen",
            "givenName": "Barbara",
            "middleName": "Jane",
            "honorificPrefix": "Ms.",
            "honorificSuffix": "III"
        },
        "displayName": "Babs Jensen",
        "nickName": "Babs",
        "profileUrl": "https://login.example.com/bjensen",
        "emails": [
            {"value": "bjensen@mail.example", "type": "work", "primary": true},
            {"value": "babs@jensen.example", "type": "home"}
        ],
        "addresses": [{"type": "work", "locality": "Hollywood", "primary": true}],
        "phoneNumbers": [{"value": "555-555-5555", "type": "work"}],
        "title": "Tour Guide",
        "active": true,
        "password": "t1meMa$heen",
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "Tour"}
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_of_the_rfc_becomes_a_member() {
    let provider = Provider::new().await;
    let created = provider.post("/Users", &bjensen()).await;
    let id = id_of(&created);
    let location = created.header("location").unwrap().to_owned();
    assert_eq!(created.header("content-type"), Some("application/scim+json"));
    assert!(location.ends_with(&provider.path(&format!("/Users/{id}"))), "{location}");
    assert!(location.starts_with("http://"), "{location}");
    let body = created.json();
    assert_eq!(created.header("etag"), body["meta"]["version"].as_str());
    assert_eq!(
        body,
        json!({
            "schemas": [USER],
            "id": id,
            "externalId": "701984",
            "userName": "bjensen@mail.example",
            "name": {"formatted": "Barbara Jensen", "familyName": "Jensen", "givenName": "Barbara"},
            "displayName": "Babs Jensen",
            "active": true,
            "emails": [{"value": "bjensen@mail.example", "type": "work", "primary": true}],
            "groups": [],
            "meta": {
                "resourceType": "User",
                "created": body["meta"]["created"],
                "lastModified": body["meta"]["lastModified"],
                "location": location,
                "version": body["meta"]["version"],
            },
        })
    );
    assert_eq!(provider.get(&format!("/Users/{id}")).await.json(), body);
    assert_eq!(provider.level("bjensen").await, Some(1));
    // What the answer does not show is not kept: the password opens nothing.
    let login = json!({"email": "bjensen@mail.example", "password": "t1meMa$heen"});
    let call = provider.app.anonymous().call(Method::POST, "/api/login/");
    let answer = call.header("sec-fetch-site", "same-origin").json(&login).send().await;
    assert_eq!(answer.status, 400, "{:?}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_that_a_user_needs_is_an_address() {
    let provider = Provider::new().await;
    let id = provider.user("li.ng").await;
    let user = provider.get(&format!("/Users/{id}")).await.json();
    assert_eq!(user["name"], json!({"formatted": "li.ng", "givenName": "li.ng"}));
    assert_eq!(user["active"], true);
    assert_eq!(user.get("externalId"), None);
    assert_eq!(user.get("displayName"), None);
}

/// The form of RFC 7643, 8.1: a name, and the address beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_beside_the_address_is_kept() {
    let provider = Provider::new().await;
    let named = |name: &str, email: &str| {
        json!({"userName": name, "emails": [
            {"value": "home@elsewhere.example", "type": "home"},
            {"value": email, "primary": true},
        ]})
    };
    let created = provider.post("/Users", &named("bjensen", "barbara@mail.example")).await;
    let path = format!("/Users/{}", id_of(&created));
    let names = |user: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&user["userName"]), text(&user["emails"][0]["value"]))
    };
    let are = |name: &str, email: &str| (name.to_owned(), email.to_owned());
    assert_eq!(names(&created.json()), are("bjensen", "barbara@mail.example"));
    assert_eq!(provider.get(&path).await.json(), created.json());
    assert_eq!(provider.level("barbara").await, Some(1));
    // The name finds the user in any case, and the address is no userName.
    for (name, count) in [("BJensen", 1), ("barbara%40mail.example", 0)] {
        let found = provider.get(&format!("/Users?filter=userName%20eq%20%22{name}%22")).await;
        assert_eq!(found.json()["totalResults"], count, "{name}");
    }
    let other = named("BJENSEN", "babs@mail.example");
    assert_refused(&provider.post("/Users", &other).await, 409, Some("uniqueness"));
    let other = named("another", "barbara@mail.example");
    assert_refused(&provider.post("/Users", &other).await, 409, Some("uniqueness"));
    assert_eq!(provider.level("babs").await, None);

    let rename = async |name: &str| {
        provider.patch(&path, json!([{"op": "replace", "path": "userName", "value": name}])).await
    };
    assert_eq!(names(&rename("bj").await.json()), are("bj", "barbara@mail.example"));
    // The former name is free for another user.
    let second = id_of(&provider.post("/Users", &named("bjensen", "babs@mail.example")).await);
    assert_refused(&rename("Bjensen").await, 409, Some("uniqueness"));
    assert_eq!(names(&provider.get(&path).await.json()), are("bj", "barbara@mail.example"));
    assert_eq!(provider.delete(&format!("/Users/{second}")).await.status, 204);
    assert_eq!(names(&rename("Bjensen").await.json()), are("Bjensen", "barbara@mail.example"));

    // The address that is not sent stays, and an address of the domain is both.
    let replaced = provider.put(&path, &json!({"userName": "bj"})).await;
    assert_eq!(names(&replaced.json()), are("bj", "barbara@mail.example"));
    let both = rename("jensen@mail.example").await.json();
    assert_eq!(names(&both), are("jensen@mail.example", "jensen@mail.example"));
    assert_eq!(provider.level("jensen").await, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_replaced() {
    let provider = Provider::new().await;
    let id = id_of(&provider.post("/Users", &bjensen()).await);
    let path = format!("/Users/{id}");
    let new = json!({
        "schemas": [USER], "userName": "barbara@mail.example",
        "name": {"givenName": "Barbara", "familyName": "Smith"},
    });
    let answer = provider.put(&path, &new).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let user = answer.json();
    assert_eq!(user["userName"], "barbara@mail.example");
    assert_eq!(user["emails"][0]["value"], "barbara@mail.example");
    assert_eq!(user["name"]["familyName"], "Smith");
    // What is not sent is unassigned, but a user is active until the provider says no.
    assert_eq!((user.get("externalId"), user.get("displayName")), (None, None));
    assert_eq!(user["active"], true);
    assert_eq!(provider.get(&path).await.json(), user);
    assert_eq!(provider.level("bjensen").await, None);
    assert_eq!(provider.level("barbara").await, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_before_are_users_too() {
    let provider = Provider::new().await;
    let grace = provider.app.member("grace", Level::Administrator).await;
    let eve = provider.app.outsider_with_address("eve", "eve@elsewhere.example").await;
    provider.app.join(&eve, Level::Member).await;
    let path = format!("/Users/{}", grace.id());
    let user = provider.get(&path).await.json();
    assert_eq!(user["userName"], "grace@mail.example");
    let linked =
        provider.patch(&path, json!([{"op": "add", "path": "externalId", "value": "g-1"}])).await;
    assert_eq!((linked.status, &linked.json()["externalId"]), (200, &json!("g-1")));
    assert_eq!(provider.level("grace").await, Some(8), "the level stays");
    // A member with an address of another domain is none of its users.
    assert_refused(&provider.get(&format!("/Users/{}", eve.id())).await, 404, None);
    let found = provider.get("/Users").await.json();
    assert_eq!(found["totalResults"], 2, "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_user_is_a_member_no_more_and_can_come_back() {
    let provider = Provider::new().await;
    let id = provider.user("grace").await;
    let path = format!("/Users/{id}");
    let answer = provider.delete(&path).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(provider.level("grace").await, None);
    for answer in [
        provider.get(&path).await,
        provider.delete(&path).await,
        provider.put(&path, &json!({"userName": "grace@mail.example"})).await,
        provider.patch(&path, json!([{"op": "replace", "path": "active", "value": true}])).await,
    ] {
        assert_refused(&answer, 404, None);
    }
    // The user of Weir stayed, and becomes a member again.
    assert_eq!(provider.user("grace").await, id);
    assert_eq!(provider.level("grace").await, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_decides_about_the_level_and_is_used_up() {
    let provider = Provider::new().await;
    let owner = provider.app.owner().key(&["organization_member:write"]).await;
    let path = "/api/organizations/@current/invites/";
    let invite = json!({"target_email": "grace@mail.example", "level": 8});
    assert_eq!(owner.post(path, &invite).await.status, 201);
    provider.user("grace").await;
    assert_eq!(provider.level("grace").await, Some(8));
    let reader = provider.app.owner().key(&["organization_member:read"]).await;
    assert_eq!(reader.get(path).await.json()["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_protects_from_overwriting() {
    let provider = Provider::new().await;
    let id = provider.user("grace").await;
    let path = provider.path(&format!("/Users/{id}"));
    let first = provider.caller.get(&path).await;
    let version = first.header("etag").unwrap().to_owned();
    assert!(version.starts_with("W/\""), "{version}");
    let strong = version.trim_start_matches("W/");
    for same in [version.as_str(), strong, "*", &format!("\"other\", {version}")] {
        let known = provider.caller.call(Method::GET, &path).header("if-none-match", same);
        let known = known.send().await;
        assert_eq!((known.status, known.body.len()), (304, 0), "{same}");
        assert_eq!(known.header("etag"), Some(version.as_str()), "{same}");
    }
    let other = provider.caller.call(Method::GET, &path).header("if-none-match", "W/\"other\"");
    assert_eq!(other.send().await.status, 200);

    let change = async |version: &str, name: &str| {
        let user = json!({"userName": "grace@mail.example", "name": {"givenName": name}});
        let call = provider.caller.call(Method::PUT, &path).header("if-match", version);
        call.json(&user).send().await
    };
    let changed = change(&version, "Grace").await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    assert_ne!(changed.header("etag"), Some(version.as_str()));
    assert_refused(&change(&version, "Other").await, 412, None);
    let delete = provider.caller.call(Method::DELETE, &path).header("if-match", &version);
    assert_refused(&delete.send().await, 412, None);
    assert_eq!(change("*", "Hopper").await.status, 200);
    let present = provider.caller.get(&path).await;
    assert_eq!(present.json()["name"]["givenName"], "Hopper");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_in_the_activity_log_with_the_token() {
    let provider = Provider::new().await;
    let id = provider.user("grace").await;
    let path = format!("/Users/{id}");
    let name = json!([{"op": "replace", "path": "name.familyName", "value": "Hopper"}]);
    provider.patch(&path, name.clone()).await;
    // The same again is no change.
    provider.patch(&path, name).await;
    for active in [false, true] {
        let change = json!([{"op": "replace", "path": "active", "value": active}]);
        assert_eq!(provider.patch(&path, change).await.status, 200);
    }
    provider.delete(&path).await;
    let log = provider.app.owner().key(&["activity_log:read"]).await;
    let log_path = "/api/organizations/@current/activity_log/?scope=OrganizationMembership";
    let entries = log.get(log_path).await.json();
    let entries = entries["results"].as_array().unwrap();
    let actions: Vec<_> = entries.iter().map(|entry| entry["activity"].as_str().unwrap()).collect();
    assert_eq!(
        actions.get(..5),
        Some(["deleted", "enabled", "disabled", "updated", "created"].as_slice())
    );
    for entry in &entries[..5] {
        assert_eq!(entry["scim_token"]["label"], "mail.example", "{entry}");
        assert_eq!(entry["scim_token"]["id"], provider.domain.as_str());
        assert_eq!((&entry["user"], &entry["is_system"]), (&Value::Null, &json!(false)));
        assert_eq!(entry["detail"]["name"], "grace@mail.example");
    }
    let text = entries[3]["detail"]["changes"].to_string();
    assert!(text.contains("last_name") && text.contains("Hopper"), "{text}");
    assert!(!entries[4].to_string().contains(provider.caller.key()));
}
