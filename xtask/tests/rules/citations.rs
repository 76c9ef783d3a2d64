//! Checks citations: every rule id in a text has a rule in `docs/spec`, every test that a
//! rule names exists, and texts for readers without the repository cite nothing.
//!
//! A failing test names the file and the text. `docs/spec/README.md` describes how rules
//! are written and cited.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::support::{self, File, files};
use crate::{waiting, words};

/// The files of `docs/spec`, with the prefixes of their rule ids.
const AREAS: [(&str, &str); 11] = [
    ("ING", "ingestion.md"),
    ("DUR", "durability.md"),
    ("API", "management-api.md"),
    ("EXP", "batch-exports.md"),
    ("PLG", "plugins.md"),
    ("QRY", "questions.md"),
    ("QRY", "sql.md"),
    ("SAML", "saml.md"),
    ("SEC", "security.md"),
    ("APP", "app.md"),
    ("SSO", "sign-on.md"),
];

/// Directories and files with our texts.
const TEXTS: [&str; 27] = [
    ".cargo/config.toml",
    ".ci",
    ".github",
    "app",
    "crates",
    "docs",
    "end2end",
    "frontend",
    "fuzz",
    "packaging",
    "public",
    "scripts",
    "server",
    "style",
    "xtask",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "Makefile",
    "NOTICE",
    "README.md",
    "SECURITY.md",
    "Trunk.toml",
    "clippy.toml",
    "deny.toml",
    "rust-toolchain.toml",
    "rustfmt.toml",
];

/// This file contains faults that its tests find.
const THIS: &str = "xtask/tests/rules/citations.rs";

/// Documents for readers without access to the repository.
const PUBLIC: [&str; 4] =
    ["docs/openapi.json", "docs/guide", "docs/catalogue", "docs/destinations"];

/// Directories whose string literals such readers see: in the app, in answers and in logs.
const PROGRAM: [&str; 3] = ["app/src", "crates", "server/src"];

/// If fewer literals are found, the search for them is broken.
const LITERALS_AT_LEAST: usize = 3000;

/// The beginning of the name of a check of the crash harness, and the directory of its code.
const CRASH: (&str, &str) = ("scripts/test-crash: ", "crates/bench/src/bin/crash");

/// In a rule: no test holds it yet.
const NONE_YET: &str = "none yet";

/// Names of documents that are not in the repository.
const UNREADABLE: [&str; 5] =
    ["SECURITY-NOTES", "service.md", "store-notes", "DECISIONS", "TOOLCHAIN notes"];

/// The same in lower case, if a section number follows. Each with the characters that can be
/// between.
const UNREADABLE_SECTIONS: [(&str, &[char]); 9] = [
    ("ingestion", &[' ']),
    ("management-api", &[' ']),
    ("batch-exports", &[' ']),
    ("plugins", &[' ']),
    ("plugins.md", &[' ']),
    ("ux", &[' ']),
    ("rule", &[' ']),
    ("rules", &[' ']),
    ("section", &[' ', '_', '-']),
];

#[test]
fn every_citation_leads_to_a_rule() {
    let rules = rules();
    let mut broken = Vec::new();
    for File { path, text } in texts() {
        for id in ids(&text) {
            if !rules.contains_key(id) {
                broken.push(format!("{path} cites {id}, which is no rule"));
            }
        }
    }
    assert_kept(&broken);
}

#[test]
fn every_rule_has_an_id_of_its_own_a_reason_and_a_test() {
    let mut seen = BTreeSet::new();
    let mut broken = Vec::new();
    for (prefix, file) in AREAS {
        for (id, body) in sections(&spec(file)) {
            if ids(id) != [id] || !id.starts_with(prefix) {
                broken.push(format!("{file}: {id} is no id of this file"));
            }
            if !seen.insert(id.to_owned()) {
                broken.push(format!("{file}: {id} is there twice"));
            }
            broken.extend(missing(body).map(|part| format!("{file}: {id} lacks {part}")));
        }
    }
    assert_kept(&broken);
}

#[test]
fn every_test_that_a_rule_names_exists() {
    let (tests, checks) = (tests(), crash_checks());
    let mut broken = Vec::new();
    for (id, named) in rules() {
        for name in named {
            let is_there = match name.strip_prefix(CRASH.0) {
                Some(check) => checks.contains(check),
                None if name.starts_with("end2end/") => is_browser_test(&name),
                None => tests.contains(&without_inline_modules(&name)),
            };
            if !is_there {
                broken.push(format!("{id} names {name}, which is no test"));
            }
        }
    }
    assert_kept(&broken);
}

