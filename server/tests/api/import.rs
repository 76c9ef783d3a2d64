//! `weir import` against the server: all formats, twice, and killed in between.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use weir_import::{Arguments, Format, Outcome, RetryPolicy, Summary};
use weir_model::Timestamp;
use weir_testkit::{Caller, TestApp, until};

/// 2024-03-04T10:00:00Z in seconds.
const START: i64 = 1_709_546_400;

fn time(n: i64) -> Timestamp {
    Timestamp::from_micros((START + n) * 1_000_000)
}

/// The same history as each tool exports it: alternating page views and sales.
fn line(format: Format, n: i64) -> Value {
    let user = format!("{}-{}", format.word(), n % 20);
    let is_view = n % 2 == 0;
    let uuid = format!("0191d5f0-{:04}-7000-8000-{n:012}", format as u8);
    let page = format!("https://shop.example/{n}");
    match format {
        Format::Jsonl | Format::Posthog => {
            let mut line = json!({
                "event": if is_view { "$pageview" } else { "sale" }, "distinct_id": user,
                "timestamp": time(n).to_string(), "uuid": uuid,
                "properties": if is_view { json!({"$current_url": page}) } else { json!({"n": n}) },
            });
            if format == Format::Posthog {
                line["properties"] = line["properties"].to_string().into();
                line["elements_chain"] = json!("a.buy:text=\"Buy\"");
                line["person_properties"] = json!("{}");
            }
            line
        }
        Format::Mixpanel => json!({
            "event": if is_view { "$mp_web_page_view" } else { "sale" },
            "properties": {
                "time": START + n, "distinct_id": user, "$insert_id": format!("i{n}"), "n": n,
                "current_domain": "shop.example", "current_url_path": format!("/{n}"),
            },
        }),
        Format::Amplitude => json!({
            "event_type": if is_view { "[Amplitude] Page Viewed" } else { "sale" },
            "event_time": time(n).to_string().replace(['T', 'Z'], " ").trim(),
            "user_id": user, "device_id": format!("device of {user}"), "uuid": uuid,
            "event_properties": {"n": n, "[Amplitude] Page Location": page},
        }),
    }
}

fn write(folder: &Path, format: Format, count: i64) -> PathBuf {
    let path = folder.join(format.word());
    let mut file = BufWriter::new(File::create(&path).unwrap());
    for n in 0..count {
        writeln!(file, "{}", line(format, n)).unwrap();
    }
    file.flush().unwrap();
    path
}

async fn import(app: &TestApp, files: &[PathBuf]) -> Summary {
    let arguments = Arguments {
        files: files.to_vec(),
        project_key: Some(app.project_key().to_owned()),
        to: Some(format!("http://{}", app.address())),
        format: None,
        dry_run: false,
        skip_invalid: false,
        undated_as_now: false,
        rate: None,
        cursor: None,
        json: false,
    };
    let now = app.app().services.clock.now();
    let summary = weir_import::import(&arguments, now, RetryPolicy::default()).await.unwrap();
    app.app().ingest.applied().await;
    summary
}

/// Calls `show` for all events of the project, newest first.
async fn each_stored(app: &TestApp, caller: &Caller, mut show: impl FnMut(Value)) {
    let base = format!("http://{}", app.address());
    let mut path = format!("/api/projects/{}/events/?limit=1000", app.project());
    loop {
        let mut page = caller.get(&path).await.json();
        page["results"].as_array_mut().unwrap().drain(..).for_each(&mut show);
        match page["next"].as_str() {
            Some(next) => path = next.strip_prefix(&base).unwrap().to_owned(),
            None => return,
        }
    }
}

fn uuid(event: &Value) -> String {
    event["uuid"].as_str().unwrap().to_owned()
}

