//! Tests of the child as a process: forbidden operations, replacing it and ending it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use weir_sandbox::{DeliveryFunction, Fault, NoHost, Outcome, Pool, PoolSettings};
use weir_testservers::until;

use crate::support::*;

/// Error numbers for "not permitted" and "bad file descriptor".
const EPERM: i32 = 1;
const EACCES: i32 = 13;

#[tokio::test]
async fn the_system_refuses_what_a_child_must_not_do() {
    let pool = pool(1);
    let confinement = pool.confinement(0).await.unwrap();
    assert!(confinement.seccomp, "{confinement:?}");
    let probe = pool.probe(0).await.unwrap();
    assert!(probe.tried.len() >= 9);
    for (what, errno) in &probe.tried {
        assert!(matches!(errno, Some(EPERM | EACCES)), "{what}: {errno:?}");
    }
    assert!(probe.descriptors.is_empty(), "{probe:?}");
    assert_eq!(probe.environment, 0);
    // It still works afterwards.
    pool.inspect(0, "a.js", &"".into()).await.unwrap().unwrap();
}

fn kill(id: u32) {
    send("-KILL", id);
}

fn send(signal: &str, id: u32) {
    let done = std::process::Command::new("kill").args([signal, &id.to_string()]).status().unwrap();
    assert!(done.success());
}

