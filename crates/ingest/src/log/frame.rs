//! A record on disk: a fixed header and the payload, eight-byte aligned.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | magic |
//! | 4..8 | crc32c of bytes 8..56 |
//! | 8..16 | offset of this record in the log |
//! | 16..24 | offset up to which the log was synced before this record was written |
//! | 24..32 | project |
//! | 32..40 | arrival number of the first event |
//! | 40..44 | number of events |
//! | 44..48 | payload length |
//! | 48..52 | crc32c of the payload |
//! | 52..56 | 1 for live events, 2 for historical ones, 0 in older records |
//!
//! The offset in the header makes a record recognizable after damage. The synced offset
//! shows, after a crash, whether a broken record before this one was ever acknowledged.
//!
//! What belongs here: encoding and decoding one record. What does not: the encoding of
//! its payload (`batch`), files (`segment`).

/// Length of the header in bytes.
pub(super) const HEADER: usize = 56;
const MAGIC: u32 = 0x5745_4952;
/// Records begin at multiples of this number of bytes.
pub(super) const ALIGN: u64 = 8;

/// A decoded header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) offset: u64,
    pub(super) synced: u64,
    pub(super) project: i64,
    pub(super) first_arrival: u64,
    pub(super) count: u32,
    pub(super) length: u32,
    pub(super) payload_crc: u32,
    /// Whether the events are historical. `None` in older records.
    pub(super) historical: Option<bool>,
}

const LIVE: u32 = 1;
const HISTORICAL: u32 = 2;

impl Header {
    /// Bytes from the beginning of this record to the next one.
    pub(super) fn span(&self) -> u64 {
        (HEADER as u64 + u64::from(self.length)).next_multiple_of(ALIGN)
    }

    /// Appends header, payload and padding to `buffer`.
    pub(super) fn write(&self, payload: &[u8], buffer: &mut Vec<u8>) {
        let mut body = [0_u8; HEADER - 8];
        let kind = match self.historical {
            None => 0_u32,
            Some(false) => LIVE,
            Some(true) => HISTORICAL,
        };
        let fields: [&[u8]; 8] = [
            &self.offset.to_le_bytes(),
            &self.synced.to_le_bytes(),
            &self.project.to_le_bytes(),
            &self.first_arrival.to_le_bytes(),
            &self.count.to_le_bytes(),
            &self.length.to_le_bytes(),
            &self.payload_crc.to_le_bytes(),
            &kind.to_le_bytes(),
        ];
        let mut rest = body.as_mut_slice();
        for field in fields {
            let (head, tail) = rest.split_at_mut(field.len());
            head.copy_from_slice(field);
            rest = tail;
        }
        let start = buffer.len();
        buffer.extend_from_slice(&MAGIC.to_le_bytes());
        buffer.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        buffer.extend_from_slice(&body);
        buffer.extend_from_slice(payload);
        let span = usize::try_from(self.span()).unwrap_or(usize::MAX);
        buffer.resize(start + span, 0);
    }

    /// Reads a header that names `offset` as its own offset. `None` if there is no such
    /// header.
    pub(super) fn read(bytes: &[u8], offset: u64) -> Option<Self> {
        let (magic, rest) = take_u32(bytes)?;
        let (crc, rest) = take_u32(rest)?;
        let body = rest.get(..HEADER - 8)?;
        if magic != MAGIC || crc != crc32c::crc32c(body) {
            return None;
        }
        let (found, rest) = take_u64(body)?;
        let (synced, rest) = take_u64(rest)?;
        let (project, rest) = take_u64(rest)?;
        let (first_arrival, rest) = take_u64(rest)?;
        let (count, rest) = take_u32(rest)?;
        let (length, rest) = take_u32(rest)?;
        let (payload_crc, rest) = take_u32(rest)?;
        let (kind, _) = take_u32(rest)?;
        let historical = match kind {
            LIVE => Some(false),
            HISTORICAL => Some(true),
            _ => None,
        };
        let project = i64::from_le_bytes(project.to_le_bytes());
        let header = Self {
            offset: found,
            synced,
            project,
            first_arrival,
            count,
            length,
            payload_crc,
            historical,
        };
        (found == offset).then_some(header)
    }
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*head), rest))
}

fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*head), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back_and_damage_shows() {
        let payload = b"hello";
        let mut header = Header {
            offset: 128,
            synced: 64,
            project: -3,
            first_arrival: 9,
            count: 2,
            length: 5,
            payload_crc: crc32c::crc32c(payload),
            historical: None,
        };
        for historical in [Some(false), Some(true), None] {
            header.historical = historical;
            let mut buffer = Vec::new();
            header.write(payload, &mut buffer);
            assert_eq!(Header::read(&buffer, 128), Some(header));
        }
        let mut buffer = Vec::new();
        header.write(payload, &mut buffer);
        assert_eq!(buffer.len() as u64, header.span());
        assert_eq!(Header::read(&buffer, 128), Some(header));
        assert_eq!(Header::read(&buffer, 136), None, "a record copied elsewhere is not one");
        for byte in 0..HEADER {
            let mut damaged = buffer.clone();
            damaged[byte] ^= 1;
            assert_eq!(Header::read(&damaged, 128), None, "byte {byte}");
        }
    }
}
