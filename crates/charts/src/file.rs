//! Pixels as a PNG file: 8 bits for each of three colors, without a filter.

use std::io::Write as _;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use crate::canvas::Canvas;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Bits of a color, three colors, and the usual compression, filters and order.
const FORM: [u8; 5] = [8, 2, 0, 0, 0];
/// The pixels of a row follow as they are.
const NO_FILTER: u8 = 0;

/// The file of an image.
pub(crate) fn png(canvas: &Canvas) -> Vec<u8> {
    let (width, height) = canvas.size();
    let mut rows = Vec::with_capacity(height * (1 + width * 3));
    for row in canvas.rows() {
        rows.push(NO_FILTER);
        rows.extend(row.iter().flatten());
    }
    let mut header = Vec::new();
    header.extend(u32::try_from(width).unwrap_or_default().to_be_bytes());
    header.extend(u32::try_from(height).unwrap_or_default().to_be_bytes());
    header.extend(FORM);
    let mut file = SIGNATURE.to_vec();
    chunk(&mut file, *b"IHDR", &header);
    chunk(&mut file, *b"IDAT", &compressed(&rows));
    chunk(&mut file, *b"IEND", &[]);
    file
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing into memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Adds a part of the file: its length, kind and bytes, and the checksum of both.
fn chunk(file: &mut Vec<u8>, kind: [u8; 4], bytes: &[u8]) {
    let mut sum = Crc::new();
    sum.update(&kind);
    sum.update(bytes);
    file.extend(u32::try_from(bytes.len()).unwrap_or_default().to_be_bytes());
    file.extend(kind);
    file.extend(bytes);
    file.extend(sum.sum().to_be_bytes());
}
