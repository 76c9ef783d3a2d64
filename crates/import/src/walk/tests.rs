use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use weir_model::Timestamp;

use super::{Walk, find_format};
use crate::event::Rules;
use crate::format::Format;
use crate::report::Report;
use crate::source::Input;
use crate::stop::Stop;

fn rules() -> Rules {
    Rules { now: Timestamp::parse("2026-06-01T10:00:00Z").unwrap(), undated_as_now: false }
}

/// Walks through files with this content; returns `event name` by `file:line`, links as
/// `before>distinct id`, and the report.
fn walk(contents: &[&[u8]], format: Format) -> (Vec<String>, Report) {
    let folder = tempfile::tempdir().unwrap();
    let inputs = contents.iter().enumerate().map(|(index, content)| {
        let path = folder.path().join(index.to_string());
        std::fs::write(&path, content).unwrap();
        (Input::open(&path).unwrap(), format)
    });
    let inputs: Vec<_> = inputs.collect();
    let mut walk = Walk::new(&inputs, rules(), Arc::default(), Stop::never());
    let mut found = Vec::new();
    while let Some(next) = walk.next().unwrap() {
        let mut text = String::new();
        if let Some(link) = &next.link {
            write!(text, "{}>{} ", link.before, link.distinct_id).unwrap();
        }
        let event: Value = serde_json::from_str(&next.event.text).unwrap();
        write!(text, "{} {}:{}", event["event"].as_str().unwrap(), next.file, next.line).unwrap();
        let position = walk.position().unwrap();
        assert_eq!((position.file, position.within.line), (next.file, next.line));
        found.push(text);
    }
    (found, walk.into_report())
}

/// `code: lines` of all defects.
fn defects(report: &Report) -> Vec<String> {
    let lines = |finding: &crate::report::Finding| {
        let lines: Vec<_> = finding.first.iter().map(|place| place.line.to_string()).collect();
        format!("{} {}x: {}", finding.kind, finding.count, lines.join(" "))
    };
    report.findings.iter().map(lines).collect()
}

#[test]
fn every_defect_is_named_with_its_lines() {
    let good = r#"{"event":"a","distinct_id":"u","timestamp":"2026-01-01T00:00:00Z","uuid":"#;
    let uuid = |n: u32| format!("{good}\"5d0a0f4e-6f0c-4d3e-9a53-0000000000{n:02}\"}}");
    let with = |from: &str, to: &str, n: u32| uuid(n).replace(from, to);
    let lines = [
        uuid(1),
        "{".to_owned(),
        "[1,2]".to_owned(),
        with("\"event\":\"a\",", "", 2),
        with("\"a\"", "[]", 3),
        with("\"u\"", "null", 4),
        String::new(),
        with("5d0a", "zzzz", 5),
        with("}", ",\"properties\":7}", 6),
        with("2026-01-01T00:00:00Z", "", 7),
        with("2026-01-01", "01.01.2026", 8),
        with("2026-01-01", "2027-01-01", 9),
        with("}", &format!(",\"properties\":{{\"a\":\"{}\"}}}}", "x".repeat(1 << 20)), 10),
        with(
            "}",
            &format!(",\"properties\":{{\"a\":{}1{}}}}}", "[".repeat(80), "]".repeat(80)),
            11,
        ),
        uuid(1),
        with("\"a\"", &format!("\"{}\"", "n".repeat(300)), 12),
        with("\"u\"", "\"anonymous\"", 13),
        "{\"event\"".to_owned(),
        uuid(14),
    ];
    let mut content = lines.join("\n").into_bytes();
    content.extend_from_slice(b"\n\"\xff\"\n");
    let (found, report) = walk(&[&content], Format::Jsonl);
    assert_eq!(
        defects(&report),
        [
            "not_utf8 1x: 20",
            "not_json 2x: 2 18",
            "not_an_object 1x: 3",
            "missing_event_name 1x: 4",
            "event_name_not_text 1x: 5",
            "missing_distinct_id 1x: 6",
            "invalid_uuid 1x: 8",
            "invalid_properties 1x: 9",
            "missing_timestamp 1x: 10",
            "invalid_timestamp 1x: 11",
            "future_timestamp 1x: 12",
            "event_too_large 1x: 13",
            "too_deep 1x: 14",
            "duplicate_uuid 1x: 15",
            "event_name_cut 1x: 16",
            "placeholder_distinct_id 1x: 17",
        ]
    );
    assert_eq!(found.len(), 4);
    assert_eq!((report.lines, report.events, report.skipped, report.omitted), (19, 4, 14, 1));
}

