//! Hostile scripts. Each is stopped within its limit, while another script in the same
//! batch returns correct events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use weir_sandbox::{
    Delivered, DeliveryFunction, ErrorKind, Grants, NoHost, Outcome, Pool, TransformationCall,
};

use crate::support::*;

/// A script that is hostile only for `hostile` events.
fn trap(body: &str) -> TransformationCall {
    step(&format!(
        "export async function processEvent(event, meta) {{
           if (!event.properties.hostile) return event;
           {body}
           return event }}"
    ))
}

fn honest() -> TransformationCall {
    step("export function processEvent(event) { event.properties.honest = true; return event }")
}

/// Sends three events, of which only the second triggers the hostile script, through the
/// hostile and a harmless script; returns the kind of the failure and its duration.
async fn caught(pool: &Pool, hostile: TransformationCall) -> (Option<ErrorKind>, Duration) {
    let steps = [hostile, honest()];
    let events = [
        event(json!({ "n": 0 })),
        event(json!({ "n": 1, "hostile": true })),
        event(json!({ "n": 2 })),
    ];
    let started = Instant::now();
    let all = pool.transform(0, &steps, &events, &NoHost).await.unwrap();
    let took = started.elapsed();
    assert_eq!(all.len(), 3);
    for (n, made) in all.iter().enumerate() {
        let Outcome::Kept(text) = &made.outcome else { panic!("event {n}: {made:?}") };
        let back: serde_json::Value = serde_json::from_str(text.get()).unwrap();
        assert_eq!(back["properties"]["n"], n, "{made:?}");
        assert_eq!(back["properties"]["honest"], true, "{made:?}");
        if n != 1 {
            assert!(made.failures.is_empty(), "event {n}: {made:?}");
        }
    }
    (all[1].failures.first().map(|failure| failure.error.kind), took)
}

async fn all_caught(kinds: &[ErrorKind], within: Duration, bodies: &[&str]) {
    let pool = pool(1);
    for body in bodies {
        let (kind, took) = caught(&pool, trap(body)).await;
        assert!(kind.is_some_and(|kind| kinds.contains(&kind)), "{body}: {kind:?}");
        assert!(took < within, "{body}: {took:?}");
    }
}

#[tokio::test]
async fn endless_loops_are_stopped() {
    all_caught(
        &[ErrorKind::TimedOut, ErrorKind::Threw],
        // Some operations do not check for interrupts: the process ends twice.
        Duration::from_secs(4),
        &[
            "for (;;) {}",
            "for (;;) { try { for (;;) {} } catch {} }",
            "try { for (;;) {} } finally { for (;;) {} }",
            "[3, 2, 1].sort(() => { for (;;) {} })",
            "event.properties = { get x() { for (;;) {} } }",
            "event.toJSON = () => { for (;;) {} }",
            "return new Proxy(event, { get() { for (;;) {} }, ownKeys() { for (;;) {} } })",
            "return { then() { for (;;) {} } }",
            "return { get then() { for (;;) {} } }",
            "throw { get message() { for (;;) {} } }",
            "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { for (;;) {} } }); throw e",
            "/^(a+)+$/.test('a'.repeat(40) + 'b')",
            "/(x+x+)+y/.exec('x'.repeat(60))",
            "'a'.repeat(100000).replace(/(a*)*b/g, '')",
            "Array.from({ length: 1e12 })",
            "const g = (function* () { for (;;) yield 1 })(); for (const x of g);",
            "JSON.parse('[1]', () => { for (;;) {} })",
            "String.prototype.replace.call('a', 'a', () => { for (;;) {} })",
        ],
    )
    .await;
    // It also grows: which of the two limits it reaches first depends on the machine.
    all_caught(
        &[ErrorKind::TimedOut, ErrorKind::OutOfMemory],
        Duration::from_secs(4),
        &["new Array(4e9 - 1).fill(0)"],
    )
    .await;
}

