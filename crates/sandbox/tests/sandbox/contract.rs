//! Tests of the contract with plugins (PLG-25, PLG-30).

use serde_json::json;
use weir_sandbox::{Delivered, DeliveryFunction, ErrorKind, NoHost, Outcome, Task};

use crate::support::*;

#[tokio::test]
async fn an_event_that_a_script_changes_comes_back_changed() {
    let made = through(
        "function processEvent(event) { event.properties.n = 1; return event }",
        json!({ "a": "ä😀" }),
    )
    .await;
    assert_eq!(
        kept(&made),
        json!({ "event": "seen", "distinct_id": "anna", "properties": { "a": "ä😀", "n": 1 } })
    );
}

#[tokio::test]
async fn an_event_that_comes_back_as_it_was_is_unchanged() {
    let made =
        through("export const processEvent = (event) => event", json!({ "$set": { "a": 1 } }))
            .await;
    assert!(matches!(made.outcome, Outcome::Unchanged), "{made:?}");
    assert!(made.failures.is_empty());
}

#[tokio::test]
async fn nothing_drops_the_event_and_ends_the_chain() {
    for nothing in ["", "return null", "return undefined"] {
        let pool = pool(1);
        let steps = [
            step("export function processEvent(event) { return event }"),
            step(&format!("export async function processEvent(event) {{ {nothing} }}")),
            step("export function processEvent(event) { throw new Error('never') }"),
        ];
        let all = pool.transform(0, &steps, &[event(json!({}))], &NoHost).await.unwrap();
        assert!(matches!(all[0].outcome, Outcome::Dropped { step: 1 }), "{all:?}");
        assert!(all[0].failures.is_empty());
    }
}

#[tokio::test]
async fn functions_are_found_wherever_they_are_exported() {
    let body = "(event) { event.properties.ok = true; return event }";
    for source in [
        format!("function processEvent{body}"),
        format!("const processEvent = function {body}"),
        format!("export function processEvent{body}"),
        format!("export default {{ processEvent{body} }}"),
        format!("module.exports = {{ processEvent{body} }}"),
        format!("exports.processEvent = function {body}"),
        format!("exports.default = {{ processEvent{body} }}"),
        format!("module.exports.processEvent = async function {body}"),
        format!("import crypto from 'crypto'\nfunction processEvent{body}"),
        "export async function processEventBatch(events) { for (const event of events) event.properties.ok = true; return events }".to_owned(),
    ] {
        let made = through(&source, json!({})).await;
        assert_eq!(kept(&made)["properties"], json!({ "ok": true }), "{source}");
    }
}

#[tokio::test]
async fn an_error_names_its_line_and_leaves_no_trace() {
    let made = through(
        "export function processEvent(event) {\n  event.properties.half = 1;\n  null.x;\n}",
        json!({}),
    )
    .await;
    let error = failed(&made);
    assert_eq!(error.kind, ErrorKind::Threw);
    assert_eq!(error.name, "TypeError");
    assert_eq!((error.file.as_deref(), error.line), (Some("index.js"), Some(3)));
    assert!(error.stack.as_deref().unwrap().contains("processEvent"));
}

#[tokio::test]
async fn load_errors_have_line_and_column() {
    for (source, line, part) in [
        ("let a = 1;\nlet b = ;", Some(2), "unexpected"),
        ("export function processEvent() {}\nlet b = ;", Some(2), "unexpected"),
        ("import fs from 'fs'", None, "\"fs\" cannot be used"),
        ("const fs = require('fs')", Some(1), "\"fs\" cannot be used"),
        ("\nthrow new Error('early')", Some(2), "early"),
    ] {
        let made = through(source, json!({})).await;
        let error = failed(&made);
        assert_eq!(error.kind, ErrorKind::Load, "{source}: {error:?}");
        assert!(error.message.contains(part), "{source}: {error:?}");
        assert_eq!(error.line.or(line), line, "{source}: {error:?}");
    }
}

#[tokio::test]
async fn a_failed_setup_has_a_kind_of_its_own() {
    let made = through(
        "export async function setupPlugin() { throw new RetryError('not yet') }\nexport const processEvent = (event) => event",
        json!({}),
    )
    .await;
    let error = failed(&made);
    assert_eq!(error.kind, ErrorKind::Setup);
    assert!(error.retry);
}

