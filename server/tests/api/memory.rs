//! Memory of the program under bodies that are made to use it up
//! (SECURITY-NOTES 7, F10; ingestion 6).

use std::fs;
use std::net::SocketAddr;

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

    // As docs/guide/running.md says: the bodies, what the log keeps for its readers,
    // and the caches and buffers of the engine.
    let log = LogSettings::default();
    let engine = weir_store::Settings::default();
    let engine = engine.block_cache + engine.write_buffer * u64::from(engine.write_buffers);
    let bound = (Limits::default().capture_bytes + log.tail + log.behind) as u64 + engine;
    let grown = memory(serving.id()).1.saturating_sub(before);
    assert!(grown < bound, "{} MiB more, at most {} are allowed", grown / MIB, bound / MIB);
}
