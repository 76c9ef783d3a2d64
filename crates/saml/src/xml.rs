//! Reading XML into a tree, in a subset that leaves no two readings.
//!
//! What belongs here: well-formedness, namespaces, limits. What does not: what the
//! elements mean (`shape`), and their canonical text (`canonical`).
//!
//! A document has elements, attributes and text. Everything that parsers are known to
//! disagree about is refused: document types, entities, processing instructions,
//! comments, CDATA sections, other encodings than UTF-8 (SAML-2). So the text of an
//! element is one text, and no comment splits it.

use std::collections::{HashMap, HashSet};

use quick_xml::Reader;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

use crate::Reason;

/// Elements in a document.
const ELEMENTS: usize = 4096;
/// Elements inside each other.
const DEPTH: usize = 32;
/// Attributes of an element, with its declarations of namespaces.
const ATTRIBUTES: usize = 32;
/// Declarations of namespaces that hold at one place.
const DECLARATIONS: usize = 64;
/// Bytes of a name, with its prefix.
const NAME: usize = 256;

/// The namespace of `xml:lang` and the like; its prefix needs no declaration.
const XML: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// A document whose every part was read by the rules above. Immutable: what is verified
/// is what is used.
pub(crate) struct Document {
    /// In the order of the text; the first one is the root.
    elements: Vec<ElementData>,
    /// Names of namespaces; the first one is the empty one.
    namespaces: Vec<String>,
}

struct ElementData {
    parent: Option<usize>,
    name: Name,
    declarations: Vec<Declaration>,
    attributes: Vec<AttributeData>,
    content: Vec<Content>,
}

struct Name {
    prefix: String,
    local: String,
    /// An index into `namespaces`.
    namespace: usize,
}

struct AttributeData {
    name: Name,
    value: String,
}

/// A namespace that a prefix stands for; the empty prefix is the default one.
struct Declaration {
    prefix: String,
    namespace: usize,
}

enum Content {
    Element(usize),
    Text(String),
}

/// An element of a document.
#[derive(Clone, Copy)]
pub(crate) struct Element<'a> {
    document: &'a Document,
    index: usize,
}

/// An attribute that is no declaration of a namespace.
#[derive(Clone, Copy)]
pub(crate) struct Attribute<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) local: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) value: &'a str,
}

/// A part of the content of an element.
pub(crate) enum Part<'a> {
    Element(Element<'a>),
    Text(&'a str),
}

impl Document {
    /// Reads a whole document.
    pub(crate) fn read(text: &str) -> Result<Self, Reason> {
        if text.starts_with('\u{feff}') {
            return Err(Reason::ByteOrderMark);
        }
        let mut reader = Reader::from_str(text);
        let mut builder = Builder::default();
        loop {
            let before = reader.buffer_position();
            match reader.read_event().map_err(|_| Reason::NotWellFormed)? {
                Event::Start(start) => builder.open(&start)?,
                Event::Empty(start) => {
                    builder.open(&start)?;
                    builder.close()?;
                }
                Event::End(_) => builder.close()?,
                Event::Text(text) => builder.text(as_text(&text)?)?,
                Event::GeneralRef(reference) => builder.reference(&reference)?,
                Event::Decl(declaration) => {
                    if before != 0 {
                        return Err(Reason::ProcessingInstruction);
                    }
                    check_declaration(&declaration)?;
                }
                Event::DocType(_) => return Err(Reason::DocumentType),
                Event::PI(_) => return Err(Reason::ProcessingInstruction),
                Event::Comment(_) => return Err(Reason::Comment),
                Event::CData(_) => return Err(Reason::CharacterData),
                Event::Eof => return builder.finish(),
            }
        }
    }

    pub(crate) fn root(&self) -> Element<'_> {
        Element { document: self, index: 0 }
    }

    /// Every element, in the order of the text.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Element<'_>> {
        (0..self.elements.len()).map(|index| Element { document: self, index })
    }
}