#[test]
fn no_text_cites_a_document_that_is_not_in_the_repository() {
    let mut broken = Vec::new();
    for File { path, text } in texts() {
        for found in unreadable(&text) {
            broken.push(format!("{path}: {found}"));
        }
    }
    assert_kept(&broken);
}

#[test]
fn every_decision_and_every_link_leads_somewhere() {
    let root = support::root();
    let decisions = fs::read_dir(root.join("docs/adr")).unwrap();
    let decisions: BTreeSet<u32> = decisions
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.get(..4)?.parse().ok())
        .collect();
    let mut broken = Vec::new();
    for File { path, text } in texts() {
        for number in decisions_in(&text) {
            if !decisions.contains(&number) {
                broken.push(format!("{path} cites ADR {number}, which is not in docs/adr"));
            }
        }
        let folder = root.join(&path);
        let folder = folder.parent().unwrap();
        for target in links(&path, &text) {
            if !folder.join(target).exists() {
                broken.push(format!("{path} leads to {target}, which is not there"));
            }
        }
    }
    assert_kept(&broken);
}

#[test]
fn texts_for_readers_without_the_repository_cite_nothing() {
    let mut broken = Vec::new();
    for File { path, text } in files(&PUBLIC) {
        broken.extend(cited(&text).map(|what| format!("{path} cites {what}")));
    }
    let mut literals = 0;
    for File { path, text } in files(&PROGRAM) {
        if !path.ends_with(".rs") || path.starts_with(waiting::BENCHMARKS) {
            continue;
        }
        for (line, text) in words::literals(waiting::split(&path, &text).0) {
            literals += 1;
            broken.extend(cited(&text).map(|what| format!("{path}:{line} cites {what}")));
        }
    }
    assert!(literals >= LITERALS_AT_LEAST, "only {literals} literals were found");
    assert_kept(&broken);
}

#[test]
fn texts_of_all_kinds_are_read() {
    let paths: BTreeSet<String> = texts().into_iter().map(|file| file.path).collect();
    for path in [
        ".ci/run",
        ".github/pull_request_template.md",
        ".github/workflows/ci.yml",
        "Cargo.toml",
        "Makefile",
        "README.md",
        "crates/store/src/migrations/0001_first.surql",
        "end2end/sdk/scenarios.py",
        "end2end/sdk/waiting.mjs",
        "end2end/server.ts",
        "frontend/index.html",
        "public/icons.svg",
        "scripts/setup",
        "style/base.css",
    ] {
        assert!(paths.contains(path), "{path}");
    }
    assert!(!paths.contains(THIS));
    assert!(!paths.iter().any(|path| path.contains("/node_modules/")));
}

#[test]
fn citations_are_found_as_they_are_written() {
    assert_eq!(ids("(ING-6, SEC-12) of ING-6."), ["ING-6", "SEC-12", "ING-6"]);
    assert!(ids("XING-6 ING-x API-DESIGN API- ING-6a EXP-1_2").is_empty());
    assert_eq!(decisions_in("(ADR 7, ING-1) and ADR 12; ADR x"), [7, 12]);
    assert_eq!(decisions_in("/// as in ADR\n    /// 99."), [99]);
    assert_eq!(links("a.md", "[a](b.md#c), [d](https://e.f), [g](#h)"), ["b.md"]);
    assert_eq!(cited("Refused (SEC-4, ADR 9).").collect::<Vec<_>>(), ["SEC-4", "ADR 9"]);
    assert_eq!(cited("As rule 3 says.").count(), 1);
    assert_eq!(cited("SEC is no id, and an ADR no number.").count(), 0);
}

#[test]
fn documents_that_are_not_in_the_repository_are_found() {
    for text in [
        "/// What is kept (ingestion\n    /// 4.2).",
        "//! Limits (SECURITY-NOTES 7).",
        "# see DECISIONS",
        "As ingestion 13 says",
        "as in UX 4",
        "// Rule 3 comes before the content type.",
        "the body (rule 1)",
        "rules 1 to 12",
        "section 13",
        "fn section_13() {}",
        "section_13_limits",
        "Section-4.2",
        "(plugins.md 5)",
    ] {
        assert_eq!(unreadable(text).len(), 1, "{text}");
    }
    for text in [
        "the `ingestion` of 4 events, plugins, 20 of them",
        "plugins 200 and rules 2026",
        "rule_01_a_capture_is_answered_with_200",
        "the decisions of a subsection 4",
        "docs/store-notes",
        "rule ING-3 and section `b`",
    ] {
        assert_eq!(unreadable(text), [""; 0], "{text}");
    }
}

