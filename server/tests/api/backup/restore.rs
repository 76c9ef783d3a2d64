//! Restoring, and what is refused or found damaged before it.

use std::collections::BTreeSet;

use weir_model::Timestamp;
use weir_testkit::until;

use super::{Instance, SEALED, began_at, command, files, flip, state, stop};
use crate::process::{Serving, run, set_up, weir};

#[tokio::test(flavor = "multi_thread")]
async fn persons_erased_after_a_backup_are_erased_again_after_its_restore() {
    const ERASED: u64 = 3;
    // An event of the erased distinct id, sent as soon as the restored instance answers.
    const LATER: u64 = SEALED + 2;
    assert_eq!(LATER % 9, ERASED);
    let instance = Instance::new().await;
    let serving = instance.serve().await;
    instance.send(&serving.caller, 0..SEALED).await;
    instance.numbers(&serving.caller, SEALED).await;
    let before = instance.back_up().await;
    let caller = serving.caller.with_key(instance.made["personal_api_key"].as_str().unwrap());
    let persons = format!("/api/projects/{}/persons/", instance.made["project_id"]);
    let of_erased = format!("{persons}?distinct_id=user-{ERASED}");
    let found = caller.get(&of_erased).await.json();
    let id = found["results"][0]["uuid"].as_str().unwrap();
    let erased = caller.delete(&format!("{persons}{id}/?delete_events=true")).await;
    assert_eq!(erased.status, 202, "{}", erased.text());
    let after = instance.back_up().await;
    stop(serving).await;

    for name in [before, after] {
        let folder = instance.restore(&name).await;
        let restored = Serving::start(folder.path()).await;
        instance.send(&restored.caller, LATER..LATER + 1).await;
        // Others are as they were, and what was sent after the restore stays.
        let others = (0..SEALED).filter(|number| number % 9 != ERASED);
        let kept: BTreeSet<u64> = others.chain([LATER]).collect();
        until(async || {
            let numbers = instance.numbers(&restored.caller, ERASED).await;
            if numbers == kept { Ok(()) } else { Err(numbers) }
        })
        .await;
        let caller = restored.caller.with_key(caller.key());
        let found = caller.get(&of_erased).await.json();
        assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found["results"][0]["event_count"], 1, "{found}");
        stop(restored).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_to_a_time_takes_the_newest_backup_before_it() {
    let instance = Instance::new().await;
    let serving = instance.serve().await;
    let mut names = Vec::new();
    for end in [10, 20] {
        instance.send(&serving.caller, end - 10..end).await;
        names.push((instance.back_up().await, end));
    }
    stop(serving).await;
    for (name, end) in &names {
        let at = Timestamp::from_micros(began_at(name).micros() + 1_000).to_string();
        let (folder, restored) = instance.restore_by(&["--at", &at]).await;
        assert!(restored.ok, "{}", restored.err);
        assert!(restored.out.contains(name.as_str()), "{at}: {}", restored.out);
        assert!(restored.out.contains("It began at 20"), "{}", restored.out);
        let serving = Serving::start(folder.path()).await;
        let numbers = instance.numbers(&serving.caller, *end).await;
        assert_eq!(numbers, (0..*end).collect::<BTreeSet<_>>());
        stop(serving).await;
    }
    let (first, _) = names.first().unwrap();
    let early = began_at(first).plus_seconds(-1).to_string();
    for (arguments, reason) in [
        (&["--at", early.as_str()][..], "began at that time or before"),
        (&["--at", "yesterday"][..], "expected a date and a time"),
        (&["--at", "2026-06-01T10:00Z", "--backup", first.as_str()][..], "cannot be used with"),
    ] {
        let (folder, refused) = instance.restore_by(arguments).await;
        assert!(!refused.ok && refused.err.contains(reason), "{}", refused.err);
        assert!(!folder.path().join("data").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_found_and_not_restored() {
    let instance = Instance::new().await;
    let refused = instance.run(&["check", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("has no backups"), "{}", refused.err);
    let serving = instance.serve().await;
    instance.send(&serving.caller, 0..SEALED).await;
    instance.numbers(&serving.caller, SEALED).await;
    let checked = instance.run(&["check"]).await;
    assert!(checked.ok, "while a server runs: {}{}", checked.out, checked.err);
    stop(serving).await;
    assert!(instance.run(&["seal"]).await.ok);
    let before = state(&instance.data());
    assert!(instance.run(&["check"]).await.ok);
    assert_eq!(state(&instance.data()), before, "a check changes nothing");
    instance.back_up().await;
    let refused = instance.run(&["restore", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("not an empty directory"), "{}", refused.err);

    // A file of events in the data directory.
    let segment = files(&instance.data().join("segments"), ".parquet").pop().unwrap();
    flip(&segment);
    let checked = instance.run(&["check"]).await;
    assert!(!checked.ok && checked.out.contains("segments/"), "{}", checked.out);
    flip(&segment);
    assert!(instance.run(&["check"]).await.ok);
    let moved = segment.with_extension("moved");
    std::fs::rename(&segment, &moved).unwrap();
    let checked = instance.run(&["check"]).await;
    assert!(!checked.ok && checked.out.contains("and 100 were counted"), "{}", checked.out);
    std::fs::rename(&moved, &segment).unwrap();

    // The same of a backup. Its content is that of the file in the data directory.
    let bytes = std::fs::read(&segment).unwrap();
    let mut content = files(&instance.backups().join("files"), "");
    content.retain(|path| std::fs::read(path).unwrap() == bytes);
    let [content] = content.as_slice() else { panic!("{content:?}") };
    flip(content);
    let checked = instance.run(&["check", "backups"]).await;
    let said = "its bytes differ from their checksum";
    assert!(!checked.ok && checked.out.contains(said), "{}", checked.out);
    // It was moved away, so that the next backup stores it again.
    let name = content.file_name().unwrap();
    assert!(!content.exists() && instance.backups().join("damaged").join(name).exists());
    let folder = tempfile::tempdir().unwrap();
    let backups = instance.backups();
    let refused = command(folder.path(), &["restore", backups.to_str().unwrap()]).await;
    let said = "its content is missing";
    assert!(!refused.ok && refused.err.contains(said), "{}", refused.err);
    assert!(!folder.path().join("data").exists());
    instance.back_up().await;
    let checked = instance.run(&["check", "backups"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);
    let restored = command(folder.path(), &["restore", backups.to_str().unwrap()]).await;
    assert!(restored.ok, "{}", restored.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_files_there_is_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let refused = command(folder.path(), &["backup", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("no store"), "{}", refused.err);
    assert!(!folder.path().join("backups").exists() && !folder.path().join("data").exists());
    let made = set_up(folder.path(), "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    for (place, reason) in [
        ("ftp://bucket/weir", "neither a directory nor a place"),
        ("s3://bucket/weir", "an access key and its secret"),
    ] {
        let refused = command(folder.path(), &["backup", place]).await;
        assert!(!refused.ok && refused.err.contains(reason), "{}", refused.err);
    }
    for inside in ["data", "data/backups", "data/../data/store/backups"] {
        let refused = command(folder.path(), &["backup", inside]).await;
        assert!(!refused.ok && refused.err.contains("in the data directory"), "{}", refused.err);
    }
    let foreign = folder.path().join("data/.weir-backup");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter"), "").unwrap();
    let refused = command(folder.path(), &["backup", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("not made by this command"), "{}", refused.err);
    assert!(foreign.join("letter").exists());
    for arguments in [&["backup", "backups"][..], &["restore", "backups"], &["check"]] {
        let mut command = weir(folder.path());
        command.args(["--store", "mem://"]).args(arguments);
        let refused = run(command, "").await;
        assert!(!refused.ok && refused.err.contains("in memory"), "{}", refused.err);
    }
    // Files of events are in a bucket, and the settings do not name it.
    std::fs::create_dir_all(folder.path().join("data/segments")).unwrap();
    std::fs::write(folder.path().join("data/segments/bucket"), "s3://bucket/weir").unwrap();
    for arguments in [&["backup", "backups"][..], &["check"]] {
        let refused = command(folder.path(), arguments).await;
        assert!(!refused.ok && refused.err.contains("in a bucket"), "{}", refused.err);
    }
}
