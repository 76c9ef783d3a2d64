//! Tests with long or deeply nested texts.

use std::time::Instant;

use super::{frontend, server, site};
use crate::{CHAIN_MAX, FRONTEND_MAX, NESTING_MAX, SOURCE_MAX};

/// Repeated patterns: before, in the middle, after.
const DEEP: &[(&str, &str, &str)] = &[
    ("(", "a", ")"),
    ("x=[", "", "]"),
    ("x={a:", "1", "}"),
    ("{", "", "}"),
    ("`${", "a", "}`"),
    ("!", "a", ""),
    ("- ", "a", ""),
    ("typeof ", "a", ""),
    ("void ", "a", ""),
    ("new ", "a", ""),
    ("a+", "a", ""),
    ("a&&", "a", ""),
    ("a??", "a", ""),
    ("a**", "a", ""),
    ("a=", "a", ""),
    ("a in ", "a", ""),
    ("a<", "a", ""),
    ("a?b:", "c", ""),
    ("a?", "b", ":c"),
    ("a=>", "a", ""),
    ("(a)=>", "a", ""),
    ("async a=>", "a", ""),
    ("a.", "a", ""),
    ("a?.", "a", ""),
    ("", "a", "()"),
    ("", "a", "[0]"),
    ("", "a", "``"),
    ("", "a", "!"),
    ("", "a", " as b"),
    ("", "a", " satisfies b"),
    ("<a>", "b", ""),
    ("if(a){}else ", "{}", ""),
    ("if(a);else ", ";", ""),
    ("if(a)", ";", ""),
    ("if(a)\n", ";", ""),
    ("for(;;)", ";", ""),
    ("for(a of b)", ";", ""),
    ("while(a)", ";", ""),
    ("do ", ";", " while(a)"),
    ("with(a)", ";", ""),
    ("try{", "", "}finally{}"),
    ("switch(a){case 1:", "", "}"),
    ("function f(){", "", "}"),
    ("function f(a=", "1", "){}"),
    ("x=function(){return ", "1", "}"),
    ("x=class extends ", "a", "{}"),
    ("x={a(){return ", "1", "}}"),
    ("x=(a=(", "1", "))=>1"),
    ("class A{static{", "", "}}"),
    ("let x:a<", "b", ">"),
    ("type A<T=", "b", "> = 1"),
    ("let x:keyof ", "a", ""),
    ("let x:keyof\n", "a", ""),
    ("let x:()=>", "a", ""),
    ("type x=a extends b?c:", "d", ""),
    ("let x:{a:", "b", "}"),
    ("import(", "'a'", ")"),
    ("namespace a{", "", "}"),
    ("x=<a>", "", "</a>"),
    ("x=<a b={", "1", "}/>"),
    ("await ", "a", ""),
    ("a:", ";", ""),
];

fn repeated((before, middle, after): (&str, &str, &str), longest: usize) -> String {
    let times = longest.saturating_sub(middle.len()) / (before.len() + after.len());
    format!("{}{middle}{}", before.repeat(times), after.repeat(times))
}

#[test]
fn whatever_is_nested_ends_in_an_answer() {
    for deep in DEEP {
        let began = Instant::now();
        let _ = server("index.ts", &repeated(*deep, SOURCE_MAX));
        let _ = site(&repeated(*deep, 64 * 1024));
        let _ = frontend(&repeated(*deep, FRONTEND_MAX));
        assert!(began.elapsed().as_secs() < 20, "{deep:?} takes too long");
    }
}

#[test]
fn what_is_within_the_bounds_is_compiled() {
    let (before, after) = ("(".repeat(NESTING_MAX), ")".repeat(NESTING_MAX));
    server("index.ts", &format!("x = {before}1{after}")).unwrap();
    let sum = vec!["a"; CHAIN_MAX - 10].join(" + ");
    server("index.ts", &format!("x = {sum}")).unwrap();
    let branches = "if (a(b)) { c() } else ".repeat(CHAIN_MAX / 5);
    server("index.ts", &format!("{branches}{{}}")).unwrap();
}

