//! `/mcp` and `weir mcp`: questions of models.

use std::collections::BTreeMap;
use std::process::Stdio;

use http::Method;
use serde_json::{Value, json};
use tokio::process::Command;
use weir_testkit::{Answer, Call, Caller, TestApp};

use crate::process::{Output, run};
use crate::stored::send;
use crate::traffic::function;
use crate::web::{page, session};

const NEWEST: &str = "2025-11-25";

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn tool(name: &str, arguments: Value) -> Value {
    request("tools/call", json!({"name": name, "arguments": arguments}))
}

fn call(caller: &Caller, body: &Value) -> Call {
    caller
        .call(Method::POST, "/mcp")
        .header("accept", "application/json, text/event-stream")
        .json(body)
}

async fn post(caller: &Caller, body: &Value) -> Answer {
    call(caller, body).send().await
}

/// The result of a request.
async fn result(caller: &Caller, body: &Value) -> Value {
    let answer = post(caller, body).await;
    assert_eq!(answer.status, 200, "{body}: {:?}", answer.body);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let answer = answer.json();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)), "{answer}");
    assert!(answer["result"].is_object(), "{body}: {answer}");
    answer["result"].clone()
}

/// What a tool answers, and whether that is an error.
async fn outcome(caller: &Caller, name: &str, arguments: Value) -> (Value, bool) {
    let result = result(caller, &tool(name, arguments)).await;
    assert_eq!(result["content"][0]["type"], "text");
    let text = result["content"][0]["text"].as_str().unwrap();
    (serde_json::from_str(text).unwrap(), result["isError"].as_bool().unwrap())
}

async fn found(caller: &Caller, name: &str, arguments: Value) -> Value {
    let (found, is_error) = outcome(caller, name, arguments.clone()).await;
    assert!(!is_error, "{name} {arguments}: {found}");
    found
}

/// Code and field of the error of a tool.
async fn fault(caller: &Caller, name: &str, arguments: Value) -> (String, Option<String>) {
    let (fault, is_error) = outcome(caller, name, arguments.clone()).await;
    assert!(is_error, "{name} {arguments}: {fault}");
    let text = |name: &str| fault[name].as_str().map(str::to_owned);
    (text("code").unwrap(), text("attr"))
}

/// Code and id of the error of a message.
fn refusal(answer: &Answer) -> (u16, i64, Value) {
    let body = answer.json();
    assert!(body["error"]["message"].is_string(), "{body}");
    (answer.status, body["error"]["code"].as_i64().unwrap(), body["id"].clone())
}

fn trends() -> Value {
    json!({
        "kind": "TrendsQuery",
        "series": [{"kind": "EventsNode", "event": "paid", "math": "total"}],
        "interval": "day",
        "dateRange": {"date_from": "-7d"},
    })
}

/// Eleven payments of two persons.
async fn fill(app: &TestApp) {
    let paid = |number: usize| {
        let id = if number < 4 { "ada" } else { "bob" };
        json!({"event": "paid", "distinct_id": id, "properties": {"price": number}})
    };
    send(app, (0..11).map(paid).collect()).await;
}

