//! From a source to a loaded program: the prelude, modules, and the exports of a script.

use rquickjs::context::EvalOptions;
use rquickjs::function::Opt;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Exception, Function, Module, Object, Persistent, Runtime, Value};

use super::natives;
use super::runtime::Waiting;
use super::text::Text;
use super::trouble::ScriptFailure;
use crate::host::LogLevel;

/// A source with its inputs.
pub(super) struct Script {
    pub(super) name: String,
    pub(super) source: String,
    /// JSON input of `makeMeta`.
    pub(super) given: String,
}

type Opened = (Persistent<Object<'static>>, Persistent<Function<'static>>);

/// The files of the prelude, in order.
const PRELUDE: [(&str, &str); 5] = [
    ("prelude/base.js", include_str!("prelude/base.js")),
    ("prelude/url.js", include_str!("prelude/url.js")),
    ("prelude/host.js", include_str!("prelude/host.js")),
    ("prelude/modules.js", include_str!("prelude/modules.js")),
    ("prelude/program.js", include_str!("prelude/program.js")),
];

/// Names that are searched among globals.
const NAMES: [&str; 14] = [
    "setupPlugin",
    "teardownPlugin",
    "processEvent",
    "processEventBatch",
    "onEvent",
    "composeWebhook",
    "exportEvents",
    "onSnapshot",
    "onAction",
    "runEveryMinute",
    "runEveryHour",
    "runEveryDay",
    "jobs",
    "metrics",
];

/// The global variable in which the last line of a source stores its declarations.
const COLLECTED: &str = "__weirCollected";

/// Adds the environment and the script to an empty engine.
pub(super) fn open<'js>(
    engine: &Waiting<'_, 'js>,
    script: &Script,
) -> Result<Opened, ScriptFailure> {
    let ctx = engine.ctx;
    let shared = engine.ok(prelude(engine))?;
    let globals = ctx.globals();
    let exports = engine.ok(Object::new(ctx.clone()))?;
    let module = engine.ok(Object::new(ctx.clone()))?;
    engine.ok(module.set("exports", exports.clone()))?;
    engine.ok(globals.set("module", module.clone()))?;
    engine.ok(globals.set("exports", exports.clone()))?;
    let mut places: Vec<Value<'js>> = Vec::new();
    let text = with_trailer(&script.source);
    if looks_like_module(&script.source) {
        let declared = engine.ok(Module::declare(ctx.clone(), script.name.as_str(), text))?;
        let (evaluated, promise) = engine.ok(declared.eval())?;
        engine.settle(promise.into_value())?;
        let namespace = engine.ok(evaluated.namespace())?;
        let default: Value<'js> = engine.ok(namespace.get("default"))?;
        places.extend([namespace.into_value(), default]);
    } else {
        let mut options = EvalOptions::default();
        options.strict = false;
        options.filename = Some(script.name.clone());
        engine.ok(ctx.eval_with_options::<Value<'js>, _>(text, options))?;
    }
    let last: Value<'js> = engine.ok(module.get("exports"))?;
    if let Some(last) = last.as_object() {
        places.push(engine.ok(last.get("default"))?);
    }
    places.extend([exports.into_value(), last]);

    let all: Value<'js> = engine.ok(globals.get(COLLECTED))?;
    engine.ok(globals.remove(COLLECTED))?;
    let given = engine.ok(ctx.json_parse(script.given.as_str()))?;
    let opening: Function<'js> = engine.ok(shared.get("open"))?;
    let program: Object<'js> = engine.ok(opening.call((given, places, all)))?;
    let answer: Function<'js> = engine.ok(shared.get("answer"))?;
    Ok((Persistent::save(ctx, program), Persistent::save(ctx, answer)))
}

/// Runs the files of the prelude; returns their common object.
fn prelude<'js>(engine: &Waiting<'_, 'js>) -> rquickjs::Result<Object<'js>> {
    let ctx = engine.ctx;
    let native = Object::new(ctx.clone())?;
    natives::define(ctx, &native)?;
    let border = engine.shared.border.clone();
    native.set(
        "call",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, text: Text| {
            border.call(&text.0).map_err(|refused| Exception::throw_message(&ctx, refused))
        })?,
    )?;
    let border = engine.shared.border.clone();
    native.set(
        "tell",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, text: Text| {
            border.tell(&text.0).map_err(|refused| Exception::throw_message(&ctx, refused))
        })?,
    )?;
    let border = engine.shared.border.clone();
    native.set(
        "log",
        Function::new(ctx.clone(), move |level: Text, message: Opt<Text>| {
            let level = match level.0.as_str() {
                "debug" => LogLevel::Debug,
                "info" => LogLevel::Info,
                "warn" => LogLevel::Warn,
                "error" => LogLevel::Error,
                _ => LogLevel::Log,
            };
            border.log(level, message.0.map_or_else(String::new, |text| text.0));
        })?,
    )?;
    let shared = Object::new(ctx.clone())?;
    for (name, text) in PRELUDE {
        let mut options = EvalOptions::default();
        options.filename = Some(name.to_owned());
        let file: Function<'js> = ctx.eval_with_options(text, options)?;
        file.call::<_, ()>((native.clone(), shared.clone()))?;
    }
    Ok(shared)
}

