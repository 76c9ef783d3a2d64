//! Facts about a project: its events, and what is deleted with it.

use weir_model::Timestamp;
use weir_store::exports::Of;
use weir_store::{events, exports, plugin_configs};

use super::Projects;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::policy::{self, Action};

/// The number of events, exports and configs of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProjectFacts {
    /// The number of stored events.
    pub events: u64,
    /// The earliest event time.
    pub first_event_at: Option<Timestamp>,
    /// The latest event time.
    pub last_event_at: Option<Timestamp>,
    /// The number of batch exports.
    pub exports: usize,
    /// The number of plugin configs.
    pub configs: usize,
}

impl Projects {
    /// Facts about the project and what is deleted with it.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope).
    pub async fn facts(&self, project: &ProjectCtx) -> Result<ProjectFacts> {
        policy::check(&project.org, Action::ReadProject)?;
        let (store, id) = (&self.core.store, project.project);
        let heads = events::heads(store, id).await?;
        let spans = || heads.values().filter_map(events::Head::span);
        let stored: u64 = heads.values().map(|head| u64::try_from(head.count).unwrap_or(0)).sum();
        let removed = events::removed(store, id).await?;
        let configs = plugin_configs::positions(store, id).await?;
        Ok(ProjectFacts {
            events: stored.saturating_sub(removed),
            first_event_at: spans().map(|span| span.from).min().map(Timestamp::from_micros),
            last_event_at: spans().map(|span| span.to).max().map(Timestamp::from_micros),
            exports: exports::ordered(store, Of::Project(id)).await?.len(),
            configs: configs.iter().filter(|config| !config.deleted).count(),
        })
    }
}
