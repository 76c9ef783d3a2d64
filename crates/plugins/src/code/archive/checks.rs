//! Checks for tests and the fuzz target `archives` (`fuzz/`): they hold for every archive,
//! valid or not.

use super::{ArchiveFault, FOLDERS_MAX, KEPT_MAX, PATH_MAX, extract};

/// The result is texts within the limits, or a fault.
pub(crate) fn check_archive(bytes: &[u8]) {
    for folder in [None, Some("a"), Some("a/b")] {
        let Ok(files) = extract(bytes, folder) else { continue };
        let size: usize = files.values().map(String::len).sum();
        assert!(size <= KEPT_MAX, "{size} bytes are kept");
        for name in files.keys() {
            assert!(name.len() <= PATH_MAX, "a name of {} bytes", name.len());
            let parts: Vec<&str> = name.split('/').collect();
            assert!(parts.len() <= FOLDERS_MAX, "{name:?}");
            assert!(!parts.iter().any(|part| matches!(*part, "" | "." | "..")), "{name:?}");
            assert!(!name.contains(['\\', '\0']), "{name:?}");
        }
    }
    let is_known = bytes.starts_with(b"PK") || bytes.starts_with(&[0x1f, 0x8b]);
    assert!(is_known || extract(bytes, None) == Err(ArchiveFault::Unknown));
}
