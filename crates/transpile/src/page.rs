//! Code for browsers: `frontend.tsx`, a panel of the app, and `site.ts`, for visited
//! pages (PLG-24).
//!
//! A module becomes a function that returns its exports. Exports are read through
//! getters, so they follow their variables as in a module. Imports are read once, when
//! the function begins.

use std::collections::HashSet;
use std::fmt::Write;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Declaration, ExportDefaultDeclarationKind, ImportDeclaration, ImportDeclarationSpecifier,
    ModuleExportName, Statement,
};
use oxc_span::{GetSpan, Span};
use serde::{Deserialize, Serialize};

use crate::analysis::{self, Analysis, Import};
use crate::compile::{self, Language, Plain, Style};
use crate::depth;
use crate::error::{Fault, SourceError};
use crate::position::Lines;
use crate::scan::Grammar;

/// Code for a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// JavaScript.
    pub code: String,
    /// The modules that it imports by a constant name.
    pub imports: Vec<Import>,
}

/// Converts `frontend.tsx` to a module with `getFrontendApp(require)`, which returns the
/// exports. JSX becomes calls of `React.createElement`; a source without an import of
/// React gets it by `require('react')`.
///
/// # Errors
///
/// The first fault of the source.
pub fn frontend(text: &str) -> Result<Page, SourceError> {
    depth::guarded("frontend.tsx", text, Grammar::Jsx, |text| {
        let plain = compile::strip(text, Language::Tsx, Style::Bare)?;
        let (body, imports) = body(text, &plain, Runtime::App)?;
        let code = format!(
            "export function getFrontendApp(require) {{\n\"use strict\";\n{body}\nreturn \
             module.exports;\n}}\n"
        );
        Ok(Page { code: checked(&code, Style::Bare)?, imports })
    })
}

/// Converts `site.ts` to a function expression, `(function () {…})`, which returns the
/// exports. Whitespace and comments are removed.
///
/// # Errors
///
/// The first fault of the source. It may not import modules, since a page has none.
pub fn site(text: &str) -> Result<Page, SourceError> {
    depth::guarded("site.ts", text, Grammar::Script, |text| {
        let plain = compile::strip(text, Language::TypeScript, Style::Bare)?;
        let (body, imports) = body(text, &plain, Runtime::Site)?;
        let code = format!("(function () {{\n\"use strict\";\n{body}\nreturn module.exports;\n}})");
        let code = checked(&code, Style::Dense)?;
        let expression = code.trim_end().trim_end_matches(';').to_owned();
        Ok(Page { code: expression, imports })
    })
}

/// The environment of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runtime {
    /// A function `require` with the modules of the app.
    App,
    /// No modules.
    Site,
}

/// Prints the generated code, if it is a valid program: names of the source may clash
/// with generated ones.
fn checked(code: &str, style: Style) -> Result<String, Fault> {
    compile::reprint(code, style).map_err(|_| {
        Fault::new(
            "the source cannot stand in a function: it must not declare `exports`, `module` or \
             `require`",
            0,
        )
    })
}

/// The statements of the function.
fn body(text: &str, plain: &Plain, runtime: Runtime) -> Result<(String, Vec<Import>), Fault> {
    let code = plain.code.as_str();
    let allocator = Allocator::default();
    let parsed = compile::parse(&allocator, code, Language::JavaScript)?;
    let mut analysis = Analysis::of(&parsed, code);
    for import in &mut analysis.imports {
        import.line = plain.source_line(import.line);
    }

    let refused = |message: &str, line: u32| Err(Fault::new(message, Lines::of(text).start(line)));
    if let Some(line) = analysis.await_line {
        return refused("`await` stands outside of a function", plain.source_line(line));
    }
    if runtime == Runtime::Site {
        if let Some(import) = analysis.imports.first() {
            return refused("a page has no modules to import", import.line);
        }
        if let Some(line) = analysis.meta_line {
            return refused("`import.meta` is not known on a page", plain.source_line(line));
        }
    }

    let mut writer = Writer::new(code);
    if analysis.is_module {
        writer.line("Object.defineProperty(exports,\"__esModule\",{value:true});");
    }
    if analysis.free_react && runtime == Runtime::App {
        let module = writer.require("react");
        let value = writer.default_of(&module);
        writer.line(&format!("const React={value};"));
    }
    if analysis.exports_its_declarations() {
        for name in &analysis.declared {
            writer.getter(name, name);
        }
    }
    for statement in &parsed.program.body {
        writer.statement(statement);
    }
    Ok((writer.finish(), analysis.imports))
}

/// Converts modules to functions.
struct Writer<'c> {
    code: &'c str,
    /// Prefix of generated names. No name in the code begins with it.
    prefix: String,
    modules: usize,
    /// The beginning: modules and exports, since imports are read before anything runs.
    head: String,
    /// Copies of all exports of other modules, after the exports of this module, which
    /// take precedence.
    stars: String,
    body: String,
}