#[tokio::test]
async fn floods_of_microtasks_are_stopped() {
    all_caught(
        &[ErrorKind::TimedOut, ErrorKind::OutOfMemory],
        Duration::from_millis(3000),
        &[
            "for (;;) await null",
            "const again = () => Promise.resolve().then(again); again(); return event",
            "const twice = () => { queueMicrotask(twice); queueMicrotask(twice) }; twice(); return event",
            "for (;;) await { then(resolve) { resolve() } }",
            "(async () => { for (;;) { try { await null } finally {} } })(); return event",
        ],
    )
    .await;
}

#[tokio::test]
async fn unsettled_promises_are_reported() {
    all_caught(
        &[ErrorKind::Unsettled],
        Duration::from_secs(1),
        &[
            "await new Promise(() => {})",
            "const all = []; for (let i = 0; i < 5000; i++) all.push(new Promise(() => {})); await Promise.race(all)",
        ],
    )
    .await;
}

#[tokio::test]
async fn memory_is_bounded() {
    all_caught(
        &[ErrorKind::OutOfMemory, ErrorKind::TimedOut, ErrorKind::BadResult, ErrorKind::Threw, ErrorKind::StackOverflow],
        Duration::from_secs(6),
        &[
            "let s = 'x'; for (;;) s += s",
            "'x'.repeat(5e8)",
            "const a = []; for (;;) a.push({})",
            "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
            "new ArrayBuffer(1 << 30)",
            "new Uint8Array(2 ** 31)",
            "globalThis.kept = []; for (;;) { try { kept.push('x'.repeat(1e6) + kept.length) } catch { return event } }",
            "event.properties.x = 'x'.repeat(2e6)",
            "let a = []; for (let i = 0; i < 100000; i++) a = [a]; event.properties.a = a",
            "let a = {}; for (let i = 0; i < 70; i++) a = { a }; event.properties.a = a",
            "JSON.parse('['.repeat(1e6))",
            "event.self = event",
            "const m = new Map(); for (let i = 0; ; i++) m.set(i, 'v' + i)",
            "new Array(1e8).join('x')",
        ],
    )
    .await;
}

#[tokio::test]
async fn deep_recursion_is_an_error() {
    all_caught(
        &[ErrorKind::StackOverflow, ErrorKind::Threw, ErrorKind::BadResult, ErrorKind::OutOfMemory],
        Duration::from_millis(1500),
        &[
            "(function f() { f() })()",
            "const f = () => f(); f()",
            "const o = { toString() { return `${o}` } }; `${o}`",
            "const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.x",
            "class A { constructor() { new A() } } new A()",
            "let r = '('.repeat(50000) + ')'.repeat(50000); new RegExp(r)",
            "event.properties = { toJSON() { return this.x.x.x } }; event.properties.x = event.properties; throw 1",
        ],
    )
    .await;
}

#[tokio::test]
async fn arithmetic_that_the_engine_does_not_look_into_ends_with_the_process() {
    let pool = pool(1);
    let before = pool.confinement(0).await.map(|_| ()).is_ok();
    assert!(before);
    let id = pool.process_id(0).await.unwrap();
    let bomb = "let x = 3n ** 100000n; for (;;) x *= x";
    let (kind, took) = caught(&pool, trap(bomb)).await;
    assert!(
        matches!(kind, Some(ErrorKind::TimedOut | ErrorKind::OutOfMemory | ErrorKind::Threw)),
        "{kind:?}"
    );
    assert!(took < Duration::from_secs(5), "{took:?}");
    // One call that takes minutes.
    let bomb = "const x = 3n ** 600000n; new Array(200).fill(x).join()";
    let (kind, took) = caught(&pool, trap(bomb)).await;
    assert_eq!(kind, Some(ErrorKind::TimedOut));
    assert!(took < Duration::from_secs(5), "{took:?}");
    let _ = id;
}

