//! The life of the service: open, announce, watch, stop.
//!
//! What belongs here: the order of the steps. The address is bound first, so that a wrong
//! one is noticed before anything is opened, and connections are accepted from then on
//! (`starting`). The store is closed last. What does not: answers to requests (`dispatcher`),
//! work at intervals (`periodic`), the removal of old events (`retention`), the certificate
//! (`certificates`), changes of the log filter (`log_filter`), the set-up link (`set_up_link`),
//! the stop signals (`signals`), and the reasons of failures (`error`).

mod certificates;
mod error;
mod log_filter;
mod periodic;
mod retention;
mod set_up_link;
mod signals;

use std::io::{ErrorKind, Write as _};
use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use weir_dns::Resolver;
use weir_egress::{BuildError, Egress, Rules};
use weir_export::destinations::DestinationAddresses;
use weir_export::engine::{self, Engine};
use weir_ingest::location::{LocationError, Locations};
use weir_ingest::log::LogSettings;
use weir_ingest::{Dependencies as IngestDependencies, OpenLog};
use weir_plugins::{Dependencies as PluginDependencies, Plugins, Settings as PluginSettings};
use weir_service::identity::HashParameters;
use weir_service::limits as organization_limits;
use weir_service::mail::Mailing;
use weir_service::plugin_configs::RunningConfigs;
use weir_service::sealing::Sealer;
use weir_service::{Clock, Core, Dependencies, Services, questions};
use weir_store::{DatabaseSettings, Location, Settings as StoreSettings, Store, disk};

use crate::alerts::WebhookWorker;
use crate::app::{App, AppBuilder, Stopping};
use crate::applying::AppApplying;
use crate::background::{Background, Work};
use crate::backup;
use crate::config::{ByteSize, Config, ConfigError, StoreKind};
use crate::dispatcher::Dispatcher;
use crate::exports::{AppExportServices, EgressHostPolicy};
use crate::limits::Limits;
use crate::listener::{self, Terms, Transport};
use crate::mail::MailWorker;
use crate::master_key;
use crate::metrics::{Metrics, MetricsPage};
use crate::plugins::AppPluginServices;
use crate::questions::AppQuestions;
use crate::redirect::Redirect;
use crate::setup;
use crate::sso::AppProtocols;
use crate::starting::Starting;
use crate::traces::{Exporting, Traces};

pub use certificates::CertificateError;
use certificates::{Certificates, Reload};
pub use error::ServeError;
use set_up_link::announce_setup;
pub(crate) use signals::StopSignals;

/// Time for applying accepted events when the service stops. The others wait in the log
/// for the next start.
const APPLY_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for applying the log before erasures that a backup did not know are applied again.
const REAPPLY_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Time for interrupting exports, plugins and a backup when the service stops. The next
/// start continues them.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often an address in use is tried, and the pause between two attempts.
const BIND_ATTEMPTS: u32 = 10;
const BIND_PAUSE: Duration = Duration::from_millis(100);

/// Settings that only tests change.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The clock of all services.
    pub clock: Clock,
    /// The cost of hashing a password.
    pub hashing: HashParameters,
    /// Limits that replace those of the settings.
    pub limits: Option<Limits>,
    /// Bounds of the ingest log.
    pub log: LogSettings,
    /// Bounds of the engine of exports.
    pub exports: engine::Settings,
    /// The sandbox processes of plugins, and the hosts that their code comes from.
    pub plugins: PluginSettings,
    /// Addresses of the public services that exports write to.
    pub destination_addresses: DestinationAddresses,
    /// The runtime that applies events, instead of separate threads.
    pub applying: Option<Handle>,
    /// An open store, instead of that of the settings.
    pub store: Option<Store>,
}

/// A running service.
pub struct Server {
    /// The dependencies of its request handlers.
    pub app: App,
    /// The address that it listens at.
    pub address: SocketAddr,
    /// The address of its metrics page, if it has one.
    pub metrics_address: Option<SocketAddr>,
    /// The address whose requests it redirects, if it has one.
    pub redirect_address: Option<SocketAddr>,
    /// The store, for tests that prepare data.
    pub store: Store,
    /// The running plugins, for tests that ask how far they are.
    pub plugins: Plugins,
    /// Reads the files of the certificate again, if there are any.
    reload: Option<Reload>,
    accepting: JoinSet<()>,
    watching: JoinSet<()>,
    counting: JoinHandle<()>,
    limiting: JoinHandle<()>,
    backing_up: JoinHandle<()>,
    exports: Arc<Engine>,
    /// The threads that apply events; they end when dropped.
    _background: Background,
    /// The threads of exports; they end when dropped.
    _exporting: Background,
    /// The threads of plugins; they end when dropped.
    _running: Background,
    /// The threads of questions; they end when dropped.
    _asking: Background,
    /// The log directory of a store in memory; removed when dropped.
    _temporary_log: Option<tempfile::TempDir>,
}

