//! The imports and exports of a program, read from its text.
//!
//! What belongs here: analysis of plain JavaScript. What does not: capabilities of a
//! plugin, which are found by running it (`weir-sandbox`).

use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;

use oxc_ast::ast::{
    ArrowFunctionExpression, AwaitExpression, BindingIdentifier, CallExpression, Declaration,
    ExportAllDeclaration, ExportDeclaration, ExportDefaultDeclaration,
    ExportDefaultDeclarationKind, ExportFromDeclaration, ExportNamedDeclaration, Expression,
    ForOfStatement, Function, IdentifierReference, ImportDeclaration, ImportExpression, ImportMeta,
    Statement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{ScopeFlags, Scoping};
use oxc_span::{GetSpan, Span};
use serde::{Deserialize, Serialize};

use crate::compile::{Parsed, start};
use crate::position::Lines;

/// A module that a source imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The module name in the source, such as `node-fetch` or `./helper`.
    pub module: String,
    /// The line of the source, from 1.
    pub line: u32,
}

/// The result of the analysis of a program.
pub(crate) struct Analysis {
    /// Each module once, at its first import.
    pub(crate) imports: Vec<Import>,
    /// Names of the module scope, in order.
    pub(crate) declared: Vec<String>,
    pub(crate) is_module: bool,
    /// Mentions `module`, `exports` or `require` without declaring them.
    pub(crate) common_js: bool,
    /// Mentions `React` without declaring it.
    pub(crate) free_react: bool,
    /// The first line with an `await` outside of functions.
    pub(crate) await_line: Option<u32>,
    /// The first line with `import.meta`.
    pub(crate) meta_line: Option<u32>,
    /// The byte ranges of `export {}`. Empty if something else makes the program a module.
    /// The caller removes them, so that it becomes a script.
    pub(crate) empty_exports: Vec<Range<usize>>,
    /// Whether it uses `export`.
    has_exports: bool,
}

impl Analysis {
    pub(crate) fn of(parsed: &Parsed<'_>, code: &str) -> Self {
        let lines = Lines::of(code);
        let program = &parsed.program;
        let mut found = Collector::new(&parsed.scoping);
        found.visit_program(program);

        let free = |name: &str| {
            parsed.scoping.root_unresolved_references().keys().any(|other| other.as_str() == name)
        };
        let mut known = HashSet::new();
        found.imports.retain(|(module, _)| known.insert(module.clone()));
        let import = |(module, at)| Import { module, line: lines.line(at) };
        Self {
            imports: found.imports.into_iter().map(import).collect(),
            declared: declared(&program.body),
            is_module: program.source_type.is_module(),
            common_js: ["module", "exports", "require"].into_iter().any(free),
            free_react: free("React"),
            await_line: found.awaits.map(|at| lines.line(at)),
            empty_exports: empty_exports(&program.body, found.awaits.or(found.meta).is_some()),
            meta_line: found.meta.map(|at| lines.line(at)),
            has_exports: found.has_exports,
        }
    }

    /// Whether the program exports nothing: it has no `export`, and mentions none of `module`,
    /// `exports` and `require`. Then its top-level declarations are its exports.
    pub(crate) fn exports_its_declarations(&self) -> bool {
        !self.has_exports && !self.common_js && !self.declared.is_empty()
    }
}

fn empty_exports(body: &[Statement<'_>], needs_module: bool) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for statement in body {
        match statement {
            Statement::ExportNamedDeclaration(export) if export.specifiers.is_empty() => {
                let end = usize::try_from(export.span.end).unwrap_or(usize::MAX);
                ranges.push(start(export.span)..end);
            }
            other if other.is_module_declaration() => return Vec::new(),
            _ => {}
        }
    }
    if needs_module { Vec::new() } else { ranges }
}

/// A clause that exports names of the module scope.
pub(crate) fn export_clause<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let mut clause = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(clause, "\nexport {{ {} }};", names.join(", "));
    clause
}

