//! Server code: `index.ts`, `index.js` (PLG-23, PLG-25).

use std::ops::Range;

use oxc_allocator::Allocator;
use serde::{Deserialize, Serialize};

use crate::analysis::{self, Analysis, Import};
use crate::compile::{self, Language, Plain, Style};
use crate::depth;
use crate::error::{Fault, SourceError};
use crate::scan::Grammar;

/// How a script defines its functions for the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// By `import` or `export`.
    Module,
    /// By `module`, `exports` or `require`.
    CommonJs,
    /// By its top-level functions.
    Functions,
}

/// Server code that the engine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// JavaScript. A source in JavaScript is not changed, so that lines and columns stay
    /// the same.
    pub code: String,
    /// How to run it. A module may also mention `module`, `exports` and `require`.
    pub kind: Kind,
    /// The modules that it imports by a constant name, in the order of the source.
    pub imports: Vec<Import>,
    /// The line of the source for every line of `code`, both from 1. Empty if they are
    /// equal.
    pub lines: Vec<u32>,
}

impl Script {
    /// The line of the source for a line of the code, such as the line of an error.
    pub fn source_line(&self, line: u32) -> u32 {
        compile::source_line(&self.lines, line)
    }
}

/// Converts server code to code for the engine. The file name selects the language:
/// `.js`, `.mjs` and `.cjs` are JavaScript. All others are TypeScript, or JavaScript if
/// they are valid only as that, since every entry file is stored as `index.ts`.
///
/// A module without exports exports its declarations, like a script. A module that
/// imports only types is a script.
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
    if !lines.is_empty() && !analysis.empty_exports.is_empty() {
        // Removing types leaves `export {}` in a module that imported only types. Authors
        // mean a script: it exports by `module.exports`, or by its functions.
        code = without(&code, &analysis.empty_exports);
        analysis = analyse(&code)?;
    }
    let kind = if analysis.is_module {
        Kind::Module
    } else if analysis.common_js {
        Kind::CommonJs
    } else {
        Kind::Functions
    };
    if kind == Kind::Module && analysis.exports_its_declarations() {
        code.push_str(&analysis::export_clause(analysis.declared.iter().map(String::as_str)));
    }
    for import in &mut analysis.imports {
        import.line = compile::source_line(&lines, import.line);
    }
    Ok(Script { code, kind, imports: analysis.imports, lines })
}

/// A text without these ranges, which must be in order.
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
            // There was nothing to remove.
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