#[test]
fn rules_without_a_reason_or_a_test_are_found() {
    let missing = |body| missing(body).collect::<Vec<_>>();
    assert_eq!(missing("Text.\n\n*Why:* So.\n\n*Test:* `a::b`, `c::d`\n"), [""; 0]);
    assert_eq!(missing("Text.\n\n*Why:* So.\n\n*Test:* none yet\n"), [""; 0]);
    assert_eq!(missing("Text.\n\n*Why:* So.\n\n*Test:* those of a::b\n"), ["a named test"]);
    assert_eq!(missing("Text.\n\n*Why:* So.\n"), ["a named test"]);
    assert_eq!(missing("Text.\n\n*Test:* `a::b`\n"), ["its reason"]);
    assert_eq!(named("*Test:* `a::b`,\n`c::d`\n\nSee `e`."), ["a::b", "c::d"]);
}

#[test]
fn tests_of_the_browser_are_named_by_their_title() {
    let path = "end2end/tests/session.spec.ts";
    assert!(is_browser_test(&format!("{path}: signing out ends the session")));
    for name in ["end2end/tests/gone.spec.ts: a", path, &format!("{path}: no such title")] {
        assert!(!is_browser_test(name), "{name}");
    }
    let text =
        "test(\"a \", async () => {});\n  test(`b ${c}`, d);\nlatest(\"e\");\ntest.skip(\"f\");";
    assert_eq!(titles(text), ["a ", "b ${c}"]);
    let text = "const more = test.extend({\n});\nmore(\"a\", b);\nother(\"c\", d);";
    assert_eq!(titles(text), ["a"]);
}

#[test]
fn checks_of_the_crash_harness_are_named_as_it_prints_them() {
    let checks = crash_checks();
    assert!(checks.contains("no event is there twice"), "{checks:?}");
    assert!(!checks.contains("no event is there thrice"));
}

/// Our texts.
fn texts() -> Vec<File> {
    let mut files = files(&TEXTS);
    files.retain(|file| file.path != THIS);
    files
}

/// Rules by id, with the tests that they name.
fn rules() -> BTreeMap<String, Vec<String>> {
    let mut rules = BTreeMap::new();
    for (_, file) in AREAS {
        for (id, body) in sections(&spec(file)) {
            rules.insert(id.to_owned(), named(body).into_iter().map(str::to_owned).collect());
        }
    }
    assert!(rules.len() > 100, "docs/spec has the rules");
    rules
}

/// What the text of a rule lacks.
fn missing(body: &str) -> impl Iterator<Item = &'static str> {
    let has_test = !named(body).is_empty() || paragraph(body) == NONE_YET;
    let parts = [(body.contains("*Why:* "), "its reason"), (has_test, "a named test")];
    parts.into_iter().filter_map(|(is_there, part)| (!is_there).then_some(part))
}

/// The tests that a rule names.
fn named(body: &str) -> Vec<&str> {
    paragraph(body).split('`').skip(1).step_by(2).collect()
}

/// The paragraph of a rule that names its tests.
fn paragraph(body: &str) -> &str {
    let behind = body.split_once("*Test:* ").map_or("", |(_, behind)| behind);
    behind.split("\n\n").next().unwrap_or_default().trim()
}

pub(crate) fn spec(file: &str) -> String {
    fs::read_to_string(support::root().join("docs/spec").join(file)).unwrap()
}

/// The rule ids of a file, each with the text up to the next one.
pub(crate) fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n### ").skip(1).map(|section| section.split_once(": ").expect("`### <id>: `"))
}

/// Rule ids in a text, in their order.
fn ids(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
    words.filter(|word| is_id(word)).collect()
}

fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(prefix, number)| {
        AREAS.iter().any(|(area, _)| *area == prefix)
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The numbers of decisions in a text: 7 and 12 in `ADR 7 and ADR 12`.
fn decisions_in(text: &str) -> Vec<u32> {
    let text = joined(text);
    let behind = text.match_indices("ADR ").map(|(at, name)| &text[at + name.len()..]);
    let digits = behind.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap());
    digits.filter_map(|number| number.parse().ok()).collect()
}

/// What a text for readers without the repository must not cite.
fn cited(text: &str) -> impl Iterator<Item = String> {
    let ids = ids(text).into_iter().map(str::to_owned);
    let decisions = decisions_in(text).into_iter().map(|number| format!("ADR {number}"));
    ids.chain(decisions).chain(unreadable(text))
}

