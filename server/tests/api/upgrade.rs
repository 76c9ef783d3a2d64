//! `weir upgrade --check`: what it says, and that it changes nothing. Data directories of
//! older versions are in `fixtures`.

use std::path::Path;

use rustix::process::Signal;

use crate::backup::state;
use crate::process::{Output, Serving, run, set_up, weir};

async fn check(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = weir(folder);
    command.args(["upgrade", "--check"]).args(arguments);
    run(command, "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let made = set_up(folder.path(), "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    let data = folder.path().join("data");
    let before = state(&data);
    let version = format!("schema version {}", weir_store::schema_version());
    let other = tempfile::tempdir().unwrap();
    // Of the settings, and of another directory.
    for (at, directory) in [(folder.path(), None), (other.path(), data.to_str())] {
        let arguments: Vec<&str> = directory.into_iter().collect();
        let checked = check(at, &arguments).await;
        assert_eq!(checked.code, Some(0), "{}", checked.err);
        assert!(checked.out.contains(&version), "{}", checked.out);
        assert!(checked.out.contains("there is nothing to upgrade"), "{}", checked.out);
        assert_eq!(state(&data), before);
    }
    assert!(!other.path().join("data").exists());

    let serving = Serving::start(folder.path()).await;
    let checked = check(folder.path(), &[]).await;
    assert_eq!(checked.code, Some(0), "beside a server: {}", checked.err);
    assert_eq!(serving.caller.get("/_readyz").await.status, 200);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_checked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let checked = check(folder.path(), &[]).await;
    assert_eq!(checked.code, Some(1), "{}", checked.out);
    assert!(checked.err.contains("there is no store"), "{}", checked.err);
    assert!(!folder.path().join("data").exists());
    let checked = check(folder.path(), &["--store", "mem://"]).await;
    assert!(checked.code == Some(1) && checked.err.contains("in memory"), "{}", checked.err);
    // Nothing upgrades except a start of the server.
    let mut command = weir(folder.path());
    command.arg("upgrade");
    let refused = run(command, "").await;
    assert!(refused.code == Some(2) && refused.err.contains("--check"), "{}", refused.err);
}