/// All events of the project by uuid.
async fn stored(app: &TestApp, caller: &Caller) -> BTreeMap<String, Value> {
    let mut events = BTreeMap::new();
    each_stored(app, caller, |event| {
        assert_eq!(events.insert(uuid(&event), event), None, "stored twice");
    })
    .await;
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_of_all_formats_are_stored_once() {
    const EACH: i64 = 700;
    let formats = [Format::Jsonl, Format::Posthog, Format::Mixpanel, Format::Amplitude];
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let folder = tempfile::tempdir().unwrap();
    let files = formats.map(|format| write(folder.path(), format, EACH));
    let summary = import(&app, &files).await;
    assert_eq!(summary.outcome, Outcome::Complete, "{summary}");
    assert_eq!(summary.accepted, 4 * EACH as u64);
    assert!(summary.files.iter().map(|file| file.format).eq(formats));
    // The devices of twenty users in the format that links them.
    assert_eq!(summary.links, 20);

    let found = stored(&app, &caller).await;
    assert_eq!(found.len(), 4 * EACH as usize + 20);
    // No two lines of a tool have the same time, and no two tools have the same user.
    let lines = found.values().filter(|event| event["event"] != "$identify");
    let key = |event: &Value| {
        ["distinct_id", "timestamp"].map(|name| event[name].as_str().unwrap().to_owned())
    };
    let lines: BTreeMap<_, _> = lines.map(|event| (key(event), event)).collect();
    for format in formats {
        for n in 0..EACH {
            let user = format!("{}-{}", format.word(), n % 20);
            let event = lines[&[user, time(n).to_string()]];
            let properties = &event["properties"];
            if n % 2 == 0 {
                assert_eq!(event["event"], "$pageview");
                assert_eq!(properties["$current_url"], format!("https://shop.example/{n}"));
            } else {
                assert_eq!((&event["event"], &properties["n"]), (&json!("sale"), &json!(n)));
            }
            assert_eq!(event["historical"], true);
            assert_eq!(properties.get("$ip"), None);
            let chain = if format == Format::Posthog { "a.buy:text=\"Buy\"" } else { "" };
            assert_eq!(event["elements_chain"], chain);
        }
    }

    let again = import(&app, &files).await;
    assert_eq!((again.outcome, again.accepted), (Outcome::Complete, 4 * EACH as u64));
    assert_eq!(stored(&app, &caller).await, found);
    app.stop().await;
}

fn program(app: &TestApp, file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.env_clear().env("WEIR_PROJECT_KEY", app.project_key());
    command.current_dir(file.parent().unwrap());
    command.arg("import").arg(file).args(["--to", &format!("http://{}", app.address())]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Waits until the cursor contains more accepted lines than before.
async fn until_more_than(cursor: &Path, before: u64) -> u64 {
    until(async || {
        let noted = std::fs::read(cursor).unwrap_or_default();
        let noted: Value = serde_json::from_slice(&noted).unwrap_or_default();
        noted["accepted"].as_u64().filter(|accepted| *accepted > before)
    })
    .await
}

/// Number of lines of the import that is killed: `WEIR_IMPORT_LINES`, such as 1000000 for
/// a large one.
fn lines_to_import() -> i64 {
    const FEW: i64 = 2_500;
    let asked = std::env::var("WEIR_IMPORT_LINES").ok();
    asked.map_or(FEW, |lines| lines.parse().expect("WEIR_IMPORT_LINES is a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_is_killed_three_times_and_interrupted_ends_complete() {
    let count = lines_to_import();
    // Slow enough to be killed before its end every time.
    let rate = (count / 6).to_string();
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), Format::Jsonl, count);
    let cursor = file.with_extension("weir-cursor");
    let mut accepted = 0;
    for how in [Signal::KILL, Signal::KILL, Signal::INT, Signal::KILL] {
        let child = program(&app, &file).args(["--rate", &rate]).spawn().unwrap();
        accepted = until_more_than(&cursor, accepted).await;
        signal(&child, how);
        let output = child.wait_with_output().await.unwrap();
        assert!(!output.status.success());
        if how == Signal::INT {
            let (out, err) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
            assert!(err.unwrap().contains("interrupted; the same call continues from here"));
            assert!(out.unwrap().contains("how far it has come is noted in"));
        }
    }
    assert!(cursor.exists());
    let output = program(&app, &file).arg("--json").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["outcome"], &summary["accepted"]), (&json!("complete"), &json!(count)));
    assert!(summary["accepted_before"].as_u64().unwrap() >= accepted);
    assert!(!cursor.exists());
    app.app().ingest.applied().await;
    // A million events do not fit into memory; their uuids do.
    let (mut uuids, mut seen) = (HashSet::new(), 0);
    each_stored(&app, &caller, |event| {
        uuids.insert(uuid(&event));
        seen += 1;
    })
    .await;
    let sent: HashSet<String> = (0..count).map(|n| uuid(&line(Format::Jsonl, n))).collect();
    assert_eq!(seen, count, "nothing twice");
    assert!(uuids == sent, "{} of {count} events arrived", uuids.intersection(&sent).count());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_says_what_is_wrong_and_sends_nothing() {
    let app = TestApp::with_owner().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events");
    std::fs::write(&file, format!("{}\nnonsense\n", line(Format::Jsonl, 1))).unwrap();
    for more in [&["--dry-run"][..], &[]] {
        let output = program(&app, &file).args(more).output().await.unwrap();
        assert_eq!(output.status.code(), Some(1));
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.contains("not_json: 1 line, skipped") && out.contains("events:2"), "{out}");
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(err.starts_with("error: 1 line cannot be imported"), "{err}");
    }
    std::fs::write(&file, line(Format::Jsonl, 1).to_string()).unwrap();
    let mut command = program(&app, &file);
    let output = command.env("WEIR_PROJECT_KEY", "phc_unknown").output().await.unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("the host refuses the project key"), "{err}");
    let caller = app.owner().key(&["query:read"]).await;
    assert_eq!(stored(&app, &caller).await.len(), 0);
    app.stop().await;
}
