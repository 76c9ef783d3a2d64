//! Sources, archives and events that are made to use up the memory or the time of a
//! service with a gigabyte.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt as _;
use tokio::process::Command;

use super::killed::{Program, SLOW};
use super::*;
use crate::small_machine::{self, SMALL, Watch};

/// Number of plugins with such a source.
const PLUGINS: usize = 12;
/// MiB that the service itself may grow by for sources and for archives.
const GROWN: u64 = 96;
/// Number of events of 180 kB.
const COSTLY: usize = 900;

fn limited(folder: &Path) -> Command {
    let mut command = small_machine::weir(folder);
    command.args(["--rate-per-minute", "0", "--rate-per-hour", "0"]);
    command.args(["--trusted-proxies", "127.0.0.1"]);
    command
}

/// A source of 110 kB in which a large object has many names. It used to take 4 GB.
fn aliases() -> String {
    let keys: String = (0..5_000).map(|n| format!("k{n}:1,")).collect();
    let names: String = (0..5_000).map(|n| format!("const a{n}=o;")).collect();
    format!("const o={{{keys}}};{names}{SLOW}")
}

/// An archive of 90 kB with a name of 90 MB.
fn long_name() -> Vec<u8> {
    let mut archive = GzEncoder::new(Vec::new(), Compression::best());
    let mut header = [0_u8; 512];
    header[..13].copy_from_slice(b"././@LongLink");
    header[124..135].copy_from_slice(format!("{:011o}", 90 << 20).as_bytes());
    header[156] = b'L';
    header[257..265].copy_from_slice(b"ustar  \0");
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.write_all(&header).unwrap();
    for _ in 0..90 {
        archive.write_all(&vec![b'a'; 1 << 20]).unwrap();
    }
    archive.finish().unwrap()
}

/// Sends events from another network.
async fn send_from(program: &Program, network: u8, events: &[Value]) {
    let body = json!({"api_key": program.project().key, "batch": events});
    let call = program.serving().caller.call(http::Method::POST, "/batch/").json(&body);
    ok(200, &call.header("x-forwarded-for", &format!("192.0.{network}.9")).send().await);
}

/// Whether an event from such a network is transformed.
async fn seen_from(program: &Program, network: u8) -> bool {
    let sent = event("after", json!({}));
    send_from(program, network, std::slice::from_ref(&sent)).await;
    let query = format!("&uuid={}", sent["uuid"].as_str().unwrap());
    let look = async || stored(&program.owner(), &program.project(), &query).await.pop();
    until(look).await["properties"]["seen"] == true
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_archives_and_costly_events_fit_into_a_gigabyte() {
    let mut program = Program::start(limited).await;
    program.install(SLOW).await;
    let owner = program.owner();
    let group = program.made["organization_id"].as_str().unwrap();
    let group = format!("/api/organizations/{group}/pipeline_destinations/");

    let watch = Watch::on(program.serving());
    let small = watch.touched() + GROWN;
    let deep = format!("export const scene = {}b", "<a>".repeat(40_000));
    let files = json!({"index.js": aliases(), "frontend.tsx": deep});
    let plugins = (0..PLUGINS).map(|n| {
        let (owner, group, files) = (&owner, &group, &files);
        async move {
            let plugin = ok(201, &owner.post(group, &json!({"name": format!("P{n}")})).await);
            let update = format!("{group}{}/update_source/", plugin["id"]);
            ok(200, &owner.patch(&update, &json!({"index.js": SLOW})).await);
            ok(200, &owner.patch(&update, files).await);
            plugin["id"].clone()
        }
    });
    // As many at the same time as a user may have waiting.
    let plugins: Vec<Value> = futures::stream::iter(plugins).buffered(8).collect().await;
    watch.survived("12 sources that take much to compile, eight at once", small);

    let watch = Watch::on(program.serving());
    let small = watch.touched() + GROWN;
    let mut body = b"--b\r\ncontent-disposition: form-data; name=\"archive\"; ".to_vec();
    body.extend(b"filename=\"t.tgz\"\r\ncontent-type: application/gzip\r\n\r\n");
    body.extend(long_name());
    body.extend(b"\r\n--b--\r\n");
    let archives = (0..6).map(|_| {
        let call = owner.call(http::Method::POST, &group);
        call.header("content-type", "multipart/form-data; boundary=b").body(body.clone()).send()
    });
    for answer in futures::future::join_all(archives).await {
        if answer.status == 429 {
            continue;
        }
        let (status, _, _, detail, attr) = answer.error();
        assert_eq!((status, attr.as_deref()), (400, Some("archive")), "{detail}");
        assert!(detail.contains("64 KiB"), "{detail}");
    }
    watch.survived("6 archives with a long name, at once", small);

    // A start does not compile these sources, and enabled plugins still work.
    for (order, plugin) in (2..).zip(&plugins) {
        let config = json!({"plugin": plugin, "order": order, "enabled": true});
        ok(201, &owner.post(&Instance::configs(&program.project()), &config).await);
    }
    program.restart().await;
    let watch = Watch::on(program.serving());
    assert!(seen_from(&program, 1).await);
    watch.survived("a start with 13 plugins", SMALL);

    let watch = Watch::on(program.serving());
    let costly = "export function processEvent(e) {
        const kept = []
        const end = Date.now() + (e.properties.costly ? 90 : 0)
        while (Date.now() < end) { kept.push('x'.repeat(10000) + kept.length) }
        return e
    }";
    program.install(costly).await;
    let costly =
        |n: usize| event("costly", json!({"costly": true, "text": "x".repeat(30), "n": n}));
    send_from(&program, 2, &(0..COSTLY).map(costly).collect::<Vec<_>>()).await;
    assert!(seen_from(&program, 3).await, "other networks have time of their own");
    let query = "&event=costly";
    let all = async || {
        let found = stored(&program.owner(), &program.project(), query).await.len();
        (found == COSTLY).then_some(())
    };
    until(all).await;
    watch.survived("900 costly events", SMALL);
}
