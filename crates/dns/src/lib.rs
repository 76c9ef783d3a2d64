//! TXT lookups for verifying domains (API-38).
//!
//! What belongs here: asking name servers. What does not: what an answer means for a
//! domain, and how long a caller waits for one (`weir-service`).

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

/// The time for one attempt. Two attempts fit into the time of a lookup.
const TRY: Duration = Duration::from_secs(2);
const TRIES: usize = 2;

/// Asks name servers. It caches nothing between two lookups: a user who has just created
/// a record must not get the earlier negative answer.
#[derive(Debug, Clone, Default)]
pub struct Resolver {
    servers: Vec<SocketAddr>,
}

impl Resolver {
    /// A resolver that asks these servers, or those of the system if the list is empty.
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers }
    }

    async fn look_up(&self, name: &str) -> Result<Vec<TxtRecord>, LookupError> {
        let reason = |error: &dyn std::fmt::Display| LookupError(error.to_string());
        let mut name = Name::from_ascii(name).map_err(|error| reason(&error))?;
        // The name is fully qualified: search domains of the system are not appended.
        name.set_fqdn(true);
        let mut builder = self.builder().map_err(|error| reason(&error))?;
        set(builder.options_mut());
        let resolver = builder.build().map_err(|error| reason(&error))?;
        match resolver.lookup(name, RecordType::TXT).await {
            Ok(found) => Ok(found.answers().iter().filter_map(|it| strings(&it.data)).collect()),
            Err(error) if error.is_no_records_found() || error.is_nx_domain() => Ok(Vec::new()),
            Err(error) => Err(reason(&error)),
        }
    }

    /// The settings of the system are read for every lookup, because they change while
    /// the service runs.
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

/// The strings of a TXT record. Aliases on the way to it have none.
fn strings(data: &RData) -> Option<TxtRecord> {
    match data {
        RData::TXT(txt) => Some(txt.txt_data.iter().map(|string| string.to_vec()).collect()),
        _ => None,
    }
}
