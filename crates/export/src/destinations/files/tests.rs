use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use uuid::Uuid;
use weir_model::exports::ExportModel;
use weir_model::{BatchExportId, ProjectId, RunId, Timestamp};
use weir_testkit::until;

use super::*;
use crate::rows::{Cell, Column};

/// A storage in memory that records its calls.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    files: BTreeMap<String, Vec<u8>>,
    said: Vec<String>,
    /// After this many parts there is no space left.
    room: Option<usize>,
    /// Parts are taken and never acknowledged.
    hangs: bool,
}

impl Memory {
    fn held<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn said(&self) -> Vec<String> {
        self.held(|held| held.said.clone())
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.held(|held| held.files.clone())
    }

    async fn says(&self, what: &str) {
        until(async || {
            let said = self.said();
            if said.iter().any(|said| said == what) { Ok(()) } else { Err(said) }
        })
        .await;
    }
}

#[async_trait]
impl Storage for Memory {
    async fn put(&self, name: &str, content: Vec<Bytes>) -> Result<(), Failure> {
        self.held(|held| {
            held.said.push(format!("put {name}"));
            held.files.insert(name.to_owned(), content.concat());
        });
        Ok(())
    }

    async fn open(&self, name: &str) -> Result<Box<dyn Parts>, Failure> {
        self.held(|held| held.said.push(format!("open {name}")));
        Ok(Box::new(InParts { memory: self.clone(), name: name.to_owned(), parts: Vec::new() }))
    }

    async fn has(&self, name: &str) -> Result<bool, Failure> {
        Ok(self.held(|held| held.files.contains_key(name)))
    }

    async fn remove(&self, name: &str) -> Result<(), Failure> {
        self.held(|held| {
            if held.files.remove(name).is_some() {
                held.said.push(format!("remove {name}"));
            }
        });
        Ok(())
    }
}

struct InParts {
    memory: Memory,
    name: String,
    parts: Vec<Vec<u8>>,
}

#[async_trait]
impl Parts for InParts {
    async fn add(&mut self, part: Vec<Bytes>) -> Result<(), Failure> {
        let (room, hangs) = self.memory.held(|held| (held.room, held.hangs));
        if hangs {
            self.memory.held(|held| held.said.push("hang".to_owned()));
            std::future::pending::<()>().await;
        }
        if room == Some(self.parts.len()) {
            return Err(Failure::permanent("Full", "There is no room."));
        }
        self.parts.push(part.concat());
        Ok(())
    }

    async fn complete(&mut self) -> Result<(), Failure> {
        let sizes: Vec<usize> = self.parts.iter().map(Vec::len).collect();
        let (last, others) = sizes.split_last().unwrap();
        assert!(others.iter().all(|size| *size == PART) && *last > 0 && *last <= PART, "{sizes:?}");
        self.memory.held(|held| {
            held.said.push(format!("complete {}", self.name));
            held.files.insert(self.name.clone(), self.parts.concat());
        });
        Ok(())
    }

    async fn abort(&mut self) {
        self.memory.held(|held| held.said.push(format!("abort {}", self.name)));
    }
}

const STEM: &str = "p/2026-08-21T14:00:00+00:00-2026-08-21T15:00:00+00:00";

fn job() -> Job {
    Job {
        export: BatchExportId(Uuid::from_u128(1)),
        run: RunId(Uuid::from_u128(2)),
        project: ProjectId(1),
        start: Timestamp::parse("2026-08-21T14:00:00Z"),
        end: Timestamp::parse("2026-08-21T15:00:00Z").unwrap(),
        by_time: false,
        model: ExportModel::Events,
        columns: Arc::new(Columns::of(&[("event", Kind::Text, Source::Event)])),
        cursor: None,
    }
}

fn files(memory: &Memory, config: Value) -> Files<Memory> {
    Files::new(memory.clone(), "p", config.as_object().unwrap()).unwrap()
}

/// Rows of one kilobyte each that all differ.
fn rows(count: usize) -> Vec<Vec<Cell>> {
    (0..count).map(|number| vec![Cell::Text(format!("{number:01000}"))]).collect()
}

