//! Server code: `index.ts`, `index.js` (PLG-23, PLG-25).

use std::ops::Range;

use oxc_allocator::Allocator;
use serde::{Deserialize, Serialize};

use crate::analysis::{self, Analysis, Import};
use crate::compile::{self, Language, Plain, Style};
use crate::depth;
use crate::error::{Fault, SourceError};
use crate::scan::Grammar;

/// How a script says what it offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// With `import` or `export`.
    Module,
    /// With `module`, `exports` or `require`.
    CommonJs,
    /// Neither: its functions are what it offers.
    Functions,
}

/// Server code that the engine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// JavaScript. A source that is JavaScript already stays as it is, so that its lines
    /// and columns do.
    pub code: String,
    /// What it has to be run as. A module may mention `module`, `exports` and `require`
    /// as well.
    pub kind: Kind,
    /// The modules that it asks for by a constant name, in the order of the source.
    pub imports: Vec<Import>,
    /// The line of the source for every line of `code`, both from 1. Empty when they are
    /// the same.
    pub lines: Vec<u32>,
}

impl Script {
    /// The line of the source for a line of the code that runs: of an error, or of a log.
    pub fn source_line(&self, line: u32) -> u32 {
        compile::source_line(&self.lines, line)
    }
}

/// Turns server code into what the engine runs. The file's name tells the language:
/// `.js`, `.mjs` and `.cjs` are JavaScript, all others TypeScript, or JavaScript when
/// that is the only way to read them, since every entry file is kept as `index.ts`.
///
/// A module that exports nothing exports what it declares, as a script does. One that
/// imports types alone is a script.
///
/// # Errors
///
/// The first fault of the source.
pub fn server(file_name: &str, text: &str) -> Result<Script, SourceError> {
    depth::guarded(file_name, text, Grammar::Script, |text| script(language(file_name), text))
}

fn language(file_name: &str) -> Language {
    let extension = file_name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if ["js", "mjs", "cjs"].iter().any(|other| extension.eq_ignore_ascii_case(other)) {
        Language::JavaScript
    } else {
        Language::TypeScript
    }
}

fn script(language: Language, text: &str) -> Result<Script, Fault> {
    let Plain { mut code, lines } = match language {
        Language::JavaScript => as_it_is(text),
        Language::TypeScript | Language::Tsx => without_types(language, text)?,
    };
    let mut analysis = analyse(&code)?;
    if !lines.is_empty() && !analysis.markers.is_empty() {
        // Taking types out leaves `export {}` where a module imported types alone. Authors
        // mean a script: what they export stands in `module.exports`, or is its functions.
        code = without(&code, &analysis.markers);
        analysis = analyse(&code)?;
    }
    let kind = if analysis.is_module {
        Kind::Module
    } else if analysis.common_js {
        Kind::CommonJs
    } else {
        Kind::Functions
    };
    if kind == Kind::Module && analysis.offers_declared() {
        code.push_str(&analysis::export_clause(analysis.declared.iter().map(String::as_str)));
    }
    for import in &mut analysis.imports {
        import.line = compile::source_line(&lines, import.line);
    }
    Ok(Script { code, kind, imports: analysis.imports, lines })
}

/// A text without these parts, which come in order.
fn without(text: &str, parts: &[Range<usize>]) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for part in parts {
        rest.push_str(text.get(from..part.start).unwrap_or_default());
        from = part.end;
    }
    rest.push_str(text.get(from..).unwrap_or_default());
    rest
}

fn analyse(code: &str) -> Result<Analysis, Fault> {
    let allocator = Allocator::default();
    let parsed = compile::parse(&allocator, code, Language::JavaScript)?;
    Ok(Analysis::of(&parsed, code))
}

fn without_types(language: Language, text: &str) -> Result<Plain, Fault> {
    match compile::strip(text, language, Style::Readable) {
        Ok(plain) => match compile::reprint(text, Style::Readable) {
            // Nothing was taken out.
            Ok(same) if same == plain.code => Ok(as_it_is(text)),
            Ok(_) | Err(_) => Ok(plain),
        },
        Err(fault) => match compile::reprint(text, Style::Readable) {
            Ok(_) => Ok(as_it_is(text)),
            Err(_) => Err(fault),
        },
    }
}

fn as_it_is(text: &str) -> Plain {
    Plain { code: text.to_owned(), lines: Vec::new() }
}
