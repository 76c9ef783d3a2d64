//! Facts about files for people: sizes of directories, and how numbers of bytes are shown.

use std::fs;
use std::path::Path;

/// Bytes of the files below a directory. A file that disappears meanwhile counts as 0.
pub fn size(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

/// A number of bytes in the largest unit of which there is one, such as `1.5 GiB`.
pub fn shown(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{shown, size};

    #[test]
    fn files_below_count() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("deep")).unwrap();
        fs::write(directory.path().join("a"), "abc").unwrap();
        fs::write(directory.path().join("deep/b"), "de").unwrap();
        assert_eq!(size(directory.path()), 5);
        assert_eq!(size(&directory.path().join("missing")), 0);
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1_024, "1.0 KiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ] {
            assert_eq!(shown(bytes), text);
        }
    }
}
