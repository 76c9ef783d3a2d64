//! Reading elements that have a fixed form: this child, then that one, and nothing else.

use crate::xml::{Element, Part};
use crate::{Quoted, Reason};

pub(crate) const PROTOCOL: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
pub(crate) const ASSERTION: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
pub(crate) const SIGNATURE: &str = "http://www.w3.org/2000/09/xmldsig#";
/// Bytes of an id.
const ID: usize = 256;

/// The child elements of an element, read from the first to the last.
#[derive(Clone)]
pub(crate) struct Children<'a> {
    of: Element<'a>,
    list: std::vec::IntoIter<Element<'a>>,
}

impl<'a> Children<'a> {
    /// The children of an element that has no text but white space.
    pub(crate) fn of(element: Element<'a>) -> Result<Self, Reason> {
        let mut list = Vec::new();
        for part in element.content() {
            match part {
                Part::Element(child) => list.push(child),
                Part::Text(text) => {
                    if !text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
                        return Err(Reason::UnexpectedText(Quoted::new(element.local())));
                    }
                }
            }
        }
        Ok(Self { of: element, list: list.into_iter() })
    }

    /// The next child, if it has this name.
    pub(crate) fn take(&mut self, namespace: &str, local: &str) -> Option<Element<'a>> {
        let next = self.list.as_slice().first()?;
        if next.is(namespace, local) { self.list.next() } else { None }
    }

    /// The next child, which must have this name.
    pub(crate) fn need(
        &mut self,
        namespace: &str,
        local: &'static str,
    ) -> Result<Element<'a>, Reason> {
        self.take(namespace, local).ok_or(Reason::Missing(local))
    }

    /// The next child, whatever its name is.
    pub(crate) fn next(&mut self) -> Option<Element<'a>> {
        self.list.next()
    }

    /// There must be no further child.
    pub(crate) fn end(mut self) -> Result<(), Reason> {
        match self.list.next() {
            None => Ok(()),
            Some(child) => Err(unexpected(child, self.of)),
        }
    }
}

pub(crate) fn unexpected(child: Element<'_>, parent: Element<'_>) -> Reason {
    Reason::Unexpected(Quoted::new(child.local()), Quoted::new(parent.local()))
}

/// The whole text of an element without children. A document has no comments, so it is
/// one text (SAML-2).
pub(crate) fn text(element: Element<'_>) -> Result<&str, Reason> {
    let mut parts = element.content();
    match (parts.next(), parts.next()) {
        (None, _) => Ok(""),
        (Some(Part::Text(text)), None) => Ok(text),
        _ => Err(Reason::NotText(Quoted::new(element.local()))),
    }
}

/// The element has no children and no text.
pub(crate) fn is_empty(element: Element<'_>) -> Result<(), Reason> {
    Children::of(element)?.end()
}

/// The element has no other attributes than these. `ID` in another case is another one.
pub(crate) fn attributes(element: Element<'_>, allowed: &[&str]) -> Result<(), Reason> {
    let mut found = element.attributes();
    let other = found.find(|it| !it.namespace.is_empty() || !allowed.contains(&it.local));
    match other {
        None => Ok(()),
        Some(other) => {
            Err(Reason::UnexpectedAttribute(Quoted::new(other.local), Quoted::new(element.local())))
        }
    }
}

/// The value of an attribute that must be there.
pub(crate) fn attribute<'a>(element: Element<'a>, name: &'static str) -> Result<&'a str, Reason> {
    let missing = || Reason::MissingAttribute(name, Quoted::new(element.local()));
    element.attribute(name).ok_or_else(missing)
}

/// The id of an element, in the form of XML.
pub(crate) fn id(element: Element<'_>) -> Result<&str, Reason> {
    let id = attribute(element, "ID")?;
    let first = id.bytes().next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_');
    let named = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.');
    if first && id.len() <= ID && id.bytes().all(named) { Ok(id) } else { Err(Reason::Id) }
}