fn batches(rows: &[Vec<Cell>], size: usize) -> impl Iterator<Item = Batch> + '_ {
    let batch = |rows: &[Vec<Cell>]| Batch { rows: rows.to_vec(), arrivals: None };
    rows.chunks(size).map(batch)
}

async fn export(files: &Files<Memory>, rows: &[Vec<Cell>], size: usize) -> Result<(), Failure> {
    let mut writer = files.start(&job())?;
    for batch in batches(rows, size) {
        writer.write(batch).await?;
    }
    writer.finish().await
}

fn lines(content: &[u8]) -> usize {
    content.split(|byte| *byte == b'\n').count() - 1
}

#[tokio::test]
async fn a_small_run_is_one_file_in_one_request() {
    let memory = Memory::default();
    export(&files(&memory, json!({})), &rows(3), 2).await.unwrap();
    let name = format!("{STEM}.jsonl");
    assert_eq!(memory.said(), [format!("put {name}")]);
    assert_eq!(lines(&memory.files()[&name]), 3);
}

#[tokio::test]
async fn a_run_without_rows_leaves_nothing() {
    for config in [json!({}), json!({"max_file_size_mb": 1}), json!({"file_format": "Parquet"})] {
        let memory = Memory::default();
        export(&files(&memory, config), &[], 1).await.unwrap();
        assert_eq!(memory.said(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_large_run_is_one_file_in_parts_of_one_size() {
    let memory = Memory::default();
    export(&files(&memory, json!({"max_file_size_mb": 0})), &rows(20_000), 3000).await.unwrap();
    let name = format!("{STEM}.jsonl");
    assert_eq!(memory.said(), [format!("open {name}"), format!("complete {name}")]);
    assert_eq!(lines(&memory.files()[&name]), 20_000);
}

#[tokio::test]
async fn where_files_are_cut_does_not_depend_on_how_rows_arrive() {
    for config in [
        json!({"max_file_size_mb": 1}),
        json!({"max_file_size_mb": 1, "compression": "gzip"}),
        json!({"max_file_size_mb": 1, "file_format": "Parquet", "compression": "snappy"}),
    ] {
        let rows = rows(10_000);
        let mut before = None;
        for size in [1, 700, 10_000] {
            let memory = Memory::default();
            export(&files(&memory, config.clone()), &rows, size).await.unwrap();
            let files = memory.files();
            assert!(before.is_none_or(|before| before == files), "{config} {size}");
            before = Some(files);
        }
    }
    let memory = Memory::default();
    export(&files(&memory, json!({"max_file_size_mb": 1})), &rows(3000), 100).await.unwrap();
    let sizes: Vec<usize> = memory.files().values().map(|content| lines(content)).collect();
    // 1.03 MB each. The last file is the manifest.
    assert_eq!(sizes, [2048, 952, 0]);
}

#[tokio::test]
async fn the_list_of_files_comes_last_and_goes_first() {
    let memory = Memory::default();
    let files = files(&memory, json!({"max_file_size_mb": 1}));
    let name = |number: usize| format!("{STEM}-{number}.jsonl");
    let manifest = format!("{STEM}_manifest.json");
    export(&files, &rows(5000), 1000).await.unwrap();
    let first = [name(0), name(1), name(2), manifest.clone()];
    assert_eq!(memory.said(), first.clone().map(|name| format!("put {name}")));
    let listed: Value = serde_json::from_slice(&memory.files()[&manifest]).unwrap();
    assert_eq!(listed, json!({"files": first[..3]}));

    // A retry with fewer rows.
    memory.held(|held| held.said.clear());
    export(&files, &rows(10), 1000).await.unwrap();
    assert_eq!(
        memory.said(),
        [
            format!("remove {manifest}"),
            format!("put {}", name(0)),
            format!("remove {}", name(1)),
            format!("remove {}", name(2)),
            format!("put {manifest}"),
        ]
    );
    // A file with few rows has a number too, and no file is written without rows.
    assert_eq!(memory.files().into_keys().collect::<Vec<_>>(), [name(0), manifest]);
}

#[tokio::test]
async fn a_run_that_is_cut_short_takes_back_what_is_half_there() {
    let name = format!("{STEM}.jsonl");
    let all = rows(20_000);
    let memory = Memory::default();
    let files = files(&memory, json!({}));

    let mut writer = files.start(&job()).unwrap();
    for batch in batches(&all, 1000) {
        writer.write(batch).await.unwrap();
    }
    memory.says(&format!("open {name}")).await;
    writer.abort().await;
    memory.says(&format!("abort {name}")).await;
    assert_eq!(writer.write(Batch::default()).await.unwrap_err().class, "CutShort");

    memory.held(|held| held.said.clear());
    let mut writer = files.start(&job()).unwrap();
    for batch in batches(&all, 1000) {
        writer.write(batch).await.unwrap();
    }
    memory.says(&format!("open {name}")).await;
    drop(writer);
    memory.says(&format!("abort {name}")).await;

    // Also if the storage never answers.
    memory.held(|held| {
        held.said.clear();
        held.hangs = true;
    });
    let mut writer = files.start(&job()).unwrap();
    let writing = async {
        for batch in batches(&all, 1000) {
            writer.write(batch).await.unwrap();
        }
        writer.finish().await
    };
    tokio::select! {
        ended = writing => panic!("{ended:?}"),
        () = memory.says("hang") => {}
    }
    tokio::time::timeout(Duration::from_secs(5), writer.abort()).await.unwrap();
    memory.says(&format!("abort {name}")).await;
    assert_eq!(memory.files().len(), 0);
}

#[tokio::test]
async fn a_storage_failure_is_reported_and_no_partial_file_counts_as_complete() {
    let memory = Memory::default();
    memory.held(|held| held.room = Some(1));
    let files = files(&memory, json!({}));
    assert_eq!(export(&files, &rows(40_000), 500).await.unwrap_err().class, "Full");
    let name = format!("{STEM}.jsonl");
    assert_eq!(memory.said(), [format!("open {name}"), format!("abort {name}")]);
}

#[tokio::test]
async fn rows_wait_while_the_storage_does() {
    let memory = Memory::default();
    memory.held(|held| held.hangs = true);
    let Files { storage, prefix, kind, max } = files(&memory, json!({}));
    let names = Names::new(&prefix, &Bounds::from(&job()), kind, max.is_some()).unwrap();
    let encoding = Encoding { kind, columns: job().columns.columns.clone(), max };
    let mut upload = Upload::new(storage, names);
    // The channels of `start` and `deliver`.
    let (input, given) = mpsc::channel(BATCHES);
    let (pieces, mut ready) = mpsc::channel(CHUNKS);
    let output = pieces.clone();
    let encoded = tokio::task::spawn_blocking(move || encoding.run(given, &pieces));
    let batch = rows(2000);
    let mut taken = 0;
    let all_wait = until(async || {
        while let Ok(room) = input.try_reserve() {
            room.send(EncoderInput::Rows(batch.clone()));
            taken += 1;
            // Several times the bound of bytes in progress.
            assert!(taken < 50, "{taken} batches of 2 MB");
        }
        // The upload waits for the storage, and the encoder for the upload.
        memory.said().iter().any(|said| said == "hang") && output.capacity() == 0
    });
    tokio::select! {
        sent = upload.run(&mut ready) => panic!("{sent:?}"),
        () = all_wait => {}
    }
    drop(ready);
    encoded.await.unwrap().unwrap();
}

#[test]
fn settings_that_do_not_fit_are_final() {
    let storage = Memory::default();
    for (prefix, config, class) in [
        ("{x}", json!({}), "InvalidPrefix"),
        ("p", json!({"compression": "zstd"}), "InvalidConfig"),
        ("p", json!({"compression": "zip"}), "InvalidConfig"),
        ("p", json!({"file_format": "CSV"}), "InvalidConfig"),
        ("p", json!({"max_file_size_mb": "1"}), "InvalidConfig"),
    ] {
        let failure =
            Files::new(storage.clone(), prefix, config.as_object().unwrap()).err().unwrap();
        assert_eq!((failure.class, failure.is_retryable), (class, false), "{config}");
    }
    let columns: Vec<Column> = columns().columns;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "uuid",
            "timestamp",
            "_inserted_at",
            "created_at",
            "event",
            "properties",
            "distinct_id",
            "elements_chain",
            "person_properties",
            "person_id"
        ]
    );
}