#[tokio::test]
async fn what_an_event_does_to_the_engine_does_not_reach_the_host() {
    let pool = pool(1);
    for body in [
        "JSON.parse = JSON.stringify = () => 'stolen'",
        "Object.prototype.toJSON = undefined; Array.isArray = () => true",
        "Promise = undefined; Promise.prototype",
        "Object.keys = Object.entries = Object.assign = () => { throw 1 }",
        "Map.prototype.get = Map.prototype.set = () => { throw 1 }",
        "globalThis.URL = globalThis.Buffer = globalThis.console = null",
        "Object.defineProperty(Object.prototype, 'then', { value: 5, configurable: true, writable: true })",
        "Promise.prototype.then = () => {}",
        "Object.freeze(Object.prototype); Object.freeze(globalThis)",
        "Array.prototype[Symbol.iterator] = () => { throw 1 }",
        "delete globalThis.Object; delete globalThis.Promise",
        "Function.prototype.call = Function.prototype.apply = null",
    ] {
        // The script may harm itself; the host and other scripts are not affected.
        caught(&pool, trap(body)).await;
    }
    // A property of every object does not appear in events of another script.
    let (kind, _) =
        caught(&pool, trap("Object.prototype.event = 1; Object.prototype.$set = { x: 1 }")).await;
    assert_eq!(kind, None);
}

#[tokio::test]
async fn keys_with_a_meaning_are_plain_keys() {
    let text =
        r#"{"event":"e","distinct_id":"d","properties":{"__proto__":{"x":1},"constructor":2}}"#;
    let input = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
    let source = "export function processEvent(event) { event.properties.seen = typeof event.properties.x; return event }";
    let all = pool(1).transform(0, &[step(source)], &[input], &NoHost).await.unwrap();
    let Outcome::Kept(back) = &all[0].outcome else { panic!("{all:?}") };
    assert_eq!(
        back.get(),
        r#"{"event":"e","distinct_id":"d","properties":{"__proto__":{"x":1},"constructor":2,"seen":"undefined"}}"#
    );
}

#[tokio::test]
async fn a_source_that_is_too_large_is_refused() {
    let large =
        format!("function processEvent(event) {{ return event }}\n//{}", "ä".repeat(300_000));
    all_fail(&large, ErrorKind::Load).await;
}

async fn all_fail(source: &str, kind: ErrorKind) {
    let events: Vec<_> = (0..20).map(|n| event(json!({ "n": n }))).collect();
    let started = Instant::now();
    let all = pool(1).transform(0, &[step(source), honest()], &events, &NoHost).await.unwrap();
    assert_eq!(all.len(), 20);
    for made in &all {
        assert_eq!(made.failures[0].error.kind, kind, "{source}: {made:?}");
        assert!(matches!(made.outcome, Outcome::Kept(_)));
    }
    assert!(started.elapsed() < Duration::from_secs(8), "{source}: {:?}", started.elapsed());
}

#[tokio::test]
async fn a_source_that_is_hostile_when_it_is_loaded_is_tried_once_per_request() {
    all_fail("for (;;) {}", ErrorKind::Load).await;
    all_fail("function f() { f() } f()", ErrorKind::Load).await;
    all_fail("export function setupPlugin() { for (;;) {} }", ErrorKind::Setup).await;
    all_fail("export const setupPlugin = () => new Promise(() => {})", ErrorKind::Setup).await;
    all_fail("await new Promise(() => {}); export {}", ErrorKind::Load).await;
    all_fail("export default { get processEvent() { for (;;) {} } }", ErrorKind::Load).await;
}

#[tokio::test]
async fn a_step_that_used_up_its_allowance_is_passed_over() {
    let slow = program("export function processEvent(event) { for (;;) {} }");
    let slow = TransformationCall { program: slow, allowances: vec![Duration::from_millis(250)] };
    let events: Vec<_> = (0..50).map(|n| event(json!({ "n": n }))).collect();
    let started = Instant::now();
    let all = pool(1)
        .transform_within(0, &[slow, honest()], &vec![vec![0]; 50], &events, &NoHost)
        .await
        .unwrap();
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let failed = all.iter().filter(|made| !made.failures.is_empty()).count();
    let passed = all.iter().filter(|made| made.passed_over == [0]).count();
    assert_eq!((failed, passed), (3, 47));
    assert!(all.iter().all(|made| matches!(made.outcome, Outcome::Kept(_))));
}

