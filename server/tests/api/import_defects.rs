//! `weir import` on files with every kind of defect: each is reported with its line, and
//! no connection is made.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;
use weir_import::{DefectKind, Effect};

use crate::capture::gzip;

/// A line and its defect; `None` for a valid line.
type Case = (Option<DefectKind>, Vec<u8>);

/// A valid line with number `n`, with some members replaced.
fn line(n: usize, members: Value) -> Vec<u8> {
    let mut line = json!({
        "event": "sale", "distinct_id": "u-1", "timestamp": "2024-03-04T10:00:00Z",
        "properties": {"n": n},
    });
    line.as_object_mut().unwrap().append(&mut members.as_object().unwrap().clone());
    line.to_string().into_bytes()
}

fn cases() -> Vec<Case> {
    let long = "x".repeat(201);
    let group = |members: Value| {
        let mut properties = json!({"$group_type": "company", "$group_key": "acme"});
        properties.as_object_mut().unwrap().append(&mut members.as_object().unwrap().clone());
        json!({"event": "$groupidentify", "properties": properties})
    };
    let mut deep = json!(1);
    for _ in 0..64 {
        deep = json!([deep]);
    }
    let keys: HashMap<String, u8> = (0..10_001).map(|n| (format!("k{n}"), 1)).collect();
    let text = |members: Value| line(0, members);
    let mut cases: Vec<Case> = vec![
        (None, line(1, json!({}))),
        (Some(DefectKind::LineTooLong), vec![b'x'; (16 << 20) + 1]),
        (Some(DefectKind::NotUtf8), b"{\"event\":\"\xff\"}".to_vec()),
        (Some(DefectKind::NotJson), b"nonsense".to_vec()),
        (Some(DefectKind::NotAnObject), b"[1]".to_vec()),
        (Some(DefectKind::MissingEventName), text(json!({"event": null}))),
        (Some(DefectKind::EventNameNotText), text(json!({"event": 7}))),
        (Some(DefectKind::MissingDistinctId), text(json!({"distinct_id": "  "}))),
        (Some(DefectKind::InvalidUuid), text(json!({"uuid": "17"}))),
        (Some(DefectKind::InvalidProperties), text(json!({"properties": [1]}))),
        (
            Some(DefectKind::ProfileSwitchedOff),
            text(json!({"event": "$identify", "properties": {"$process_person_profile": false}})),
        ),
        (Some(DefectKind::InvalidGroupSet), text(group(json!({"$group_set": "x"})))),
        (Some(DefectKind::GroupKeyTooLong), text(group(json!({"$group_key": "x".repeat(401)})))),
        (Some(DefectKind::MissingTimestamp), text(json!({"timestamp": null}))),
        (Some(DefectKind::InvalidTimestamp), text(json!({"timestamp": "yesterday"}))),
        (Some(DefectKind::FutureTimestamp), text(json!({"timestamp": "2999-01-01T00:00:00Z"}))),
        (Some(DefectKind::EventTooLarge), text(json!({"properties": {"x": "x".repeat(1 << 20)}}))),
        (Some(DefectKind::TooDeep), text(json!({"properties": {"x": deep}}))),
        (Some(DefectKind::TooManyKeys), text(json!({"properties": keys}))),
        (Some(DefectKind::DuplicateUuid), line(1, json!({}))),
        (Some(DefectKind::NotAnEvent), text(json!({"event": "$snapshot"}))),
        (Some(DefectKind::EventNameCut), line(2, json!({"event": long}))),
        (Some(DefectKind::DistinctIdCut), line(3, json!({"distinct_id": long}))),
        (Some(DefectKind::TextRepaired), line(4, json!({"event": "a\0b"}))),
        (Some(DefectKind::PlaceholderDistinctId), line(5, json!({"distinct_id": "null"}))),
        (Some(DefectKind::InvalidPersonUpdate), line(8, json!({"$set": 7}))),
    ];
    // Blank lines are counted and are not a defect.
    cases.insert(7, (None, Vec::new()));
    cases
}

/// Runs `weir import` on the files below `folder`, and returns its standard output. The
/// command must fail.
async fn import(folder: &Path, host: &TcpListener, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.env_clear().current_dir(folder).kill_on_drop(true).stdin(Stdio::null());
    command.args(["import", "events", "torn.gz", "--project-key", "phc_key"]);
    command.args(["--to", &format!("http://{}", host.local_addr().unwrap())]).args(more);
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("lines cannot be imported"), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_defect_is_named_with_its_line_and_no_host_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let cases = cases();
    let lines: Vec<&[u8]> = cases.iter().map(|(_, line)| line.as_slice()).collect();
    std::fs::write(folder.path().join("events"), lines.join(&b'\n')).unwrap();
    let mut torn = gzip(&[line(6, json!({})), line(7, json!({}))].join(&b'\n'));
    torn.truncate(torn.len() - 8);
    std::fs::write(folder.path().join("torn.gz"), torn).unwrap();
    // A connection would wait in the socket, even if it was closed again.
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();

    // These lines never get the time of the import, and only a line of Mixpanel can fail
    // to join ids.
    let mut wanted: HashMap<DefectKind, (String, usize)> = HashMap::new();
    for (number, (kind, _)) in (1..).zip(&cases) {
        wanted.extend(kind.map(|kind| (kind, ("events".to_owned(), number))));
    }
    wanted.insert(DefectKind::DamagedGzip, ("torn.gz".to_owned(), 2));
    let others = [DefectKind::TimeOfImport, DefectKind::IdsNotJoined];
    assert_eq!(wanted.len(), DefectKind::ALL.len() - others.len(), "all but {others:?}");
    let skipped = wanted.keys().filter(|kind| kind.effect() == Effect::Skipped).count();

    let summary: Value =
        serde_json::from_str(&import(folder.path(), &host, &["--dry-run", "--json"]).await)
            .unwrap();
    assert_eq!((&summary["outcome"], &summary["requests"]), (&json!("defects"), &json!(0)));
    assert_eq!(summary["skipped"], skipped);
    // The first line of each file, and the lines that are imported with changes.
    assert_eq!((&summary["events"], &summary["left_out"]), (&json!(7), &json!(2)));
    let found = summary["defects"].as_array().unwrap();
    assert_eq!(found.len(), wanted.len());
    for kind in found {
        let code = defect["code"].as_str().unwrap();
        let (_, (file, line)) = wanted.iter().find(|(kind, _)| kind.code() == code).expect(code);
        assert_eq!(kind["count"], 1, "{kind}");
        let place = &defect["first"][0];
        assert_eq!((&place["file"], &place["line"]), (&json!(file), &json!(line)), "{code}");
    }

    // The same as text for people, and without `--dry-run`.
    for more in [&["--dry-run"][..], &[]] {
        let output = import(folder.path(), &host, more).await;
        for (kind, (file, line)) in &wanted {
            let heading = format!("\n{kind}: 1 line, {}\n", kind.effect().word());
            let after = output.split_once(&heading).expect(&heading).1;
            let place = after.lines().nth(1).unwrap().trim();
            let (at, _detail) = place.split_once("  ").unwrap_or((place, ""));
            assert_eq!(at, format!("{file}:{line}"), "{kind}");
            assert!(after.starts_with(&format!("  {} {}\n", kind.sentence(), kind.fix())));
        }
    }
    assert_eq!(host.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "no cursor file: {left:?}");
}
