//! Damage of the ingest log is shown on all pages and endpoints for it.

use std::net::{SocketAddr, TcpListener};
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

/// The service with a metrics address.
async fn serve(data: &Path) -> (Serving, SocketAddr) {
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let command = weir_showing(&[], data, &metrics.to_string());
    (Serving::start_with(command).await, metrics)
}

/// The status of readiness, and what it says of the log.
async fn ready(serving: &Serving) -> (u16, Value) {
    let answer: Answer = serving.caller.get("/_readyz").await;
    (answer.status, answer.json()["log"].clone())
}

/// The values of metrics of the log.
async fn metrics_of(metrics: SocketAddr, names: [&str; 2]) -> [String; 2] {
    let page = Caller::of(metrics).get("/metrics").await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    names.map(|name| {
        let name = format!("weir_ingest_log_{name}");
        let line = page.lines().find(|line| line.split(' ').next() == Some(&name));
        line.unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned()
    })
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_of_the_log_shows_until_it_is_dealt_with() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    assert!(set_up(data, "plum-otter-violin-93").await.ok);
    quarantine(data);
    let (serving, metrics) = serve(data).await;
    let ready = async || ready(&serving).await;
    assert_eq!(ready().await, (200, json!(false)), "events and requests are taken all the same");
    until(async || {
        let seen = metrics_of(metrics, ["damaged_places", "damaged_bytes"]).await;
        if seen == ["1", "100"] { Ok(()) } else { Err(seen) }
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

/// After a kill nothing in the log is applied, because an older copy of the store takes
/// the place of the store. The first record and the last three are damaged.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_records_show_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let made: Value =
        serde_json::from_str(&set_up(data, "plum-otter-violin-93").await.out).unwrap();
    let (store, older) = (data.join("data/store"), data.join("older"));
    copy(&store, &older);
    let serving = Serving::start(data).await;
    for name in ["lost", "kept", "damaged", "damaged too", "not certain"] {
        let key = &made["project_api_key"];
        let event = json!({"api_key": key, "event": name, "distinct_id": "u"});
        assert_eq!(serving.caller.post("/capture/", &event).await.status, 200);
    }
    serving.signal(Signal::KILL);
    assert_eq!(serving.ended().await, None);
    std::fs::remove_dir_all(&store).unwrap();
    copy(&older, &store);
    let path = data.join(format!("data/log/{:020}.log", 0));
    let mut bytes = std::fs::read(&path).unwrap();
    let magic = 0x5745_4952_u32.to_le_bytes();
    let begins = bytes.windows(magic.len()).enumerate().filter(|(_, found)| *found == magic);
    let begins: Vec<usize> = begins.map(|(at, _)| at).collect();
    assert_eq!(begins.len(), 5);
    // The header of the first one, the payloads of the others.
    for damaged in [begins[0] + 30, begins[2] + 80, begins[3] + 80, begins[4] + 80] {
        bytes[damaged] ^= 0xFF;
    }
    std::fs::write(&path, &bytes).unwrap();

    let (serving, metrics) = serve(data).await;
    assert_eq!(ready(&serving).await, (200, json!(false)));
    until(async || {
        let [places, torn] = metrics_of(metrics, ["damaged_places", "torn_bytes"]).await;
        let number = |text: &str| text.parse::<u64>().unwrap_or(0);
        if number(&places) >= 2 && number(&torn) > 0 { Ok(()) } else { Err((places, torn)) }
    })
    .await;
    let caller = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    let path = format!("/api/projects/{}/ingestion_warnings/", made["project_id"]);
    until(async || {
        let warnings = caller.get(&path).await.json();
        let mut warnings = warnings["results"].as_array().unwrap().iter();
        let found = warnings.find(|warning| warning["code"] == "unreadable_record");
        let count = found.map(|warning| warning["count"].clone());
        if count == Some(json!(3)) { Ok(()) } else { Err(count) }
    })
    .await;
    let page = instance_page(&serving).await;
    assert!(page.contains("Damaged") && page.contains("log/quarantine"), "{page}");
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}
