//! Writing HTML. Texts are escaped.

/// A page that is being written.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Adds markup without escaping. It must not contain input.
    pub(super) fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Adds a text.
    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                c => self.0.push(c),
            }
        }
    }

    /// Adds a text in which backticks mark code.
    pub(super) fn prose(&mut self, text: &str) {
        for (at, part) in text.split('`').enumerate() {
            if at % 2 == 1 {
                self.element("code", "", part);
            } else {
                self.text(part);
            }
        }
    }

    /// The beginning of an element.
    pub(super) fn open(&mut self, name: &str, class: &str) {
        if class.is_empty() {
            self.raw(&format!("<{name}>"));
        } else {
            self.raw(&format!("<{name} class=\"{class}\">"));
        }
    }

    /// Its end.
    pub(super) fn close(&mut self, name: &str) {
        self.raw(&format!("</{name}>"));
    }

    /// An element with text.
    pub(super) fn element(&mut self, name: &str, class: &str, text: &str) {
        self.open(name, class);
        self.text(text);
        self.close(name);
    }

    pub(super) fn link(&mut self, address: &str, class: &str, text: &str) {
        self.raw("<a href=\"");
        self.text(address);
        self.raw(&format!("\" class=\"{class}\">"));
        self.text(text);
        self.close("a");
    }

    /// The page.
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Html;

    #[test]
    fn text_is_escaped() {
        let mut html = Html::default();
        html.prose("a `<b>` & \"c\"");
        assert_eq!(html.into_text(), "a <code>&lt;b&gt;</code> &amp; &quot;c&quot;");
    }
}
