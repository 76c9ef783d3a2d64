//! The writer of a run whose files are staged and loaded at the end.
//!
//! What belongs here: the order of the operations. What does not: where files are staged,
//! and how they are loaded (`Stage`).

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::files::{Files, Fitting};
use super::shape::Shape;
use super::uploads::Uploads;
use crate::destination::{Altered, Failure, Writer};
use crate::rows::Batch;

/// The storage of the staged files of a run.
#[async_trait]
pub(in crate::destinations) trait Stage: Send + Sync + 'static {
    /// Uploads a file. `number` counts the files of this attempt from 0.
    async fn upload(&self, number: u32, file: Bytes) -> Result<(), Failure>;

    /// Loads all files into the table, and removes them afterwards. This attempt has
    /// uploaded `files` of them.
    async fn load_files(&self, files: u32) -> Result<(), Failure>;

    /// Removes incomplete data. This attempt has begun to upload `files` files.
    async fn clear(&self, files: u32);
}

/// The writer of one run.
pub(in crate::destinations) struct StagedWriter<S, F = Shape> {
    stage: Arc<S>,
    files: Files<F>,
    uploads: Uploads,
    count: u32,
    has_all: bool,
}

impl<S: Stage, F: Fitting> StagedWriter<S, F> {
    /// The writer before its first file. `has_all`: an earlier attempt of this run
    /// uploaded all files, so that rows are not needed again.
    pub(in crate::destinations) fn new(stage: S, files: Files<F>, has_all: bool) -> Self {
        Self { stage: Arc::new(stage), files, uploads: Uploads::default(), count: 0, has_all }
    }

    async fn upload(&mut self, file: Bytes) -> Result<(), Failure> {
        let (stage, number) = (Arc::clone(&self.stage), self.count);
        self.count += 1;
        self.uploads.begin(async move { stage.upload(number, file).await }).await
    }
}

#[async_trait]
impl<S: Stage, F: Fitting> Writer for StagedWriter<S, F> {
    async fn write(&mut self, batch: Batch) -> Result<(), Failure> {
        if self.has_all {
            return Ok(());
        }
        if let Some(file) = self.files.add(batch.rows).await? {
            self.upload(file).await?;
        }
        Ok(())
    }

    fn altered(&mut self) -> Vec<Altered> {
        self.files.altered()
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        if let Some(file) = self.files.rest().await? {
            self.upload(file).await?;
        }
        self.uploads.all().await?;
        self.stage.load_files(self.count).await
    }

    async fn abort(&mut self) {
        self.uploads.end().await;
        self.stage.clear(self.count).await;
    }
}
