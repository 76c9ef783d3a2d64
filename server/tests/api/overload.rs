//! Answers while the store or the disk is too slow (ING-4, DUR-3). No acknowledged event
//! is lost.

use std::collections::HashSet;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_server::background::{Background, Work};
use weir_server::limits::Limits;
use weir_testkit::{Answer, TestApp, until};

/// Blocks the threads that apply events until it is dropped.
struct HeldUp(#[expect(dead_code, reason = "its end is what matters")] Vec<mpsc::Sender<()>>);

impl HeldUp {
    /// Returns when all threads are blocked.
    async fn all_of(threads: &Background) -> Self {
        let count = std::thread::available_parallelism().map_or(2, usize::from);
        let (held, mut are_held) = tokio::sync::mpsc::unbounded_channel();
        let mut releases = Vec::new();
        for _ in 0..count {
            let (release, released) = mpsc::channel();
            releases.push(release);
            let held = held.clone();
            threads.handle().spawn(async move {
                held.send(()).unwrap();
                // The error means that the sender is dropped, which ends the wait.
                let _ = released.recv();
            });
        }
        for _ in 0..count {
            are_held.recv().await.unwrap();
        }
        Self(releases)
    }
}

/// A body of one request with one event.
fn body(app: &TestApp, uuid: Uuid, historical: bool) -> Value {
    json!({
        "api_key": app.project_key(), "historical_migration": historical,
        "batch": [{
            "event": "order", "distinct_id": "ada", "uuid": uuid,
            "properties": {"text": "x".repeat(1_000)},
        }],
    })
}

async fn send(app: &TestApp, uuid: Uuid, historical: bool) -> Answer {
    let call = app.anonymous().call(Method::POST, "/batch/").header("origin", "https://a.example");
    call.json(&body(app, uuid, historical)).send().await
}

/// The answer makes client libraries retry later.
#[track_caller]
fn assert_later(answer: &Answer) {
    let detail = "The events were not stored. Send them again.";
    assert_eq!(
        answer.error(),
        (503, "server_error".to_owned(), "not_accepted".to_owned(), detail.to_owned(), None)
    );
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=5).contains(&wait), "{wait}");
    // Otherwise a page of another origin cannot read it.
    assert_eq!(answer.header("access-control-expose-headers"), Some("Retry-After"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://a.example"));
}

/// The uuids of all events. Each is stored once.
async fn stored(app: &TestApp) -> HashSet<Uuid> {
    app.app().ingest.applied().await;
    let reader = app.owner().key(&["query:read"]).await;
    let path = format!("/api/projects/{}/events/?limit=1000", app.project());
    let page = reader.get(&path).await.json();
    assert_eq!(page["next"], Value::Null);
    let events = page["results"].as_array().unwrap();
    let uuids: HashSet<_> =
        events.iter().map(|event| event["uuid"].as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(uuids.len(), events.len(), "nothing twice");
    uuids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stands_still_is_answered_for_until_the_log_is_full() {
    const BOUND: u64 = 256 << 10;
    let threads = Background::start(Work::Applying).unwrap();
    let app = TestApp::with_options(
        |_| {},
        |options| {
            options.log.backlog = BOUND;
            options.applying = Some(threads.handle().clone());
        },
    )
    .await
    .set_up()
    .await;
    let held_up = HeldUp::all_of(&threads).await;

    let mut acknowledged = HashSet::new();
    let mut import_refused_at = None;
    loop {
        let lag = app.app().ingest.lag_bytes();
        // An import leaves bytes for live events.
        let uuid = Uuid::new_v4();
        let answer = send(&app, uuid, true).await;
        if answer.status == 200 {
            assert_eq!(import_refused_at, None, "refused before");
            acknowledged.insert(uuid);
        } else {
            assert_later(&answer);
            import_refused_at.get_or_insert(lag);
        }
        let uuid = Uuid::new_v4();
        let answer = send(&app, uuid, false).await;
        if answer.status != 200 {
            assert_later(&answer);
            break;
        }
        acknowledged.insert(uuid);
    }
    // The bound and one record, for the record that crosses it.
    let lag = app.app().ingest.lag_bytes();
    assert!((BOUND..BOUND + (4 << 10)).contains(&lag), "{lag}");
    let half = import_refused_at.unwrap();
    assert!((BOUND / 2..BOUND / 2 + (8 << 10)).contains(&half), "{half}");

    // Capture protocol V1 has other names for the same error.
    let id = Uuid::new_v4();
    let answer = app
        .anonymous()
        .call(Method::POST, "/i/v1/analytics/events")
        .header("authorization", &format!("Bearer {}", app.project_key()))
        .header("user-agent", "posthog-python/7.91.1")
        .header("posthog-sdk-info", "posthog-python/7.91.1")
        .header("posthog-attempt", "1")
        .header("posthog-request-id", &id.to_string())
        .header("posthog-request-timestamp", "2026-06-01T10:35:00Z")
        .json(&json!({
            "created_at": "2026-06-01T10:35:00Z",
            "batch": [{
                "event": "order", "uuid": id, "distinct_id": "ada",
                "timestamp": "2026-06-01T10:34:59Z", "properties": {},
            }],
        }))
        .send()
        .await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert_eq!(answer.json()["error"], "service_unavailable");
    // Users of the management API notice nothing, and the instance is ready. Only a stall
    // of half a minute would change that.
    let owner = app.owner().key(&["*"]).await;
    assert_eq!(owner.get("/api/organizations/").await.status, 200);
    assert_eq!(app.anonymous().get("/_readyz").await.status, 200);

    drop(held_up);
    assert_eq!(stored(&app).await, acknowledged);
    let uuid = Uuid::new_v4();
    assert_eq!(send(&app, uuid, true).await.status, 200, "there is room again");
    acknowledged.insert(uuid);
    assert_eq!(stored(&app).await, acknowledged);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_consumer_makes_the_service_unready() {
    assert_eq!(Limits::default().stall, Duration::from_secs(30), "what is promised");
    let threads = Background::start(Work::Applying).unwrap();
    let app = TestApp::with_options(
        |limits| limits.stall = Duration::from_millis(20),
        |options| options.applying = Some(threads.handle().clone()),
    )
    .await
    .set_up()
    .await;
    let is_ready = async |query: &str| {
        app.app().ingest.check(Instant::now());
        app.anonymous().get(&format!("/_readyz{query}")).await.status == 200
    };
    let held_up = HeldUp::all_of(&threads).await;
    assert!(is_ready("").await, "no event waits");
    assert_eq!(send(&app, Uuid::new_v4(), false).await.status, 200);
    until(async || !is_ready("").await).await;
    assert!(!is_ready("?role=events").await);
    assert!(is_ready("?exclude=ingest").await, "nothing else is wrong");

    drop(held_up);
    until(async || is_ready("").await).await;
    app.stop().await;
}

/// Whether the disk of the log blocks, with a signal for changes.
static DISK_HANGS: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// While this value exists, the disk blocks.
struct Hanging;

impl Hanging {
    fn begin() -> Self {
        *DISK_HANGS.0.lock().unwrap() = true;
        Self
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        *DISK_HANGS.0.lock().unwrap() = false;
        DISK_HANGS.1.notify_all();
    }
}

fn sync_when_it_answers(file: &File) -> std::io::Result<()> {
    let (hangs, changed) = &DISK_HANGS;
    drop(changed.wait_while(hangs.lock().unwrap(), |hangs| *hangs).unwrap());
    file.sync_data()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_does_not_answer_is_503_and_recovers() {
    assert_eq!(Limits::default().append_time, Duration::from_secs(5), "what is promised");
    let patience = Duration::from_millis(300);
    let app = TestApp::with_options(
        |limits| limits.append_time = patience,
        |options| options.log.sync = sync_when_it_answers,
    )
    .await
    .set_up()
    .await;
    let [before, during, after] = [(); 3].map(|()| Uuid::new_v4());
    assert_eq!(send(&app, before, false).await.status, 200);

    let hanging = Hanging::begin();
    let began = Instant::now();
    // Two requests: the second waits for the writer and not for the disk.
    let (first, second) = tokio::join!(send(&app, during, false), send(&app, during, false));
    assert_later(&first);
    assert_later(&second);
    let took = began.elapsed();
    assert!(took >= patience && took < patience + Duration::from_secs(5), "{took:?}");
    assert_eq!(app.anonymous().get("/_livez").await.status, 200);

    drop(hanging);
    // Libraries send the same batch again. The records that timed out had been written.
    for uuid in [during, after] {
        assert_eq!(send(&app, uuid, false).await.status, 200);
    }
    assert_eq!(stored(&app).await, HashSet::from([before, during, after]));
    app.stop().await;
}

fn sync_fails_after_the_first(file: &File) -> std::io::Result<()> {
    static SYNCED: AtomicBool = AtomicBool::new(false);
    if SYNCED.swap(true, Ordering::AcqRel) {
        return Err(std::io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()));
    }
    file.sync_data()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_sync_nothing_is_acknowledged_any_more() {
    let app =
        TestApp::with_options(|_| {}, |options| options.log.sync = sync_fails_after_the_first)
            .await
            .set_up()
            .await;
    let kept = Uuid::new_v4();
    assert_eq!(send(&app, kept, false).await.status, 200);
    for _ in 0..2 {
        assert_later(&send(&app, Uuid::new_v4(), false).await);
    }
    assert_eq!(app.anonymous().get("/_readyz").await.status, 503);
    assert_eq!(app.anonymous().get("/_readiness").await.status, 503);
    // The process ends after this.
    tokio::time::timeout(Duration::from_secs(5), app.app().ingest.failed()).await.unwrap();
    assert_eq!(stored(&app).await, HashSet::from([kept]));
}
