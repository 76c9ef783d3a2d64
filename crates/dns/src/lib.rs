//! TXT look-ups for verifying domains (API-38).
//!
//! What belongs here: asking name servers. What does not: what an answer means
//! for a domain, how long to wait for one (`weir-service`).

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{ResolverBuilder, TokioResolver};
use weir_service::domains::{LookupError, Pending, TxtLookup, TxtRecord};

/// For one try: two of them fit into the time of a look-up.
const TRY: Duration = Duration::from_secs(2);
const TRIES: usize = 2;

/// Asks name servers. Nothing is remembered between two look-ups: whoever has
/// just written a record must not hear of its absence again.
#[derive(Debug, Clone, Default)]
pub struct Resolver {
    servers: Vec<SocketAddr>,
}

impl Resolver {
    /// A resolver that asks these servers; without any, those of the system.
    #[must_use]
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers }
    }

    async fn look_up(&self, name: &str) -> Result<Vec<TxtRecord>, LookupError> {
        let told = |error: &dyn std::fmt::Display| LookupError(error.to_string());
        let mut name = Name::from_ascii(name).map_err(|error| told(&error))?;
        // Whole already: the domains that the system searches are not tried.
        name.set_fqdn(true);
        let mut builder = self.builder().map_err(|error| told(&error))?;
        set(builder.options_mut());
        let resolver = builder.build().map_err(|error| told(&error))?;
        match resolver.lookup(name, RecordType::TXT).await {
            Ok(found) => Ok(found.answers().iter().filter_map(|it| strings(&it.data)).collect()),
            Err(error) if error.is_no_records_found() || error.is_nx_domain() => Ok(Vec::new()),
            Err(error) => Err(told(&error)),
        }
    }

    /// The system's settings are read every time: they change while we run.
    fn builder(&self) -> Result<ResolverBuilder<TokioRuntimeProvider>, NetError> {
        if self.servers.is_empty() {
            return TokioResolver::builder_tokio();
        }
        let servers = self.servers.iter().map(|server| {
            let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
            for connection in &mut connections {
                connection.port = server.port();
            }
            NameServerConfig::new(server.ip(), true, connections)
        });
        let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
        Ok(TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()))
    }
}

impl TxtLookup for Resolver {
    fn txt<'a>(&'a self, name: &'a str) -> Pending<'a> {
        Box::pin(self.look_up(name))
    }
}

fn set(options: &mut ResolverOpts) {
    options.timeout = TRY;
    options.attempts = TRIES;
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = 0;
}

/// The strings of a TXT record; aliases on the way to it have none.
fn strings(data: &RData) -> Option<TxtRecord> {
    match data {
        RData::TXT(txt) => Some(txt.txt_data.iter().map(|string| string.to_vec()).collect()),
        _ => None,
    }
}
