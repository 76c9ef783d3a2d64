//! Checks that the API lists a feature only if a test uses it (API-53).
//!
//! The table of the rule names the tests. It must have the features of
//! `crates/model/src/organizations.rs` and no others.

use std::collections::BTreeMap;
use std::fs;

use crate::citations::{sections, spec, tests, without_inline_modules};
use crate::support;

/// Names that clients know, of features that Weir does not have.
const ABSENT: [&str; 6] = [
    "role_based_access",
    "zapier",
    "white_labelling",
    "advanced_permissions",
    "environments",
    "managed_reverse_proxy",
];

#[test]
fn every_listed_feature_has_a_test() {
    let rules = spec("management-api.md");
    let (_, rule) = sections(&rules).find(|(id, _)| *id == "API-53").expect("the rule API-53");
    let held = held(rule);
    let listed = listed();
    assert!(listed.len() >= 7, "the list of features was found: {listed:?}");
    assert_eq!(held.keys().collect::<Vec<_>>(), {
        let mut listed: Vec<_> = listed.iter().collect();
        listed.sort();
        listed
    });
    let tests = tests();
    for (feature, test) in held {
        let is_there = tests.contains(&without_inline_modules(&test));
        assert!(is_there, "{feature} is held by {test}, which is no test");
    }
    let broken: Vec<_> = listed.iter().filter(|name| ABSENT.contains(&name.as_str())).collect();
    assert!(broken.is_empty(), "{broken:?} do not work");
}

#[test]
fn rows_of_the_table_are_read() {
    let rule = "Text.\n\n| feature | test |\n|---|---|\n| `a` | `b::c` |\n\nText `d`.\n";
    assert_eq!(held(rule), BTreeMap::from([("a".to_owned(), "b::c".to_owned())]));
}

/// The features of the table, each with its test.
fn held(rule: &str) -> BTreeMap<String, String> {
    let rows = rule.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let mut names = line.split('`').skip(1).step_by(2).map(str::to_owned);
        (names.next().expect("a feature"), names.next().expect("a test"))
    };
    rows.map(row).collect()
}

/// The keys of the features that the API lists.
fn listed() -> Vec<String> {
    let path = support::root().join("crates/model/src/organizations.rs");
    let text = fs::read_to_string(path).unwrap();
    let (_, list) = text.split_once("pub const FEATURES").expect("the list of features");
    let (list, _) = list.split_once("];").expect("the end of the list");
    let rows = list.lines().filter_map(|line| line.trim_start().strip_prefix("(\""));
    rows.map(|row| row.split('"').next().unwrap().to_owned()).collect()
}