impl<'a> Element<'a> {
    fn data(self) -> &'a ElementData {
        &self.document.elements[self.index]
    }

    pub(crate) fn is(self, namespace: &str, local: &str) -> bool {
        self.local() == local && self.namespace() == namespace
    }

    /// Whether both are the same element of the same document.
    pub(crate) fn same(self, other: Self) -> bool {
        self.index == other.index && std::ptr::eq(self.document, other.document)
    }

    pub(crate) fn prefix(self) -> &'a str {
        &self.data().name.prefix
    }

    pub(crate) fn local(self) -> &'a str {
        &self.data().name.local
    }

    pub(crate) fn namespace(self) -> &'a str {
        &self.document.namespaces[self.data().name.namespace]
    }

    pub(crate) fn attributes(self) -> impl Iterator<Item = Attribute<'a>> {
        let namespaces = &self.document.namespaces;
        self.data().attributes.iter().map(move |attribute| Attribute {
            prefix: &attribute.name.prefix,
            local: &attribute.name.local,
            namespace: &namespaces[attribute.name.namespace],
            value: &attribute.value,
        })
    }

    /// The value of an attribute in no namespace.
    pub(crate) fn attribute(self, local: &str) -> Option<&'a str> {
        let found = self.attributes().find(|it| it.namespace.is_empty() && it.local == local);
        found.map(|attribute| attribute.value)
    }

    pub(crate) fn content(self) -> impl Iterator<Item = Part<'a>> {
        let document = self.document;
        self.data().content.iter().map(move |part| match part {
            Content::Element(index) => Part::Element(Element { document, index: *index }),
            Content::Text(text) => Part::Text(text),
        })
    }

    /// The prefixes that are declared here or around, some more than once.
    pub(crate) fn prefixes(self) -> Vec<&'a str> {
        let mut prefixes = Vec::new();
        let mut at = Some(self.index);
        while let Some(index) = at {
            let element = &self.document.elements[index];
            prefixes.extend(element.declarations.iter().map(|it| it.prefix.as_str()));
            at = element.parent;
        }
        prefixes
    }

    /// The namespace that a prefix stands for here, empty for none.
    pub(crate) fn namespace_of(self, prefix: &str) -> &'a str {
        let mut at = Some(self.index);
        while let Some(index) = at {
            let element = &self.document.elements[index];
            let found = element.declarations.iter().find(|it| it.prefix == prefix);
            if let Some(declaration) = found {
                return &self.document.namespaces[declaration.namespace];
            }
            at = element.parent;
        }
        ""
    }
}

/// The part of a document that was read.
struct Builder {
    elements: Vec<ElementData>,
    namespaces: Vec<String>,
    /// Each name of a namespace is in the list once.
    indexes: HashMap<String, usize>,
    /// The elements that are open, outermost first.
    open: Vec<usize>,
    /// The text since the last tag.
    text: String,
    /// How many declarations hold where the reader is.
    declarations: usize,
    complete: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            elements: Vec::new(),
            namespaces: vec![String::new()],
            indexes: HashMap::from([(String::new(), 0)]),
            open: Vec::new(),
            text: String::new(),
            declarations: 0,
            complete: false,
        }
    }
}

