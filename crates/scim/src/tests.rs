//! Filters, paths and changes: examples of the RFC, what Okta and Entra send, and what must
//! be refused.

use serde_json::{Value, json};

use crate::{
    FILTER_MAX, FaultKind, Filter, GROUP, GroupInput, Path, SearchRequest, Selection, USER,
    UserInput, apply,
};

fn bjensen() -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "id": "2819c223-7f76-453a-919d-413861904646",
        "externalId": "701984",
        "userName": "bjensen@example.com",
        "name": {"formatted": "Ms. Barbara J Jensen, III", "familyName": "Jensen",
                 "givenName": "Barbara"},
        "displayName": "Babs Jensen",
        "active": true,
        "emails": [{"value": "bjensen@example.com", "type": "work", "primary": true},
                   {"value": "babs@jensen.org", "type": "home"}],
        "groups": [],
        "meta": {"resourceType": "User", "lastModified": "2011-05-13T04:42:34Z"}
    })
}

#[test]
fn filters_of_the_rfc_find_what_they_describe() {
    let user = bjensen();
    for filter in [
        r#"userName eq "bjensen@example.com""#,
        r#"userName Eq "BJENSEN@example.com""#,
        r#"name.familyName co "ense""#,
        r#"userName sw "b""#,
        r#"urn:ietf:params:scim:schemas:core:2.0:User:userName sw "B""#,
        r#"displayName pr"#,
        r#"meta.lastModified gt "2011-05-13T04:42:33Z""#,
        r#"meta.lastModified le "2011-05-13T04:42:34Z""#,
        r#"name.familyName co "en" and userName sw "b""#,
        r#"userName eq "x" or displayName ew "jensen""#,
        r#"userName ne "x" and not (active eq false)"#,
        r#"emails co "jensen.org""#,
        r#"emails.type eq "home""#,
        r#"emails[type eq "work" and value co "@example.com"]"#,
        r#"not (groups pr)"#,
        r#"(userName eq "x" or active eq true) and id eq "2819c223-7f76-453a-919d-413861904646""#,
        r#"active eq True"#,
        r#"nickName ne "x""#,
        r#"emails[type eq "work"].value eq "BJENSEN@example.com""#,
        r#"emails[type eq "work"].value sw "b" and emails[type eq "home"].value pr"#,
        r#"not (emails[type eq "other"].value pr)"#,
        // The same moment, with decimals and in other zones.
        r#"meta.lastModified eq "2011-05-13T04:42:34.000Z""#,
        r#"meta.lastModified ge "2011-05-13T06:42:34+02:00""#,
        r#"meta.lastModified lt "2011-05-13T04:42:34.5Z""#,
        r#"meta.lastModified lt "2011-05-13T04:00:00-02:00""#,
        r#"meta[lastModified gt "2011-05-13T04:42:33"]"#,
        r#"meta.lastModified sw "2011-05""#,
        // Null is no value.
        r#"title eq null and displayName ne null"#,
        r#"groups eq null"#,
    ] {
        assert!(Filter::parse(filter).unwrap().matches(&user), "{filter}");
    }
    for filter in [
        r#"userName eq "ada""#,
        r#"externalId eq "701984 ""#,
        r#"emails[type eq "home" and value co "@example.com"]"#,
        r#"title pr"#,
        r#"groups pr"#,
        r#"active eq "true""#,
        r#"emails[type eq "work"].value eq "babs@jensen.org""#,
        r#"emails[type eq "other"].value ne "x""#,
        r#"meta.lastModified gt "2011-05-13T04:42:34.000Z""#,
        r#"meta.lastModified gt "2011-05-13T04:00:00-02:00""#,
        r#"displayName eq null"#,
        r#"title ne null"#,
        // `and` binds more closely than `or`.
        r#"active eq false and userName sw "b" or displayName eq "x""#,
    ] {
        assert!(!Filter::parse(filter).unwrap().matches(&user), "{filter}");
    }
}

