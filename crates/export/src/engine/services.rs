//! What the engine requires of the service around it.
//!
//! What belongs here: the trait. What does not: its implementation (`weir-server`).

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use weir_model::Timestamp;
use weir_model::exports::Run;
use weir_store::exports::ExportRow;

use crate::destination::{Destination, Failure};

/// The service around the engine.
#[async_trait]
pub trait ExportServices: Send + Sync + 'static {
    /// The time of day. It decides what is due, and it is the time of stored records.
    fn now(&self) -> Timestamp;

    /// The time since a fixed moment. It rises steadily, also when the clock is set.
    /// Waits and time limits use it.
    fn uptime(&self) -> Duration;

    /// Returns when all events that are acknowledged by now are readable.
    async fn applied(&self);

    /// The settings of an export's destination, secrets included.
    ///
    /// # Errors
    /// When the secrets cannot be decrypted.
    async fn config(&self, export: &ExportRow) -> Result<Map<String, Value>, Failure>;

    /// The destination of this kind with these settings.
    ///
    /// # Errors
    /// When a setting is missing or does not fit.
    fn destination(
        &self,
        kind: &str,
        config: &Map<String, Value>,
    ) -> Result<Box<dyn Destination>, Failure>;

    /// A run ended without delivering everything. The implementation notifies
    /// administrators.
    async fn failed(&self, export: &ExportRow, run: &Run);

    /// `failed` of the `of` newest runs failed. The implementation pauses the export, ends
    /// its backfills and notifies administrators.
    async fn pause(&self, export: &ExportRow, failed: u32, of: u32, error: Option<&str>);
}