/// The names that the statements of a program declare, each once.
fn declared(body: &[Statement<'_>]) -> Vec<String> {
    let mut names = Vec::new();
    let mut known = HashSet::new();
    let mut name = |id: &BindingIdentifier<'_>| {
        if known.insert(id.name.to_string()) {
            names.push(id.name.to_string());
        }
    };
    for statement in body {
        match statement {
            Statement::ExportDeclaration(export) => {
                for_each_declared_name(&export.declaration, &mut name);
            }
            Statement::ExportDefaultDeclaration(export) => match &export.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    function.id.iter().for_each(&mut name);
                }
                ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                    class.id.iter().for_each(&mut name);
                }
                _ => {}
            },
            other => {
                if let Some(declaration) = other.as_declaration() {
                    for_each_declared_name(declaration, &mut name);
                }
            }
        }
    }
    names
}

/// Passes the declared names to `name`.
pub(crate) fn for_each_declared_name(
    declaration: &Declaration<'_>,
    mut name: impl FnMut(&BindingIdentifier<'_>),
) {
    match declaration {
        Declaration::VariableDeclaration(variables) => {
            for variable in &variables.declarations {
                variable.id.get_binding_identifiers().into_iter().for_each(&mut name);
            }
        }
        Declaration::FunctionDeclaration(function) => function.id.iter().for_each(name),
        Declaration::ClassDeclaration(class) => class.id.iter().for_each(name),
        _ => {}
    }
}

/// Collects imports, exports, `await` and `import.meta`.
struct Collector<'s> {
    scoping: &'s Scoping,
    imports: Vec<(String, usize)>,
    has_exports: bool,
    /// Number of enclosing functions.
    functions: usize,
    awaits: Option<usize>,
    meta: Option<usize>,
}

impl<'s> Collector<'s> {
    fn new(scoping: &'s Scoping) -> Self {
        Self {
            scoping,
            imports: Vec::new(),
            has_exports: false,
            functions: 0,
            awaits: None,
            meta: None,
        }
    }

    fn import(&mut self, module: &str, span: Span) {
        self.imports.push((module.to_owned(), start(span)));
    }

    fn note_await(&mut self, span: Span) {
        if self.functions == 0 {
            self.awaits.get_or_insert(start(span));
        }
    }

    /// Whether a name refers to a global, not to a declaration of the program.
    fn is_free(&self, id: &IdentifierReference<'_>, name: &str) -> bool {
        id.name == name
            && id
                .reference_id
                .get()
                .is_none_or(|id| self.scoping.get_reference(id).symbol_id().is_none())
    }
}

impl<'a> Visit<'a> for Collector<'_> {
    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        self.import(&import.source.value, import.span);
    }

    fn visit_export_from_declaration(&mut self, export: &ExportFromDeclaration<'a>) {
        self.has_exports = true;
        self.import(&export.source.value, export.span);
    }

    fn visit_export_all_declaration(&mut self, export: &ExportAllDeclaration<'a>) {
        self.has_exports = true;
        self.import(&export.source.value, export.span);
    }

    fn visit_export_named_declaration(&mut self, export: &ExportNamedDeclaration<'a>) {
        // Removing types leaves `export {}` behind, which exports nothing.
        self.has_exports |= !export.specifiers.is_empty();
    }

    fn visit_export_declaration(&mut self, export: &ExportDeclaration<'a>) {
        for_each_declared_name(&export.declaration, |_| self.has_exports = true);
        walk::walk_export_declaration(self, export);
    }

    fn visit_export_default_declaration(&mut self, export: &ExportDefaultDeclaration<'a>) {
        self.has_exports = true;
        walk::walk_export_default_declaration(self, export);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Some(module) = call.common_js_require()
            && matches!(&call.callee, Expression::Identifier(id) if self.is_free(id, "require"))
        {
            self.import(&module.value, call.span);
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        if let Expression::StringLiteral(module) = &import.source {
            self.import(&module.value, import.span);
        }
        walk::walk_import_expression(self, import);
    }

    fn visit_import_meta(&mut self, meta: &ImportMeta) {
        self.meta.get_or_insert(start(meta.span()));
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.functions += 1;
        walk::walk_function(self, function, flags);
        self.functions -= 1;
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        self.functions += 1;
        walk::walk_arrow_function_expression(self, function);
        self.functions -= 1;
    }

    fn visit_await_expression(&mut self, expression: &AwaitExpression<'a>) {
        self.note_await(expression.span);
        walk::walk_await_expression(self, expression);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        if statement.r#await {
            self.note_await(statement.span);
        }
        walk::walk_for_of_statement(self, statement);
    }
}
