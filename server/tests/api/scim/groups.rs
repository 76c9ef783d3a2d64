//! Groups, and the levels that they give.

use http::Method;
use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_testkit::Answer;

use super::{GROUP, Provider, assert_refused, id_of};

/// Sets the level of a group as an owner.
async fn map(provider: &Provider, group: &str, level: Value) -> Answer {
    let owner = provider.app.owner().key(&["organization_member:write"]).await;
    let domain = &provider.domain;
    let path = format!("/api/organizations/@current/domains/{domain}/scim/groups/{group}/");
    owner.patch(&path, &json!({"level": level})).await
}

async fn add(provider: &Provider, group: &str, user: &str) -> Answer {
    let value = json!([{"op": "add", "path": "members", "value": [{"value": user}]}]);
    provider.patch(&format!("/Groups/{group}"), value).await
}

async fn remove(provider: &Provider, group: &str, user: &str) -> Answer {
    let path = format!("members[value eq \"{user}\"]");
    provider.patch(&format!("/Groups/{group}"), json!([{"op": "remove", "path": path}])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_made_read_replaced_and_deleted() {
    let provider = Provider::new().await;
    let (grace, alan) = (provider.user("grace").await, provider.user("alan").await);
    // The group of RFC 7643, 8.4.
    let group = json!({
        "schemas": [GROUP],
        "externalId": "e9e30dba-f08f-4109-8486-d5c6a331660a",
        "displayName": "Tour Guides",
        "members": [{"value": grace, "display": "Grace"}, {"value": alan}, {"value": grace}],
    });
    let created = provider.post("/Groups", &group).await;
    let id = id_of(&created);
    let body = created.json();
    let mut ids = [grace.clone(), alan.clone()];
    ids.sort();
    let base = body["meta"]["location"].as_str().unwrap().replace(&format!("/Groups/{id}"), "");
    let member =
        |id: &String| json!({"value": id, "$ref": format!("{base}/Users/{id}"), "type": "User"});
    assert_eq!(
        body,
        json!({
            "schemas": [GROUP],
            "id": id,
            "externalId": "e9e30dba-f08f-4109-8486-d5c6a331660a",
            "displayName": "Tour Guides",
            "members": ids.iter().map(member).collect::<Vec<_>>(),
            "meta": {
                "resourceType": "Group",
                "created": body["meta"]["created"],
                "lastModified": body["meta"]["lastModified"],
                "location": body["meta"]["location"],
                "version": body["meta"]["version"],
            },
        })
    );
    let path = format!("/Groups/{id}");
    assert_eq!(provider.get(&path).await.json(), body);
    let user = provider.get(&format!("/Users/{grace}")).await.json();
    assert_eq!(
        user["groups"],
        json!([{"value": id, "$ref": body["meta"]["location"], "display": "Tour Guides",
                "type": "direct"}])
    );
    let replaced = provider.put(&path, &json!({"displayName": "Guides"})).await.json();
    assert_eq!((&replaced["members"], replaced.get("externalId")), (&json!([]), None));
    assert_eq!(provider.delete(&path).await.status, 204);
    for answer in [provider.get(&path).await, provider.delete(&path).await] {
        assert_refused(&answer, 404, None);
    }
    assert_eq!(provider.get(&format!("/Users/{grace}")).await.json()["groups"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_level_a_group_changes_nothing() {
    let provider = Provider::new().await;
    let grace = provider.app.member("grace", Level::Administrator).await.id().to_string();
    let group = provider.group("Tea", &[&grace]).await;
    assert_eq!(provider.level("grace").await, Some(8));
    remove(&provider, &group, &grace).await;
    assert_eq!(provider.level("grace").await, Some(8));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_highest_level_of_the_groups_counts_while_one_gives_it() {
    let provider = Provider::new().await;
    let grace = provider.user("grace").await;
    let staff = provider.group("Staff", &[&grace]).await;
    let admins = provider.group("Admins", &[]).await;
    let mapped = map(&provider, &admins, json!(8)).await;
    assert_eq!((mapped.status, &mapped.json()["level"]), (200, &json!(8)));
    assert_eq!(map(&provider, &staff, json!(1)).await.status, 200);
    assert_eq!(provider.level("grace").await, Some(1));
    add(&provider, &admins, &grace).await;
    assert_eq!(provider.level("grace").await, Some(8));
    remove(&provider, &staff, &grace).await;
    assert_eq!(provider.level("grace").await, Some(8));
    remove(&provider, &admins, &grace).await;
    assert_eq!(provider.level("grace").await, Some(1), "no group gives a level any more");
    // Deleting a group, and taking its level away, have the same effect.
    add(&provider, &admins, &grace).await;
    assert_eq!(provider.delete(&format!("/Groups/{admins}")).await.status, 204);
    assert_eq!(provider.level("grace").await, Some(1));
    let admins = provider.group("Admins", &[&grace]).await;
    map(&provider, &admins, json!(8)).await;
    assert_eq!(provider.level("grace").await, Some(8));
    map(&provider, &admins, Value::Null).await;
    assert_eq!(provider.level("grace").await, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_make_no_owners_and_change_none() {
    let provider = Provider::new().await;
    let ada = provider.app.owner().id().to_string();
    let group = provider.group("Tea", &[&ada]).await;
    let answer = map(&provider, &group, json!(15)).await;
    let detail = "\"15\" is not a valid choice.";
    answer.assert_field_error(400, "validation_error", "invalid_choice", detail, Some("level"));
    assert_eq!(map(&provider, &group, json!(1)).await.status, 200);
    assert_eq!(provider.level("ada").await, Some(15));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_activated_user_gets_the_level_of_the_groups() {
    let provider = Provider::new().await;
    let grace = provider.user("grace").await;
    let admins = provider.group("Admins", &[&grace]).await;
    map(&provider, &admins, json!(8)).await;
    let switch = async |active: bool| {
        let change = json!([{"op": "replace", "path": "active", "value": active}]);
        let answer = provider.patch(&format!("/Users/{grace}"), change).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    };
    switch(false).await;
    switch(true).await;
    assert_eq!(provider.level("grace").await, Some(8));
    switch(false).await;
    remove(&provider, &admins, &grace).await;
    switch(true).await;
    assert_eq!(provider.level("grace").await, Some(1));
    // Removed from the organization: also from the groups.
    add(&provider, &admins, &grace).await;
    provider.delete(&format!("/Users/{grace}")).await;
    let group = provider.get(&format!("/Groups/{admins}")).await.json();
    assert_eq!(group["members"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_has_users_of_the_domain_only() {
    let provider = Provider::new().await;
    let eve = provider.app.outsider_with_address("eve", "eve@elsewhere.example").await;
    provider.app.join(&eve, Level::Member).await;
    let outsider = provider.app.outsider("mallory").await;
    let group = provider.group("Tea", &[]).await;
    for id in [eve.id().to_string(), outsider.id().to_string(), group.clone(), "x".to_owned()] {
        assert_refused(&add(&provider, &group, &id).await, 400, Some("invalidValue"));
    }
    for body in
        [json!({}), json!({"displayName": " "}), json!({"displayName": "x", "members": "y"})]
    {
        assert_refused(&provider.post("/Groups", &body).await, 400, Some("invalidValue"));
    }
    let many: Vec<Value> = (0..5001).map(|n| json!({"value": n.to_string()})).collect();
    let body = json!({"displayName": "x", "members": many});
    assert_refused(&provider.post("/Groups", &body).await, 400, Some("tooMany"));
    let remove = json!([{"op": "remove", "path": "displayName"}]);
    let answer = provider.patch(&format!("/Groups/{group}"), remove).await;
    assert_refused(&answer, 400, Some("mutability"));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_groups_and_levels_are_in_the_activity_log() {
    let provider = Provider::new().await;
    let grace = provider.user("grace").await;
    let group = provider.group("Tea", &[]).await;
    map(&provider, &group, json!(8)).await;
    add(&provider, &group, &grace).await;
    let log = provider.app.owner().key(&["activity_log:read"]).await;
    let path = "/api/organizations/@current/activity_log/?scope=";
    let groups = log.get(&format!("{path}ScimGroup")).await.json();
    let groups = groups["results"].as_array().unwrap();
    let actions: Vec<_> = groups.iter().map(|entry| entry["activity"].as_str().unwrap()).collect();
    assert_eq!(actions, ["updated", "updated", "created"]);
    let text = groups[0].to_string();
    assert!(text.contains("members_added") && text.contains("grace@mail.example"), "{text}");
    assert_eq!(groups[1]["scim_token"], Value::Null, "an administrator set the level");
    assert_eq!(groups[1]["user"]["email"], "ada@mail.example");
    let levels = log.get(&format!("{path}OrganizationMembership")).await.json();
    let newest = &levels["results"][0];
    assert_eq!(newest["scim_token"]["label"], "mail.example");
    let change = &newest["detail"]["changes"][0];
    assert_eq!((&change["before"], &change["after"]), (&json!(1), &json!(8)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_protects_a_group() {
    let provider = Provider::new().await;
    let grace = provider.user("grace").await;
    let group = provider.group("Tea", &[]).await;
    let path = provider.path(&format!("/Groups/{group}"));
    let version = provider.caller.get(&path).await.header("etag").unwrap().to_owned();
    add(&provider, &group, &grace).await;
    for method in [Method::PUT, Method::DELETE] {
        let call = provider.caller.call(method, &path).header("if-match", &version);
        let answer = call.json(&json!({"displayName": "x"})).send().await;
        assert_refused(&answer, 412, None);
    }
}
