//! Tests with ordinary and hostile archives.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::outcomes::check_archive;
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
        // Written directly, because the builder refuses hostile names.
        let field = &mut header.as_gnu_mut().unwrap().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

/// The names that are read from both kinds of archive.
fn names(files: &[(&str, &str)], folder: Option<&str>) -> Result<Vec<String>, ArchiveFault> {
    let of_zip = extract(&zipped(files), folder);
    assert_eq!(extract(&tarred(files), folder), of_zip);
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
        assert_eq!(extract(&tarred(&files), None), Err(ArchiveFault::Path), "{name}");
        assert_eq!(extract(&zipped(&files), None), Err(ArchiveFault::Path), "{name}");
    }
}

#[test]
fn what_is_no_source_is_left_out() {
    let large = "x".repeat(SOURCE_MAX + 1);
    let files = [("plugin.json", JSON), ("lib/data.json", large.as_str()), ("README.md", "")];
    assert_eq!(names(&files, None).unwrap(), ["plugin.json"]);
    let marked = [("index.js", "\u{feff}let a"), ("lib/b.ts", "")];
    let texts = extract(&zipped(&marked), None).unwrap();
    assert_eq!(texts.get("index.js").map(String::as_str), Some("let a"));
    assert!(texts.contains_key("lib/b.ts"));
    assert_eq!(extract(&vec![b'P'; ARCHIVE_BYTES_MAX + 1], None), Err(ArchiveFault::TooLarge));
    let half = "x".repeat(SOURCE_MAX);
    let names: Vec<String> = (0..40).map(|number| format!("{number}.js")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), &*half)).collect();
    assert_eq!(extract(&zipped(&many), None), Err(ArchiveFault::TooMuch));
}

#[test]
fn long_names_count_like_content() {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let long = "x".repeat(4_000);
    for number in 0..4_300 {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        builder.append_data(&mut header, format!("{number}{long}/a.js"), &b""[..]).unwrap();
    }
    let archive = builder.into_inner().unwrap().finish().unwrap();
    assert!(archive.len() < ARCHIVE_BYTES_MAX);
    assert_eq!(extract(&archive, None), Err(ArchiveFault::TooMuch));
}

#[test]
fn a_zip_bomb_is_not_extracted() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..200 {
        bomb.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < ARCHIVE_BYTES_MAX);
    assert!(!extract(&bomb, None).is_ok_and(|files| !files.is_empty()));
}

#[test]
fn what_is_damaged_is_refused() {
    assert_eq!(extract(b"", None), Err(ArchiveFault::Unknown));
    assert_eq!(extract(b"Rar!", None), Err(ArchiveFault::Unknown));
    let files = [("plugin.json", JSON), ("index.js", "1")];
    let whole = zipped(&files);
    for end in 0..whole.len() {
        assert!(extract(&whole[..end], None).is_err());
    }
    let whole = tarred(&files);
    for end in 0..whole.len() / 4 {
        assert!(extract(&whole[..end], None).is_err());
    }
}

/// A tar archive with a header of this kind before a file.
fn extended(kind: tar::EntryType, content: &mut dyn Read, size: u64) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_cksum();
    builder.append(&header, content).unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_path("index.js").unwrap();
    header.set_size(1);
    header.set_cksum();
    builder.append(&header, &b"1"[..]).unwrap();
    builder.into_inner().unwrap().finish().unwrap()
}

const KINDS: [tar::EntryType; 4] = [
    tar::EntryType::GNULongName,
    tar::EntryType::GNULongLink,
    tar::EntryType::XHeader,
    tar::EntryType::XGlobalHeader,
];

/// Hostile archives and their faults. Small ones decompress to large ones.
fn hostile() -> Vec<(Vec<u8>, ArchiveFault)> {
    let mut all = Vec::new();
    let bytes = 90_u64 << 20;
    for kind in KINDS {
        let mut content = std::io::repeat(b'a').take(bytes);
        all.push((extended(kind, &mut content, bytes), ArchiveFault::Extension));
    }
    let deep = format!("{}index.js", "a/".repeat(30 << 10));
    let deep = extended(KINDS[0], &mut deep.as_bytes(), deep.len() as u64);
    all.push((deep, ArchiveFault::Path));
    let record = b"20 size=99999999999\n";
    all.push((extended(KINDS[2], &mut &record[..], record.len() as u64), ArchiveFault::TooMuch));
    let mut sparse = std::io::empty();
    all.push((extended(tar::EntryType::GNUSparse, &mut sparse, 0), ArchiveFault::Damaged));
    all
}

#[test]
fn names_may_be_long_but_not_endless() {
    let named = |kind, content: &str| {
        extract(&extended(kind, &mut content.as_bytes(), content.len() as u64), None)
    };
    for (kind, content) in
        [(KINDS[0], "top/long.js\0"), (KINDS[2], "20 path=top/long.js\n"), (KINDS[1], "x")]
    {
        let files = named(kind, content).unwrap();
        let expected = if kind == KINDS[1] { "index.js" } else { "long.js" };
        assert_eq!(files.into_keys().collect::<Vec<_>>(), [expected], "{kind:?}");
    }
    for (archive, fault) in hostile() {
        assert!(archive.len() < 1 << 20);
        assert_eq!(extract(&archive, None), Err(fault));
    }
}

/// Runs in a separate process, so that only this code counts for its peak memory.
#[test]
fn hostile_archives_take_little_memory() {
    const ALONE: &str = "WEIR_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "code::archive::tests::hostile_archives_take_little_memory";
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads=1", "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&alone.stdout);
        assert!(alone.status.success() && output.contains("1 passed"), "{output}");
        return;
    }
    let most = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let archives = hostile();
    let before = most();
    for (archive, fault) in archives {
        assert_eq!(extract(&archive, None), Err(fault));
    }
    let grown = most() - before;
    assert!(grown < 32 << 10, "{grown} kB");
}

/// The corpus of the fuzz target `archives`.
#[test]
fn every_archive_of_the_corpus_has_an_outcome() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/archives");
    let files: Vec<_> =
        std::fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 4);
    for file in files {
        check_archive(&std::fs::read(file).unwrap());
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_come_to_an_outcome(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..2_000),
        cut in 0_usize..1_000,
        at in 0_usize..100_000,
    ) {
        check_archive(&bytes);
        let files = [("a/plugin.json", JSON), ("a/b/index.js", "1"), ("c.ts", "2")];
        for mut whole in [zipped(&files), tarred(&files)] {
            let (at, end) = (at % whole.len(), whole.len() - cut.min(whole.len()));
            whole[at] ^= bytes.first().copied().unwrap_or(1);
            check_archive(&whole);
            check_archive(&whole[..end]);
        }
    }
}
