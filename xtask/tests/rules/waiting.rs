//! Tests wait for conditions. A fixed pause is too short on a busy machine, where the test
//! then fails, and too long on all others.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{File, files};

/// The file of the helpers `until` and `slow_work`, which all other test code calls.
const HELPERS: &str = "crates/testservers/src/wait.rs";

/// Benchmarks pause to measure a load over time. They are not tests.
pub(crate) const BENCHMARKS: &str = "crates/bench/";

/// Measurements of the app pause for the same reason.
const MEASUREMENTS: &str = "end2end/measure/";

/// This file names the functions that pause.
const THIS: &str = "xtask/tests/rules/waiting.rs";

/// A call of the function of the standard library or of the runtime.
const SLEEP: &str = "sleep(";

/// The same in the tests that are not in Rust.
const PAUSES: [&str; 4] = ["sleep(", "setTimeout(", "waitForTimeout(", "timers/promises"];

/// The end of a name that has one of them and limits a test, instead of pausing it.
const LIMIT: &str = "test.setTimeout(";

/// Lines that pause for a reason: the file, the line, and the reason.
const PAUSE_EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("end2end/exports.py", "time.sleep(pause)", "between two looks of `wait`, with a deadline"),
    ("end2end/exports.py", "time.sleep(left + 1)", "an interval ends by the clock of the service"),
    ("end2end/exports.py", "time.sleep(left)", "the same, and that nothing runs then is the test"),
    (
        "end2end/mail.ts",
        "await new Promise((resolve) => setTimeout(resolve, 50));",
        "between two looks of `wait`, with a deadline",
    ),
    ("end2end/sdk/faults.py", "time.sleep(away)", "how long the service is away is the fault"),
    (
        "end2end/sdk/waiting.mjs",
        "import { setTimeout as pause } from \"node:timers/promises\";",
        "between two looks of `until`, with a deadline, and the pace of `repeat`",
    ),
    (
        "end2end/sdk/waiting.py",
        "time.sleep(pause)",
        "between two looks of `wait_for`, with a deadline",
    ),
    ("end2end/sdk/weir.py", "time.sleep(0.02)", "between two looks at a start, with a deadline"),
    (
        "end2end/server.ts",
        "await new Promise((resolve) => setTimeout(resolve, 50));",
        "between two looks of `until`, with a deadline",
    ),
    (
        "end2end/server.ts",
        "const killer = setTimeout(() => child.kill(\"SIGKILL\"), STOP_LIMIT_MS);",
        "a limit: the stop is awaited",
    ),
];

#[test]
fn tests_wait_for_conditions() {
    let mut broken = Vec::new();
    let mut has_helpers = false;
    for File { path, text } in files(&["app", "crates", "frontend", "server", "xtask"]) {
        if path == HELPERS {
            has_helpers = text.contains(SLEEP);
        }
        if path == HELPERS || path == THIS || !path.ends_with(".rs") {
            continue;
        }
        let (before, code) = split(&path, &text);
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

#[test]
fn tests_in_other_languages_wait_for_conditions() {
    let mut broken = Vec::new();
    let mut used = BTreeSet::new();
    for File { path, text } in files(&["end2end"]) {
        if path.starts_with(MEASUREMENTS) {
            continue;
        }
        for (number, line) in pauses(&path, &text) {
            let is_exception =
                |(file, excepted, _): &&(&str, &str, &str)| *file == path && *excepted == line;
            match PAUSE_EXCEPTIONS.iter().find(is_exception) {
                Some(exception) => _ = used.insert(exception),
                None => broken.push(format!("{path}:{number} pauses: {line}")),
            }
        }
    }
    assert!(broken.is_empty(), "wait for a condition with a deadline:\n{}", broken.join("\n"));
    let stale: Vec<_> = PAUSE_EXCEPTIONS.iter().filter(|one| !used.contains(one)).collect();
    assert!(stale.is_empty(), "exceptions without a line: {stale:?}");
}

/// The lines of a file that is not in Rust that pause, with their numbers.
fn pauses<'a>(path: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    if ![".ts", ".py", ".mjs"].iter().any(|kind| path.ends_with(kind)) {
        return Vec::new();
    }
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    lines
        .filter(|(_, line)| {
            let calls = line.replace(LIMIT, "");
            let is_comment = ["//", "#", "*"].iter().any(|mark| line.starts_with(mark));
            !is_comment && PAUSES.iter().any(|pause| calls.contains(pause))
        })
        .collect()
}

#[test]
fn pauses_are_recognised() {
    let python = "# time.sleep(1)\nimport time\nfor a in b:\n    time.sleep(1)\n";
    assert_eq!(pauses("end2end/sdk/faults.py", python), [(4, "time.sleep(1)")]);
    assert_eq!(pauses("end2end/sdk/rust/src/main.rs", python), []);
    for line in [
        "await page.waitForTimeout(500);",
        "await new Promise((resolve) => setTimeout(resolve, 50));",
        "import { setTimeout as pause } from \"node:timers/promises\";",
        "await asyncio.sleep(0.1)",
    ] {
        assert_eq!(pauses("end2end/a.mjs", line), [(1, line)]);
    }
    for line in ["test.setTimeout(180_000);", "// setTimeout(a, 1)", "await until(() => a);"] {
        assert_eq!(pauses("end2end/tests/a.spec.ts", line), [], "{line}");
    }
}

/// The product code and the test code of a file.
pub(crate) fn split<'a>(path: &str, text: &'a str) -> (&'a str, &'a str) {
    let is_support = path.starts_with("crates/testkit/") || path.starts_with("crates/testservers/");
    let parts = Path::new(path).iter();
    let is_test = parts.into_iter().any(|part| part == "tests" || part == "tests.rs");
    if is_support || (is_test && !path.starts_with(BENCHMARKS)) {
        return ("", text);
    }
    // Tests of a file are in a module at its end. A declaration has no code.
    let is_inline = |(at, mark): &(usize, &str)| {
        let declared = text[at + mark.len()..].lines().next().unwrap_or_default();
        declared.contains('{')
    };
    let inline = text.match_indices("\n#[cfg(test)]\nmod ").find(is_inline);
    text.split_at(inline.map_or(text.len(), |(at, _)| at + 1))
}

#[test]
fn test_code_is_recognised() {
    let file = "fn a() {}\n#[cfg(test)]\nmod tests {}\n";
    assert_eq!(split("crates/store/src/db.rs", file).1, &file[10..]);
    assert_eq!(split("crates/store/src/db.rs", "fn a() {}\n").1, "");
    let declared = "#[cfg(test)]\nmod tests;\nfn a() {}\n";
    assert_eq!(split("crates/store/src/db.rs", &format!("\n{declared}")).1, "");
    let both = format!("\n{declared}{}", &file[10..]);
    assert_eq!(split("crates/store/src/db.rs", &both).1, &file[10..]);
    for path in ["server/tests/api/live.rs", "crates/mail/src/tests.rs", "crates/testkit/src/a.rs"]
    {
        assert_eq!(split(path, file), ("", file), "{path}");
    }
}
