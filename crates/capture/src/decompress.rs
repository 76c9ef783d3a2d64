//! Decompression within a limit (ING-19).
//!
//! What belongs here: one bounded decoder per format. A small body can decompress to
//! gigabytes, so each decoder stops at the limit and does not check afterwards. What does
//! not: choosing the format of a body (`decode`).

use std::io::Read;

use brotli_decompressor::BrotliDecoderParameter;

/// The maximum window of a zstd frame, as a power of two: every receiver on the web must
/// support it and need not support more (RFC 9659).
const ZSTD_WINDOW: u32 = 23;

/// Why a body was not decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The result would exceed the limit.
    TooLarge,
    /// It is not in the format, or is truncated.
    Malformed,
}

/// Decompresses gzip, including several members, to at most `limit` bytes.
#[expect(clippy::disallowed_methods, reason = "capped below")]
pub(super) fn gzip(compressed: &[u8], limit: usize) -> Result<Vec<u8>, Fault> {
    capped(flate2::bufread::MultiGzDecoder::new(compressed), compressed.len(), limit)
}

/// Decompresses zlib, which HTTP calls `deflate`.
#[expect(clippy::disallowed_methods, reason = "capped below")]
pub(super) fn zlib(compressed: &[u8], limit: usize) -> Result<Vec<u8>, Fault> {
    capped(flate2::bufread::ZlibDecoder::new(compressed), compressed.len(), limit)
}

/// Decompresses brotli.
pub(super) fn brotli(compressed: &[u8], limit: usize) -> Result<Vec<u8>, Fault> {
    const BUFFER: usize = 16 << 10;
    let mut decoder = brotli_decompressor::Decompressor::new(compressed, BUFFER);
    // An extension with windows of up to a gigabyte, which HTTP does not use.
    decoder.set_parameter(BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
    capped(decoder, compressed.len(), limit)
}

/// Decompresses zstd, including several frames.
pub(super) fn zstd(compressed: &[u8], limit: usize) -> Result<Vec<u8>, Fault> {
    let mut decoder =
        zstd::stream::read::Decoder::with_buffer(compressed).map_err(|_| Fault::Malformed)?;
    decoder.window_log_max(ZSTD_WINDOW).map_err(|_| Fault::Malformed)?;
    capped(decoder, compressed.len(), limit)
}

fn capped(reader: impl Read, compressed: usize, limit: usize) -> Result<Vec<u8>, Fault> {
    // JSON compresses to about an eighth; a good estimate saves copying. The size in the
    // header of a format is not trusted.
    let mut bytes = Vec::with_capacity(compressed.saturating_mul(8).min(limit));
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(one_more).read_to_end(&mut bytes).map_err(|_| Fault::Malformed)?;
    if bytes.len() > limit { Err(Fault::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::{Fault, brotli, gzip, zlib, zstd};

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlibbed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn brotlied(bytes: &[u8], window: u32) -> Vec<u8> {
        let mut compressed = Vec::new();
        let mut encoder = ::brotli::CompressorWriter::new(&mut compressed, 4096, 5, window);
        encoder.write_all(bytes).unwrap();
        drop(encoder);
        compressed
    }

    type Decompress = fn(&[u8], usize) -> Result<Vec<u8>, Fault>;

    /// A text in the four formats.
    fn compressed(bytes: &[u8]) -> [(Decompress, Vec<u8>); 4] {
        [
            (gzip, gzipped(bytes)),
            (zlib, zlibbed(bytes)),
            (brotli, brotlied(bytes, 22)),
            (zstd, ::zstd::bulk::compress(bytes, 1).unwrap()),
        ]
    }

    #[test]
    fn compressed_bytes_are_restored() {
        for text in [&b""[..], b"{}", &b"kettle ".repeat(10_000)] {
            for (decompress, body) in compressed(text) {
                assert_eq!(decompress(&body, 70_000).as_deref(), Ok(text));
            }
        }
    }

    #[test]
    fn other_bytes_are_malformed() {
        for (decompress, body) in compressed(&b"kettle ".repeat(10_000)) {
            let half = &body[..body.len() / 2];
            // zlib returns the available part; the text is truncated.
            let torn = decompress(half, 70_000);
            assert!(torn.is_err() || torn.is_ok_and(|text| text.len() < 70_000));
            assert_eq!(decompress(b"{\"event\":\"a\"}", 70_000), Err(Fault::Malformed));
        }
    }

    #[test]
    fn decompression_stops_at_the_limit() {
        // 64 KiB of zeros with limits of 1 KiB, one byte less, and exactly the size.
        for (decompress, bomb) in compressed(&[0; 65_536]) {
            assert_eq!(decompress(&bomb, 1024), Err(Fault::TooLarge));
            assert_eq!(decompress(&bomb, 65_535), Err(Fault::TooLarge));
            assert_eq!(decompress(&bomb, 65_536).map(|bytes| bytes.len()), Ok(65_536));
        }
        // The damaged end is never reached.
        let bomb = gzipped(&[0; 65_536]);
        assert_eq!(gzip(&bomb[..bomb.len() - 4], 1024), Err(Fault::TooLarge));
    }

    #[test]
    fn memory_is_not_the_senders_to_choose() {
        // A frame that asks for a window of 128 MiB.
        let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(b"{}").unwrap();
        let frame = encoder.finish().unwrap();
        assert_eq!(zstd(&frame, 70_000), Err(Fault::Malformed));
    }
}
