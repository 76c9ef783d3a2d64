//! The API document and its pages: complete, public, and equal to the file in the
//! repository.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use weir_server::openapi::document;
use weir_testkit::TestApp;

use crate::generated::operations::{Operation, operations};
use crate::snapshot;

/// Error statuses of every operation with a key.
const ALWAYS: [&str; 7] = ["401", "403", "405", "406", "429", "500", "503"];

#[test]
fn the_checked_in_document_is_the_present_one() {
    let text = serde_json::to_string_pretty(document().unwrap()).unwrap();
    snapshot::assert_same("docs/openapi.json", &format!("{text}\n"), "openapi");
}

#[test]
fn every_operation_is_described_completely() {
    let mut ids = BTreeSet::new();
    for operation in operations() {
        let item = &operation.item;
        let name = format!("{} {}", operation.method, operation.path);
        assert!(ids.insert(operation.id.clone()), "{name}: {} is there twice", operation.id);
        assert!(!item["summary"].as_str().unwrap().is_empty(), "{name}");
        assert_eq!(item["tags"].as_array().unwrap().len(), 1, "{name}");
        let answers = item["responses"].as_object().unwrap();
        let good = answers.iter().filter(|(status, _)| status.starts_with('2'));
        assert_eq!(good.count(), usize::from(!operation.is_refused()), "{name}: one good answer");
        for (status, answer) in answers {
            let answer = resolved(answer);
            if ["Without a body.", "The body is `null`."]
                .iter()
                .any(|reported| answer["description"] == *reported)
            {
                continue;
            }
            let content = &answer["content"]["application/json"];
            assert!(content["schema"].is_object(), "{name} {status}: a schema");
            assert!(!content["example"].is_null(), "{name} {status}: an example");
        }
        if operation.is_public() {
            assert_eq!(item["security"], json!([]), "{name}");
            continue;
        }
        for status in ALWAYS {
            assert!(answers.contains_key(status), "{name}: {status}");
        }
        let scopes = item["x-required-scopes"].as_array().unwrap();
        let described = item["description"].as_str().unwrap();
        for scope in scopes {
            assert!(described.contains(scope.as_str().unwrap()), "{name}: {scope}");
        }
        for parameter in item["parameters"].as_array().unwrap() {
            assert!(parameter["description"].is_string(), "{name}: {parameter}");
        }
        if item["requestBody"].is_object() {
            for status in ["400", "413", "415"] {
                assert!(answers.contains_key(status), "{name}: {status}");
            }
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(document: &Value, value: &Value) {
        match value {
            Value::Object(parts) => {
                if let Some(address) = parts.get("$ref").and_then(Value::as_str) {
                    let found = document.pointer(address.trim_start_matches('#'));
                    assert!(found.is_some(), "{address}");
                }
                parts.values().for_each(|part| walk(document, part));
            }
            Value::Array(parts) => parts.iter().for_each(|part| walk(document, part)),
            _ => {}
        }
    }
    walk(document().unwrap(), document().unwrap());
}

#[test]
fn fields_are_described_and_what_cannot_be_written_is_marked() {
    let schemas = document().unwrap()["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas.iter().filter(|(name, _)| !name.ends_with("Input")) {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].is_string(), "{name}.{field} has no comment");
        }
    }
    let organization = &schemas["Organization"]["properties"];
    assert_eq!(organization["slug"]["readOnly"], true);
    assert_eq!(organization["name"]["readOnly"], Value::Null);
    assert_eq!(organization["membership_level"]["enum"], json!([1, 8, 15]));
    assert_eq!(organization["created_at"]["format"], "date-time");
    let body = &schemas["CreateOrganizationInput"];
    assert_eq!(body["required"], json!(["name"]));
    assert_eq!(body["properties"]["name"]["maxLength"], 64);
    assert_eq!(
        body["properties"]["name"]["description"], organization["name"]["description"],
        "what is sent is described like what is answered",
    );
}

/// Generated clients cannot write a value of several types into a path.
#[test]
fn an_id_in_a_path_has_one_type_and_its_description_names_the_word() {
    let words = [
        ("organizations", "`@current`"),
        ("projects", "`@current`"),
        ("users", "`@me`"),
        ("members", "`@me`"),
        ("personal_api_keys", "`@current`"),
    ];
    for operation in operations() {
        let parameters = operation.item["parameters"].as_array().unwrap().iter();
        let in_path = parameters.filter(|parameter| parameter["in"] == "path");
        for ((collection, _), parameter) in operation.ids().iter().zip(in_path) {
            let kind = parameter["schema"]["type"].as_str().unwrap();
            if let Some((_, word)) = words.iter().find(|(name, _)| name == collection) {
                let described = parameter["description"].as_str().unwrap();
                assert!(described.contains(word), "{}: {described}", operation.id);
                assert_eq!(kind, "string", "{}", operation.id);
            }
            assert!(["string", "integer"].contains(&kind), "{}: {kind}", operation.id);
            assert_eq!(parameter["schema"]["anyOf"], Value::Null, "{}", operation.id);
        }
    }
}

#[test]
fn parameters_for_another_form_of_the_answer_are_not_in_the_document() {
    for Operation { id, item, .. } in operations() {
        for parameter in item["parameters"].as_array().unwrap() {
            assert!(!["raw", "expand"].contains(&parameter["name"].as_str().unwrap()), "{id}");
        }
    }
}

#[test]
fn a_field_that_is_missing_or_always_set_is_not_nullable() {
    let schemas = &document().unwrap()["components"]["schemas"];
    for (name, field, is_required) in [
        ("BatchExport", "backfill_id", false),
        ("Plugin", "organization_id", true),
        ("PluginCheck", "organization_id", true),
        ("PluginSource", "organization_id", true),
    ] {
        let schema = &schemas[name];
        let property = &schema["properties"][field];
        assert_eq!((&property["type"], &property["format"]), (&json!("string"), &json!("uuid")));
        let required = schema["required"].as_array().unwrap();
        assert_eq!(required.contains(&json!(field)), is_required, "{name}.{field}");
    }
    let error = &schemas["Error"];
    assert_eq!(error["properties"]["extra"]["$ref"], "#/components/schemas/ErrorExtra");
    assert!(!error["required"].as_array().unwrap().contains(&json!("extra")));
    // In a list the record can be missing, and then all of its fields are null.
    let of_list = &schemas["PluginCatalogue"]["properties"]["organization_id"]["type"];
    assert_eq!(of_list, &json!(["string", "null"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_a_large_body_names_the_limit_of_the_api() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let call = caller.call(http::Method::POST, "/api/organizations/");
    let limit = app.app().limits.api_body.size;
    let answer = call.json(&json!({"name": "a".repeat(limit)})).send().await;
    let example = &document().unwrap()["components"]["responses"]["TooLarge"]["content"]["application/json"]
        ["example"];
    assert_eq!((answer.status, &answer.json()), (413, example));
}

/// Constructs that JSON Schema allows and generators of clients do not understand.
#[test]
fn generators_of_clients_understand_every_schema() {
    fn check(schema: &Value, place: &str) {
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let members = schema.get("properties").is_some();
        let others = schema.get("additionalProperties");
        assert_ne!(kinds, ["null"], "{place}: null alone");
        assert!(kinds.iter().filter(|kind| **kind != "null").count() <= 1, "{place}: {kinds:?}");
        if kinds.contains(&"array") {
            assert!(schema["items"].is_object(), "{place}: a list of what?");
        }
        if kinds.contains(&"object") {
            assert!(members || others.is_some(), "{place}: an object of what?");
            assert!(
                !members || others.is_none_or(Value::is_boolean),
                "{place}: two kinds of members"
            );
        }
        assert!(schema.get("enum").is_none_or(|_| schema.get("maxLength").is_none()), "{place}");
    }
    fn walk(schema: &Value, place: &str) {
        check(schema, place);
        for part in ["items", "additionalProperties"] {
            schema.get(part).into_iter().for_each(|part| walk(part, place));
        }
        for part in ["oneOf", "anyOf"] {
            // At most one of the alternatives may be null.
            let ways = schema[part].as_array().into_iter().flatten();
            ways.filter(|way| way["type"] != "null").for_each(|way| walk(way, place));
        }
        for (name, part) in schema["properties"].as_object().into_iter().flatten() {
            walk(part, &format!("{place}.{name}"));
        }
    }
    let document = document().unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let names: BTreeSet<String> = schemas.keys().map(|name| name.to_lowercase()).collect();
    assert_eq!(names.len(), schemas.len(), "names that differ in case only");
    let text = document.to_string();
    for (name, schema) in schemas {
        walk(schema, name);
        assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "{name} is not used");
    }
    for Operation { id, item, .. } in operations() {
        for (status, answer) in item["responses"].as_object().unwrap() {
            let content = &resolved(answer)["content"]["application/json"];
            walk(&content["schema"], &format!("{id} {status}"));
        }
        walk(&item["requestBody"]["content"]["application/json"]["schema"], &id);
        for parameter in item["parameters"].as_array().unwrap() {
            walk(&parameter["schema"], &format!("{id} {}", parameter["name"]));
        }
        // Names that generators derive from the id of an operation.
        for end in
            ["", "body", "request", "response", "data", "params", "error", "errors", "result"]
        {
            let made = format!("{}{end}", id.replace('_', ""));
            assert!(!names.contains(&made), "{id}: {made} is a schema");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_public() {
    let app = TestApp::empty().await;
    let nobody = app.anonymous();
    for path in ["/api/schema/", "/api/schema"] {
        let answer = nobody.get(path).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(&answer.json(), document().unwrap());
    }
    for (accept, media_type) in [
        ("application/yaml", "application/yaml"),
        ("application/yaml, application/json", "application/json"),
        ("*/*", "application/json"),
    ] {
        let call = nobody.call(http::Method::GET, "/api/schema/").header("accept", accept);
        assert_eq!(call.send().await.header("content-type"), Some(media_type), "{accept}");
    }
    let answer = nobody.call(http::Method::POST, "/api/schema/").send().await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_every_operation_and_run_nothing() {
    let app = TestApp::empty().await;
    let nobody = app.anonymous();
    let page = async |path: &str| {
        let answer = nobody.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self'"), "{policy}");
        let text = answer.text();
        for foreign in ["<script", "http://", "src=\"//", " style=", " onclick="] {
            // Addresses in examples are only text.
            let outside = text.replace("https://weir.example/", "");
            assert!(!outside.contains(foreign), "{path}: {foreign}");
        }
        text
    };
    let overview = page("/api/docs/").await;
    for Operation { id, path, item, .. } in operations() {
        let tag = item["tags"][0].as_str().unwrap().to_lowercase().replace(' ', "_");
        assert!(overview.contains(&format!("/api/docs/{tag}/#{id}")), "{id}");
        let text = page(&format!("/api/docs/{tag}/")).await;
        assert!(text.contains(&format!("id=\"{id}\"")), "{id}");
        assert!(text.contains(path.as_str()), "{path}");
    }
    let missing = nobody.get("/api/docs/nothing/").await;
    missing.assert_error(404, "invalid_request", "not_found", "Not found.");
}

fn resolved(value: &Value) -> &Value {
    let address = value["$ref"].as_str();
    address.map_or(value, |address| {
        document().unwrap().pointer(address.trim_start_matches('#')).unwrap()
    })
}
