//! The members of a line, to take out, rename and add.
//!
//! What belongs here: editing one object. What does not: reading JSON text (`weir-json`),
//! and the meaning of events (`event`). The objects of the catalogue (`weir-catalogue`)
//! are others: they open nested objects and return the text as sent.

use std::borrow::Cow;

use weir_json::{Members, ObjectWriter, string, weigh};

/// An object in the order of its text. Of a duplicate name, the last one counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineObject<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> LineObject<'a> {
    /// Parses an object.
    pub(crate) fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        let members = Members::parse(json)?.into_iter();
        Ok(Self(members.map(|(name, value)| (name, Cow::Borrowed(value))).collect()))
    }

    /// The same without borrowing from the text.
    pub(crate) fn into_owned(self) -> LineObject<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        LineObject(self.0.into_iter().map(|(name, value)| (owned(name), owned(value))).collect())
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
        self.get(name).and_then(string).filter(|text| !text.is_empty())
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
        1 + self.0.iter().map(|(_, value)| weigh(value.as_bytes()).depth).max().unwrap_or(0)
    }

    /// Appends the members to an object.
    pub(crate) fn write_members(&self, object: &mut ObjectWriter<'_>) {
        for (name, value) in &self.0 {
            object.json(name, value);
        }
    }

    /// The object as JSON text.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::new();
        let mut object = ObjectWriter::begin(&mut out);
        self.write_members(&mut object);
        object.end();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::LineObject;

    #[test]
    fn objects_keep_what_they_do_not_change() {
        let json = r#"{"a":12345678901234567890123,"b\u0041":1.10,"c":null,"d":"x\ny"}"#;
        let mut object = LineObject::parse(json).unwrap();
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
        let mut object = LineObject::parse(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(object.get("a"), Some("2"));
        assert_eq!(object.take("a").as_deref(), Some("2"));
        assert!(object.is_empty());
    }
}
