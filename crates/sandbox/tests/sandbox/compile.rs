//! Tests of compiling sources in a child process.

use std::time::{Duration, Instant};

use weir_sandbox::{Fault, NoHost, Pool, Source};
use weir_transpile::{Page, Script};

use crate::support::{event, pool, settings, step};

async fn server(pool: &Pool, text: &str) -> Result<Script, String> {
    pool.compile(0, Source::Server, "index.ts", text).await.unwrap()
}

#[tokio::test]
async fn sources_are_compiled_in_a_child() {
    let pool = pool(1);
    let script = server(&pool, "export const processEvent = (e: any) => e").await.unwrap();
    assert!(script.code.contains("(e) => e"), "{}", script.code);
    let fault = server(&pool, "let a = = 1").await.unwrap_err();
    assert!(fault.starts_with("index.ts:1:9: "), "{fault}");
    let page = "export const scene = <a>{b}</a>";
    let page: Result<Page, String> =
        pool.compile(0, Source::Frontend, "frontend.tsx", page).await.unwrap();
    assert!(page.unwrap().code.contains("createElement"));
    let site: Result<Page, String> =
        pool.compile(0, Source::Site, "site.ts", "import 'a'").await.unwrap();
    assert!(site.unwrap_err().starts_with("site.ts:1"));
    // The same child process runs the code that it has compiled.
    let events = [event(serde_json::json!({}))];
    let all = pool.transform(0, &[step(&script.code)], &events, &NoHost).await.unwrap();
    assert!(all[0].failures.is_empty(), "{:?}", all[0].failures);
    assert_eq!(pool.take_replaced(), 0);
}

#[tokio::test]
async fn what_is_within_the_bounds_fits_on_the_stack() {
    let sum = vec!["a"; weir_transpile::CHAIN_MAX - 10].join(" + ");
    let (open, close) = ("(".repeat(150), ")".repeat(150));
    server(&pool(1), &format!("x = {open}1{close}; y = {sum}")).await.unwrap();
}

#[tokio::test]
async fn a_source_that_ends_its_child_is_at_fault() {
    let pool = pool(1);
    let deep = format!("x = {}b", "<a>".repeat(weir_transpile::FRONTEND_MAX / 3 - 2));
    let made: Result<Page, String> =
        pool.compile(0, Source::Frontend, "frontend.tsx", &deep).await.unwrap();
    let fault = made.unwrap_err();
    assert!(fault.starts_with("frontend.tsx"), "{fault}");
    server(&pool, "let a = 1").await.unwrap();
}

#[tokio::test]
async fn a_source_that_takes_too_long_ends_its_child() {
    let mut settings = settings(1);
    settings.limits.compile = Duration::from_millis(10);
    settings.limits.grace = Duration::ZERO;
    let pool = Pool::new(settings);
    let long: String = (0..12_000).map(|n| format!("const a{n}: any = {{ b: [1] }};\n")).collect();
    let began = Instant::now();
    let fault = pool.compile::<Script>(0, Source::Server, "index.ts", &long).await.unwrap_err();
    assert!(matches!(fault, Fault::SlowCompile { .. }), "{fault}");
    assert_eq!(fault.to_string(), "index.ts: compiling it takes longer than 0 seconds");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(pool.alive(), 0, "the child was killed");
}
