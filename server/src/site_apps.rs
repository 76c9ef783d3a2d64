//! The apps for visited pages of each project, in memory, because every visit asks for
//! them.
//!
//! What belongs here: keeping the service's answers until they change. What does not: the
//! apps and their code (`weir-service`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use weir_model::ProjectId;
use weir_model::plugin_configs::SiteApp;
use weir_service::plugin_configs::PluginConfigs;
use weir_store::plugin_runtime::PluginChange;

/// Most projects in the cache. When it is full, it is emptied.
const KEPT: usize = 10_000;

/// The apps of all projects that were requested. Cheap to clone.
#[derive(Clone)]
pub struct SiteApps(Arc<Inner>);

struct Inner {
    configs: PluginConfigs,
    kept: Mutex<CachedApps>,
}

struct CachedApps {
    changes: Receiver<PluginChange>,
    by_project: HashMap<ProjectId, Arc<[SiteApp]>>,
    /// Changes after every notification, so that an answer from before a change is not
    /// stored.
    state: u64,
}

impl SiteApps {
    /// An empty cache.
    pub fn new(configs: PluginConfigs) -> Self {
        let changes = configs.changes();
        let kept = Mutex::new(CachedApps { changes, by_project: HashMap::new(), state: 0 });
        Self(Arc::new(Inner { configs, kept }))
    }

    /// The apps of a project. If the store fails there are none, because a page works
    /// without them.
    pub async fn of(&self, project: ProjectId) -> Arc<[SiteApp]> {
        let Inner { configs, kept } = &*self.0;
        let before = {
            let mut kept = kept.lock();
            kept.catch_up();
            if let Some(apps) = kept.by_project.get(&project) {
                return Arc::clone(apps);
            }
            kept.state
        };
        let apps: Arc<[SiteApp]> = match configs.site_apps(project).await {
            Ok(apps) => apps.into(),
            Err(error) => {
                tracing::warn!(%error, "the apps for visited pages could not be looked up");
                return Arc::new([]);
            }
        };
        let mut kept = kept.lock();
        kept.catch_up();
        if kept.state == before {
            if kept.by_project.len() >= KEPT {
                kept.by_project.clear();
            }
            kept.by_project.insert(project, Arc::clone(&apps));
        }
        apps
    }
}

impl CachedApps {
    /// Removes entries that have changed since the last call.
    fn catch_up(&mut self) {
        loop {
            match self.changes.try_recv() {
                Ok(PluginChange::Project(project)) => {
                    self.by_project.remove(&project);
                }
                // The projects that use the plugin are not known here.
                Ok(PluginChange::Plugin(_)) | Err(TryRecvError::Lagged(_)) => {
                    self.by_project.clear();
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
            self.state += 1;
        }
    }
}
