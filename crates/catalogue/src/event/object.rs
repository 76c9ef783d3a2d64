//! A JSON object whose values stay text until they are read.
//!
//! Unchanged values are written as they were received: numbers keep all digits, texts keep
//! their escapes, and members keep their order. Of members with the same name the last one
//! counts.

use std::borrow::Cow;

use serde_json::Value;
use weir_json::{Members, ObjectWriter, quoted, replace_strings, string};

/// The text is not a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON object")]
pub struct NotAnObject;

/// A path such as `a.b.c` can be read in several ways, because names may contain dots.
/// Maximum dots that are tried in each object; more would let a hostile event take a long
/// time.
const DOTS_MAX: usize = 16;

/// A value: its text and, after a nested access, its parsed object. From then on the text
/// is out of date.
#[derive(Debug, Clone)]
struct Node<'a> {
    text: Cow<'a, str>,
    parsed: Option<Box<Object<'a>>>,
}

impl<'a> Node<'a> {
    const fn new(text: Cow<'a, str>) -> Self {
        Self { text, parsed: None }
    }

    fn text(&self) -> Cow<'_, str> {
        match &self.parsed {
            Some(object) => object.to_text(),
            None => Cow::Borrowed(&self.text),
        }
    }

    fn is_changed(&self) -> bool {
        self.parsed.as_ref().is_some_and(|object| object.is_changed())
    }

    fn parsed(&mut self) -> Option<&mut Object<'a>> {
        if self.parsed.is_none() && self.text.starts_with('{') {
            self.parsed = Object::read(self.text.clone()).ok().map(Box::new);
        }
        self.parsed.as_deref_mut()
    }

    fn parsed_or_new(&mut self) -> &mut Object<'a> {
        self.parsed();
        self.parsed.get_or_insert_with(|| Box::new(Object::new()))
    }
}

/// A JSON object.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    /// The original text.
    source: Cow<'a, str>,
    members: Vec<(Cow<'a, str>, Node<'a>)>,
    is_changed: bool,
}

impl<'a> Object<'a> {
    /// Parses the text of an object, but not its values.
    ///
    /// # Errors
    /// If the text is not a JSON object.
    pub fn read(source: Cow<'a, str>) -> Result<Self, NotAnObject> {
        let members = match &source {
            Cow::Borrowed(text) => Members::parse(text)
                .map_err(|_| NotAnObject)?
                .into_iter()
                .map(|(key, value)| (key, Node::new(Cow::Borrowed(value))))
                .collect(),
            Cow::Owned(text) => Members::parse(text)
                .map_err(|_| NotAnObject)?
                .into_iter()
                .map(|(key, value)| {
                    (Cow::Owned(key.into_owned()), Node::new(Cow::Owned(value.to_owned())))
                })
                .collect(),
        };
        Ok(Self { source, members, is_changed: false })
    }

    /// Whether a member, or a nested one, was changed.
    pub fn is_changed(&self) -> bool {
        self.is_changed || self.members.iter().any(|(_, node)| node.is_changed())
    }

