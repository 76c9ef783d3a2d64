//! Writing JSON as text, where values stay as they were sent.
//!
//! What belongs here: what every crate that writes such text needs. What does
//! not: reading (`weir_capture::json` and, without its rules, `weir-import`).

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

#[cfg(test)]
mod tests {
    #[test]
    fn what_json_cannot_hold_is_escaped() {
        let mut out = "[".to_owned();
        super::push_string(&mut out, "a\"\\\n\r\t\u{1}ä\u{7f}");
        assert_eq!(out, "[\"a\\\"\\\\\\n\\r\\t\\u0001ä\u{7f}\"");
    }
}
