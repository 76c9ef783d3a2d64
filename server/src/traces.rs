//! Traces in the format of OpenTelemetry, by the setting `traces_endpoint` (SEC-41).
//!
//! ```text
//! spans of `tracing` -> recorder -> queue -> exporter -> collector
//! ```
//!
//! What belongs here: which spans are recorded, the memory that they wait in, and sending
//! them. What does not: where spans are opened (the crate that does the work), and the
//! agreement about them (`weir_model::traces`).
//!
//! A request never waits for a trace: a span that finds no room, or that the collector does
//! not take, is lost and counted.

mod exporter;
mod otlp;
mod queue;
mod recorder;

use std::sync::Arc;

use weir_egress::BuildError;
use weir_service::Clock;

use crate::config::{Config, TraceShare};
use crate::metrics::Metrics;

pub use exporter::{Exporter, Exporting};
use queue::Queue;
pub use recorder::Recorder;

/// The traces of a process, before it is known what sends them.
#[derive(Debug)]
pub struct Traces {
    queue: Arc<Queue>,
    share: TraceShare,
    clock: Clock,
}

impl Traces {
    /// The traces of the settings; `None` if they name no address.
    pub fn of(config: &Config) -> Option<Self> {
        config.traces_endpoint.url()?;
        Some(Self { queue: Arc::default(), share: config.traces_share, clock: Clock::default() })
    }

    /// The part that records the spans of the process. There may be one.
    pub fn recorder(&self) -> Recorder {
        Recorder::new(Arc::clone(&self.queue), self.share, self.clock.clone())
    }

    /// The part that sends what was recorded.
    ///
    /// # Errors
    /// When TLS or the HTTP client cannot be set up.
    pub fn exporter(self, config: &Config, metrics: Metrics) -> Result<Exporter, BuildError> {
        Exporter::new(self.queue, config, metrics)
    }
}
