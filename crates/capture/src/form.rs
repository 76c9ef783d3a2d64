//! The fields that capture reads from a query string or a form body.
//!
//! What belongs here: finding the fields and percent-decoding them. What does not: their
//! meaning (`decode`).

use std::borrow::Cow;

/// The decoded fields; if a field is given twice, the last one. Values are bytes, because
/// a payload may be binary.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields<'a> {
    /// `data`: the payload.
    pub(super) data: Option<Cow<'a, [u8]>>,
    /// `compression`: the compression of the payload.
    pub(super) compression: Option<Cow<'a, [u8]>>,
    /// `_`: time of sending, in milliseconds.
    pub(super) sent_at: Option<Cow<'a, [u8]>>,
    /// `ip`: `0` asks not to store the address.
    pub(super) ip: Option<Cow<'a, [u8]>>,
}

impl<'a> Fields<'a> {
    /// Parses `name=value&…`; other names are ignored.
    pub(super) fn read(text: &'a [u8]) -> Self {
        let mut fields = Self::default();
        for pair in text.split(|byte| *byte == b'&') {
            let mut parts = pair.splitn(2, |byte| *byte == b'=');
            let name = parts.next().unwrap_or_default();
            let Some(value) = parts.next() else { continue };
            let field = match percent_decode(name).as_ref() {
                b"data" => &mut fields.data,
                b"compression" => &mut fields.compression,
                b"_" => &mut fields.sent_at,
                b"ip" => &mut fields.ip,
                _ => continue,
            };
            *field = Some(percent_decode(value));
        }
        fields
    }

    /// Whether any of the fields is there.
    pub(super) fn any(&self) -> bool {
        self.data.is_some()
            || self.compression.is_some()
            || self.sent_at.is_some()
            || self.ip.is_some()
    }
}

/// Whether text begins like a form with one of the fields. Checks only the first 128
/// bytes.
pub(super) fn looks_like_form(text: &[u8]) -> bool {
    let start = text.get(..128).unwrap_or(text);
    start.split(|byte| *byte == b'&').any(|pair| {
        [&b"data="[..], b"compression=", b"_=", b"ip="].iter().any(|name| pair.starts_with(name))
    })
}

/// `+` is a blank, `%XX` a byte. A `%` without two hexadecimal digits is kept, as
/// browsers do.
fn percent_decode(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match (first, behind) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, behind @ ..]) => match hex(*high).zip(hex(*low)) {
                Some((high, low)) => {
                    bytes.push(high << 4 | low);
                    rest = behind;
                }
                None => bytes.push(b'%'),
            },
            _ => bytes.push(*first),
        }
    }
    Cow::Owned(bytes)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::{Fields, looks_like_form, percent_decode};

    #[test]
    fn percent_encoding() {
        for (text, bytes) in [
            ("abc", &b"abc"[..]),
            ("a+b%20c", b"a b c"),
            ("%2B%2f%3D", b"+/="),
            ("%1F%8b", b"\x1f\x8b"),
            ("%", b"%"),
            ("%2", b"%2"),
            ("%zz%41", b"%zzA"),
            ("100%+", b"100% "),
        ] {
            assert_eq!(percent_decode(text.as_bytes()).as_ref(), bytes, "{text}");
        }
    }

    #[test]
    fn fields() {
        let fields = Fields::read(b"ver=1.1&data=a%3D&ip=0&_=17&compression=gzip&data=b");
        assert_eq!(fields.data.as_deref(), Some(&b"b"[..]));
        assert_eq!(fields.compression.as_deref(), Some(&b"gzip"[..]));
        assert_eq!(fields.sent_at.as_deref(), Some(&b"17"[..]));
        assert_eq!(fields.ip.as_deref(), Some(&b"0"[..]));
        assert!(fields.any());
        for none in ["", "&&", "data", "ver=1", "{\"data\":\"=\"}"] {
            assert!(!Fields::read(none.as_bytes()).any(), "{none}");
        }
    }

    #[test]
    fn form_detection() {
        for form in ["data=x", "ver=1&data=x", "_=1", "ip=1&x", "compression=gzip"] {
            assert!(looks_like_form(form.as_bytes()), "{form}");
        }
        for other in ["", "eyJhIjoxfQ==", "{\"data\":1}", "mydata=x"] {
            assert!(!looks_like_form(other.as_bytes()), "{other}");
        }
    }
}
