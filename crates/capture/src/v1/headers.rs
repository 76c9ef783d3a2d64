//! The headers of capture protocol V1.
//!
//! What belongs here: required headers and their meaning. What does not: HTTP; each
//! header is passed as text.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::fault::Fault;
use crate::CaptureError;
use crate::shape::valid_token;
use crate::time;

const AUTHORIZATION: &str = "Authorization";
const CONTENT_TYPE: &str = "Content-Type";
const CONTENT_ENCODING: &str = "Content-Encoding";
const SDK_INFO: &str = "PostHog-Sdk-Info";
const ATTEMPT: &str = "PostHog-Attempt";
const REQUEST_ID: &str = "PostHog-Request-Id";
const REQUEST_TIMESTAMP: &str = "PostHog-Request-Timestamp";

/// Required in every request; the key has a separate error.
const REQUIRED: [&str; 6] =
    [CONTENT_TYPE, "User-Agent", SDK_INFO, ATTEMPT, REQUEST_ID, REQUEST_TIMESTAMP];

/// Maximum bytes of the name and version of a client library. They are written into every
/// event, so their length must be bounded.
const LIBRARY_LIMIT: usize = 128;

/// The compression of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// No compression.
    Identity,
    /// `gzip`
    Gzip,
    /// `deflate`, in the form of zlib
    Deflate,
    /// `br`
    Brotli,
    /// `zstd`
    Zstd,
}

impl Encoding {
    fn of(word: Option<&str>) -> Option<Self> {
        let word = word.unwrap_or_default().trim();
        let known = [
            ("", Self::Identity),
            ("identity", Self::Identity),
            ("gzip", Self::Gzip),
            ("deflate", Self::Deflate),
            ("br", Self::Brotli),
            ("zstd", Self::Zstd),
        ];
        known.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, it)| it)
    }
}

/// Name and version of the client library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library<'a> {
    /// Such as `posthog-python`.
    pub name: &'a str,
    /// Such as `7.91.1`.
    pub version: &'a str,
}

impl<'a> Library<'a> {
    /// Parses `name/version`; a name may contain slashes.
    fn read(text: &'a str) -> Option<Self> {
        let (name, version) = text.rsplit_once('/')?;
        let (name, version) = (name.trim(), version.trim());
        let is_usable = !name.is_empty() && !version.is_empty() && text.len() <= LIBRARY_LIMIT;
        is_usable.then_some(Self { name, version })
    }
}

/// The headers of a request.
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    /// The project key: well-formed. Whether it exists is not checked.
    pub token: Cow<'a, str>,
    /// Time of this attempt, by the sender's clock.
    pub sent_at: DateTime<Utc>,
    /// The client library, if the header is valid.
    pub library: Option<Library<'a>>,
    /// The compression of the body.
    pub encoding: Encoding,
}

impl<'a> Headers<'a> {
    /// Parses the headers; `find` returns the text of a header by its name.
    ///
    /// # Errors
    /// First faults of the key, then missing headers, then all others:
    /// [`CaptureError::MissingApiKey`], [`CaptureError::InvalidApiKey`],
    /// [`Fault::MissingHeaders`], [`Fault::UnsupportedContentType`],
    /// [`Fault::UnsupportedEncoding`], [`Fault::InvalidHeader`].
    pub fn read(find: impl Fn(&str) -> Option<&'a str>) -> Result<Self, Fault> {
        let token = bearer(find(AUTHORIZATION).ok_or(CaptureError::MissingApiKey)?)?;
        let missing: Vec<_> = REQUIRED.into_iter().filter(|name| find(name).is_none()).collect();
        if !missing.is_empty() {
            return Err(Fault::MissingHeaders(missing));
        }
        let header = |name: &str| find(name).unwrap_or_default().trim();
        let media_type = header(CONTENT_TYPE).split(';').next().unwrap_or_default();
        if !media_type.trim().eq_ignore_ascii_case("application/json") {
            return Err(Fault::UnsupportedContentType);
        }
        let encoding = Encoding::of(find(CONTENT_ENCODING)).ok_or(Fault::UnsupportedEncoding)?;
        if header(ATTEMPT).parse::<u32>().ok().is_none_or(|attempt| attempt == 0) {
            return Err(Fault::InvalidHeader(ATTEMPT));
        }
        if Uuid::parse_str(header(REQUEST_ID)).is_err() {
            return Err(Fault::InvalidHeader(REQUEST_ID));
        }
        let sent_at = time::parse_date(header(REQUEST_TIMESTAMP))
            .and_then(DateTime::from_timestamp_micros)
            .ok_or(Fault::InvalidHeader(REQUEST_TIMESTAMP))?;
        Ok(Self { token, sent_at, library: Library::read(header(SDK_INFO)), encoding })
    }
}

fn bearer(authorization: &str) -> Result<Cow<'_, str>, CaptureError> {
    let (scheme, token) = authorization.trim().split_once(' ').unwrap_or_default();
    if scheme.eq_ignore_ascii_case("bearer") {
        valid_token(Cow::Borrowed(token))
    } else {
        Err(CaptureError::InvalidApiKey)
    }
}
