//! `[[workspace.metadata.leptos]]` fits the workspace, what xtask builds and what the server
//! looks for, so that cargo-leptos builds the same app. `Trunk.toml` forwards to the server
//! what the app asks it for.

use std::collections::BTreeSet;
use std::fs;

use toml::{Table, Value};

use crate::support::{self, File, files};

/// The settings that this test or xtask reads, or that only cargo-leptos acts on. A setting
/// that is not here can change what cargo-leptos builds.
const SETTINGS: [&str; 19] = [
    "assets-dir",
    "bin-exe-name",
    "bin-package",
    "bin-target",
    "disable-erase-components",
    "end2end-cmd",
    "end2end-dir",
    "hash-files",
    "lib-features",
    "lib-package",
    "lib-profile-dev",
    "lib-profile-release",
    "name",
    "output-name",
    "site-addr",
    "site-pkg-dir",
    "site-root",
    "style-bundle",
    "style-file",
];

#[test]
fn the_settings_are_known() {
    let settings = settings();
    let unknown: Vec<&String> =
        settings.keys().filter(|name| !SETTINGS.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "xtask does not act on {unknown:?}");
}

#[test]
fn packages_features_and_profiles_exist() {
    let settings = settings();
    let metadata = support::metadata();
    let packages = metadata.workspace_packages();
    let package = |name: &str| {
        let found = packages.iter().find(|package| package.name.as_str() == name);
        *found.unwrap_or_else(|| panic!("no package {name} in the workspace"))
    };

    let library = package(text(&settings, "lib-package"));
    assert!(library.targets.iter().any(|target| target.is_cdylib()));
    let features = list(&settings, "lib-features");
    for feature in &features {
        assert!(library.features.contains_key(*feature), "{feature}");
    }
    // The check of all changes compiles what both tools compile.
    let checks = read("scripts/test");
    let (_, linted) = checks.split_once("for feature in ").expect("the features that are linted");
    let linted: Vec<&str> =
        linted.lines().next().unwrap().trim_end_matches("; do").split(' ').collect();
    let features = features.join(",");
    for wanted in [features.clone(), format!("{features},split")] {
        assert!(linted.contains(&wanted.as_str()), "{wanted} is linted: {linted:?}");
    }

    let program = package(text(&settings, "bin-package"));
    let target = text(&settings, "bin-target");
    assert_eq!(text(&settings, "bin-exe-name"), target);
    // xtask finds it by this name among all programs of the workspace.
    let programs = packages
        .iter()
        .filter(|package| package.targets.iter().any(|one| one.is_bin() && one.name == target));
    let owners: Vec<&str> = programs.map(|package| package.name.as_str()).collect();
    assert_eq!(owners, [program.name.as_str()]);

    let manifest = manifest();
    for setting in ["lib-profile-dev", "lib-profile-release"] {
        let name = text(&settings, setting);
        assert!(manifest["profile"].get(name).is_some(), "{setting}: no profile {name}");
    }
    let erases = read(".cargo/config.toml").contains("\"erase_components\"");
    let leaves_it = settings.get("disable-erase-components").and_then(Value::as_bool);
    assert_eq!(leaves_it, Some(erases), "one place gives the flag");
}

#[test]
fn directories_and_names_are_those_of_xtask_and_the_server() {
    let settings = settings();
    let root = support::root();
    assert!(root.join(text(&settings, "style-file")).is_file());
    assert!(root.join(text(&settings, "assets-dir")).is_dir());
    let tests = root.join(text(&settings, "end2end-dir"));
    assert!(tests.join("playwright.config.ts").is_file());

    let site = text(&settings, "site-root").strip_prefix("target/").expect("a target directory");
    let (package, output) = (text(&settings, "site-pkg-dir"), text(&settings, "output-name"));
    for (path, words) in [
        ("xtask/src/layout.rs", format!("target.join(\"{site}\")")),
        ("xtask/src/assets.rs", format!("HASHED: &str = \"{package}\"")),
        ("xtask/src/site.rs", format!("add_hashed(\"{output}\", \"css\"")),
        ("xtask/src/wasm.rs", format!("ENTRY: &str = \"{output}_bg.wasm\"")),
        ("xtask/src/wasm.rs", format!("BINDINGS: &str = \"{output}.js\"")),
        ("server/src/web/assets.rs", format!("PLAIN: &str = \"{package}/{output}.\"")),
        ("server/src/config.rs", format!("listen: String = \"{}\"", text(&settings, "site-addr"))),
    ] {
        assert!(read(path).contains(&words), "{path} has no `{words}`");
    }
}

#[test]
fn trunk_forwards_what_the_server_answers_and_no_page() {
    let settings = settings();
    let server = format!("http://{}", text(&settings, "site-addr"));
    let trunk: Table = read("Trunk.toml").parse().unwrap();
    let forwarded: BTreeSet<String> = trunk["proxy"]
        .as_array()
        .expect("a list of proxies")
        .iter()
        .map(|proxy| {
            let backend = proxy["backend"].as_str().expect("a text");
            let path = backend.strip_prefix(&server);
            path.unwrap_or_else(|| panic!("{backend} is not {server}")).to_owned()
        })
        .collect();

    let sources = files(&["server/src/web"]);
    let mut wanted: BTreeSet<String> =
        sources.iter().flat_map(|File { text, .. }| own_roots(text)).collect();
    assert!(wanted.len() > 4, "the addresses are found: {wanted:?}");
    wanted.extend(["/api", "/complete", "/login/saml"].map(str::to_owned));
    let names = read("crates/model/src/sso.rs");
    let names = names.split("Self::known(\"").skip(1);
    wanted.extend(names.map(|rest| format!("/login/{}", rest.split('"').next().unwrap())));
    assert_eq!(forwarded, wanted);

    let app = read("app/src/app.rs");
    let pages: Vec<&str> =
        app.split("path!(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(pages.len() > 60, "the pages are found");
    for page in pages {
        let is_below = |root: &String| page == root || page.starts_with(&format!("{root}/"));
        assert!(!forwarded.iter().any(is_below), "the app draws {page}");
    }
}

#[test]
fn own_roots_are_found() {
    let text = "insert(RoutePattern(\"/_csv/{page}\")); insert(RoutePattern(\"/{page}\"));";
    assert_eq!(own_roots(text), ["/_csv"]);
}

/// The first parts of the addresses in a source file that are not pages.
fn own_roots(text: &str) -> Vec<String> {
    let patterns = text.split("RoutePattern(\"/_").skip(1);
    patterns.map(|rest| format!("/_{}", rest.split(['/', '"']).next().unwrap())).collect()
}

fn read(path: &str) -> String {
    let file = support::root().join(path);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn manifest() -> Table {
    read("Cargo.toml").parse().unwrap()
}

/// The only entry of `[[workspace.metadata.leptos]]`.
fn settings() -> Table {
    let manifest = manifest();
    let apps = manifest["workspace"]["metadata"]["leptos"].as_array().expect("a list of apps");
    assert_eq!(apps.len(), 1);
    apps[0].as_table().expect("a table").clone()
}

fn text<'a>(settings: &'a Table, name: &str) -> &'a str {
    let value = settings.get(name).and_then(Value::as_str);
    value.unwrap_or_else(|| panic!("no text `{name}` in the settings"))
}

fn list<'a>(settings: &'a Table, name: &str) -> Vec<&'a str> {
    let values = settings.get(name).and_then(Value::as_array);
    let values = values.unwrap_or_else(|| panic!("no list `{name}` in the settings"));
    values.iter().map(|value| value.as_str().expect("a text")).collect()
}
