//! Waiting jobs, of a config that has only the fields that these statements read.

use super::*;
use crate::plugin_configs::delete;
use crate::{Location, Settings};

const CONFIG: PluginConfigId = PluginConfigId(7);
const PROJECT: ProjectId = ProjectId(1);
const REVISION: Uuid = Uuid::from_u128(5);

const PUT_CONFIG: Statement = Statement::write(
    "test config",
    "UPSERT plugin_config:7 CONTENT {
         organization: $organization, project: 1, plugin: 3, attachments: [],
         revision: $revision,
     };",
);
const WAITING: Statement = Statement::read("test jobs", "SELECT * FROM plugin_job:[7]..=[7, ..];");

async fn store() -> Store {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    let vars = bind! { organization: Uuid::nil(), revision: REVISION };
    store.db.run(PUT_CONFIG, vars).await.unwrap();
    store
}

fn job(id: u128, kind: &str) -> JobRow {
    JobRow {
        id: Uuid::from_u128(id),
        config: CONFIG,
        kind: kind.to_owned(),
        payload: format!("{{\"{kind}\":1}}"),
        created_at: Timestamp::from_micros(8),
        run_at: None,
    }
}

/// The waiting jobs, in order.
async fn waiting(store: &Store) -> Vec<(String, String, i64)> {
    let mut answer = store.db.run(WAITING, bind! {}).await.unwrap();
    let jobs: Vec<StoredJob> = answer.rows(0).unwrap();
    jobs.into_iter().map(|job| (job.kind, job.payload, job.created_at)).collect()
}

fn expected(kind: &str) -> (String, String, i64) {
    (kind.to_owned(), format!("{{\"{kind}\":1}}"), 8)
}

#[tokio::test]
async fn so_many_wait_oldest_first() {
    let store = store().await;
    // The second one is a retry after a lost answer.
    for (id, kind) in [(2, "b"), (1, "a"), (2, "b")] {
        let added = add(&store, PROJECT, &job(id, kind), 2, &[]).await.unwrap();
        assert_eq!(added, Added::Yes);
    }
    let third = add(&store, PROJECT, &job(3, "c"), 2, &[]).await.unwrap();
    assert_eq!(third, Added::TooMany);
    assert_eq!(waiting(&store).await, [expected("a"), expected("b")]);
}

#[tokio::test]
async fn a_config_of_another_project_gets_none() {
    let store = store().await;
    let other = add(&store, ProjectId(2), &job(1, "a"), 2, &[]).await.unwrap();
    assert_eq!(other, Added::NoConfig);
    assert!(waiting(&store).await.is_empty());
}

#[tokio::test]
async fn they_go_with_their_config_in_the_state_that_was_read() {
    let store = store().await;
    add(&store, PROJECT, &job(1, "a"), 2, &[]).await.unwrap();
    assert!(!delete(&store, PROJECT, CONFIG, Uuid::from_u128(4), &[]).await.unwrap());
    assert_eq!(waiting(&store).await, [expected("a")]);
    for _ in 0..2 {
        assert!(delete(&store, PROJECT, CONFIG, REVISION, &[]).await.unwrap());
        assert!(waiting(&store).await.is_empty());
    }
}

#[tokio::test]
async fn they_are_due_at_their_time_until_they_were_run() {
    let store = store().await;
    let later = JobRow { run_at: Some(Timestamp::from_micros(100)), ..job(1, "later") };
    let sooner = JobRow { run_at: Some(Timestamp::from_micros(50)), ..job(2, "sooner") };
    for job in [&later, &sooner, &job(3, "now")] {
        add(&store, PROJECT, job, 10, &[]).await.unwrap();
    }
    let due = async |micros, limit| -> Vec<String> {
        let due = due(&store, Timestamp::from_micros(micros), limit).await.unwrap();
        assert!(due.iter().all(|due| due.project == PROJECT));
        due.into_iter().map(|due| due.job.kind).collect()
    };
    assert!(due(7, 10).await.is_empty());
    assert_eq!(due(8, 10).await, ["now"]);
    assert_eq!(due(100, 10).await, ["now", "sooner", "later"]);
    assert_eq!(due(100, 1).await, ["now"]);
    for _ in 0..2 {
        remove(&store, &sooner).await.unwrap();
    }
    assert_eq!(due(100, 10).await, ["now", "later"]);
    for id in 4..10 {
        add(&store, PROJECT, &job(id, "more"), 10, &[]).await.unwrap();
    }
    assert_eq!(due(100, 10).await, ["now", "more", "more", "more"], "others come in between");
    assert!(delete(&store, PROJECT, CONFIG, REVISION, &[]).await.unwrap());
    assert!(due(100, 10).await.is_empty());
}