#[test]
fn input_beyond_the_bounds_is_reported() {
    let (before, after) = ("(".repeat(NESTING_MAX + 1), ")".repeat(NESTING_MAX + 1));
    let fault = server("index.ts", &format!("x = {before}1{after}")).unwrap_err();
    assert!(fault.message.contains("nested"), "{fault}");
    let sum = vec!["a"; CHAIN_MAX + 10].join(" + ");
    let fault = server("index.ts", &format!("x = {sum}")).unwrap_err();
    assert!(fault.message.contains("chained"), "{fault}");
    let fault = server("index.ts", &" ".repeat(SOURCE_MAX + 1)).unwrap_err();
    assert!(fault.message.contains("512 KiB"), "{fault}");
    let fault = frontend(&" ".repeat(FRONTEND_MAX + 1)).unwrap_err();
    assert!(fault.message.contains("128 KiB"), "{fault}");
}

/// Long programs are not deep, with semicolons and without.
#[test]
fn long_programs_are_compiled() {
    for piece in [
        "function f{n}(a) { if (a > 1) { return a.b.c(a + 1) } else { return [a, { a }] } }\n",
        "const a{n} = b.c(1, 'x') + 2 || { a: 1, b: [1, 2], c() { return 3 } }\n",
        "export const b{n}: Map<string, number> = new Map<string, number>();\n",
        "x[{n}] = `a ${b} c`\ny = z ? 1 : 2\nfoo(() => { bar() })\n",
        "switch (x) { case 1: case 2: y(); break; default: z() }\n",
        "// it's a `comment` (\n/* and \" another */ class C{n} { a = 1; b() { return 2 } get c() {} }\n",
        "interface I{n} { a: string, b?: Array<number>\n c(d: number): void }\ntype T{n} = I{n} | null\n",
    ] {
        let text: String = (0..2000).map(|n| piece.replace("{n}", &n.to_string())).collect();
        server("index.ts", &text).unwrap_or_else(|fault| panic!("{piece}: {fault}"));
    }
    let list: String =
        (0..10_000).map(|n| format!("{{ id: {n}, ok: a > {n} ? !b : -c }},\n")).collect();
    server("index.ts", &format!("const list = [{list}]")).unwrap();
}

/// Texts for which a quadratic step would take minutes or gigabytes.
#[test]
fn long_texts_take_time_in_proportion_to_their_length() {
    let repeat = |piece: &str, longest: usize| -> String {
        let times = longest / piece.len();
        (0..times).map(|n| piece.replace('#', &n.to_string())).collect()
    };
    let keys: String = (0..4_000).map(|n| format!("k{n},")).collect();
    let aliases: String = (0..6_000).map(|n| format!("const a{n}=o,b{n}={{x:o,y:o}};")).collect();
    let chained: String = (1..6_000).map(|n| format!("const a{n}={{x:a{},y:o}};", n - 1)).collect();
    for text in [
        format!("const o={{{keys}}};{aliases}module.exports={{a1,a2}}"),
        format!("const o={{{keys}}},a0=o;{chained}export default a5999"),
        repeat("const v#=1;", 400 << 10),
        repeat("import 'm#';", 400 << 10),
        repeat("require('m#');", 400 << 10),
        format!("interface A {{}}\n{}", repeat("export {};", 400 << 10)),
        repeat("exports.e#=1;", 400 << 10),
    ] {
        let began = Instant::now();
        let _ = server("index.ts", &text);
        assert!(began.elapsed().as_secs() < 20, "{} takes too long", &text[..40]);
    }
    let underscores = "_".repeat(100 << 10);
    for text in [
        format!("export const $m{underscores} = 1"),
        repeat("import 'm#';", 100 << 10) + "const a = '$m0$m1$m2'",
        format!("export const scene = <a>'{}</a>", "\\'".repeat(40 << 10)),
        format!("export const scene = <a>`{}</a>", "\\`".repeat(40 << 10)),
    ] {
        let began = Instant::now();
        let _ = frontend(&text);
        assert!(began.elapsed().as_secs() < 20, "{} takes too long", &text[..40]);
    }
}
