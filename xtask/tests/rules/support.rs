//! Cargo metadata of the workspace and the texts of the repository, for all rules.

use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand};

/// The platforms of the server, and the browser.
pub(crate) const PLATFORMS: [&str; 3] =
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "wasm32-unknown-unknown"];

/// Directories with external texts, or with output of builds and test runs.
const SKIPPED: [&str; 7] = [
    "corpus",
    "licences",
    "node_modules",
    "playwright-report",
    "target",
    "test-results",
    "__pycache__",
];

/// File name endings of files with comments or prose. Scripts have no ending.
const KINDS: [&str; 14] = [
    ".css", ".html", ".js", ".md", ".mjs", ".py", ".rs", ".sh", ".surql", ".svg", ".toml", ".ts",
    ".txt", ".yml",
];

/// A file: its path from the root, and its text.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Our texts in these directories. A path can also be a file, which is read in any case.
pub(crate) fn files(paths: &[&str]) -> Vec<File> {
    let mut files = Vec::new();
    for path in paths {
        let place = root().join(path);
        if place.is_dir() {
            below(path, &place, &mut files);
        } else {
            files.push(file(path, &place));
        }
    }
    assert!(!files.is_empty(), "{paths:?} have files");
    files
}

fn below(path: &str, directory: &Path, files: &mut Vec<File>) {
    for entry in fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (path, place) = (format!("{path}/{name}"), directory.join(&name));
        if SKIPPED.contains(&name.as_str()) || name.starts_with('.') {
            continue;
        }
        if place.is_dir() {
            below(&path, &place, files);
        } else if !name.contains('.') || KINDS.iter().any(|kind| name.ends_with(kind)) {
            files.push(file(&path, &place));
        }
    }
}

fn file(path: &str, place: &Path) -> File {
    let text = String::from_utf8_lossy(&fs::read(place).unwrap()).into_owned();
    File { path: path.to_owned(), text }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Packages, and whether they are used on our platforms.
pub(crate) fn metadata() -> Metadata {
    let mut options = vec!["--locked".to_owned()];
    for platform in PLATFORMS {
        options.extend(["--filter-platform".to_owned(), platform.to_owned()]);
    }
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(options)
        .exec()
        .expect("Cargo.lock belongs to the manifests; commit it with them")
}