impl Server {
    /// Starts a service.
    ///
    /// # Errors
    /// [`ServeError`] with the reason.
    pub async fn start(config: Config, options: Options) -> Result<Self, ServeError> {
        let metrics = Metrics::new();
        let certificates = Certificates::open(&config, options.clock.clone(), metrics.clone());
        let certificates = certificates.await?;
        let tcp = bind(&config.listen, "listen").await?;
        let address = tcp.local_addr()?;
        let redirect_tcp = match config.redirect_listen.0 {
            Some(address) => Some(bind(&address.to_string(), "redirect-listen").await?),
            None => None,
        };
        let redirect_address = redirect_tcp.as_ref().map(TcpListener::local_addr).transpose()?;
        let metrics_tcp = match config.metrics_listen.0 {
            Some(address) => Some(bind(&address.to_string(), "metrics-listen").await?),
            None => None,
        };
        let metrics_address = metrics_tcp.as_ref().map(TcpListener::local_addr).transpose()?;
        let config = Arc::new(config);
        let limits = options.limits.unwrap_or_else(|| Limits::from_config(&config));
        metrics.process_start_seconds.set(options.clock.now().micros() as f64 / 1e6);
        // Before the first scrape, which would otherwise see a disk without free space.
        if let Some(free) = free_bytes(&config) {
            metrics.show_disk(free, config.disk_marks());
        }
        let terms = Terms {
            limits: limits.connections,
            config: Arc::clone(&config),
            metrics,
            stopping: Stopping::default(),
        };
        let starting = Starting::new(limits.api_time, config.hsts());
        // These tasks end with the set when the service does not start.
        let mut accepting = JoinSet::new();
        let transport = Transport {
            proxy_protocol: config.proxy_protocol,
            tls: certificates.as_ref().map(|certificates| certificates.tls().clone()),
        };
        if let Some((tcp, tls)) = redirect_tcp.zip(transport.tls.clone()) {
            let origin = config.public_url.origin().unwrap_or_default();
            let plain = Transport { tls: None, ..transport.clone() };
            let redirect = Redirect::new(&origin, tls);
            accepting.spawn(listener::serve(tcp, terms.clone(), plain, redirect));
        }
        accepting.spawn(listener::serve(tcp, terms.clone(), transport, starting.clone()));
        let mut watching = JoinSet::new();
        let reload = certificates.as_ref().map(Certificates::reload);
        if let Some(certificates) = certificates {
            watching.spawn(certificates.keep());
        }
        if let Some(tcp) = metrics_tcp {
            tracing::info!(
                address = metrics_address.map(tracing::field::display),
                "metrics at /metrics"
            );
            let page = MetricsPage(terms.metrics.clone());
            watching.spawn(listener::serve(tcp, terms.clone(), Transport::default(), page));
        }
        let store = match options.store {
            Some(store) => store,
            None => open_store(&config).await?,
        };
        backup::remove_abandoned(&config).await;
        let sealer = Sealer::start(store.clone(), master_key::source(&config)?).await?;
        // A log that outlives a store in memory would fill the next store.
        let (log, temporary_log) = match config.store {
            StoreKind::RocksDb | StoreKind::Postgres(_) => (config.data.join("log"), None),
            StoreKind::Memory => {
                let temporary_log = tempfile::tempdir()?;
                (temporary_log.path().to_owned(), Some(temporary_log))
            }
        };
        let log = OpenLog::open(&log, options.log, store.clone()).await?;
        let egress = Egress::new(Rules {
            allow: config.egress_allow.all().to_vec(),
            own: iter::once(address).chain(metrics_address).chain(redirect_address).collect(),
        })?;
        let mail_worker = MailWorker::of(&config)?;
        let limiter = Arc::new(organization_limits::Limiter::new(
            config.organization_limits(),
            options.clock.clone(),
        ));
        let core = Arc::new(Core {
            store: store.clone(),
            clock: options.clock.clone(),
            // From the first request on, so that its mails are sent.
            mailing: Mailing::new(mail_worker.is_some()),
            sealer,
            hosts: Arc::new(EgressHostPolicy(egress.clone())),
            providers: config.sign_in_providers.all().to_vec(),
            offers_organizations: config.new_organizations,
            limiter: Arc::clone(&limiter),
        });
        // Before the first event, also one of a plugin.
        organization_limits::Limits::new(Arc::clone(&core)).load().await?;
        let background = Background::start(Work::Applying)?;
        let applying = options.applying.unwrap_or_else(|| background.handle().clone());
        let locations = open_locations(&config)?.map(Arc::new);
        let configs = RunningConfigs::new(Arc::clone(&core));
        let plugins = Plugins::new(PluginDependencies {
            store: store.clone(),
            egress: egress.clone(),
            services: Arc::new(AppPluginServices::new(
                configs,
                store.clone(),
                log.appender().clone(),
                limiter,
                terms.metrics.clone(),
            )),
            locations: locations.clone(),
            site_url: setup::origin(&config, Some(address)),
            settings: options.plugins,
        });
        // Plugins must run before the first event is applied.
        plugins.start(&applying).await?;
        let transform = Arc::new(plugins.clone());
        let ingest = log.start(IngestDependencies { applying, locations, transform });
        let asking = Background::start(Work::Questions)?;
        let bytes = |size: ByteSize| usize::try_from(size.0).unwrap_or(usize::MAX);
        let questions = questions::Settings {
            threads: asking.handle().clone(),
            host: Arc::new(AppQuestions::new(&limits, ingest.clone(), terms.metrics.clone())),
            memory: bytes(config.query_memory),
            kept: bytes(config.query_cache),
            time: limits.question_time,
        };
        let dependencies = Dependencies {
            hashing: options.hashing,
            lookup: Arc::new(Resolver::new(config.dns_servers.0.clone())),
            plugin_code: Arc::new(plugins.clone()),
            protocols: Arc::new(AppProtocols::new(egress.clone(), options.clock)),
            applying: Arc::new(AppApplying(ingest.clone())),
            questions,
        };
        let services = Services::new(core, dependencies);
        let app = AppBuilder {
            terms,
            store: store.clone(),
            services,
            ingest,
            limits,
            egress,
            destination_addresses: options.destination_addresses,
        }
        .build();
        app.tokens.refresh().await;
        let exporting = Background::start(Work::Exporting)?;
        // Erasures of a list wait for events of the log, and these may wait for a repair.
        periodic::begin_repairs(&mut watching, &store, exporting.handle());
        tokio::select! {
            _ = periodic::reapply_erasures(&app, REAPPLY_TIMEOUT) => {}
            () = app.ingest.failed() => {}
        }

        let export_services = Arc::new(AppExportServices::new(app.clone()));
        let settings = options.exports;
        let exports =
            Arc::new(Engine::start(store.clone(), export_services, settings, exporting.handle()));
        let running = Background::start(Work::Plugins)?;
        plugins.begin(running.handle());
        periodic::begin(&mut watching, &app, &store, &exports, &plugins);
        periodic::begin_sealing(&mut watching, &app, &store, &plugins, exporting.handle());
        let backing_up = backup::schedule::begin(&app, exporting.handle());
        let webhooks = WebhookWorker::new(
            app.services.alerts.clone(),
            app.egress.clone(),
            setup::origin(&config, Some(address)),
        );
        watching.spawn(webhooks.send());
        if let Some(mail_worker) = mail_worker {
            watching.spawn(mail_worker.send(app.services.mails.clone()));
        }
        let counting = tokio::spawn(periodic::write_counts(app.clone()));
        let limiting = tokio::spawn(periodic::write_usage(app.clone()));
        starting.open(Dispatcher::new(app.clone()));
        tracing::info!(%address, "serving");
        Ok(Self {
            app,
            address,
            metrics_address,
            redirect_address,
            store,
            reload,
            accepting,
            watching,
            counting,
            limiting,
            backing_up,
            exports,
            plugins,
            _background: background,
            _exporting: exporting,
            _running: running,
            _asking: asking,
            _temporary_log: temporary_log,
        })
    }

