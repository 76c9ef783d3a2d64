//! Replays and varies the corpus of the fuzz targets (`fuzz/corpus`).
//!
//! A fuzzer runs longer and finds more. Its findings are stored as files, and this test
//! checks them within seconds. The variants are the same in every run.

mod checks;
mod variants;

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;

use self::checks::{check_payload, check_request};
use self::variants::Dice;
use super::gzip;
use crate::{CapturePath, CaptureRequest, Payload, decode};

/// Variants of each file.
const ROUNDS: usize = 500;

/// A file of the corpus.
struct Case {
    name: String,
    bytes: Vec<u8>,
}

impl Case {
    /// Files that take long to decompress have a separate test.
    fn is_bomb(&self) -> bool {
        self.name.ends_with("-bomb")
    }
}

/// Shows the input of a failed test.
struct Shown<'a>(&'a str, &'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: \"{}\"", self.0, self.1.escape_ascii());
        }
    }
}

/// The files of one target.
fn corpus(target: &str) -> Vec<Case> {
    let directory =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut cases: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            Case { name, bytes: fs::read(path).unwrap() }
        })
        .collect();
    // The order of a directory listing depends on the system.
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    assert!(!cases.is_empty());
    cases
}

/// Calls `check` with every file and then with variants of it, one at a time.
fn each_variant(target: &str, mut check: impl FnMut(&[u8], &mut Dice)) {
    let mut cases = corpus(target);
    cases.retain(|case| !case.is_bomb());
    let mut dice = Dice::new(20_260_601);
    for case in &cases {
        for round in 0..=ROUNDS {
            // The unchanged file first.
            let bytes = match round {
                0 => case.bytes.clone(),
                _ => {
                    let other = &cases[dice.below(cases.len())].bytes;
                    dice.variant(&case.bytes, other)
                }
            };
            let shown = Shown(&case.name, &bytes);
            check(shown.1, &mut dice);
        }
    }
}

#[test]
fn every_request_has_a_documented_outcome() {
    each_variant("requests", |bytes, _| check_request(bytes));
}

#[test]
fn every_event_has_a_documented_outcome() {
    each_variant("events", |bytes, dice| {
        let Ok(text) = String::from_utf8(bytes.to_vec()) else { return };
        // Unchanged, and compressed as by a client library.
        check_payload(&Payload::from_text(text.clone()), dice.below(2) == 0);
        let request = CaptureRequest {
            path: CapturePath::Batch,
            query: None,
            content_type: None,
            content_encoding: None,
            body: Bytes::from(gzip(&text)),
        };
        let payload = decode(request).unwrap();
        assert_eq!(payload.text(), text.strip_prefix('\u{feff}').unwrap_or(&text));
    });
}

/// Measured in a separate process: other tests use memory at the same time.
#[cfg(target_os = "linux")]
#[test]
fn decompression_is_bounded_in_memory() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::corpus::measured_alone", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{child:?}");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "started by decompression_is_bounded_in_memory"]
fn measured_alone() {
    use crate::BODY_LIMIT;

    /// A memory value in bytes, by its name in `/proc/self/status`.
    fn memory(name: &str) -> usize {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kilobytes = line.split_whitespace().nth(1).unwrap();
        kilobytes.parse::<usize>().unwrap() << 10
    }

    for case in corpus("requests") {
        // Resets the peak.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = memory("VmRSS");
        check_request(&case.bytes);
        let used = memory("VmHWM").saturating_sub(before);
        assert!(used < 4 * BODY_LIMIT, "{} takes {used} bytes", case.name);
    }
}
