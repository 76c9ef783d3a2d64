//! The file of alerting rules, as a list of alerts.
//!
//! Not a parser of YAML: it accepts one layout, with one line for each field and values
//! without quotes. It refuses what YAML refuses or reads in another way.

use std::collections::BTreeMap;

/// Every field that the file may have, with the text before it.
const FIELDS: [(&str, &str); 13] = [
    ("", "groups"),
    ("  - ", "name"),
    ("    ", "rules"),
    ("      - ", "alert"),
    ("        ", "expr"),
    ("        ", "for"),
    ("        ", "labels"),
    ("          ", "severity"),
    ("        ", "annotations"),
    ("          ", "summary"),
    ("          ", "description"),
    ("          ", "action"),
    ("          ", "runbook_url"),
];

/// Fields that have other fields, and no value.
const PARENTS: [&str; 4] = ["groups", "rules", "labels", "annotations"];

/// Characters with which a value without quotes does not begin.
const SPECIAL: &str = "-?:,[]{}#&*!|>'\"%@` ";

/// An alerting rule.
#[derive(Debug, Default)]
pub(super) struct Alert {
    pub(super) name: String,
    pub(super) fields: BTreeMap<String, String>,
}

/// The rules of a file.
pub(super) fn alerts(text: &str) -> Result<Vec<Alert>, String> {
    let mut alerts: Vec<Alert> = Vec::new();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (name, value) = field(line).ok_or_else(|| format!("not a field: {line}"))?;
        if PARENTS.contains(&name) != value.is_empty() || !is_plain(value) {
            return Err(format!("not a value without quotes: {line}"));
        }
        if name == "alert" {
            alerts.push(Alert { name: value.to_owned(), ..Alert::default() });
        } else if let Some(alert) = alerts.last_mut() {
            let before = alert.fields.insert(name.to_owned(), value.to_owned());
            if before.is_some() {
                return Err(format!("{} has {name} twice", alert.name));
            }
        }
    }
    Ok(alerts)
}

/// The name and the value of a line.
fn field(line: &str) -> Option<(&'static str, &str)> {
    FIELDS.into_iter().find_map(|(before, name)| {
        let value = line.strip_prefix(before)?.strip_prefix(name)?.strip_prefix(':')?;
        if value.is_empty() { Some((name, value)) } else { Some((name, value.strip_prefix(' ')?)) }
    })
}

/// Whether YAML reads a value as the text that it is.
fn is_plain(value: &str) -> bool {
    !value.starts_with(|first: char| SPECIAL.contains(first))
        && !value.ends_with([' ', ':'])
        && ![": ", " #", "\t"].iter().any(|part| value.contains(part))
}

#[test]
fn a_file_that_is_no_list_of_rules_is_refused() {
    let file = |expr: &str| {
        format!(
            "# A\ngroups:\n  - name: weir\n    rules:\n      - alert: A\n        expr: {expr}\n\
             \x20       labels:\n          severity: warning\n"
        )
    };
    let read = alerts(&file("a{b=\"c\"} > 0")).unwrap();
    assert_eq!((read.len(), read[0].name.as_str()), (1, "A"));
    assert_eq!(read[0].fields["expr"], "a{b=\"c\"} > 0");
    assert_eq!(read[0].fields["severity"], "warning");
    for wrong in [
        "",
        "a: b",
        "a # b",
        "a:",
        "a ",
        " a",
        "\"a\" > 0",
        "{a=\"b\"}",
        "a\n         for: 1m",
        "a\n        four: 1m",
        "a\n        for:1m",
        "a\n        expr: b",
        "a\n\t\tfor: 1m",
        "a\n          and b",
    ] {
        assert!(alerts(&file(wrong)).is_err(), "{wrong:?}");
    }
}
