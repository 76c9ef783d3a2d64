//! A mail as a few typed parts, and its two forms. Both have the same content, so that
//! users of programs for plain text miss nothing.
//!
//! What belongs here: the parts and both forms. What does not: the texts of each kind of
//! mail (`texts`).

use std::fmt::Write as _;

use weir_model::reports::{Chart, ReportTable};

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
    /// The heading of a part of the mail.
    Heading(String),
    /// One number that is the answer.
    Number(String),
    /// A chart. Programs without HTML show the parts around it.
    Chart {
        /// What it shows, for readers who do not see it.
        description: String,
        /// The chart.
        chart: Chart,
    },
    /// A table.
    Table(ReportTable),
    /// A link beside the one action.
    Reference {
        /// The text of the link.
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
const HEADING: &str = "margin:32px 0 0;font-size:20px;line-height:1.3";
const NUMBER: &str = "margin:8px 0;font-size:40px;line-height:1.2";
const CHART: &str = "display:block;width:100%;max-width:560px;height:auto;margin:16px 0";
const TABLE: &str = "width:100%;border-collapse:collapse;margin:16px 0;font-size:14px";
const CELL: &str = "padding:4px 8px 4px 0;border-bottom:1px solid #dddad3;vertical-align:top";
const LEFT: &str = "text-align:left";
const RIGHT: &str = "text-align:right";
const SMALL: &str = "color:#5c5952;font-size:14px";

impl Message {
    /// The form for programs that show plain text only.
    pub fn plain(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            if matches!(part, Part::Chart { .. }) {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            match part {
                Part::Text(words) | Part::Number(words) => line(&mut text, words),
                Part::Heading(words) => {
                    line(&mut text, words);
                    line(&mut text, &"=".repeat(words.chars().count()));
                }
                Part::Chart { .. } => {}
                Part::Table(table) => text.push_str(&plain_table(table)),
                Part::Quote(words) => {
                    for words in words.lines() {
                        line(&mut text, format!("> {words}").trim_end());
                    }
                }
                Part::Link { label, url } | Part::Reference { label, url } => {
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

    /// The charts, in the order of the images that the form in HTML names.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.parts.iter().filter_map(|part| match part {
            Part::Chart { chart, .. } => Some(chart),
            _ => None,
        })
    }

    /// The form for programs that show HTML. It loads no external resources: the images of
    /// charts are parts of the mail.
    pub fn html(&self) -> String {
        let (mut parts, mut charts) = (String::new(), 0);
        for part in &self.parts {
            let part = match part {
                Part::Heading(words) => {
                    format!("<h2 style=\"{HEADING}\">{}</h2>", escaped(words))
                }
                Part::Number(words) => format!("<p style=\"{NUMBER}\">{}</p>", escaped(words)),
                Part::Chart { description, .. } => {
                    charts += 1;
                    let (id, description) = (content_id(charts), escaped(description));
                    format!("<img src=\"cid:{id}\" alt=\"{description}\" style=\"{CHART}\">")
                }
                Part::Table(table) => html_table(table),
                Part::Reference { label, url } => {
                    format!("<p><a href=\"{}\">{}</a></p>", escaped(url), escaped(label))
                }
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

/// The id by which a mail names the image of a chart, from 1. It only has to be unique within
/// the mail.
pub(crate) fn content_id(number: usize) -> String {
    format!("chart-{number}@weir")
}

/// A table in columns of equal width.
fn plain_table(table: &ReportTable) -> String {
    let lines = || std::iter::once(&table.columns).chain(&table.rows);
    let width = |at: usize| {
        let cells = lines().filter_map(|cells| cells.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut text = String::new();
    for cells in lines() {
        let mut words = String::new();
        for (at, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
            let padded = match at {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
            words.push_str(&padded);
        }
        line(&mut text, words.trim_end());
    }
    text
}

fn html_table(table: &ReportTable) -> String {
    let row = |name: &str, cells: &[String]| {
        let cells = cells.iter().enumerate().map(|(at, cell)| {
            let side = if at == 0 { LEFT } else { RIGHT };
            format!("<{name} style=\"{CELL};{side}\">{}</{name}>", escaped(cell))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let rows: String = table.rows.iter().map(|cells| row("td", cells)).collect();
    format!("<table style=\"{TABLE}\">\n{}{rows}</table>", row("th", &table.columns))
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
