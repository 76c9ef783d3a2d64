//! Archives as they are made, and as they are made to do harm.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

const JSON: &str = r#"{"name": "Tea"}"#;

fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn tarred(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        // By hand: the builder refuses what only hostile archives hold.
        let field = &mut header.as_gnu_mut().unwrap().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

/// The names that both kinds of archive lead to.
fn names(files: &[(&str, &str)], folder: Option<&str>) -> Result<Vec<String>, ArchiveFault> {
    let of_zip = unpack(&zipped(files), folder);
    assert_eq!(unpack(&tarred(files), folder), of_zip);
    of_zip.map(|files| files.into_keys().collect())
}

#[test]
fn the_one_folder_of_everything_is_left_out() {
    let files = [("tea-0a/plugin.json", JSON), ("tea-0a/index.ts", "1"), ("tea-0a/a.md", "")];
    assert_eq!(names(&files, None).unwrap(), ["index.ts", "plugin.json"]);
    let flat = [("plugin.json", JSON), ("index.js", "1"), ("sub/x.js", "")];
    assert_eq!(names(&flat, None).unwrap(), ["index.js", "plugin.json", "sub/x.js"]);
}

#[test]
fn a_folder_can_be_named() {
    let files = [("top/a/plugin.json", JSON), ("top/a/site.ts", "1"), ("top/plugin.json", "{}")];
    assert_eq!(names(&files, Some("a")).unwrap(), ["plugin.json", "site.ts"]);
    assert!(names(&files, Some("b")).unwrap().is_empty());
}

#[test]
fn names_that_lead_out_refuse_the_archive() {
    for name in ["../plugin.json", "a/../../x.js", "/etc/x.json", "a\\..\\x.js"] {
        let files = [("plugin.json", JSON), (name, "x")];
        assert_eq!(unpack(&tarred(&files), None), Err(ArchiveFault::Path), "{name}");
        assert_eq!(unpack(&zipped(&files), None), Err(ArchiveFault::Path), "{name}");
    }
}

#[test]
fn what_is_no_source_is_left_out() {
    let large = "x".repeat(SOURCE_MAX + 1);
    let files = [("plugin.json", JSON), ("lib/data.json", large.as_str()), ("README.md", "")];
    assert_eq!(names(&files, None).unwrap(), ["plugin.json"]);
    let marked = [("index.js", "\u{feff}let a"), ("lib/b.ts", "")];
    let texts = unpack(&zipped(&marked), None).unwrap();
    assert_eq!(texts.get("index.js").map(String::as_str), Some("let a"));
    assert!(texts.contains_key("lib/b.ts"));
    assert_eq!(unpack(&vec![b'P'; PACKED_MAX + 1], None), Err(ArchiveFault::TooLarge));
    let half = "x".repeat(SOURCE_MAX);
    let names: Vec<String> = (0..40).map(|number| format!("{number}.js")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), &*half)).collect();
    assert_eq!(unpack(&zipped(&many), None), Err(ArchiveFault::TooMuch));
}

#[test]
fn a_bomb_is_not_unpacked() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..200 {
        bomb.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < PACKED_MAX);
    assert!(!unpack(&bomb, None).is_ok_and(|files| !files.is_empty()));
}

#[test]
fn what_is_damaged_is_refused() {
    assert_eq!(unpack(b"", None), Err(ArchiveFault::Unknown));
    assert_eq!(unpack(b"Rar!", None), Err(ArchiveFault::Unknown));
    let files = [("plugin.json", JSON), ("index.js", "1")];
    let whole = zipped(&files);
    for end in 0..whole.len() {
        assert!(unpack(&whole[..end], None).is_err());
    }
    let whole = tarred(&files);
    for end in 0..whole.len() / 4 {
        assert!(unpack(&whole[..end], None).is_err());
    }
}
