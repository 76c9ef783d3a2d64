//! A sandbox process or the whole service is killed during work: no event is lost, and
//! later events are transformed.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::Command;

use super::*;
use crate::process::{Serving, set_up_with, weir_through};

/// A slow plugin, so that work is under way when it is killed.
pub(super) const SLOW: &str = "export function processEvent(e) {
    let sum = 0
    for (let i = 0; i < 2000; i++) { sum += i }
    e.properties.seen = sum > 0
    return e
}";
/// Events per request, and requests per part.
const EVENTS_PER_BATCH: usize = 50;
const REQUESTS: usize = 20;

/// The program with its own data directory.
pub(super) struct Program {
    folder: TempDir,
    weir: fn(&Path) -> Command,
    pub(super) made: Value,
    serving: Option<Serving>,
}

impl Program {
    pub(super) async fn start(weir: fn(&Path) -> Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = set_up_with(weir(folder.path()), "plum-otter-violin-93").await;
        assert!(made.ok, "{}", made.err);
        let made = serde_json::from_str(&made.out).unwrap();
        let mut program = Self { folder, weir, made, serving: None };
        program.go_on().await;
        program
    }

    async fn go_on(&mut self) {
        self.serving = Some(Serving::start_with((self.weir)(self.folder.path())).await);
    }

    /// Stops it in order, and starts it again with its existing data.
    pub(super) async fn restart(&mut self) {
        let serving = self.serving.take().unwrap();
        serving.signal(Signal::TERM);
        assert_eq!(serving.ended().await, Some(0));
        self.go_on().await;
    }

    pub(super) fn serving(&self) -> &Serving {
        self.serving.as_ref().unwrap()
    }

    pub(super) fn owner(&self) -> Caller {
        self.serving().caller.with_key(self.made["personal_api_key"].as_str().unwrap())
    }

    pub(super) fn project(&self) -> Project {
        let key = self.made["project_api_key"].as_str().unwrap().to_owned();
        Project { id: self.made["project_id"].clone(), key }
    }

    pub(super) async fn install(&self, source: &str) {
        let owner = self.owner();
        let id = self.made["organization_id"].as_str().unwrap();
        let group = format!("/api/organizations/{id}/pipeline_destinations/");
        let plugin = json!({"plugin_type": "source", "name": "Tea"});
        let plugin = ok(201, &owner.post(&group, &plugin).await);
        let path = format!("{group}{}/update_source/", plugin["id"]);
        ok(200, &owner.patch(&path, &json!({"index.js": source})).await);
        let config = json!({"plugin": plugin["id"], "order": 1, "enabled": true});
        ok(201, &owner.post(&Instance::configs(&self.project()), &config).await);
        // Wait until it works.
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

    /// Sends a part of the events, and returns the ids of those that were acknowledged.
    async fn send_part(&self) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for _ in 0..REQUESTS {
            let batch: Vec<Value> =
                (0..EVENTS_PER_BATCH).map(|n| event("step", json!({"n": n}))).collect();
            send(&self.serving().caller, &self.project(), &batch).await;
            ids.extend(batch.iter().map(|event| event["uuid"].as_str().unwrap().to_owned()));
        }
        ids
    }

    /// The events that are readable, without the probes.
    async fn stored(&self) -> Vec<Value> {
        without_probes(stored(&self.owner(), &self.project(), "").await)
    }

    /// Waits until all of these are readable, and returns them. Asserts that there are no
    /// others and no duplicates.
    async fn assert_stored(&self, sent: &BTreeSet<String>) -> Vec<Value> {
        let events = until(async || {
            let events = self.stored().await;
            (events.len() >= sent.len()).then_some(events)
        })
        .await;
        assert_eq!(events.len(), sent.len());
        assert!(events.iter().all(|event| sent.contains(event["uuid"].as_str().unwrap())));
        events
    }
}

fn weir(folder: &Path) -> Command {
    let launcher = ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned);
    let mut command = weir_through(&launcher, folder);
    command.args(["--rate-per-minute", "0", "--rate-per-hour", "0"]);
    command
}

/// The running child processes of a process.
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
    // The process may have ended already.
    let _ = kill_process(Pid::from_raw(process).unwrap(), Signal::KILL);
}

#[tokio::test(flavor = "multi_thread")]
async fn children_that_are_killed_lose_nothing() {
    let program = Program::start(weir).await;
    program.install(SLOW).await;
    let process = program.serving().id();
    assert!(!children_of(process).is_empty(), "scripts run in children");
    let mut sent = BTreeSet::new();
    for _ in 0..4 {
        sent.extend(program.send_part().await);
        // While the processes transform the events.
        let killed = children_of(process);
        killed.iter().copied().for_each(kill);
        // They are replaced if events still wait for them.
        until(async || {
            children_of(process).iter().any(|child| !killed.contains(child))
                || program.stored().await.len() == sent.len()
        })
        .await;
        children_of(process).into_iter().for_each(kill);
    }
    program.assert_stored(&sent).await;
    // The processes were replaced: later events are transformed.
    let last = program.send_part().await;
    sent.extend(last.iter().cloned());
    let events = program.assert_stored(&sent).await;
    let of_last = events.iter().filter(|event| last.contains(event["uuid"].as_str().unwrap()));
    assert!(of_last.clone().all(|event| event["properties"]["seen"] == true));
    assert_eq!(of_last.count(), last.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_resumes_where_it_was() {
    let mut program = Program::start(weir).await;
    program.install(SLOW).await;
    let mut sent = BTreeSet::new();
    for _ in 0..3 {
        sent.extend(program.send_part().await);
        let serving = program.serving.take().unwrap();
        let children = children_of(serving.id());
        serving.signal(Signal::KILL);
        assert_eq!(serving.ended().await, None);
        // Its child processes end with it.
        let are_gone = || {
            let lives = |child: &i32| is_child(*child);
            (!children.iter().any(lives)).then_some(())
        };
        until(async || are_gone()).await;
        program.go_on().await;
    }
    let events = program.assert_stored(&sent).await;
    // These were in the log when it ended. The next process transforms them.
    assert!(events.iter().all(|event| event["properties"]["seen"] == true));
    let serving = program.serving.take().unwrap();
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

/// Whether this is a running child of the service. Its id may have been used again for
/// another process.
fn is_child(process: i32) -> bool {
    let line = std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let is_dead = state.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'));
    line.contains("plugin-worker") && !is_dead
}
