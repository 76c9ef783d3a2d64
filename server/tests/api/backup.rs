//! `weir backup`, `weir restore` and `weir check`, and backups that the server makes.

mod buckets;
mod restore;
mod scheduled;

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::Child;
use uuid::Uuid;
use weir_model::Timestamp;
use weir_testkit::{Caller, until};

use crate::process::{Output, Serving, run, set_up, weir, weir_showing};

const PASSWORD: &str = "plum-otter-violin-93";

/// Events that are sealed before the first backup.
const SEALED: u64 = 100;
/// Most events of a test, which one page of the list holds.
const MOST: u64 = 1_000;
/// Backups of a server that is under load.
const BACKUPS: u64 = 20;
/// Events that are sent for each of these: half of them before it, the others during it.
const SHARE: u64 = 16;
/// Before one of so many, another backup is killed.
const KILLED: u64 = 4;
/// One of so many is restored.
const RESTORED: usize = 5;

async fn command(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = weir(folder);
    command.args(arguments);
    run(command, "").await
}

/// An instance, and a directory for its backups.
struct Instance {
    folder: tempfile::TempDir,
    made: Value,
}

impl Instance {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = set_up(folder.path(), PASSWORD).await;
        assert!(made.ok, "{}", made.err);
        let made = serde_json::from_str(&made.out).unwrap();
        Self { folder, made }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn backups(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    async fn serve(&self) -> Serving {
        Serving::start(self.folder.path()).await
    }

    /// Starts a server that makes a backup each second, of which the newest two stay.
    async fn serve_with_backups(&self, place: &[(&str, String)]) -> Watched {
        let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = weir_showing(&[], self.folder.path(), &metrics.to_string());
        command.env("WEIR_BACKUP_TO", "backups").env("WEIR_BACKUP_EVERY", "1s");
        command.env("WEIR_BACKUP_KEEP", "2").envs(place.iter().cloned());
        let serving = Serving::start_with(command).await;
        let session = session(&serving).await;
        Watched { serving, session, metrics: Caller::of(metrics) }
    }

    /// The names of the backups.
    fn names(&self) -> BTreeSet<String> {
        let Ok(entries) = std::fs::read_dir(self.backups().join("backups")) else {
            return BTreeSet::new();
        };
        let files = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        files.filter_map(|file| file.strip_suffix(".json").map(str::to_owned)).collect()
    }

    /// Begins a backup. It links files, or has ended.
    async fn begin_backup(&self) -> Child {
        let mut command = weir(self.folder.path());
        let mut child = command.args(["backup", "backups"]).spawn().unwrap();
        let linked = self.data().join(".weir-backup/content/store");
        until(async || linked.exists() || child.try_wait().unwrap().is_some()).await;
        child
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        command(self.folder.path(), arguments).await
    }

    /// Sends the events with these numbers, each in a request.
    async fn send(&self, caller: &Caller, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let event = json!({
                "api_key": self.made["project_api_key"], "event": "sent",
                "distinct_id": format!("user-{}", number % 9), "uuid": uuid(number),
            });
            assert_eq!(caller.post("/capture/", &event).await.status, 200);
        }
    }

    /// Sends a large event, so that blocks are full soon and are sealed.
    async fn fill(&self, caller: &Caller) {
        let properties: serde_json::Map<String, Value> =
            (0..20).map(|number| (format!("text-{number}"), "x".repeat(5_000).into())).collect();
        let event = json!({
            "api_key": self.made["project_api_key"], "event": "fill",
            "distinct_id": "filler", "properties": properties,
        });
        assert_eq!(caller.post("/capture/", &event).await.status, 200);
    }

    /// Stores a backup and returns its name.
    async fn back_up(&self) -> String {
        let stored = self.run(&["backup", "backups"]).await;
        assert!(stored.ok, "{}", stored.err);
        assert!(stored.out.contains("master key"), "{}", stored.out);
        let name = stored.out.strip_prefix("Stored the backup ").unwrap();
        name.split_once(':').unwrap().0.to_owned()
    }

    /// Restores a backup to a new directory.
    async fn restore(&self, name: &str) -> tempfile::TempDir {
        let (folder, restored) = self.restore_by(&["--backup", name]).await;
        assert!(restored.ok, "{}", restored.err);
        folder
    }

    /// Tries to restore the backup that these arguments choose.
    async fn restore_by(&self, arguments: &[&str]) -> (tempfile::TempDir, Output) {
        let folder = tempfile::tempdir().unwrap();
        let backups = self.backups();
        let arguments = [&["restore", backups.to_str().unwrap()][..], arguments].concat();
        let restored = command(folder.path(), &arguments).await;
        (folder, restored)
    }

    /// The numbers of all events, once at least those up to `least` can be read.
    async fn numbers(&self, caller: &Caller, least: u64) -> BTreeSet<u64> {
        self.events(caller, least).await.into_keys().collect()
    }