/// The numbers as they are, whatever form they are written in.
fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_begins_and_lists_the_tools() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let client = json!({"name": "test", "version": "1"});
    for (wanted, agreed) in
        [(NEWEST, NEWEST), ("2025-06-18", "2025-06-18"), ("2024-11-05", NEWEST), ("new", NEWEST)]
    {
        let params = json!({"protocolVersion": wanted, "capabilities": {}, "clientInfo": client});
        let begun = result(&caller, &request("initialize", params)).await;
        assert_eq!(begun["protocolVersion"], agreed);
        assert_eq!(begun["capabilities"], json!({"tools": {}}));
        assert_eq!(begun["serverInfo"]["name"], "weir");
        assert!(begun["instructions"].as_str().unwrap().contains("list_projects"));
    }
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = post(&caller, &begun).await;
    assert_eq!((answer.status, answer.body.len()), (202, 0));
    assert_eq!(result(&caller, &request("ping", json!({}))).await, json!({}));
    let answer = call(&caller, &request("ping", json!({})));
    assert_eq!(answer.header("mcp-protocol-version", NEWEST).send().await.status, 200);

    let listed = result(&caller, &request("tools/list", json!({}))).await;
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 9);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{name}");
        assert!(tool["description"].as_str().unwrap().len() > 20, "{name}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trend_has_the_same_numbers_by_mcp_by_the_api_and_on_its_page() {
    let app = TestApp::with_owner().await;
    fill(&app).await;
    let (cookie, project) = (session(&app).await, app.project());
    let fields = [("event", "paid"), ("math", "total"), ("interval", "day"), ("range", "-7d")];
    let fields = fields.map(|(name, value)| format!("&question[{name}]={value}")).concat();
    let form = format!("project={project}{fields}");
    let saved = function(&app, &cookie, "save_insight", &format!("{form}&name=Payments")).await;
    assert!(saved.status < 400, "{:?}", saved.body);
    let caller = app.owner().key(&["query:read", "insight:read"]).await;

    let path = format!("/api/projects/{project}/query/");
    let by_api = caller.post(&path, &json!({"query": trends()})).await.json();
    let arguments = json!({"project_id": project, "query": trends()});
    let by_mcp = found(&caller, "query", arguments).await;
    assert_eq!(by_api["results"][0]["count"].as_f64(), Some(11.0));
    for member in ["results", "hasMore", "resolved_date_range", "timezone"] {
        assert_eq!(by_mcp[member], by_api[member], "{member}");
    }

    let listed = found(&caller, "list_insights", json!({"search": "pay"})).await;
    assert_eq!((&listed["count"], &listed["results"][0]["name"]), (&json!(1), &json!("Payments")));
    let short_id = &listed["results"][0]["short_id"];
    let insight = found(&caller, "get_insight", json!({"insight": short_id})).await;
    let data = &by_api["results"][0]["data"];
    assert_eq!(insight["answer"]["results"][0]["data"], *data);
    let short_id = short_id.as_str().unwrap();
    let shown = page(&app, &format!("/projects/{project}/insights/{short_id}"), &cookie).await;
    let cell = format!(
        "data-label=\"Whole range\" class=\"cell number\"><div class=\"cell-content\">\
         <a href=\"/projects/{project}/insights/persons?event=paid&amp;math=total&amp;\
         interval=day&amp;range=-7d\">11</a></div>"
    );
    assert!(shown.text().contains(&cell), "{}", shown.text());
    let drawn = function(&app, &cookie, "answer_question", &form).await.json();
    assert_eq!(numbers(&drawn["results"]["trends"]["series"][0]["numbers"]["data"]), numbers(data));

    let sql = "SELECT count(), uniq(person_id) FROM events WHERE event = {name}";
    let arguments = json!({"query": sql, "values": {"name": "paid"}});
    let rows = found(&caller, "query_sql", arguments).await;
    assert_eq!(rows["results"], json!([[11, 2]]));
    let question = json!({"kind": "HogQLQuery", "query": sql, "values": {"name": "paid"}});
    let by_api = caller.post(&path, &json!({"query": question})).await.json();
    assert_eq!(rows["results"], by_api["results"]);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_dashboards_are_listed() {
    let app = TestApp::with_owner().await;
    fill(&app).await;
    let owner = app.owner().key(&["insight:write", "dashboard:write"]).await;
    let base = format!("/api/projects/{}/", app.project());
    let made = json!({"name": "Growth", "description": "On Mondays"});
    let made = owner.post(&format!("{base}dashboards/"), &made).await.json();
    let insight = json!({"name": "Sales", "query": trends(), "dashboards": [made["id"]]});
    assert_eq!(owner.post(&format!("{base}insights/"), &insight).await.status, 201);

    let scopes = [
        "project:read",
        "event_definition:read",
        "property_definition:read",
        "insight:read",
        "dashboard:read",
    ];
    let caller = app.owner().key(&scopes).await;
    let projects = found(&caller, "list_projects", json!({})).await;
    let shop = &projects["results"][0];
    assert_eq!((&shop["id"], &shop["name"]), (&json!(app.project()), &json!("Shop")));
    assert_eq!(shop["has_events"], true);
    assert!(!projects.to_string().contains(app.project_key()), "{projects}");
    let names = |list: &Value| -> Vec<String> {
        let results = list["results"].as_array().unwrap().iter();
        results.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&found(&caller, "list_events", json!({"search": "PAI"})).await), ["paid"]);
    assert!(names(&found(&caller, "list_events", json!({"search": "left"})).await).is_empty());
    let properties = found(&caller, "list_properties", json!({"type": "event"})).await;
    assert!(names(&properties).contains(&"price".to_owned()), "{properties}");
    let none = found(&caller, "list_properties", json!({"type": "group"})).await;
    assert_eq!(none["count"], 0);

    let dashboards = found(&caller, "list_dashboards", json!({"limit": 1})).await;
    assert_eq!(names(&dashboards), ["Growth"]);
    let id = &dashboards["results"][0]["id"];
    let dashboard = found(&caller, "get_dashboard", json!({"dashboard": id})).await;
    assert_eq!(dashboard["insights"][0]["name"], "Sales");
    // No address of a user is in an answer.
    let all = format!("{dashboard}{}", found(&caller, "list_insights", json!({})).await);
    assert!(!all.contains("@mail.example"), "{all}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_needs_its_scope_and_its_project() {
    let app = TestApp::with_owner().await;
    fill(&app).await;
    let denied = || ("permission_denied".to_owned(), None);
    let missing = || ("not_found".to_owned(), None);
    let question = json!({"query": trends()});
    let reader = app.owner().key(&["insight:read"]).await;
    assert_eq!(fault(&reader, "query", question.clone()).await, denied());
    assert_eq!(fault(&reader, "list_projects", json!({})).await, denied());
    assert_eq!(fault(&reader, "get_insight", json!({"insight": "abcdefgh"})).await, denied());
    let (body, _) = outcome(&reader, "query", question.clone()).await;
    assert_eq!(body["detail"], "API key missing required scope 'query:read'");

    let all = app.owner().key(&["*"]).await;
    let blog = all.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    // Two projects: the key must say which one.
    let required = ("required".to_owned(), Some("project_id".to_owned()));
    assert_eq!(fault(&all, "query", question.clone()).await, required);
    let with = |project: &Value| json!({"query": trends(), "project_id": project});
    let shop = json!(app.project());
    let count = |answer: Value| answer["results"][0]["count"].as_f64();
    assert_eq!(count(found(&all, "query", with(&shop)).await), Some(11.0));
    assert_eq!(count(found(&all, "query", with(&blog["id"])).await), Some(0.0));

    let scopes = ["query:read", "project:read"];
    let limited = app.owner().limited_key(&scopes, &[], &[app.project()]).await;
    assert_eq!(count(found(&limited, "query", question.clone()).await), Some(11.0));
    assert_eq!(fault(&limited, "query", with(&blog["id"])).await, missing());
    let projects = found(&limited, "list_projects", json!({})).await;
    assert_eq!((&projects["count"], &projects["results"][0]["id"]), (&json!(1), &shop));

    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    assert_eq!(fault(&outsider, "query", with(&shop)).await, missing());
    assert_eq!(fault(&outsider, "query", question).await, required);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_an_argument_names_its_field() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read", "insight:read", "property_definition:read"]).await;
    let mut unknown = trends();
    unknown["series"][0]["math"] = json!("most");
    for (name, arguments, code, attr) in [
        ("query", json!({}), "required", Some("query")),
        ("query", json!({"query": "trends"}), "invalid_input", Some("query")),
        ("query", json!({"query": {}}), "required", Some("kind")),
        ("query", json!({"query": unknown}), "invalid_choice", Some("series__0__math")),
        (
            "query",
            json!({"query": trends(), "refresh": "often"}),
            "invalid_choice",
            Some("refresh"),
        ),
        ("query", json!({"query": trends(), "project": 1}), "invalid_input", Some("project")),
        (
            "query",
            json!({"query": trends(), "project_id": []}),
            "invalid_input",
            Some("project_id"),
        ),
        ("query", json!({"query": trends(), "project_id": 0}), "min_value", Some("project_id")),
        (
            "query",
            json!({"query": trends(), "project_id": 1e30}),
            "invalid_input",
            Some("project_id"),
        ),
        ("query", json!({"query": trends(), "project_id": 987_654}), "not_found", None),
        ("query_sql", json!({}), "required", Some("query")),
        ("query_sql", json!({"query": "SELECT evnt FROM events"}), "invalid_input", Some("query")),
        ("list_insights", json!({"limit": 0}), "min_value", Some("limit")),
        ("list_properties", json!({"type": "cohort"}), "invalid_choice", Some("type")),
        ("get_insight", json!({}), "required", Some("insight")),
        ("get_insight", json!({"insight": "abcdefgh"}), "not_found", None),
    ] {
        let expected = (code.to_owned(), attr.map(str::to_owned));
        assert_eq!(fault(&caller, name, arguments.clone()).await, expected, "{name} {arguments}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_messages_are_answered_as_errors_of_json_rpc() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let none = || Value::Null;
    let ping = request("ping", json!({}));
    let with_id = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    for (body, expected) in [
        (json!([ping, ping]), (400, -32_600, none())),
        (json!("ping"), (400, -32_600, none())),
        (with_id(json!("x".repeat(300))), (400, -32_600, none())),
        (with_id(json!(1e30)), (400, -32_600, none())),
        (with_id(json!({"a": 1})), (400, -32_600, none())),
        (json!({"id": 7, "method": "ping"}), (400, -32_600, json!(7))),
        (json!({"jsonrpc": "2.0", "id": 7, "result": {}}), (400, -32_600, json!(7))),
        (request("tools/steal", json!({})), (200, -32_601, json!(1))),
        (request("server/discover", json!({})), (200, -32_601, json!(1))),
        (request("initialize", json!({"protocolVersion": 7})), (200, -32_602, json!(1))),
        (tool("delete_project", json!({})), (200, -32_602, json!(1))),
        (tool("query", json!([1])), (200, -32_602, json!(1))),
        (request("tools/call", json!({})), (200, -32_602, json!(1))),
    ] {
        let answer = post(&caller, &body).await;
        assert_eq!(refusal(&answer), expected, "{body}");
    }
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let many = format!("[{}0]", "0,".repeat(9_000));
    let many = request("tools/call", json!({"arguments": many})).to_string();
    let wide = format!("{{\"a\":[{}0]}}", "0,".repeat(9_000));
    for (body, expected) in [
        ("{", (400, -32_700)),
        ("", (400, -32_700)),
        ("{\"jsonrpc\":\"2.0\",\"id\":1e999,\"method\":\"ping\"}", (400, -32_700)),
        (deep.as_str(), (400, -32_700)),
        (wide.as_str(), (400, -32_700)),
        // A long text is one value.
        (many.as_str(), (200, -32_602)),
    ] {
        let sent = caller.call(Method::POST, "/mcp").header("content-type", "application/json");
        let (status, code, _) = refusal(&sent.body(body.to_owned()).send().await);
        assert_eq!((status, code), expected, "{}", &body[..body.len().min(60)]);
    }
    let other = call(&caller, &ping).header("mcp-protocol-version", "2099-01-01").send().await;
    assert_eq!(refusal(&other), (400, -32_600, json!(1)));
    let form = caller.call(Method::POST, "/mcp").header("content-type", "text/plain");
    assert_eq!(refusal(&form.body("{}").send().await).0, 415);
    let large = "x".repeat(1 << 20);
    let answer = post(&caller, &request(&large, json!({}))).await;
    assert_eq!(refusal(&answer), (413, -32_000, none()));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_needed_and_pages_of_other_sites_are_refused() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let ping = request("ping", json!({}));
    for caller in [app.anonymous(), app.anonymous().with_key("phx_unknown")] {
        let answer = post(&caller, &ping).await;
        assert_eq!(refusal(&answer), (401, -32_000, Value::Null));
        assert_eq!(answer.json()["error"]["data"]["type"], "authentication_error");
    }
    // Only the header has the key.
    let path = format!("/mcp?personal_api_key={}", caller.key());
    let answer = app.anonymous().post(&path, &ping).await;
    assert_eq!(answer.status, 401);

    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let call = caller.call(method.clone(), "/mcp").header("accept", "text/event-stream");
        let answer = call.send().await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method}");
    }
    let refused = caller.call(Method::POST, "/mcp").json(&ping).header("accept", "text/html");
    assert_eq!(refused.send().await.status, 406);

    let own = format!("http://{}", app.address());
    for (origin, status) in [
        (own.as_str(), 200),
        ("https://evil.example", 403),
        ("http://evil.example:8000", 403),
        ("null", 403),
    ] {
        let answer = call(&caller, &ping).header("origin", origin).send().await;
        assert_eq!(answer.status, status, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    // A name of another site that leads to this machine.
    let call = call(&caller, &ping).header("host", "evil.example");
    assert_eq!(call.header("origin", "http://evil.example").send().await.status, 403);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_tools_have_the_limits_of_the_api() {
    let app = TestApp::start(|config| config.rate_per_minute = 2, |_| {}).await.set_up().await;
    let caller = app.owner().key(&["insight:read"]).await;
    assert_eq!(fault(&caller, "query", json!({"query": trends()})).await.0, "permission_denied");
    // The quota is that of the key, whichever way it is used.
    let path = format!("/api/projects/{}/insights/", app.project());
    assert_eq!(caller.get(&path).await.status, 200);
    let answer = post(&caller, &request("ping", json!({}))).await;
    assert_eq!(refusal(&answer), (429, -32_000, Value::Null));
    assert!(answer.header("retry-after").is_some());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_questions_are_an_error_of_the_tool() {
    let limits = |limits: &mut weir_server::limits::Limits| {
        (limits.questions, limits.questions_waiting) = (0, 0);
    };
    let app =
        TestApp::start(|config| config.metrics_listen = "127.0.0.1:0".parse().unwrap(), limits);
    let app = app.await.set_up().await;
    let caller = app.owner().key(&["query:read"]).await;
    let (code, attr) = fault(&caller, "query", json!({"query": trends()})).await;
    assert_eq!((code.as_str(), attr), ("unavailable", None));
    let page = app.metrics().await;
    let line = "weir_http_requests_total{surface=\"api\",status=\"503\"} 1";
    assert!(page.lines().any(|found| found == line), "{page}");
    app.stop().await;
}

/// Runs `weir mcp` with these lines.
async fn bridge(app: &TestApp, key: &str, lines: &[String]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.env_clear().env("WEIR_API_KEY", key).current_dir(folder.path());
    command.args(["mcp", "--url", &format!("http://{}", app.address())]).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let output = run(command, &lines).await;
    let made = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(made, 0, "the bridge has no data directory");
    output
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bridge_passes_standard_input_to_a_host() {
    let app = TestApp::with_owner().await;
    fill(&app).await;
    let caller = app.owner().key(&["query:read"]).await;
    let question = |id: i64| {
        let params = json!({"name": "query", "arguments": {"query": trends()}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let begin = json!({"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {}});
    let lines = [
        request("initialize", begin).to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        question(2),
        "no json".to_owned(),
        json!({"jsonrpc": "2.0", "id": "three", "method": "tools/steal"}).to_string(),
    ];
    let output = bridge(&app, caller.key(), &lines).await;
    assert!(output.ok, "{}", output.err);
    assert_eq!(output.err, "");
    let replies: BTreeMap<String, Value> = output
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|reply| (reply["id"].to_string(), reply))
        .collect();
    assert_eq!(replies.len(), 4, "{replies:?}");
    assert_eq!(replies["1"]["result"]["protocolVersion"], NEWEST);
    assert_eq!(replies["\"three\""]["error"]["code"], -32_601);
    assert_eq!(replies["null"]["error"]["code"], -32_700);
    let text = replies["2"]["result"]["content"][0]["text"].as_str().unwrap();
    let answer: Value = serde_json::from_str(text).unwrap();
    assert_eq!(answer["results"][0]["count"].as_f64(), Some(11.0));

    let refused = bridge(&app, "phx_unknown", &[question(7)]).await;
    let reply: Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(7), &json!(-32_000)));
    assert!(reply["error"]["message"].as_str().unwrap().contains("401"), "{reply}");
    for key in ["", app.project_key()] {
        let output = bridge(&app, key, &[]).await;
        assert!(!output.ok && output.out.is_empty(), "{}", output.out);
        assert!(output.err.contains("WEIR_API_KEY"), "{}", output.err);
    }
    app.stop().await;
}
