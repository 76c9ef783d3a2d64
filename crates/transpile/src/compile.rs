//! The compiler: parsing, checking, removing types and JSX, printing. The meaning of
//! modules and exports is in `analysis`.

use std::path::{Path, PathBuf};

use oxc_allocator::Allocator;
use oxc_ast::ast::{Decorator, Program, VariableDeclaration};
use oxc_ast_visit::{Visit, walk};
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_diagnostics::Diagnostics;
use oxc_parser::Parser;
use oxc_semantic::{Scoping, SemanticBuilder};
use oxc_span::{GetSpan, SourceType, Span};
use oxc_transformer::{JsxOptions, JsxRuntime, TransformOptions, Transformer};

use crate::error::Fault;

/// The language of a source.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Language {
    JavaScript,
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
}

impl Language {
    fn source_type(self) -> SourceType {
        match self {
            Self::JavaScript => SourceType::unambiguous(),
            Self::TypeScript => SourceType::ts().with_unambiguous(true),
            Self::Tsx => SourceType::tsx().with_unambiguous(true),
        }
    }
}

/// The output format.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    /// With its comments.
    Readable,
    /// Without comments.
    Bare,
    /// Without comments and whitespace.
    Dense,
}

/// A program without types and JSX.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) code: String,
    /// The line of the source for every line of the code; both from 1.
    pub(crate) lines: Vec<u32>,
}

impl Plain {
    /// The line of the source for a line of the code.
    pub(crate) fn source_line(&self, line: u32) -> u32 {
        source_line(&self.lines, line)
    }
}

/// Finds a line in the table; an empty table means that lines are equal.
pub(crate) fn source_line(lines: &[u32], line: u32) -> u32 {
    let index = usize::try_from(line).map_or(0, |line| line.saturating_sub(1));
    // Added code comes after the last line.
    lines.get(index).or(lines.last()).copied().unwrap_or(line)
}

/// A text that was parsed without faults.
pub(crate) struct Parsed<'a> {
    pub(crate) program: Program<'a>,
    pub(crate) scoping: Scoping,
}

/// Parses and checks a text.
pub(crate) fn parse<'a>(
    allocator: &'a Allocator,
    text: &'a str,
    language: Language,
) -> Result<Parsed<'a>, Fault> {
    let read = Parser::new(allocator, text, language.source_type()).parse();
    first(&read.diagnostics)?;
    if read.panicked {
        return Err(Fault::new("the source cannot be read", 0));
    }
    let program = read.program;
    let checked = SemanticBuilder::new_compiler()
        // The transform adds scopes and names.
        .with_excess_capacity(1.0)
        .with_enum_eval(true)
        .build(&program);
    first(&checked.diagnostics)?;
    let scoping = checked.semantic.into_scoping();
    let mut refused = Refused { found: None };
    refused.visit_program(&program);
    match refused.found {
        Some((message, span)) => Err(Fault::new(message, start(span))),
        None => Ok(Parsed { program, scoping }),
    }
}

/// Removes types and JSX.
pub(crate) fn strip(text: &str, language: Language, style: Style) -> Result<Plain, Fault> {
    let allocator = Allocator::default();
    let Parsed { mut program, scoping } = parse(&allocator, text, language)?;
    let options = TransformOptions {
        jsx: JsxOptions { runtime: JsxRuntime::Classic, ..JsxOptions::default() },
        ..TransformOptions::default()
    };
    // The path is used only in messages.
    let transformed = Transformer::new(&allocator, Path::new("plugin"), &options)
        .build_with_scoping(scoping, &mut program);
    first(&transformed.diagnostics)?;
    Ok(print(&program, style))
}

/// The text in the format of the printer, to compare programs.
pub(crate) fn reprint(text: &str, style: Style) -> Result<String, Fault> {
    let allocator = Allocator::default();
    let parsed = parse(&allocator, text, Language::JavaScript)?;
    Ok(print(&parsed.program, style).code)
}

fn print(program: &Program<'_>, style: Style) -> Plain {
    let options = CodegenOptions {
        comments: match style {
            Style::Readable => CommentOptions::default(),
            Style::Bare | Style::Dense => CommentOptions::disabled(),
        },
        minify: matches!(style, Style::Dense),
        source_map_path: Some(PathBuf::from("plugin")),
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).build(program);
    let mut lines = Vec::new();
    for token in printed.map.iter().flat_map(|map| map.get_tokens()) {
        let line = usize::try_from(token.get_dst_line()).unwrap_or(usize::MAX);
        // Tokens come in the order of the code. A line without a token continues the
        // previous line.
        while lines.len() < line {
            lines.push(lines.last().copied().unwrap_or(1));
        }
        if lines.len() == line {
            lines.push(token.get_src_line() + 1);
        }
    }
    Plain { code: printed.code, lines }
}

/// The first fault of a compiler step.
fn first(diagnostics: &Diagnostics) -> Result<(), Fault> {
    match diagnostics.errors().next() {
        None => Ok(()),
        Some(error) => {
            let at = error.labels.first().map_or(0, |label| start(label.span()));
            Err(Fault::new(error.message.to_string(), at))
        }
    }
}

/// The first byte of a span.
pub(crate) fn start(span: Span) -> usize {
    usize::try_from(span.start).unwrap_or(usize::MAX)
}

/// Finds syntax that the compiler accepts and the engine does not.
struct Refused {
    found: Option<(&'static str, Span)>,
}

impl Refused {
    fn note(&mut self, message: &'static str, span: Span) {
        self.found.get_or_insert((message, span));
    }
}

impl<'a> Visit<'a> for Refused {
    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.note("decorators are not supported", decorator.span());
    }

    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        if declaration.kind.is_using() {
            self.note("`using` declarations are not supported", declaration.span());
        }
        walk::walk_variable_declaration(self, declaration);
    }
}
