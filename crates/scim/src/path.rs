//! Paths of changes (RFC 7644, 3.5.2), such as `emails[type eq "work"].value`.

use crate::fault::{Fault, FaultKind};
use crate::filter::{FILTER_MAX, Filter, text_length};

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The schema, if the path names one.
    pub schema: Option<String>,
    /// The attribute.
    pub attribute: String,
    /// Which values of a list are meant.
    pub filter: Option<Filter>,
    /// The part of the value.
    pub part: Option<String>,
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// `invalidPath`, and `invalidFilter` for the filter in it.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let wrong =
            || Fault::new(FaultKind::InvalidPath, "The path of an operation cannot be read.");
        let text = text.trim();
        if text.len() > FILTER_MAX {
            return Err(Fault::new(
                FaultKind::InvalidPath,
                format!("A path is longer than {FILTER_MAX} bytes."),
            ));
        }
        let (head, filter, tail) = match text.split_once('[') {
            None => (text, None, ""),
            Some((head, rest)) => {
                let end = closing(rest).ok_or_else(wrong)?;
                let (filter, tail) = rest.split_at(end);
                (head, Some(Filter::parse(filter)?), tail.get(1..).unwrap_or_default())
            }
        };
        let (schema, name) = match head.rsplit_once(':') {
            Some((schema, name)) => (Some(schema.to_owned()), name),
            None => (None, head),
        };
        let (name, inner) = match name.split_once('.') {
            Some((name, part)) => (name, Some(part)),
            None => (name, None),
        };
        let outer = match tail {
            "" => None,
            tail => Some(tail.strip_prefix('.').ok_or_else(wrong)?),
        };
        if inner.is_some() && filter.is_some() {
            return Err(wrong());
        }
        let part = inner.or(outer);
        if !is_name(name) || !part.is_none_or(is_name) {
            return Err(wrong());
        }
        Ok(Self { schema, attribute: name.to_owned(), filter, part: part.map(str::to_owned) })
    }
}

/// Where the filter ends that begins with this text.
fn closing(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let next = rest.find(['"', ']'])?;
        at += next;
        match rest.as_bytes().get(next) {
            Some(b']') => return Some(at),
            _ => at += text_length(text.get(at..)?)?,
        }
    }
    None
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '$')
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-$".contains(&c))
}
