//! Checks the dependencies between crates, as `docs/ARCHITECTURE.md` describes them.
//!
//! The rules are in `tables`. A failing test names the broken rule and its reason.

mod tables;

use std::collections::BTreeSet;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, Package};
use serde_json::Value;

use self::tables::{
    BELOW_MODEL, FEATURES_ONLY, FORBIDDEN, LAYERS, NOT_IN_BROWSER, OUTSIDE, RESERVED,
};
use crate::support;

#[test]
fn our_crates_depend_in_one_direction() {
    let metadata = support::metadata();
    let mut broken = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        if name == FEATURES_ONLY || OUTSIDE.iter().any(|(outside, _)| *outside == name) {
            continue;
        }
        let Some(layer) = LAYERS.iter().find(|layer| layer.of == name) else {
            broken.push(format!("{name} is in no layer; add it to the table with a reason"));
            continue;
        };
        let ours = named_in_code(package).filter(|used| used.starts_with("weir-"));
        for used in ours.filter(|used| *used != FEATURES_ONLY) {
            if !layer.uses.contains(&used) {
                broken.push(format!("{name} must not use {used}: {}", layer.why));
            }
            if let Some((_, why)) = OUTSIDE.iter().find(|(outside, _)| *outside == used) {
                broken.push(format!("{name} must not use {used}: {why}"));
            }
        }
    }
    assert_kept(&broken);
}

#[test]
fn foreign_crates_are_named_where_they_belong() {
    let metadata = support::metadata();
    let mut broken = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        if name == FEATURES_ONLY {
            continue;
        }
        for used in named_in_code(package) {
            if let Some(why) = reserved_for_others(name, used) {
                broken.push(format!("{name} must not use {used}: {why}"));
            }
            for rule in FORBIDDEN {
                if rule.to == name && matches_any(used, rule.names) {
                    broken.push(format!("{name} must not use {used}: {}", rule.why));
                }
            }
        }
    }
    assert_kept(&broken);
}

#[test]
fn the_first_row_that_matches_a_foreign_crate_decides() {
    for (name, used, is_allowed) in [
        ("weir-model", "surrealdb-types", true),
        ("weir-store", "surrealdb-types", true),
        ("weir-service", "surrealdb-types", false),
        ("weir-model", "surrealdb", false),
        ("weir-model", "surrealdb-core", false),
        ("weir-store", "surrealdb-core", true),
        ("weir-model", "serde", true),
    ] {
        assert_eq!(reserved_for_others(name, used).is_none(), is_allowed, "{name} {used}");
    }
}

/// Why this workspace crate must not name this external crate, if it must not.
fn reserved_for_others(name: &str, used: &str) -> Option<&'static str> {
    let row = RESERVED.iter().find(|row| matches_any(used, row.names))?;
    (!row.to.contains(&name)).then_some(row.why)
}

#[test]
fn the_model_brings_nothing_but_data_types() {
    let below = tree("{p}", &["--package=weir-model", "--edges=normal,build", "--target=all"]);
    let broken: Vec<String> = below
        .iter()
        .map(|line| name_in(line))
        .filter(|name| *name != "weir-model" && !BELOW_MODEL.contains(name))
        .map(|name| {
            format!(
                "weir-model brings {name}: it depends on no runtime, database or web framework, \
                 and all of it reaches the browser"
            )
        })
        .collect();
    assert_kept(&broken);
}

#[test]
fn the_browser_side_brings_nothing_of_the_server() {
    let below = tree(
        "{p}",
        &[
            "--package=weir-frontend",
            "--features=hydrate",
            "--target=wasm32-unknown-unknown",
            "--edges=normal",
        ],
    );
    let broken: Vec<String> = below
        .iter()
        .map(|line| name_in(line))
        .filter(|name| matches_any(name, NOT_IN_BROWSER))
        .map(|name| format!("the browser side brings {name}, which belongs to the server"))
        .collect();
    assert_kept(&broken);
}

/// SurrealKV loses acknowledged commits when the process is killed.
#[test]
fn the_storage_engine_that_loses_commits_is_off() {
    let metadata = support::metadata();
    let mut broken = Vec::new();
    for node in &metadata.resolve.as_ref().unwrap().nodes {
        let package = &metadata[&node.id];
        if package.name.as_str() == "surrealkv" {
            broken.push("surrealkv is compiled in".to_owned());
        }
        if package.name.starts_with("surrealdb")
            && node.features.iter().any(|feature| feature.as_str() == "kv-surrealkv")
        {
            broken.push(format!("{} has the feature kv-surrealkv", package.name));
        }
    }
    assert_kept(&broken);
}

