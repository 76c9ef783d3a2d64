//! A server whose store is in a PostgreSQL database.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Command;
use weir_testkit::servers::Postgres;

use crate::process::{Serving, events, run, set_up_with, weir};

/// The program with the store in this database.
fn weir_in(database: &str, data: &Path) -> Command {
    let mut command = weir(data);
    command.args(["--store", database, "--accept-single-database", "true"]);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn events_in_a_database_survive_a_kill_of_both_servers() {
    let mut server = Postgres::durable().await;
    let database = server.url("postgres");
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let made = set_up_with(weir_in(&database, data), "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let batch = |name: &str| {
        let events = (0..50).map(|n| json!({"event": name, "distinct_id": format!("user-{n}")}));
        json!({"api_key": made["project_api_key"], "batch": events.collect::<Vec<_>>()})
    };
    let serving = Serving::start_with(weir_in(&database, data)).await;
    assert_eq!(serving.caller.post("/batch/", &batch("first")).await.status, 200);
    events(&serving.caller, &made, 50).await;
    // The log takes events while the database is away, and applies them afterwards.
    server.stop();
    assert_eq!(serving.caller.post("/batch/", &batch("second")).await.status, 200);
    server.go_on().await;
    events(&serving.caller, &made, 100).await;
    assert_eq!(serving.caller.post("/batch/", &batch("third")).await.status, 200);
    serving.signal(Signal::KILL);
    serving.ended().await;

    let mut seal = weir_in(&database, data);
    seal.arg("seal");
    let sealed = run(seal, "").await;
    assert!(sealed.ok, "{}", sealed.err);
    let serving = Serving::start_with(weir_in(&database, data)).await;
    assert_eq!(events(&serving.caller, &made, 150).await.len(), 150);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
    assert!(!data.join("data/store").exists(), "nothing is in files that could be in the way");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_on_files_of_the_store_say_that_it_is_in_a_database() {
    let server = Postgres::durable().await;
    let database = server.url("postgres");
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let made = set_up_with(weir_in(&database, data), "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    let backups = data.join("backups");
    let backups = backups.to_str().unwrap();
    for arguments in
        [&["backup", backups][..], &["check"], &["restore", backups], &["upgrade", "--check"]]
    {
        let mut command = weir_in(&database, data);
        command.args(arguments);
        let refused = run(command, "").await;
        let says = refused.err.contains("in a PostgreSQL database");
        assert!(!refused.ok && says, "{arguments:?}: {}", refused.err);
        assert!(!refused.err.contains("horse"), "{}", refused.err);
    }
    // Without accepting it, a database with one copy is refused, and one in files too.
    for (arguments, reason) in [
        (&["--store", &database][..], "synchronous_standby_names is empty"),
        (&[][..], "set store to its address"),
    ] {
        let mut command = weir(data);
        command.args(arguments).arg("setup-link");
        let refused = run(command, "").await;
        assert!(!refused.ok && refused.err.contains(reason), "{}", refused.err);
    }
}
