use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Input, LINE_LIMIT, Line, Lines};
use crate::error::ImportError;

fn file(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

fn open(path: &Path) -> Lines {
    Input::open(path).unwrap().lines(Arc::default()).unwrap()
}

/// Lines as text; errors in brackets.
fn all(lines: &mut Lines) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        all.push(match line {
            Line::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Line::TooLong => "[too long]".to_owned(),
            Line::Damaged(_) => "[damaged]".to_owned(),
        });
    }
    all
}

#[test]
fn lines_end_in_any_way_and_may_be_blank() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "a", b"\xef\xbb\xbfone\r\n\n  two \nthree");
    let mut lines = open(&path);
    assert_eq!(all(&mut lines), ["one", "", "two", "three"]);
    assert_eq!(lines.number(), 4);
    assert_eq!(lines.next().unwrap(), None);
    assert!(all(&mut open(&file(folder.path(), "b", b""))).is_empty());
}

#[test]
fn gzip_is_known_by_its_bytes_and_may_have_members() {
    let folder = tempfile::tempdir().unwrap();
    let compressed = [gzip(b"one\ntw"), gzip(b"o\n")].concat();
    let path = file(folder.path(), "a.jsonl", &compressed);
    let read = Arc::new(AtomicU64::new(0));
    let mut lines = Input::open(&path).unwrap().lines(read.clone()).unwrap();
    assert_eq!(all(&mut lines), ["one", "two"]);
    assert_eq!(read.load(Ordering::Relaxed), compressed.len() as u64);
}

#[test]
fn damaged_gzip_gives_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..50_000).map(|n| format!("line {n} {}\n", n * 7919 % 65_537)).collect();
    let compressed = gzip(text.as_bytes());
    let cut = &compressed[..compressed.len() / 2];
    let mut garbled = compressed.clone();
    garbled[compressed.len() / 2..].fill(0xff);
    let mut trailing = compressed.clone();
    trailing.extend_from_slice(b"garbage");
    for (name, content) in [("cut", cut), ("garbled", &garbled), ("trailing", &trailing)] {
        let found = all(&mut open(&file(folder.path(), name, content)));
        let (last, whole) = found.split_last().unwrap();
        assert_eq!(last, "[damaged]", "{name}");
        let expected: Vec<_> = text.lines().collect();
        assert!(whole.len() > 10_000, "{name}");
        assert_eq!(whole[..10_000], expected[..10_000], "{name}");
    }
}

#[test]
fn a_long_line_is_not_held() {
    let folder = tempfile::tempdir().unwrap();
    let long = vec![b'x'; LINE_LIMIT + 1];
    let content = [b"one\n", &long[..], b"\ntwo\n", &long[..]].concat();
    let mut lines = open(&file(folder.path(), "a", &content));
    assert_eq!(all(&mut lines), ["one", "[too long]", "two", "[too long]"]);
    assert!(lines.buffer.capacity() <= 2 * LINE_LIMIT);
}

#[test]
fn a_checkpoint_says_how_far_the_file_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let marks = |content: &[u8]| {
        let mut lines = open(&file(folder.path(), "a", content));
        lines.next().unwrap();
        lines.mark()
    };
    let mark = marks(b"one\ntwo\n");
    assert_eq!((mark.line, mark.bytes), (1, 4));
    assert_eq!(mark, marks(b"one\nother\n"));
    assert_eq!(mark, marks(&gzip(b"one\ntwo\n")));
    assert_ne!(mark, marks(b"uno\ntwo\n"));
}

#[test]
fn what_is_no_file_of_lines_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Input::open(folder.path()), Err(ImportError::NotAFile { .. })));
    let missing = folder.path().join("missing");
    assert!(matches!(Input::open(&missing), Err(ImportError::Read { .. })));
    for content in [&b"PK\x03\x04rest"[..], b"\x28\xb5\x2f\xfdrest"] {
        let error = Input::open(&file(folder.path(), "a", content)).unwrap_err();
        assert!(error.to_string().contains("decompress it first"), "{error}");
    }
}

#[test]
fn a_file_is_known_again() {
    let folder = tempfile::tempdir().unwrap();
    let identity =
        |content: &[u8]| Input::open(&file(folder.path(), "a", content)).unwrap().identity;
    let content = vec![b'a'; 200_000];
    assert_eq!(identity(&content), identity(&content));
    let mut end = content.clone();
    end[199_999] = b'b';
    assert_ne!(identity(&content), identity(&end));
    assert_ne!(identity(&content), identity(&content[1..]));
}
