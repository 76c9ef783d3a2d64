//! Compressed variants of files that the server sends: brotli and gzip.

use std::io::Write;

use anyhow::Result;
use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;

/// File name extensions of formats that are not already compressed.
const COMPRESSIBLE: [&str; 10] =
    ["css", "html", "ico", "js", "json", "map", "svg", "txt", "wasm", "webmanifest"];

pub(crate) fn pays_off(extension: &str) -> bool {
    COMPRESSIBLE.contains(&extension)
}

pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
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