    /// What was stored of all events, by their numbers, once at least those up to `least`
    /// can be read.
    async fn events(&self, caller: &Caller, least: u64) -> BTreeMap<u64, Value> {
        let caller = caller.with_key(self.made["personal_api_key"].as_str().unwrap());
        let first =
            format!("/api/projects/{}/events/?event=sent&limit={MOST}", self.made["project_id"]);
        until(async || {
            let (mut found, mut path) = (BTreeMap::new(), first.clone());
            // A page may end early, because the large events are read too.
            loop {
                let page = caller.get(&path).await.json();
                for event in page["results"].as_array().unwrap() {
                    let before = found.insert(number(event), content(event));
                    assert!(before.is_none(), "no event is there twice");
                }
                let Some(next) = page["next"].as_str() else { break };
                let (_, rest) = next.split_once("/api/").unwrap();
                path = format!("/api/{rest}");
            }
            match (0..least).all(|number| found.contains_key(&number)) {
                true => Ok(found),
                false => Err(found.into_keys().collect::<Vec<_>>()),
            }
        })
        .await
    }
}

fn uuid(number: u64) -> Uuid {
    Uuid::from_u128(1 << 100 | u128::from(number))
}

fn number(event: &Value) -> u64 {
    let uuid: Uuid = event["uuid"].as_str().unwrap().parse().unwrap();
    u64::try_from(uuid.as_u128() & u128::from(u64::MAX)).unwrap()
}

/// What was stored of an event, without its person, which later events change.
fn content(event: &Value) -> Value {
    let fields = ["event", "distinct_id", "timestamp", "created_at", "properties"];
    fields.iter().map(|field| event[*field].clone()).collect()
}

/// When a backup began, by its name, without the microseconds.
fn began_at(name: &str) -> Timestamp {
    let (day, time) = (&name[..8], &name[9..19]);
    let (year, month, day) = (&day[..4], &day[4..6], &day[6..]);
    let (hour, minute, second) = (&time[..2], &time[2..4], &time[4..]);
    Timestamp::parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")).unwrap()
}

/// A server with its instance page and its metrics.
struct Watched {
    serving: Serving,
    session: String,
    metrics: Caller,
}

impl Watched {
    async fn page(&self) -> String {
        page(&self.serving, &self.session).await
    }

    /// The value of a metric.
    async fn value(&self, name: &str) -> f64 {
        let page = self.metrics.get("/metrics").await.text();
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap().parse().unwrap()
    }
}

/// The cookie of a session of the first user.
async fn session(serving: &Serving) -> String {
    let login = json!({"email": "ada@mail.example", "password": PASSWORD});
    let answer = serving.caller.post("/api/login/", &login).await;
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// The instance page.
async fn page(serving: &Serving, session: &str) -> String {
    let call = serving.caller.call(http::Method::GET, "/instance");
    let page = call.header("cookie", session).send().await;
    assert_eq!(page.status, 200);
    page.text()
}

async fn stop(serving: Serving) {
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

/// Files below a directory whose names end so.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_str().unwrap().ends_with(ending) {
            found.push(path);
        }
    }
    found
}

/// All files below a directory, with their lengths and times.
pub(crate) fn state(directory: &Path) -> BTreeSet<(PathBuf, u64, SystemTime)> {
    let about = |path: PathBuf| {
        let meta = path.metadata().unwrap();
        (path, meta.len(), meta.modified().unwrap())
    };
    files(directory, "").into_iter().map(about).collect()
}

