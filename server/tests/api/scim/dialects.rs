//! What Okta and Entra send, in their order.

use http::Method;
use serde_json::json;

use super::{GROUP, PATCH, Provider, USER, id_of};

#[tokio::test(flavor = "multi_thread")]
async fn okta_adds_changes_and_deactivates_a_user() {
    let provider = Provider::new().await;
    let find =
        "/Users?filter=userName%20eq%20%22Grace.Hopper%40Mail.Example%22&startIndex=1&count=100";
    let none = provider.get(find).await.json();
    assert_eq!((&none["totalResults"], &none["Resources"]), (&json!(0), &json!([])));
    let created = provider
        .post(
            "/Users",
            &json!({
                "schemas": [USER],
                "userName": "grace.hopper@mail.example",
                "name": {"givenName": "Grace", "familyName": "Hopper"},
                "emails": [{"primary": true, "value": "grace.hopper@mail.example", "type": "work"}],
                "displayName": "Grace Hopper",
                "locale": "en-US",
                "externalId": "00ujl29u0le5T6Aj10h7",
                "groups": [],
                "password": "1mz050nq",
                "active": true
            }),
        )
        .await;
    let id = id_of(&created);
    let found = provider.get(find).await.json();
    assert_eq!(found["totalResults"], 1);
    assert_eq!(found["Resources"][0]["id"], id.as_str());

    let path = format!("/Users/{id}");
    let mut profile = provider.get(&path).await.json();
    profile["name"]["familyName"] = json!("Murray Hopper");
    profile["emails"][0]["type"] = json!("work");
    let replaced = provider.put(&path, &profile).await.json();
    assert_eq!(replaced["name"]["formatted"], "Grace Murray Hopper");
    assert_eq!(replaced["externalId"], "00ujl29u0le5T6Aj10h7");

    let off = provider.patch(&path, json!([{"op": "replace", "value": {"active": false}}])).await;
    assert_eq!((off.status, &off.json()["active"]), (200, &json!(false)));
    let on = provider.patch(&path, json!([{"op": "replace", "value": {"active": true}}])).await;
    assert_eq!((on.status, &on.json()["active"]), (200, &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn okta_pushes_a_group() {
    let provider = Provider::new().await;
    let (grace, alan) = (provider.user("grace").await, provider.user("alan").await);
    let created = provider
        .post("/Groups", &json!({"schemas": [GROUP], "displayName": "Okta", "members": []}))
        .await;
    let id = id_of(&created);
    let path = format!("/Groups/{id}");
    let rename = json!([{"op": "replace", "value": {"id": id, "displayName": "Engineers"}}]);
    let renamed = provider.patch(&path, rename).await;
    assert_eq!(renamed.json()["displayName"], "Engineers");
    let added = provider
        .patch(
            &path,
            json!([
                {"op": "add", "path": "members",
                 "value": [{"value": grace, "display": "grace@mail.example"}]},
                {"op": "add", "path": "members", "value": [{"value": alan}]},
            ]),
        )
        .await;
    assert_eq!(added.json()["members"].as_array().unwrap().len(), 2);
    let remove = format!("members[value eq \"{grace}\"]");
    let removed = provider.patch(&path, json!([{"op": "remove", "path": remove}])).await;
    assert_eq!(removed.json()["members"][0]["value"], alan.as_str());
    let by_name = provider.get("/Groups?filter=displayName%20eq%20%22engineers%22").await.json();
    assert_eq!(by_name["Resources"][0]["id"], id.as_str());
    assert_eq!(provider.delete(&path).await.status, 204);
    assert_eq!(provider.get(&path).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn entra_adds_changes_and_deactivates_a_user() {
    let provider = Provider::new().await;
    // The test of the connection asks for a user that is not there.
    let probe = "/Users?filter=userName+eq+%22f7c53b6d-6b1c-4c7a-9f53-0a64b1e3a3a9%22";
    let none = provider.get(probe).await;
    assert_eq!((none.status, &none.json()["totalResults"]), (200, &json!(0)));
    let created = provider
        .post(
            "/Users",
            &json!({
                "schemas": [USER, "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
                "externalId": "58342554-38d6-4ec8-948c-50044d0a33fd",
                "userName": "test_user@mail.example",
                "active": true,
                "displayName": "Test User",
                "emails": [{"primary": true, "type": "work", "value": "Test_User@mail.example"}],
                "meta": {"resourceType": "User"},
                "name": {"formatted": "given family", "familyName": "family", "givenName": "given"},
                "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "T"},
                "roles": []
            }),
        )
        .await;
    let id = id_of(&created);
    let path = format!("/Users/{id}");
    let changed = provider
        .patch(
            &path,
            json!([
                {"op": "Replace", "path": "emails[type eq \"work\"].value",
                 "value": "updated@mail.example"},
                {"op": "Replace", "path": "userName", "value": "updated@mail.example"},
                {"op": "Replace", "path": "name.familyName", "value": "updatedFamilyName"},
                {"op": "Add", "path": "displayName", "value": "Updated"},
                {"op": "Add", "path": "title", "value": "Engineer"},
                {"op": "Add", "value": "T2",
                 "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department"},
            ]),
        )
        .await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let user = changed.json();
    assert_eq!(user["userName"], "updated@mail.example");
    assert_eq!(user["emails"][0]["value"], "updated@mail.example");
    assert_eq!(user["name"]["familyName"], "updatedFamilyName");
    assert_eq!(user["displayName"], "Updated");

    // A mapping may look for the user by the address.
    let by_address =
        "/Users?filter=emails%5Btype+eq+%22work%22%5D.value+eq+%22updated%40mail.example%22";
    assert_eq!(provider.get(by_address).await.json()["Resources"][0]["id"], id.as_str());
    let off = json!([{"op": "Replace", "path": "active", "value": "False"}]);
    let answer = provider.patch(&path, off).await;
    assert_eq!((answer.status, &answer.json()["active"]), (200, &json!(false)));
    let by_name = "/Users?filter=userName%20eq%20%22updated%40mail.example%22";
    let found = provider.get(by_name).await.json();
    assert_eq!(found["Resources"][0]["active"], false, "a deactivated user is found");
    let on = json!([{"op": "Replace", "path": "active", "value": "True"}]);
    assert_eq!(provider.patch(&path, on).await.json()["active"], true);
    // The whole user has the same text.
    for active in ["False", "True"] {
        let whole = json!({"schemas": [USER], "userName": "updated@mail.example", "active": active,
                           "externalId": "58342554-38d6-4ec8-948c-50044d0a33fd"});
        let replaced = provider.put(&path, &whole).await;
        assert_eq!((replaced.status, &replaced.json()["active"]), (200, &json!(active == "True")));
    }
    let by_id = "/Users?filter=externalId%20eq%20%2258342554-38d6-4ec8-948c-50044d0a33fd%22";
    assert_eq!(provider.get(by_id).await.json()["totalResults"], 1);
    assert_eq!(provider.delete(&path).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn entra_changes_one_of_the_two_places_of_an_address() {
    let provider = Provider::new().await;
    let id = provider.user("grace").await;
    let path = format!("/Users/{id}");
    let operation = json!([{"op": "Replace", "path": "emails[type eq \"work\"].value",
                            "value": "grace.h@mail.example"}]);
    let user = provider.patch(&path, operation).await.json();
    assert_eq!(user["userName"], "grace.h@mail.example");
    let operation = json!([{"op": "Replace", "path": "userName", "value": "gh@mail.example"}]);
    let user = provider.patch(&path, operation).await.json();
    assert_eq!(user["emails"][0]["value"], "gh@mail.example");
    // An address that is added as the main one takes the place of the other.
    let operation = json!([{"op": "add", "path": "emails",
                            "value": [{"value": "hopper@mail.example", "primary": true}]}]);
    let user = provider.patch(&path, operation).await.json();
    assert_eq!(user["userName"], "hopper@mail.example");
    assert_eq!(user["emails"].as_array().unwrap().len(), 1);
}

/// The user principal name has another domain than the mail address.
#[tokio::test(flavor = "multi_thread")]
async fn entra_sends_a_user_principal_name_beside_the_address() {
    let provider = Provider::new().await;
    let principal = "grace.hopper@corp.onmicrosoft.example";
    let find = "/Users?filter=userName+eq+%22Grace.Hopper%40corp.onmicrosoft.example%22";
    assert_eq!(provider.get(find).await.json()["totalResults"], 0);
    let created = provider
        .post(
            "/Users",
            &json!({
                "schemas": [USER],
                "externalId": "grace.hopper",
                "userName": principal,
                "active": true,
                "emails": [{"primary": true, "type": "work", "value": "grace@mail.example"}],
                "name": {"familyName": "Hopper", "givenName": "Grace"}
            }),
        )
        .await;
    let path = format!("/Users/{}", id_of(&created));
    let user = created.json();
    assert_eq!(user["userName"], principal);
    assert_eq!(user["emails"][0]["value"], "grace@mail.example");
    assert_eq!(provider.get(find).await.json()["totalResults"], 1);
    assert_eq!(provider.level("grace").await, Some(1));

    let changed = provider
        .patch(
            &path,
            json!([
                {"op": "Replace", "path": "userName", "value": "gh@corp.onmicrosoft.example"},
                {"op": "Replace", "path": "emails[type eq \"work\"].value",
                 "value": "gh@mail.example"},
            ]),
        )
        .await
        .json();
    assert_eq!(changed["userName"], "gh@corp.onmicrosoft.example");
    assert_eq!(changed["emails"][0]["value"], "gh@mail.example");
    assert_eq!(provider.get(find).await.json()["totalResults"], 0);
    assert_eq!(provider.level("gh").await, Some(1));
    let off = json!([{"op": "Replace", "path": "active", "value": "False"}]);
    let user = provider.patch(&path, off).await.json();
    assert_eq!((&user["active"], &user["userName"]), (&json!(false), &changed["userName"]));
    assert_eq!(provider.get(&path).await.json(), user);
}

#[tokio::test(flavor = "multi_thread")]
async fn entra_manages_a_group() {
    let provider = Provider::new().await;
    let grace = provider.user("grace").await;
    let created = provider
        .post(
            "/Groups",
            &json!({
                "schemas": [GROUP, "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
                "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
                "displayName": "displayName",
                "meta": {"resourceType": "Group"}
            }),
        )
        .await;
    let id = id_of(&created);
    let path = format!("/Groups/{id}");
    let without = provider.get(&format!("{path}?excludedAttributes=members")).await.json();
    assert_eq!((without.get("members"), &without["id"]), (None, &json!(id)));
    let added = provider
        .patch(
            &path,
            json!([{"op": "Add", "path": "members",
                              "value": [{"$ref": null, "value": grace}]}]),
        )
        .await;
    assert_eq!(added.status, 200, "{:?}", added.body);
    // It asks whether a user is a member like this.
    let filter = format!("id%20eq%20%22{id}%22%20and%20members%20eq%20%22{grace}%22");
    let is_member =
        provider.get(&format!("/Groups?excludedAttributes=members&filter={filter}")).await;
    assert_eq!(is_member.json()["totalResults"], 1);
    let alan = provider.user("alan").await;
    for (member, count) in [(&grace, 1), (&alan, 0), (&"unknown".to_owned(), 0)] {
        let filter = format!("members%5Bvalue%20eq%20%22{member}%22%5D");
        let found = provider.get(&format!("/Groups?filter={filter}")).await.json();
        assert_eq!(found["totalResults"], count, "{member}");
    }
    let listed = "/Groups?excludedAttributes=members&filter=displayName%20eq%20%22displayName%22";
    assert_eq!(provider.get(listed).await.json()["Resources"][0].get("members"), None);
    let body = json!({"schemas": [PATCH], "Operations": [
        {"op": "Remove", "path": "members", "value": [{"value": grace}]}]});
    let removed = provider.send(Method::PATCH, &path, &body).await;
    assert_eq!(removed.json()["members"], json!([]));
    let renamed = provider
        .patch(&path, json!([{"op": "Replace", "path": "displayName", "value": "1879db59"}]))
        .await;
    assert_eq!(renamed.json()["displayName"], "1879db59");
}