    /// Returns when storage fails. The process must end then.
    pub async fn failed(&self) {
        tokio::select! {
            () = self.store.failed() => {}
            () = self.app.ingest.failed() => {}
        }
    }

    /// Stops in order: no new connections, requests in flight finish, exports, background
    /// work of plugins and a backup are interrupted, accepted events are applied, the
    /// processes of plugins end, the store is closed.
    ///
    /// # Errors
    /// [`ServeError::Store`] when the engine could not flush. Acknowledged events are
    /// safe nevertheless.
    pub async fn stop(mut self) -> Result<(), ServeError> {
        tracing::info!("stopping: finishing requests in flight");
        self.app.stopping.begin();
        while let Some(ended) = self.accepting.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the accept loop had failed");
            }
        }
        let ((), (), backed_up) = tokio::join!(
            self.exports.close(INTERRUPT_TIMEOUT),
            self.plugins.close(INTERRUPT_TIMEOUT),
            tokio::time::timeout(INTERRUPT_TIMEOUT, self.backing_up),
        );
        match backed_up {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the backups of the server had failed"),
            Err(_) => tracing::warn!("a backup did not end; the next start removes its links"),
        }
        self.watching.shutdown().await;
        periodic::write_notes_now(&self.app).await;
        self.app.ingest.close(APPLY_TIMEOUT).await;
        // Not earlier, because applied events are counted.
        if let Err(error) = self.counting.await {
            tracing::error!(%error, "counters were not written");
        } else if let Err(error) = self.app.services.traffic.write().await {
            tracing::warn!(%error, "the last counters were not written");
        }
        if let Err(error) = self.limiting.await {
            tracing::error!(%error, "the use of limits was not written");
        } else if let Err(error) = self.app.services.limits.write().await {
            tracing::warn!(%error, "the last use of limits was not written");
        }
        // Not earlier, because accepted events are transformed until here.
        self.plugins.end().await;
        self.store.close_at_end().await?;
        tracing::info!("stopped");
        Ok(())
    }
}