#[tokio::test]
async fn a_payer_that_has_nothing_left_leaves_the_others_theirs() {
    let slow = program(
        "export function processEvent(event) { while (event.properties.slow); return event }",
    );
    let allowance = Duration::from_millis(250);
    let slow =
        TransformationCall { program: slow, allowances: vec![allowance, allowance, allowance * 4] };
    let events: Vec<_> = (0..60).map(|n| event(json!({ "n": n, "slow": n % 2 == 0 }))).collect();
    // The third payer pays for all events.
    let payers: Vec<Vec<usize>> = (0..60).map(|n| vec![n % 2, 2]).collect();
    let all = pool(1).transform_within(0, &[slow], &payers, &events, &NoHost).await.unwrap();
    for (number, made) in all.iter().enumerate() {
        let is_quick = number % 2 == 1;
        assert!(matches!(made.outcome, Outcome::Unchanged), "{number}");
        assert!(!is_quick || made.passed_over.is_empty() && made.failures.is_empty(), "{number}");
    }
    assert_eq!(all.iter().filter(|made| !made.failures.is_empty()).count(), 3);
    assert_eq!(all.iter().filter(|made| made.passed_over == [0]).count(), 27);
}

#[tokio::test]
async fn a_step_that_kills_processes_is_passed_over_too() {
    let bomb = program(
        "export function processEvent(event) { const x = 3n ** 600000n; new Array(200).fill(x).join() }",
    );
    let bomb = TransformationCall { program: bomb, allowances: vec![Duration::from_millis(500)] };
    let events: Vec<_> = (0..50).map(|n| event(json!({ "n": n }))).collect();
    let started = Instant::now();
    let all = pool(1)
        .transform_within(0, &[bomb, honest()], &vec![vec![0]; 50], &events, &NoHost)
        .await
        .unwrap();
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    assert!(all.iter().all(|made| matches!(made.outcome, Outcome::Kept(_))));
    assert!(all.iter().filter(|made| made.passed_over == [0]).count() >= 45);
    let cost: u64 = all.iter().map(|made| u64::from(made.micros[0])).sum();
    assert!(cost >= 500_000, "{cost}");
}

#[tokio::test]
async fn waiting_for_the_host_is_bounded_and_not_counted() {
    struct Slow(Duration);
    #[async_trait::async_trait]
    impl weir_sandbox::ScriptHost for Slow {
        async fn call(
            &self,
            _: &weir_sandbox::Program,
            _: weir_sandbox::HostCall,
        ) -> Result<serde_json::Value, String> {
            weir_testservers::slow_work(self.0).await;
            Ok(json!(1))
        }
    }
    let source = "export async function processEvent(event, { storage }) { event.properties.x = await storage.get('k'); return event }";
    let events = [event(json!({})), event(json!({}))];
    let pool = pool(1);
    let wait = Slow(Duration::from_millis(300));
    let all = pool.transform(0, &[step(source)], &events, &wait).await.unwrap();
    assert_eq!(kept(&all[0])["properties"]["x"], 1);
    let all =
        pool.transform(0, &[step(source)], &events, &Slow(Duration::from_secs(60))).await.unwrap();
    assert_eq!(failed(&all[1]).kind, ErrorKind::TimedOut);
    let source = "export async function onEvent(event) { for (;;) await fetch('https://e.com') }";
    let mut short = settings(1);
    short.limits.wall = Duration::from_millis(400);
    let all = Pool::new(short)
        .deliver(
            0,
            &program(source),
            DeliveryFunction::OnEvent,
            &events,
            &Slow(Duration::from_millis(1)),
        )
        .await
        .unwrap();
    assert_eq!(all.len(), 2);
    for one in &all {
        assert!(
            matches!(one, Delivered::Failed(error) if error.kind == ErrorKind::TimedOut),
            "{all:?}"
        );
    }
}

#[tokio::test]
async fn lanes_do_not_wait_for_each_other() {
    let pool = Arc::new(pool(2));
    pool.transform(1, &[honest()], &[event(json!({}))], &NoHost).await.unwrap();
    let hostile = tokio::spawn({
        let pool = pool.clone();
        async move {
            let events: Vec<_> = (0..10).map(|_| event(json!({}))).collect();
            pool.transform(
                0,
                &[step("export function processEvent() { for (;;) {} }")],
                &events,
                &NoHost,
            )
            .await
        }
    });
    let honest = honest();
    for _ in 0..5 {
        let started = Instant::now();
        let all = pool
            .transform(1, std::slice::from_ref(&honest), &[event(json!({}))], &NoHost)
            .await
            .unwrap();
        assert!(started.elapsed() < Duration::from_millis(500));
        kept(&all[0]);
    }
    assert_eq!(hostile.await.unwrap().unwrap().len(), 10);
}

