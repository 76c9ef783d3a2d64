//! Content hashes, for file names and for telling whether work is needed.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Sixteen hexadecimal digits. The server takes a name with so long a part for
/// one that never changes, and lets browsers keep the file.
pub(crate) fn short(bytes: &[u8]) -> String {
    of(&[bytes]).chars().take(16).collect()
}

/// The hash of several inputs; their borders count.
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
