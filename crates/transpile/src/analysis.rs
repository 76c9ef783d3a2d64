//! What a program asks for and what it offers, read from its text alone.
//!
//! The program is plain JavaScript here. Values are not worked out: an export that is
//! computed is not seen, and running the program tells the truth.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentExpression, AwaitExpression, CallExpression, Declaration,
    ExportAllDeclaration, ExportDeclaration, ExportDefaultDeclaration,
    ExportDefaultDeclarationKind, ExportFromDeclaration, ExportNamedDeclaration, Expression,
    ForOfStatement, Function, IdentifierReference, ImportDeclaration, ImportExpression, ImportMeta,
    ObjectExpression, ObjectProperty, ObjectPropertyKind, Statement, VariableDeclaration,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{ScopeFlags, Scoping};
use oxc_span::{GetSpan, Span};
use serde::Serialize;

use crate::compile::{Parsed, start};
use crate::position::Lines;

/// A module that a source asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// As it is written, such as `node-fetch` or `./helper`.
    pub module: String,
    /// The line of the source, from 1.
    pub line: u32,
}

/// Something that a source offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Export {
    /// Under which name; what stands in an exported object is named by its key.
    pub name: String,
    /// The line of the source, from 1.
    pub line: u32,
    /// The keys of an object that is written out: the names of jobs and metrics.
    pub keys: Vec<String>,
}

/// What is known of a program.
pub(crate) struct Analysis {
    pub(crate) imports: Vec<Import>,
    pub(crate) exports: Vec<Export>,
    /// Names of the module scope.
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
    /// The places of `export {}`, if nothing else makes a module of the program.
    pub(crate) markers: Vec<Range<usize>>,
    exports_nothing: bool,
}

impl Analysis {
    pub(crate) fn of(parsed: &Parsed<'_>, code: &str) -> Self {
        let lines = Lines::of(code);
        let program = &parsed.program;
        let shapes = Shapes::of(&program.body);
        let mut found = Found::new(&parsed.scoping, &shapes);
        found.visit_program(program);

        let free = |name: &str| {
            parsed.scoping.root_unresolved_references().keys().any(|other| other.as_str() == name)
        };
        let is_module = program.source_type.is_module();
        let common_js = ["module", "exports", "require"].into_iter().any(free);
        let exports_nothing = !found.has_exports && found.exports.is_empty();
        let offered = if exports_nothing { shapes.all() } else { found.exports };
        let mut exports: Vec<Export> = Vec::new();
        for (name, at, keys) in offered {
            match exports.iter_mut().find(|export| export.name == name) {
                Some(known) if known.keys.is_empty() => known.keys = keys,
                Some(_) => {}
                None => exports.push(Export { name, line: lines.line(at), keys }),
            }
        }
        let mut imports: Vec<Import> = Vec::new();
        for (module, at) in found.imports {
            if !imports.iter().any(|import| import.module == module) {
                imports.push(Import { module, line: lines.line(at) });
            }
        }
        Self {
            imports,
            exports,
            declared: shapes.all().into_iter().map(|(name, ..)| name).collect(),
            is_module,
            common_js,
            free_react: free("React"),
            await_line: found.awaits.map(|at| lines.line(at)),
            markers: markers(&program.body, found.awaits.or(found.meta).is_some()),
            meta_line: found.meta.map(|at| lines.line(at)),
            exports_nothing,
        }
    }

    /// Whether the names of its scope are all that it can offer.
    pub(crate) fn offers_declared(&self) -> bool {
        self.exports_nothing && !self.common_js && !self.exports.is_empty()
    }
}

fn markers(body: &[Statement<'_>], needs_module: bool) -> Vec<Range<usize>> {
    let mut markers = Vec::new();
    for statement in body {
        match statement {
            Statement::ExportNamedDeclaration(export) if export.specifiers.is_empty() => {
                let end = usize::try_from(export.span.end).unwrap_or(usize::MAX);
                markers.push(start(export.span)..end);
            }
            other if other.is_module_declaration() => return Vec::new(),
            _ => {}
        }
    }
    if needs_module { Vec::new() } else { markers }
}

/// A clause that exports names of the module scope.
pub(crate) fn export_clause<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let mut clause = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(clause, "\nexport {{ {} }};", names.join(", "));
    clause
}

/// Name, first byte, keys.
type Offer = (String, usize, Vec<String>);

/// What the statements of a program declare, and which of it are objects.
struct Shapes {
    names: Vec<(String, usize)>,
    objects: HashMap<String, Vec<Offer>>,
}