#[tokio::test]
async fn what_a_failed_event_has_begun_is_not_the_next_ones_trouble() {
    let source = "const again = () => Promise.resolve().then(again);
        export function processEvent(event) {
          if (event.properties.n === 1) { again(); throw new Error('first') }
          return event }";
    let events: Vec<_> = (0..3).map(|n| event(json!({ "n": n }))).collect();
    let all = pool(1).transform(0, &[step(source)], &events, &NoHost).await.unwrap();
    let failed: Vec<_> = all.iter().map(|made| made.failures.len()).collect();
    assert_eq!(failed, [0, 1, 0]);
}

#[tokio::test]
async fn a_script_that_is_loaded_again_and_again_pays_for_it() {
    // Work instead of a time of the clock, which is less work on a busy machine.
    let source = "let n = 0; for (let i = 0; i < 10000000; i++) n += i;
        export function processEvent(event) { for (;;) {} }";
    let slow = TransformationCall {
        program: program(source),
        allowances: vec![Duration::from_millis(600)],
    };
    let events: Vec<_> = (0..20).map(|n| event(json!({ "n": n }))).collect();
    let all =
        pool(1).transform_within(0, &[slow], &vec![vec![0]; 20], &events, &NoHost).await.unwrap();
    let failed = all.iter().filter(|made| !made.failures.is_empty()).count();
    assert!((1..=6).contains(&failed), "{failed}");
}

/// One call that takes minutes, and that the engine does not interrupt.
const BOMB: &str = "const x = 3n ** 600000n; new Array(200).fill(x).join();";