fn alive(id: u32) -> bool {
    // A zombie process is only an entry in the process table.
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn gone(id: u32) {
    until(async || !alive(id)).await;
}

/// Processor time of a process, in ticks.
fn worked(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(11).unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_system_takes_memory_from_children_first() {
    let pool = pool(1);
    assert_eq!(pool.confinement(0).await.unwrap().missing, Vec::<String>::new());
    let id = pool.process_id(0).await.unwrap();
    let score = std::fs::read_to_string(format!("/proc/{id}/oom_score_adj")).unwrap();
    assert_eq!(score.trim(), "1000");
}

#[tokio::test]
async fn a_child_ignores_the_signal_to_read_settings_again() {
    let pool = pool(1);
    pool.confinement(0).await.unwrap();
    let id = pool.process_id(0).await;
    send("-HUP", id.unwrap());
    pool.inspect(0, "a.js", &"".into()).await.unwrap().unwrap();
    assert_eq!((pool.process_id(0).await, pool.take_replaced()), (id, 0));
}

#[tokio::test]
async fn a_child_that_is_killed_between_requests_is_replaced() {
    let pool = pool(1);
    let step = step(
        "export const processEvent = (event, { global }) => { event.properties.n = global.n = (global.n ?? 0) + 1; return event }",
    );
    for n in [1, 2] {
        let all = pool
            .transform(0, std::slice::from_ref(&step), &[event(json!({}))], &NoHost)
            .await
            .unwrap();
        assert_eq!(kept(&all[0])["properties"]["n"], n);
    }
    assert_eq!((pool.alive(), pool.take_replaced()), (1, 0));
    kill(pool.process_id(0).await.unwrap());
    let all = pool.transform(0, &[step], &[event(json!({}))], &NoHost).await.unwrap();
    assert_eq!(kept(&all[0])["properties"]["n"], 1);
    assert_eq!((pool.alive(), pool.take_replaced()), (1, 1));
    assert_eq!(pool.take_replaced(), 0);
    pool.shutdown().await;
    assert_eq!(pool.alive(), 0);
}

#[tokio::test]
async fn a_child_that_is_killed_in_the_middle_loses_no_event() {
    let pool = Arc::new(pool(1));
    let step = step(
        "export function processEvent(event) { for (let i = 0; i < 3000; i++); event.properties.done = 1; return event }",
    );
    pool.transform(0, std::slice::from_ref(&step), &[event(json!({}))], &NoHost).await.unwrap();
    let id = pool.process_id(0).await.unwrap();
    let before = worked(id);
    let work = tokio::spawn({
        let pool = pool.clone();
        async move {
            let events: Vec<_> = (0..5000).map(|n| event(json!({ "n": n }))).collect();
            pool.transform(0, &[step], &events, &NoHost).await
        }
    });
    until(async || worked(id) > before + 2).await;
    kill(id);
    let all = work.await.unwrap().unwrap();
    assert_eq!(all.len(), 5000);
    for (n, made) in all.iter().enumerate() {
        assert_eq!(kept(made)["properties"], json!({ "n": n, "done": 1 }));
    }
    assert_ne!(pool.process_id(0).await, Some(id));
}

#[tokio::test]
async fn a_request_that_is_given_up_leaves_the_lane_usable() {
    let pool = pool(1);
    let endless = [step("export async function processEvent(event) { for (;;) {} }")];
    let events: Vec<_> = (0..100).map(|_| event(json!({}))).collect();
    pool.confinement(0).await.unwrap();
    let id = pool.process_id(0).await.unwrap();
    let before = worked(id);
    tokio::select! {
        ended = pool.transform(0, &endless, &events, &NoHost) => panic!("{:?}", ended.err()),
        () = until(async || worked(id) > before + 2) => {}
    }
    let all = pool
        .transform(0, &[step("export const processEvent = (event) => event")], &events, &NoHost)
        .await
        .unwrap();
    assert!(all.iter().all(|made| matches!(made.outcome, Outcome::Unchanged)));
}

#[tokio::test]
async fn no_process_outlives_its_pool() {
    let pool = pool(2);
    for lane in [0, 1] {
        pool.confinement(lane).await.unwrap();
    }
    let ids = [pool.process_id(0).await.unwrap(), pool.process_id(1).await.unwrap()];
    assert!(ids.iter().all(|id| alive(*id)));
    pool.shutdown().await;
    for id in ids {
        gone(id).await;
    }
    let late = pool.transform(0, &[], &[event(json!({}))], &NoHost).await;
    assert!(matches!(late, Err(Fault::ShutDown)));

    let dropped = self::pool_of_one();
    dropped.confinement(0).await.unwrap();
    let id = dropped.process_id(0).await.unwrap();
    drop(dropped);
    gone(id).await;
}

fn pool_of_one() -> Pool {
    pool(1)
}

#[tokio::test]
async fn a_program_that_is_no_child_is_a_fault() {
    let wrong = |program: &str| Pool::new(PoolSettings { program: program.into(), ..settings(1) });
    let missing = wrong("/nowhere/weir").transform(0, &[], &[event(json!({}))], &NoHost).await;
    assert!(matches!(missing, Err(Fault::Spawn(_))), "{missing:?}");
    let other = wrong("/bin/true").transform(0, &[], &[event(json!({}))], &NoHost).await;
    assert!(matches!(other, Err(Fault::NotReady)), "{other:?}");
}

#[tokio::test]
async fn more_programs_than_a_child_keeps_work() {
    let mut few = settings(1);
    few.limits.programs = 3;
    let pool = Pool::new(few);
    let steps: Vec<_> = (0..8)
        .map(|n| step(&format!("export const processEvent = (event) => {{ event.properties.p{n} = 1; return event }}")))
        .collect();
    for step in steps.iter().chain(&steps) {
        let all = pool
            .transform(0, std::slice::from_ref(step), &[event(json!({}))], &NoHost)
            .await
            .unwrap();
        kept(&all[0]);
    }
    let all = pool.transform(0, &steps, &[event(json!({}))], &NoHost).await.unwrap();
    assert_eq!(kept(&all[0])["properties"].as_object().unwrap().len(), 8);
}

/// A host that never answers.
struct Silent;

#[async_trait::async_trait]
impl weir_sandbox::ScriptHost for Silent {
    async fn call(
        &self,
        _: &weir_sandbox::Program,
        _: weir_sandbox::HostCall,
    ) -> Result<serde_json::Value, String> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn the_end_does_not_wait_for_a_script_that_waits() {
    let pool = Arc::new(pool(2));
    let waits = tokio::spawn({
        let pool = pool.clone();
        async move {
            let source = "export async function onEvent() { await fetch('https://e.com') }";
            let events = [event(json!({}))];
            pool.deliver(0, &program(source), DeliveryFunction::OnEvent, &events, &Silent).await
        }
    });
    until(async || pool.alive() > 0).await;
    pool.confinement(1).await.unwrap();
    let started = std::time::Instant::now();
    pool.shutdown().await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    waits.abort();
    assert!(waits.await.is_err());
    assert_eq!(pool.alive(), 0);
}
