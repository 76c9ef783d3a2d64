//! Telling whoever runs plugins that what is enabled has changed.

use tokio::sync::broadcast::{self, Receiver, Sender};
use weir_model::{PluginId, ProjectId};

use crate::Store;

/// Changes that a reader may be behind by. One that is further behind is told so,
/// and reads all again.
const BEHIND: usize = 1024;

/// That what is enabled may have changed. It is told after every write, also one
/// whose outcome nobody knows: reading again does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PluginChange {
    /// Configs of this project.
    Project(ProjectId),
    /// The record or the source of this plugin.
    Plugin(PluginId),
}

/// Tells changes within this process. Clones tell the same readers.
#[derive(Debug, Clone)]
pub(crate) struct Teller(Sender<PluginChange>);

impl Default for Teller {
    fn default() -> Self {
        Self(broadcast::channel(BEHIND).0)
    }
}

impl Teller {
    /// What tells of these changes once it is dropped. A transaction holds it, so
    /// that they are told when it has ended, whether its caller still waits or not.
    pub(crate) fn telling(&self, changes: Vec<PluginChange>) -> Telling {
        Telling { sender: self.0.clone(), changes }
    }
}

#[derive(Debug)]
pub(crate) struct Telling {
    sender: Sender<PluginChange>,
    changes: Vec<PluginChange>,
}

impl Drop for Telling {
    fn drop(&mut self) {
        for change in self.changes.drain(..) {
            // Nobody listens where nothing runs.
            let _ = self.sender.send(change);
        }
    }
}

impl Store {
    /// Changes of configs and plugins from now on, made through this store or a
    /// clone of it.
    #[must_use]
    pub fn plugin_changes(&self) -> Receiver<PluginChange> {
        self.plugin_changes.0.subscribe()
    }

    /// What tells of a change of one project's configs when it is dropped.
    pub(crate) fn telling_of(&self, project: ProjectId) -> Telling {
        self.plugin_changes.telling(vec![PluginChange::Project(project)])
    }
}
