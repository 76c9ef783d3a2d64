//! Backups in a bucket, and backups of files of events that are in one.

use std::collections::BTreeSet;
use std::path::Path;

use tokio::process::Command;
use weir_objects::{Access, Bucket};
use weir_testkit::servers::Moto;
use weir_testkit::until;

use super::{Instance, SEALED, files, stop};
use crate::process::{Output, Serving, run, weir};

#[tokio::test(flavor = "multi_thread")]
async fn backups_in_a_bucket_are_made_checked_and_restored() {
    const PLACE: &str = "s3://backups/weir";
    let moto = Moto::start().await;
    moto.create_bucket("backups").await;
    let access = [
        ("WEIR_BACKUP_ENDPOINT", moto.url()),
        ("WEIR_BACKUP_ACCESS_KEY", "key".to_owned()),
        ("WEIR_BACKUP_SECRET_KEY", "secret".to_owned()),
    ];
    let with_access = async |folder: &Path, arguments: &[&str]| {
        let mut command = weir(folder);
        command.envs(access.iter().cloned()).args(arguments);
        run(command, "").await
    };
    let instance = Instance::new().await;
    let folder = instance.folder.path();
    let refused = with_access(folder, &["check", PLACE]).await;
    assert!(!refused.ok && refused.err.contains("has no backups"), "{}", refused.err);
    let refused = with_access(folder, &["backup", "s3://missing/weir"]).await;
    assert!(!refused.ok && refused.err.contains("no such bucket"), "{}", refused.err);

    // By the server, in the background.
    let mut place = access.to_vec();
    place.push(("WEIR_BACKUP_TO", PLACE.to_owned()));
    let watched = instance.serve_with_backups(&place).await;
    let caller = watched.serving.caller.clone();
    instance.send(&caller, 0..SEALED).await;
    instance.numbers(&caller, SEALED).await;
    let last = async || watched.value("weir_backup_last_success_seconds").await;
    for _ in 0..3 {
        let before = last().await;
        until(async || last().await > before).await;
    }
    let shown = watched.page().await;
    assert!(shown.contains(PLACE) && !shown.contains("Last attempt"), "{shown}");
    stop(watched.serving).await;
    assert!(!instance.data().join(".weir-bucket").exists(), "what was local of it is removed");

    // By hand: the server has released it.
    let stored = with_access(folder, &["backup", PLACE]).await;
    assert!(stored.ok && stored.out.contains("Stored the backup"), "{}", stored.err);
    let checked = with_access(folder, &["check", PLACE]).await;
    assert!(checked.ok && checked.out.contains("No faults"), "{}{}", checked.out, checked.err);
    assert!(!instance.data().join(".weir-bucket-read").exists());
    let other = tempfile::tempdir().unwrap();
    let restored = with_access(other.path(), &["restore", PLACE]).await;
    assert!(restored.ok, "{}", restored.err);
    let beside = std::fs::read_dir(other.path()).unwrap().count();
    assert_eq!(beside, 1, "the data directory alone");
    let serving = Serving::start(other.path()).await;
    assert_eq!(instance.numbers(&serving.caller, SEALED).await.len(), 100);
    stop(serving).await;
}

/// The bucket of files of events of an instance, which keeps no copies of them.
struct EventBucket {
    moto: Moto,
    settings: Vec<(&'static str, String)>,
}

impl EventBucket {
    async fn start() -> Self {
        let moto = Moto::start().await;
        moto.create_bucket("events").await;
        let settings = vec![
            ("WEIR_SEGMENTS_ENDPOINT", moto.url()),
            ("WEIR_SEGMENTS_ACCESS_KEY", "key".to_owned()),
            ("WEIR_SEGMENTS_SECRET_KEY", "secret".to_owned()),
            ("WEIR_SEGMENT_CACHE", "1".to_owned()),
        ];
        Self { moto, settings }
    }

    fn location(prefix: &str) -> String {
        format!("s3://events/{prefix}")
    }

    /// The program with the files of events below this prefix.
    fn weir(&self, folder: &Path, prefix: &str) -> Command {
        let mut command = weir(folder);
        command.envs(self.settings.iter().cloned());
        command.env("WEIR_SEGMENTS", Self::location(prefix));
        command
    }

    async fn run(&self, folder: &Path, arguments: &[&str]) -> Output {
        let mut command = self.weir(folder, "weir");
        command.args(arguments);
        run(command, "").await
    }

