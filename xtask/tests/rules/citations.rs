//! Checks citations: every rule id in a text has a rule in `docs/spec`, and every test
//! that a rule names exists.
//!
//! A failing test names the file and the text. `docs/spec/README.md` describes how rules
//! are written and cited.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::support;

/// The files of `docs/spec`, with the prefixes of their rule ids.
const AREAS: [(&str, &str); 7] = [
    ("ING", "ingestion.md"),
    ("DUR", "durability.md"),
    ("API", "management-api.md"),
    ("EXP", "batch-exports.md"),
    ("PLG", "plugins.md"),
    ("SEC", "security.md"),
    ("APP", "app.md"),
];

/// Directories with our texts.
const FOLDERS: [&str; 9] =
    ["app", "crates", "docs", "end2end", "frontend", "fuzz", "scripts", "server", "xtask"];

/// Directories in them with external texts, or with output of builds and test runs.
const SKIPPED: [&str; 6] =
    ["licences", "node_modules", "playwright-report", "target", "test-results", "__pycache__"];

/// File name endings of files with comments or prose.
const KINDS: [&str; 10] =
    [".rs", ".md", ".ts", ".mjs", ".js", ".py", ".css", ".surql", ".toml", ".sh"];

/// Texts for readers without access to the repository.
const PUBLIC: [&str; 4] =
    ["docs/openapi.json", "docs/guide", "docs/catalogue", "docs/destinations"];

/// Names of documents that are not in the repository.
const UNREADABLE: [&str; 6] = [
    concat!("SECURITY", "-NOTES"),
    concat!("service", ".md"),
    concat!("store", "-notes"),
    concat!("DECI", "SIONS"),
    concat!("TOOL", "CHAIN notes"),
    concat!("section", " 13"),
];

/// The same, if a section number follows.
const UNREADABLE_SECTIONS: [&str; 6] =
    ["ingestion", "management-api", "batch-exports", "plugins", "plugins.md", "UX"];

/// A file: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

#[test]
fn every_citation_leads_to_a_rule() {
    let rules = rules();
    let mut broken = Vec::new();
    for File { path, text } in files(&FOLDERS) {
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
            if !body.contains("*Why:* ") || !body.contains("*Test:* ") {
                broken.push(format!("{file}: {id} lacks its reason or its test"));
            }
        }
    }
    assert_kept(&broken);
}

#[test]
fn every_test_that_a_rule_names_exists() {
    let tests = tests();
    let mut broken = Vec::new();
    for (id, named) in rules() {
        for name in named {
            let is_there = match name.starts_with("end2end/") {
                true => support::root().join(&name).is_file(),
                false => tests.contains(&without_inline_modules(&name)),
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
    for File { path, text } in files(&FOLDERS) {
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
    for File { path, text } in files(&FOLDERS) {
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
fn public_documents_cite_no_rules() {
    let mut broken = Vec::new();
    for File { path, text } in files(&PUBLIC) {
        for id in ids(&text) {
            broken.push(format!("{path} cites {id}"));
        }
    }
    assert_kept(&broken);
}

#[test]
fn citations_are_found_as_they_are_written() {
    assert_eq!(ids("(ING-6, SEC-12) of ING-6."), ["ING-6", "SEC-12", "ING-6"]);
    assert!(ids("XING-6 ING-x API-DESIGN API- ING-6a EXP-1_2").is_empty());
    assert_eq!(decisions_in("(ADR 7, ING-1) and ADR 12; ADR x"), [7, 12]);
    assert_eq!(links("a.md", "[a](b.md#c), [d](https://e.f), [g](#h)"), ["b.md"]);
    let section = UNREADABLE_SECTIONS[0];
    assert_eq!(unreadable(&format!("/// What is kept ({section}\n    /// 4.2).")).len(), 1);
    assert_eq!(unreadable(&format!("//! Limits ({} 7).", UNREADABLE[0])).len(), 1);
    assert!(unreadable("the `ingestion` of 4 events, plugins, 20 of them").is_empty());
}

/// Rules by id, with the tests that they name.
fn rules() -> BTreeMap<String, Vec<String>> {
    let mut rules = BTreeMap::new();
    for (_, file) in AREAS {
        for (id, body) in sections(&spec(file)) {
            let line = body.lines().find_map(|line| line.strip_prefix("*Test:* "));
            let named = line.unwrap_or_default().split('`').skip(1).step_by(2);
            rules.insert(id.to_owned(), named.map(str::to_owned).collect());
        }
    }
    assert!(rules.len() > 100, "docs/spec has the rules");
    rules
}

fn spec(file: &str) -> String {
    fs::read_to_string(support::root().join("docs/spec").join(file)).unwrap()
}

/// The rule ids of a file, each with the text up to the next one.
fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
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
    let behind = text.match_indices("ADR ").map(|(at, name)| &text[at + name.len()..]);
    let digits = behind.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap());
    digits.filter_map(|number| number.parse().ok()).collect()
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

/// Citations of documents that are not in the repository. A citation can contain a line
/// break.
fn unreadable(text: &str) -> Vec<String> {
    let marks =
        |line: &str| line.trim_start().trim_start_matches(['/', '!', '#', '*']).trim().to_owned();
    let text = text.lines().map(marks).collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    let sections = UNREADABLE_SECTIONS.map(|name| format!("{name} "));
    let numbered = sections.iter().map(|name| (name.as_str(), true));
    for (name, wants_number) in UNREADABLE.iter().map(|name| (*name, false)).chain(numbered) {
        for (at, _) in text.match_indices(name) {
            let (before, behind) = (&text[..at], &text[at + name.len()..]);
            let begins = !before.ends_with(|c: char| c.is_alphanumeric() || "_-/".contains(c));
            if begins && (!wants_number || is_section(behind)) {
                found.push(text[at..].chars().take(40).collect());
            }
        }
    }
    found
}

/// Whether a text begins with a section number: `4.2` or `7)`, but not `20 of them`.
fn is_section(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let behind = &text[digits..];
    (1..=2).contains(&digits)
        && (behind.starts_with([')', ',', ';', ':'])
            || behind.strip_prefix('.').is_some_and(|rest| {
                rest.starts_with(|c: char| c.is_ascii_digit()) || rest.trim().is_empty()
            }))
}

/// The names of all tests, in the form that rules use.
fn tests() -> BTreeSet<String> {
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
fn without_inline_modules(name: &str) -> String {
    name.replace("::tests::", "::")
}

/// Our files in these directories. A path can also be a file.
fn files(paths: &[&str]) -> Vec<File> {
    let mut files = Vec::new();
    for path in paths {
        read(path, &support::root().join(path), &mut files);
    }
    assert!(!files.is_empty(), "{paths:?} have files");
    files
}

fn read(path: &str, place: &Path, files: &mut Vec<File>) {
    if place.is_dir() {
        for entry in fs::read_dir(place).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !SKIPPED.contains(&name.as_str()) && !name.starts_with('.') {
                read(&format!("{path}/{name}"), &place.join(&name), files);
            }
        }
    } else if KINDS.iter().any(|kind| path.ends_with(kind)) || PUBLIC.contains(&path) {
        let text = fs::read_to_string(place).unwrap();
        files.push(File { path: path.to_owned(), text });
    }
}

#[track_caller]
fn assert_kept(broken: &[String]) {
    assert!(broken.is_empty(), "against docs/spec/README.md:\n- {}", broken.join("\n- "));
}
