//! Tests of faults and their positions.

use super::{frontend, server, site};

#[test]
fn a_fault_has_its_column_in_characters() {
    let fault = server("index.js", "const a = 1\nconst ä = 'ö'; let b = = 2\n").unwrap_err();
    assert_eq!((fault.file.as_str(), fault.line, fault.column), ("index.js", 2, 24));
    assert_eq!(fault.excerpt, "const ä = 'ö'; let b = = 2");
    assert!(!fault.message.is_empty());
    assert_eq!(fault.to_string(), format!("index.js:2:24: {}", fault.message));
}

#[test]
fn lines_end_in_every_way_of_the_language() {
    for end in ["\n", "\r\n", "\r"] {
        let fault = server("index.ts", &format!("let a{end}let b{end}let = = 2")).unwrap_err();
        assert_eq!(fault.line, 3, "{end:?}");
    }
}

#[test]
fn the_excerpt_of_a_long_line_is_the_part_around() {
    let text = format!("{}let b = = 2;{}", "let a;".repeat(500), "let a;".repeat(500));
    let fault = server("index.ts", &text).unwrap_err();
    assert!(fault.excerpt.contains("let b = = 2"), "{}", fault.excerpt);
    assert!(fault.excerpt.chars().count() <= 120);
}

#[test]
fn the_first_fault_counts() {
    let fault = server("index.ts", "let a\nlet a\nlet b\nlet b\n").unwrap_err();
    assert!(fault.line <= 2, "{fault}");
}

#[test]
fn files_have_their_names() {
    assert_eq!(frontend("<a>").unwrap_err().file, "frontend.tsx");
    assert_eq!(site("let = = 1").unwrap_err().file, "site.ts");
}

#[test]
fn decorators_are_refused() {
    for text in ["\n  @a class A {}", "\n  class A { @a b() {} }"] {
        let fault = server("index.ts", text).unwrap_err();
        assert_eq!((fault.line, fault.message.as_str()), (2, "decorators are not supported"));
    }
}

#[test]
fn what_the_engine_does_not_read_is_refused() {
    let fault = server("index.ts", "export function onEvent() { using a = b }").unwrap_err();
    assert!(fault.message.contains("using"), "{}", fault.message);
    assert!(server("index.js", "let a: number = 1").is_err());
    assert!(server("index.ts", "export const a = <b/>").is_err());
}

#[test]
fn a_slash_that_may_mean_two_things_is_refused() {
    for text in ["{}\n/'/.test(a)", "a\n/'/.test(b)", "x = {} /b/ 2", "async () => await /a/"] {
        let fault = server("index.ts", text).unwrap_err();
        assert!(fault.message.contains("slash"), "{text}: {}", fault.message);
    }
}

#[test]
fn a_slash_that_means_one_thing_is_read() {
    for text in [
        "if (a) /'/.test(b)",
        "a.if(b) / 2 / c",
        "x = (a) / 2; y = a[0] / 3; z = i++ / 4; w = `a` / 5",
        "x = /[/'\"]/.test(a) ? /\\/(/.source : 1",
        "for (const a of b) { return_(a) } ; x = b => /`/.test(b)",
        "async function f() { return (await (g())) / 2 + await (g()) / 2 }",
        "function f() { return /'/ } ; throw_ = 1; x = typeof /(/",
        "while (a --> 0) b()",
    ] {
        server("index.ts", text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    }
}
