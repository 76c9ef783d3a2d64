//! From a host to the addresses that may be dialled for it.
//!
//! What belongs here: resolving names, and judging all of their addresses. What does not:
//! parsing hosts (`host`), judging one address (`rules`), connections (`lib`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolving};
use tokio::net::lookup_host;

use crate::fault::{Fault, FaultClass};
use crate::host::Host;
use crate::rules::Rules;

/// Resolves names to addresses.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of a name.
    ///
    /// # Errors
    /// When the name has no address, or no name server answers.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the system: its name servers and its file of hosts.
pub(crate) struct System;

#[async_trait]
impl Resolve for System {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Whether a name in lower case is that of this machine.
pub(crate) fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// The check before every connection.
pub(crate) struct AddressFilter {
    pub(crate) rules: Rules,
    pub(crate) resolver: Arc<dyn Resolve>,
}

impl AddressFilter {
    /// The addresses to dial for a host. Without a port, they are judged for any port.
    pub(crate) async fn pass(&self, host: &Host, port: Option<u16>) -> Result<Vec<IpAddr>, Fault> {
        match host {
            Host::Address(address) => {
                self.judge(&address.to_string(), *address, port)?;
                Ok(vec![*address])
            }
            Host::Name(name) => self.look_up(name, port).await,
        }
    }

    async fn look_up(&self, name: &str, port: Option<u16>) -> Result<Vec<IpAddr>, Fault> {
        let addresses = match self.resolver.addresses(name).await {
            Ok(addresses) if !addresses.is_empty() => addresses,
            _ => return Err(FaultClass::NotFound.into()),
        };
        // A name with one internal address is refused completely: the dialled address
        // must not depend on their order.
        for address in &addresses {
            self.judge(name, *address, port)?;
        }
        // Callers send http without TLS to this name, because it is this machine.
        let is_elsewhere = |address: &IpAddr| !address.to_canonical().is_loopback();
        if is_localhost(name) && addresses.iter().any(is_elsewhere) {
            tracing::info!(host = name, "refused to dial localhost at another machine");
            return Err(FaultClass::Forbidden.into());
        }
        Ok(addresses)
    }

    /// Whether at least one port of this address may be dialled.
    pub(crate) fn permits(&self, address: IpAddr) -> bool {
        self.rules.permit(address, None)
    }

    pub(crate) fn judge(
        &self,
        host: &str,
        address: IpAddr,
        port: Option<u16>,
    ) -> Result<(), Fault> {
        if self.rules.permit(address, port) {
            return Ok(());
        }
        tracing::info!(host, %address, port, "refused to dial an address that is not allowed");
        Err(FaultClass::Forbidden.into())
    }
}

/// The filter as resolver of the HTTP client, called at every dial: for one port of this
/// service, or for all other ports.
pub(crate) struct GuardedNames {
    pub(crate) filter: Arc<AddressFilter>,
    pub(crate) port: Option<u16>,
}

impl reqwest::dns::Resolve for GuardedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let (filter, port) = (Arc::clone(&self.filter), self.port);
        Box::pin(async move {
            let addresses = filter.look_up(name.as_str(), port).await?;
            // The client fills in the port of the request.
            let addresses: Addrs =
                Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
