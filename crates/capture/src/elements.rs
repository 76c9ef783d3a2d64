//! The chain of clicked elements: a separate field, removed from the properties (ING-34).
//!
//! What belongs here: the text form, which newer libraries send, and converting the list
//! of older libraries to it:
//!
//! ```text
//! button.btn.primary:attr__id="go"attr_id="go"nth-child="2"nth-of-type="1"text="Buy";form:nth-child=…
//! ```
//!
//! Tag, classes in order, then names and values in order; innermost element first. What
//! does not: the meaning of elements, and searching chains.

use std::borrow::Cow;
use std::collections::BTreeMap;

use weir_json::{self as json, Cursor, Fault, Limits};

/// The property with the chain as a text.
pub(super) const CHAIN: &str = "$elements_chain";
/// The property with the chain as a list of elements.
pub(super) const LIST: &str = "$elements";

/// Maximum elements of a list: pages are not nested deeper. The text of an empty element
/// is ten times as long as the element, so the list must be bounded.
const LONGEST: usize = 1_000;
/// Maximum characters of the text of an element.
const TEXT_LIMIT: usize = 400;
/// Maximum characters of the target of a link.
const HREF_LIMIT: usize = 2_048;

/// Which forms of its chain of elements an event contains.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChainForms {
    /// As a text.
    pub(super) chain: bool,
    pub(super) list: bool,
}

/// The properties without the chain, and the chain. If there are both forms, the text
/// counts. A value that cannot be a chain stays in the properties.
pub(super) fn take(properties: Cow<'_, str>, given: ChainForms) -> (Cow<'_, str>, String) {
    let (properties, listed) = take_one(properties, given.list, LIST, |list| chain_of(list).ok());
    let text = |text: &str| json::string_lossy(text).map(Cow::into_owned);
    let (properties, written) = take_one(properties, given.chain, CHAIN, text);
    (properties, written.or(listed).unwrap_or_default())
}

fn take_one<'a>(
    properties: Cow<'a, str>,
    is_given: bool,
    name: &str,
    read: impl Fn(&str) -> Option<String>,
) -> (Cow<'a, str>, Option<String>) {
    if !is_given {
        return (properties, None);
    }
    let taken = json::take_member(&properties, name)
        .ok()
        .and_then(|(rest, value)| Some((rest, read(value)?)));
    match taken {
        Some((rest, chain)) => (Cow::Owned(rest), Some(chain)),
        None => (properties, None),
    }
}

/// Converts a JSON list of elements to a chain.
fn chain_of(list: &str) -> Result<String, Fault> {
    let mut chain = String::new();
    let mut count = 0;
    Cursor::new(list, Limits::NONE).list(|cursor| {
        count += 1;
        if count > LONGEST {
            return Err(Fault::TooManyKeys);
        }
        if count > 1 {
            chain.push(';');
        }
        Element::read(cursor)?.push_to(&mut chain);
        Ok(())
    })?;
    Ok(chain)
}

/// An element of a page.
#[derive(Default)]
struct Element {
    tag: String,
    classes: Vec<String>,
    /// By name, in order.
    attributes: BTreeMap<String, String>,
}

impl Element {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Fault> {
        let mut element = Self::default();
        // Positions that a library did not send are 0 in this form.
        element.set("nth-child", "0");
        element.set("nth-of-type", "0");
        cursor.object(|key, cursor| {
            let value = cursor.value()?;
            let name = key.text();
            let Some(text) = text_of(value) else { return Ok(()) };
            match name.as_ref() {
                "tag_name" => element.tag = text.to_string(),
                "$el_text" => element.set("text", start(&text, TEXT_LIMIT)),
                "nth_child" => element.set("nth-child", &text),
                "nth_of_type" => element.set("nth-of-type", &text),
                "attr__href" => element.set("href", start(&text, HREF_LIMIT)),
                "attr__id" => element.set("attr_id", &text),
                "attr__class" => element.classes = classes(value, &text)?,
                _ => {}
            }
            if name.starts_with("attr__") {
                element.attributes.insert(name.into_owned(), text.into_owned());
            }
            Ok(())
        })?;
        Ok(element)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.attributes.insert(name.to_owned(), value.to_owned());
    }

    fn push_to(mut self, chain: &mut String) {
        chain.push_str(&self.tag);
        self.classes.sort_unstable();
        for class in &self.classes {
            chain.push('.');
            chain.extend(class.chars().filter(|c| *c != '"'));
        }
        chain.push(':');
        for (name, value) in &self.attributes {
            push_escaped(chain, name);
            chain.push_str("=\"");
            push_escaped(chain, value);
            chain.push('"');
        }
    }
}

