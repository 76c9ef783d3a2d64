//! What every request can reach: one cloneable struct, built the same way by
//! the program and by tests.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use weir_egress::Egress;
use weir_export::destinations::{Hosts, Surroundings};
use weir_ingest::Ingest;
use weir_service::Services;
use weir_store::Store;
use weir_store::disk::DiskState;
use weir_store::traffic::Board;

use crate::capture::BrowserLibrary;
use crate::config::Config;
use crate::limits::{Limits, Shares};
use crate::listener::Terms;
use crate::metrics::Metrics;
use crate::site_apps::SiteApps;
use crate::throttle::{Rates, Throttle};
use crate::tokens::TokenCache;

/// The application. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// Rules of management data.
    pub services: Services,
    /// Where accepted events go.
    pub ingest: Ingest,
    /// Project keys.
    pub tokens: TokenCache,
    /// How often keys may call.
    pub throttle: Arc<Throttle>,
    /// What clients may cost.
    pub limits: Arc<Limits>,
    /// What is in use of it.
    pub shares: Shares,
    /// Counters.
    pub metrics: Metrics,
    /// What is counted of traffic and not written yet.
    pub traffic: Arc<Board>,
    /// Free disk space.
    pub disk: Arc<DiskState>,
    /// The way to addresses that members enter.
    pub egress: Egress,
    /// Where public services are that exports go to.
    pub export_hosts: Arc<Hosts>,
    /// Files for web pages.
    pub browser_library: BrowserLibrary,
    /// Apps for visited pages.
    pub site_apps: SiteApps,
    /// Whether the service is stopping.
    pub stopping: Stopping,
    /// When it was started.
    pub started: Instant,
    /// The effective settings.
    pub config: Arc<Config>,
}

impl App {
    /// What destinations of exports work with.
    #[must_use]
    pub fn surroundings(&self) -> Surroundings {
        let root = &self.config.local_exports;
        let local_root = (!root.as_os_str().is_empty()).then(|| root.clone());
        let hosts = Hosts::clone(&self.export_hosts);
        Surroundings { hosts, ..Surroundings::new(self.egress.clone(), local_root) }
    }
}

/// What an [`App`] is built from.
pub struct AppBuilder {
    /// What its listener knows already.
    pub terms: Terms,
    /// The open store.
    pub store: Store,
    /// The services over it.
    pub services: Services,
    /// The open ingest pipeline.
    pub ingest: Ingest,
    /// What clients may cost.
    pub limits: Limits,
    /// The way to addresses that members enter.
    pub egress: Egress,
    /// Where public services are that exports go to.
    pub export_hosts: Hosts,
}

impl AppBuilder {
    /// Puts the parts together.
    #[must_use]
    pub fn build(self) -> App {
        let Self { terms, store, services, ingest, limits, egress, export_hosts } = self;
        let Terms { config, metrics, stopping, .. } = terms;
        let rates = Rates { per_minute: config.rate_per_minute, per_hour: config.rate_per_hour };
        App {
            tokens: TokenCache::new(services.projects.clone(), services.clock.clone()),
            site_apps: SiteApps::new(services.plugin_configs.clone()),
            services,
            ingest,
            throttle: Arc::new(Throttle::new(rates)),
            shares: Shares::new(&limits),
            limits: Arc::new(limits),
            metrics,
            traffic: Arc::clone(store.traffic()),
            disk: store.disk(),
            egress,
            export_hosts: Arc::new(export_hosts),
            browser_library: BrowserLibrary::at(&config.browser_library),
            stopping,
            started: Instant::now(),
            config,
        }
    }
}

/// The sign that the service is about to stop, for readiness and for answers
/// that would never end by themselves.
#[derive(Debug, Clone)]
pub struct Stopping(watch::Sender<bool>);

impl Default for Stopping {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Stopping {
    /// Gives the sign.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether the sign was given.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the sign is given.
    pub async fn begun(&self) {
        // Fails only when the sender is gone, and `self` holds one.
        let _ = self.0.subscribe().wait_for(|begun| *begun).await;
    }
}
