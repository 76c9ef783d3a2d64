//! Small changes to a file: random bytes rarely pass the first rule.

/// Texts and bytes that parsers treat specially.
const REPORTING: [&[u8]; 26] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"-",
    b"1e999",
    b"\\u0000",
    b"\\ud83e",
    b"\\udd80",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x1f\x8b",
    b"&",
    b"=",
    b"%",
    b"+",
    b"\"batch\":[",
    b"\"properties\":",
    b"\"$set\":{",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];
/// Maximum bytes of a variant.
const GROWN: usize = 1 << 16;

/// Pseudo-random numbers that are the same in every run (`SplitMix64`).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % end as u64).unwrap()
    }

    /// A random range within this length.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        // Usually short.
        let most = if self.below(4) == 0 { length } else { 16 };
        from..(from + self.below(most + 1)).min(length)
    }

    /// `bytes` with one to six changes; parts may come from `other`.
    pub(super) fn variant(&mut self, bytes: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(6) {
            self.change(&mut bytes, other);
        }
        bytes.truncate(GROWN);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let place = self.below(bytes.len() + 1);
        let range = self.range(bytes.len());
        match self.below(7) {
            0 if place < bytes.len() => bytes[place] ^= 1 << self.below(8),
            1 => drop(bytes.drain(range)),
            2 => bytes.truncate(place),
            3 => {
                let part = bytes[range].to_vec();
                bytes.splice(place..place, part);
            }
            4 => {
                let part = other[self.range(other.len())].to_vec();
                bytes.splice(place..place, part);
            }
            5 => drop(bytes.splice(range, REPORTING[self.below(REPORTING.len())].to_vec())),
            _ => {
                let telling = REPORTING[self.below(REPORTING.len())];
                bytes.splice(place..place, telling.to_vec());
            }
        }
    }
}
