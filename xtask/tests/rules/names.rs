//! Checks that `docs/ARCHITECTURE.md` names paths, functions and types that exist.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{self, File, files};

/// Directories with the files that the document names.
const DIRECTORIES: [&str; 12] = [
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
];

/// If fewer names are found, the search for them is broken.
const NAMES_AT_LEAST: usize = 150;

/// What declares a function or type, before its name.
const DECLARATIONS: [&str; 8] = ["const", "enum", "fn", "mod", "static", "struct", "trait", "type"];

/// What a line has that declares a type or gives it functions.
const OWNERS: [&str; 4] = ["enum", "impl", "struct", "trait"];

#[test]
fn the_architecture_names_what_exists() {
    let text = fs::read_to_string(support::root().join("docs/ARCHITECTURE.md")).unwrap();
    let names = named(&text);
    assert!(names.len() >= NAMES_AT_LEAST, "only {} names were found", names.len());
    let files = files(&DIRECTORIES);
    let paths = paths(&files);
    let broken: Vec<_> = names.into_iter().filter(|name| !exists(name, &files, &paths)).collect();
    assert!(
        broken.is_empty(),
        "docs/ARCHITECTURE.md names what is not there:\n- {}",
        broken.join("\n- ")
    );
}

#[test]
fn names_of_what_is_not_there_are_found() {
    let text = "`a/b.rs`, `fn`, `/_fn`, `Store::open` and `200`.\n```sh\n`c/d.rs`\n```\n";
    assert_eq!(named(text).into_iter().collect::<Vec<_>>(), ["Store::open", "a/b.rs"]);
    let files = [File {
        path: "crates/plugin-host/src/calls/mod.rs".to_owned(),
        text: "pub mod fetch;\nimpl Host {\n    fn open() {}\n}\n// fn gone() {}\n".to_owned(),
    }];
    let paths = paths(&files);
    for name in [
        "crates/plugin-host/src/calls/mod.rs",
        "plugin-host/calls",
        "calls/mod.rs",
        "Host::open",
        "calls::fetch",
        "weir_plugin_host::fetch",
    ] {
        assert!(exists(name, &files, &paths), "{name}");
    }
    for name in ["calls/gone.rs", "lls/mod.rs", "Host::gone", "Other::open", "other::fetch"] {
        assert!(!exists(name, &files, &paths), "{name}");
    }
}

/// The paths and the names of functions and types that are marked as code in a text.
fn named(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            let marked = line.split('`').skip(1).step_by(2);
            names.extend(marked.filter(|name| is_path(name) || is_item(name)));
        }
    }
    names
}

/// Whether a name is a path of a file or directory, and not one of a URL.
fn is_path(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !name.starts_with('/')
        && (name.contains('/') || name.ends_with(".rs"))
}

/// Whether a name is one of a function or type, such as `Store::open`.
fn is_item(name: &str) -> bool {
    name.contains("::") && name.chars().all(|c| c.is_ascii_alphanumeric() || "_:()".contains(c))
}

fn exists(name: &str, files: &[File], paths: &BTreeSet<String>) -> bool {
    if is_item(name) {
        return has_item(name, files);
    }
    let end = short(name);
    paths.iter().any(|path| path.ends_with(&end)) || support::root().join(name).exists()
}

/// Whether one file declares the item, and is in the module or has the type before it.
fn has_item(name: &str, files: &[File]) -> bool {
    let mut parts = name.trim_end_matches("()").rsplit("::");
    let (Some(item), Some(owner)) = (parts.next(), parts.next()) else { return false };
    let has_owner = |path: &str, text: &str| {
        if owner.starts_with(|c: char| c.is_ascii_uppercase()) {
            return any_line(text, |words| {
                words.contains(&owner) && words.iter().any(|word| OWNERS.contains(word))
            });
        }
        let module = owner.strip_prefix("weir_").unwrap_or(owner);
        let path = short(path).replace('-', "_").replace(".rs", "/");
        path.contains(&format!("/{module}/"))
    };
    let declares = |words: &[&str]| {
        words.windows(2).any(|pair| DECLARATIONS.contains(&pair[0]) && pair[1] == item)
    };
    files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && file.text.contains(item))
        .any(|File { path, text }| has_owner(path, text) && any_line(text, declares))
}

/// Whether a line of code has words of which this is true.
fn any_line(text: &str, is_true: impl Fn(&[&str]) -> bool) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        is_true(&words.collect::<Vec<_>>())
    })
}

/// The paths of files and their directories. Those of Rust files also without their ending.
fn paths(files: &[File]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for File { path, .. } in files {
        let path = short(path);
        paths.extend(path.strip_suffix(".rs").map(str::to_owned));
        let mut rest = path.as_str();
        while let Some((directory, _)) = rest.rsplit_once('/') {
            paths.insert(rest.to_owned());
            rest = directory;
        }
    }
    paths
}

/// A path with a slash before it and without the directory `src`, which texts omit.
fn short(path: &str) -> String {
    format!("/{}", path.trim_end_matches('/')).replace("/src/", "/")
}