/// Changes a bit in the middle of a file. A second call changes it back.
fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_under_load_have_every_event_acknowledged_before() {
    let instance = Instance::new().await;
    let serving = instance.serve().await;
    instance.send(&serving.caller, 0..SEALED).await;
    instance.numbers(&serving.caller, SEALED).await;
    stop(serving).await;
    let sealed = instance.run(&["seal"]).await;
    assert!(sealed.ok, "{}", sealed.err);
    let segments = || {
        let found = files(&instance.data().join("segments"), ".parquet");
        found.into_iter().collect::<BTreeSet<_>>()
    };
    let sealed_before = segments();

    // Each full block becomes a segment of its own, and 16 of these are merged.
    let mut often = weir(instance.folder.path());
    often.env("WEIR_SEAL_SECONDS", "1").env("WEIR_SEAL_EVENTS", "1");
    let serving = Serving::start_with(often).await;
    let (acknowledged, allowed) = (AtomicU64::new(SEALED), AtomicU64::new(SEALED));
    let all = SEALED + BACKUPS * SHARE;
    let sending = async {
        for number in SEALED..all {
            until(async || number < allowed.load(Ordering::Acquire)).await;
            instance.send(&serving.caller, number..number + 1).await;
            instance.fill(&serving.caller).await;
            acknowledged.store(number + 1, Ordering::Release);
        }
    };
    let backing_up = async {
        let mut taken = Vec::new();
        for round in 1..=BACKUPS {
            let end = SEALED + round * SHARE;
            allowed.store(end, Ordering::Release);
            until(async || acknowledged.load(Ordering::Acquire) >= end - SHARE / 2).await;
            if round % KILLED == 0 {
                let mut killed = instance.begin_backup().await;
                // One that has ended cannot be killed.
                let _ = killed.start_kill();
                killed.wait().await.unwrap();
            }
            let before = acknowledged.load(Ordering::Acquire);
            taken.push((instance.back_up().await, before));
        }
        taken
    };
    let ((), taken) = tokio::join!(sending, backing_up);
    until(async || segments() != sealed_before).await;
    let original = instance.events(&serving.caller, all).await;
    stop(serving).await;

    for (name, before) in taken.iter().step_by(RESTORED) {
        let folder = instance.restore(name).await;
        let checked = command(folder.path(), &["check"]).await;
        assert!(checked.ok && checked.out.contains("No faults found"), "{}", checked.out);
        let restored = Serving::start(folder.path()).await;
        for (number, event) in instance.events(&restored.caller, *before).await {
            assert_eq!(original.get(&number), Some(&event), "{number}");
        }
        stop(restored).await;
    }
    let checked = instance.run(&["check", "backups"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);
    let checked = instance.run(&["check"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_backup_adds_only_what_is_new() {
    let instance = Instance::new().await;
    let serving = instance.serve().await;
    instance.send(&serving.caller, 0..SEALED).await;
    instance.numbers(&serving.caller, SEALED).await;
    stop(serving).await;
    assert!(instance.run(&["seal"]).await.ok);
    let first = instance.back_up().await;
    let content = files(&instance.backups().join("files"), "").len();
    // A key is named only if there is one.
    let key = instance.folder.path().join("data.key");
    let has_key = key.exists();
    let stored = instance.run(&["backup", "other"]).await.out;
    assert_eq!(stored.contains("separate from the backups"), has_key, "{stored}");
    if !has_key {
        std::fs::write(&key, "ab".repeat(32)).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let stored = instance.run(&["backup", "other"]).await.out;
        assert!(stored.contains("separate from the backups"), "{stored}");
        std::fs::remove_file(&key).unwrap();
    }
    // What a killed check has left is removed.
    let left = instance.backups().join(".weir-check");
    std::fs::create_dir_all(left.join("content/store")).unwrap();
    std::fs::write(left.join("weir-staging"), "").unwrap();
    // Nothing has changed, so only a manifest is new.
    let second = instance.back_up().await;
    assert_ne!(first, second);
    assert!(!left.exists());
    assert_eq!(files(&instance.backups().join("files"), "").len(), content);
    assert_eq!(files(&instance.backups().join("backups"), ".json").len(), 2);
    for name in [first, second] {
        let folder = instance.restore(&name).await;
        let restored = Serving::start(folder.path()).await;
        assert_eq!(instance.numbers(&restored.caller, SEALED).await.len(), 100);
        stop(restored).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_backup_leaves_the_earlier_ones_as_they_are() {
    let instance = Instance::new().await;
    let mut often = weir(instance.folder.path());
    often.env("WEIR_SEAL_SECONDS", "1");
    let serving = Serving::start_with(often).await;
    let mut sent = 0;
    let mut names = Vec::new();
    let staging = instance.data().join(".weir-backup");
    for round in 0..5 {
        instance.send(&serving.caller, sent..sent + 20).await;
        sent += 20;
        names.push((instance.back_up().await, sent));
        let mut killed = instance.begin_backup().await;
        // One that has ended cannot be killed.
        if round % 2 == 0 {
            let _ = killed.start_kill();
            killed.wait().await.unwrap();
            // The server removes the links in its next pass.
            until(async || !staging.exists()).await;
        } else {
            let id = killed.id().and_then(|id| Pid::from_raw(i32::try_from(id).unwrap()));
            if let Some(id) = id {
                let _ = kill_process(id, Signal::INT);
            }
            killed.wait().await.unwrap();
            assert!(!staging.exists(), "the command has removed its links");
        }
    }
    let (last, _) = names.last().unwrap().clone();
    names.push((instance.back_up().await, sent));
    assert!(!staging.exists());
    stop(serving).await;
    let checked = instance.run(&["check", "backups", "--backup", &last]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);
    for (name, sent) in [names.first().unwrap(), names.last().unwrap()] {
        let folder = instance.restore(name).await;
        let restored = Serving::start(folder.path()).await;
        instance.numbers(&restored.caller, *sent).await;
        stop(restored).await;
    }
}
