//! Compressed variants of files that the server sends: brotli and gzip.

use std::num::NonZeroU64;

use anyhow::Result;
use brotli::enc::BrotliEncoderParams;

/// File name extensions of formats that are not already compressed.
const COMPRESSIBLE: [&str; 10] =
    ["css", "html", "ico", "js", "json", "map", "svg", "txt", "wasm", "webmanifest"];

/// How often zopfli looks for a better encoding. More gain less than a thousandth.
const ITERATIONS: u64 = 5;
/// Into how many blocks zopfli splits a megabyte at most. Each block has codes of its own, and
/// the parts of a large file differ.
const BLOCKS: u16 = 60;

pub(crate) fn pays_off(extension: &str) -> bool {
    COMPRESSIBLE.contains(&extension)
}

pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let options = zopfli::Options {
        iteration_count: NonZeroU64::new(ITERATIONS).unwrap_or(NonZeroU64::MIN),
        maximum_block_splits: BLOCKS,
        ..zopfli::Options::default()
    };
    let mut compressed = Vec::new();
    zopfli::compress(options, zopfli::Format::Gzip, bytes, &mut compressed)?;
    Ok(compressed)
}

pub(crate) fn brotli(bytes: &[u8]) -> Result<Vec<u8>> {
    let parameters = BrotliEncoderParams {
        quality: 11,
        lgwin: 22,
        size_hint: bytes.len(),
        ..BrotliEncoderParams::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut compressed, &parameters)?;
    Ok(compressed)
}