impl<'c> Writer<'c> {
    fn new(code: &'c str) -> Self {
        let prefix = unused(code);
        let head = "const module={exports:{}},exports=module.exports;\n".to_owned();
        Self { code, prefix, modules: 0, head, stars: String::new(), body: String::new() }
    }

    fn finish(self) -> String {
        self.head + &self.stars + &self.body
    }

    fn line(&mut self, line: &str) {
        self.head.push_str(line);
        self.head.push('\n');
    }

    fn text(&self, span: Span) -> &'c str {
        let byte = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
        self.code.get(byte(span.start)..byte(span.end)).unwrap_or_default()
    }

    /// Imports a module; returns the name of its constant.
    fn require(&mut self, module: &str) -> String {
        let name = format!("{}{}", self.prefix, self.modules);
        self.modules += 1;
        self.line(&format!("const {name}=require({});", quoted(module)));
        name
    }

    /// Compiled ES modules have a marker; for other modules the default export is the
    /// whole module.
    fn default_of(&self, module: &str) -> String {
        format!("{module}&&{module}.__esModule?{module}.default:{module}")
    }

    fn namespace_of(&self, module: &str) -> String {
        format!("{module}&&{module}.__esModule?{module}:{{default:{module},...{module}}}")
    }

    fn member_of(&self, module: &str, name: &str) -> String {
        if name == "default" {
            self.default_of(module)
        } else {
            format!("{module}[{}]", quoted(name))
        }
    }

    fn getter(&mut self, name: &str, value: &str) {
        let name = quoted(name);
        self.line(&format!(
            "Object.defineProperty(exports,{name},{{enumerable:true,get:()=>{value}}});"
        ));
    }

    fn statement(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ImportDeclaration(import) => self.import(import),
            Statement::ExportDeclaration(export) => {
                for name in names(&export.declaration) {
                    self.getter(&name, &name);
                }
                self.push(export.declaration.span());
            }
            Statement::ExportNamedDeclaration(export) => {
                for specifier in &export.specifiers {
                    let local = specifier.local.name();
                    self.getter(&specifier.exported.name(), &local);
                }
            }
            Statement::ExportFromDeclaration(export) => {
                let module = self.require(&export.source.value);
                for specifier in &export.specifiers {
                    let value = self.member_of(&module, &specifier.local.name());
                    self.getter(&specifier.exported.name(), &value);
                }
            }
            Statement::ExportAllDeclaration(export) => {
                let module = self.require(&export.source.value);
                match export.exported.as_ref().map(ModuleExportName::name) {
                    Some(name) => {
                        let value = self.namespace_of(&module);
                        self.getter(&name, &format!("({value})"));
                    }
                    None => self.star(&module),
                }
            }
            Statement::ExportDefaultDeclaration(export) => self.default(&export.declaration),
            other => self.push(other.span()),
        }
    }

    fn import(&mut self, import: &ImportDeclaration<'_>) {
        let module = self.require(&import.source.value);
        for specifier in import.specifiers.iter().flatten() {
            let value = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(specifier) => {
                    self.member_of(&module, &specifier.imported.name())
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => self.default_of(&module),
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => {
                    self.namespace_of(&module)
                }
            };
            self.line(&format!("const {}={value};", specifier.local().name));
        }
    }

    fn star(&mut self, module: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.stars,
            "for(const name of Object.keys({module}))if(name!==\"default\"&&!(name in exports))\
             Object.defineProperty(exports,name,{{enumerable:true,get:()=>{module}[name]}});"
        );
    }

    fn default(&mut self, declaration: &ExportDefaultDeclarationKind<'_>) {
        let id = match declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.id.as_ref(),
            ExportDefaultDeclarationKind::ClassDeclaration(class) => class.id.as_ref(),
            _ => None,
        };
        match id {
            Some(id) => {
                self.getter("default", &id.name);
                self.push(declaration.span());
            }
            None => {
                let name = format!("{}default", self.prefix);
                self.getter("default", &name);
                let value = self.text(declaration.span());
                let _ = writeln!(self.body, "const {name}=({value});");
            }
        }
    }

    fn push(&mut self, span: Span) {
        let text = self.text(span);
        self.body.push_str(text);
        // A declaration after `export` may lack its semicolon.
        self.body.push_str(if text.ends_with([';', '}']) { "\n" } else { ";\n" });
    }
}

/// A name prefix that the code does not use.
fn unused(code: &str) -> String {
    let number = |behind: &str| {
        let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        behind.get(..end)?.parse::<usize>().ok()
    };
    // A text cannot contain as many numbers as it has bytes, so one of these is unused.
    let used: HashSet<usize> = code.split("$m").skip(1).filter_map(number).collect();
    let free = (0..=used.len()).find(|number| !used.contains(number));
    format!("$m{}_", free.unwrap_or(used.len()))
}

/// The names of a declaration.
fn names(declaration: &Declaration<'_>) -> Vec<String> {
    let mut names = Vec::new();
    analysis::for_each_declared_name(declaration, |id| names.push(id.name.to_string()));
    names
}

/// A string literal.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            '\u{0}'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
