//! Memory of the program under bodies that are made to use it up
//! (SECURITY-NOTES 7, F10; ingestion 6).

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;
use weir_ingest::log::LogSettings;
use weir_server::limits::Limits;
use weir_testkit::Caller;

use crate::capture::gzip;
use crate::process::{Serving, set_up};

const MIB: u64 = 1 << 20;

/// Resident memory of a process in bytes, and the most it was.
fn memory(process: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// The most memory that a process has for itself while it is watched: without what it
/// shares with files, such as the program.
struct Peak {
    highest: Arc<AtomicU64>,
    watching: AbortOnDrop,
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Peak {
    fn watch(process: u32) -> Self {
        let highest = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&highest);
        let watching = tokio::spawn(async move {
            while let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) {
                let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
                let Some(kib) = line.and_then(|line| line.trim().strip_suffix(" kB")) else {
                    break;
                };
                seen.fetch_max(kib.parse::<u64>().unwrap() << 10, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        Self { highest, watching: AbortOnDrop(watching) }
    }

    /// Bytes, and nothing is watched any more.
    fn end(self) -> u64 {
        drop(self.watching);
        self.highest.load(Ordering::Relaxed)
    }
}

/// Makes the present memory of a process the most it was.
fn forget_peak(process: u32) {
    fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
}

/// A megabyte of gzip that unpacks to a gigabyte of zeros.
fn bomb() -> Bytes {
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let zeros = vec![0; 1 << 20];
    let mut packer = Compress::new(Compression::best(), false);
    let mut pieces = [(); 2].map(|()| {
        let mut piece = Vec::with_capacity(1 << 16);
        packer.compress_vec(&zeros, &mut piece, FlushCompress::Full).unwrap();
        piece
    });
    // A full flush forgets what was before: every later piece is the same.
    pieces[1] = pieces[1].repeat(1_023);
    Bytes::from([&HEAD[..], &pieces[0], &pieces[1]].concat())
}

async fn serving() -> (tempfile::TempDir, Serving, Value) {
    let folder = tempfile::tempdir().unwrap();
    let made = set_up(folder.path(), "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    let serving = Serving::start(folder.path()).await;
    (folder, serving, serde_json::from_str(&made.out).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_is_refused_in_little_memory() {
    let (_folder, serving, made) = serving().await;
    let body = bomb();
    let send = async |path: &str, body: Bytes| {
        let call = serving.caller.call(Method::POST, path).body(body);
        call.header("content-encoding", "gzip").send().await
    };
    // What the first requests of all set up is no matter of the bomb.
    let event = json!({"api_key": made["project_api_key"], "event": "a", "distinct_id": "b"});
    let event = Bytes::from(gzip(event.to_string().as_bytes()));
    for _ in 0..20 {
        assert_eq!(send("/e/", event.clone()).await.status, 200);
    }
    forget_peak(serving.id());
    let (before, _) = memory(serving.id());
    for path in ["/e/", "/batch/", "/capture/", "/s/", "/flags/"] {
        let answer = send(path, body.clone()).await;
        assert_eq!(answer.error().2, "payload_too_large", "{path}");
        assert_eq!(answer.status, 413, "{path}");
    }
    let grown = memory(serving.id()).1.saturating_sub(before);
    assert!(grown < 80 * MIB, "{} MiB more for a bomb", grown / MIB);
    assert_eq!(send("/e/", event).await.status, 200);
}

/// Some seven megabytes that hardly pack: a request, or what only begins like one.
fn large(made: &Value, sound: bool) -> Bytes {
    const EVENTS: usize = 12;
    const UUIDS: usize = 600_000 / 32;
    // The same in every event: that is farther away than gzip looks.
    let text: String = (0..UUIDS).map(|_| Uuid::new_v4().simple().to_string()).collect();
    // Most are about nobody: taking them costs more than storing what is left.
    let events: Vec<Value> = (0..EVENTS)
        .map(|n| {
            let id = if n % 6 == 0 { "ada" } else { "" };
            json!({"event": "large", "distinct_id": id, "properties": {"text": text}})
        })
        .collect();
    let body = json!({"api_key": made["project_api_key"], "batch": events}).to_string();
    Bytes::from(gzip(if sound { body } else { format!("{{]{body}") }.as_bytes()))
}

/// Sends a body on a connection of its own; gives the status of the answer.
async fn send(address: SocketAddr, body: Bytes) -> u16 {
    let call = Caller::of(address).call(Method::POST, "/batch/").body(body);
    call.header("content-encoding", "gzip").send().await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_large_bodies_stays_within_its_budget() {
    let (_folder, serving, made) = serving().await;
    let [sound, junk] = [true, false].map(|sound| large(&made, sound));
    forget_peak(serving.id());
    let (before, _) = memory(serving.id());
    // Together more than the budget, even as sent.
    let mut flood = JoinSet::new();
    let mut clients = JoinSet::new();
    for n in 0..100 {
        match n % 50 {
            0 => clients.spawn(send(serving.address, sound.clone())),
            _ => flood.spawn(send(serving.address, junk.clone())),
        };
    }
    // Who manages the instance is not locked out meanwhile.
    let owner = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    assert_eq!(owner.get("/api/users/@me/").await.status, 200);
    let junk = flood.join_all().await;
    let refused = junk.iter().filter(|status| **status == 503).count();
    assert!(junk.iter().all(|status| [400, 503].contains(status)), "{junk:?}");
    assert!(refused > 0, "the budget was not used up");
    let sound = clients.join_all().await;
    assert!(sound.iter().all(|status| [200, 503].contains(status)), "{sound:?}");

    // As docs/guide/running.md says: the bodies and what is made of them, what the log
    // keeps for its readers, and the caches and buffers of the engine.
    let log = LogSettings::default();
    let engine = weir_store::Settings::default();
    let engine = engine.block_cache + engine.write_buffer * u64::from(engine.write_buffers);
    let limits = Limits::default();
    let bodies = limits.capture_bytes;
    let taking = bodies.total + bodies.reserve + limits.decoding_bytes;
    let bound = (taking + log.tail + log.behind) as u64 + engine;
    let grown = memory(serving.id()).1.saturating_sub(before);
    assert!(grown < bound, "{} MiB more, at most {} are allowed", grown / MIB, bound / MIB);
}

/// Nineteen megabytes of JSON, as it is: a batch of small events.
fn many(made: &Value) -> Bytes {
    const EVENTS: usize = 9_900;
    let text = "x".repeat(1_800);
    let events: Vec<Value> = (0..EVENTS)
        .map(|n| {
            let id = format!("user-{}", n % 100);
            json!({"event": "small", "distinct_id": id, "properties": {"n": n, "text": text}})
        })
        .collect();
    json!({"api_key": made["project_api_key"], "batch": events}).to_string().into()
}

/// What a small machine has for it, without the pages of the program.
const SMALL: u64 = 680 * MIB;

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_batches_fits_into_a_small_machine() {
    let (_folder, serving, made) = serving().await;
    let body = many(&made);
    assert!(body.len() > 18_000_000, "{}", body.len());
    let peak = Peak::watch(serving.id());
    let address = serving.address;
    let send = |body: Bytes| async move {
        let call = Caller::of(address).call(Method::POST, "/batch/").body(body);
        call.send().await
    };
    let mut flood = JoinSet::new();
    for _ in 0..60 {
        flood.spawn(send(body.clone()));
    }
    let answers = flood.join_all().await;
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!((refused.status, refused.error().2.as_str()), (503, "not_accepted"));
        assert!(refused.header("retry-after").is_some());
    }
    let taken = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(taken > 0, "some are taken");
    assert_eq!(serving.caller.get("/_livez").await.status, 200, "it has survived");
    let peak = peak.end();
    assert!(peak < SMALL, "{} MiB for {taken} batches", peak / MIB);
}

/// A few kilobytes make the service look at persons and groups of a hundred megabytes.
#[tokio::test(flavor = "multi_thread")]
async fn large_persons_and_groups_are_changed_in_little_memory() {
    const FAT: usize = 70;
    let (_folder, serving, made) = serving().await;
    let key = &made["project_api_key"];
    let send = async |events: Vec<Value>| {
        let body = json!({"api_key": key, "batch": events}).to_string();
        let call = serving.caller.call(Method::POST, "/batch/").body(gzip(body.as_bytes()));
        let answer = call.header("content-encoding", "gzip").send().await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    };
    let set = |n: usize, properties: &Value| {
        let id = format!("fat-{n}");
        let group = json!({"$group_type": "company", "$group_key": id, "$group_set": properties});
        [
            json!({"event": "$set", "distinct_id": id, "properties": {"$set": properties}}),
            json!({"event": "$groupidentify", "distinct_id": "ada", "properties": group}),
        ]
    };
    let text = json!({"text": "x".repeat(500_000)});
    for tens in 0..FAT / 10 {
        send((tens * 10..tens * 10 + 10).flat_map(|n| set(n, &text)).collect()).await;
    }
    let peak = Peak::watch(serving.id());
    let last = json!({"last": 1});
    send((0..FAT).flat_map(|n| set(n, &last)).collect()).await;
    let reader = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    let project = &made["project_id"];
    let is_last = async |list: String, properties: &str| {
        let found = reader.get(&format!("/api/projects/{project}/{list}")).await.json();
        found["results"][0][properties]["last"] == 1
    };
    let wait = Duration::from_millis(100);
    for n in 0..FAT {
        while !is_last(format!("persons/?distinct_id=fat-{n}"), "properties").await {
            tokio::time::sleep(wait).await;
        }
    }
    // A search reads all of them.
    for n in [0, FAT - 1] {
        while !is_last(format!("groups/?search=fat-{n}&limit=1"), "group_properties").await {
            tokio::time::sleep(wait).await;
        }
    }
    let list = format!("/api/projects/{project}/persons/?limit=1000");
    let (first, second) = tokio::join!(reader.get(&list), reader.get(&list));
    assert_eq!((first.status, second.status), (200, 200));
    assert!(first.body.len() > FAT * 500_000 || first.json()["next"].is_string());
    let peak = peak.end();
    assert!(peak < SMALL, "{} MiB", peak / MIB);
}