impl Shapes {
    fn of(body: &[Statement<'_>]) -> Self {
        let mut shapes = Self { names: Vec::new(), objects: HashMap::new() };
        for statement in body {
            match statement {
                Statement::ExportDeclaration(export) => shapes.declaration(&export.declaration),
                Statement::ExportDefaultDeclaration(export) => match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                        shapes.function(function);
                    }
                    ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                        shapes.name(class.id.as_ref().map(|id| (id.name.as_str(), id.span)));
                    }
                    _ => {}
                },
                other => {
                    if let Some(declaration) = other.as_declaration() {
                        shapes.declaration(declaration);
                    }
                }
            }
        }
        shapes
    }

    fn declaration(&mut self, declaration: &Declaration<'_>) {
        match declaration {
            Declaration::FunctionDeclaration(function) => self.function(function),
            Declaration::ClassDeclaration(class) => {
                self.name(class.id.as_ref().map(|id| (id.name.as_str(), id.span)));
            }
            Declaration::VariableDeclaration(variables) => self.variables(variables),
            _ => {}
        }
    }

    fn function(&mut self, function: &Function<'_>) {
        self.name(function.id.as_ref().map(|id| (id.name.as_str(), id.span)));
    }

    fn variables(&mut self, variables: &VariableDeclaration<'_>) {
        for variable in &variables.declarations {
            for id in variable.id.get_binding_identifiers() {
                self.name(Some((id.name.as_str(), id.span)));
            }
            if let (Some(name), Some(init)) = (variable.id.get_identifier_name(), &variable.init) {
                let offers = self.offers(init);
                self.objects.insert(name.to_string(), offers);
            }
        }
    }

    fn name(&mut self, name: Option<(&str, Span)>) {
        if let Some((name, span)) = name
            && !self.names.iter().any(|(known, _)| known == name)
        {
            self.names.push((name.to_owned(), start(span)));
        }
    }

    fn all(&self) -> Vec<Offer> {
        let with_keys = |(name, at): &(String, usize)| (name.clone(), *at, self.keys(name));
        self.names.iter().map(with_keys).collect()
    }

    fn keys(&self, name: &str) -> Vec<String> {
        let offers = self.objects.get(name).into_iter().flatten();
        offers.map(|(key, ..)| key.clone()).collect()
    }

    /// The properties of an object that is written out, here or where its name is
    /// declared.
    fn offers(&self, value: &Expression<'_>) -> Vec<Offer> {
        match value {
            Expression::ObjectExpression(object) => properties(object)
                .map(|(name, property)| (name, start(property.span), self.keys_of(&property.value)))
                .collect(),
            Expression::Identifier(id) => {
                self.objects.get(id.name.as_str()).cloned().unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// The keys of a value.
    fn keys_of(&self, value: &Expression<'_>) -> Vec<String> {
        match value {
            Expression::Identifier(id) => self.keys(id.name.as_str()),
            Expression::ObjectExpression(object) => {
                properties(object).map(|(name, _)| name).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The properties whose names are known.
fn properties<'o, 'a>(
    object: &'o ObjectExpression<'a>,
) -> impl Iterator<Item = (String, &'o ObjectProperty<'a>)> {
    object.properties.iter().filter_map(|property| match property {
        ObjectPropertyKind::ObjectProperty(property) => {
            Some((property.key.static_name()?.into_owned(), &**property))
        }
        ObjectPropertyKind::SpreadProperty(_) => None,
    })
}

struct Found<'s> {
    scoping: &'s Scoping,
    shapes: &'s Shapes,
    imports: Vec<(String, usize)>,
    exports: Vec<Offer>,
    /// Also those without a name that is known.
    has_exports: bool,
    /// How many functions stand around.
    functions: usize,
    awaits: Option<usize>,
    meta: Option<usize>,
}

impl<'s> Found<'s> {
    fn new(scoping: &'s Scoping, shapes: &'s Shapes) -> Self {
        Self {
            scoping,
            shapes,
            imports: Vec::new(),
            exports: Vec::new(),
            has_exports: false,
            functions: 0,
            awaits: None,
            meta: None,
        }
    }

    fn import(&mut self, module: &str, span: Span) {
        self.imports.push((module.to_owned(), start(span)));
    }

    fn export(&mut self, name: &str, span: Span, keys: Vec<String>) {
        self.exports.push((name.to_owned(), start(span), keys));
    }

    fn awaits(&mut self, span: Span) {
        if self.functions == 0 {
            self.awaits.get_or_insert(start(span));
        }
    }

    /// Whether a name is the one of the surroundings, not one of the program.
    fn is_free(&self, id: &IdentifierReference<'_>, name: &str) -> bool {
        id.name == name
            && id
                .reference_id
                .get()
                .is_none_or(|id| self.scoping.get_reference(id).symbol_id().is_none())
    }

    /// Whether an expression is `exports` or `module.exports`.
    fn is_exports(&self, expression: &Expression<'_>) -> bool {
        match expression {
            Expression::Identifier(id) => self.is_free(id, "exports"),
            Expression::StaticMemberExpression(member) => {
                member.property.name == "exports"
                    && matches!(&member.object, Expression::Identifier(id) if self.is_free(id, "module"))
            }
            _ => false,
        }
    }

    /// A value that is exported as a whole.
    fn whole(&mut self, value: &Expression<'_>, span: Span, name: &str) {
        let offers = self.shapes.offers(value);
        if offers.is_empty() {
            self.export(name, span, Vec::new());
        } else {
            self.exports.extend(offers);
        }
    }
}

impl<'a> Visit<'a> for Found<'_> {
    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        self.import(&import.source.value, import.span);
    }

    fn visit_export_from_declaration(&mut self, export: &ExportFromDeclaration<'a>) {
        self.has_exports = true;
        self.import(&export.source.value, export.span);
        for specifier in &export.specifiers {
            self.export(&specifier.exported.name(), specifier.span, Vec::new());
        }
    }

    fn visit_export_all_declaration(&mut self, export: &ExportAllDeclaration<'a>) {
        self.has_exports = true;
        self.import(&export.source.value, export.span);
        if let Some(name) = &export.exported {
            self.export(&name.name(), export.span, Vec::new());
        }
    }

    fn visit_export_named_declaration(&mut self, export: &ExportNamedDeclaration<'a>) {
        // Taking types out leaves `export {}` behind, which offers nothing.
        for specifier in &export.specifiers {
            let keys = self.shapes.keys(&specifier.local.name());
            self.export(&specifier.exported.name(), specifier.span, keys);
        }
    }

    fn visit_export_declaration(&mut self, export: &ExportDeclaration<'a>) {
        let mut declared = Shapes { names: Vec::new(), objects: HashMap::new() };
        declared.declaration(&export.declaration);
        for (name, at) in declared.names {
            let keys = self.shapes.keys(&name);
            self.exports.push((name, at, keys));
        }
        walk::walk_export_declaration(self, export);
    }

    fn visit_export_default_declaration(&mut self, export: &ExportDefaultDeclaration<'a>) {
        match export.declaration.as_expression() {
            Some(value) => self.whole(value, export.span, "default"),
            None => self.export("default", export.span, Vec::new()),
        }
        walk::walk_export_default_declaration(self, export);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        if let Some(target) = assignment.left.as_member_expression() {
            let name = target.static_property_name();
            if self.is_exports(target.object()) {
                match name {
                    Some("default") => self.whole(&assignment.right, assignment.span, "default"),
                    Some("__esModule") | None => {}
                    Some(name) => {
                        let keys = self.shapes.keys_of(&assignment.right);
                        self.export(name, assignment.span, keys);
                    }
                }
            } else if name == Some("exports")
                && matches!(target.object(), Expression::Identifier(id) if self.is_free(id, "module"))
            {
                self.whole(&assignment.right, assignment.span, "default");
            }
        }
        walk::walk_assignment_expression(self, assignment);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Some(module) = call.common_js_require()
            && matches!(&call.callee, Expression::Identifier(id) if self.is_free(id, "require"))
        {
            self.import(&module.value, call.span);
        }
        // Object.defineProperty(exports, 'name', …), as other compilers write it.
        if let Expression::StaticMemberExpression(callee) = &call.callee
            && callee.property.name == "defineProperty"
            && let [target, name, ..] = call.arguments.as_slice()
            && target.as_expression().is_some_and(|target| self.is_exports(target))
            && let Some(Expression::StringLiteral(name)) = name.as_expression()
            && name.value != "__esModule"
        {
            self.export(&name.value, call.span, Vec::new());
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
        self.awaits(expression.span);
        walk::walk_await_expression(self, expression);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        if statement.r#await {
            self.awaits(statement.span);
        }
        walk::walk_for_of_statement(self, statement);
    }
}
