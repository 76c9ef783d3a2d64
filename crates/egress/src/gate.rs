//! From a host to the addresses that may be dialled for it.
//!
//! What belongs here: reading hosts, asking for addresses, judging all of them.
//! What does not: connections.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolving};
use tokio::net::lookup_host;

use crate::fault::{Fault, FaultClass};
use crate::rules::Rules;

/// Who knows the addresses of names.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of a name.
    ///
    /// # Errors
    /// When it has none, or nobody could be asked.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system: its name servers and its file of hosts.
pub(crate) struct System;

#[async_trait]
impl Resolve for System {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A host as members write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    /// An address in any spelling: decimal, octal, hexadecimal, short.
    Address(IpAddr),
    /// A name.
    Name(String),
}

impl Host {
    pub(crate) fn read(text: &str) -> Result<Self, Fault> {
        // IPv6 stands without brackets where no port follows.
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        url::Host::parse(text).map(Self::from).map_err(|_| FaultClass::NotFound.into())
    }
}

impl From<url::Host<String>> for Host {
    fn from(host: url::Host<String>) -> Self {
        match host {
            url::Host::Ipv4(address) => Self::Address(address.into()),
            url::Host::Ipv6(address) => Self::Address(address.into()),
            url::Host::Domain(name) => Self::Name(name),
        }
    }
}

/// What every connection passes.
pub(crate) struct Gate {
    pub(crate) rules: Rules,
    pub(crate) resolver: Arc<dyn Resolve>,
}

impl Gate {
    /// The addresses to dial for a host; without a port, for any port.
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
        // A name with one inner address is refused whole: what is dialled must
        // not depend on their order.
        for address in &addresses {
            self.judge(name, *address, port)?;
        }
        Ok(addresses)
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

/// The gate as the HTTP client asks it: at every dial, for one port or for those
/// that are not ours.
pub(crate) struct GuardedNames {
    pub(crate) gate: Arc<Gate>,
    pub(crate) port: Option<u16>,
}

impl reqwest::dns::Resolve for GuardedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let (gate, port) = (Arc::clone(&self.gate), self.port);
        Box::pin(async move {
            let addresses = gate.look_up(name.as_str(), port).await?;
            // The client puts the port of the request in.
            let addresses: Addrs =
                Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::Host;

    fn host(text: &str) -> Option<Host> {
        Host::read(text).ok()
    }

    #[test]
    fn addresses_are_read_in_every_spelling() {
        for text in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7F.1",
            "0177.0.0.1",
            "017700000001",
            "0x7f.0x0.0x0.0x1",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
            "①②⑦.⓪.⓪.①",
            "127。0。0。1",
        ] {
            assert_eq!(host(text), Some(Host::Address(Ipv4Addr::LOCALHOST.into())), "{text}");
        }
        for text in ["::1", "[::1]", "0:0:0:0:0:0:0:1", "[0::0:1]"] {
            assert_eq!(host(text), Some(Host::Address("::1".parse().unwrap())), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_not_found() {
        for text in [
            "",
            " ",
            "a b",
            "host:5432",
            "user@host",
            "/var/run/postgresql",
            "a/b",
            "a\\b",
            "a?b",
            "a#b",
            "a%00b",
            "fe80::1%eth0",
            "[::1",
            "1.2.3.4.5",
            "256.0.0.1",
            "0x100000000",
        ] {
            assert_eq!(host(text), None, "{text}");
        }
        assert_eq!(host("DB.Example"), Some(Host::Name("db.example".to_owned())));
    }

    proptest! {
        #[test]
        fn numbers_are_the_address_that_they_stand_for(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = address.octets();
            let low = bits & 0x00ff_ffff;
            let expected = Some(Host::Address(address.into()));
            for text in [
                format!("{address}"),
                format!("{bits}"),
                format!("{bits:#x}"),
                format!("0{bits:o}"),
                format!("{a}.{low}"),
                format!("{a:#x}.0{b:o}.{c}.{d:#X}"),
            ] {
                prop_assert_eq!(host(&text), expected.clone(), "{}", text);
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            let _ = host(&text);
        }
    }
}
