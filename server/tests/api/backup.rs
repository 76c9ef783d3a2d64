//! `weir backup`, `weir restore` and `weir check`, and backups that the server makes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use uuid::Uuid;
use weir_model::Timestamp;
use weir_objects::{Access, Bucket};
use weir_testkit::servers::Moto;
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
async fn persons_erased_after_a_backup_are_erased_again_after_its_restore() {
    const ERASED: u64 = 3;
    // An event of the erased distinct id, sent as soon as the restored instance answers.
    const LATER: u64 = SEALED + 2;
    assert_eq!(LATER % 9, ERASED);
    let instance = Instance::new().await;
    let serving = instance.serve().await;
    instance.send(&serving.caller, 0..SEALED).await;
    instance.numbers(&serving.caller, SEALED).await;
    let before = instance.back_up().await;
    let caller = serving.caller.with_key(instance.made["personal_api_key"].as_str().unwrap());
    let persons = format!("/api/projects/{}/persons/", instance.made["project_id"]);
    let of_erased = format!("{persons}?distinct_id=user-{ERASED}");
    let found = caller.get(&of_erased).await.json();
    let id = found["results"][0]["uuid"].as_str().unwrap();
    let erased = caller.delete(&format!("{persons}{id}/?delete_events=true")).await;
    assert_eq!(erased.status, 202, "{}", erased.text());
    let after = instance.back_up().await;
    stop(serving).await;

    for name in [before, after] {
        let folder = instance.restore(&name).await;
        let restored = Serving::start(folder.path()).await;
        instance.send(&restored.caller, LATER..LATER + 1).await;
        // Others are as they were, and what was sent after the restore stays.
        let others = (0..SEALED).filter(|number| number % 9 != ERASED);
        let kept: BTreeSet<u64> = others.chain([LATER]).collect();
        until(async || {
            let numbers = instance.numbers(&restored.caller, ERASED).await;
            if numbers == kept { Ok(()) } else { Err(numbers) }
        })
        .await;
        let caller = restored.caller.with_key(caller.key());
        let found = caller.get(&of_erased).await.json();
        assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found["results"][0]["event_count"], 1, "{found}");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_server_makes_backups_and_the_newest_stay() {
    let instance = Instance::new().await;
    let watched = instance.serve_with_backups(&[]).await;
    let caller = watched.serving.caller.clone();
    instance.send(&caller, 0..SEALED).await;
    instance.numbers(&caller, SEALED).await;
    let mut seen = BTreeSet::new();
    let before = instance.names();
    until(async || {
        seen.extend(instance.names());
        // More than those that stay were made after the last event.
        seen.difference(&before).count() > 3
    })
    .await;
    assert!(instance.names().len() <= 3, "the newest two, and one that was just stored");
    // The note of the last one is read each second.
    until(async || watched.value("weir_backup_last_success_seconds").await > 1_700_000_000.0).await;
    assert_eq!(watched.value("weir_backup_interval_seconds").await.to_bits(), 1_f64.to_bits());
    assert_eq!(watched.value("weir_backup_failures_total").await.to_bits(), 0_f64.to_bits());
    assert!(watched.value("weir_backup_bytes").await > 0.0);
    let page = watched.page().await;
    for part in ["Last backup", " ago", "The newest 2 stay.", "Its size"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("Last attempt"), "{page}");
    stop(watched.serving).await;
    assert!(!instance.data().join(".weir-backup").exists(), "its links were removed");
    let names = instance.names();
    assert_eq!(names.len(), 2, "{names:?}");
    let checked = instance.run(&["check", "backups"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);
    for name in names {
        let folder = instance.restore(&name).await;
        let restored = Serving::start(folder.path()).await;
        assert_eq!(instance.numbers(&restored.caller, SEALED).await.len(), 100);
        stop(restored).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_backup_is_shown_and_made_again() {
    let instance = Instance::new().await;
    let letter = instance.backups().join("letter");
    std::fs::create_dir(instance.backups()).unwrap();
    std::fs::write(&letter, "").unwrap();
    let watched = instance.serve_with_backups(&[]).await;
    until(async || watched.value("weir_backup_failures_total").await > 1.0).await;
    let shown = watched.page().await;
    assert!(shown.contains("has other files than backups"), "{shown}");
    assert!(instance.names().is_empty() && letter.exists());
    std::fs::remove_file(&letter).unwrap();
    until(async || !instance.names().is_empty()).await;
    until(async || !watched.page().await.contains("Last attempt")).await;
    stop(watched.serving).await;

    // The disk of the backups is not mounted: no new directory takes their place.
    let moved = instance.folder.path().join("moved");
    std::fs::rename(instance.backups(), &moved).unwrap();
    let watched = instance.serve_with_backups(&[]).await;
    until(async || watched.page().await.contains("its disk may not be mounted")).await;
    stop(watched.serving).await;
    assert!(!instance.backups().exists());
    std::fs::rename(&moved, instance.backups()).unwrap();
    let before = instance.names();
    let watched = instance.serve_with_backups(&[]).await;
    until(async || instance.names() != before).await;
    stop(watched.serving).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_in_a_bucket_are_made_checked_and_restored() {
    const PLACE: &str = "s3://backups/weir";
    let moto = Moto::start().await;
    moto.create_bucket("backups").await;
    let access = [
        ("WEIR_BACKUP_ENDPOINT", moto.url()),
        ("WEIR_BACKUP_ACCESS_KEY", "key".to_owned()),
        ("WEIR_BACKUP_SECRET_KEY", "secret".to_owned()),
    ];
    let with_access = async |folder: &Path, arguments: &[&str]| {
        let mut command = weir(folder);
        command.envs(access.iter().cloned()).args(arguments);
        run(command, "").await
    };
    let instance = Instance::new().await;
    let folder = instance.folder.path();
    let refused = with_access(folder, &["check", PLACE]).await;
    assert!(!refused.ok && refused.err.contains("has no backups"), "{}", refused.err);
    let refused = with_access(folder, &["backup", "s3://missing/weir"]).await;
    assert!(!refused.ok && refused.err.contains("no such bucket"), "{}", refused.err);

    // By the server, in the background.
    let mut place = access.to_vec();
    place.push(("WEIR_BACKUP_TO", PLACE.to_owned()));
    let watched = instance.serve_with_backups(&place).await;
    let caller = watched.serving.caller.clone();
    instance.send(&caller, 0..SEALED).await;
    instance.numbers(&caller, SEALED).await;
    let last = async || watched.value("weir_backup_last_success_seconds").await;
    for _ in 0..3 {
        let before = last().await;
        until(async || last().await > before).await;
    }
    let shown = watched.page().await;
    assert!(shown.contains(PLACE) && !shown.contains("Last attempt"), "{shown}");
    stop(watched.serving).await;
    assert!(!instance.data().join(".weir-bucket").exists(), "what was local of it is removed");

    // By hand: the server has released it.
    let stored = with_access(folder, &["backup", PLACE]).await;
    assert!(stored.ok && stored.out.contains("Stored the backup"), "{}", stored.err);
    let checked = with_access(folder, &["check", PLACE]).await;
    assert!(checked.ok && checked.out.contains("No faults"), "{}{}", checked.out, checked.err);
    assert!(!instance.data().join(".weir-bucket-read").exists());
    let other = tempfile::tempdir().unwrap();
    let restored = with_access(other.path(), &["restore", PLACE]).await;
    assert!(restored.ok, "{}", restored.err);
    let beside = std::fs::read_dir(other.path()).unwrap().count();
    assert_eq!(beside, 1, "the data directory alone");
    let serving = Serving::start(other.path()).await;
    assert_eq!(instance.numbers(&serving.caller, SEALED).await.len(), 100);
    stop(serving).await;
}

/// The bucket of files of events of an instance, which keeps no copies of them.
struct EventBucket {
    moto: Moto,
    settings: Vec<(&'static str, String)>,
}

impl EventBucket {
    async fn start() -> Self {
        let moto = Moto::start().await;
        moto.create_bucket("events").await;
        let settings = vec![
            ("WEIR_SEGMENTS_ENDPOINT", moto.url()),
            ("WEIR_SEGMENTS_ACCESS_KEY", "key".to_owned()),
            ("WEIR_SEGMENTS_SECRET_KEY", "secret".to_owned()),
            ("WEIR_SEGMENT_CACHE", "1".to_owned()),
        ];
        Self { moto, settings }
    }

    fn location(prefix: &str) -> String {
        format!("s3://events/{prefix}")
    }

    /// The program with the files of events below this prefix.
    fn weir(&self, folder: &Path, prefix: &str) -> Command {
        let mut command = weir(folder);
        command.envs(self.settings.iter().cloned());
        command.env("WEIR_SEGMENTS", Self::location(prefix));
        command
    }

    async fn run(&self, folder: &Path, arguments: &[&str]) -> Output {
        let mut command = self.weir(folder, "weir");
        command.args(arguments);
        run(command, "").await
    }

    fn bucket(&self, prefix: &str) -> Bucket {
        let access = Access {
            endpoint: Some(self.moto.url()),
            region: "us-east-1".to_owned(),
            key: "key".to_owned(),
            secret: "secret".parse().unwrap(),
        };
        Bucket::new(&Self::location(prefix).parse().unwrap(), &access).unwrap()
    }

    /// The names of the files of events below this prefix.
    async fn segments(&self, prefix: &str) -> BTreeSet<String> {
        self.bucket(prefix).list(10_000, 1 << 20, is_segment).await.unwrap()
    }
}

/// Whether a name is `<project>/<partition>/<file>.parquet`.
fn is_segment(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    matches!(parts.as_slice(), [_, partition, file] if partition.parse::<u16>().is_ok()
        && file.ends_with(".parquet"))
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_events_in_a_bucket_are_fetched_once_and_restored() {
    let events = EventBucket::start().await;
    let instance = Instance::new().await;
    let folder = instance.folder.path();
    // Two times, so that more than one file is in the bucket alone.
    for half in [0, SEALED / 2] {
        let serving = Serving::start_with(events.weir(folder, "weir")).await;
        instance.send(&serving.caller, half..half + SEALED / 2).await;
        instance.numbers(&serving.caller, half + SEALED / 2).await;
        stop(serving).await;
        let sealed = events.run(folder, &["seal"]).await;
        assert!(sealed.ok, "{}", sealed.err);
    }
    let local = || {
        let root = instance.data().join("segments");
        let names = files(&root, ".parquet").into_iter();
        let names = names.map(|path| path.strip_prefix(&root).unwrap().display().to_string());
        names.filter(|name| is_segment(name)).count()
    };
    let stored = events.segments("weir").await;
    assert!(stored.len() >= 2, "{stored:?}");
    assert!(local() < stored.len(), "some are in the bucket alone");

    // A server runs, and the bucket is asked for what is missing.
    let serving = Serving::start_with(events.weir(folder, "weir")).await;
    let first = events.run(folder, &["backup", "backups"]).await;
    assert!(first.ok && !first.out.contains("missing"), "{}{}", first.out, first.err);
    let checked = events.run(folder, &["check"]).await;
    assert!(checked.ok && checked.out.contains("No faults"), "{}{}", checked.out, checked.err);
    stop(serving).await;
    let refused = instance.run(&["backup", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("in a bucket"), "{}", refused.err);
    assert!(local() < stored.len(), "nothing was fetched into the data directory");
    for left in [".weir-backup", ".weir-catalog", ".weir-check"] {
        assert!(!instance.data().join(left).exists(), "{left}");
    }

    // The server makes such a backup too.
    let mut scheduled = events.weir(folder, "weir");
    scheduled.env("WEIR_BACKUP_TO", "scheduled");
    let serving = Serving::start_with(scheduled).await;
    let made = folder.join("scheduled/backups");
    until(async || made.exists() && !files(&made, ".json").is_empty()).await;
    stop(serving).await;
    let checked = events.run(folder, &["check", "scheduled"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);

    // The next backup does not need the objects.
    for name in &stored {
        events.bucket("weir").remove(name).await.unwrap();
    }
    let second = events.run(folder, &["backup", "backups"]).await;
    assert!(second.ok && !second.out.contains("missing"), "{}{}", second.out, second.err);
    // A new one does.
    let other = events.run(folder, &["backup", "other"]).await;
    assert!(other.ok && other.out.contains("missing in the bucket"), "{}", other.out);
    let checked = events.run(folder, &["check"]).await;
    let said = "neither in the data directory nor in the bucket";
    assert!(!checked.ok && checked.out.contains(said), "{}{}", checked.out, checked.err);
    let checked = events.run(folder, &["check", "backups"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);

    // The restored instance needs no bucket, and may use another prefix.
    let (restored, output) = instance.restore_by(&[]).await;
    assert!(output.ok, "{}", output.err);
    assert!(!restored.path().join("data/segments/bucket").exists());
    let serving = Serving::start(restored.path()).await;
    assert_eq!(instance.numbers(&serving.caller, SEALED).await.len(), 100);
    stop(serving).await;
    let mut often = events.weir(restored.path(), "restored");
    often.env("WEIR_SEAL_SECONDS", "1");
    let serving = Serving::start_with(often).await;
    until(async || {
        let uploaded = events.segments("restored").await;
        if uploaded == stored { Ok(()) } else { Err(uploaded) }
    })
    .await;
    assert_eq!(instance.numbers(&serving.caller, SEALED).await.len(), 100);
    stop(serving).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_by_hand_is_shown() {
    let instance = Instance::new().await;
    let serving = instance.serve().await;
    let session = session(&serving).await;
    let shown = page(&serving, &session).await;
    assert!(shown.contains("None known") && shown.contains("Set up backups"), "{shown}");
    instance.back_up().await;
    let directory = instance.backups().display().to_string();
    until(async || page(&serving, &session).await.contains(&directory)).await;
    stop(serving).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_to_a_time_takes_the_newest_backup_before_it() {
    let instance = Instance::new().await;
    let serving = instance.serve().await;
    let mut names = Vec::new();
    for end in [10, 20] {
        instance.send(&serving.caller, end - 10..end).await;
        names.push((instance.back_up().await, end));
    }
    stop(serving).await;
    for (name, end) in &names {
        let at = Timestamp::from_micros(began_at(name).micros() + 1_000).to_string();
        let (folder, restored) = instance.restore_by(&["--at", &at]).await;
        assert!(restored.ok, "{}", restored.err);
        assert!(restored.out.contains(name.as_str()), "{at}: {}", restored.out);
        assert!(restored.out.contains("It began at 20"), "{}", restored.out);
        let serving = Serving::start(folder.path()).await;
        let numbers = instance.numbers(&serving.caller, *end).await;
        assert_eq!(numbers, (0..*end).collect::<BTreeSet<_>>());
        stop(serving).await;
    }
    let (first, _) = names.first().unwrap();
    let early = began_at(first).plus_seconds(-1).to_string();
    for (arguments, reason) in [
        (&["--at", early.as_str()][..], "began at that time or before"),
        (&["--at", "yesterday"][..], "expected a date and a time"),
        (&["--at", "2026-06-01T10:00Z", "--backup", first.as_str()][..], "cannot be used with"),
    ] {
        let (folder, refused) = instance.restore_by(arguments).await;
        assert!(!refused.ok && refused.err.contains(reason), "{}", refused.err);
        assert!(!folder.path().join("data").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_found_and_not_restored() {
    let instance = Instance::new().await;
    let refused = instance.run(&["check", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("has no backups"), "{}", refused.err);
    let serving = instance.serve().await;
    instance.send(&serving.caller, 0..SEALED).await;
    instance.numbers(&serving.caller, SEALED).await;
    let checked = instance.run(&["check"]).await;
    assert!(checked.ok, "while a server runs: {}{}", checked.out, checked.err);
    stop(serving).await;
    assert!(instance.run(&["seal"]).await.ok);
    let before = state(&instance.data());
    assert!(instance.run(&["check"]).await.ok);
    assert_eq!(state(&instance.data()), before, "a check changes nothing");
    instance.back_up().await;
    let refused = instance.run(&["restore", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("not an empty directory"), "{}", refused.err);

    // A file of events in the data directory.
    let segment = files(&instance.data().join("segments"), ".parquet").pop().unwrap();
    flip(&segment);
    let checked = instance.run(&["check"]).await;
    assert!(!checked.ok && checked.out.contains("segments/"), "{}", checked.out);
    flip(&segment);
    assert!(instance.run(&["check"]).await.ok);
    let moved = segment.with_extension("moved");
    std::fs::rename(&segment, &moved).unwrap();
    let checked = instance.run(&["check"]).await;
    assert!(!checked.ok && checked.out.contains("and 100 were counted"), "{}", checked.out);
    std::fs::rename(&moved, &segment).unwrap();

    // The same of a backup. Its content is that of the file in the data directory.
    let bytes = std::fs::read(&segment).unwrap();
    let mut content = files(&instance.backups().join("files"), "");
    content.retain(|path| std::fs::read(path).unwrap() == bytes);
    let [content] = content.as_slice() else { panic!("{content:?}") };
    flip(content);
    let checked = instance.run(&["check", "backups"]).await;
    let said = "its bytes differ from their checksum";
    assert!(!checked.ok && checked.out.contains(said), "{}", checked.out);
    // It was moved away, so that the next backup stores it again.
    let name = content.file_name().unwrap();
    assert!(!content.exists() && instance.backups().join("damaged").join(name).exists());
    let folder = tempfile::tempdir().unwrap();
    let backups = instance.backups();
    let refused = command(folder.path(), &["restore", backups.to_str().unwrap()]).await;
    let said = "its content is missing";
    assert!(!refused.ok && refused.err.contains(said), "{}", refused.err);
    assert!(!folder.path().join("data").exists());
    instance.back_up().await;
    let checked = instance.run(&["check", "backups"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);
    let restored = command(folder.path(), &["restore", backups.to_str().unwrap()]).await;
    assert!(restored.ok, "{}", restored.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_files_there_is_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let refused = command(folder.path(), &["backup", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("no store"), "{}", refused.err);
    assert!(!folder.path().join("backups").exists() && !folder.path().join("data").exists());
    let made = set_up(folder.path(), "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    for (place, reason) in [
        ("ftp://bucket/weir", "neither a directory nor a place"),
        ("s3://bucket/weir", "an access key and its secret"),
    ] {
        let refused = command(folder.path(), &["backup", place]).await;
        assert!(!refused.ok && refused.err.contains(reason), "{}", refused.err);
    }
    for inside in ["data", "data/backups", "data/../data/store/backups"] {
        let refused = command(folder.path(), &["backup", inside]).await;
        assert!(!refused.ok && refused.err.contains("in the data directory"), "{}", refused.err);
    }
    let foreign = folder.path().join("data/.weir-backup");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter"), "").unwrap();
    let refused = command(folder.path(), &["backup", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("not made by this command"), "{}", refused.err);
    assert!(foreign.join("letter").exists());
    for arguments in [&["backup", "backups"][..], &["restore", "backups"], &["check"]] {
        let mut command = weir(folder.path());
        command.args(["--store", "mem://"]).args(arguments);
        let refused = run(command, "").await;
        assert!(!refused.ok && refused.err.contains("in memory"), "{}", refused.err);
    }
    // Files of events are in a bucket, and the settings do not name it.
    std::fs::create_dir_all(folder.path().join("data/segments")).unwrap();
    std::fs::write(folder.path().join("data/segments/bucket"), "s3://bucket/weir").unwrap();
    for arguments in [&["backup", "backups"][..], &["check"]] {
        let refused = command(folder.path(), arguments).await;
        assert!(!refused.ok && refused.err.contains("in a bucket"), "{}", refused.err);
    }
}
