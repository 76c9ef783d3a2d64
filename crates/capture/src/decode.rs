//! From a request to the text of its payload (ING-17, ING-19).
//!
//! What belongs here: finding the payload (query, form or body), removing layers of
//! base64 and compression, and the limits of bytes. What does not: the content of the
//! text (`shape`), and HTTP beyond the four strings of [`CaptureRequest`].

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use chrono::{DateTime, Datelike, Utc};

use super::error::CaptureError;
use super::form::{Fields, looks_like_form};
use super::{decompress, lz64};

/// Maximum bytes of a body, both as sent and decompressed (ING-19).
pub const BODY_LIMIT: usize = 20_000_000;

/// The path of a request (ING-13, ING-14, ING-15). All paths accept all shapes of bodies.
/// They differ in details, and in what is done with the events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturePath {
    /// `/capture`
    Capture,
    /// `/batch`
    Batch,
    /// `/e`
    E,
    /// `/i/v0/e`
    I0E,
    /// `/track`
    Track,
    /// `/engage`
    Engage,
    /// `/s`: recordings, which are not stored.
    Recordings,
    /// `/flags` and `/decide`: a question with a project key, without an event.
    Settings,
}

impl CapturePath {
    /// Whether base64 is removed again after decompression (ING-18).
    pub const fn takes_inner_base64(self) -> bool {
        match self {
            Self::Capture
            | Self::E
            | Self::Track
            | Self::Engage
            | Self::Recordings
            | Self::Settings => true,
            Self::Batch | Self::I0E => false,
        }
    }

    /// Whether an event without a name is a person update (ING-13): the value of
    /// [`Context::engage`](super::Context::engage).
    pub const fn is_engage(self) -> bool {
        matches!(self, Self::Engage)
    }
}

/// The parts of a request that determine its payload.
#[derive(Debug, Clone)]
pub struct CaptureRequest<'a> {
    /// The path of the request.
    pub path: CapturePath,
    /// The query string as sent, without `?`.
    pub query: Option<&'a str>,
    /// The Content-Type header.
    pub content_type: Option<&'a str>,
    /// The Content-Encoding header.
    pub content_encoding: Option<&'a str>,
    /// The body as sent.
    pub body: Bytes,
}

/// A decoded payload: text that is not parsed yet, and the parameters of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    text: String,
    sent_at: Option<DateTime<Utc>>,
    hides_address: bool,
}

impl Payload {
    /// A payload that needs no decoding, such as a line of an import file.
    pub const fn from_text(text: String) -> Self {
        Self { text, sent_at: None, hides_address: false }
    }

    /// The text, at most [`BODY_LIMIT`] bytes when it comes from [`decode`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Time of sending by the sender's clock, from `_` in the query or form (ING-38). A
    /// time in the body takes precedence: use [`Batch::sent_at`](super::Batch::sent_at).
    pub const fn sent_at(&self) -> Option<DateTime<Utc>> {
        self.sent_at
    }

    /// Whether the sender requested with `ip=0` not to store its address (ING-35).
    pub const fn hides_address(&self) -> bool {
        self.hides_address
    }
}

/// Finds the payload of a request and decodes it to text.
///
/// The text is only checked to be UTF-8, not to be JSON. A base64 layer that cannot be
/// decoded is kept, and the parser refuses it.
///
/// # Errors
/// [`CaptureError::InvalidPayload`] if there is no payload or it cannot be decoded,
/// [`CaptureError::PayloadTooLarge`] above [`BODY_LIMIT`] before or after decompression.
/// Decompression stops at the limit.
pub fn decode(request: CaptureRequest<'_>) -> Result<Payload, CaptureError> {
    if request.body.len() > BODY_LIMIT {
        return Err(CaptureError::PayloadTooLarge { limit: BODY_LIMIT });
    }
    let query = Fields::read(request.query.unwrap_or_default().as_bytes());
    let outer_hint = Hint::of(query.compression.as_deref())
        .or_else(|| Hint::of(request.content_encoding.map(str::as_bytes)));

    let from_query = query.data.as_deref().filter(|data| !data.is_empty());
    let source = match from_query {
        Some(data) => restore_plus(Cow::Borrowed(data)).into_owned(),
        None if request.body.is_empty() => {
            return Err(CaptureError::invalid("The request has neither a body nor `data`."));
        }
        None => Vec::from(request.body),
    };
    // An lz-string text is itself base64.
    let source = if outer_hint == Some(Hint::Lz64) || looks_like_form(&source) {
        source
    } else {
        without_base64(source, Alignment::Required)
    };

    // Gzip is recognised by its first bytes, before the content type counts (ING-3).
    let is_form = from_query.is_none() && is_form_type(request.content_type) && !is_gzip(&source);
    let form = if is_form { read_form(&source)? } else { Fields::default() };
    let hint = Hint::of(query.compression.as_deref())
        .or_else(|| Hint::of(form.compression.as_deref()))
        .or(outer_hint);
    let sent_at = query.sent_at.as_deref().or(form.sent_at.as_deref()).and_then(read_sent_at);
    let hides_address = query.ip.as_deref().or(form.ip.as_deref()) == Some(b"0");

    let compressed = match form.data {
        Some(data) => {
            let data = restore_plus(data).into_owned();
            if hint == Some(Hint::Lz64) { data } else { without_base64(data, Alignment::Any) }
        }
        None if is_form => {
            return Err(CaptureError::invalid("The form has no `data`."));
        }
        None => source,
    };
    let bytes = decompressed(compressed, hint)?;
    let bytes = if request.path.takes_inner_base64() || hint == Some(Hint::Base64) {
        without_base64(bytes, Alignment::Any)
    } else {
        bytes
    };
    let text = into_text(bytes, request.content_encoding)?;
    Ok(Payload { text, sent_at, hides_address })
}

