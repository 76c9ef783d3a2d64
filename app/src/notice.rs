//! Notices: the message about a form that the next page shows once. A notice travels in a
//! short-lived cookie, as form-encoded pairs.

use crate::local_path::encode;

/// Longest encoded notice in a cookie, in bytes.
const LONGEST: usize = 1024;
/// Longest text, in characters.
const TEXT: usize = 200;
/// Names of the first two pairs. The arguments of the undo function follow them.
const NAMES: [&str; 2] = ["text", "undo"];

/// A message about a completed action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The message.
    pub text: String,
    /// How to undo the action, if that is possible.
    pub undo: Option<Undo>,
}

/// A form that undoes an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// Path of the server function.
    pub function: String,
    /// Arguments of the server function.
    pub fields: Vec<(String, String)>,
}

impl Notice {
    /// A notice without an undo.
    pub fn new(text: &str) -> Self {
        Self { text: text.chars().take(TEXT).collect(), undo: None }
    }

    /// The notice with an undo.
    #[must_use]
    pub fn with_undo(self, function: &str, fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let undo = Undo { function: function.to_owned(), fields: fields.collect() };
        Self { undo: Some(undo), ..self }
    }

    /// The notice in its encoded form. An undo that is too long is omitted; the message
    /// stays.
    pub fn text_in_cookie(&self) -> String {
        let [text, undo] = NAMES;
        let message = self.text_that_fits(text);
        let Some(action) = &self.undo else { return message };
        let mut all = format!("{message}&{undo}={}", encode(&action.function));
        for (name, value) in &action.fields {
            all.push('&');
            all.push_str(&encode(name));
            all.push('=');
            all.push_str(&encode(value));
        }
        if all.len() <= LONGEST { all } else { message }
    }

    /// Shortens the text, because encoding can make letters up to twelve times longer.
    fn text_that_fits(&self, name: &str) -> String {
        let mut message = format!("{name}=");
        for letter in self.text.chars() {
            let encoded = encode(letter.encode_utf8(&mut [0; 4]));
            if message.len() + encoded.len() > LONGEST {
                break;
            }
            message.push_str(&encoded);
        }
        message
    }

    /// Decodes a notice from its encoded form.
    pub fn from_text(text: &str, is_function: impl Fn(&str) -> bool) -> Option<Self> {
        Self::from_pairs(crate::local_path::pairs(text), is_function)
    }

    /// Decodes a notice from its pairs. An undo counts only if `is_function` knows its
    /// path.
    pub fn from_pairs(
        pairs: Vec<(String, String)>,
        is_function: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let mut pairs = pairs.into_iter();
        let (name, text) = pairs.next()?;
        if name != NAMES[0] || text.is_empty() {
            return None;
        }
        let undo = pairs
            .next()
            .filter(|(name, function)| name == NAMES[1] && is_function(function))
            .map(|(_, function)| Undo { function, fields: pairs.collect() });
        Some(Self { undo, ..Self::new(&text) })
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Notice};

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_notice_survives_encoding() {
        let notice = Notice::new("Paused; 50% \"done\", Zoë");
        assert_eq!(notice.text_in_cookie(), "text=Paused%3B%2050%25%20%22done%22%2C%20Zo%C3%AB");
        let notice = notice.with_undo("/_fn/resume", &[("id", "a b"), ("text", "x&y")]);
        let cookie = notice.text_in_cookie();
        assert!(cookie.ends_with("&undo=/_fn/resume&id=a%20b&text=x%26y"), "{cookie}");
        let read = Notice::from_pairs(
            pairs(&[
                ("text", &notice.text),
                ("undo", "/_fn/resume"),
                ("id", "a b"),
                ("text", "x&y"),
            ]),
            |path| path == "/_fn/resume",
        );
        assert_eq!(read, Some(notice));
    }

    #[test]
    fn unknown_pairs_are_ignored() {
        let read = |given: &[(&str, &str)]| Notice::from_pairs(pairs(given), |_| false);
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("undo", "/_fn/x")]), None);
        assert_eq!(read(&[("text", "")]), None);
        let plain = Some(Notice::new("Done"));
        assert_eq!(read(&[("text", "Done"), ("undo", "https://evil.example")]), plain);
        assert_eq!(read(&[("text", "Done"), ("other", "x")]), plain);
    }

    #[test]
    fn nothing_long_travels() {
        let long = "x".repeat(2 * LONGEST);
        let notice = Notice::new("Done").with_undo("/_fn/x", &[("id", &long)]);
        assert_eq!(notice.text_in_cookie(), "text=Done");
        let cookie = Notice::new(&"ä".repeat(500)).text_in_cookie();
        assert!(cookie.len() <= LONGEST && cookie.ends_with("%C3%A4"), "{cookie}");
    }
}
