//! Tests of the environment of scripts (PLG-28), and of what it must not contain.

use serde_json::json;
use weir_sandbox::{Delivered, DeliveryFunction, HostCall};

use crate::support::*;

#[tokio::test]
async fn console_goes_to_the_log_within_bounds() {
    let host = Memory::default();
    let source = "export function processEvent(event) {
        console.log('a', 1, { b: 2 }, null); console.error(new TypeError('t').message, '\\ud800');
        for (let i = 0; i < 500; i++) console.debug(i);
        return event }";
    pool(1).transform(0, &[step(source)], &[event(json!({}))], &host).await.unwrap();
    let lines = host.logged();
    assert_eq!(lines[0], "Log a 1 {\"b\":2} null");
    assert_eq!(lines[1], "Error t \u{fffd}");
    assert_eq!(lines.len(), 100);
}

#[tokio::test]
async fn urls_and_parameters_work() {
    let found = properties(
        "const u = new URL('https://a:b@Example.com:8443/x/../y?q=1&q=2#h');
         p.href = u.href; p.host = u.host; p.all = u.searchParams.getAll('q');
         u.searchParams.set('q', 'a b'); u.searchParams.append('z', 'ü'); u.hash = ''; u.pathname = '/n';
         p.after = u.toString(); p.origin = u.origin; p.json = JSON.stringify(u);
         p.relative = new URL('../c', 'https://e.com/a/b/').href;
         try { new URL('no url') } catch (error) { p.error = error.name }
         p.params = new URLSearchParams({ a: 1, b: 'x&y' }).toString();
         p.parsed = require('url').parse('https://e.com/a?b=c').query;",
    )
    .await;
    assert_eq!(
        found,
        json!({
            "href": "https://a:b@example.com:8443/y?q=1&q=2#h", "host": "example.com:8443",
            "all": ["1", "2"], "after": "https://a:b@example.com:8443/n?q=a+b&z=%C3%BC",
            "origin": "https://example.com:8443",
            "json": "\"https://a:b@example.com:8443/n?q=a+b&z=%C3%BC\"",
            "relative": "https://e.com/a/c", "error": "TypeError", "params": "a=1&b=x%26y",
            "parsed": "b=c",
        })
    );
}

#[tokio::test]
async fn bytes_and_digests_work() {
    let found = properties(
        "const { createHash, createHmac, randomUUID, randomBytes } = require('crypto');
         p.sha256 = createHash('sha256').update('a').update('b').digest('hex');
         p.md5 = createHash('md5').update('').digest('base64');
         p.sha1 = createHash('SHA-1').update('ab').digest('hex');
         p.mac = createHmac('sha256', 'key').update('The quick brown fox jumps over the lazy dog').digest('hex');
         p.uuid = randomUUID().length; p.random = randomBytes(7).length;
         p.hex = Buffer.from('äb').toString('hex'); p.back = Buffer.from('w6Ri', 'base64').toString();
         p.atob = atob('YWI='); p.btoa = btoa('ab');
         p.coded = new TextDecoder().decode(new TextEncoder().encode('ü'));
         const cyclic = { d: new Date(0) }; cyclic.self = cyclic; const copy = structuredClone(cyclic);
         p.clone = copy.self === copy && copy !== cyclic && copy.d instanceof Date;",
    )
    .await;
    assert_eq!(
        found,
        json!({
            "sha256": "fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603",
            "md5": "1B2M2Y8AsgTpgAmY7PhCfg==",
            "sha1": "da23614e02469a0d7c7bd1bdab5c9c474b1904dc",
            "mac": "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8", "uuid": 36, "random": 7, "hex": "c3a462", "back": "äb",
            "atob": "ab", "btoa": "YWI=", "coded": "ü", "clone": true,
        })
    );
}

#[tokio::test]
async fn code_cannot_be_made_from_text() {
    let found = properties(
        "const tries = {
           eval: () => eval('1'), indirect: () => globalThis.eval('1'),
           Function: () => new Function('return 1'), call: () => Function('return 1'),
           constructor: () => (() => {}).constructor('return 1'),
           async: () => (async () => {}).constructor('return 1'),
           generator: () => (function* () {}).constructor('return 1'),
           both: () => (async function* () {}).constructor('return 1'),
           reflect: () => Reflect.construct(Object.getPrototypeOf(function () {}).constructor, ['return 1']),
         };
         p.made = Object.keys(tries).filter((name) => { try { tries[name](); return true } catch { return false } });
         p.absent = [typeof setTimeout, typeof performance, typeof SharedArrayBuffer, typeof Atomics, typeof process];
         p.functions = (() => {}) instanceof Function;
         p.import = await import('fs').catch((error) => error.message.slice(0, 15));",
    )
    .await;
    assert_eq!(
        found,
        json!({
            "made": [], "absent": ["undefined", "undefined", "undefined", "undefined", "undefined"],
            "functions": true, "import": "the module \"fs\"",
        })
    );
}