    /// Its JSON text: the original one if nothing changed.
    pub fn to_text(&self) -> Cow<'_, str> {
        if !self.is_changed() {
            return Cow::Borrowed(&self.source);
        }
        let mut out = String::with_capacity(self.source.len() + 64);
        self.write(&mut out);
        Cow::Owned(out)
    }

    fn write(&self, out: &mut String) {
        if !self.is_changed() {
            out.push_str(&self.source);
            return;
        }
        let mut object = ObjectWriter::begin(out);
        for (key, node) in &self.members {
            let out = object.name(key);
            match &node.parsed {
                None => out.push_str(&node.text),
                Some(object) => object.write(out),
            }
        }
        object.end();
    }

    /// The names of its members, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(key, _)| key.as_ref())
    }

    /// Number of its members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn find(&self, key: &str) -> Option<usize> {
        self.members.iter().rposition(|(name, _)| name == key)
    }

    /// Whether it has this member, even if it is `null`.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// The JSON text of a member.
    pub fn raw(&self, key: &str) -> Option<Cow<'_, str>> {
        self.node(key).map(Node::text)
    }

    fn node(&self, key: &str) -> Option<&Node<'a>> {
        self.members.get(self.find(key)?).map(|(_, node)| node)
    }

    /// A member that is a text.
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        string(&self.node(key)?.text)
    }

    /// The value of a member. Numbers are converted to the nearest double.
    pub fn value(&self, key: &str) -> Option<Value> {
        serde_json::from_str(&self.raw(key)?).ok()
    }

    /// A member that is an object, for nested access.
    pub fn child(&mut self, key: &str) -> Option<&mut Object<'a>> {
        let index = self.find(key)?;
        self.members.get_mut(index)?.1.parsed()
    }

    /// The positions of the dots of a path that separate objects.
    fn dots(&mut self, path: &str) -> Option<Vec<usize>> {
        if self.has(path) {
            return Some(Vec::new());
        }
        for (dot, _) in path.match_indices('.').take(DOTS_MAX) {
            let (head, rest) = (path.get(..dot)?, path.get(dot + 1..)?);
            if let Some(mut inner) = self.child(head).and_then(|child| child.dots(rest)) {
                inner.insert(0, dot);
                return Some(inner);
            }
        }
        None
    }

    /// The object with the member at the end of a dotted path, and the name of that
    /// member. A member with the name of the whole path comes first. Then shorter names are
    /// tried, the shortest first.
    pub fn at<'p>(&mut self, path: &'p str) -> Option<(&mut Object<'a>, &'p str)> {
        let dots = self.dots(path)?;
        let (mut object, mut rest) = (self, path);
        for dot in dots {
            object = object.child(rest.get(..dot)?)?;
            rest = rest.get(dot + 1..)?;
        }
        Some((object, rest))
    }

    /// Sets a member to a JSON text, which must be valid.
    pub fn set_raw(&mut self, key: &str, json: impl Into<Cow<'a, str>>) {
        let json = json.into();
        let Some(index) = self.find(key) else {
            self.is_changed = true;
            self.members.push((Cow::Owned(key.to_owned()), Node::new(json)));
            return;
        };
        if self.members.get(index).is_some_and(|(_, node)| node.text() == json) {
            return;
        }
        self.is_changed = true;
        if let Some((_, node)) = self.members.get_mut(index) {
            *node = Node::new(json);
        }
        // Earlier members of the same name would keep the old value.
        let mut at = 0;
        self.members.retain(|(name, _)| {
            at += 1;
            at > index || name != key
        });
    }

    /// Adds a member without checking for one of the same name.
    pub(crate) fn append(&mut self, key: String, json: Cow<'a, str>) {
        self.is_changed = true;
        self.members.push((Cow::Owned(key), Node::new(json)));
    }

    /// Sets a member to a text.
    pub fn set_text(&mut self, key: &str, text: &str) {
        // The same text may have been sent with other escapes.
        if self.text(key).as_deref() != Some(text) {
            self.set_raw(key, quoted(text));
        }
    }

    /// A member that is an object; created if there is none.
    pub fn child_or_new(&mut self, key: &str) -> &mut Object<'a> {
        let index = self.find(key).unwrap_or_else(|| {
            self.members.push((Cow::Owned(key.to_owned()), Node::new(Cow::Borrowed("{}"))));
            self.is_changed = true;
            self.members.len() - 1
        });
        self.members[index].1.parsed_or_new()
    }

    fn new() -> Self {
        Self { source: Cow::Borrowed("{}"), members: Vec::new(), is_changed: true }
    }

    /// Removes a member; returns whether there was one.
    pub fn remove(&mut self, key: &str) -> bool {
        let before = self.members.len();
        self.members.retain(|(name, _)| name != key);
        let removed = self.members.len() < before;
        self.is_changed |= removed;
        removed
    }

    /// Keeps the members for which `keep` returns true. It gets name and JSON text.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &str) -> bool) {
        let before = self.members.len();
        self.members.retain(|(name, node)| keep(name, &node.text()));
        self.is_changed |= self.members.len() < before;
    }

    /// Calls `change` for every text value at any depth, also in lists, but not for names
    /// of members.
    pub fn change_all_texts(&mut self, mut change: impl FnMut(&str) -> Option<String>) {
        self.change_within(&mut change);
    }

    fn change_within(&mut self, change: &mut dyn FnMut(&str) -> Option<String>) {
        for (_, node) in &mut self.members {
            if let Some(object) = &mut node.parsed {
                object.change_within(change);
            } else if let Some(json) = replace_strings(&node.text, change) {
                *node = Node::new(Cow::Owned(json));
                self.is_changed = true;
            }
        }
    }

    /// Calls `each` for the members that are objects.
    pub fn children(&mut self, mut each: impl FnMut(&str, &mut Object<'a>)) {
        for (name, node) in &mut self.members {
            if let Some(child) = node.parsed() {
                each(name, child);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::Object;

    const TEXT: &str = r#"{ "n": 12345678901234567890, "a.b": 1, "a": {"b": 2, "c": {"d\u0065": [1.50]}}, "t": "\u00e9", "x": null }"#;

    fn object(text: &str) -> Object<'_> {
        Object::read(Cow::Borrowed(text)).unwrap()
    }

    #[test]
    fn what_is_only_read_stays_to_the_byte() {
        let mut object = object(TEXT);
        assert_eq!(object.text("t").as_deref(), Some("é"));
        assert!(object.child("a").unwrap().child("c").unwrap().has("de"));
        assert!(object.at("a.c.de").is_some());
        assert!(object.child("n").is_none());
        object.set_text("t", "é");
        object.set_raw("x", "null");
        assert!(!object.remove("missing"));
        object.change_all_texts(|text| Some(text.to_owned()));
        assert!(!object.is_changed());
        assert_eq!(object.to_text(), TEXT);
    }

    #[test]
    fn a_change_leaves_the_rest_as_it_came() {
        let mut object = object(TEXT);
        object.at("a.c.de").unwrap().0.set_text("de", "\"ü\n");
        object.remove("x");
        assert!(object.is_changed());
        assert_eq!(
            object.to_text(),
            r#"{"n":12345678901234567890,"a.b":1,"a":{"b":2,"c":{"de":"\"ü\n"}},"t":"\u00e9"}"#
        );
    }

    #[test]
    fn names_with_dots_are_found_before_paths() {
        let mut first = object(TEXT);
        let (holder, key) = first.at("a.b").unwrap();
        assert_eq!((holder.raw(key).unwrap().as_ref(), key), ("1", "a.b"));
        let mut second = object(r#"{"a.b": {"c.d": 1}}"#);
        assert_eq!(second.at("a.b.c.d").unwrap().1, "c.d");
        assert!(second.at("a.b.c").is_none());
        assert!(second.at("").is_none());
        assert!(second.at("....").is_none());
        let deep = format!("{}1{}", r#"{"a":"#.repeat(60), "}".repeat(60));
        assert!(object(&deep).at(&["a"; 60].join(".")).is_some());
    }

    #[test]
    fn of_the_same_name_the_last_counts() {
        let text = r#"{"a":"secret","b":1,"a":"other"}"#;
        let mut twice = object(text);
        assert_eq!(twice.text("a").as_deref(), Some("other"));
        twice.set_text("a", "hidden");
        assert_eq!(twice.to_text(), r#"{"b":1,"a":"hidden"}"#);
        let mut gone = object(text);
        gone.remove("a");
        assert_eq!(gone.to_text(), r#"{"b":1}"#);
    }

    #[test]
    fn objects_are_made_where_there_are_none() {
        let mut made = object(r#"{"$set": 7}"#);
        made.child_or_new("$set").set_raw("a", "1");
        made.child_or_new("$set_once").set_raw("b", "2");
        made.child_or_new("$set").set_raw("c", "3");
        assert_eq!(made.to_text(), r#"{"$set":{"a":1,"c":3},"$set_once":{"b":2}}"#);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "null", "\"{}\"", "{", "{\"a\":}", "{\"a\":1} x"] {
            assert!(Object::read(Cow::Borrowed(text)).is_err(), "{text}");
        }
    }
}
