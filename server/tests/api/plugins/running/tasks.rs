//! Scheduled tasks, jobs, storage, and apps that import events.

use weir_model::{PluginConfigId, Timestamp};
use weir_store::plugin_runtime::tasks::last_run;
use weir_testkit::servers::{StandIn, StubAnswer, StubRequest};

use super::*;

/// 2026-05-28T20:26:40Z.
const NOW: i64 = 1_780_000_000_000_000;

async fn started() -> (Instance, Clock) {
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    (Instance::at(&clock).await, clock)
}

/// The events of a name, oldest first.
async fn named(instance: &Instance, name: &str) -> Vec<Value> {
    let events = instance.stored(&instance.project()).await;
    events.into_iter().filter(|event| event["event"] == name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_minute_at_its_beginning() {
    let (instance, clock) = started().await;
    let source = "export async function runEveryMinute({ storage }) {
        const runs = (await storage.get('runs', 0)) + 1
        await storage.set('runs', runs)
        await posthog.capture('ticked', { runs })
    }";
    let installed = instance.install(&instance.project(), 1, source).await;
    // It counts from the minute in which it was first seen.
    let config = PluginConfigId(installed.id);
    until(async || last_run(instance.app.store(), config, "runEveryMinute").await.unwrap()).await;
    for runs in 1..=3 {
        // 20:26:40: the next minute begins in twenty seconds.
        clock.advance(if runs == 1 { 20 } else { 60 });
        let found = until(async || {
            let found = named(&instance, "ticked").await;
            (found.len() >= runs).then_some(found)
        })
        .await;
        assert_eq!(found.len(), runs, "once a minute");
        let newest = found.iter().map(|event| event["properties"]["runs"].as_u64().unwrap()).max();
        assert_eq!(newest, Some(runs as u64));
    }
    // An hour passed without calls: the missed calls are made up for by one.
    clock.advance(3_600);
    until(async || (named(&instance, "ticked").await.len() == 4).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_the_plugin_and_one_that_is_asked_for() {
    let (instance, clock) = started().await;
    let source = "export const jobs = {
        later: async (payload) => { await posthog.capture('later done', payload) },
        asked: async (payload, { jobs }) => {
            await posthog.capture('asked done', payload)
            await jobs.later({ from: 'asked' }).runIn(10, 'minutes')
        },
        fails: async (payload, { storage }) => {
            const tries = (await storage.get('tries', 0)) + 1
            await storage.set('tries', tries)
            await posthog.capture('tried', { tries })
            throw new Error('try ' + tries)
        },
    }";
    let manifest = json!({
        "name": "Jobs", "publicJobs": {"asked": {"payload": {}}, "fails": {"payload": {}}},
    });
    let files = json!({"index.js": source, "plugin.json": manifest.to_string()});
    let installed = instance.install_files(&instance.project(), 1, &files, &json!({})).await;
    let job = |name: &str| json!({"job": {"type": name, "payload": {"day": 3}}});
    let path = format!("{}job/", installed.config);
    ok(200, &instance.owner.post(&path, &job("asked")).await);
    let found = until(async || named(&instance, "asked done").await.pop()).await;
    assert_eq!(found["properties"]["day"], 3);
    assert_eq!(named(&instance, "later done").await.len(), 0);
    clock.advance(601);
    let found = until(async || named(&instance, "later done").await.pop()).await;
    assert_eq!(found["properties"]["from"], "asked");

    ok(200, &instance.owner.post(&path, &job("fails")).await);
    until(async || {
        clock.advance(60);
        let shown = instance.shown(&installed).await;
        let tried = named(&instance, "tried").await.len();
        (tried == 3
            && shown["error"]["message"].as_str().is_some_and(|error| error.contains("try 3")))
        .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_outlives_changes_and_ends_with_the_config() {
    // The allowance is refilled over time.
    let instance = Instance::start().await;
    let project = instance.project();
    let source = "export async function processEvent(e, { storage, cache }) {
        const count = (await storage.get('count', 0)) + 1
        await storage.set('count', count)
        e.properties.count = count
        e.properties.cached = await cache.incr('hits')
        return e
    }";
    let installed = instance.install(&project, 1, source).await;
    let count =
        |found: Option<&Value>| found.and_then(|event| event["properties"]["count"].as_u64());
    instance.until_works(&project, |found| count(found).is_some_and(|count| count >= 3)).await;
    let before = count(instance.probed(&project).await.as_ref()).unwrap();
    instance.rewrite(&installed, &format!("{source}\n// another version")).await;
    ok(200, &instance.owner.patch(&installed.config, &json!({"enabled": false})).await);
    ok(200, &instance.owner.patch(&installed.config, &json!({"enabled": true})).await);
    instance.until_works(&project, |found| count(found).is_some_and(|count| count > before)).await;
    assert_eq!(instance.owner.delete(&installed.config).await.status, 204);
    instance.install(&project, 1, source).await;
    instance.until_works(&project, |found| count(found) == Some(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_imports_sends_historical_events() {
    let (instance, clock) = started().await;
    let pages = StandIn::start((), |_: &mut (), asked: &StubRequest| {
        let after = asked.query.rsplit('=').next().unwrap().parse::<u64>().unwrap();
        let rows: Vec<Value> = (after..(after + 10).min(25))
            .map(|n| json!({"n": n, "who": format!("past-{}", n % 3)}))
            .collect();
        Some(StubAnswer::json(200, &json!({"rows": rows})))
    })
    .await;
    let source = "export async function runEveryMinute({ config, storage }) {
        let after = await storage.get('after', 0)
        for (;;) {
            const answer = await fetch(config.url + '/rows?after=' + after)
            const { rows } = await answer.json()
            if (!rows.length) { break }
            for (const row of rows) {
                await posthog.capture('imported', {
                    n: row.n, distinct_id: row.who, timestamp: '2024-04-02T12:00:00Z',
                })
            }
            after += rows.length
            await storage.set('after', after)
        }
    }";
    let manifest = json!({
        "name": "Past", "config": [{"key": "url", "type": "string", "required": true}],
    });
    let files = json!({"index.js": source, "plugin.json": manifest.to_string()});
    let config = json!({"url": pages.url()});
    instance.install_files(&instance.project(), 1, &files, &config).await;
    let found = until(async || {
        // It does not process events, so no event shows when it is loaded.
        clock.advance(60);
        let found = named(&instance, "imported").await;
        (found.len() >= 25).then_some(found)
    })
    .await;
    assert_eq!(found.len(), 25);
    for event in &found {
        assert_eq!(
            (&event["historical"], &event["timestamp"]),
            (&json!(true), &json!("2024-04-02T12:00:00Z"))
        );
        let n = event["properties"]["n"].as_u64().unwrap();
        assert_eq!(event["distinct_id"], format!("past-{}", n % 3));
        assert_eq!(event["properties"].get("distinct_id"), None);
    }
    // Another minute imports no event twice.
    clock.advance(60);
    instance.send(&instance.project(), &[event("now", json!({}))]).await;
    assert_eq!(named(&instance, "imported").await.len(), 25);
}
