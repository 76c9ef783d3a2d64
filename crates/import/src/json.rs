//! JSON as text: objects whose values are not changed, so that every number keeps its
//! digits.
//!
//! What belongs here: parsing and writing objects, and simple checks of a text. What does
//! not: the meaning of events (`event`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use weir_json::push_string;

/// An object in the order of its text. Of a duplicate name, the last one counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Object<'a> {
    /// Parses an object.
    pub(crate) fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The same without borrowing from the text.
    pub(crate) fn into_owned(self) -> Object<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Object(self.0.into_iter().map(|(name, value)| (owned(name), owned(value))).collect())
    }

    /// Whether it has no members.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The JSON text of a member; `None` if missing or `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().rev().find(|(key, _)| key == name)?;
        if value == "null" { None } else { Some(value) }
    }

    /// The text of a member; `None` if it is not a text, or an empty one.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).and_then(text).filter(|text| !text.is_empty())
    }

    /// Whether there is such a member, even if it is `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// Removes a member and returns its JSON text; `None` if missing or `null`.
    pub(crate) fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let mut taken = None;
        self.0.retain_mut(|(key, value)| {
            let found = key == name;
            if found {
                taken = Some(std::mem::take(value));
            }
            !found
        });
        taken.filter(|value| value != "null")
    }

    /// Renames a member, unless the new name exists.
    pub(crate) fn rename(&mut self, from: &str, to: &'static str) {
        if self.has(to) {
            return;
        }
        for (key, _) in self.0.iter_mut().filter(|(key, _)| key == from) {
            *key = Cow::Borrowed(to);
        }
    }

    /// Adds a member, unless the name exists.
    pub(crate) fn add(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        let name = name.into();
        if !self.has(&name) {
            self.0.push((name, value.into()));
        }
    }

    /// The members: names decoded, values as JSON text.
    pub(crate) fn into_members(self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        self.0.into_iter()
    }

    /// Names of the members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Depth of nested objects and lists; an object without nested ones has 1.
    pub(crate) fn depth(&self) -> usize {
        1 + self.0.iter().map(|(_, value)| weigh(value).depth).max().unwrap_or(0)
    }

    /// Appends the members without the braces.
    pub(crate) fn write_members(&self, out: &mut String) {
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            push_string(out, name);
            out.push(':');
            out.push_str(value);
        }
    }

    /// The object as JSON text.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::from("{");
        self.write_members(&mut out);
        out.push('}');
        out
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &RawValue>()? {
                    members.push((name, Cow::Borrowed(value.get())));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A text that is borrowed if it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The text of a JSON string; `None` if it is not a string, or not valid UTF-8.
pub(crate) fn text(json: &str) -> Option<Cow<'_, str>> {
    if !json.starts_with('"') {
        return None;
    }
    serde_json::from_str(json).ok().map(|Name(text)| text)
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_string(&mut out, text);
    out
}

/// The text with U+FFFD for invalid escapes: NUL and single surrogates. `None` if there
/// are none.
pub(crate) fn repair(json: &str) -> Option<String> {
    let mut repaired: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        match escaped(json, at) {
            Some(0xd800..=0xdbff) if matches!(escaped(json, at + 6), Some(0xdc00..=0xdfff)) => {
                at += 12;
            }
            Some(0 | 0xd800..=0xdfff) => {
                let out = repaired.get_or_insert_default();
                out.push_str(json.get(copied..at).unwrap_or_default());
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    let mut repaired = repaired?;
    repaired.push_str(json.get(copied..).unwrap_or_default());
    Some(repaired)
}

/// The value of a four-digit escape that begins at `at`.
fn escaped(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

/// The same text for all forms of a value: names sorted, no whitespace, minimal escapes.
/// Numbers are not changed. It is recursive: call it only for values of limited depth.
pub(crate) fn canonical(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    push_canonical(&mut out, json.trim());
    out
}

fn push_canonical(out: &mut String, json: &str) {
    match json.as_bytes().first() {
        Some(b'{') => {
            let Ok(object) = Object::parse(json) else { return out.push_str(json) };
            let sorted: BTreeMap<_, _> = object.into_members().collect();
            out.push('{');
            for (index, (name, value)) in sorted.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_string(out, name);
                out.push(':');
                push_canonical(out, value);
            }
            out.push('}');
        }
        Some(b'[') => {
            let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(json) else {
                return out.push_str(json);
            };
            out.push('[');
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_canonical(out, value.get());
            }
            out.push(']');
        }
        Some(b'"') => match text(json) {
            Some(text) => push_string(out, &text),
            None => out.push_str(json),
        },
        _ => out.push_str(json),
    }
}

/// Depth and number of members of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Nested objects and lists; the outermost one counts as 1.
    pub(crate) depth: usize,
    /// Members, summed over all levels.
    pub(crate) keys: usize,
}

