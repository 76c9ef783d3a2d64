//! What the engine needs of the service around it.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use weir_model::Timestamp;
use weir_model::exports::Run;
use weir_store::exports::ExportRow;

use crate::destination::{Destination, Failure};

/// The service around the engine.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// The time of day: what is due and what is written down goes by this clock.
    fn now(&self) -> Timestamp;

    /// The time since some moment. It only goes on, also while the clock is set:
    /// waits and limits go by it.
    fn uptime(&self) -> Duration;

    /// Returns when everything that was acknowledged until now can be read.
    async fn applied(&self);

    /// The settings of an export's destination, secrets included.
    ///
    /// # Errors
    /// When they cannot be opened.
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

    /// A run ended without having delivered everything: administrators are told.
    async fn failed(&self, export: &ExportRow, run: &Run);

    /// `failed` of the `of` newest runs failed: the export is paused, its backfills
    /// end, administrators are told.
    async fn pause(&self, export: &ExportRow, failed: u32, of: u32, error: Option<&str>);
}
