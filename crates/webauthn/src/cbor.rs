//! The part of CBOR that authenticators write (CTAP 2): items of a definite
//! length, nested four deep.

/// Deepest nesting that is read.
const DEPTH: u8 = 4;

/// What is read of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    /// An array, a map, or a simple value, which is skipped.
    Other,
}

/// Reads items one after the other. `None`: the bytes are no such item.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What was not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Whether everything was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of members of a map. The caller reads key and value of each.
    pub(crate) fn map(&mut self) -> Option<u64> {
        match self.head()? {
            (5, members) => Some(members),
            _ => None,
        }
    }

    /// The next item.
    pub(crate) fn item(&mut self) -> Option<Item<'a>> {
        self.item_within(DEPTH)
    }

    fn item_within(&mut self, depth: u8) -> Option<Item<'a>> {
        let (kind, value) = self.head()?;
        Some(match kind {
            0 => Item::Integer(i64::try_from(value).ok()?),
            1 => Item::Integer(-1 - i64::try_from(value).ok()?),
            2 => Item::Bytes(self.take(value)?),
            3 => Item::Text(std::str::from_utf8(self.take(value)?).ok()?),
            4 => self.skip(value, depth)?,
            5 => self.skip(value.checked_mul(2)?, depth)?,
            7 => Item::Other,
            // A tag, which no authenticator writes.
            _ => return None,
        })
    }

    /// Skips the items of an array or of a map. Each takes at least a byte, so their number
    /// is bounded by the length of the text.
    fn skip(&mut self, items: u64, depth: u8) -> Option<Item<'a>> {
        let depth = depth.checked_sub(1)?;
        for _ in 0..items {
            self.item_within(depth)?;
        }
        Some(Item::Other)
    }

    /// The type of the next item, and its value or length.
    fn head(&mut self) -> Option<(u8, u64)> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        let value = match first & 31 {
            small @ 0..=23 => u64::from(small),
            size @ 24..=27 => {
                let bytes = self.take(1 << (size - 24))?;
                bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
            }
            // A length that is not known in advance.
            _ => return None,
        };
        Some((first >> 5, value))
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::{Item, Reader};

    #[test]
    fn items_are_read_and_skipped() {
        let mut reader = Reader::new(b"\xa2\x61a\x18\x20\x26\x82\x01\xa1\x02\xf5\x41z");
        assert_eq!(reader.map(), Some(2));
        assert_eq!(reader.item(), Some(Item::Text("a")));
        assert_eq!(reader.item(), Some(Item::Integer(32)));
        assert_eq!(reader.item(), Some(Item::Integer(-7)));
        assert_eq!(reader.item(), Some(Item::Other));
        assert_eq!(reader.item(), Some(Item::Bytes(b"z")));
        assert!(reader.is_at_end());
        assert_eq!(reader.item(), None);
    }

    #[test]
    fn what_authenticators_do_not_write_is_refused() {
        for bad in [
            &b"\x5f"[..],
            b"\x9f\xff",
            b"\xc0\x01",
            b"\x42a",
            b"\x61\xff",
            b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x81\x81\x81\x81\x81\x01",
        ] {
            assert_eq!(Reader::new(bad).item(), None, "{bad:?}");
        }
    }
}