/// Binds an address. After a process was killed, a child that it was starting can have its
/// sockets for a moment, so an address in use is tried again.
pub(crate) async fn bind(address: &str, setting: &'static str) -> Result<TcpListener, ServeError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse && attempts < BIND_ATTEMPTS => {
                tokio::time::sleep(BIND_PAUSE).await;
            }
            bound => {
                let wrong =
                    |source| ServeError::Bind { address: address.to_owned(), setting, source };
                return bound.map_err(wrong);
            }
        }
    }
}

/// Free bytes of the disk of the data directory, which may not exist yet.
pub(crate) fn free_bytes(config: &Config) -> Option<u64> {
    match config.store {
        StoreKind::RocksDb | StoreKind::Postgres(_) => {
            let data = std::path::absolute(&config.data).ok()?;
            disk::free_space(data.ancestors().find(|directory| directory.exists())?)
        }
        StoreKind::Memory => Some(u64::MAX),
    }
}

/// Opens the configured store.
///
/// # Errors
/// Errors of the store.
pub async fn open_store(config: &Config) -> Result<Store, weir_store::Error> {
    let location = match &config.store {
        StoreKind::RocksDb => Location::Directory(config.data.clone()),
        StoreKind::Postgres(address) => Location::Database {
            directory: config.data.clone(),
            database: DatabaseSettings {
                address: address.clone(),
                connections: config.store_connections,
                accepts_single_database: config.accept_single_database,
            },
        },
        StoreKind::Memory => Location::Memory,
    };
    let settings = StoreSettings {
        disk: config.disk_marks(),
        segments: config.segment_bucket(),
        ..StoreSettings::default()
    };
    match &location {
        Location::Directory(directory) => {
            tracing::info!(directory = %directory.display(), "opening the store");
        }
        Location::Database { directory, database } => {
            let (directory, database) = (directory.display(), &database.address);
            tracing::info!(%directory, %database, "opening the store in a database");
        }
        Location::Memory => tracing::warn!("the store is in memory: nothing survives the process"),
    }
    Store::open(&location, settings).await
}

fn open_locations(config: &Config) -> Result<Option<Locations>, LocationError> {
    let path = &config.geoip_database;
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let locations = Locations::open(path)?;
    tracing::info!(file = %path.display(), "events get the location of their address");
    Ok(Some(locations))
}

