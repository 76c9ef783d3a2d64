//! Canonical XML: the one text of an element, over which a signature is made, without
//! comments.
//!
//! What belongs here: writing, by the exclusive rules (<https://www.w3.org/TR/xml-exc-c14n/>)
//! and by the inclusive ones (<https://www.w3.org/TR/xml-c14n11/>). What does not: which
//! element, and what is omitted.
//!
//! Inclusive rules also write what elements around the written one declare. 1.0 and 1.1
//! differ in attributes `xml:` of those elements alone. A response and the elements around a
//! signature have none (`response`), so both are one text.

use crate::Reason;
use crate::xml::{Attribute, Element, Part};

/// Bytes of a canonical text. Declarations repeat in it, so it can be longer than the
/// document.
const LENGTH: usize = 1024 * 1024;

/// Prefixes whose namespaces are written where they hold, used or not.
pub(crate) enum Inclusive<'a> {
    /// Exclusive rules, with these exceptions; `#default` is the default namespace.
    Listed(Vec<&'a str>),
    /// Inclusive rules.
    All,
}

/// The canonical text of an element, without one of its children, the signature in it.
pub(crate) fn text<'a>(
    element: Element<'a>,
    without: Option<Element<'a>>,
    inclusive: &'a Inclusive<'a>,
) -> Result<Vec<u8>, Reason> {
    let mut writer = Writer { text: Vec::new(), written: Vec::new(), without, inclusive };
    writer.element(element)?;
    Ok(writer.text)
}

struct Writer<'a> {
    text: Vec<u8>,
    /// The declarations in the text that hold here, innermost last.
    written: Vec<(&'a str, &'a str)>,
    without: Option<Element<'a>>,
    inclusive: &'a Inclusive<'a>,
}

impl<'a> Writer<'a> {
    /// Recursive: a document has a greatest depth.
    fn element(&mut self, element: Element<'a>) -> Result<(), Reason> {
        let before = self.written.len();
        self.put("<")?;
        self.name(element.prefix(), element.local())?;
        for (prefix, namespace) in self.declarations(element) {
            self.put(if prefix.is_empty() { " xmlns" } else { " xmlns:" })?;
            self.put(prefix)?;
            self.put("=\"")?;
            self.value(namespace)?;
            self.put("\"")?;
            self.written.push((prefix, namespace));
        }
        let mut attributes: Vec<Attribute<'a>> = element.attributes().collect();
        attributes.sort_by_key(|attribute| (attribute.namespace, attribute.local));
        for attribute in attributes {
            self.put(" ")?;
            self.name(attribute.prefix, attribute.local)?;
            self.put("=\"")?;
            self.value(attribute.value)?;
            self.put("\"")?;
        }
        self.put(">")?;
        for part in element.content() {
            match part {
                Part::Element(child) => {
                    if self.without.is_none_or(|without| !without.same(child)) {
                        self.element(child)?;
                    }
                }
                Part::Text(text) => self.content(text)?,
            }
        }
        self.put("</")?;
        self.name(element.prefix(), element.local())?;
        self.put(">")?;
        self.written.truncate(before);
        Ok(())
    }

    /// The declarations to write at this element, in their order.
    fn declarations(&self, element: Element<'a>) -> Vec<(&'a str, &'a str)> {
        let mut prefixes: Vec<&'a str> = match self.inclusive {
            Inclusive::All => element.prefixes(),
            Inclusive::Listed(listed) => {
                let listed = listed.iter().copied();
                listed.map(|prefix| if prefix == "#default" { "" } else { prefix }).collect()
            }
        };
        let named = element.attributes().map(|attribute| attribute.prefix);
        prefixes.extend(named.filter(|prefix| !prefix.is_empty()));
        prefixes.push(element.prefix());
        prefixes.sort_unstable();
        prefixes.dedup();
        // The prefix `xml` needs no declaration.
        prefixes.retain(|prefix| *prefix != "xml");
        let mut missing = Vec::new();
        for prefix in prefixes {
            let namespace = element.namespace_of(prefix);
            let written = self.written.iter().rev().find(|(it, _)| *it == prefix);
            if namespace != written.map_or("", |(_, namespace)| namespace) {
                missing.push((prefix, namespace));
            }
        }
        missing
    }

    fn name(&mut self, prefix: &str, local: &str) -> Result<(), Reason> {
        if !prefix.is_empty() {
            self.put(prefix)?;
            self.put(":")?;
        }
        self.put(local)
    }

    fn content(&mut self, text: &str) -> Result<(), Reason> {
        self.escaped(text, |letter| match letter {
            b'&' => Some("&amp;"),
            b'<' => Some("&lt;"),
            b'>' => Some("&gt;"),
            b'\r' => Some("&#xD;"),
            _ => None,
        })
    }

    fn value(&mut self, text: &str) -> Result<(), Reason> {
        self.escaped(text, |letter| match letter {
            b'&' => Some("&amp;"),
            b'<' => Some("&lt;"),
            b'"' => Some("&quot;"),
            b'\t' => Some("&#x9;"),
            b'\n' => Some("&#xA;"),
            b'\r' => Some("&#xD;"),
            _ => None,
        })
    }

    fn escaped(
        &mut self,
        text: &str,
        escape: impl Fn(u8) -> Option<&'static str>,
    ) -> Result<(), Reason> {
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate() {
            if let Some(replacement) = escape(byte) {
                // Only ASCII characters are replaced, so both are at borders of characters.
                self.put(&text[from..at])?;
                self.put(replacement)?;
                from = at + 1;
            }
        }
        self.put(&text[from..])
    }

    fn put(&mut self, text: &str) -> Result<(), Reason> {
        if self.text.len() + text.len() > LENGTH {
            return Err(Reason::TooComplex);
        }
        self.text.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