/// The compression that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hint {
    Gzip,
    Lz64,
    Base64,
}

impl Hint {
    /// Unknown words are ignored.
    fn of(word: Option<&[u8]>) -> Option<Self> {
        let word = word?.trim_ascii();
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is("gzip") || is("gzip-js") {
            Some(Self::Gzip)
        } else if is("lz64") || is("lz-string") {
            Some(Self::Lz64)
        } else if is("base64") || is("b64") {
            Some(Self::Base64)
        } else {
            None
        }
    }
}

fn is_form_type(content_type: Option<&str>) -> bool {
    let name = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    name.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

fn read_form(body: &[u8]) -> Result<Fields<'_>, CaptureError> {
    let form = Fields::read(body);
    if form.any() {
        return Ok(form);
    }
    Err(CaptureError::invalid(
        "The content type announces a form, but the body is none; send JSON as `application/json`.",
    ))
}

pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

fn decompressed(bytes: Vec<u8>, hint: Option<Hint>) -> Result<Vec<u8>, CaptureError> {
    const TOO_LARGE: CaptureError = CaptureError::PayloadTooLarge { limit: BODY_LIMIT };
    if is_gzip(&bytes) || hint == Some(Hint::Gzip) {
        return decompress::gzip(&bytes, BODY_LIMIT).map_err(|fault| match fault {
            decompress::Fault::TooLarge => TOO_LARGE,
            decompress::Fault::Malformed => CaptureError::invalid("The payload is not valid gzip."),
        });
    }
    if hint == Some(Hint::Lz64) {
        return match lz64::decompress(&bytes, BODY_LIMIT) {
            Ok(text) => Ok(text.into_bytes()),
            Err(lz64::Fault::TooLarge) => Err(TOO_LARGE),
            Err(lz64::Fault::Malformed) => {
                Err(CaptureError::invalid("The payload is announced as lz64, but is not."))
            }
        };
    }
    Ok(bytes)
}

/// Whether the length of a base64 text must be a multiple of four.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alignment {
    Required,
    Any,
}

/// Decodes base64 if the bytes appear to be base64.
fn without_base64(bytes: Vec<u8>, alignment: Alignment) -> Vec<u8> {
    let text = bytes.trim_ascii();
    if !looks_like_base64(text) || alignment == Alignment::Required && !text.len().is_multiple_of(4)
    {
        return bytes;
    }
    let engine =
        if text.iter().any(|byte| matches!(byte, b'-' | b'_')) { &URL_SAFE } else { &STANDARD };
    engine.decode(text).unwrap_or(bytes)
}

/// Padding is often lost in URLs, so it is optional.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Whether the first 128 bytes can be base64. JSON never can.
fn looks_like_base64(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().take(128).all(|byte| is_base64(*byte))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Restores `+` in base64 where URL decoding replaced it by a blank.
fn restore_plus(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let starts_right = text.iter().take(128).all(|byte| is_base64(*byte) || *byte == b' ');
    if !starts_right || !text.contains(&b' ') {
        return text;
    }
    let mut bytes = text.into_owned();
    for byte in &mut bytes {
        if *byte == b' ' {
            *byte = b'+';
        }
    }
    Cow::Owned(bytes)
}

fn into_text(bytes: Vec<u8>, content_encoding: Option<&str>) -> Result<String, CaptureError> {
    let mut text = String::from_utf8(bytes).map_err(|_| {
        let known = content_encoding.is_none_or(|word| {
            word.eq_ignore_ascii_case("identity") || Hint::of(Some(word.as_bytes())).is_some()
        });
        CaptureError::invalid(if known {
            "The payload is not UTF-8 text."
        } else {
            "The payload is not UTF-8 text; its content encoding is not supported, send gzip or none."
        })
    })?;
    // Some tools begin a file with a byte order mark, which JSON does not allow.
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Milliseconds since 1970. Values up to 2020 are other cache busters or wrong clocks.
fn read_sent_at(digits: &[u8]) -> Option<DateTime<Utc>> {
    let milliseconds = std::str::from_utf8(digits).ok()?.trim().parse().ok()?;
    DateTime::from_timestamp_millis(milliseconds).filter(|time| time.year() > 2020)
}

#[cfg(test)]
mod tests;
