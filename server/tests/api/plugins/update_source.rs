//! PATCH `…/{group}/{id}/update_source/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_named_stays() {
    each_group(async |fixture| {
        let (plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
        let update = format!("{path}update_source/");
        let send = async |body: Value| {
            let answer = fixture.owner.patch(&update, &body).await;
            assert_eq!(answer.status, 200, "{:?}", answer.body);
            answer.json()
        };
        let answer = send(json!({"a.txt": "1", "b.txt": "2"})).await;
        let expected = json!({"a.txt": "1", "b.txt": "2", "source_errors": {}});
        assert_eq!(rest(&answer, &plugin), expected);
        let answer = send(json!({"a.txt": "3", "b.txt": null, "none.js": null})).await;
        assert_eq!(rest(&answer, &plugin), json!({"a.txt": "3", "source_errors": {}}));
        // A whole answer may be sent back. A name without a dot is not a file.
        let mut whole = fixture.owner.get(&format!("{path}source/")).await.json();
        whole["name"] = json!("ignored");
        assert_eq!(rest(&send(whole).await, &plugin)["a.txt"], "3");
        let raw = fixture.owner.patch(&format!("{update}?raw=true"), &json!({"a.b": ""})).await;
        assert_eq!(raw.json(), json!({"a.txt": "3", "a.b": ""}));
        // Texts may also be sent as a form.
        let form = fixture.owner.call(http::Method::PATCH, &update);
        let form = form.header("content-type", "application/x-www-form-urlencoded");
        let answer = form.body("a.txt=4%0A").send().await;
        assert_eq!(answer.json()["a.txt"], "4\n", "{:?}", answer.body);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_describes_the_record() {
    each_group(async |fixture| {
        let (_, path) = fixture.made(&json!({"name": "Tea", "metrics": {"a": "sum"}})).await;
        let update = format!("{path}update_source/");
        let manifest = json!({
            "name": "Green tea", "config": [{"key": "cups", "type": "string"}], "main": "x.js",
        });
        let files = json!({"plugin.json": manifest.to_string()});
        let answer = fixture.owner.patch(&update, &files).await.json();
        let schema = json!({"cups": {"key": "cups", "type": "string", "order": 0}});
        assert_eq!((&answer["name"], &answer["config_schema"]), (&json!("Green tea"), &schema));
        assert_eq!(answer["metrics"], json!({"a": "sum"}));
        // Sent again unchanged, it does not undo later changes.
        fixture.owner.patch(&path, &json!({"name": "Mint"})).await;
        let answer = fixture.owner.patch(&update, &files).await.json();
        assert_eq!(answer["name"], "Mint");
        // An empty manifest changes nothing.
        let answer = fixture.owner.patch(&update, &json!({"plugin.json": "{}"})).await.json();
        assert_eq!((&answer["name"], &answer["config_schema"]), (&json!("Mint"), &schema));
        let answer = fixture.owner.patch(&update, &json!({"plugin.json": null})).await.json();
        assert_eq!((&answer["name"], &answer["config_schema"]), (&json!("Mint"), &schema));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_manifest_is_kept_with_what_is_wrong() {
    let deep = format!(r#"{{"config": {{"a": {}{}}}}}"#, "[".repeat(120), "]".repeat(120));
    each_group(async |fixture| {
        let (plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
        for (text, fault) in [
            ("{", "EOF while parsing an object at line 1 column 1"),
            ("[]", "Expected an object."),
            (r#"{"name": 7}"#, "name: Not a valid string."),
            (r#"{"config": 7}"#, "config: Expected an object, or a list of objects."),
            (&deep, "More than 64 nested objects and lists."),
        ] {
            let update = format!("{path}update_source/");
            let answer = fixture.owner.patch(&update, &json!({"plugin.json": text})).await;
            assert_eq!(answer.status, 200, "{:?}", answer.body);
            let rest = rest(&answer.json(), &plugin);
            let expected = json!({"plugin.json": text, "source_errors": {"plugin.json": fault}});
            assert_eq!(rest, expected);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_is_checked_and_decides_the_group() {
    let fixture = &fixture("pipeline_import_apps").await;
    let (_, path) = fixture.made(&json!({"name": "Tea"})).await;
    let source = "export function onEvent() {}\nexport function runEveryHour() {}\n\
                  export const jobs = { brew() {} }\nexport const metrics = { cups: 'sum' }";
    let (path, change) = (format!("{path}update_source/"), json!({"index.js": source}));
    let answer = fixture.owner.patch(&path, &change).await.json();
    assert_eq!(answer["source_errors"], json!({}), "{answer}");
    assert_eq!(
        answer["capabilities"],
        json!({
            "methods": ["onEvent"], "scheduled_tasks": ["runEveryHour"], "jobs": ["brew"],
        })
    );
    assert_eq!(answer["metrics"], json!({"cups": "sum"}));
    let there = |group: &str| format!("{}{}/", fixture.beside(group), answer["id"]);
    for (group, status) in GROUPS.into_iter().zip([200, 404, 200]) {
        assert_eq!(fixture.owner.get(&there(group)).await.status, status, "{group}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_stays_in_its_group() {
    let [destinations, frontend, import] = GROUPS;
    let delivers = "export function onEvent() {}";
    let changes = "export function processEvent(e) { return e }";
    let hourly = "export function runEveryHour() {}";
    for (group, first, others) in [
        (destinations, json!({"index.js": delivers}), [hourly, "// to do"]),
        (destinations, json!({"index.js": changes}), [hourly, "// to do"]),
        (
            import,
            json!({"index.js": hourly}),
            [delivers, "export const composeWebhook = () => null"],
        ),
        (frontend, json!({"site.ts": "export const inject = 1"}), [delivers, hourly]),
    ] {
        let fixture = &fixture(group).await;
        let (_, path) = fixture.made(&json!({"name": "Tea"})).await;
        let update = format!("{path}update_source/");
        let before = fixture.owner.patch(&update, &first).await;
        assert_eq!(before.status, 200, "{group} {first}: {:?}", before.body);
        for other in others {
            let answer = fixture.owner.patch(&update, &json!({"index.js": other})).await;
            let (status, _, code, detail, attr) = answer.error();
            assert_eq!((status, code.as_str()), (400, "invalid_input"), "{group} {other}");
            assert_eq!(attr.as_deref(), Some("index.js"), "{group} {other}");
            assert!(detail.contains("stays in its group"), "{detail}");
        }
        // The change was not stored, and the plugin is still in its group.
        let source = fixture.owner.get(&format!("{path}source/")).await;
        assert_eq!(source.status, 200, "{group}");
        for (file, text) in first.as_object().unwrap() {
            assert_eq!(&source.json()[file], text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_of_two_groups_stays_in_the_one_that_it_was_made_through() {
    let [destinations, _, import] = GROUPS;
    let fixture = &fixture(import).await;
    let (plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
    let both = "export function onEvent() {}
export function runEveryHour() {}";
    let made =
        fixture.owner.patch(&format!("{path}update_source/"), &json!({"index.js": both})).await;
    assert_eq!(made.status, 200);
    let other = format!("{}{}/", fixture.beside(destinations), plugin["id"]);
    let update = format!("{other}update_source/");
    for code in ["export function onEvent() {}", "export function runEveryHour() {}"] {
        let answer = fixture.owner.patch(&update, &json!({"index.js": code})).await;
        assert_eq!((answer.status, answer.error().4.as_deref()), (400, Some("index.js")), "{code}");
    }
    for path in [&path, &other] {
        assert_eq!(fixture.owner.get(path).await.status, 200);
    }
    // Through the group that it was created through it may leave the other one.
    let hourly = json!({"index.js": "export function runEveryHour() {}"});
    let answer = fixture.owner.patch(&format!("{path}update_source/"), &hourly).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(fixture.owner.get(&other).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expensive_source_harms_no_other_project() {
    let fixture = &fixture("pipeline_destinations").await;
    let (_, path) = fixture.made(&json!({"name": "Tea"})).await;
    let update = format!("{path}update_source/");
    // Each of these used to take gigabytes or minutes.
    let keys: String = (0..4_000).map(|n| format!("k{n}:1,")).collect();
    let chained: String = (1..3_000).map(|n| format!("const a{n}={{x:a{},y:o}};", n - 1)).collect();
    let aliases = format!("const o={{{keys}}},a0=o;{chained}exports.onEvent = () => a2999");
    let underscores = format!("export const scene = 1, $m{} = 1", "_".repeat(40_000));
    let deep = format!("export const scene = {}b", "<a>".repeat(40_000));
    for (file, text) in
        [("index.js", aliases), ("frontend.tsx", underscores), ("frontend.tsx", deep)]
    {
        let began = std::time::Instant::now();
        let answer = fixture.owner.patch(&update, &json!({ file: text })).await;
        assert_eq!(answer.status, 200, "{file}: {:?}", answer.body);
        assert!(began.elapsed().as_secs() < 30, "{file}");
    }
    let answer = fixture.owner.get(&format!("{path}source/")).await.json();
    let faults = answer["source_errors"].as_object().unwrap();
    assert_eq!(faults.keys().collect::<Vec<_>>(), ["frontend.tsx"], "{faults:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_has_its_file_line_and_column() {
    let fixture = &fixture("pipeline_destinations").await;
    let (_, path) = fixture.made(&json!({"name": "Tea"})).await;
    let update = format!("{path}update_source/");
    let good = json!({"index.ts": "export function onEvent(event: object) {}"});
    let good = fixture.owner.patch(&update, &good).await.json();
    assert_eq!(good["source_errors"], json!({}), "{good}");
    for (file, text, part) in [
        ("index.ts", "const a = 1\nconst b = = 2\n", "2:"),
        ("site.ts", "export function inject( {\n", ":"),
        ("frontend.tsx", "export const scene = <div>\n", ":"),
    ] {
        let answer = fixture.owner.patch(&update, &json!({ file: text })).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let answer = answer.json();
        let fault = answer["source_errors"][file].as_str().unwrap();
        assert!(fault.contains(part), "{fault}");
        // The capabilities found before stay.
        assert_eq!(answer["capabilities"], good["capabilities"]);
        let read = fixture.owner.get(&format!("{path}source/")).await.json();
        assert_eq!(read["source_errors"][file], fault);
        fixture.owner.patch(&update, &json!({ file: null })).await;
        fixture.owner.patch(&update, &json!({"index.ts": good["index.ts"]})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_have_limits() {
    each_group(async |fixture| {
        let (_, path) = fixture.made(&json!({"name": "Tea"})).await;
        let update = format!("{path}update_source/");
        let send = async |body: Value| fixture.owner.patch(&update, &body).await;
        let answer = send(json!({"a.js": 7})).await;
        assert_invalid(&answer, Some("a.js"), "invalid_input", "Not a valid string.");
        let long = format!("{}.js", "x".repeat(198));
        let answer = send(json!({ long.as_str(): "1" })).await;
        let detail = "Ensure this field has no more than 200 characters.";
        assert_invalid(&answer, Some(&long), "max_length", detail);
        let most = send(json!({"a.js": "x".repeat(512 << 10)})).await;
        assert_eq!(most.status, 200);
        let answer = send(json!({"b.js": "x"})).await;
        let detail = "All source files together may have 524288 bytes.";
        assert_invalid(&answer, None, "invalid_input", detail);
        send(json!({"a.js": null})).await;
        let many: serde_json::Map<String, Value> =
            (0..51).map(|n| (format!("{n}.js"), json!(""))).collect();
        let answer = send(Value::Object(many)).await;
        assert_invalid(&answer, None, "invalid_input", "A plugin may have 50 source files.");
        let raw = fixture.owner.get(&format!("{path}source/?raw=true")).await.json();
        assert_eq!(raw, json!({}));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_activity_log_names_the_text() {
    each_group(async |fixture| {
        let (_, path) = fixture.made(&json!({"name": "Tea"})).await;
        let update = format!("{path}update_source/");
        fixture.owner.patch(&update, &json!({"a.txt": "let canary"})).await;
        // A change without an effect has no entry.
        fixture.owner.patch(&update, &json!({"a.txt": "let canary"})).await;
        let organization = fixture.app.organization();
        let log = format!("/api/organizations/{organization}/activity_log/?scope=Plugin");
        let log = fixture.owner.get(&log).await.json();
        assert_eq!(log["count"], 2, "{log}");
        let change = &log["results"][0]["detail"]["changes"];
        assert_eq!(change[0]["field"], "a.txt");
        assert_eq!(change[0]["before"], Value::Null);
        let hash = change[0]["after"].as_str().unwrap();
        assert_eq!((hash.len(), &hash[..7]), (71, "sha256:"));
        assert!(!log.to_string().contains("canary"));
    })
    .await;
}
