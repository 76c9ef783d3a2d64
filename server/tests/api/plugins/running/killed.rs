//! A child or the whole service is killed in the middle: nothing is lost, and what
//! comes after is transformed.

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::*;
use crate::process::{Serving, set_up_with, weir_through};

/// A plugin that takes its time, so that something goes on whenever it is killed.
const SLOW: &str = "export function processEvent(e) {
    let sum = 0
    for (let i = 0; i < 2000; i++) { sum += i }
    e.properties.seen = sum > 0
    return e
}";
/// Events of a request, and requests of a part.
const TOGETHER: usize = 50;
const REQUESTS: usize = 20;

/// The program on a data directory of its own.
struct Program {
    folder: TempDir,
    made: Value,
    serving: Option<Serving>,
}

impl Program {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = set_up_with(weir(&folder), "plum-otter-violin-93").await;
        assert!(made.ok, "{}", made.err);
        let made = serde_json::from_str(&made.out).unwrap();
        let mut program = Self { folder, made, serving: None };
        program.go_on().await;
        program
    }

    async fn go_on(&mut self) {
        self.serving = Some(Serving::start_with(weir(&self.folder)).await);
    }

    fn serving(&self) -> &Serving {
        self.serving.as_ref().unwrap()
    }

    fn owner(&self) -> Caller {
        self.serving().caller.with_key(self.made["personal_api_key"].as_str().unwrap())
    }

    fn project(&self) -> Project {
        let key = self.made["project_api_key"].as_str().unwrap().to_owned();
        Project { id: self.made["project_id"].clone(), key }
    }

    async fn install(&self, source: &str) {
        let owner = self.owner();
        let id = self.made["organization_id"].as_str().unwrap();
        let group = format!("/api/organizations/{id}/pipeline_destinations/");
        let plugin = json!({"plugin_type": "source", "name": "Tea"});
        let plugin = ok(201, &owner.post(&group, &plugin).await);
        let path = format!("{group}{}/update_source/", plugin["id"]);
        ok(200, &owner.patch(&path, &json!({"index.js": source})).await);
        let config = json!({"plugin": plugin["id"], "order": 1, "enabled": true});
        ok(201, &owner.post(&Instance::configs(&self.project()), &config).await);
        // From when it works on.
        until(async || {
            let probe = event("probe", json!({"probe": true}));
            send(&owner, &self.project(), std::slice::from_ref(&probe)).await;
            let id = probe["uuid"].as_str().unwrap();
            let query = format!("&uuid={id}");
            let found = until(async || stored(&owner, &self.project(), &query).await.pop()).await;
            (found["properties"]["seen"] == true).then_some(())
        })
        .await;
    }

    /// Sends a part of the events; gives the ids of those that were acknowledged.
    async fn send_part(&self) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for _ in 0..REQUESTS {
            let batch: Vec<Value> = (0..TOGETHER).map(|n| event("step", json!({"n": n}))).collect();
            send(&self.serving().caller, &self.project(), &batch).await;
            ids.extend(batch.iter().map(|event| event["uuid"].as_str().unwrap().to_owned()));
        }
        ids
    }

    /// Waits until all of these can be read; asserts that nothing else can, that
    /// none is there twice, and gives them.
    async fn assert_stored(&self, sent: &BTreeSet<String>) -> Vec<Value> {
        let owner = self.owner();
        let events = until(async || {
            let events = without_probes(stored(&owner, &self.project(), "").await);
            (events.len() >= sent.len()).then_some(events)
        })
        .await;
        assert_eq!(events.len(), sent.len());
        assert!(events.iter().all(|event| sent.contains(event["uuid"].as_str().unwrap())));
        events
    }
}

fn weir(folder: &TempDir) -> tokio::process::Command {
    let launcher = ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned);
    let mut command = weir_through(&launcher, folder.path());
    command.args(["--rate-per-minute", "0", "--rate-per-hour", "0"]);
    command
}

/// The processes that a process has started and that live.
fn children_of(process: u32) -> Vec<i32> {
    let mut children = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let file = thread.unwrap().path().join("children");
        // A thread may have ended meanwhile.
        let list = std::fs::read_to_string(file).unwrap_or_default();
        children.extend(list.split_whitespace().map(|id| id.parse::<i32>().unwrap()));
    }
    children
}

fn kill(process: i32) {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_raw(process).unwrap(), Signal::KILL);
}