/// Runs the service until a stop signal arrives or storage fails. `settings` reads the
/// settings again. `traces` are exported until the end.
///
/// # Errors
/// [`ServeError`] with the reason.
pub async fn run<F>(config: Config, settings: F, traces: Option<Traces>) -> Result<(), ServeError>
where
    F: Fn() -> Result<Config, ConfigError> + Clone + Send + Sync + 'static,
{
    let mut signals = StopSignals::new()?;
    // The task ends when this set is dropped.
    let mut following = JoinSet::new();
    if let Some(hangups) = log_filter::hangups()? {
        following.spawn(log_filter::follow(hangups, settings));
    }
    let server = tokio::select! {
        started = Server::start(config, Options::default()) => started?,
        () = signals.stop() => return Ok(()),
    };
    let exporting = match traces {
        Some(traces) => Some(export(traces, &server)?),
        None => None,
    };
    if let (Some(reload), Some(hangups)) = (server.reload.clone(), log_filter::hangups()?) {
        following.spawn(reload.follow(hangups));
    }
    if server.app.config.public_url.origin().is_none() && !server.address.ip().is_loopback() {
        tracing::warn!("public_url is not set: people can sign in on this machine only");
    }
    let scheme = if server.app.config.serves_tls() { "https" } else { "http" };
    if let Err(error) = say(&format!("Listening on {scheme}://{}", reachable(server.address))) {
        tracing::warn!(%error, "the address could not be printed");
    }
    let announcing = tokio::spawn(announce_setup(server.app.clone(), server.address));
    let watched = watch(&server, &mut signals).await;
    announcing.abort();
    match watched {
        Ok(()) => stop(server, exporting, &mut signals).await,
        Err(error) => {
            drop(server);
            // The last traces show what failed.
            finish(exporting).await;
            Err(error)
        }
    }
}

fn export(traces: Traces, server: &Server) -> Result<Exporting, BuildError> {
    let config = &server.app.config;
    let exporter = traces.exporter(config, server.app.metrics.clone())?;
    tracing::info!(share = %config.traces_share, "traces are exported");
    Ok(exporter.start())
}

async fn finish(exporting: Option<Exporting>) {
    if let Some(exporting) = exporting {
        exporting.finish().await;
    }
}

/// Returns when a stop signal arrives.
///
/// # Errors
/// [`ServeError::StorageFailed`] when storage fails. The state in memory may be wrong then
/// and must not be flushed.
pub(crate) async fn watch(server: &Server, signals: &mut StopSignals) -> Result<(), ServeError> {
    tokio::select! {
        () = signals.stop() => Ok(()),
        () = server.failed() => Err(ServeError::StorageFailed),
    }
}

/// Stops in order and exports the last traces, or stops immediately at another stop signal.
pub(crate) async fn stop(
    server: Server,
    exporting: Option<Exporting>,
    signals: &mut StopSignals,
) -> Result<(), ServeError> {
    let stopping = async {
        let stopped = server.stop().await;
        finish(exporting).await;
        stopped
    };
    tokio::select! {
        stopped = stopping => stopped,
        () = signals.stop() => {
            tracing::warn!("second stop signal: exiting without waiting");
            Ok(())
        }
    }
}

/// The address in a form that can be opened on this host.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// Prints a line for people and scripts on standard output. The log is on standard error.
pub(crate) fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::{ServeError, bind, free_bytes};
    use crate::config::{Settings, StoreKind};

    #[test]
    fn the_disk_is_measured_before_the_data_directory_exists() {
        let folder = tempfile::tempdir().unwrap();
        let data = Some(folder.path().join("below/data"));
        let given = Settings { data, ..Settings::default() };
        let free = free_bytes(&given.over(Settings::default())).unwrap();
        assert!((1..u64::MAX).contains(&free), "{free}");
        let given = Settings { store: Some(StoreKind::Memory), ..Settings::default() };
        assert_eq!(free_bytes(&given.over(Settings::default())), Some(u64::MAX));
    }

    #[tokio::test]
    async fn an_address_in_use_is_tried_for_a_moment() {
        let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = held.local_addr().unwrap().to_string();
        let refused = bind(&address, "listen").await;
        assert!(matches!(refused, Err(ServeError::Bind { setting: "listen", .. })));
        // The first attempt comes before the release.
        let (bound, ()) = tokio::join!(bind(&address, "listen"), async { drop(held) });
        assert_eq!(bound.unwrap().local_addr().unwrap().to_string(), address);
    }
}
