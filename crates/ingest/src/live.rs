//! The live feed: rows for whoever watches a project right now.
//!
//! Rows are built only while somebody watches, and nothing depends on their
//! arrival: a page fills from the store first and takes the stream from there.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::broadcast;
use weir_model::ProjectId;
use weir_model::live::LiveRow;

/// Rows that a slow watcher may fall behind before it is told so.
const BEHIND: usize = 2_048;

/// Hands rows to watchers.
#[derive(Debug, Clone, Default)]
pub struct LiveFeed {
    projects: Arc<Mutex<HashMap<i64, broadcast::Sender<Arc<LiveRow>>>>>,
}

impl LiveFeed {
    /// Rows of a project from now on.
    #[must_use]
    pub fn watch(&self, project: ProjectId) -> broadcast::Receiver<Arc<LiveRow>> {
        let mut projects = self.projects.lock();
        projects.retain(|_, sender| sender.receiver_count() > 0);
        projects.entry(project.0).or_insert_with(|| broadcast::channel(BEHIND).0).subscribe()
    }

    /// Whether anybody watches the project.
    #[must_use]
    pub fn is_watched(&self, project: ProjectId) -> bool {
        self.projects.lock().get(&project.0).is_some_and(|s| s.receiver_count() > 0)
    }

    /// Hands out a row.
    pub fn publish(&self, project: ProjectId, row: LiveRow) {
        if let Some(sender) = self.projects.lock().get(&project.0) {
            // Nobody there any more: the row is in the store.
            let _ = sender.send(Arc::new(row));
        }
    }
}