impl Builder {
    fn open(&mut self, start: &BytesStart<'_>) -> Result<(), Reason> {
        if self.complete {
            return Err(Reason::NotWellFormed);
        }
        if self.elements.len() >= ELEMENTS || self.open.len() >= DEPTH {
            return Err(Reason::TooComplex);
        }
        self.end_text();
        let index = self.elements.len();
        let parent = self.open.last().copied();
        self.elements.push(ElementData {
            parent,
            name: Name { prefix: String::new(), local: String::new(), namespace: 0 },
            declarations: Vec::new(),
            attributes: Vec::new(),
            content: Vec::new(),
        });
        let mut plain = Vec::new();
        for (count, attribute) in start.attributes().enumerate() {
            if count >= ATTRIBUTES {
                return Err(Reason::TooComplex);
            }
            let attribute = attribute.map_err(|_| Reason::NotWellFormed)?;
            let (prefix, local) = name(as_text(attribute.key.as_ref())?)?;
            let value = value(as_text(&attribute.value)?)?;
            match (prefix, local) {
                ("", "xmlns") => self.declare(index, "", value)?,
                ("xmlns", prefix) => self.declare(index, prefix, value)?,
                _ => plain.push((prefix.to_owned(), local.to_owned(), value)),
            }
        }
        let whole = start.name();
        let (prefix, local) = name(as_text(whole.as_ref())?)?;
        let namespace = self.resolve(index, prefix)?;
        let named = Name { prefix: prefix.to_owned(), local: local.to_owned(), namespace };
        self.elements[index].name = named;
        let mut seen = HashSet::new();
        for (prefix, local, value) in plain {
            // The default namespace is not that of attributes.
            let namespace = if prefix.is_empty() { 0 } else { self.resolve(index, &prefix)? };
            if !seen.insert((namespace, local.clone())) {
                return Err(Reason::NotWellFormed);
            }
            let name = Name { prefix, local, namespace };
            self.elements[index].attributes.push(AttributeData { name, value });
        }
        if let Some(parent) = parent {
            self.elements[parent].content.push(Content::Element(index));
        }
        self.open.push(index);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Reason> {
        self.end_text();
        let index = self.open.pop().ok_or(Reason::NotWellFormed)?;
        self.declarations -= self.elements[index].declarations.len();
        self.complete = self.open.is_empty();
        Ok(())
    }

    fn declare(&mut self, index: usize, prefix: &str, namespace: String) -> Result<(), Reason> {
        let reserved = prefix == "xml" || prefix == "xmlns";
        // The declaration of a prefix cannot be removed, only the default namespace can.
        let removes_prefix = namespace.is_empty() && !prefix.is_empty();
        if reserved || removes_prefix || namespace == XML || namespace == XMLNS {
            return Err(Reason::Namespace);
        }
        if self.declarations >= DECLARATIONS {
            return Err(Reason::TooComplex);
        }
        let declared = &self.elements[index].declarations;
        if declared.iter().any(|it| it.prefix == prefix) {
            return Err(Reason::NotWellFormed);
        }
        self.declarations += 1;
        let namespace = self.intern(namespace);
        let declaration = Declaration { prefix: prefix.to_owned(), namespace };
        self.elements[index].declarations.push(declaration);
        Ok(())
    }

    fn intern(&mut self, namespace: String) -> usize {
        if let Some(index) = self.indexes.get(&namespace) {
            return *index;
        }
        let index = self.namespaces.len();
        self.namespaces.push(namespace.clone());
        self.indexes.insert(namespace, index);
        index
    }

    /// Ends the text before a tag.
    fn end_text(&mut self) {
        if let Some(index) = self.open.last()
            && !self.text.is_empty()
        {
            let text = Content::Text(std::mem::take(&mut self.text));
            self.elements[*index].content.push(text);
        }
    }

    fn resolve(&mut self, index: usize, prefix: &str) -> Result<usize, Reason> {
        if prefix == "xml" {
            return Ok(self.intern(XML.to_owned()));
        }
        let mut at = Some(index);
        while let Some(index) = at {
            let element = &self.elements[index];
            if let Some(found) = element.declarations.iter().find(|it| it.prefix == prefix) {
                return Ok(found.namespace);
            }
            at = element.parent;
        }
        if prefix.is_empty() { Ok(0) } else { Err(Reason::Namespace) }
    }

    fn text(&mut self, raw: &str) -> Result<(), Reason> {
        if raw.contains("]]>") {
            return Err(Reason::NotWellFormed);
        }
        if self.open.is_empty() {
            let blank = raw.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
            return if blank { Ok(()) } else { Err(Reason::NotWellFormed) };
        }
        let mut previous = '\0';
        for letter in raw.chars() {
            match letter {
                '\r' => self.text.push('\n'),
                '\n' if previous == '\r' => {}
                _ if is_allowed(letter) => self.text.push(letter),
                _ => return Err(Reason::NotWellFormed),
            }
            previous = letter;
        }
        Ok(())
    }

    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), Reason> {
        let letter = referenced(as_text(reference)?)?;
        if self.open.is_empty() {
            return Err(Reason::NotWellFormed);
        }
        self.text.push(letter);
        Ok(())
    }