#[test]
fn values_that_identify_are_compared_with_regard_to_case() {
    let user = json!({"externalId": "Ab", "userName": "Ab"});
    assert!(Filter::parse(r#"userName eq "aB""#).unwrap().matches(&user));
    assert!(!Filter::parse(r#"externalId eq "aB""#).unwrap().matches(&user));
    assert!(Filter::parse(r#"externalId eq "Ab""#).unwrap().matches(&user));
}

#[test]
fn a_filter_says_what_its_resources_must_have() {
    for (filter, id) in [
        (r#"id eq "a""#, Some("a")),
        (r#"members eq "b" and ID eq "a""#, Some("a")),
        (r#"(active eq true and id eq "a") and title pr"#, Some("a")),
        (r#"id eq "a" or members eq "b""#, None),
        (r#"not (id eq "a")"#, None),
        (r#"id ne "a""#, None),
        (r#"id sw "a""#, None),
        (r#"members[id eq "a"]"#, None),
    ] {
        assert_eq!(Filter::parse(filter).unwrap().must_equal("id"), id, "{filter}");
    }
    for (filter, email) in [
        (r#"emails eq "a""#, Some("a")),
        (r#"emails.value eq "a""#, Some("a")),
        (r#"emails[type eq "work"].value eq "a""#, Some("a")),
        (r#"emails[type eq "work" and value eq "a"]"#, Some("a")),
        (r#"emails.type eq "work""#, None),
        (r#"emails[type eq "work"]"#, None),
        (r#"emails[type eq "work"].value sw "a""#, None),
        (r#"emails[value eq "a" or type eq "work"]"#, None),
    ] {
        assert_eq!(Filter::parse(filter).unwrap().must_equal("emails"), email, "{filter}");
    }
}

#[test]
fn filters_that_cannot_be_read_are_refused_within_bounds() {
    let nested = format!("{}a eq 1{}", "(".repeat(9), ")".repeat(9));
    let closed = format!("{}a eq 1{}", "(".repeat(8), ")".repeat(8));
    assert!(Filter::parse(&closed).is_ok());
    let many = vec!["a eq 1"; 33].join(" or ");
    let long = format!("a eq \"{}\"", "x".repeat(FILTER_MAX));
    let deep = "(".repeat(FILTER_MAX);
    let never_closed = format!("a[{}", "b[".repeat(1000));
    for filter in [
        "",
        " ",
        "userName",
        "userName eq",
        "userName eq bjensen",
        "userName eq \"bjensen",
        "userName eq \"a\\\"",
        "userName is \"x\"",
        "userName eq \"x\" and",
        "userName eq \"x\" userName",
        "and userName pr",
        "not userName pr",
        "(userName pr",
        "userName pr)",
        "emails[type eq \"work\"",
        "emails[]",
        "emails[type eq \"work\"].",
        "emails[type eq \"work\"].value",
        "emails[type eq \"work\"]value eq \"x\"",
        "emails[type eq \"work\"] .value eq \"x\"",
        "emails[type eq \"work\"].a.b eq \"x\"",
        "emails[type eq \"work\"].value[type pr]",
        "meta.lastModified gt \"yesterday\"",
        "meta.created eq \"2011-05-13\"",
        "meta.created lt 7",
        "userName gt null",
        "1a eq 2",
        "a..b pr",
        "a eq {}",
        "a eq [1]",
        "active gt true",
        "active co 1",
        "\u{0}",
        "é eq \"x\"",
        "userName eq \"x\" \u{1F600}",
        &nested,
        &many,
        &long,
        &deep,
        &never_closed,
    ] {
        let fault = Filter::parse(filter).unwrap_err();
        assert_eq!(fault.kind, FaultKind::InvalidFilter, "{filter}");
    }
}

#[test]
fn paths_are_read_or_refused() {
    let path = Path::parse(r#"emails[type eq "a]\"b"].value"#).unwrap();
    assert_eq!((path.attribute.as_str(), path.part.as_deref()), ("emails", Some("value")));
    assert!(path.filter.unwrap().matches(&json!({"type": "a]\"b"})));
    let path = Path::parse("urn:ietf:params:scim:schemas:core:2.0:User:name.givenName").unwrap();
    assert_eq!((path.attribute.as_str(), path.part.as_deref()), ("name", Some("givenName")));
    assert!(path.schema.is_some());
    for wrong in
        ["", ".", "a.", "a.b.c", "a[b eq 1", "a.b[c eq 1]", "a[b eq 1]c", "[a eq 1]", "a b"]
    {
        assert_eq!(Path::parse(wrong).unwrap_err().kind, FaultKind::InvalidPath, "{wrong}");
    }
    assert_eq!(Path::parse("members[x]").unwrap_err().kind, FaultKind::InvalidFilter);
    assert_eq!(Path::parse(&"a".repeat(3000)).unwrap_err().kind, FaultKind::InvalidPath);
}

fn patched(operations: &Value) -> Result<Value, FaultKind> {
    let mut user = bjensen();
    let body = json!({"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
                      "Operations": operations});
    apply(&USER, &mut user, &body).map_err(|fault| fault.kind)?;
    Ok(user)
}

fn read(operations: &Value) -> UserInput {
    UserInput::read(&patched(operations).unwrap()).unwrap()
}

#[test]
fn okta_deactivates_with_an_object_and_entra_with_a_text() {
    let okta = json!([{"op": "replace", "value": {"active": false}}]);
    assert_eq!(read(&okta).active, Some(false));
    for value in [json!("False"), json!("false"), json!(false), json!([{"value": "False"}])] {
        let entra = json!([{"op": "Replace", "path": "active", "value": value}]);
        assert_eq!(read(&entra).active, Some(false), "{value}");
    }
    assert_eq!(read(&json!([{"op": "Add", "path": "active", "value": "True"}])).active, Some(true));
    let wrong = json!([{"op": "replace", "path": "active", "value": "no"}]);
    let fault = UserInput::read(&patched(&wrong).unwrap()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidValue);
}

#[test]
fn entra_changes_values_by_paths_with_filters() {
    let user = read(&json!([
        {"op": "Replace", "path": "userName", "value": "barbara@example.com"},
        {"op": "Replace", "path": "emails[type eq \"work\"].value", "value": "barbara@example.com"},
        {"op": "Add", "path": "name.givenName", "value": "Barbara Jane"},
        {"op": "Add", "path": "externalId", "value": "e-1"},
        {"op": "Add", "path": "addresses[type eq \"work\"].locality", "value": "Berlin"},
        {"op": "Add",
         "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
         "value": "Tea"},
    ]));
    assert_eq!(user.user_name, "barbara@example.com");
    assert_eq!(user.email.as_deref(), Some("barbara@example.com"));
    assert_eq!(user.given_name.as_deref(), Some("Barbara Jane"));
    assert_eq!(user.external_id.as_deref(), Some("e-1"));

    // A value that is not there yet is added with what the filter says about it.
    let mut user = json!({"userName": "x@example.com"});
    let path = "emails[type eq \"work\"].value";
    let body = json!({"Operations": [{"op": "replace", "path": path, "value": "x@example.com"}]});
    apply(&USER, &mut user, &body).unwrap();
    assert_eq!(user["emails"], json!([{"type": "work", "value": "x@example.com"}]));
}

/// One value of a list is the main one (RFC 7644, 3.5.2).
#[test]
fn a_new_main_address_takes_the_place_of_the_former_one() {
    for (operations, email) in [
        (
            json!([{"op": "add", "path": "emails",
                    "value": [{"value": "new@example.com", "primary": true}]}]),
            "new@example.com",
        ),
        (
            json!([{"op": "add", "path": "emails", "value": [{"value": "new@example.com"}]}]),
            "bjensen@example.com",
        ),
        // One that the user has already.
        (
            json!([{"op": "add", "path": "emails",
                    "value": [{"value": "Babs@jensen.org", "primary": true}]}]),
            "babs@jensen.org",
        ),
        (
            json!([{"op": "Replace", "path": "emails[type eq \"home\"].primary",
                    "value": "True"}]),
            "babs@jensen.org",
        ),
        (
            json!([{"op": "replace", "path": "emails[type eq \"home\"]",
                    "value": {"primary": true}}]),
            "babs@jensen.org",
        ),
        (
            json!([{"op": "Add", "path": "emails[type eq \"other\"].value",
                    "value": "other@example.com"},
                   {"op": "Add", "path": "emails[type eq \"other\"].primary", "value": true}]),
            "other@example.com",
        ),
    ] {
        assert_eq!(read(&operations).email.as_deref(), Some(email), "{operations}");
    }
}

#[test]
fn names_of_attributes_have_no_case_and_unknown_ones_are_ignored() {
    let user = read(&json!([
        {"op": "replace", "value": {"USERNAME": "x@example.com", "name.familyName": "Ng",
            "NAME": {"GivenName": "Li"}, "title": "Dr", "id": "other", "meta": {}, "groups": [],
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "x"}}},
    ]));
    assert_eq!(user.user_name, "x@example.com");
    assert_eq!(user.family_name.as_deref(), Some("Ng"));
    assert_eq!(user.given_name.as_deref(), Some("Li"));
    let shown = patched(&json!([{"op": "replace", "value": {"id": "x", "title": "Dr"}}])).unwrap();
    assert_eq!(shown, bjensen());
}

#[test]
fn changes_that_cannot_be_made_are_refused() {
    for (operations, kind) in [
        (json!([{"op": "move", "path": "active"}]), FaultKind::InvalidSyntax),
        (json!([{"path": "active"}]), FaultKind::InvalidSyntax),
        (json!([{"op": "add", "path": "active"}]), FaultKind::InvalidSyntax),
        (json!([{"op": "add", "path": 7, "value": 1}]), FaultKind::InvalidSyntax),
        (json!([{"op": "add", "value": "x"}]), FaultKind::InvalidSyntax),
        (json!(["x"]), FaultKind::InvalidSyntax),
        (json!({"op": "add"}), FaultKind::InvalidSyntax),
        (json!([{"op": "remove"}]), FaultKind::NoTarget),
        (json!([{"op": "remove", "path": "userName"}]), FaultKind::Mutability),
        (json!([{"op": "replace", "path": "id", "value": "x"}]), FaultKind::Mutability),
        (json!([{"op": "replace", "path": "meta.created", "value": "x"}]), FaultKind::Mutability),
        (json!([{"op": "add", "path": "groups", "value": []}]), FaultKind::Mutability),
        (json!([{"op": "replace", "path": "userName.x", "value": "x"}]), FaultKind::InvalidPath),
        (json!([{"op": "replace", "path": "a b", "value": "x"}]), FaultKind::InvalidPath),
        (json!([{"op": "replace", "path": "emails[x]", "value": "x"}]), FaultKind::InvalidFilter),
        (
            json!([{"op": "replace", "path": "emails[value eq \"no\"]", "value": {"type": "x"}}]),
            FaultKind::NoTarget,
        ),
        (json!(vec![json!({"op": "remove", "path": "title"}); 1001]), FaultKind::TooMany),
    ] {
        assert_eq!(patched(&operations).unwrap_err(), kind, "{operations}");
    }
}

fn group(operations: &Value) -> GroupInput {
    let mut group = json!({"displayName": "Tour Guides",
                           "members": [{"value": "a"}, {"value": "b"}]});
    apply(&GROUP, &mut group, &json!({"Operations": operations})).unwrap();
    GroupInput::read(&group).unwrap()
}

#[test]
fn members_are_added_and_removed_in_every_dialect() {
    let members = |operations: Value| group(&operations).members.join("");
    assert_eq!(
        members(json!([{"op": "add", "path": "members", "value": [{"value": "c"}]}])),
        "abc"
    );
    let once = json!([{"op": "Add", "path": "members", "value": [{"value": "a"}, {"value": "c"}]}]);
    assert_eq!(members(once), "abc");
    assert_eq!(members(json!([{"op": "add", "value": {"members": {"value": "c"}}}])), "abc");
    let path = "members[value eq \"a\"]";
    assert_eq!(members(json!([{"op": "remove", "path": path}])), "b");
    assert_eq!(
        members(json!([{"op": "Remove", "path": "members", "value": [{"value": "a"}]}])),
        "b"
    );
    assert_eq!(members(json!([{"op": "remove", "path": "members"}])), "");
    assert_eq!(
        members(json!([{"op": "replace", "path": "members", "value": [{"value": "z"}]}])),
        "z"
    );
    // All of them in one request (RFC 7644, 3.5.2.3).
    let all = json!([
        {"op": "remove", "path": "members[value eq \"a\" or value eq \"b\"]"},
        {"op": "add", "path": "members", "value": [{"value": "x"}]},
        {"op": "replace", "path": "displayName", "value": "Guides"},
    ]);
    let changed = group(&all);
    assert_eq!((changed.display_name.as_str(), changed.members.join("").as_str()), ("Guides", "x"));
    // Okta sends the id with the name.
    let okta = json!([{"op": "replace", "value": {"id": "g", "displayName": "Okta"}}]);
    assert_eq!(group(&okta).display_name, "Okta");
}

#[test]
fn many_operations_on_a_large_group_take_linear_work() {
    let member = |number: usize| json!({"value": format!("m{number}")});
    let mut group = json!({"displayName": "All"});
    group["members"] = (0..5000).map(member).collect();
    let present = json!([member(1)]);
    let mut operations = Vec::new();
    for number in 0..500 {
        let path = format!("members[value eq \"M{number}\"]");
        operations.push(json!({"op": "remove", "path": path}));
        operations.push(json!({"op": "add", "path": "members", "value": present}));
    }
    apply(&GROUP, &mut group, &json!({"Operations": operations})).unwrap();
    assert_eq!(GroupInput::read(&group).unwrap().members.len(), 4501);
    // Filters that read every member are counted.
    let all = json!({"op": "remove", "path": "members[value co \"none\"]"});
    let few = json!({"Operations": vec![all.clone(); 40]});
    apply(&GROUP, &mut group, &few).unwrap();
    let many = json!({"Operations": vec![all; 1000]});
    assert_eq!(apply(&GROUP, &mut group, &many).unwrap_err().kind, FaultKind::TooMany);
}

#[test]
fn a_list_that_grows_too_long_is_refused_at_once() {
    let members: Vec<Value> =
        (0..3000).map(|number| json!({"value": format!("{number}")})).collect();
    let more: Vec<Value> = (0..3000).map(|number| json!({"value": format!("x{number}")})).collect();
    let mut group = json!({"displayName": "All", "members": members});
    // The last operation would make the list short again.
    let operations = json!([{"op": "add", "path": "members", "value": more},
                            {"op": "replace", "path": "members", "value": []}]);
    let fault = apply(&GROUP, &mut group, &json!({"Operations": operations})).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooMany);
}

#[test]
fn the_main_address_is_found() {
    let email = |emails: Value| {
        let user = UserInput::read(&json!({"userName": "u", "emails": emails})).unwrap();
        user.email.unwrap_or_default()
    };
    assert_eq!(email(json!([])), "");
    assert_eq!(email(json!([{"value": "a"}, {"value": "b", "primary": true}])), "b");
    assert_eq!(email(json!([{"value": "a"}, {"value": "b", "type": "Work"}])), "b");
    assert_eq!(email(json!([{"value": "a"}, {"value": "b", "type": "home"}])), "a");
    for wrong in [json!("x"), json!([{"value": 7}])] {
        let user = json!({"userName": "u", "emails": wrong});
        assert_eq!(UserInput::read(&user).unwrap_err().kind, FaultKind::InvalidValue);
    }
}

#[test]
fn answers_have_the_attributes_that_were_asked_for() {
    let shown = |only: Option<&str>, without: Option<&str>| {
        let mut user = bjensen();
        Selection::parse(only, without).unwrap().apply(&mut user);
        user
    };
    let some = shown(Some("userName, name.familyName"), None);
    assert_eq!(
        some,
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
            "id": "2819c223-7f76-453a-919d-413861904646",
            "userName": "bjensen@example.com",
            "name": {"familyName": "Jensen"},
        })
    );
    let some = shown(None, Some("emails,id,groups,NAME.formatted,urn:x:meta"));
    let names: Vec<&String> = some.as_object().unwrap().keys().collect();
    assert!(!names.iter().any(|name| ["emails", "groups", "meta"].contains(&name.as_str())));
    assert_eq!(some["id"], "2819c223-7f76-453a-919d-413861904646");
    assert_eq!(some["name"], json!({"familyName": "Jensen", "givenName": "Barbara"}));
    assert!(Selection::parse(Some(&"a,".repeat(51)), None).is_err());
    assert!(!Selection::parse(None, Some("members")).unwrap().has("members"));
}

#[test]
fn a_search_has_the_parameters_of_a_query() {
    // The request of RFC 7644, 3.4.3.
    let search = SearchRequest::read(&json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],
        "attributes": ["displayName", "userName"],
        "filter": "displayName sw \"smith\"",
        "sortBy": "displayName",
        "STARTINDEX": 1,
        "count": 10,
    }));
    let search = search.unwrap();
    let parameter = |name| search.parameter(name).unwrap_or_default();
    assert_eq!(parameter("attributes"), "displayName,userName");
    assert_eq!(parameter("filter"), "displayName sw \"smith\"");
    assert_eq!((parameter("startIndex"), parameter("count")), ("1", "10"));
    assert_eq!(search.parameter("excludedAttributes"), None);
    assert_eq!(search.parameter("sortBy"), None);
    for (body, kind) in [
        (json!([]), FaultKind::InvalidSyntax),
        (json!({"filter": {}}), FaultKind::InvalidValue),
        (json!({"count": true}), FaultKind::InvalidValue),
        (json!({"attributes": [7]}), FaultKind::InvalidValue),
    ] {
        assert_eq!(SearchRequest::read(&body).unwrap_err().kind, kind, "{body}");
    }
}

/// Numbers that are the same in every run (Knuth's generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

#[test]
fn nonsense_is_refused_or_read_and_never_a_panic() {
    let pieces = [
        "userName",
        " eq ",
        " co ",
        " pr",
        "\"",
        "\\",
        "\"a\"",
        "[",
        "]",
        "(",
        ")",
        " and ",
        " or ",
        "not ",
        "not(",
        ".",
        ":",
        "urn:x:",
        "1",
        "-1e9",
        "true",
        "null",
        "é",
        "\u{0}",
        " ",
        "emails",
        "type",
        "value",
        "members",
        "$ref",
        "{",
        "}",
        ",",
        "active",
        "\u{1F600}",
    ];
    let mut numbers = Numbers(7);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let length = numbers.below(9) + 1;
        let text: String = (0..length).map(|_| pieces[numbers.below(pieces.len())]).collect();
        match Filter::parse(&text) {
            Ok(filter) => {
                read += 1;
                filter.matches(&bjensen());
            }
            Err(fault) => {
                refused += 1;
                assert_eq!(fault.kind, FaultKind::InvalidFilter);
            }
        }
        let value = json!([{"value": text, "active": text}, text, 7, null]);
        for op in ["add", "replace", "remove"] {
            let operations = json!([{"op": op, "path": text, "value": value},
                                    {"op": op, "value": {text.as_str(): value}}]);
            if let Ok(user) = patched(&operations) {
                let _ = UserInput::read(&user);
            }
        }
    }
    assert!(read > 20 && refused > 1000, "{read} {refused}");
}
