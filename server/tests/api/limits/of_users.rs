//! Limits on what one user may hold of the permits and of the memory for bodies.
//!
//! Requests wait in these tests because the destination that they try never answers.

use http::Method;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use weir_model::json::VALUES;
use weir_model::organizations::Level;
use weir_server::limits::Limits;
use weir_testkit::{Answer, Call, Caller, TestApp, until};

use crate::web::{function, page, session};

const ME: &str = "/api/users/@me/";

/// An instance that may connect to this machine.
async fn reaching(change: impl FnOnce(&mut Limits)) -> TestApp {
    let egress = |config: &mut weir_server::config::Config| {
        config.egress_allow = "127.0.0.1".parse().unwrap();
    };
    TestApp::start(egress, change).await.set_up().await
}

/// A destination that accepts connections and never answers.
struct Silent {
    tcp: TcpListener,
    open: Vec<TcpStream>,
}

impl Silent {
    async fn start() -> Self {
        Self { tcp: TcpListener::bind("127.0.0.1:0").await.unwrap(), open: Vec::new() }
    }

    fn url(&self) -> String {
        format!("http://{}/batch/", self.tcp.local_addr().unwrap())
    }

    /// A request of the API that tries this destination.
    fn tried_by(&self, app: &TestApp, key: &Caller, junk: &Value) -> Call {
        let path =
            format!("/api/organizations/{}/batch_exports/run_test_step_new/", app.organization());
        let config = json!({"url": self.url(), "token": "phc_x"});
        let destination = json!({"type": "HTTP", "config": config});
        key.call(Method::POST, &path)
            .json(&json!({"destination": destination, "step": 1, "junk": junk}))
    }

    /// A request of the web app that tries this destination.
    fn tried_in(&self, app: &TestApp, cookie: &str) -> Call {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.append_pair("organization", &app.organization().to_string());
        body.append_pair("destination", "HTTP");
        body.append_pair("config[url]", &self.url());
        body.append_pair("secrets[token]", "phc_x");
        function(app, "test_export", &body.finish()).header("cookie", cookie)
    }

    /// Sends a request, and waits until it waits for the destination.
    async fn hold(&mut self, call: Call, held: &mut JoinSet<Answer>) {
        held.spawn(call.send());
        let (stream, _) = self.tcp.accept().await.unwrap();
        self.open.push(stream);
    }
}

fn assert_refused(answer: &Answer, most: usize) {
    let detail = format!(
        "Too many requests at the same time. You may have {most}: wait until one has ended."
    );
    answer.assert_error(429, "throttled_error", "throttled", &detail);
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_requests_of_a_user_leave_the_api_to_others() {
    let app = reaching(|limits| limits.api_requests_per_user = 2).await;
    let (one, other) = (app.owner().key(&["*"]).await, app.owner().key(&["user:read"]).await);
    let grace = app.member("grace", Level::Member).await.key(&["*"]).await;
    let (mut silent, mut held) = (Silent::start().await, JoinSet::new());
    for _ in 0..2 {
        silent.hold(silent.tried_by(&app, &one, &Value::Null), &mut held).await;
    }
    // The permits are those of the user, whichever key is used.
    for key in [&one, &other] {
        assert_refused(&key.get(ME).await, 2);
    }
    assert_eq!(grace.get(ME).await.status, 200);
    // The web app has permits of its own.
    let cookie = session(&app).await;
    assert_eq!(page(&app, "/account", &cookie).await.status, 200);
    held.shutdown().await;
    until(async || one.get(ME).await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_requests_of_a_user_leave_the_web_app_to_others() {
    let app = reaching(|limits| limits.web_requests_per_user = 2).await;
    let key = app.owner().key(&["*"]).await;
    let cookies = [session(&app).await, session(&app).await];
    let (mut silent, mut held) = (Silent::start().await, JoinSet::new());
    for _ in 0..2 {
        silent.hold(silent.tried_in(&app, &cookies[0]), &mut held).await;
    }
    for cookie in &cookies {
        assert_refused(&page(&app, "/account", cookie).await, 2);
        let call = function(&app, "list_organizations", "").header("cookie", cookie);
        assert_refused(&call.send().await, 2);
    }
    // Signing in, other users and the API continue to work.
    session(&app).await;
    assert_eq!(page(&app, "/login", "").await.status, 200);
    assert_eq!(key.get(ME).await.status, 200);
    held.shutdown().await;
    until(async || page(&app, "/account", &cookies[1]).await.status == 200).await;
}

/// So many objects, each with one number.
fn objects(count: usize) -> Value {
    json!(vec![json!({"": 0}); count])
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_bodies_are_counted_until_their_request_has_ended() {
    let app = reaching(|limits| limits.values_per_user = 600_000).await;
    let key = app.owner().key(&["*"]).await;
    let grace = app.member("grace", Level::Member).await.key(&["*"]).await;
    let (mut silent, mut held) = (Silent::start().await, JoinSet::new());
    // Eight kilobytes of text, which take more than half of the part in memory.
    let junk = objects(400);
    silent.hold(silent.tried_by(&app, &key, &junk), &mut held).await;
    let body = json!({"first_name": "Ada", "junk": junk});
    let refused = key.patch(ME, &body).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(key.patch(ME, &json!({"first_name": "Ada"})).await.status, 200);
    assert_eq!(grace.patch(ME, &body).await.status, 200);
    held.shutdown().await;
    until(async || key.patch(ME, &body).await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn json_bodies_have_a_bounded_number_of_values() {
    let app = TestApp::with_owner().await;
    let key = app.owner().key(&["*"]).await;
    // The body itself, the name and the list are values too.
    let body = |count: usize| json!({"name": "Beta", "junk": objects(count)});
    let organizations = "/api/organizations/";
    assert_eq!(key.post(organizations, &body(VALUES / 2 - 2)).await.status, 201);
    let refused = key.post(organizations, &body(VALUES / 2 - 1)).await;
    let detail = format!("JSON parse error - more than {VALUES} values");
    refused.assert_error(400, "invalid_request", "parse_error", &detail);

    // Before the sender is known, a body has few values. One with a key has as many as
    // others: the key is found without building them.
    let precheck = |count: usize| json!({"email": "a@b.example", "junk": objects(count)});
    let anonymous = app.anonymous();
    let most = Limits::default().early_values;
    let path = "/api/login/precheck/";
    assert_eq!(anonymous.post(path, &precheck(most / 2 - 2)).await.status, 200);
    let refused = anonymous.post(path, &precheck(most / 2)).await;
    let detail = format!("JSON parse error - more than {most} values");
    refused.assert_error(400, "invalid_request", "parse_error", &detail);
    let with_key = json!({"name": "Gamma", "junk": objects(most), "personal_api_key": key.key()});
    assert_eq!(anonymous.post(organizations, &with_key).await.status, 201);
}