/// A value as text: `None` if `null` or empty. Other types are converted to JSON.
fn text_of(value: &str) -> Option<Cow<'_, str>> {
    let text = json::string_lossy(value).unwrap_or(Cow::Borrowed(value));
    if text.is_empty() || value == "null" { None } else { Some(text) }
}

/// Class names, from a text with blanks or from a list.
fn classes(value: &str, text: &str) -> Result<Vec<String>, Fault> {
    let mut names = Vec::new();
    if value.starts_with('[') {
        Cursor::new(value, Limits::NONE).list(|cursor| {
            names.extend(text_of(cursor.value()?).map(Cow::into_owned));
            Ok(())
        })?;
    } else {
        names.extend(text.split_whitespace().map(str::to_owned));
    }
    Ok(names)
}

/// The first `limit` characters.
fn start(text: &str, limit: usize) -> &str {
    match text.char_indices().nth(limit) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// Appends text with a backslash before each quote that has none.
fn push_escaped(chain: &mut String, text: &str) {
    let mut before = ' ';
    for c in text.chars() {
        if c == '"' && before != '\\' {
            chain.push('\\');
        }
        chain.push(c);
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::chain_of;
    use crate::decide::tests::accepted;

    #[test]
    fn lists_become_the_text_that_newer_libraries_send() {
        for (list, chain) in [
            ("[]", ""),
            ("[{}]", r#":nth-child="0"nth-of-type="0""#),
            (
                r#"[{"tag_name":"a","$el_text":"Home","attr__href":"/","nth_child":2,"nth_of_type":1}]"#,
                r#"a:attr__href="/"href="/"nth-child="2"nth-of-type="1"text="Home""#,
            ),
            (
                r#"[{"tag_name":"button","classes":["x"],"attr__class":" primary  btn ","attr__id":"go","attr__data-n":7,"nth_child":1,"nth_of_type":1},{"tag_name":"body"}]"#,
                concat!(
                    r#"button.btn.primary:attr__class=" primary  btn "attr__data-n="7"attr__id="go""#,
                    r#"attr_id="go"nth-child="1"nth-of-type="1";body:nth-child="0"nth-of-type="0""#
                ),
            ),
            // quotes, also in names; JSON escapes are decoded first
            (
                r#"[{"tag_name":"p","$el_text":"say \"hi\" \\\" é","attr__class":["b\"b","a"],"attr__a\"b":"c"}]"#,
                concat!(
                    r#"p.a.bb:attr__a\"b="c"attr__class="[\"b\"b\",\"a\"]"nth-child="0""#,
                    r#"nth-of-type="0"text="say \"hi\" \" é""#
                ),
            ),
            // unknown, missing or empty values
            (
                r#"[{"tag_name":"p","$el_text":null,"attr__id":"","other":1,"attr__href":null}]"#,
                r#"p:nth-child="0"nth-of-type="0""#,
            ),
        ] {
            assert_eq!(chain_of(list).as_deref(), Ok(chain), "{list}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let list = format!(
            r#"[{{"tag_name":"a","$el_text":"{}","attr__href":"{}"}}]"#,
            "é".repeat(500),
            "u".repeat(3_000)
        );
        let chain = chain_of(&list).unwrap();
        assert!(chain.ends_with(&format!("\"text=\"{}\"", "é".repeat(400))));
        assert!(chain.contains(&format!("\"href=\"{}\"n", "u".repeat(2_048))));
    }

    #[test]
    fn what_is_no_list_of_elements_stays_where_it_is() {
        let many = format!("[{}]", vec!["{}"; 1_001].join(","));
        for list in [r#""a""#, "{}", "[1]", r#"[{},"a"]"#, "null", &many] {
            let raw = format!(
                r#"{{"event":"a","distinct_id":"d","properties":{{"$elements":{list},"b":1}}}}"#
            );
            let event = accepted(&raw);
            assert_eq!(event.elements_chain, "", "{list}");
            assert_eq!(event.properties, format!(r#"{{"$elements":{list},"b":1}}"#));
        }
    }

    #[test]
    fn of_both_forms_the_text_counts() {
        let event = accepted(
            r#"{"event":"a","distinct_id":"d","properties":
                {"$elements_chain":"a:","$elements":[{"tag_name":"b"}],"c":1}}"#,
        );
        assert_eq!(event.elements_chain, "a:");
        assert_eq!(event.properties, r#"{"c":1}"#);
        let event = accepted(
            r#"{"event":"a","distinct_id":"d","properties":
                {"$elements":[{"tag_name":"b"}],"c":1.50}}"#,
        );
        assert_eq!(event.elements_chain, r#"b:nth-child="0"nth-of-type="0""#);
        assert_eq!(event.properties, r#"{"c":1.50}"#);
    }
}