/// Two versions of these crates in one program are incompatible.
#[test]
fn there_is_one_version_of_what_must_agree() {
    let metadata = support::metadata();
    let mut broken = Vec::new();
    for (name, why) in [
        ("leptos", "signals of one are unknown to the other"),
        ("leptos-use", "its companions pin old versions, and each would reach the browser"),
        ("surrealdb-core", "two engines cannot share a data directory"),
        ("wasm-bindgen", "the glue is made for one version"),
    ] {
        let versions = versions(&metadata, name);
        if versions.len() > 1 {
            broken.push(format!("Cargo.lock has {name} {versions:?}: {why}"));
        }
    }
    if versions(&metadata, "wasm-bindgen") != versions(&metadata, "wasm-bindgen-cli-support") {
        broken.push(
            "wasm-bindgen and wasm-bindgen-cli-support differ: the glue is made for one version"
                .to_owned(),
        );
    }
    assert_kept(&broken);
}

/// `-p weir-store`, `-p weir-server` and the whole workspace must request the same
/// features of the dependencies of the store. Otherwise the engine is compiled again for
/// each, which takes minutes. `weir-workspace-hack` unifies the features.
#[test]
fn the_storage_engine_is_compiled_once() {
    let below_the_engine = |selection: &[&str]| compiled_for("surrealdb-core@", selection);
    let store = below_the_engine(&["build", "--package=weir-store"]);
    let mut broken = Vec::new();
    for selection in [
        &["build", "--package=weir-server"][..],
        &["build", "--workspace"],
        &["test", "--no-run", "--package=weir-store"],
        &["test", "--no-run", "--package=weir-ingest"],
        &["test", "--no-run", "--workspace"],
    ] {
        let others = below_the_engine(selection);
        for more in others.difference(&store) {
            let (package, features) = more;
            broken.push(format!(
                "`cargo {}` compiles {package} with {features:?}, `-p weir-store` does not: add \
                 that to the dependencies or build-dependencies of crates/workspace-hack",
                selection.join(" ")
            ));
        }
    }
    assert_kept(&broken);
}

/// `scripts/test` compiles the tests first and the server after them. Another set of features
/// would compile the server twice, which takes minutes.
#[test]
fn the_server_is_compiled_once() {
    let tests =
        compiled_for("weir-server@", &["test", "--no-run", "--workspace", "--exclude=weir-xtask"]);
    let server = compiled_for("weir-server@", &["build", "--workspace", "--bin=weir"]);
    let broken: Vec<_> = server
        .difference(&tests)
        .map(|(package, features)| {
            format!(
                "the server is compiled with {package} with {features:?}, the tests are not: add \
                 that to the dependencies of crates/workspace-hack"
            )
        })
        .collect();
    assert_kept(&broken);
}

/// Packages and features that a cargo command compiles for one package. `root` is part of
/// the identifier of that package. This uses the unit graph of cargo, which is unstable: `cargo tree`
/// does not say whether a package is compiled for the product or for a build script.
fn compiled_for(root: &str, arguments: &[&str]) -> BTreeSet<(String, Vec<String>)> {
    let output = Command::new(env!("CARGO"))
        .current_dir(support::root())
        .args(arguments)
        .args(["--locked", "--unit-graph", "-Zunstable-options"])
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {}: {errors}", arguments.join(" "));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let units = plan["units"].as_array().unwrap();
    let is_root = |unit: &Value| unit["pkg_id"].as_str().unwrap().contains(root);
    let mut waiting: Vec<usize> = (0..units.len()).filter(|at| is_root(&units[*at])).collect();
    assert!(!waiting.is_empty(), "{root} is part of every plan");
    let mut seen = BTreeSet::new();
    let mut compiled = BTreeSet::new();
    while let Some(at) = waiting.pop() {
        if !seen.insert(at) {
            continue;
        }
        let unit = &units[at];
        let texts = |value: &Value| -> Vec<String> {
            let items = value.as_array().unwrap().iter();
            items.map(|item| item.as_str().unwrap().to_owned()).collect()
        };
        compiled.insert((unit["pkg_id"].as_str().unwrap().to_owned(), texts(&unit["features"])));
        let next = unit["dependencies"].as_array().unwrap().iter();
        waiting.extend(
            next.map(|dependency| usize::try_from(dependency["index"].as_u64().unwrap()).unwrap()),
        );
    }
    compiled
}

/// The lines of `cargo tree`, one package each, in the given format.
fn tree(format: &str, arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(support::root())
        .args(["tree", "--locked", "--prefix=none", "--format", format])
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree {}: {errors}", arguments.join(" "));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.trim().trim_end_matches(" (*)").to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Crate names in a manifest, without dev-dependencies.
fn named_in_code(package: &Package) -> impl Iterator<Item = &str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != DependencyKind::Development)
        .map(|dependency| dependency.name.as_str())
}

fn matches_any(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    })
}

/// The name in a line: `chrono` in `chrono v0.4.45 (proc-macro)`.
fn name_in(line: &str) -> &str {
    line.split(' ').next().unwrap()
}

fn versions(metadata: &Metadata, name: &str) -> BTreeSet<String> {
    let packages = metadata.packages.iter().filter(|package| package.name.as_str() == name);
    packages.map(|package| package.version.to_string()).collect()
}

#[track_caller]
fn assert_kept(broken: &[String]) {
    assert!(broken.is_empty(), "broken rules:\n- {}", broken.join("\n- "));
}
