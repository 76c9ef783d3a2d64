//! Damage of the ingest log is shown on all pages and endpoints for it.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use weir_testkit::{Answer, Caller, until};

use crate::process::{Serving, set_up, weir_showing};

/// Puts a copy of a damaged record into quarantine, as a start or a reader does.
fn quarantine(data: &Path) {
    let quarantine = data.join("data/log/quarantine");
    std::fs::create_dir_all(&quarantine).unwrap();
    std::fs::write(quarantine.join(format!("{:020}.bytes", 64)), [7; 100]).unwrap();
}

/// The instance page, for the first user.
async fn instance_page(serving: &Serving) -> String {
    let login = json!({"email": "ada@mail.example", "password": "plum-otter-violin-93"});
    let answer = serving.caller.post("/api/login/", &login).await;
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let call = serving.caller.call(http::Method::GET, "/instance");
    let page = call.header("cookie", &cookie).send().await;
    assert_eq!(page.status, 200);
    String::from_utf8(page.body.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_of_the_log_shows_until_it_is_dealt_with() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    assert!(set_up(data, "plum-otter-violin-93").await.ok);
    quarantine(data);
    let metrics = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let serving = Serving::start_with(weir_showing(&[], data, &metrics.to_string())).await;
    let ready = async || -> (u16, Value) {
        let answer: Answer = serving.caller.get("/_readyz").await;
        (answer.status, answer.json()["log"].clone())
    };
    let metric = async || {
        let page = Caller::of(metrics).get("/metrics").await;
        let page = String::from_utf8(page.body.to_vec()).unwrap();
        let of = |name: &str| {
            let line = page.lines().find(|line| line.split(' ').next() == Some(name));
            line.unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned()
        };
        (of("weir_ingest_log_damaged_places"), of("weir_ingest_log_damaged_bytes"))
    };
    assert_eq!(ready().await, (200, json!(false)), "events and requests are taken all the same");
    until(async || {
        let seen = metric().await;
        if seen == ("1".to_owned(), "100".to_owned()) { Ok(()) } else { Err(seen) }
    })
    .await;
    let page = instance_page(&serving).await;
    assert!(page.contains("Damaged") && page.contains("log/quarantine"), "{page}");

    std::fs::remove_dir_all(data.join("data/log/quarantine")).unwrap();
    until(async || ready().await == (200, json!(true))).await;
    assert!(!instance_page(&serving).await.contains("Damaged"));
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}
