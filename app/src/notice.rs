//! What a page tells of the form that led to it, and how that travels there: in
//! a short-lived cookie, as pairs like those of a form.

use crate::local_path::encode;

/// Longest form in a cookie, in bytes.
const LONGEST: usize = 1024;
/// Longest text, in characters.
const TEXT: usize = 200;
/// Names of the first two pairs. What the way back is sent follows them.
const NAMES: [&str; 2] = ["text", "undo"];

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What was done.
    pub text: String,
    /// How it is taken back.
    pub undo: Option<Undo>,
}

/// A form that takes something back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// Path of the server function.
    pub function: String,
    /// What it is sent.
    pub fields: Vec<(String, String)>,
}

impl Notice {
    /// Something that is not taken back from here.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.chars().take(TEXT).collect(), undo: None }
    }

    /// The same with a way back.
    #[must_use]
    pub fn with_undo(self, function: &str, fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let undo = Undo { function: function.to_owned(), fields: fields.collect() };
        Self { undo: Some(undo), ..self }
    }

    /// As it travels. A way back that is too long is left out: what was done is
    /// told all the same.
    #[must_use]
    pub fn text_in_cookie(&self) -> String {
        let [text, undo] = NAMES;
        let told = self.text_that_fits(text);
        let Some(way) = &self.undo else { return told };
        let mut all = format!("{told}&{undo}={}", encode(&way.function));
        for (name, value) in &way.fields {
            all.push('&');
            all.push_str(&encode(name));
            all.push('=');
            all.push_str(&encode(value));
        }
        if all.len() <= LONGEST { all } else { told }
    }

    /// Letters can become twelve times as long on the way.
    fn text_that_fits(&self, name: &str) -> String {
        let mut told = format!("{name}=");
        for letter in self.text.chars() {
            let encoded = encode(letter.encode_utf8(&mut [0; 4]));
            if told.len() + encoded.len() > LONGEST {
                break;
            }
            told.push_str(&encoded);
        }
        told
    }

    /// What travelled, from its decoded pairs. A way back counts only where
    /// `is_function` knows its path.
    #[must_use]
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
    fn a_notice_travels() {
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
    fn what_is_not_ours_is_left_out() {
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