#[tokio::test]
async fn setup_runs_once_and_shares_global() {
    let pool = pool(1);
    let steps = [of(program_with(
        "export function setupPlugin({ global, config }) { global.n = config.first }
         export function processEvent(event, { global }) { event.properties.n = global.n++; return event }",
        json!({ "first": 5 }),
    ))];
    for first in [5, 7] {
        let events = [event(json!({})), event(json!({}))];
        let all = pool.transform(0, &steps, &events, &NoHost).await.unwrap();
        assert_eq!(kept(&all[0])["properties"]["n"], first);
        assert_eq!(kept(&all[1])["properties"]["n"], first + 1);
    }
}

#[tokio::test]
async fn set_is_seen_at_both_places() {
    let made = through(
        "export function processEvent(event) {
           event.properties.seen = event.$set.a;
           event.$set.b = 2;
           event.$set_once = { c: 3 };
           return event }",
        json!({ "$set": { "a": 1 } }),
    )
    .await;
    let event = kept(&made);
    assert_eq!(
        event["properties"],
        json!({ "$set": { "a": 1, "b": 2 }, "seen": 1, "$set_once": { "c": 3 } })
    );
    assert!(event.get("$set").is_none());
}

#[tokio::test]
async fn what_was_taken_out_of_set_does_not_come_back() {
    let made = through(
        "export function processEvent({ properties: { $set, ...properties }, ...event }) { return { ...event, properties } }",
        json!({ "$set": { "secret": 1 }, "a": 1 }),
    )
    .await;
    assert_eq!(kept(&made)["properties"], json!({ "a": 1 }));
}

#[tokio::test]
async fn what_is_no_event_is_no_result() {
    for result in [
        "1",
        "'text'",
        "[]",
        "{}",
        "{ ...event, event: 1 }",
        "{ ...event, distinct_id: null }",
        "{ ...event, properties: [] }",
        "{ ...event, properties: undefined }",
        "{ ...event, toJSON() { return 1 } }",
        "new Proxy(event, { get() { return undefined } })",
        "() => event",
        "Symbol()",
    ] {
        let made =
            through(&format!("export const processEvent = (event) => ({result})"), json!({})).await;
        let error = failed(&made);
        assert!(
            matches!(error.kind, ErrorKind::BadResult | ErrorKind::Threw),
            "{result}: {error:?}"
        );
    }
}

#[tokio::test]
async fn dates_become_text_and_halves_of_pairs_do_no_harm() {
    let found = properties("p.date = new Date(0); p.half = '\\ud83d'").await;
    assert_eq!(found, json!({ "date": "1970-01-01T00:00:00.000Z", "half": "\u{fffd}" }));
}

#[tokio::test]
async fn digits_that_a_script_leaves_alone_stay() {
    let text = r#"{"event":"e","distinct_id":"d","properties":{"id":12345678901234567890,"n":1}}"#;
    let input = || serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
    let steps = [
        step("export const processEvent = (event) => event"),
        step(
            "export const processEvent = (event) => { if (event.properties.n === 1) event.properties.m = 2; return event }",
        ),
    ];
    let pool = pool(1);
    let all = pool.transform(0, &steps[..1], &[input()], &NoHost).await.unwrap();
    assert!(matches!(all[0].outcome, Outcome::Unchanged), "{all:?}");
    let all = pool.transform(0, &steps, &[input()], &NoHost).await.unwrap();
    let Outcome::Kept(back) = &all[0].outcome else { panic!("{all:?}") };
    assert_eq!(back.get(), text.replace("\"n\":1", "\"n\":1,\"m\":2"));
}

#[tokio::test]
async fn webhooks_are_composed() {
    let source = "export function composeWebhook(event) {
        if (event.properties.n === 1) return null;
        return { url: 'https://e.com', body: { at: event.timestamp instanceof Date, n: event.properties.n } } }";
    let all = deliver(source, DeliveryFunction::ComposeWebhook, &NoHost).await;
    assert_eq!(all[0], Delivered::Webhook(None));
    let Delivered::Webhook(Some(webhook)) = &all[1] else { panic!("{all:?}") };
    assert_eq!((webhook.url.as_str(), webhook.method.as_str()), ("https://e.com", "POST"));
    assert_eq!(webhook.headers["content-type"], "application/json");
    assert_eq!(webhook.body.as_deref(), Some("{\"at\":false,\"n\":2}"));
    let all =
        deliver("export const composeWebhook = () => 5", DeliveryFunction::ComposeWebhook, &NoHost)
            .await;
    assert!(matches!(&all[0], Delivered::Failed(error) if error.kind == ErrorKind::BadResult));
}

