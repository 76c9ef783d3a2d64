//! Tests of server code.

use super::server;
use crate::{Kind, Script};

fn typescript(text: &str) -> Script {
    server("index.ts", text).unwrap()
}

fn modules(script: &Script) -> Vec<(&str, u32)> {
    script.imports.iter().map(|import| (import.module.as_str(), import.line)).collect()
}

#[test]
fn types_are_taken_out() {
    let script = typescript(
        "import { PluginEvent } from '@posthog/plugin-scaffold'\n\
         import type { Meta } from './types'\n\
         interface Config { a: number }\n\
         type Id = string\n\
         declare const outside: number\n\
         export function processEvent(event: PluginEvent, meta: Meta<Config>): PluginEvent {\n\
           const id = <Id>event.uuid\n\
           event.properties!.id = id as unknown satisfies unknown\n\
           return event\n\
         }\n",
    );
    assert_eq!(script.kind, Kind::Module);
    assert!(script.imports.is_empty(), "{:?}", script.imports);
    for gone in ["scaffold", "interface", "declare", "Meta", ": ", " as ", "satisfies", "<", "!"] {
        assert!(!script.code.contains(gone), "{gone} in {}", script.code);
    }
    assert!(script.code.contains("event.properties.id = id"), "{}", script.code);
}

#[test]
fn enums_and_namespaces_become_code() {
    let script = typescript(
        "enum Color { Red, Green = 5 }\n\
         namespace Names { export const first = 'a' }\n\
         class Counter { constructor(private count: number) {} }\n\
         function processEvent(event) { return { ...event, c: Color.Green, n: Names.first } }\n",
    );
    assert_eq!(script.kind, Kind::Functions);
    assert!(script.code.contains("Color[Color[\"Green\"] = 5]"), "{}", script.code);
    assert!(script.code.contains("this.count = count"), "{}", script.code);
    assert!(!script.code.contains("enum") && !script.code.contains("namespace"));
}

#[test]
fn javascript_stays_as_it_was_written() {
    let text = "// a plugin\nasync   function processEvent(event) {\n  return event // done\n}\n\
                module.exports = {processEvent}\n";
    for file in ["index.js", "index.ts", "dist/index.cjs"] {
        let script = server(file, text).unwrap();
        assert_eq!(script.code, text);
        assert_eq!(script.kind, Kind::CommonJs);
        assert!(script.lines.is_empty());
        assert_eq!(script.source_line(3), 3);
    }
}

#[test]
fn javascript_that_is_no_typescript_is_read_all_the_same() {
    let text = "function processEvent(event) { var public = 010; return event }\n";
    let script = server("index.ts", text).unwrap();
    assert_eq!(script.code, text);
}

#[test]
fn the_kind_follows_from_the_text() {
    for (text, kind) in [
        ("export function onEvent() {}", Kind::Module),
        ("import 'url'", Kind::Module),
        ("exports.onEvent = () => {}", Kind::CommonJs),
        ("module.exports.onEvent = () => {}", Kind::CommonJs),
        ("const crypto = require('crypto')", Kind::CommonJs),
        ("function onEvent(exports) { exports.a = 1 }", Kind::Functions),
        ("", Kind::Functions),
    ] {
        assert_eq!(typescript(text).kind, kind, "{text}");
    }
}

#[test]
fn a_module_without_exports_exports_what_it_declares() {
    let script = typescript(
        "import { createHash } from 'crypto'\n\
         function setupPlugin() {}\n\
         const jobs = { send() { createHash('md5') } }\n",
    );
    assert_eq!(script.kind, Kind::Module);
    assert!(script.code.ends_with("export { setupPlugin, jobs };\n"), "{}", script.code);

    for exporting in [
        "export function onEvent() {}",
        "export default {}",
        "export * from 'url'",
        "exports.onEvent = a",
        "module.exports = { a }",
        "Object.defineProperty(exports, 'a', { get() {} })",
    ] {
        let script = typescript(&format!("import 'crypto'\nfunction a() {{}}\n{exporting}\n"));
        assert!(!script.code.contains("export {"), "{}", script.code);
    }
    let once = typescript("import 'crypto'\nvar a, { b, c: [d] } = x\nvar a\nclass E {}\n");
    assert!(once.code.ends_with("export { a, b, d, E };\n"), "{}", once.code);
}

#[test]
fn importing_types_makes_no_module() {
    let common = typescript(
        "import { Plugin } from '@posthog/plugin-scaffold'\n\
         const plugin: Plugin = { processEvent: async (event) => event }\n\
         module.exports = plugin\n",
    );
    assert_eq!(common.kind, Kind::CommonJs);
    assert!(!common.code.contains("export {"), "{}", common.code);

    let bare = typescript("import type { A } from 'b'\nfunction processEvent(a: A) {}\n");
    assert_eq!(bare.kind, Kind::Functions);
    assert!(!bare.code.contains("export"), "{}", bare.code);

    let waiting = typescript("import type { A } from 'b'\nconst a: A = await c\n");
    assert_eq!(waiting.kind, Kind::Module);
    assert!(waiting.code.ends_with("export { a };\n"), "{}", waiting.code);
}

#[test]
fn modules_are_listed_with_their_lines() {
    let script = typescript(
        "import a from 'first'\n\
         import type { T } from 'types'\n\
         export * from 'second'\n\
         const c: T = require('third')\n\
         function load(require) { return require('not-asked-for') }\n\
         export async function onEvent(name: string) {\n\
           await import('fourth')\n\
           await import(name)\n\
           return [a, c, require('first')]\n\
         }\n",
    );
    assert_eq!(modules(&script), [("first", 1), ("second", 3), ("third", 4), ("fourth", 7)]);
}

#[test]
fn a_line_of_the_code_leads_to_the_line_of_the_source() {
    let text = "interface A {\n  a: number\n}\n\nexport function onEvent(a: A) {\n  fail(a)\n}\n";
    let script = typescript(text);
    let line = script.code.lines().position(|line| line.contains("fail(a)")).unwrap() + 1;
    assert_eq!(script.source_line(u32::try_from(line).unwrap()), 6);
}
