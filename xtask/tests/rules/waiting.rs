//! Tests wait for conditions. A fixed pause is too short on a busy machine, where the test
//! then fails, and too long on all others.

use std::fs;
use std::path::Path;

use crate::support;
use crate::words::below;

/// The file of the helpers `until` and `slow_work`, which all other test code calls.
const HELPERS: &str = "crates/testservers/src/wait.rs";

/// Benchmarks pause to measure a load over time. They are not tests.
const BENCHMARKS: &str = "crates/bench/";

/// A call of the function of the standard library or of the runtime.
const SLEEP: &str = concat!("sleep", "(");

#[test]
fn tests_wait_for_conditions() {
    let mut broken = Vec::new();
    let mut has_helpers = false;
    let root = support::root();
    let mut files = Vec::new();
    for folder in ["app", "crates", "frontend", "server", "xtask"] {
        below(&root.join(folder), "rs", &mut files);
    }
    for file in files {
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        if path == HELPERS {
            has_helpers = text.contains(SLEEP);
            continue;
        }
        let (before, code) = split(path, &text);
        for (number, line) in code.lines().enumerate() {
            if line.contains(SLEEP) && !line.trim_start().starts_with("//") {
                let number = before.lines().count() + number + 1;
                broken.push(format!("{path}:{number} sleeps: wait with `until` of {HELPERS}"));
            }
        }
    }
    assert!(has_helpers, "{HELPERS} contains the helpers");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The product code and the test code of a file.
fn split<'a>(path: &str, text: &'a str) -> (&'a str, &'a str) {
    let is_support = path.starts_with("crates/testkit/") || path.starts_with("crates/testservers/");
    let parts = Path::new(path).iter();
    let is_test = parts.into_iter().any(|part| part == "tests" || part == "tests.rs");
    if is_support || (is_test && !path.starts_with(BENCHMARKS)) {
        return ("", text);
    }
    // Tests of a file are in a module at its end.
    text.split_at(text.find("\n#[cfg(test)]\nmod ").map_or(text.len(), |at| at + 1))
}

#[test]
fn test_code_is_recognised() {
    let file = "fn a() {}\n#[cfg(test)]\nmod tests {}\n";
    assert_eq!(split("crates/store/src/db.rs", file).1, &file[10..]);
    assert_eq!(split("crates/store/src/db.rs", "fn a() {}\n").1, "");
    for path in ["server/tests/api/live.rs", "crates/mail/src/tests.rs", "crates/testkit/src/a.rs"]
    {
        assert_eq!(split(path, file), ("", file), "{path}");
    }
}
