//! Content hashes, for file names and for detecting whether work is needed.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// A hash of sixteen hexadecimal digits. The server treats files with a name part of this
/// length as immutable, and lets browsers cache them.
pub(crate) fn short(bytes: &[u8]) -> String {
    of(&[bytes]).chars().take(16).collect()
}

/// The hash of several inputs, including their boundaries.
pub(crate) fn of(inputs: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for input in inputs {
        hash.update((input.len() as u64).to_le_bytes());
        hash.update(input);
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