#[tokio::test]
async fn an_inspection_that_cannot_be_stopped_ends_after_the_time_for_loading() {
    let mut settings = settings(1);
    // What may take longer than loading takes much longer.
    settings.limits.load = Duration::from_millis(200);
    settings.limits.task = Duration::from_secs(60);
    settings.limits.wall = Duration::from_secs(60);
    let pool = Pool::new(settings);
    for source in [
        BOMB.to_owned(),
        // A call of the host gives no more time.
        format!("fetch('https://example.com').catch(() => {{}}); {BOMB}"),
        format!("export default {{ get processEvent() {{ {BOMB} }} }}"),
        format!("export const jobs = {{ get tea() {{ {BOMB} }} }}"),
        format!("export const jobs = new Proxy({{}}, {{ ownKeys() {{ {BOMB} return [] }} }})"),
    ] {
        let started = Instant::now();
        let inspected = pool.inspect(0, "index.js", &source.as_str().into()).await.unwrap();
        let took = started.elapsed();
        // Some getters are not called.
        if let Err(error) = inspected {
            assert_eq!(error.kind, ErrorKind::TimedOut, "{source}");
        }
        assert!(took < Duration::from_secs(20), "{source}: {took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_processor_is_not_charged() {
    let mut settings = settings(1);
    settings.limits.transform = Duration::from_secs(1);
    settings.limits.grace = Duration::from_millis(100);
    let pool = Pool::new(settings);
    pool.confinement(0).await.unwrap();
    let bomb = step(&format!("export function processEvent(event) {{ {BOMB} }}"));
    let _load = Load::begin();
    let all = pool.transform(0, &[bomb], &[event(json!({}))], &NoHost).await.unwrap();
    assert_eq!(failed(&all[0]).kind, ErrorKind::TimedOut);
    let cost = Duration::from_micros(u64::from(all[0].micros[0]));
    // Two processes ended: the second one showed which step was the cause. Each had its
    // limit and the grace.
    assert!(cost > Duration::from_secs(1) && cost < Duration::from_millis(2_500), "{cost:?}");
}

/// Threads that use all processors.
struct Load(Arc<std::sync::atomic::AtomicBool>);

impl Load {
    fn begin() -> Self {
        let on = Arc::new(std::sync::atomic::AtomicBool::new(true));
        for _ in 0..8 {
            let on = on.clone();
            std::thread::spawn(move || {
                while on.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(on)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(false, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_machine_makes_no_script_late() {
    let pool = pool(1);
    let step = step(
        "export function processEvent(event) { let n = 0; for (let i = 0; i < 100000; i++) n += i; event.properties.sum = n; return event }",
    );
    let events: Vec<_> = (0..20).map(|n| event(json!({ "n": n }))).collect();
    pool.confinement(0).await.unwrap();
    let _load = Load::begin();
    let all = pool.transform(0, &[step], &events, &NoHost).await.unwrap();
    for made in &all {
        kept(made);
    }
}

#[tokio::test]
async fn unloading_a_transformation_holds_its_lane_no_longer_than_an_event() {
    let pool = pool(1);
    let source = "export const processEvent = (event) => event;
        export function teardownPlugin() { for (;;) {} }";
    let mut endless = program_with(source, json!({}));
    Arc::make_mut(&mut endless).grants = Grants { fetch: false, ..everything() };
    let events = [event(json!({}))];
    pool.transform(0, &[of(endless.clone())], &events, &NoHost).await.unwrap();
    let started = Instant::now();
    let error = pool.teardown(0, &endless, &NoHost).await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[tokio::test]
async fn events_together_grow_by_a_bounded_amount() {
    let grow = step(
        "export function processEvent(event) { event.properties.x = 'x'.repeat(1000000); return event }",
    );
    let events: Vec<_> = (0..100).map(|n| event(json!({ "n": n }))).collect();
    let all = pool(1).transform(0, &[honest(), grow], &events, &NoHost).await.unwrap();
    let kept: usize = all
        .iter()
        .map(|made| match &made.outcome {
            Outcome::Kept(text) => text.get().len(),
            _ => 0,
        })
        .sum();
    assert!((4 << 20..9 << 20).contains(&kept), "{kept}");
    let last = failed(&all[99]);
    assert_eq!(last.kind, ErrorKind::BadResult);
    assert_eq!(all[99].failures[0].step, 1);
}

#[tokio::test]
async fn memory_that_others_hold_is_no_trouble_of_a_script() {
    let pool = pool(1);
    // Each allocates nearly its limit in one call, and is not called again.
    for _ in 0..24 {
        let greedy = step(
            "const held = new Uint8Array(50 << 20); export const processEvent = (event) => { held[0] = 1; return event }",
        );
        pool.transform(0, &[greedy], &[event(json!({}))], &NoHost).await.unwrap();
    }
    let grows = "let held; export const processEvent = (event) => { held ??= new Uint8Array(50 << 20); return event }";
    for _ in 0..24 {
        pool.transform(0, &[step(grows)], &[event(json!({}))], &NoHost).await.unwrap();
    }
    let all = pool.transform(0, &[honest()], &[event(json!({}))], &NoHost).await.unwrap();
    kept(&all[0]);
    assert_eq!(pool.take_replaced(), 0, "the process lasts");
}

/// A value of the process in bytes, such as its memory.
fn status(id: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn many_large_programs_share_the_memory_of_a_child() {
    let pool = pool(1);
    let large = || {
        step(
            "let kept;
             export function processEvent(event) {
               kept ??= Array.from({ length: 50 }, () => new Uint8Array(1 << 20).fill(1));
               event.properties.megabytes = (event.properties.megabytes ?? 0) + kept.length;
               return event }",
        )
    };
    let steps: Vec<TransformationCall> = (0..8).map(|_| large()).collect();
    for _ in 0..3 {
        let all = pool.transform(0, &steps, &[event(json!({}))], &NoHost).await.unwrap();
        assert_eq!(kept(&all[0])["properties"]["megabytes"], 400);
    }
    let id = pool.process_id(0).await.unwrap();
    let (peak, now) = (status(id, "VmHWM:"), status(id, "VmRSS:") - status(id, "RssFile:"));
    let files = status(id, "RssFile:");
    assert!(peak - files < 200 << 20, "{} MiB at most", (peak - files) >> 20);
    assert!(now < 160 << 20, "{} MiB are kept", now >> 20);
    assert_eq!(pool.take_replaced(), 0, "nothing had to be killed");
}
