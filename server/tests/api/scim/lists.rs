//! Lists: pages, filters, attributes; and the documents that describe the service.

use serde_json::{Value, json};

use super::{GROUP, Provider, USER, assert_refused};

fn names(list: &Value) -> Vec<String> {
    let name = |one: &Value| one["userName"].as_str().unwrap().replace("@mail.example", "");
    let mut names: Vec<String> = list["Resources"].as_array().unwrap().iter().map(name).collect();
    names.sort();
    names
}

/// The users that a filter finds.
async fn filtered(provider: &Provider, filter: &str) -> Vec<String> {
    let query =
        form_urlencoded::Serializer::new(String::new()).append_pair("filter", filter).finish();
    let answer = provider.get(&format!("/Users?{query}")).await;
    assert_eq!(answer.status, 200, "{filter}: {:?}", answer.body);
    names(&answer.json())
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_cover_the_list_once() {
    let provider = Provider::new().await;
    for name in ["b", "c", "d", "e"] {
        provider.user(name).await;
    }
    let all = provider.get("/Users").await.json();
    assert_eq!(
        (&all["totalResults"], &all["startIndex"], &all["itemsPerPage"]),
        (&json!(5), &json!(1), &json!(5))
    );
    assert_eq!(names(&all), ["ada", "b", "c", "d", "e"]);
    let mut seen = Vec::new();
    for start in [1, 3, 5] {
        let page = provider.get(&format!("/Users?startIndex={start}&count=2")).await.json();
        assert_eq!((&page["totalResults"], &page["startIndex"]), (&json!(5), &json!(start)));
        seen.extend(names(&page));
    }
    seen.sort();
    assert_eq!(seen, ["ada", "b", "c", "d", "e"]);
    // Values out of range count as the next one in range.
    for (query, start, count) in [
        ("startIndex=0&count=2", 1, 2),
        ("startIndex=-7", 1, 5),
        ("startIndex=6", 6, 0),
        ("count=0", 1, 0),
        ("count=-1", 1, 0),
        ("count=100000", 1, 5),
        ("startIndex=&count=", 1, 5),
        ("startIndex=9223372036854775807", 9_223_372_036_854_775_807_u64, 0),
    ] {
        let page = provider.get(&format!("/Users?{query}")).await.json();
        let found = (&page["startIndex"], &page["itemsPerPage"], &page["totalResults"]);
        assert_eq!(found, (&json!(start), &json!(count), &json!(5)), "{query}");
    }
    for query in ["startIndex=x", "count=1.5", "startIndex=99999999999999999999"] {
        assert_refused(&provider.get(&format!("/Users?{query}")).await, 400, Some("invalidValue"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_at_most_two_hundred_groups() {
    let provider = Provider::new().await;
    for number in 0..201 {
        provider.group(&format!("g{number}"), &[]).await;
    }
    let page = provider.get("/Groups?count=1000").await.json();
    assert_eq!((&page["totalResults"], &page["itemsPerPage"]), (&json!(201), &json!(200)));
    let last = provider.get("/Groups?startIndex=201").await.json();
    assert_eq!(last["Resources"][0]["displayName"], "g200");
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_find_users() {
    let provider = Provider::new().await;
    for (name, given, active) in [("grace", "Grace", true), ("alan", "Alan", false)] {
        let user = json!({"userName": format!("{name}@mail.example"), "externalId": name,
                          "name": {"givenName": given, "familyName": "Xu"}, "active": active});
        assert_eq!(provider.post("/Users", &user).await.status, 201);
    }
    let grace = provider.get("/Users?filter=externalId%20eq%20%22grace%22").await.json();
    let grace = grace["Resources"][0]["id"].as_str().unwrap().to_owned();
    let group = provider.group("Tea", &[&grace]).await;
    for (filter, expected) in [
        (r#"userName eq "GRACE@mail.example""#, "grace"),
        (r#"userName eq "unknown@mail.example""#, ""),
        (r#"userName eq "x""#, ""),
        (r#"externalId eq "alan""#, "alan"),
        (r#"externalId eq "Alan""#, ""),
        (r#"name.familyName eq "xu""#, "alan,grace"),
        (r#"userName sw "a""#, "ada,alan"),
        (r#"active eq false"#, "alan"),
        (r#"externalId pr and active eq true"#, "grace"),
        (r#"not (externalId pr) or name.givenName co "ala""#, "ada,alan"),
        (r#"emails[type eq "work" and value ew "@mail.example"]"#, "ada,alan,grace"),
        (r#"meta.lastModified gt "2020-01-01T00:00:00Z""#, "ada,alan,grace"),
        (r#"meta.created lt "2999-12-31T23:59:59.999-11:00""#, "ada,alan,grace"),
        (r#"externalId eq null"#, "ada"),
        (r#"emails[type eq "work"].value eq "Grace@mail.example""#, "grace"),
        (r#"emails[type eq "home"].value eq "grace@mail.example""#, ""),
        (r#"emails.value eq "alan@mail.example" and emails.primary eq true"#, "alan"),
        (&format!("id eq \"{grace}\""), "grace"),
        (&format!("groups.value eq \"{group}\""), "grace"),
        (&format!("groups eq \"{group}\""), "grace"),
    ] {
        assert_eq!(filtered(&provider, filter).await.join(","), expected, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_that_cannot_be_read_are_refused() {
    let provider = Provider::new().await;
    let deep = "(".repeat(500);
    let many = vec!["a eq 1"; 40].join(" or ");
    let long = format!("userName eq \"{}\"", "x".repeat(3000));
    for filter in
        ["userName", "userName eq", "x y z", "userName eq \"", "][", "%00", &deep, &many, &long]
    {
        for path in ["/Users", "/Groups"] {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("filter", filter)
                .finish();
            let answer = provider.get(&format!("{path}?{query}")).await;
            assert_refused(&answer, 400, Some("invalidFilter"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_attributes_that_were_asked_for() {
    let provider = Provider::new().await;
    let id = provider.user("grace").await;
    let some =
        provider.get(&format!("/Users/{id}?attributes=userName,name.givenName")).await.json();
    assert_eq!(
        some,
        json!({"schemas": [USER], "id": id, "userName": "grace@mail.example",
               "name": {"givenName": "grace"}})
    );
    let listed = provider.get("/Users?excludedAttributes=emails,meta,groups").await.json();
    let names: Vec<&String> = listed["Resources"][0].as_object().unwrap().keys().collect();
    assert!(!names.iter().any(|name| ["emails", "meta", "groups"].contains(&name.as_str())));
    let user = json!({"userName": "alan@mail.example"});
    let created = provider.post("/Users?attributes=id", &user).await;
    assert_eq!(created.json().as_object().unwrap().len(), 2, "{:?}", created.body);
    let many = "a,".repeat(60);
    let answer = provider.get(&format!("/Users?attributes={many}")).await;
    assert_refused(&answer, 400, Some("invalidValue"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_by_post_answers_as_a_list() {
    let provider = Provider::new().await;
    for name in ["b", "c"] {
        provider.user(name).await;
    }
    provider.group("Tea", &[]).await;
    let search = async |path: &str, parameters: Value| {
        let mut body = json!({"schemas": ["urn:ietf:params:scim:api:messages:2.0:SearchRequest"]});
        for (name, value) in parameters.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = provider.post(path, &body).await;
        assert_eq!(answer.status, 200, "{body}: {:?}", answer.body);
        answer.json()
    };
    for (query, parameters) in [
        ("", json!({})),
        ("startIndex=2&count=1", json!({"startIndex": 2, "count": 1})),
        ("count=0", json!({"count": 0, "sortBy": "userName"})),
        ("filter=userName%20sw%20%22b%22", json!({"filter": "userName sw \"b\""})),
        ("attributes=userName,emails.value", json!({"attributes": ["userName", "emails.value"]})),
        ("excludedAttributes=emails,meta", json!({"excludedAttributes": ["emails", "meta"]})),
    ] {
        let listed = provider.get(&format!("/Users?{query}")).await.json();
        assert_eq!(search("/Users/.search", parameters).await, listed, "{query}");
    }
    let groups = search("/Groups/.search", json!({"filter": "displayName eq \"tea\""})).await;
    assert_eq!(groups, provider.get("/Groups").await.json());

    // Without a kind, users come before groups.
    let all = search("/.search", json!({})).await;
    assert_eq!(all["totalResults"], 4);
    let last = search("/.search", json!({"startIndex": 3, "count": 5})).await;
    assert_eq!((&last["totalResults"], &last["itemsPerPage"]), (&json!(4), &json!(2)));
    assert_eq!(last["Resources"][0]["userName"], "c@mail.example");
    assert_eq!(last["Resources"][1]["displayName"], "Tea");
    let none = search("/.search", json!({"startIndex": 5})).await;
    assert_eq!((&none["totalResults"], &none["Resources"]), (&json!(4), &json!([])));

    for path in ["/Users/.search", "/Groups/.search", "/.search"] {
        let wrong = json!({"filter": "x y z"});
        assert_refused(&provider.post(path, &wrong).await, 400, Some("invalidFilter"));
        assert_refused(&provider.post(path, &json!([])).await, 400, Some("invalidSyntax"));
        assert_refused(&provider.get(path).await, 405, None);
        let without_token = provider.app.anonymous().post(&provider.path(path), &json!({})).await;
        assert_refused(&without_token, 401, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_describes_itself() {
    let provider = Provider::new().await;
    let config = provider.get("/ServiceProviderConfig").await;
    assert_eq!(config.header("content-type"), Some("application/scim+json"));
    let config = config.json();
    for (feature, supported) in [
        ("patch", true),
        ("bulk", false),
        ("filter", true),
        ("changePassword", false),
        ("sort", false),
        ("etag", true),
    ] {
        assert_eq!(config[feature]["supported"], supported, "{feature}");
    }
    assert_eq!(config["filter"]["maxResults"], 200);
    assert_eq!(config["authenticationSchemes"][0]["type"], "oauthbearertoken");

    let kinds = provider.get("/ResourceTypes").await.json();
    assert_eq!(kinds["totalResults"], 2);
    for (at, (name, endpoint, schema)) in
        [("User", "/Users", USER), ("Group", "/Groups", GROUP)].into_iter().enumerate()
    {
        let kind = &kinds["Resources"][at];
        assert_eq!((&kind["endpoint"], &kind["schema"]), (&json!(endpoint), &json!(schema)));
        assert_eq!(provider.get(&format!("/ResourceTypes/{name}")).await.json(), *kind);
        let document = provider.get(&format!("/Schemas/{schema}")).await.json();
        assert_eq!((&document["id"], &document["name"]), (&json!(schema), &json!(name)));
        assert_eq!(provider.get("/Schemas").await.json()["Resources"][at], document);
        // Every attribute that is shown is described.
        let shown = match name {
            "User" => provider.user("grace").await,
            _ => provider.group("Tea", &[]).await,
        };
        let shown = provider.get(&format!("{endpoint}/{shown}")).await.json();
        let described = document["attributes"].as_array().unwrap();
        for attribute in shown.as_object().unwrap().keys() {
            let is_common = ["schemas", "id", "meta"].contains(&attribute.as_str());
            let is_described = described.iter().any(|one| one["name"] == attribute.as_str());
            assert!(is_common || is_described, "{attribute}");
        }
    }
    for path in ["/ResourceTypes/Device", "/Schemas/urn:x"] {
        assert_refused(&provider.get(path).await, 404, None);
    }
    // A filter would be ignored, and the sender would believe that it was applied.
    for path in ["/ServiceProviderConfig", "/ResourceTypes", "/Schemas"] {
        let filtered = provider.get(&format!("{path}?filter=id%20eq%20%22User%22")).await;
        assert_refused(&filtered, 403, None);
    }
}