    fn finish(self) -> Result<Document, Reason> {
        if !self.complete {
            return Err(Reason::NotWellFormed);
        }
        Ok(Document { elements: self.elements, namespaces: self.namespaces })
    }
}

fn as_text(bytes: &[u8]) -> Result<&str, Reason> {
    std::str::from_utf8(bytes).map_err(|_| Reason::NotUtf8)
}

fn check_declaration(declaration: &BytesDecl<'_>) -> Result<(), Reason> {
    let version = declaration.version().map_err(|_| Reason::NotWellFormed)?;
    if version.as_ref() != b"1.0" {
        return Err(Reason::NotWellFormed);
    }
    match declaration.encoding() {
        None => Ok(()),
        Some(Ok(encoding)) if encoding.eq_ignore_ascii_case(b"utf-8") => Ok(()),
        Some(Ok(_)) => Err(Reason::NotUtf8),
        Some(Err(_)) => Err(Reason::NotWellFormed),
    }
}

/// Prefix and local part of a name.
fn name(whole: &str) -> Result<(&str, &str), Reason> {
    if whole.len() > NAME {
        return Err(Reason::TooComplex);
    }
    let (prefix, local) = whole.split_once(':').unwrap_or(("", whole));
    if (prefix.is_empty() && whole.contains(':')) || !is_part_of_name(local) {
        return Err(Reason::NotWellFormed);
    }
    if !prefix.is_empty() && !is_part_of_name(prefix) {
        return Err(Reason::NotWellFormed);
    }
    Ok((prefix, local))
}

/// Whether this is a name without a colon. Names of SAML are ASCII.
fn is_part_of_name(text: &str) -> bool {
    let mut letters = text.bytes();
    let first = letters.next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_');
    first && letters.all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.'))
}

/// The value of an attribute: references resolved, white space made spaces.
fn value(raw: &str) -> Result<String, Reason> {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(letter) = rest.chars().next() {
        let mut length = letter.len_utf8();
        match letter {
            '&' => {
                let end = rest.find(';').ok_or(Reason::NotWellFormed)?;
                text.push(referenced(&rest[1..end])?);
                length = end + 1;
            }
            '<' => return Err(Reason::NotWellFormed),
            '\r' => {
                text.push(' ');
                if rest.starts_with("\r\n") {
                    length = 2;
                }
            }
            '\t' | '\n' => text.push(' '),
            _ if is_allowed(letter) => text.push(letter),
            _ => return Err(Reason::NotWellFormed),
        }
        rest = &rest[length..];
    }
    Ok(text)
}

/// The character of a reference, such as `amp` or `#38`.
fn referenced(name: &str) -> Result<char, Reason> {
    let Some(number) = name.strip_prefix('#') else {
        return match name {
            "amp" => Ok('&'),
            "lt" => Ok('<'),
            "gt" => Ok('>'),
            "quot" => Ok('"'),
            "apos" => Ok('\''),
            _ => Err(Reason::Entity),
        };
    };
    let (digits, radix) = match number.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    // `from_str_radix` would accept a sign.
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(Reason::NotWellFormed);
    }
    let code = u32::from_str_radix(digits, radix).map_err(|_| Reason::NotWellFormed)?;
    let letter = char::from_u32(code).ok_or(Reason::NotWellFormed)?;
    let allowed = is_allowed(letter) || letter == '\r';
    if allowed { Ok(letter) } else { Err(Reason::NotWellFormed) }
}

/// Whether XML allows this character. A carriage return is allowed as a reference only:
/// as text it is a line end.
fn is_allowed(letter: char) -> bool {
    let control = letter < ' ' && !matches!(letter, '\t' | '\n');
    !control && !matches!(letter, '\u{fffe}' | '\u{ffff}')
}
