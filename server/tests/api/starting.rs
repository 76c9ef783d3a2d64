//! A service whose store is still being opened.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use weir_server::app::Stopping;
use weir_server::config::{Config, Settings};
use weir_server::dispatcher::Dispatcher;
use weir_server::limits::Limits;
use weir_server::listener::{self, Terms, Transport};
use weir_server::metrics::Metrics;
use weir_server::serve::{Options, Server};
use weir_server::starting::Starting;
use weir_testkit::{Caller, TestApp, until};

/// A listener of a service that has not started.
async fn listen(patience: Duration) -> (Starting, Caller) {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let caller = Caller::of(tcp.local_addr().unwrap());
    let terms = Terms {
        limits: Limits::default().connections,
        config: Arc::new(Settings::default().over(Settings::default())),
        metrics: Metrics::new(),
        stopping: Stopping::default(),
    };
    let starting = Starting::new(patience, None);
    tokio::spawn(listener::serve(tcp, terms, Transport::default(), starting.clone()));
    (starting, caller)
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_answer_and_the_rest_waits() {
    let (starting, caller) = listen(Duration::from_secs(60)).await;
    assert_eq!(caller.get("/_livez").await.json(), json!({"http": true}));
    assert_eq!(caller.get("/_health/").await.body, "ok");
    let ready = caller.get("/_readyz").await;
    assert_eq!((ready.status, &ready.json()["store"]), (503, &json!(false)));
    assert_eq!(caller.get("/_readiness").await.status, 503);

    let waits = tokio::spawn({
        let caller = caller.clone();
        async move { caller.get("/_preflight").await }
    });
    let app = TestApp::empty().await;
    assert!(!waits.is_finished());
    starting.open(Dispatcher::new(app.app().clone()));
    assert_eq!(waits.await.unwrap().status, 200);
    assert_eq!(caller.get("/_readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_answers_probes_while_it_opens_its_data() {
    let folder = tempfile::tempdir().unwrap();
    // The start waits until the master key is written into this pipe.
    let key = folder.path().join("key");
    let made = Command::new("mkfifo").args(["-m", "600"]).arg(&key).status().unwrap();
    assert!(made.success());
    // A port that is free now. The address of a server is not known before it has started.
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let config: Config = Settings {
        listen: Some(address.to_string()),
        store: Some("mem://".parse().unwrap()),
        metrics_listen: Some("off".parse().unwrap()),
        master_key_file: Some(key.clone()),
        ..Settings::default()
    }
    .over(Settings::default());
    let mut options = Options::default();
    options.plugins.program = env!("CARGO_BIN_EXE_weir").into();
    // Not on a thread that serves requests, because reading the pipe blocks it.
    let starting =
        tokio::task::spawn_blocking(|| Handle::current().block_on(Server::start(config, options)));
    let caller = Caller::of(address);
    until(async || TcpStream::connect(address).await.is_ok()).await;
    assert_eq!(caller.get("/_livez").await.json(), json!({"http": true}));
    let ready = caller.get("/_readyz").await;
    assert_eq!((ready.status, &ready.json()["store"]), (503, &json!(false)));
    assert!(!starting.is_finished());

    tokio::task::spawn_blocking(move || std::fs::write(key, "5a".repeat(32)))
        .await
        .unwrap()
        .unwrap();
    let server = starting.await.unwrap().unwrap();
    assert_eq!(caller.get("/_readyz").await.status, 200);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_do_not_wait_for_ever() {
    let (_starting, caller) = listen(Duration::from_millis(50)).await;
    let refused = caller.get("/login").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
}
