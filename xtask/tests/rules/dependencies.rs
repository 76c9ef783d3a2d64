//! Checks the rules of `deny.toml` without other tools or network: licences, sources, and
//! forbidden versions.

use std::collections::BTreeSet;
use std::fs;

use cargo_metadata::{Metadata, Package, PackageId};
use semver::VersionReq;
use spdx::{Expression, LicenseReq, ParseMode};
use toml::{Table, Value};

use crate::support;

#[test]
fn licences_are_allowed() {
    let rules = rules("licenses");
    let allowed = texts(&rules["allow"]);
    let mut broken = Vec::new();
    let metadata = support::metadata();
    for package in foreign(&metadata) {
        let exceptions = list(&rules["exceptions"])
            .filter(|exception| exception["crate"].as_str() == Some(package.name.as_str()))
            .flat_map(|exception| texts(&exception["allow"]));
        let allowed: BTreeSet<&str> = allowed.iter().copied().chain(exceptions).collect();
        let licence = licence(package);
        let is_allowed = |requirement: &LicenseReq| allowed.contains(&*requirement.to_string());
        match Expression::parse_mode(&licence, ParseMode::LAX) {
            Ok(expression) if expression.evaluate(is_allowed) => {}
            Ok(_) | Err(_) => broken.push(format!("{} is under `{licence}`", named(package))),
        }
    }
    assert_kept(&broken);
}

#[test]
fn everything_comes_from_the_registry() {
    let rules = rules("sources");
    let registries = texts(&rules["allow-registry"]);
    let metadata = support::metadata();
    let broken: Vec<String> = foreign(&metadata)
        .filter(|package| {
            let source = package.source.as_ref().map_or("", |source| &source.repr);
            !registries.iter().any(|registry| source == format!("registry+{registry}"))
        })
        .map(|package| format!("{} comes from {:?}", named(package), package.source))
        .collect();
    assert_kept(&broken);
}

#[test]
fn versions_with_known_flaws_are_out() {
    let rules = rules("bans");
    let metadata = support::metadata();
    let mut broken = Vec::new();
    for ban in list(&rules["deny"]) {
        let specification = ban["crate"].as_str().unwrap();
        let (name, versions) = specification.split_once(':').unwrap_or((specification, "*"));
        let versions = VersionReq::parse(versions).unwrap();
        let wrappers = ban.get("wrappers").map(texts).unwrap_or_default();
        for package in foreign(&metadata) {
            if package.name.as_str() != name || !versions.matches(&package.version) {
                continue;
            }
            let users = users(&metadata, &package.id);
            if wrappers.is_empty() || users.iter().any(|user| !wrappers.contains(user)) {
                let reason = ban["reason"].as_str().unwrap();
                broken.push(format!("{} (used by {users:?}): {reason}", named(package)));
            }
        }
    }
    assert_kept(&broken);
}

fn rules(section: &str) -> Table {
    let text = fs::read_to_string(support::root().join("deny.toml")).unwrap();
    let mut rules: Table = text.parse().unwrap();
    match rules.remove(section) {
        Some(Value::Table(section)) => section,
        other => panic!("deny.toml: [{section}] is {other:?}"),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).map(|text| text.as_str().unwrap()).collect()
}

/// External packages that are used on our platforms.
fn foreign(metadata: &Metadata) -> impl Iterator<Item = &Package> {
    let used = &metadata.resolve.as_ref().unwrap().nodes;
    used.iter().map(|node| &metadata[&node.id]).filter(|package| package.source.is_some())
}

/// The names of the packages that depend on a package.
fn users<'a>(metadata: &'a Metadata, package: &PackageId) -> Vec<&'a str> {
    let nodes = &metadata.resolve.as_ref().unwrap().nodes;
    nodes
        .iter()
        .filter(|node| node.dependencies.contains(package))
        .map(|node| metadata[&node.id].name.as_str())
        .collect()
}

fn named(package: &Package) -> String {
    format!("{} {}", package.name, package.version)
}

/// The licence expression of the manifest. If a package names a file instead, the title
/// of the file identifies the licence.
fn licence(package: &Package) -> String {
    if let Some(expression) = &package.license {
        return expression.clone();
    }
    let text = package.license_file().and_then(|file| fs::read_to_string(file).ok());
    let text = text.unwrap_or_default();
    let title = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match title {
        "Business Source License 1.1" => "BUSL-1.1".to_owned(),
        "MIT License" => "MIT".to_owned(),
        other => format!("file: {other}"),
    }
}

#[track_caller]
fn assert_kept(broken: &[String]) {
    assert!(broken.is_empty(), "against deny.toml:\n- {}", broken.join("\n- "));
}