/// Measures a JSON text without recursion.
pub(crate) fn weigh(json: &str) -> Weight {
    let bytes = json.as_bytes();
    let mut weight = Weight { depth: 0, keys: 0 };
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = after_text(bytes, at),
            b':' => weight.keys += 1,
            b'{' | b'[' => {
                depth += 1;
                weight.depth = weight.depth.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    weight
}

/// The position after the string that begins at `at`.
fn after_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::{Object, Weight, canonical, quoted, repair, text, weigh};

    #[test]
    fn objects_keep_what_they_do_not_change() {
        let json = r#"{"a":12345678901234567890123,"b\u0041":1.10,"c":null,"d":"x\ny"}"#;
        let mut object = Object::parse(json).unwrap();
        assert_eq!(object.get("a"), Some("12345678901234567890123"));
        assert_eq!(object.get("bA"), Some("1.10"));
        assert_eq!((object.get("c"), object.has("c")), (None, true));
        assert_eq!(object.text("d").as_deref(), Some("x\ny"));
        object.rename("a", "z");
        object.rename("bA", "z");
        object.add("z", "2");
        object.add("e", "[]");
        assert_eq!(object.take("c"), None);
        let expected = r#"{"z":12345678901234567890123,"bA":1.10,"d":"x\ny","e":[]}"#;
        assert_eq!(object.to_json(), expected);
    }

    #[test]
    fn of_a_name_given_twice_the_last_counts() {
        let mut object = Object::parse(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(object.get("a"), Some("2"));
        assert_eq!(object.take("a").as_deref(), Some("2"));
        assert!(object.is_empty());
    }

    #[test]
    fn texts_are_decoded_and_written() {
        assert_eq!(text(r#""a\u00e4\"""#).as_deref(), Some("aä\""));
        assert_eq!(text("12"), None);
        assert_eq!(text(r#""\ud800""#), None);
        assert_eq!(quoted("a\"\\\n\u{1}ä"), "\"a\\\"\\\\\\n\\u0001ä\"");
    }

    #[test]
    fn what_no_text_can_hold_is_replaced() {
        for (json, expected) in [
            (r#""a""#, None),
            (r#""\\ud800 \u00e4 \ud83d\ude00 \\u0000 \n""#, None),
            (r#""a\ud83d""#, Some(r#""a\ufffd""#)),
            (
                r#""\ude00ä\ud83d\ud83d\ude00\u0000b""#,
                Some(r#""\ufffdä\ufffd\ud83d\ude00\ufffdb""#),
            ),
            (r#""\ud83d\""#, Some(r#""\ufffd\""#)),
            (r#""\u+12""#, None),
        ] {
            assert_eq!(repair(json).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn spellings_of_one_value_are_equal() {
        let one = r#"{ "b" : [1, {"y":2,"x":"\u0041"}], "a":null }"#;
        let other = r#"{"a":null,"b":[1,{"x":"A","y":2}]}"#;
        assert_eq!(canonical(one), canonical(other));
        assert_eq!(canonical(other), other);
        assert_ne!(canonical("10000000000000000001"), canonical("10000000000000000002"));
    }

    #[test]
    fn structure_is_weighed_outside_of_texts() {
        for (json, depth, keys) in [
            ("1", 0, 0),
            ("{}", 1, 0),
            (r#"{"a:{[":"\":{[","b":{"c":[[]]}}"#, 4, 3),
            (r#"["a\\",{"b":1}]"#, 2, 1),
        ] {
            assert_eq!(weigh(json), Weight { depth, keys }, "{json}");
        }
    }
}
