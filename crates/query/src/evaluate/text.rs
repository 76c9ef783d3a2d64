//! Functions of texts: positions are counted in characters, sizes in bytes.

use std::borrow::Cow;
use std::ops::Range;

use super::TEXT_MAX;
use crate::value::Value;

/// A computed text; `None` if it is too long.
pub(super) fn bounded(text: Cow<'_, str>) -> Option<Value<'_>> {
    (text.len() <= TEXT_MAX).then_some(Value::Text(text))
}

/// The text without leading and trailing blanks.
pub(super) fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

/// The number of characters.
pub(super) fn length(text: &str) -> Value<'static> {
    i64::try_from(text.chars().count()).map_or(Value::Null, Value::Integer)
}

/// Replaces every occurrence of a text; `None` if the result is too long.
pub(super) fn replaced<'a>(text: Cow<'a, str>, from: &str, to: &str) -> Option<Value<'a>> {
    if from.is_empty() {
        return bounded(text);
    }
    let grown = text.matches(from).count().checked_mul(to.len())?;
    if grown > TEXT_MAX {
        return None;
    }
    bounded(Cow::Owned(text.replace(from, to)))
}

/// A part of a text: from a character, counted from 1, or from -1 for the last one;
/// without a length, up to the end.
pub(super) fn part(text: &str, from: i64, length: Option<i64>) -> Value<'static> {
    let length = match length {
        Some(length) => usize::try_from(length).unwrap_or(0),
        None => usize::MAX,
    };
    let first = match usize::try_from(from) {
        Ok(0) => return Value::Text(Cow::Borrowed("")),
        Ok(from) => from - 1,
        Err(_) => {
            let from_end = usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX);
            text.chars().count().saturating_sub(from_end)
        }
    };
    Value::Text(text.chars().skip(first).take(length).collect())
}

/// The part of a text at this range of bytes.
pub(super) fn cut(text: Cow<'_, str>, range: Range<usize>) -> Value<'_> {
    Value::Text(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(range).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(range).unwrap_or_default().to_owned()),
    })
}

/// The range of the host in a URL, without a user and a port. The scheme may be missing.
pub(super) fn host(url: &str) -> Range<usize> {
    let authority = authority(url);
    let text = url.get(authority.clone()).unwrap_or_default();
    let start = text.rfind('@').map_or(0, |at| at + 1);
    let host = text.get(start..).unwrap_or_default();
    let end = match host.find(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    authority.start + start..authority.start + start + end
}

/// The range of the path in a URL: up to the query and the fragment.
pub(super) fn path(url: &str) -> Range<usize> {
    let start = authority(url).end;
    let rest = url.get(start..).unwrap_or_default();
    start..start + rest.find(['?', '#']).unwrap_or(rest.len())
}

/// The range between the scheme and the path.
fn authority(url: &str) -> Range<usize> {
    let is_scheme = |text: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|first| first.is_ascii_alphabetic())
            && chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let start = match url.split_once("://") {
        Some((scheme, _)) if is_scheme(scheme) => scheme.len() + 3,
        _ if url.starts_with("//") => 2,
        _ => 0,
    };
    let rest = url.get(start..).unwrap_or_default();
    start..start + rest.find(['/', '?', '#']).unwrap_or(rest.len())
}
