//! `weir demo`: what it fills, what it prints, and that nothing of it stays.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use weir_testkit::{Answer, Caller, until};

use crate::fixtures::list;
use crate::process::{Output, Serving, run, weir};

/// Days of a test: the export runs, and everything happens that does so in the first days.
const DAYS: &str = "4";

async fn fill(folder: &Path, directory: &str) -> Output {
    let mut command = weir(folder);
    command.args(["demo", "--json", "--days", DAYS, "--into", directory]);
    run(command, "").await
}

/// What can be counted in a filled instance, by list and name.
async fn counts(caller: &Caller, made: &Value) -> BTreeMap<String, u64> {
    let project = format!("/api/projects/{}/", made["project_id"]);
    let mut counts = BTreeMap::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for event in list(caller, &format!("{project}events/?limit=1000")).await {
        *counts.entry(format!("event {}", text(&event["event"]))).or_default() += 1;
    }
    for person in list(caller, &format!("{project}persons/")).await {
        let ids = person["distinct_ids"].as_array().unwrap().len();
        *counts.entry(format!("persons with {ids} ids")).or_default() += 1;
    }
    for group in list(caller, &format!("{project}groups/?group_type=cafe")).await {
        counts.insert(format!("group {}", text(&group["group_key"])), 1);
    }
    for warning in list(caller, &format!("{project}ingestion_warnings/")).await {
        let count = warning["count"].as_u64().unwrap();
        counts.insert(format!("warning {}", text(&warning["code"])), count);
    }
    for member in list(caller, "/api/organizations/@current/members/").await {
        counts.insert(format!("member {}", text(&member["user"]["email"])), 1);
    }
    for export in list(caller, &format!("{project}batch_exports/")).await {
        let runs = format!("{project}batch_exports/{}/runs/", text(&export["id"]));
        for run in list(caller, &runs).await {
            *counts.entry(format!("run {}", text(&run["status"]))).or_default() += 1;
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn two_demos_have_the_same_names_and_counts() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut found = Vec::new();
    for folder in &folders {
        let filled = fill(folder.path(), "data").await;
        assert!(filled.ok, "{}", filled.err);
        let made: Value = serde_json::from_str(&filled.out).unwrap();
        let again = fill(folder.path(), "data").await;
        assert!(!again.ok && again.err.contains("not an empty directory"), "{}", again.err);

        let serving = Serving::start(folder.path()).await;
        let caller = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
        let project = format!("/api/projects/{}/", made["project_id"]);
        let configs = list(&caller, &format!("{project}pipeline_transformation_configs/")).await;
        let states: Vec<_> = configs
            .iter()
            .map(|config| (config["enabled"] == true, config["error"].is_null()))
            .collect();
        // The second one fails on some events, and stays enabled.
        assert_eq!(states, [(true, true), (true, false)]);
        found.push(counts(&caller, &made).await);
        serving.signal(Signal::TERM);
        assert_eq!(serving.ended().await, Some(0));
    }
    assert_eq!(found[0], found[1]);
    let count = |name: &str| found[0].get(name).copied().unwrap_or_default();
    for (name, least) in [
        ("event $pageview", 100),
        ("event order placed", 5),
        ("event order shipped", 3),
        ("event $groupidentify", 3),
        ("group cafe-01", 1),
        ("member ada@fernhill.example", 1),
        ("member ben@fernhill.example", 1),
        ("member chloe@fernhill.example", 1),
        ("persons with 2 ids", 5),
        ("run Completed", 3),
        ("warning missing_distinct_id", 4),
        ("warning missing_event_name", 1),
        ("warning invalid_uuid", 1),
        ("warning invalid_properties", 1),
        ("warning not_an_event", 1),
        ("warning duplicate_uuid", 2),
        ("warning dropped_by_transformation", 12),
    ] {
        assert!(count(name) >= least, "{name}: {:?}", found[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_is_used_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    // The settings of the directory are those of an instance, and no settings of a demo.
    std::fs::write(folder.path().join("weir.toml"), "listen = 'nowhere'\n").unwrap();
    let mut command = weir(folder.path());
    command.env("TMPDIR", temporary.path()).stderr(Stdio::null()).args(["demo", "--days", "1"]);
    let mut serving = Serving::launch(command).await;
    let line = serving.line().await;
    let rest = line.strip_prefix("Sign in as ").unwrap();
    let (email, password) = rest.split_once(" with the password ").unwrap();
    let line = serving.line().await;
    let key = line.strip_prefix("The key of the project is ").unwrap();
    assert!(serving.line().await.contains("Ctrl+C"));

    let login = json!({"email": email, "password": password});
    let answer = serving.caller.post("/api/login/", &login).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let page = async |path: &str| -> Answer {
        let call = serving.caller.call(http::Method::GET, path);
        call.header("cookie", &cookie).send().await
    };
    let event = json!({"api_key": key, "event": "tried the demo", "distinct_id": "visitor"});
    assert_eq!(serving.caller.post("/capture/", &event).await.status, 200);
    let home = page("/").await;
    let home = home.header("location").map_or_else(|| home.text(), str::to_owned);
    let number = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    let mut numbers = home.split("/projects/").skip(1).map(number);
    let events = format!("/projects/{}/events", numbers.find(|number| !number.is_empty()).unwrap());
    until(async || page(&events).await.text().contains("tried the demo")).await;

    assert!(std::fs::read_dir(temporary.path()).unwrap().count() > 0);
    serving.signal(Signal::INT);
    assert_eq!(serving.ended().await, Some(0));
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "it is removed");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert!(matches!(left.as_slice(), [one] if one.file_name() == "weir.toml"), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_that_is_stopped_while_it_is_filled_leaves_nothing() {
    for signal in [Signal::TERM, Signal::HUP] {
        let folder = tempfile::tempdir().unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let mut command = weir(folder.path());
        command.env("TMPDIR", temporary.path()).arg("demo");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until(async || {
            let mut made = std::fs::read_dir(temporary.path()).unwrap().flatten();
            made.any(|made| made.path().join("data/store").exists())
        })
        .await;
        let id = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
        kill_process(id, signal).unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
        assert_eq!(ended.unwrap().unwrap().code(), Some(0), "{signal:?}");
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "{signal:?}");
    }
}
