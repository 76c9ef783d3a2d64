use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;
use weir_export::destination::{Destination, Failure, Job};
use weir_export::persons;
use weir_export::rows::{Batch, PersonRecord};
use weir_model::exports::ExportModel;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, ProjectId, Timestamp};
use weir_testkit::servers::python;

use super::read::{assert_odd, events, listed};
use super::support::{
    KINDS, PERSON, STEM, dependencies, export, job, many, odd, opened, test, with, write,
};

fn try_open(root: &Path, others: Value) -> Result<Box<dyn Destination>, Failure> {
    let config = json!({
        "path": "out", "file_format": "JSONLines", "compression": null, "max_file_size_mb": null,
    });
    opened("LocalDirectory", &with(config, others), &dependencies(Some(root.to_owned())))
}

fn local(root: &Path, others: Value) -> Box<dyn Destination> {
    try_open(root, others).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_every_kind_hold_every_value() {
    let root = TempDir::new().unwrap();
    for (format, codec, extension) in KINDS {
        let config = json!({
            "path": "{table}/date={year}-{month}-{day}", "file_format": format,
            "compression": codec,
        });
        export(local(root.path(), config).as_ref(), &odd()).await.unwrap();
        let path = root.path().join(format!("events/date=2026-08-21/{STEM}.{extension}"));
        assert_odd(&path).await;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(listed(root.path()).len(), KINDS.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_have_files_of_their_own() {
    let root = TempDir::new().unwrap();
    let directory = local(root.path(), json!({"path": "{table}"}));
    let person = PersonRef {
        id: PersonId(Uuid::from_u128(9)),
        distinct_ids: vec!["ada".to_owned()],
        properties: PERSON.to_owned(),
        created_at: Timestamp::parse("2026-08-21T14:00:00Z").unwrap(),
        is_identified: true,
    };
    let seen_at = Timestamp::parse("2026-08-21T14:00:01Z").unwrap().micros();
    let record = PersonRecord { distinct_id: "ada", person: &person, version: 3, seen_at };
    let columns = persons::columns();
    let rows = vec![columns.row_of_person(ProjectId(3), record)];
    let job =
        Job { model: ExportModel::Persons, columns: Arc::new(columns), ..job(directory.as_ref()) };
    let mut writer = directory.begin(job).await.unwrap();
    writer.write(Batch { rows, arrivals: None }).await.unwrap();
    writer.finish().await.unwrap();
    let text = fs::read_to_string(root.path().join(format!("persons/{STEM}.jsonl"))).unwrap();
    assert_eq!(text.lines().count(), 1);
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        found,
        json!({
            "team_id": 3, "distinct_id": "ada",
            "person_id": "00000000-0000-0000-0000-000000000009",
            "properties": {"email": "ada@example.com", "n": 9_223_372_036_854_775_808_u64},
            "person_distinct_id_version": 3, "person_version": 3,
            "created_at": "2026-08-21T14:00:00Z", "is_deleted": false,
            "_inserted_at": "2026-08-21T14:00:01Z",
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn duckdb_reads_a_directory_of_cut_files() {
    let root = TempDir::new().unwrap();
    let config = json!({
        "path": "{table}/date={year}-{month}-{day}", "file_format": "Parquet",
        "compression": "zstd", "max_file_size_mb": 4,
    });
    let directory = local(root.path(), config);
    export(directory.as_ref(), &many(20_000)).await.unwrap();
    assert!(listed(root.path()).len() > 3);
    // The names of incomplete files do not match the patterns of readers.
    let later = json!({"path": "events/date=2026-08-22", "file_format": "Parquet"});
    let half = local(root.path(), later);
    let mut writer = half.begin(job(half.as_ref())).await.unwrap();
    write(half.as_ref(), writer.as_mut(), &many(60_000)).await.unwrap();
    let part = root.path().join(format!("events/date=2026-08-22/.{STEM}_parquet.part"));
    weir_testkit::until(async || part.exists()).await;
    let script = "
import duckdb, json, sys
found = duckdb.sql('''SELECT count(*), count(DISTINCT uuid),
    sum(CAST(properties->>'$.n' AS BIGINT))::BIGINT, CAST(any_value(date) AS VARCHAR)
    FROM read_parquet('%s/events/*/*.parquet*', hive_partitioning = true)''' % json.load(sys.stdin))
print(json.dumps(found.fetchall()[0]))";
    let found = python(script, &json!(root.path().to_str().unwrap())).await;
    assert_eq!(found, json!([20_000, 20_000, 199_990_000, "2026-08-21"]));
    writer.abort().await;
    export(directory.as_ref(), &odd()).await.unwrap();
    let date = "events/date=2026-08-21";
    assert_eq!(
        listed(root.path()),
        [format!("{date}/{STEM}-0.parquet.zst"), format!("{date}/{STEM}_manifest.json")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_there_when_it_is_whole_and_not_before() {
    let root = TempDir::new().unwrap();
    let directory = local(root.path(), json!({"path": "a/b"}));
    let whole = format!("a/b/{STEM}.jsonl");
    let half = format!("a/b/.{STEM}_jsonl.part");
    // A remainder of an earlier process.
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    fs::write(root.path().join(&half), "half").unwrap();

    let mut writer = directory.begin(job(directory.as_ref())).await.unwrap();
    write(directory.as_ref(), writer.as_mut(), &many(30_000)).await.unwrap();
    assert_eq!(listed(root.path()), [half]);
    writer.abort().await;
    assert_eq!(listed(root.path()), Vec::<String>::new());

    for count in [20_000, 30] {
        export(directory.as_ref(), &many(count)).await.unwrap();
        assert_eq!(listed(root.path()), std::slice::from_ref(&whole));
        assert_eq!(events(&root.path().join(&whole)).await as u64, count);
    }
}

#[tokio::test]
async fn links_lead_nowhere() {
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("precious"), "old").unwrap();
    let failure = async |root: &Path, path: &str| {
        let directory = local(root, json!({"path": path}));
        let failure = export(directory.as_ref(), &odd()).await.unwrap_err();
        assert_eq!(test(directory.as_ref()).await, [Err(failure.class); 3]);
        (failure.class, failure.is_retryable)
    };

    // Links to a directory on the path, at its end, through a link to a link, and a
    // relative one.
    let root = TempDir::new().unwrap();
    let at = |name: &str| root.path().join(name);
    symlink(outside.path(), at("direct")).unwrap();
    symlink(at("direct"), at("twice")).unwrap();
    fs::create_dir(at("deep")).unwrap();
    symlink("..", at("deep/up")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    fs::write(at("file"), "").unwrap();
    for path in ["direct", "direct/sub", "twice/sub", "deep/up/x", "dangling", "file", "file/x"] {
        assert_eq!(failure(root.path(), path).await, ("NotADirectory", false), "{path}");
    }
    assert_eq!(listed(outside.path()), ["precious"]);

    // Links at the names of the file and of its incomplete form are replaced and not
    // followed.
    fs::create_dir(at("out")).unwrap();
    for name in [format!("out/{STEM}.jsonl"), format!("out/.{STEM}_jsonl.part")] {
        symlink(outside.path().join("precious"), at(&name)).unwrap();
    }
    export(local(root.path(), json!({})).as_ref(), &odd()).await.unwrap();
    assert_eq!(fs::read(outside.path().join("precious")).unwrap(), b"old");
    let written = at(&format!("out/{STEM}.jsonl"));
    assert!(fs::symlink_metadata(&written).unwrap().is_file());
    assert_odd(&written).await;

    // The operator's own directory may be a link.
    let linked = outside.path().join("root");
    symlink(root.path(), &linked).unwrap();
    export(local(&linked, json!({"path": "linked"})).as_ref(), &odd()).await.unwrap();
    assert_odd(&at(&format!("linked/{STEM}.jsonl"))).await;
}

#[tokio::test]
async fn a_link_that_appears_during_a_run_is_not_followed() {
    let (root, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let directory = local(root.path(), json!({"path": "a/b", "max_file_size_mb": 1}));
    let mut writer = directory.begin(job(directory.as_ref())).await.unwrap();
    write(directory.as_ref(), writer.as_mut(), &many(3000)).await.unwrap();
    let first = root.path().join(format!("a/b/{STEM}-1.jsonl"));
    weir_testkit::until(async || first.exists()).await;
    fs::rename(root.path().join("a"), root.path().join("moved")).unwrap();
    symlink(outside.path(), root.path().join("a")).unwrap();
    let ended = match write(directory.as_ref(), writer.as_mut(), &many(3000)).await {
        Ok(()) => writer.finish().await,
        failed => failed,
    };
    assert_eq!(ended.unwrap_err().class, "NotADirectory");
    assert_eq!(listed(outside.path()), Vec::<String>::new());
}

#[tokio::test]
async fn paths_stay_below_the_root() {
    let root = TempDir::new().unwrap();
    let inner = root.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let absolute = outside_path(&root);
    for path in ["..", "../x", "a/../../x", "./a", &absolute] {
        let failed = match try_open(&inner, json!({"path": path})) {
            Ok(directory) => export(directory.as_ref(), &odd()).await.unwrap_err(),
            Err(failure) => failure,
        };
        assert_eq!((failed.class, failed.is_retryable), ("InvalidPrefix", false), "{path}");
    }
    assert_eq!(listed(root.path()), Vec::<String>::new());
}

fn outside_path(root: &TempDir) -> String {
    root.path().join("x").to_str().unwrap().to_owned()
}

#[tokio::test]
async fn without_a_root_there_are_no_local_exports() {
    let config = json!({"path": "out"});
    let failure = opened("LocalDirectory", &config, &dependencies(None)).err().unwrap();
    assert_eq!((failure.class, failure.is_retryable), ("LocalExportsOff", false));
    let root = TempDir::new().unwrap();
    let gone = local(&root.path().join("gone"), json!({}));
    assert_eq!(export(gone.as_ref(), &odd()).await.unwrap_err().class, "LocalExportsOff");
}

#[tokio::test]
async fn a_connection_test_names_the_step_and_leaves_nothing() {
    let root = TempDir::new().unwrap();
    for config in [json!({}), json!({"path": "a/b/{year}"})] {
        assert_eq!(test(local(root.path(), config).as_ref()).await, [Ok(()), Ok(()), Ok(())]);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
    // A directory that is not empty stays.
    fs::create_dir_all(root.path().join("a/c")).unwrap();
    let config = json!({"path": "a/b/{year}"});
    assert_eq!(test(local(root.path(), config).as_ref()).await, [Ok(()), Ok(()), Ok(())]);
    let left = fs::read_dir(root.path().join("a")).unwrap().map(|found| found.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["c"]);
    let name = root.path().join(format!("out/{STEM}.jsonl"));
    fs::create_dir_all(&name).unwrap();
    let failure = export(local(root.path(), json!({})).as_ref(), &odd()).await.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("NotAFile", false));
}