    fn bucket(&self, prefix: &str) -> Bucket {
        let access = Access {
            endpoint: Some(self.moto.url()),
            region: "us-east-1".to_owned(),
            key: "key".to_owned(),
            secret: "secret".parse().unwrap(),
        };
        Bucket::new(&Self::location(prefix).parse().unwrap(), &access).unwrap()
    }

    /// The names of the files of events below this prefix.
    async fn segments(&self, prefix: &str) -> BTreeSet<String> {
        self.bucket(prefix).list(10_000, 1 << 20, is_segment).await.unwrap()
    }
}

/// Whether a name is `<project>/<partition>/<file>.parquet`.
fn is_segment(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    matches!(parts.as_slice(), [_, partition, file] if partition.parse::<u16>().is_ok()
        && file.ends_with(".parquet"))
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_events_in_a_bucket_are_fetched_once_and_restored() {
    let events = EventBucket::start().await;
    let instance = Instance::new().await;
    let folder = instance.folder.path();
    // Two times, so that more than one file is in the bucket alone.
    for half in [0, SEALED / 2] {
        let serving = Serving::start_with(events.weir(folder, "weir")).await;
        instance.send(&serving.caller, half..half + SEALED / 2).await;
        instance.numbers(&serving.caller, half + SEALED / 2).await;
        stop(serving).await;
        let sealed = events.run(folder, &["seal"]).await;
        assert!(sealed.ok, "{}", sealed.err);
    }
    let local = || {
        let root = instance.data().join("segments");
        let names = files(&root, ".parquet").into_iter();
        let names = names.map(|path| path.strip_prefix(&root).unwrap().display().to_string());
        names.filter(|name| is_segment(name)).count()
    };
    let stored = events.segments("weir").await;
    assert!(stored.len() >= 2, "{stored:?}");
    assert!(local() < stored.len(), "some are in the bucket alone");

    // A server runs, and the bucket is asked for what is missing.
    let serving = Serving::start_with(events.weir(folder, "weir")).await;
    let first = events.run(folder, &["backup", "backups"]).await;
    assert!(first.ok && !first.out.contains("missing"), "{}{}", first.out, first.err);
    let checked = events.run(folder, &["check"]).await;
    assert!(checked.ok && checked.out.contains("No faults"), "{}{}", checked.out, checked.err);
    stop(serving).await;
    let refused = instance.run(&["backup", "backups"]).await;
    assert!(!refused.ok && refused.err.contains("in a bucket"), "{}", refused.err);
    assert!(local() < stored.len(), "nothing was fetched into the data directory");
    for left in [".weir-backup", ".weir-catalog", ".weir-check"] {
        assert!(!instance.data().join(left).exists(), "{left}");
    }

    // The server makes such a backup too.
    let mut scheduled = events.weir(folder, "weir");
    scheduled.env("WEIR_BACKUP_TO", "scheduled");
    let serving = Serving::start_with(scheduled).await;
    let made = folder.join("scheduled/backups");
    until(async || made.exists() && !files(&made, ".json").is_empty()).await;
    stop(serving).await;
    let checked = events.run(folder, &["check", "scheduled"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);

    // The next backup does not need the objects.
    for name in &stored {
        events.bucket("weir").remove(name).await.unwrap();
    }
    let second = events.run(folder, &["backup", "backups"]).await;
    assert!(second.ok && !second.out.contains("missing"), "{}{}", second.out, second.err);
    // A new one does.
    let other = events.run(folder, &["backup", "other"]).await;
    assert!(other.ok && other.out.contains("missing in the bucket"), "{}", other.out);
    let checked = events.run(folder, &["check"]).await;
    let said = "neither in the data directory nor in the bucket";
    assert!(!checked.ok && checked.out.contains(said), "{}{}", checked.out, checked.err);
    let checked = events.run(folder, &["check", "backups"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);

    // The restored instance needs no bucket, and may use another prefix.
    let (restored, output) = instance.restore_by(&[]).await;
    assert!(output.ok, "{}", output.err);
    assert!(!restored.path().join("data/segments/bucket").exists());
    let serving = Serving::start(restored.path()).await;
    assert_eq!(instance.numbers(&serving.caller, SEALED).await.len(), 100);
    stop(serving).await;
    let mut often = events.weir(restored.path(), "restored");
    often.env("WEIR_SEAL_SECONDS", "1");
    let serving = Serving::start_with(often).await;
    until(async || {
        let uploaded = events.segments("restored").await;
        if uploaded == stored { Ok(()) } else { Err(uploaded) }
    })
    .await;
    assert_eq!(instance.numbers(&serving.caller, SEALED).await.len(), 100);
    stop(serving).await;
}
