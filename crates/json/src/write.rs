//! Writing JSON.

/// Appends `text` as a JSON string.
pub fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A text as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_string(&mut out, text);
    out
}

/// Whether a JSON value is an empty list. PHP writes an object without members like that.
pub fn is_empty_list(json: &str) -> bool {
    let inner = json.trim_ascii().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}

/// Appends an object to a text, member by member. Names are not compared.
#[derive(Debug)]
#[must_use = "the object has no end before `end`"]
pub struct ObjectWriter<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Begins an object.
    pub fn begin(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    /// Begins a member; the caller appends its value.
    pub fn name(&mut self, name: &str) -> &mut String {
        self.separate();
        push_string(self.out, name);
        self.out.push(':');
        self.out
    }

    /// Adds a member whose value is a text.
    pub fn text(&mut self, name: &str, text: &str) {
        push_string(self.name(name), text);
    }

    /// Adds a member whose value is JSON.
    pub fn json(&mut self, name: &str, json: &str) {
        self.name(name).push_str(json);
    }

    /// Adds a member whose name is written as it was sent.
    pub(crate) fn sent(&mut self, key: crate::Key<'_>, json: &str) {
        self.separate();
        for part in ["\"", key.raw, "\":", json] {
            self.out.push_str(part);
        }
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(',');
        }
    }

    /// Ends the object.
    pub fn end(self) {
        self.out.push('}');
    }
}