#[tokio::test]
async fn a_destination_says_that_it_wants_another_try() {
    let source = "import { RetryError } from '@posthog/plugin-scaffold'
        export async function exportEvents(events) { if (events.length === 2) throw new RetryError('busy') }";
    let all = deliver(source, DeliveryFunction::ExportEvents, &NoHost).await;
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|one| matches!(one, Delivered::Failed(error) if error.retry)));
    let source =
        "export function onEvent(event) { if (event.properties.n === 1) throw new Error('no') }";
    let all = deliver(source, DeliveryFunction::OnEvent, &NoHost).await;
    assert!(matches!(&all[0], Delivered::Failed(error) if !error.retry));
    assert_eq!(all[1], Delivered::Done);
}

#[tokio::test]
async fn tasks_and_jobs_run() {
    let pool = pool(1);
    let host = Memory::default();
    let program = program(
        "export async function runEveryMinute({ storage }) { await storage.set('ran', 1) }
         export const jobs = { sum: ({ a, b }, { global }) => { console.log(a + b) }, bad() { throw 5 } }
         export function teardownPlugin() { console.log('over') }",
    );
    pool.task(0, &program, Task::EveryMinute, &host).await.unwrap().unwrap();
    pool.job(0, &program, "sum", &raw(&json!({ "a": 1, "b": 2 })), &host).await.unwrap().unwrap();
    let error = pool.job(0, &program, "bad", &raw(&json!(null)), &host).await.unwrap().unwrap_err();
    assert_eq!(error.message, "5");
    let error = pool.task(0, &program, Task::EveryDay, &host).await.unwrap().unwrap_err();
    assert!(error.message.contains("runEveryDay"), "{error:?}");
    pool.teardown(0, &program, &host).await.unwrap().unwrap();
    pool.teardown(0, &program, &host).await.unwrap().unwrap();
    assert_eq!(host.logged(), ["Log 3", "Log over"]);
}

#[tokio::test]
async fn analysis_says_what_a_plugin_can_do() {
    let pool = pool(1);
    let source = "export function processEvent(event) { return event }
        export function setupPlugin() { throw new Error('not called') }
        export const runEveryHour = () => {}
        export const jobs = { a() {}, b: 1 }
        export const metrics = { x: 'sum', y: 'other' }";
    let found = pool.inspect(0, "index.ts", &source.into()).await.unwrap().unwrap();
    assert_eq!(found.methods, ["setupPlugin", "processEvent"]);
    assert_eq!(found.scheduled_tasks, ["runEveryHour"]);
    assert_eq!(found.jobs, ["a"]);
    assert_eq!(found.metrics.into_iter().collect::<Vec<_>>(), [("x".to_owned(), "sum".to_owned())]);
    let error = pool.inspect(0, "index.ts", &"let a = ;".into()).await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.file.as_deref()), (ErrorKind::Load, Some("index.ts")));
}

#[tokio::test]
async fn what_is_thrown_after_a_request_that_may_pass_is_tried_again() {
    let host = Memory::default();
    for (url, again) in [
        ("https://refused", true),
        ("https://e.com/503", true),
        ("https://e.com/429", true),
        ("https://e.com/403", false),
        ("https://e.com/200", false),
    ] {
        // The first event causes the request, the second one fails alone.
        let source = format!(
            "export async function onEvent({{ properties }}) {{
               if (properties.n === 1) {{
                 const answer = await fetch('{url}')
                 if (!answer.ok) throw new Error(answer.status)
               }}
               throw new Error('own')
             }}"
        );
        let all = deliver(&source, DeliveryFunction::OnEvent, &host).await;
        let retry = |answer: &Delivered| match answer {
            Delivered::Failed(error) => error.retry,
            other => panic!("{other:?}"),
        };
        assert_eq!((retry(&all[0]), retry(&all[1])), (again, false), "{url}");
    }
}