/// Appends a line that exports the declarations of the source, in every kind of
/// evaluation. The line numbers of the source do not change.
fn with_trailer(source: &str) -> String {
    let mut text = String::with_capacity(source.len() + 1_500);
    text.push_str(source);
    text.push_str("\n;globalThis.");
    text.push_str(COLLECTED);
    text.push_str("={");
    for name in NAMES {
        text.push_str(name);
        text.push_str(":typeof ");
        text.push_str(name);
        text.push_str("==='undefined'?undefined:");
        text.push_str(name);
        text.push(',');
    }
    text.push_str("};\n");
    text
}

/// Whether a statement begins with `import` or `export`. A similar comment does no harm:
/// a script that is evaluated as a module exports the same functions.
fn looks_like_module(source: &str) -> bool {
    ["import", "export"].iter().any(|word| {
        source.match_indices(word).any(|(at, _)| {
            let before = source[..at].trim_end_matches([' ', '\t']).bytes().next_back();
            let rest = &source[at + word.len()..];
            let next = rest.trim_start().bytes().next();
            let parted = rest.starts_with(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
            matches!(before, None | Some(b'\n' | b'\r' | b';' | b'}' | b'/'))
                && parted
                && next.is_some_and(|byte| {
                    byte.is_ascii_alphabetic()
                        || matches!(byte, b'{' | b'*' | b'"' | b'\'' | b'$' | b'_')
                })
        })
    })
}

/// Resolves and loads only the modules of `modules.js`.
struct Modules;

const MODULES: [(&str, &[&str]); 5] = [
    ("@posthog/plugin-scaffold", &["RetryError"]),
    ("@posthog/plugin-contrib", &["createBuffer", "RetryError"]),
    ("crypto", &["createHash", "createHmac", "randomUUID", "randomBytes"]),
    ("url", &["URL", "URLSearchParams", "parse"]),
    ("node-fetch", &[]),
];

/// Sets the modules of an engine.
pub(super) fn set_modules(runtime: &Runtime) {
    runtime.set_loader(Modules, Modules);
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        let plain = name.strip_prefix("node:").unwrap_or(name);
        if MODULES.iter().any(|(known, _)| *known == plain) {
            return Ok(plain.to_owned());
        }
        let known: Vec<_> = MODULES.iter().map(|(known, _)| *known).collect();
        let known = known.join(", ");
        let name: String = name.chars().take(200).collect();
        let message =
            format!("the module \"{name}\" cannot be used in a plugin; there are: {known}");
        Err(Exception::throw_message(ctx, &message))
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let names =
            MODULES.iter().find(|(known, _)| *known == name).map_or(&[][..], |found| found.1);
        let names = names.join(", ");
        // A script may change `require`, because no other script uses its engine.
        let text = format!(
            "const all = require('{name}'); export default all; export const {{ {names} }} = all;"
        );
        Module::declare(ctx.clone(), name, text)
    }
}

#[cfg(test)]
mod tests {
    use super::looks_like_module;

    #[test]
    fn modules_are_known_by_their_statements() {
        for module in [
            "export function a() {}",
            "import x from 'y'",
            "const a = 1;export{a as b}",
            "import'x'",
            "/* a */ export default {}",
        ] {
            assert!(looks_like_module(module), "{module}");
        }
        for script in [
            "module.exports = {}",
            "function exporter() {}",
            "exports.a = 1",
            "const x = 'export function'",
            "import('x')",
        ] {
            assert!(!looks_like_module(script), "{script}");
        }
    }
}
