//! Tests of code for browsers.

use super::{frontend, site};

#[test]
fn a_frontend_is_a_module_with_one_function() {
    let page = frontend(
        "import { kea } from 'kea'\n\
         import type { Props } from './props'\n\
         export const scene = {\n\
           title: 'Panel',\n\
           component: (props: Props): JSX.Element => <div className=\"a\" {...props}>It's {kea}</div>,\n\
         }\n",
    )
    .unwrap();
    assert!(page.code.starts_with("export function getFrontendApp(require) {"), "{}", page.code);
    assert!(page.code.contains("require(\"kea\")"), "{}", page.code);
    assert!(page.code.contains("React.createElement(\"div\""), "{}", page.code);
    assert!(page.code.contains("return module.exports"), "{}", page.code);
    for gone in ["import ", "Props", "JSX", "<div", "./props"] {
        assert!(!page.code.contains(gone), "{gone} in {}", page.code);
    }
    let modules: Vec<_> = page.imports.iter().map(|import| import.module.as_str()).collect();
    assert_eq!(modules, ["kea"]);
}

#[test]
fn react_is_asked_for_once() {
    let own = frontend("import React from 'react'\nexport const scene = <a/>").unwrap();
    assert_eq!(own.code.matches("require(\"react\")").count(), 1, "{}", own.code);
    let ours = frontend("export const scene = <><a/></>").unwrap();
    assert_eq!(ours.code.matches("require(\"react\")").count(), 1, "{}", ours.code);
    assert!(ours.code.contains("React.Fragment"), "{}", ours.code);
    let none = frontend("export const scene = {}").unwrap();
    assert!(!none.code.contains("react"), "{}", none.code);
}

#[test]
fn every_form_of_import_and_export_is_rewritten() {
    let page = frontend(
        "import a, { b as c, default as d } from 'one'\n\
         import * as e from 'two'\n\
         import 'three'\n\
         export { a, c as f }\n\
         export { g as default } from 'four'\n\
         export * from 'five'\n\
         export * as h from 'six'\n\
         export let i = [d, e]\n\
         export class J {}\n",
    )
    .unwrap();
    for name in ["a", "f", "default", "h", "i", "J"] {
        let getter = format!("defineProperty(exports, \"{name}\"");
        assert!(page.code.contains(&getter), "{name} in {}", page.code);
    }
    for module in ["one", "two", "three", "four", "five", "six"] {
        assert!(page.code.contains(&format!("require(\"{module}\")")), "{}", page.code);
    }
    assert_eq!(page.code.matches("export ").count(), 1, "{}", page.code);
    assert!(page.code.contains("defineProperty(exports, \"f\""), "{}", page.code);
    assert!(page.code.contains("get: () => c"), "{}", page.code);
}

#[test]
fn names_of_ours_give_way() {
    let page = frontend("import a from 'x'\nexport const $m0 = a, scene = '$m_'").unwrap();
    assert!(page.code.contains("const $m1_0 = require(\"x\")"), "{}", page.code);
}

#[test]
fn common_js_and_bare_names_count_as_exports() {
    let common = frontend("exports.scene = { title: 'a' }").unwrap();
    assert!(!common.code.contains("defineProperty"), "{}", common.code);
    let bare = frontend("const scene = { title: 'a' }").unwrap();
    assert!(bare.code.contains("defineProperty(exports, \"scene\""), "{}", bare.code);
}

#[test]
fn a_site_is_a_function_expression() {
    let page = site(
        "// shown on pages\n\
         export function inject({ config, posthog }: { config: any, posthog: any }): void {\n\
           const bar: HTMLElement = document.createElement('div')\n\
           bar.innerText = config.text ?? 'Hello'\n\
         }\n",
    )
    .unwrap();
    assert!(page.code.starts_with("(function(){"), "{}", page.code);
    assert!(page.code.ends_with("})"), "{}", page.code);
    assert!(page.code.contains("return module.exports"), "{}", page.code);
    assert!(!page.code.contains("shown on pages") && !page.code.contains("HTMLElement"));
    assert!(!page.code.contains('\n'), "{}", page.code);
}

#[test]
fn a_site_can_export_by_default() {
    let page = site("export default { inject() {} }").unwrap();
    assert!(page.code.contains("\"default\""), "{}", page.code);
}

#[test]
fn a_site_has_no_modules() {
    let fault = site("const a = 1\nimport { b } from 'b'\nexport const inject = b").unwrap_err();
    assert_eq!((fault.line, fault.message.as_str()), (2, "a page has no modules to import"));
    let fault = site("let a: number = 1\n\nexport const inject = require('b')").unwrap_err();
    assert_eq!(fault.line, 3);
    let fault = site("export const inject = 1\nfoo(import.meta)").unwrap_err();
    assert_eq!(fault.line, 2);
    // An import of types is not an import of a module.
    site("import type { B } from 'b'\nexport const inject = (b: B) => b").unwrap();
}

#[test]
fn what_cannot_stand_in_a_function_is_refused() {
    let fault = frontend("interface A { a: 1 }\nexport const scene = 1\nawait scene").unwrap_err();
    assert_eq!(fault.line, 3);
    assert!(fault.message.contains("await"), "{}", fault.message);
    let fault = site("const exports = 1").unwrap_err();
    assert!(fault.message.contains("`exports`"), "{}", fault.message);
}
