//! Pages of lists (API-12, API-13), with the links that a client sees.

use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp};

async fn with_three() -> (TestApp, Caller) {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    for name in ["Beta", "Gamma"] {
        assert_eq!(caller.post("/api/organizations/", &json!({"name": name})).await.status, 201);
    }
    (app, caller)
}

fn names(list: &Value) -> Vec<&str> {
    let results = list["results"].as_array().unwrap();
    results.iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_links() {
    let (app, caller) = with_three().await;
    let base = format!("http://{}/api/organizations/", app.address());
    let cases = [
        ("", vec!["Acme Tea", "Beta", "Gamma"], None, None),
        ("?limit=1", vec!["Acme Tea"], Some("?limit=1&offset=1"), None),
        ("?limit=1&offset=1", vec!["Beta"], Some("?limit=1&offset=2"), Some("?limit=1")),
        ("?limit=2&offset=1", vec!["Beta", "Gamma"], None, Some("?limit=2")),
        ("?limit=1&offset=2", vec!["Gamma"], None, Some("?limit=1&offset=1")),
        ("?offset=9", vec![], None, Some("?limit=100")),
        ("?limit=2&offset=9", vec![], None, Some("?limit=2&offset=7")),
        ("?limit=0", vec!["Acme Tea", "Beta", "Gamma"], None, None),
        ("?limit=-1&offset=-1", vec!["Acme Tea", "Beta", "Gamma"], None, None),
        ("?limit=x&offset=y", vec!["Acme Tea", "Beta", "Gamma"], None, None),
        ("?limit=2&limit=1", vec!["Acme Tea"], Some("?limit=1&offset=1"), None),
        ("?limit=5000&offset=1", vec!["Beta", "Gamma"], None, Some("?limit=1000")),
        ("?z=a%20b&limit=1&b=2", vec!["Acme Tea"], Some("?b=2&limit=1&offset=1&z=a+b"), None),
    ];
    for (query, expected, next, previous) in cases {
        let answer = caller.get(&format!("/api/organizations/{query}")).await;
        let list = answer.json();
        assert_eq!(names(&list), expected, "{query}");
        assert_eq!(list["count"], 3);
        let link = |query: Option<&str>| {
            query.map_or(Value::Null, |query| json!(format!("{base}{query}")))
        };
        assert_eq!(list["next"], link(next), "{query}");
        assert_eq!(list["previous"], link(previous), "{query}");
        let text = answer.text();
        let order = ["\"count\"", "\"next\"", "\"previous\"", "\"results\""]
            .map(|key| text.find(key).unwrap());
        assert!(order.is_sorted(), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_can_be_followed_and_keep_the_form_of_the_path() {
    let (app, caller) = with_three().await;
    let list = caller.get("/api/organizations?limit=2").await.json();
    let next = list["next"].as_str().unwrap();
    let base = format!("http://{}", app.address());
    assert_eq!(next, format!("{base}/api/organizations?limit=2&offset=2"));
    let rest = caller.get(next.strip_prefix(&base).unwrap()).await.json();
    assert_eq!(names(&rest), ["Gamma"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_name_the_public_address() {
    let app = TestApp::start(
        |config| {
            config.public_url = "https://weir.example".parse().unwrap();
            config.trusted_proxies = "127.0.0.1".parse().unwrap();
        },
        |_| {},
    )
    .await
    .set_up()
    .await;
    let caller = app.owner().key(&["*"]).await;
    caller.post("/api/organizations/", &json!({"name": "Beta"})).await;
    let next = |host: &'static str, forwarded: Option<(&'static str, &'static str)>| {
        let call =
            caller.call(http::Method::GET, "/api/organizations/?limit=1").header("host", host);
        let call = match forwarded {
            Some((name, value)) => call.header(name, value),
            None => call,
        };
        async move { call.send().await.json()["next"].as_str().unwrap().to_owned() }
    };
    let tail = "/api/organizations/?limit=1&offset=1";
    assert_eq!(next("weir.example", None).await, format!("https://weir.example{tail}"));
    assert_eq!(next("inner:8000", None).await, format!("http://inner:8000{tail}"));
    let forwarded = next("inner:8000", Some(("x-forwarded-host", "weir.example"))).await;
    assert_eq!(forwarded, format!("https://weir.example{tail}"));
}