#[tokio::test(flavor = "multi_thread")]
async fn children_that_are_killed_lose_nothing() {
    let program = Program::start().await;
    program.install(SLOW).await;
    let process = program.serving().id();
    assert!(!children_of(process).is_empty(), "scripts run in children");
    let mut sent = BTreeSet::new();
    for _ in 0..4 {
        sent.extend(program.send_part().await);
        // While the events go through them.
        children_of(process).into_iter().for_each(kill);
        tokio::time::sleep(Duration::from_millis(30)).await;
        children_of(process).into_iter().for_each(kill);
    }
    program.assert_stored(&sent).await;
    // They were replaced: what comes now is transformed.
    let last = program.send_part().await;
    sent.extend(last.iter().cloned());
    let events = program.assert_stored(&sent).await;
    let of_last = events.iter().filter(|event| last.contains(event["uuid"].as_str().unwrap()));
    assert!(of_last.clone().all(|event| event["properties"]["seen"] == true));
    assert_eq!(of_last.count(), last.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_goes_on_where_it_was() {
    let mut program = Program::start().await;
    program.install(SLOW).await;
    let mut sent = BTreeSet::new();
    for _ in 0..3 {
        sent.extend(program.send_part().await);
        let serving = program.serving.take().unwrap();
        let children = children_of(serving.id());
        serving.signal(Signal::KILL);
        assert_eq!(serving.ended().await, None);
        // Its children do not outlive it.
        let are_gone = || {
            let lives = |child: &i32| is_child(*child);
            (!children.iter().any(lives)).then_some(())
        };
        until(async || are_gone()).await;
        program.go_on().await;
    }
    let events = program.assert_stored(&sent).await;
    // In the log when it ended, transformed by the next one.
    assert!(events.iter().all(|event| event["properties"]["seen"] == true));
    let serving = program.serving.take().unwrap();
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

/// Whether this is a child of the service that lives; its id may have become
/// somebody else's.
fn is_child(process: i32) -> bool {
    let line = std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let is_dead = state.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'));
    line.contains("plugin-worker") && !is_dead
}

/// The most memory that the service has had, in KiB. Its children are not in it.
fn most_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_and_archives_cannot_use_up_memory() {
    let mut program = Program::start().await;
    program.install(SLOW).await;
    let owner = program.owner();
    let group = program.made["organization_id"].as_str().unwrap();
    let group = format!("/api/organizations/{group}/pipeline_destinations/");
    let plugin = ok(201, &owner.post(&group, &json!({"name": "Hostile"})).await);
    let update = format!("{group}{}/update_source/", plugin["id"]);
    let works = json!({"index.js": SLOW, "site.ts": "export const inject = 1"});
    ok(200, &owner.patch(&update, &works).await);
    let process = program.serving().id();
    let before = most_memory(process);

    // 90 kB took 4 GB: objects that are named again and again.
    let keys: String = (0..4_000).map(|n| format!("k{n}:1,")).collect();
    let chained: String = (1..3_000).map(|n| format!("const a{n}={{x:a{},y:o}};", n - 1)).collect();
    let aliases = format!("const o={{{keys}}},a0=o;{chained}{SLOW}");
    let deep = format!("export const scene = {}b", "<a>".repeat(40_000));
    for files in [json!({"index.js": aliases}), json!({"frontend.tsx": deep})] {
        ok(200, &owner.patch(&update, &files).await);
    }
    // 20 kB unpacked to 540 MB: a long name.
    let mut long_name = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut header = [0_u8; 512];
    header[..13].copy_from_slice(b"././@LongLink");
    header[124..135].copy_from_slice(format!("{:011o}", 90 << 20).as_bytes());
    header[156] = b'L';
    header[257..265].copy_from_slice(b"ustar  \0");
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    std::io::Write::write_all(&mut long_name, &header).unwrap();
    for _ in 0..90 {
        std::io::Write::write_all(&mut long_name, &vec![b'a'; 1 << 20]).unwrap();
    }
    let mut body = b"--b\r\ncontent-disposition: form-data; name=\"archive\"; ".to_vec();
    body.extend(b"filename=\"t.tgz\"\r\ncontent-type: application/gzip\r\n\r\n");
    body.extend(long_name.finish().unwrap());
    body.extend(b"\r\n--b--\r\n");
    let call = owner.call(http::Method::POST, &group);
    let call = call.header("content-type", "multipart/form-data; boundary=b").body(body);
    let (status, _, _, detail, attr) = call.send().await.error();
    assert_eq!((status, attr.as_deref()), (400, Some("archive")), "{detail}");
    assert!(detail.contains("64 KiB"), "{detail}");

    let grown = most_memory(process).saturating_sub(before);
    assert!(grown < 96 << 10, "{grown} KiB");

    // A start compiles nothing of it, and what is enabled goes on.
    let config = json!({"plugin": plugin["id"], "order": 2, "enabled": true});
    ok(201, &owner.post(&Instance::configs(&program.project()), &config).await);
    let serving = program.serving.take().unwrap();
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
    program.go_on().await;
    let sent = event("after", json!({}));
    send(&program.owner(), &program.project(), std::slice::from_ref(&sent)).await;
    let query = format!("&uuid={}", sent["uuid"].as_str().unwrap());
    let look = async || stored(&program.owner(), &program.project(), &query).await.pop();
    assert_eq!(until(look).await["properties"]["seen"], true);
    assert!(most_memory(program.serving().id()) < 1 << 20, "less than a gigabyte");
}
