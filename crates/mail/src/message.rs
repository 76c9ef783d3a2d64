//! A mail as a few typed parts, and its two forms. Both have the same content, so that
//! users of programs for plain text miss nothing.
//!
//! What belongs here: the parts and both forms. What does not: the texts of each kind of
//! mail (`texts`).

use std::fmt::Write as _;

/// A mail, independent of its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The address of its only receiver.
    pub to: String,
    /// Name and address for replies. `None`: replies go to the sender.
    pub reply_to: Option<(String, String)>,
    /// The subject: one line.
    pub subject: String,
    /// The content, from the first part to the last.
    pub parts: Vec<Part>,
}

/// A part of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// Text that another user wrote, with its line breaks.
    Quote(String),
    /// The one action of the mail.
    Link {
        /// The label of the button.
        label: String,
        /// The URL that it opens.
        url: String,
    },
    /// A remark at the end.
    Remark(String),
}

const BODY: &str = "margin:0;padding:32px 16px;background:#f6f5f2;color:#1d1c1a;\
     font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif";
const SHEET: &str = "max-width:560px;margin:0 auto;padding:32px;background:#ffffff;\
     border:1px solid #dddad3;border-radius:8px";
const BUTTON: &str = "display:inline-block;padding:10px 20px;background:#14532d;color:#ffffff;\
     text-decoration:none;border-radius:6px";
const QUOTE: &str = "margin:16px 0;padding:4px 0 4px 16px;border-left:3px solid #dddad3;\
     white-space:pre-line";
const SMALL: &str = "color:#5c5952;font-size:14px";

impl Message {
    /// The form for programs that show plain text only.
    pub fn plain(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            if !text.is_empty() {
                text.push('\n');
            }
            match part {
                Part::Text(words) => line(&mut text, words),
                Part::Quote(words) => {
                    for words in words.lines() {
                        line(&mut text, format!("> {words}").trim_end());
                    }
                }
                Part::Link { label, url } => {
                    line(&mut text, &format!("{label}:"));
                    line(&mut text, url);
                }
                Part::Remark(words) => {
                    line(&mut text, "--");
                    line(&mut text, words);
                }
            }
        }
        text
    }

    /// The form for programs that show HTML. It loads no external resources.
    pub fn html(&self) -> String {
        let mut parts = String::new();
        for part in &self.parts {
            let part = match part {
                Part::Text(words) => format!("<p>{}</p>", escaped(words)),
                Part::Quote(words) => {
                    format!("<blockquote style=\"{QUOTE}\">{}</blockquote>", escaped(words))
                }
                Part::Link { label, url } => {
                    let (label, url) = (escaped(label), escaped(url));
                    format!(
                        "<p><a href=\"{url}\" style=\"{BUTTON}\">{label}</a></p>\n\
                         <p style=\"{SMALL}\">{url}</p>"
                    )
                }
                Part::Remark(words) => format!("<p style=\"{SMALL}\">{}</p>", escaped(words)),
            };
            line(&mut parts, &part);
        }
        let title = escaped(&self.subject);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             </head>\n<body style=\"{BODY}\">\n<div style=\"{SHEET}\">\n{parts}</div>\n</body>\n\
             </html>\n"
        )
    }
}

fn line(text: &mut String, words: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{words}");
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
