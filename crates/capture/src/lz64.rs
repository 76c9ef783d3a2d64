//! Decompressing lz-string texts, which very old browser libraries send.
//!
//! Implemented here because of the limit: a few kilobytes of lz-string can decompress to
//! gigabytes, and the `lz-str` crate limits neither its result nor its dictionary, which
//! stores a copy of every phrase. Here a phrase is a range of the result, and both are
//! bounded.

/// Maximum phrases: 32 MiB at 8 bytes each. A text that compression makes smaller has far
/// fewer phrases within the body limit.
const PHRASE_LIMIT: usize = 4 * 1024 * 1024;

/// Command codes: a new character of 8 or of 16 bits follows, or the text ends. All other
/// codes are phrases.
const NEW_BYTE: usize = 0;
const NEW_UNIT: usize = 1;
const END: usize = 2;
const FIRST_PHRASE: usize = 3;

/// Why a text could not be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Not base64 of an lz-string text.
    Malformed,
    /// The result would exceed the limit.
    TooLarge,
}

/// Decompresses base64 of lz-string to a text of at most `limit` bytes. Single
/// surrogates, which JavaScript allows in texts, become U+FFFD.
pub(super) fn decompress(compressed: &[u8], limit: usize) -> Result<String, Fault> {
    let units = decompress_units(&mut Bits::new(compressed.trim_ascii()), limit)?;
    let mut text = String::with_capacity(units.len());
    for character in char::decode_utf16(units) {
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        if text.len() > limit {
            return Err(Fault::TooLarge);
        }
    }
    Ok(text)
}

/// The range of a phrase in the result.
#[derive(Clone, Copy)]
struct Phrase {
    from: u32,
    length: u32,
}

/// The UTF-16 units of the result. A unit takes at least one byte of UTF-8, so the limit
/// of bytes is also a limit of units.
fn decompress_units(bits: &mut Bits<'_>, limit: usize) -> Result<Vec<u16>, Fault> {
    let mut units: Vec<u16> = Vec::new();
    let mut phrases: Vec<Phrase> = Vec::new();
    let mut width = Width { bits: 3, left: 4 };

    let first = match bits.take(2)? {
        END => return Ok(units),
        command => bits.take_character(command)?,
    };
    units.push(first);
    let mut previous = Phrase { from: 0, length: 1 };
    phrases.push(previous);

    loop {
        let from = u32::try_from(units.len()).map_err(|_| Fault::TooLarge)?;
        let phrase = match bits.take(width.bits)? {
            END => return Ok(units),
            command @ (NEW_BYTE | NEW_UNIT) => {
                units.push(bits.take_character(command)?);
                let phrase = Phrase { from, length: 1 };
                phrases.push(phrase);
                width.phrase_added();
                phrase
            }
            code => {
                let index = code - FIRST_PHRASE;
                let source = match phrases.get(index) {
                    Some(known) => *known,
                    // The phrase that this step adds: the previous one and its first
                    // character.
                    None if index == phrases.len() => {
                        Phrase { length: previous.length + 1, ..previous }
                    }
                    None => return Err(Fault::Malformed),
                };
                if source.length as usize > limit.saturating_sub(units.len()) {
                    return Err(Fault::TooLarge);
                }
                for position in source.from..source.from + source.length {
                    let unit = units.get(position as usize).ok_or(Fault::Malformed)?;
                    units.push(*unit);
                }
                Phrase { from, length: source.length }
            }
        };
        // The previous phrase and the next character are adjacent in the result.
        phrases.push(Phrase { length: previous.length + 1, ..previous });
        width.phrase_added();
        previous = phrase;
        if units.len() > limit || phrases.len() > PHRASE_LIMIT {
            return Err(Fault::TooLarge);
        }
    }
}

/// The number of bits of a code: one more each time the number of phrases doubles.
struct Width {
    bits: u32,
    left: usize,
}

impl Width {
    fn phrase_added(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.left = 1 << self.bits;
            self.bits += 1;
        }
    }
}

/// Reads numbers, lowest bit first, from base64 symbols, highest bit first.
struct Bits<'a> {
    symbols: &'a [u8],
    symbol: usize,
    left: u32,
}

impl<'a> Bits<'a> {
    fn new(symbols: &'a [u8]) -> Self {
        Self { symbols, symbol: 0, left: 0 }
    }

    fn take(&mut self, bits: u32) -> Result<usize, Fault> {
        let mut number = 0;
        for bit in 0..bits {
            if self.left == 0 {
                let (first, rest) = self.symbols.split_first().ok_or(Fault::Malformed)?;
                self.symbol = symbol_value(*first).ok_or(Fault::Malformed)?;
                self.symbols = rest;
                self.left = 6;
            }
            self.left -= 1;
            number |= (self.symbol >> self.left & 1) << bit;
        }
        Ok(number)
    }

    fn take_character(&mut self, command: usize) -> Result<u16, Fault> {
        let number = match command {
            NEW_BYTE => self.take(8)?,
            NEW_UNIT => self.take(16)?,
            _ => return Err(Fault::Malformed),
        };
        u16::try_from(number).map_err(|_| Fault::Malformed)
    }
}

fn symbol_value(symbol: u8) -> Option<usize> {
    let value = match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        b'=' => 0,
        _ => return None,
    };
    Some(usize::from(value))
}

#[cfg(test)]
mod tests {
    use super::{Fault, decompress};

    #[test]
    fn text_compressed_by_the_library_is_decompressed() {
        let long = "{\"event\":\"ñandú 🦆\",\"n\":[1,2,3]},".repeat(500);
        let many: String = (0..60_000_u32).filter_map(char::from_u32).collect();
        for text in ["", "a", "aaaaaaaaaaaa", "{\"a\":1}", "Ünï©ode 🦆🦆", &long, &many] {
            let compressed = lz_str::compress_to_base64(text);
            assert_eq!(decompress(compressed.as_bytes(), 1 << 20).as_deref(), Ok(text));
        }
    }

    #[test]
    fn stops_at_the_limit() {
        let compressed = lz_str::compress_to_base64(&"a".repeat(1000));
        assert!(decompress(compressed.as_bytes(), 1000).is_ok());
        assert_eq!(decompress(compressed.as_bytes(), 999), Err(Fault::TooLarge));
        let wide = lz_str::compress_to_base64(&"ñ".repeat(500));
        assert!(decompress(wide.as_bytes(), 1000).is_ok());
        assert_eq!(decompress(wide.as_bytes(), 999), Err(Fault::TooLarge));
    }

    #[test]
    fn halves_of_pairs_are_replaced() {
        let compressed = lz_str::compress_to_base64([0x61_u16, 0xD83E, 0x62].as_slice());
        assert_eq!(decompress(compressed.as_bytes(), 100).as_deref(), Ok("a\u{FFFD}b"));
    }

    #[test]
    fn a_bomb_costs_no_more_than_the_limit() {
        // Every code refers to the phrase that is being added, each one longer than the
        // last: the result grows with the square of the input.
        let compressed = lz_str::compress_to_base64(&"a".repeat(1 << 16));
        assert!(compressed.len() < 1 << 10, "{}", compressed.len());
        assert_eq!(decompress(compressed.as_bytes(), 1 << 15), Err(Fault::TooLarge));
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in ["A", "{\"a\":1}", "////", "=", "N4Ig LgrgT"] {
            assert_eq!(decompress(text.as_bytes(), 1000), Err(Fault::Malformed), "{text}");
        }
    }
}
