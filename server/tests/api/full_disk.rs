//! A disk that is really full, and then has free space again (DUR-13).
//!
//! The data directory is a small file system in memory that only the test sees. If the
//! machine does not allow that, free space is measured against thresholds just below the
//! free space of the disk for temporary files.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use uuid::Uuid;
use weir_testkit::{Answer, Caller, until};

use crate::process::{Serving, set_up_with, weir_through};

const MIB: u64 = 1 << 20;
/// Enough for a segment of the log, the engine and the ballast.
const SMALL: u64 = 384 * MIB;

/// The location of the service's data, and how its disk is filled.
struct Volume {
    folder: tempfile::TempDir,
    /// The command that starts programs with access to the data.
    launcher: Vec<String>,
    /// The path of the data for this process.
    seen: PathBuf,
    /// Thresholds in free bytes: not ready below the first, and no writes below the
    /// second.
    marks: (u64, u64),
    /// Bytes to fill it with; `None` means all free bytes.
    filling: Option<u64>,
    /// Keeps the file system alive while no other process uses it.
    _holder: Option<Child>,
}

impl Volume {
    /// `None`, with a printed line, if a disk cannot be filled here.
    async fn find() -> Option<Self> {
        for user in [&[][..], &["--user", "--map-root-user"][..]] {
            if let Some(volume) = Self::own(user).await {
                return Some(volume);
            }
        }
        if let Some(volume) = Self::shared() {
            say("no file system of its own can be mounted; the marks are moved instead");
            return Some(volume);
        }
        assert!(std::env::var_os("CI").is_none(), "a full disk cannot be tried out here");
        say("SKIPPED: no file system can be mounted, and the disk has too little room");
        None
    }

    /// A small file system for this test.
    async fn own(user: &[&str]) -> Option<Self> {
        const MOUNT: &str =
            r#"mount -t tmpfs -o size="$1",mode=700 weir "$2" && echo mounted && exec cat"#;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let mut command = Command::new("unshare");
        command.args(user).args(["--mount", "sh", "-c", MOUNT, "sh", &SMALL.to_string()]);
        command.arg(&data).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = command.spawn().ok()?;
        let id = holder.id()?.to_string();
        let mut told = BufReader::new(holder.stdout.take()?).lines();
        if told.next_line().await.ok()?.as_deref() != Some("mounted") {
            return None;
        }
        let mut launcher = vec!["nsenter".to_owned(), "--target".to_owned(), id.clone()];
        if !user.is_empty() {
            launcher.extend(["--user", "--preserve-credentials"].map(str::to_owned));
        }
        launcher.extend(["--mount", "--"].map(str::to_owned));
        let inside = Path::new("/proc").join(id).join("root");
        let seen = inside.join(data.strip_prefix("/").ok()?);
        let marks = (96 * MIB, 48 * MIB);
        Some(Self { folder, launcher, seen, marks, filling: None, _holder: Some(holder) })
    }

    /// The disk for temporary files, with thresholds just below its free space.
    fn shared() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("data");
        std::fs::create_dir(&seen).unwrap();
        let free = free(&seen);
        let marks = (free.checked_sub(512 * MIB)?, free.checked_sub(1024 * MIB)?);
        let filling = Some(1280 * MIB);
        let volume = Self { folder, launcher: Vec::new(), seen, marks, filling, _holder: None };
        volume.fill().then(|| volume.empty())?;
        Some(volume)
    }

    fn weir(&self) -> Command {
        let mut command = weir_through(&self.launcher, self.folder.path());
        let (high, low) = self.marks;
        command.args(["--disk-high", &high.to_string(), "--disk-low", &low.to_string()]);
        command
    }

    fn filler(&self) -> PathBuf {
        self.seen.join("filler")
    }

    /// Fills it, and returns whether that was possible.
    fn fill(&self) -> bool {
        self.fill_up_to(0)
    }

    /// Fills it up to this many free bytes, if it can be filled completely.
    fn fill_up_to(&self, left: u64) -> bool {
        let file = File::create(self.filler()).unwrap();
        // Repeated, because the service may have written at the same time.
        (0..5).any(|_| {
            let size = self.filling.unwrap_or_else(|| free(&self.seen).saturating_sub(left));
            fallocate(&file, FallocateFlags::empty(), 0, size).is_ok()
        })
    }

    fn empty(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

fn free(directory: &Path) -> u64 {
    let found = statvfs(directory).unwrap();
    found.f_bavail * found.f_frsize
}

/// Prints without the test harness, which captures the output of tests.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "full_disk: {line}");
}

/// The service on a volume, and the events that it has acknowledged.
struct Story {
    volume: Volume,
    made: Value,
    serving: Serving,
    reader: Caller,
    acknowledged: HashSet<Uuid>,
}

impl Story {
    async fn begin(volume: Volume) -> Self {
        let output = set_up_with(volume.weir(), "plum-otter-violin-93").await;
        assert!(output.ok, "{}", output.err);
        let made: Value = serde_json::from_str(&output.out).unwrap();
        let (serving, reader) = Self::start(&volume, &made).await;
        Self { volume, made, serving, reader, acknowledged: HashSet::new() }
    }

    async fn start(volume: &Volume, made: &Value) -> (Serving, Caller) {
        let serving = Serving::start_with(volume.weir()).await;
        let reader = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
        (serving, reader)
    }

