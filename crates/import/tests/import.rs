//! Complete imports against a host with all kinds of failures.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod support;

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_import::{ImportError, Outcome};

use support::{Act, Host, arguments, import, lines};

/// Names in order, each once.
fn expected(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("e{n}")).collect()
}

fn file(folder: &Path, content: &str) -> std::path::PathBuf {
    let path = folder.join("events.jsonl");
    std::fs::write(&path, content).unwrap();
    path
}

fn cursor(folder: &Path) -> std::path::PathBuf {
    folder.join("events.jsonl.weir-cursor")
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_in_order_as_capture_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..2500));
    let host = Host::start(&[]).await;
    let summary = import(&arguments(&[&path], Some(host.address))).await.unwrap();
    assert_eq!((&summary.outcome, summary.accepted), (&Outcome::Complete, 2500));
    assert_eq!(summary.requests, 3);
    assert!(!cursor(folder.path()).exists());
    host.seen(|seen| {
        assert_eq!(seen.order, expected(2500));
        for (asked, body) in &seen.requests {
            assert_eq!((asked.method.as_str(), asked.version.as_str()), ("POST", "HTTP/1.1"));
            assert_eq!((asked.path.as_str(), asked.query.as_str()), ("/batch/", "ip=0"));
            assert_eq!(asked.header("content-encoding"), "gzip");
            assert_eq!(body["api_key"], "phc_key");
            assert_eq!(body["historical_migration"], true);
            assert_eq!(body.get("sent_at"), None);
            assert!(body["batch"].as_array().unwrap().len() <= 1000);
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn large_events_make_small_batches() {
    let folder = tempfile::tempdir().unwrap();
    let big = "x".repeat(900_000);
    let path =
        file(folder.path(), &lines(0..20).replace("\"n\":", &format!("\"x\":\"{big}\",\"n\":")));
    let host = Host::start(&[]).await;
    let summary = import(&arguments(&[&path], Some(host.address))).await.unwrap();
    assert_eq!((summary.outcome, summary.accepted), (Outcome::Complete, 20));
    host.seen(|seen| {
        for (_, body) in &seen.requests {
            assert!(body.to_string().len() < 5 << 20);
        }
        assert_eq!(seen.order, expected(20));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_faults_are_retried() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..2500));
    let faults = [
        Act::Answer(503, "retry-after: 0"),
        Act::Cut,
        Act::Accept,
        Act::Answer(429, "x-a: b"),
        Act::AcceptInSilence,
        Act::Answer(502, "x-a: b"),
        Act::Answer(408, "x-a: b"),
    ];
    let host = Host::start(&faults).await;
    let summary = import(&arguments(&[&path], Some(host.address))).await.unwrap();
    assert_eq!((summary.outcome, summary.accepted), (Outcome::Complete, 2500));
    assert!(summary.requests >= 9, "{}", summary.requests);
    host.seen(|seen| {
        assert_eq!(seen.events.len(), 2500);
        let mut once = HashSet::new();
        let order: Vec<_> = seen.order.iter().filter(|name| once.insert(*name)).cloned().collect();
        assert_eq!(order, expected(2500));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_takes_less_gets_less() {
    let folder = tempfile::tempdir().unwrap();
    let big = "x".repeat(60_000);
    let content = lines(0..2000)
        + &lines(2000..2001).replace("\"n\":", &format!("\"x\":\"{big}\",\"n\":"))
        + &lines(2001..2100);
    let path = file(folder.path(), &content);
    let host = Host::with_limit(&[], 50_000).await;
    let summary = import(&arguments(&[&path], Some(host.address))).await.unwrap();
    assert_eq!(
        (&summary.outcome, summary.accepted, summary.refused),
        (&Outcome::Complete, 2099, 1)
    );
    assert_eq!(summary.refused_at[0].line, 2001);
    assert!(summary.to_string().contains("refused by the host: 1 line"), "{summary}");
    host.seen(|seen| {
        let all: Vec<_> = expected(2100).into_iter().filter(|name| name != "e2000").collect();
        assert_eq!(seen.order, all);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_helped_stops_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..10));
    for (act, expected) in [
        (Act::Answer(401, "x-a: b"), "the host refuses the project key: As set."),
        (Act::Answer(400, "x-a: b"), "the host refuses the events (400 Bad Request): As set."),
        (Act::Answer(404, "x-a: b"), "the host takes no events at this address"),
        (
            Act::Answer(302, "location: https://other.example/"),
            "redirects to https://other.example/",
        ),
    ] {
        let host = Host::start(&[act]).await;
        let mut arguments = arguments(&[&path], Some(host.address));
        arguments.cursor = Some(folder.path().join("cursor"));
        let summary = import(&arguments).await.unwrap();
        let Outcome::Stopped(reason) = &summary.outcome else { panic!("{summary:?}") };
        assert!(reason.contains(expected), "{reason}");
        assert!(summary.failure().unwrap().contains("the same call continues from here"));
        assert_eq!((summary.accepted, host.requests()), (0, 1));
        // After the cause is removed.
        let summary = import(&arguments).await.unwrap();
        assert_eq!((summary.outcome, summary.accepted), (Outcome::Complete, 10));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_there_is_given_up_soon() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..10));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let summary = import(&arguments(&[&path], Some(address))).await.unwrap();
    let Outcome::Stopped(reason) = &summary.outcome else { panic!("{summary:?}") };
    assert!(reason.contains("cannot reach the host"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_resumes_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..3500));
    let host = Host::start(&[Act::Accept, Act::Accept, Act::Answer(401, "x-a: b")]).await;
    let arguments = arguments(&[&path], Some(host.address));
    let first = import(&arguments).await.unwrap();
    assert_eq!(first.accepted, 2000);
    let noted: Value =
        serde_json::from_slice(&std::fs::read(cursor(folder.path())).unwrap()).unwrap();
    assert_eq!(
        (&noted["accepted"], &noted["position"]["within"]["line"]),
        (&2000.into(), &2000.into())
    );

    let second = import(&arguments).await.unwrap();
    assert_eq!(second.outcome, Outcome::Complete);
    assert_eq!((second.accepted, second.accepted_before, second.requests), (3500, 2000, 2));
    assert!(second.to_string().contains("3,500 events, 2,000 of them in earlier runs"), "{second}");
    host.seen(|seen| assert_eq!(seen.order, expected(3500)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_but_not_noted_is_sent_again_under_the_same_uuids() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..2500));
    let host = Host::start(&[Act::Accept, Act::AcceptInSilence, Act::Answer(401, "x-a: b")]).await;
    let arguments = arguments(&[&path], Some(host.address));
    assert_eq!(import(&arguments).await.unwrap().accepted, 1000);
    assert_eq!(import(&arguments).await.unwrap().accepted, 2500);
    host.seen(|seen| {
        assert_eq!(seen.order.len(), 3500);
        assert_eq!(seen.events.len(), 2500);
    });
    // A second import of the same file: the same uuids again.
    assert_eq!(import(&arguments).await.unwrap().accepted, 2500);
    assert_eq!(host.seen(|seen| seen.events.len()), 2500);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_import_of_a_changed_file_does_not_resume() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..5000));
    let host = Host::start(&[Act::Accept, Act::Answer(401, "x-a: b")]).await;
    let arguments = arguments(&[&path], Some(host.address));
    assert_eq!(import(&arguments).await.unwrap().accepted, 1000);
    // Far from both ends and of the same length.
    let changed = lines(0..5000).replace("\"n\":900}", "\"n\":901}");
    file(folder.path(), &changed);
    let error = import(&arguments).await.unwrap_err();
    assert!(matches!(error, ImportError::Changed { .. }), "{error}");
    file(folder.path(), &lines(0..5001));
    let error = import(&arguments).await.unwrap_err().to_string();
    assert!(error.contains("events.jsonl` has changed since this import began"), "{error}");
    assert_eq!(host.requests(), 2);
    // As the error message says.
    std::fs::remove_file(cursor(folder.path())).unwrap();
    assert_eq!(import(&arguments).await.unwrap().accepted, 5001);
    assert_eq!(host.seen(|seen| seen.events.len()), 5001);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_while_there_are_defects() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        file(folder.path(), &format!("{}nonsense\n{}{}", lines(0..10), lines(5..6), lines(10..12)));
    let host = Host::start(&[]).await;
    let mut arguments = arguments(&[&path], Some(host.address));
    let summary = import(&arguments).await.unwrap();
    assert_eq!((&summary.outcome, host.requests()), (&Outcome::Defects, 0));
    assert!(summary.failure().unwrap().contains("nothing was sent"));
    assert!(summary.to_string().contains("events.jsonl:11"), "{summary}");
    assert!(!cursor(folder.path()).exists());

    arguments.skip_invalid = true;
    let summary = import(&arguments).await.unwrap();
    assert_eq!((&summary.outcome, summary.accepted), (&Outcome::Complete, 12));
    assert_eq!((summary.report.skipped, summary.report.omitted), (1, 1));
    assert_eq!(summary.failure(), None);
    host.seen(|seen| assert_eq!(seen.order, expected(12)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_needs_no_host() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..10));
    let summary = import(&arguments(&[&path], None)).await.unwrap();
    assert_eq!((&summary.outcome, summary.failure()), (&Outcome::Checked, None));
    assert_eq!(summary.to_json()["events"], 10);
    file(folder.path(), "nonsense\n7\n");
    let summary = import(&arguments(&[&path], None)).await.unwrap();
    assert_eq!(summary.failure().unwrap(), "2 lines cannot be imported");
    let json = summary.to_json();
    assert_eq!((&json["outcome"], &json["skipped"]), (&"defects".into(), &2.into()));
    assert_eq!(json["defects"][0]["code"], "not_json");
    assert_eq!(json["defects"][0]["first"][0]["line"], 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..100));
    let host = Host::start(&[]).await;
    let mut arguments = arguments(&[&path], Some(host.address));
    arguments.rate = NonZeroU32::new(50);
    let began = Instant::now();
    let summary = import(&arguments).await.unwrap();
    assert_eq!((summary.accepted, summary.requests), (100, 2));
    assert!(began.elapsed() >= Duration::from_millis(990), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_targets_are_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &lines(0..1));
    let host = Host::start(&[]).await;
    let arguments = arguments(&[&path], Some(host.address));
    for key in ["", " ", "phx_personal"] {
        let mut arguments = arguments.clone();
        arguments.project_key = Some(key.to_owned());
        assert!(matches!(import(&arguments).await, Err(ImportError::Key(_))), "{key}");
    }
    let mut elsewhere = arguments.clone();
    elsewhere.to = Some("weir.example".to_owned());
    assert!(matches!(import(&elsewhere).await, Err(ImportError::Address { .. })));
    let mut nowhere = arguments;
    nowhere.cursor = Some(folder.path().join("missing/cursor"));
    assert!(matches!(import(&nowhere).await, Err(ImportError::Cursor { .. })));
    assert_eq!(host.requests(), 0);
}
