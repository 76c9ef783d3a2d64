//! Memory of the program under bodies that are made to use it up, with a limit of one
//! gigabyte (SEC-19, DUR-3).

mod persons;
mod strangers;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::task::JoinSet;
use uuid::Uuid;
use weir_ingest::log::LogSettings;
use weir_server::limits::Limits;
use weir_testkit::Caller;

use crate::capture::gzip;
use crate::process::{Serving, set_up};
use crate::small_machine::{self, SMALL, Watch};

const MIB: u64 = 1 << 20;

/// Resident memory of a process in bytes, now and at its peak.
fn memory(process: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Resets the peak of a process to its present memory.
fn forget_peak(process: u32) {
    fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
}

/// A megabyte of gzip that decompresses to a gigabyte of zeros.
fn bomb() -> Bytes {
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let zeros = vec![0; 1 << 20];
    let mut packer = Compress::new(Compression::best(), false);
    let mut pieces = [(); 2].map(|()| {
        let mut piece = Vec::with_capacity(1 << 16);
        packer.compress_vec(&zeros, &mut piece, FlushCompress::Full).unwrap();
        piece
    });
    // A full flush resets the compression, so every later part is the same.
    pieces[1] = pieces[1].repeat(1_023);
    Bytes::from([&HEAD[..], &pieces[0], &pieces[1]].concat())
}

/// The program with at most a gigabyte, without request limits. It identifies clients by
/// a proxy's header.
fn limited(data: &Path) -> Command {
    let mut command = small_machine::weir(data);
    command.args(["--rate-per-minute", "0", "--rate-per-hour", "0"]);
    command.args(["--trusted-proxies", "127.0.0.1", "--egress-allow", "127.0.0.1"]);
    command.arg("--local-exports").arg(data.join("exports"));
    command
}

/// An address in the network of another provider for each `n`.
fn network(n: usize) -> String {
    format!("198.{n}.0.1")
}

async fn serving() -> (TempDir, Serving, Value) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("exports")).unwrap();
    let made = set_up(folder.path(), "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    let serving = Serving::start_with(limited(folder.path())).await;
    (folder, serving, serde_json::from_str(&made.out).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_is_refused_in_little_memory() {
    let (_folder, serving, made) = serving().await;
    let watch = Watch::on(&serving);
    let body = bomb();
    let send = async |path: &str, body: Bytes| {
        let call = serving.caller.call(Method::POST, path).body(body);
        call.header("content-encoding", "gzip").send().await
    };
    // The first requests allocate memory that does not belong to the bomb.
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
    watch.survived("gzip bombs", SMALL);
    let grown = memory(serving.id()).1.saturating_sub(before);
    assert!(grown < 80 * MIB, "{} MiB more for a bomb", grown / MIB);
    assert_eq!(send("/e/", event).await.status, 200);
}

/// Some seven megabytes that hardly compress: a valid request, or only the beginning of
/// one.
fn large(made: &Value, sound: bool) -> Bytes {
    const EVENTS: usize = 12;
    const UUIDS: usize = 600_000 / 32;
    // The same text in every event, farther apart than gzip's window.
    let text: String = (0..UUIDS).map(|_| Uuid::new_v4().simple().to_string()).collect();
    // Most events have no distinct id: accepting them costs more than storing the others.
    let events: Vec<Value> = (0..EVENTS)
        .map(|n| {
            let id = if n % 6 == 0 { "ada" } else { "" };
            json!({"event": "large", "distinct_id": id, "properties": {"text": text}})
        })
        .collect();
    let body = json!({"api_key": made["project_api_key"], "batch": events}).to_string();
    Bytes::from(gzip(if sound { body } else { format!("{{]{body}") }.as_bytes()))
}

/// Sends a body on a new connection, and returns the status of the answer.
async fn send(address: SocketAddr, body: Bytes) -> u16 {
    let call = Caller::of(address).call(Method::POST, "/batch/").body(body);
    call.header("content-encoding", "gzip").send().await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_large_bodies_stays_within_its_budget() {
    let (_folder, serving, made) = serving().await;
    let watch = Watch::on(&serving);
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
    // Users of the management API are not locked out meanwhile.
    let owner = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    assert_eq!(owner.get("/api/users/@me/").await.status, 200);
    let junk = flood.join_all().await;
    let refused = junk.iter().filter(|status| **status == 503).count();
    assert!(junk.iter().all(|status| [400, 503].contains(status)), "{junk:?}");
    assert!(refused > 0, "the budget was not used up");
    let sound = clients.join_all().await;
    assert!(sound.iter().all(|status| [200, 503].contains(status)), "{sound:?}");

    watch.survived("100 large bodies", SMALL);

    // As docs/guide/running.md says: the bodies and the data made of them, the records
    // that the log keeps for its readers, and the caches and buffers of the engine.
    let log = LogSettings::default();
    let engine = weir_store::Settings::default();
    let engine = engine.block_cache + engine.write_buffer * u64::from(engine.write_buffers);
    let limits = Limits::default();
    let bodies = limits.capture_bytes;
    let taking = bodies.total + bodies.reserve + limits.decoding_bytes;
    let bound = (taking + log.newest_cache + log.disk_cache) as u64 + engine;
    let grown = memory(serving.id()).1.saturating_sub(before);
    assert!(grown < bound, "{} MiB more, at most {} are allowed", grown / MIB, bound / MIB);
}

/// Nineteen megabytes of uncompressed JSON: a batch of small events.
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

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_batches_fits_into_a_gigabyte() {
    let (_folder, serving, made) = serving().await;
    let watch = Watch::on(&serving);
    let body = many(&made);
    assert!(body.len() > 18_000_000, "{}", body.len());
    let address = serving.address;
    // Each from another network, because one network may hold only two. Refused ones are
    // sent again.
    let send = |n: usize, body: Bytes| async move {
        for _ in 0..4 {
            let call = Caller::of(address).call(Method::POST, "/batch/").body(body.clone());
            let answer = call.header("x-forwarded-for", &network(n)).send().await;
            if answer.status == 200 {
                return true;
            }
            assert_eq!((answer.status, answer.error().2.as_str()), (503, "not_accepted"));
            assert!(answer.header("retry-after").is_some());
        }
        false
    };
    let mut flood = JoinSet::new();
    for n in 0..60 {
        flood.spawn(send(n, body.clone()));
    }
    let taken = flood.join_all().await.into_iter().filter(|taken| *taken).count();
    assert!(taken > 0, "some are taken");
    assert_eq!(serving.caller.get("/_livez").await.status, 200, "it has survived");
    watch.survived(&format!("60 batches of 19 MB, {taken} of them taken"), SMALL);
}