/// Targets of the links in a Markdown file, relative to that file.
fn links<'a>(path: &str, text: &'a str) -> Vec<&'a str> {
    if !path.ends_with(".md") {
        return Vec::new();
    }
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets
        .map(|(target, _)| target.split('#').next().unwrap())
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '))
        .collect()
}

/// Citations of documents that are not in the repository.
fn unreadable(text: &str) -> Vec<String> {
    let text = joined(text);
    let lower = text.to_ascii_lowercase();
    let names = UNREADABLE.iter().flat_map(|name| text.match_indices(name));
    let sections = UNREADABLE_SECTIONS.iter().flat_map(|(name, between)| {
        lower.match_indices(name).filter(|(at, name)| {
            lower[at + name.len()..].strip_prefix(*between).is_some_and(is_section)
        })
    });
    names
        .chain(sections)
        .filter(|(at, _)| {
            !text[..*at].ends_with(|c: char| c.is_alphanumeric() || "_-/".contains(c))
        })
        .map(|(at, _)| text[at..].chars().take(40).collect())
        .collect()
}

/// A text without line breaks and the marks of comments: a citation can contain a line break.
fn joined(text: &str) -> String {
    let marks =
        |line: &str| line.trim_start().trim_start_matches(['/', '!', '#', '*']).trim().to_owned();
    text.lines().map(marks).collect::<Vec<_>>().join(" ")
}

/// Whether a text begins with a section number: `4.2`, `7)` or `13 says`, but not `2026`.
fn is_section(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..=2).contains(&digits) && !text[digits..].starts_with(|c: char| c.is_alphanumeric())
}

/// Whether there is a test of this name, such as `end2end/a.spec.ts: its title`.
fn is_browser_test(name: &str) -> bool {
    let Some((path, title)) = name.split_once(": ") else { return false };
    fs::read_to_string(support::root().join(path)).is_ok_and(|text| titles(&text).contains(&title))
}

/// The titles of the tests in a file of the browser tests: of calls of `test`, and of what
/// the file extends it to.
fn titles(text: &str) -> Vec<&str> {
    let extended =
        text.split("const ").skip(1).filter_map(|rest| rest.split_once(" = test.extend"));
    let names = extended.map(|(name, _)| name).filter(|name| !name.contains(char::is_whitespace));
    let names: BTreeSet<&str> = names.chain(["test"]).collect();
    let lines = text.lines().filter_map(|line| line.trim_start().split_once('('));
    lines
        .filter(|(name, _)| names.contains(name))
        .filter_map(|(_, arguments)| {
            let quote = arguments.chars().next().filter(|c| "\"'`".contains(*c))?;
            Some(arguments[1..].split_once(quote)?.0)
        })
        .collect()
}

/// The names of the checks of the crash harness.
fn crash_checks() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for File { text, .. } in files(&[CRASH.1]) {
        let behind = text.split("Check::new(\"").skip(1);
        names.extend(behind.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    names
}

/// The names of all tests, in the form that rules use.
pub(crate) fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for File { path, text } in files(&["app", "crates", "server", "xtask"]) {
        let Some(module) = module(&path) else { continue };
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            if let Some(function) = function.filter(|_| is_test) {
                let name = function.split(['(', '<']).next().unwrap();
                names.insert(without_inline_modules(&format!("{module}::{name}")));
                is_test = false;
            }
        }
    }
    names
}

/// The module path of a file: `weir_store::events::block` for
/// `crates/store/src/events/block.rs`.
fn module(path: &str) -> Option<String> {
    let path = path.strip_suffix(".rs")?;
    let path = path.strip_prefix("crates/").unwrap_or(path);
    let mut parts = path.split('/');
    let name = format!("weir_{}", parts.next()?.replace('-', "_"));
    let mut parts: Vec<&str> = parts.skip(1).collect();
    parts.pop_if(|last| ["main", "lib", "mod"].contains(last));
    parts.insert(0, &name);
    Some(parts.join("::"))
}

/// Removes `tests` from a name. The tests of a module can be in a separate file or in the
/// tested file.
pub(crate) fn without_inline_modules(name: &str) -> String {
    name.replace("::tests::", "::")
}

#[track_caller]
fn assert_kept(broken: &[String]) {
    assert!(broken.is_empty(), "against docs/spec/README.md:\n- {}", broken.join("\n- "));
}