    /// Sends a batch of new events, and returns whether it was acknowledged.
    async fn send(&mut self) -> bool {
        let uuids = [(); 10].map(|()| Uuid::new_v4());
        let events = uuids.map(|uuid| {
            let text = "x".repeat(2_000);
            json!({
                "event": "order", "distinct_id": uuid, "uuid": uuid, "properties": {"text": text},
            })
        });
        let body = json!({"api_key": self.made["project_api_key"], "batch": events});
        let answer = self.serving.caller.post("/batch/", &body).await;
        match answer.status {
            200 => self.acknowledged.extend(uuids),
            503 => assert_refused(&answer),
            other => unreachable!("answered {other}: {answer:?}"),
        }
        answer.status == 200
    }

    /// Sends until batches are acknowledged, or until they are refused.
    async fn send_until(&mut self, acknowledged: bool) {
        until(async || self.send().await == acknowledged).await;
    }

    /// Waits until readiness has this value for all roles.
    async fn until_ready(&self, ready: bool) {
        let status = if ready { 200 } else { 503 };
        until(async || self.serving.caller.get("/_readyz").await.status == status).await;
        let told = self.serving.caller.get("/_readyz").await.json();
        assert_eq!((&told["disk"], &told["http"]), (&json!(ready), &json!(true)), "{told}");
        assert_eq!(self.serving.caller.get("/_readiness").await.status, status);
        assert_eq!(self.serving.caller.get("/_livez").await.status, 200);
    }

    /// The uuids of the readable events. Each is there once.
    async fn readable(&self) -> HashSet<Uuid> {
        let base = format!("http://{}", self.serving.address);
        let mut path = format!("/api/projects/{}/events/?limit=1000", self.made["project_id"]);
        let mut found = HashSet::new();
        loop {
            let page = self.reader.get(&path).await;
            assert_eq!(page.status, 200, "{page:?}");
            let page = page.json();
            for event in page["results"].as_array().unwrap() {
                let uuid = event["uuid"].as_str().unwrap().parse().unwrap();
                assert!(found.insert(uuid), "{uuid} is there twice");
            }
            match page["next"].as_str() {
                Some(next) => path = next.strip_prefix(&base).unwrap().to_owned(),
                None => return found,
            }
        }
    }

    /// Waits until every acknowledged event is readable. Refused events may be readable
    /// too, so only missing ones count.
    async fn until_all_readable(&self) {
        until(async || {
            let found = self.readable().await;
            let missing = self.acknowledged.difference(&found).count();
            if missing == 0 { Ok(()) } else { Err(missing) }
        })
        .await;
    }
}

#[track_caller]
fn assert_refused(answer: &Answer) {
    let (_, kind, code, _, _) = answer.error();
    assert_eq!((kind.as_str(), code.as_str()), ("server_error", "not_accepted"));
    assert!(answer.header("retry-after").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_503_until_there_is_room_and_loses_nothing() {
    let Some(volume) = Volume::find().await else { return };
    let mut story = Story::begin(volume).await;
    story.until_ready(true).await;
    for _ in 0..20 {
        assert!(story.send().await);
    }

    // Immediately, and while events arrive.
    assert!(story.volume.fill());
    story.send_until(false).await;
    story.until_ready(false).await;
    // No client gets another answer while the disk is full, and reads work.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        assert!(!story.send().await, "acknowledged on a full disk");
    }
    story.readable().await;

    story.volume.empty();
    story.send_until(true).await;
    story.until_ready(true).await;
    story.until_all_readable().await;

    // A crash afterwards causes no damage.
    story.serving.signal(Signal::KILL);
    assert_eq!(story.serving.ended().await, None);
    (story.serving, story.reader) = Story::start(&story.volume, &story.made).await;
    story.until_ready(true).await;
    story.until_all_readable().await;
    assert!(story.send().await);
    story.until_all_readable().await;
    story.serving.signal(Signal::TERM);
    assert_eq!(story.serving.ended().await, Some(0));
}

/// A user must be able to sign in to free space.
#[tokio::test(flavor = "multi_thread")]
async fn people_sign_in_while_the_disk_is_low() {
    let Some(volume) = Volume::find().await else { return };
    let mut story = Story::begin(volume).await;
    story.until_ready(true).await;
    assert!(story.volume.fill_up_to(story.volume.marks.1 / 2));
    story.send_until(false).await;
    let sign_in = json!({"email": "ada@mail.example", "password": "plum-otter-violin-93"});
    let answer = story.serving.caller.post("/api/login/", &sign_in).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let session = answer.headers.get_all("set-cookie").iter().next().unwrap();
    let cookie = session.to_str().unwrap().split(';').next().unwrap();
    let call = |method, path| story.serving.caller.call(method, path).header("cookie", cookie);
    assert_eq!(call(http::Method::GET, "/account").send().await.status, 200);
    // All other writes are refused, and a wrong password is counted.
    let wrong = json!({"email": "ada@mail.example", "password": "wrong"});
    for _ in 0..6 {
        assert_eq!(story.serving.caller.post("/api/login/", &wrong).await.status, 400);
    }
    assert_eq!(story.serving.caller.post("/api/login/", &wrong).await.status, 429);
    let change = call(http::Method::POST, "/_fn/create_organization");
    let change = change.header("sec-fetch-site", "same-origin");
    let change = change.header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(change.body("name=Beta").send().await.status, 503);

    story.volume.empty();
    story.until_ready(true).await;
    story.serving.signal(Signal::TERM);
    assert_eq!(story.serving.ended().await, Some(0));
}
