//! The dependencies of all request handlers: one cloneable struct, built the same way by
//! the program and by tests.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use weir_egress::Egress;
use weir_export::destinations::{Dependencies, DestinationAddresses};
use weir_ingest::Ingest;
use weir_service::Services;
use weir_store::Store;
use weir_store::disk::DiskState;
use weir_store::traffic::TrafficCounters;

use crate::backup::schedule::Backups;
use crate::capture::{BrowserLibrary, CookielessKeys};
use crate::config::Config;
use crate::limits::{Limits, Permits};
use crate::listener::Terms;
use crate::metrics::Metrics;
use crate::site_apps::SiteApps;
use crate::throttle::{Rates, Throttle};
use crate::tokens::TokenCache;

/// The application. Cheap to clone: every layer of the router clones it for each request.
#[derive(Clone)]
pub struct App(Arc<Parts>);

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The parts of an [`App`].
pub struct Parts {
    /// Operations on management data.
    pub services: Services,
    /// The ingest pipeline that stores accepted events.
    pub ingest: Ingest,
    /// Cache of project keys.
    pub tokens: TokenCache,
    /// Quotas of personal API keys.
    pub throttle: Arc<Throttle>,
    /// Limits on what clients may use.
    pub limits: Arc<Limits>,
    /// The semaphores and budgets that enforce the limits.
    pub permits: Permits,
    /// Metrics of the process.
    pub metrics: Metrics,
    /// Traffic counts that are not written yet.
    pub traffic: Arc<TrafficCounters>,
    /// Free disk space.
    pub disk: Arc<DiskState>,
    /// What is known of the backups.
    pub backups: Arc<Backups>,
    /// Connections to addresses that members enter.
    pub egress: Egress,
    /// Addresses of the public services that exports write to.
    pub destination_addresses: Arc<DestinationAddresses>,
    /// The browser library, if the operator configures one.
    pub browser_library: BrowserLibrary,
    /// Keys of visitors without cookies.
    pub cookieless_keys: Arc<CookielessKeys>,
    /// Apps that run in visited pages.
    pub site_apps: SiteApps,
    /// Whether the service is stopping.
    pub stopping: Stopping,
    /// When the service was started.
    pub started: Instant,
    /// The effective settings.
    pub config: Arc<Config>,
}

impl Parts {
    /// The dependencies of export destinations.
    pub fn dependencies(&self) -> Dependencies {
        let root = &self.config.local_exports;
        let local_root = (!root.as_os_str().is_empty()).then(|| root.clone());
        let addresses = DestinationAddresses::clone(&self.destination_addresses);
        Dependencies { addresses, ..Dependencies::new(self.egress.clone(), local_root) }
    }
}

/// What an [`App`] is built from.
pub struct AppBuilder {
    /// The terms of its listener.
    pub terms: Terms,
    /// The open store.
    pub store: Store,
    /// The services that use the store.
    pub services: Services,
    /// The open ingest pipeline.
    pub ingest: Ingest,
    /// Limits on what clients may use.
    pub limits: Limits,
    /// Connections to addresses that members enter.
    pub egress: Egress,
    /// Addresses of the public services that exports write to.
    pub destination_addresses: DestinationAddresses,
}

impl AppBuilder {
    /// Builds the application.
    pub fn build(self) -> App {
        let Self { terms, store, services, ingest, limits, egress, destination_addresses } = self;
        let Terms { config, metrics, stopping, .. } = terms;
        let rates = Rates { per_minute: config.rate_per_minute, per_hour: config.rate_per_hour };
        App(Arc::new(Parts {
            tokens: TokenCache::new(services.projects.clone(), services.clock.clone()),
            site_apps: SiteApps::new(services.plugin_configs.clone()),
            services,
            ingest,
            throttle: Arc::new(Throttle::new(rates)),
            permits: Permits::new(&limits),
            limits: Arc::new(limits),
            metrics,
            traffic: Arc::clone(store.traffic()),
            disk: store.disk(),
            backups: Arc::default(),
            egress,
            destination_addresses: Arc::new(destination_addresses),
            browser_library: BrowserLibrary::at(&config.browser_library),
            cookieless_keys: Arc::default(),
            stopping,
            started: Instant::now(),
            config,
        }))
    }
}

/// The stop signal inside the process. Readiness and endless answers watch it.
#[derive(Debug, Clone)]
pub struct Stopping(watch::Sender<bool>);

impl Default for Stopping {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Stopping {
    /// Sends the signal.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether the signal was sent.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the signal is sent.
    pub async fn begun(&self) {
        // Fails only when the sender is dropped, and `self` holds a sender.
        let _ = self.0.subscribe().wait_for(|begun| *begun).await;
    }
}