#[test]
fn a_line_counts_once_and_for_what_becomes_of_it() {
    let long = "n".repeat(300);
    let line = |rest: &str| format!("{{\"event_type\":\"{long}\",\"user_id\":\"u\",{rest}}}");
    let lines = [
        // Sent, with a truncated name.
        line(r#""event_time":"2026-01-01""#),
        // Not sent: the truncation of its name is not reported, and both parts are one
        // kind.
        line(r#""event_time":"2026-01-01","event_properties":7,"user_properties":7"#),
        // Omitted, although it is also invalid.
        line("\"x\":1").replace(&long, "$snapshot"),
    ];
    let (_, report) = walk(&[lines.join("\n").as_bytes()], Format::Amplitude);
    assert_eq!(
        defects(&report),
        ["invalid_properties 1x: 2", "missing_timestamp 1x: 3", "event_name_cut 1x: 1"]
    );
    assert_eq!((report.lines, report.events, report.skipped, report.omitted), (3, 1, 2, 0));
}

#[test]
fn defects_are_reported_with_file_and_line() {
    let (_, report) = walk(&[b"{}\n{\"event\": 1,}\n"], Format::Jsonl);
    let json = report.findings.iter().find(|finding| finding.kind.code() == "not_json").unwrap();
    assert!(json.first[0].detail.as_ref().unwrap().contains("column 13"), "{json:?}");
}

#[test]
fn half_of_a_pair_is_replaced() {
    let line = r#"{"event":"a\ud83d","distinct_id":"u","timestamp":"2026-01-01","properties":{"k\ude00":1}}"#;
    let (found, report) = walk(&[line.as_bytes()], Format::Jsonl);
    assert_eq!(found, ["a\u{fffd} 0:1"]);
    assert_eq!(defects(&report), ["text_repaired 1x: 1"]);
}

#[test]
fn the_first_lines_are_kept_and_all_are_counted() {
    let (_, report) = walk(&["7\n".repeat(25).as_bytes()], Format::Jsonl);
    assert_eq!(defects(&report), ["not_an_object 25x: 1 2 3 4 5 6 7 8 9 10"]);
}

#[test]
fn files_are_read_in_order_and_duplicates_are_found_across_files() {
    let line = |name: &str| {
        format!(r#"{{"event":"{name}","distinct_id":"u","timestamp":"2026-01-01T00:00:00Z"}}"#)
    };
    let first = format!("{}\n{}\n7\n", line("a"), line("b"));
    let second = format!("{}\n\n{}", line("a"), line("c"));
    let (found, report) = walk(&[first.as_bytes(), second.as_bytes()], Format::Jsonl);
    assert_eq!(found, ["a 0:1", "b 0:2", "c 1:3"]);
    assert_eq!(defects(&report), ["not_an_object 1x: 3", "duplicate_uuid 1x: 1"]);
    assert!(report.findings[1].first[0].file.ends_with('1'));
}

#[test]
fn a_truncated_file_is_reported_and_its_complete_lines_are_read() {
    let text: String = (0..20_000)
        .map(|n| {
            format!(
                "{{\"event\":\"e{n}\",\"distinct_id\":\"u{}\",\"timestamp\":\"2026-01-01\"}}\n",
                n * 7919 % 65_537
            )
        })
        .collect();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    compressed.write_all(text.as_bytes()).unwrap();
    let compressed = compressed.finish().unwrap();
    let (found, report) = walk(&[&compressed[..compressed.len() / 2]], Format::Jsonl);
    assert!(found.len() > 1000);
    let [damaged] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert_eq!((damaged.kind.code(), damaged.count), ("damaged_gzip", 1));
    assert_eq!(damaged.first[0].line, found.len() as u64 + 1);
    assert_eq!(report.skipped, 1);
}

#[test]
fn two_ids_are_joined_once() {
    let line = |n: u32, user: &str, device: &str| {
        format!(
            r#"{{"event_type":"e{n}","event_time":"2026-01-01 00:00:00","user_id":{user},"device_id":{device},"$insert_id":"{n}"}}"#
        )
    };
    let lines = [
        line(1, "null", "\"d\""),
        line(2, "\"u\"", "\"d\""),
        line(3, "\"u\"", "\"d\""),
        line(4, "\"v\"", "\"d\""),
        line(5, "\"w\"", "\"w\""),
        line(6, "\"w\"", "\"null\""),
        line(7, "\"w\"", "null"),
        line(8, "\"\"", "\"d\""),
    ];
    let (found, report) = walk(&[lines.join("\n").as_bytes()], Format::Amplitude);
    let expected =
        ["e1 0:1", "d>u e2 0:2", "e3 0:3", "d>v e4 0:4", "e5 0:5", "e6 0:6", "e7 0:7", "e8 0:8"];
    assert_eq!(found, expected);
    assert_eq!(report.findings, []);
}

#[test]
fn the_format_of_a_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "\n{\"event_type\":\"a\",\"user_id\":\"u\"}\n").unwrap();
    assert_eq!(find_format(&Input::open(&path).unwrap()).unwrap(), Format::Amplitude);
}
