//! Replays the corpora of the fuzz targets `settings` and `prefixes` (`fuzz/corpus`).

mod checks;

use std::fs;
use std::path::PathBuf;

use self::checks::{check_prefix, check_settings};

/// The texts of the files of a target.
fn corpus(target: &str) -> Vec<String> {
    let directory =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    let files: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| read(entry.unwrap().path())).collect();
    assert!(!files.is_empty());
    files
}

#[test]
fn every_setting_is_refused_or_fits() {
    for text in corpus("settings") {
        check_settings(&text);
    }
}

#[test]
fn every_prefix_is_refused_or_stays_where_it_belongs() {
    for text in corpus("prefixes") {
        check_prefix(text.strip_suffix('\n').unwrap_or(&text));
    }
}
