//! Runs the JavaScript of an entry in the engine of plugins, for tests.

use rquickjs::{
    Context, Ctx, Function, Module, Object, Persistent, Promise, Runtime, Value as JsValue,
};
use serde_json::Value;

use crate::entry::SourceFile;

/// The environment of plugins, and of pages.
const PRELUDE: &str = include_str!("prelude.js");

/// A loaded plugin with a config.
pub(crate) struct Running {
    exports: Persistent<Object<'static>>,
    context: Context,
    _runtime: Runtime,
}

impl Running {
    /// Loads a plugin. The config gets its defaults, as when it is saved.
    pub(crate) fn new(id: &str, config: &Value) -> Self {
        let entry = crate::find(id).unwrap();
        let [SourceFile { name, text }] = entry.files() else { panic!("one file") };
        let mut values = crate::testing::map(config);
        for item in entry.items.iter().filter(|item| !item.default.is_empty()) {
            values.entry(item.key).or_insert_with(|| Value::from(item.default));
        }
        let runtime = Runtime::new().unwrap();
        let context = Context::full(&runtime).unwrap();
        let exports = context.with(|ctx| {
            let module = Module::declare(ctx.clone(), *name, *text).unwrap();
            let (module, promise) = module.eval().unwrap();
            promise.finish::<()>().unwrap();
            let exports = module.namespace().unwrap();
            ctx.globals().set("exports", exports.clone()).unwrap();
            ctx.globals().set("config", json_in(&ctx, &Value::Object(values))).unwrap();
            ctx.eval::<(), _>(PRELUDE).unwrap();
            Persistent::save(&ctx, exports)
        });
        Self { exports, context, _runtime: runtime }
    }

    /// The result of a function for an event; null if it returns nothing.
    pub(crate) fn call(&self, function: &str, event: &Value) -> Value {
        self.context.with(|ctx| {
            let exports = self.exports.clone().restore(&ctx).unwrap();
            let function: Function<'_> = exports.get(function).unwrap();
            let meta: Object<'_> = ctx.globals().get("meta").unwrap();
            let mut given: JsValue<'_> = function.call((json_in(&ctx, event), meta)).unwrap();
            if let Some(promise) = given.as_promise().cloned() {
                given = Promise::finish(&promise).unwrap();
            }
            json_out(&ctx, given)
        })
    }

    /// Runs the page code on a page, then clicks on elements of these kinds.
    pub(crate) fn show(&self, clicks: &[&str]) -> Value {
        self.context.with(|ctx| {
            let show: Function<'_> = ctx.globals().get("show").unwrap();
            let given: JsValue<'_> = show.call((clicks.to_vec(),)).unwrap();
            json_out(&ctx, given)
        })
    }
}

fn json_in<'js>(ctx: &Ctx<'js>, value: &Value) -> JsValue<'js> {
    ctx.json_parse(value.to_string()).unwrap()
}

fn json_out<'js>(ctx: &Ctx<'js>, value: JsValue<'js>) -> Value {
    match ctx.json_stringify(value).unwrap() {
        Some(text) => serde_json::from_str(&text.to_string().unwrap()).unwrap(),
        None => Value::Null,
    }
}
