//! Notifying the tasks that run plugins of changes of the enabled plugins and configs.

use tokio::sync::broadcast::{self, Receiver, Sender};
use weir_model::{PluginId, ProjectId};

use crate::Store;

/// The number of notifications that a receiver may be behind. A receiver that is further
/// behind gets an error, and reads everything again.
const BEHIND: usize = 1024;

/// A notification that enabled plugins or configs may have changed. It is sent after
/// every write, even if the outcome is unknown: reading again does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PluginChange {
    /// Configs of this project.
    Project(ProjectId),
    /// The record or the source of this plugin.
    Plugin(PluginId),
}

/// Sends notifications within this process. Clones share the receivers.
#[derive(Debug, Clone)]
pub(crate) struct ChangeNotifier(Sender<PluginChange>);

impl Default for ChangeNotifier {
    fn default() -> Self {
        Self(broadcast::channel(BEHIND).0)
    }
}

impl ChangeNotifier {
    /// A guard that sends these notifications when it is dropped. A transaction holds it,
    /// so that they are sent when it has ended, even if its caller was dropped.
    pub(crate) fn pending(&self, changes: Vec<PluginChange>) -> PendingNotification {
        PendingNotification { sender: self.0.clone(), changes }
    }
}

#[derive(Debug)]
pub(crate) struct PendingNotification {
    sender: Sender<PluginChange>,
    changes: Vec<PluginChange>,
}

impl Drop for PendingNotification {
    fn drop(&mut self) {
        for change in self.changes.drain(..) {
            // There are no receivers when no plugins run.
            let _ = self.sender.send(change);
        }
    }
}

impl Store {
    /// A receiver of changes that are made from now on through this store or a clone of
    /// it.
    pub fn plugin_changes(&self) -> Receiver<PluginChange> {
        self.plugin_changes.0.subscribe()
    }

    /// A guard that sends a notification about one project's configs when it is dropped.
    pub(crate) fn notification_of(&self, project: ProjectId) -> PendingNotification {
        self.plugin_changes.pending(vec![PluginChange::Project(project)])
    }
}