#[tokio::test]
async fn what_is_not_granted_is_refused() {
    let mut bare = (*program(
        "export async function processEvent(event, { storage, cache, geoip }) {
           const p = event.properties;
           p.a = await storage.get('x').catch((error) => error.message);
           p.b = await fetch('https://example.com').catch((error) => error.message);
           p.c = await cache.incr('x').catch((error) => error.message);
           p.d = await geoip.locate('1.1.1.1').catch((error) => error.message);
           p.e = await posthog.capture('x').catch((error) => error.message);
           p.f = await posthog.api.get('/x').catch((error) => error.message.slice(0, 7));
           return event }",
    ))
    .clone();
    bare.grants = weir_sandbox::Grants::default();
    let host = Memory::default();
    let all = pool(1).transform(0, &[of(bare.into())], &[event(json!({}))], &host).await.unwrap();
    assert_eq!(
        kept(&all[0])["properties"],
        json!({
            "a": "storage is not available here", "b": "fetch is not available here",
            "c": "cache is not available here", "d": "geoip is not available here",
            "e": "posthog.capture is not available here", "f": "the API",
        })
    );
    assert!(host.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_host_is_asked_for_what_a_script_wants() {
    let host = Memory::default();
    let source = "
        export const jobs = { later: () => {} }
        export const metrics = { seen: 'sum', size: 'max' }
        export async function onEvent(event, meta) {
          const { storage, utils, jobs, metrics, geoip } = meta;
          await storage.set('k', { n: event.properties.n });
          const back = await storage.get('k');
          const none = await storage.get('none', 'fallback');
          const cursor = await utils.cursor.increment('c');
          const [a, b] = await Promise.all([fetch('https://e.com/a', { method: 'post', body: 'xyz' }), geoip.locate('1.1.1.1')]);
          const answer = await a.json();
          console.info(back.n, none, cursor, a.status, a.ok, a.headers.get('x-seen'), answer.method, answer.length, b.country.isoCode);
          await jobs.later({ x: 1 }).runIn(2, 'months');
          metrics.seen.increment(1); metrics.size.max(5);
          posthog.capture('made', { distinct_id: 'd', y: 1 });
          await fetch('https://refused').catch((error) => console.warn(error.message));
        }";
    let all = deliver(source, DeliveryFunction::OnEvent, &host).await;
    assert_eq!(all, [Delivered::Done, Delivered::Done]);
    assert_eq!(
        host.logged(),
        [
            "Info 1 fallback 1 201 true yes POST 3 DE",
            "Warn the connection was refused",
            "Info 2 fallback 2 201 true yes POST 3 DE",
            "Warn the connection was refused",
        ]
    );
    let calls = host.calls.lock().unwrap();
    assert!(calls.contains(&HostCall::JobEnqueue {
        name: "later".to_owned(),
        payload: json!({ "x": 1 }),
        after_ms: 60.0 * 24.0 * 60.0 * 60.0 * 1000.0,
    }));
    assert!(calls.contains(&HostCall::Capture {
        event: "made".to_owned(),
        distinct_id: "d".to_owned(),
        timestamp: None,
        properties: json!({ "y": 1 }),
    }));
    assert_eq!(calls.iter().filter(|call| matches!(call, HostCall::Metric { .. })).count(), 4);
}

#[tokio::test]
async fn a_location_has_the_keys_that_published_plugins_read() {
    let found = properties("p.found = await meta.geoip.locate('203.0.113.7')").await;
    assert_eq!(
        found["found"],
        json!({
            "country": { "isoCode": "DE", "names": { "pt-BR": "Alemanha", "a_b": "as it is" } },
            "location": { "timeZone": "Europe/Berlin", "latitude": 52.5 },
            "subdivisions": [{ "isoCode": "BE" }],
        })
    );
}
