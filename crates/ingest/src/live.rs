//! The live feed: rows for the clients that watch a project now.
//!
//! Rows are built only while a client watches, and nothing depends on their arrival: a
//! page reads the store first and then follows the stream.
//!
//! What belongs here: distributing rows. What does not: building them
//! (`pipeline::committer`) and reading the stored list (`weir-store`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::broadcast;
use weir_model::ProjectId;
use weir_model::live::LiveRow;

/// Rows that a slow receiver may be behind before it gets an error.
const BEHIND: usize = 2_048;

/// Distributes rows to receivers. Clones refer to the same feed.
#[derive(Debug, Clone, Default)]
pub struct LiveFeed {
    projects: Arc<Mutex<HashMap<i64, broadcast::Sender<Arc<LiveRow>>>>>,
}

impl LiveFeed {
    /// Subscribes to the rows of a project from now on.
    pub fn watch(&self, project: ProjectId) -> broadcast::Receiver<Arc<LiveRow>> {
        let mut projects = self.projects.lock();
        projects.retain(|_, sender| sender.receiver_count() > 0);
        projects.entry(project.0).or_insert_with(|| broadcast::channel(BEHIND).0).subscribe()
    }

    /// Whether the project has a receiver.
    pub fn is_watched(&self, project: ProjectId) -> bool {
        self.projects.lock().get(&project.0).is_some_and(|s| s.receiver_count() > 0)
    }

    /// Sends a row to all receivers of the project.
    pub fn publish(&self, project: ProjectId, row: LiveRow) {
        if let Some(sender) = self.projects.lock().get(&project.0) {
            // The last receiver may have gone. The row is in the store.
            let _ = sender.send(Arc::new(row));
        }
    }
}
