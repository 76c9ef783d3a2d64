//! The logs of tables in the bucket, which are copies of those in the directory.
//!
//! A commit is written if its name is not there, a checkpoint in any case, and the name of
//! the newest checkpoint after both. So a reader finds a whole log at every moment.
//!
//! What belongs here: which files of a log are copied, and in which order. What does not:
//! their content (`weir_segments::delta`), and when a table changes (`table`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use weir_model::ProjectId;

use super::super::files::{Files, LAST_CHECKPOINT, LOG};
use super::super::lock;
use super::Objects;
use crate::{Error, Result, Store};

/// Upper bound of a file of a log, bytes.
const BYTES: u64 = 256 << 20;

/// Brings the log of a table in the bucket to this version of the one in the directory.
/// A failure is logged, and the next pass tries again.
pub(in crate::events::segments) async fn publish(store: &Store, project: ProjectId, version: u64) {
    let (Some(objects), Some(files)) = (&store.segments.objects, &store.segments.files) else {
        return;
    };
    let table = project.to_string();
    {
        let mut known = lock(&objects.known);
        if known.published.get(&table) == Some(&version) {
            return;
        }
        if !(known.is_ours && known.is_complete && known.is_listed) {
            // The log in the bucket names objects that may not be removed yet.
            known.published.remove(&table);
            return;
        }
    }
    if let Err(error) = publish_table(objects, files, &table, version).await {
        lock(&objects.known).published.remove(&table);
        tracing::warn!(%project, %error, "the table in the bucket is behind; trying again later");
    }
}

/// Copies the log of a table to the bucket.
pub(super) async fn publish_table(
    objects: &Objects,
    files: &Files,
    table: &str,
    version: u64,
) -> Result<()> {
    let is_known = lock(&objects.known).published.remove(table).is_some();
    let directory = files.path(&format!("{table}/{LOG}"));
    let here = log_files(&directory)?;
    let prefix = format!("{table}/{LOG}/");
    let there = || -> BTreeSet<String> {
        let known = lock(&objects.known);
        let present = known.present.iter().flatten();
        present.filter_map(|name| Some(name.strip_prefix(&prefix)?.to_owned())).collect()
    };
    if !is_known && !is_same_log(objects, &directory, &prefix, &here, &there()).await? {
        // The newest first: what is left is a table of an older version.
        for name in there().iter().rev() {
            objects.remove_object(files, &format!("{prefix}{name}")).await?;
        }
    }
    let there = there();
    let missing: Vec<&String> = here.iter().filter(|name| !there.contains(*name)).collect();
    for name in &missing {
        let object = format!("{prefix}{name}");
        let content = read_log(&directory.join(name.as_str()))?;
        let is_new = match name.ends_with(".json") {
            true => objects.bucket.create(&object, content.clone()).await,
            false => objects.bucket.put(&object, content.clone()).await.map(|()| true),
        };
        if !is_new.map_err(|error| objects.error(error))? {
            let found = objects.bucket.get(&object, BYTES).await;
            if found.map_err(|error| objects.error(error))?.as_ref() != Some(&content) {
                objects.list_again();
                return Err(objects.refused(format!("{object} was written by another program")));
            }
        }
        objects.has_object(&object);
    }
    let last = directory.join(LAST_CHECKPOINT);
    if !missing.is_empty() && last.exists() {
        let object = format!("{prefix}{LAST_CHECKPOINT}");
        let put = objects.bucket.put(&object, read_log(&last)?).await;
        put.map_err(|error| objects.error(error))?;
        objects.has_object(&object);
    }
    for name in there.iter().filter(|name| !here.contains(*name) && *name != LAST_CHECKPOINT) {
        objects.remove_object(files, &format!("{prefix}{name}")).await?;
    }
    lock(&objects.known).published.insert(table.to_owned(), version);
    Ok(())
}

/// Whether the bucket has an older version of the same log: their newest common commit has
/// the same content, and the bucket has no newer one.
async fn is_same_log(
    objects: &Objects,
    directory: &Path,
    prefix: &str,
    here: &BTreeSet<String>,
    there: &BTreeSet<String>,
) -> Result<bool> {
    let newest =
        |names: &BTreeSet<String>| names.iter().rev().find(|name| name.ends_with(".json")).cloned();
    let Some(newest_there) = newest(there) else { return Ok(there.is_empty()) };
    let common: BTreeSet<String> = here.intersection(there).cloned().collect();
    match newest(&common) {
        Some(common) if common == newest_there => {
            let object = format!("{prefix}{common}");
            let found = objects.bucket.get(&object, BYTES).await;
            let found = found.map_err(|error| objects.error(error))?;
            Ok(found.is_some_and(|found| read_log(&directory.join(&common)).ok() == Some(found)))
        }
        _ => Ok(false),
    }
}

/// The commits and checkpoints of a log.
fn log_files(directory: &Path) -> Result<BTreeSet<String>> {
    let failed = |source| Error::File { file: directory.to_owned(), source };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let Ok(name) = entry.map_err(failed)?.file_name().into_string() else { continue };
        if name.ends_with(".json") || name.ends_with(".parquet") {
            names.insert(name);
        }
    }
    Ok(names)
}

fn read_log(path: &PathBuf) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| Error::File { file: path.clone(), source })
}
