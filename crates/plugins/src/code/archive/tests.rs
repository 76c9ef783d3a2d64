//! Tests with ordinary and hostile archives.

use std::io::Write as _;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::checks::check_archive;
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
fn the_one_folder_of_everything_is_omitted() {
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
fn what_is_no_source_is_skipped() {
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

/// The record at the end of a zip archive whose directory begins at `directory`.
fn end_of_zip(entries: u16, directory: usize) -> Vec<u8> {
    let mut record = ZIP_END.to_vec();
    record.extend([0; 4]);
    record.extend([entries.to_le_bytes(); 2].concat());
    record.extend([0; 4]);
    record.extend(u32::try_from(directory).unwrap().to_le_bytes());
    record.extend([0; 2]);
    record
}

/// A directory of this many empty entries, and end records that announce `entries` each.
fn repeated_ends(headers: usize, records: usize, entries: u16) -> Vec<u8> {
    let header = [&b"PK\x01\x02"[..], &[0; 42]].concat();
    let ends = end_of_zip(entries, 0).repeat(records);
    [header.repeat(headers), ends].concat()
}

/// Entries that have the same content: half a megabyte that decompresses to nothing.
fn shared_content(entries: u16) -> Vec<u8> {
    let blocks = [&[0, 0, 0, 0xff, 0xff].repeat(100_000)[..], &[1, 0, 0, 0xff, 0xff]].concat();
    let length = u32::try_from(blocks.len()).unwrap().to_le_bytes();
    // Deflated, and with a name of seven bytes.
    let fields = [&[20, 0, 0, 0, 8, 0], &[0; 8][..], &length, &[0; 4], &[7, 0, 0, 0]].concat();
    let mut archive = [b"PK\x03\x04", &fields[..], b"0000.js", &blocks].concat();
    let directory = archive.len();
    for number in 0..entries {
        let name = format!("{number:04}.js");
        archive.extend([b"PK\x01\x02\x14\0", &fields[..], &[0; 14], name.as_bytes()].concat());
    }
    archive.extend(end_of_zip(entries, directory));
    archive
}

/// Archives of a megabyte that would be read thousands of times.
fn read_too_often() -> Vec<(Vec<u8>, ArchiveFault)> {
    let most = u16::try_from(ENTRIES_MAX).unwrap();
    let locator = [ZIP64_LOCATOR, &[0; ZIP64_LOCATOR_BYTES - 4]].concat();
    let large_form = [repeated_ends(10, 0, 0), locator, end_of_zip(u16::MAX, 0)].concat();
    vec![
        (repeated_ends(ENTRIES_MAX - 1, 20_000, most), ArchiveFault::Damaged),
        (repeated_ends(11_000, 20_000, u16::MAX), ArchiveFault::TooMuch),
        // Records without a directory, which is searched for.
        (repeated_ends(0, 40_000, 1), ArchiveFault::Damaged),
        (large_form, ArchiveFault::TooMuch),
        (shared_content(5_000), ArchiveFault::Damaged),
    ]
}

/// Hostile archives and their faults. Small ones decompress to large ones, or are read
/// again and again.
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
    all.extend(read_too_often());
    all
}

#[test]
fn archives_take_time_in_proportion_to_their_length() {
    let time = |archive: &[u8]| {
        let runs = (0..3).map(|_| {
            let began = Instant::now();
            let _ = extract(archive, None);
            began.elapsed()
        });
        runs.min().unwrap()
    };
    let names: Vec<String> = (0..ENTRIES_MAX).map(|number| format!("{number:04}.js")).collect();
    let plain: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let plain = zipped(&plain);
    assert!(plain.len() < 2 << 20 && extract(&plain, None).unwrap().len() == ENTRIES_MAX);
    let plain = time(&plain);
    for (archive, _) in read_too_often() {
        let took = time(&archive);
        assert!(took < plain * 30, "{took:?} instead of {plain:?}");
    }
}

#[test]
fn an_archive_within_an_archive_does_no_harm() {
    let inner = zipped(&[("plugin.json", "{}")]);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in [("plugin.json", JSON.as_bytes()), ("inner.zip", &inner)] {
        writer.start_file(name, stored).unwrap();
        writer.write_all(content).unwrap();
    }
    let files = extract(&writer.finish().unwrap().into_inner(), None).unwrap();
    assert_eq!(files.into_iter().collect::<Vec<_>>(), [("plugin.json".into(), JSON.into())]);
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
